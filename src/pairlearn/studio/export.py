"""From the answers to a table of pairs that `fit` reads, one row a judgement or one a pair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from pairlearn.annotators import scale_of
from pairlearn.atomic import replacing
from pairlearn.studio.choosing import inclusion_weights
from pairlearn.studio.overview import crowd_of
from pairlearn.studio.records import AnswerColumns, Floats, Pair, StoredAnswer
from pairlearn.studio.stored import Stored
from pairlearn.tables import PairTable
from pairlearn.tables.sources import convert
from pairlearn.tables.write import in_words, open_rows

Rule: TypeAlias = Literal["mean", "median", "reliability"]


def aggregate(answers: Sequence[StoredAnswer], rule: Rule) -> list[StoredAnswer]:
    """One judgement for each pair, by an annotator named after the rule.

    Similarities and differences are combined separately, each from those who gave it. The pair
    likelihood is linear in (s, c), so training on the mean is training on all judgements with
    equal weights; the median withstands single slips; "reliability" is a mean with the weights of
    `pairlearn.annotators.Crowd`. The feasible region is not convex: two feasible judgements can
    have an infeasible mean, which is exported as it is and reported by `pairlearn check`. Where
    nobody gave a number the preference of the majority is kept; a tie is left out.
    """
    if rule not in ("mean", "median", "reliability"):
        raise ValueError(f"rule must be 'mean', 'median' or 'reliability'; got {rule!r}")
    weights = crowd_of(answers).weights() if rule == "reliability" else {}
    by_pair: dict[int, list[StoredAnswer]] = {}
    for answer in answers:
        by_pair.setdefault(answer.pair, []).append(answer)
    joined = [_join(by_pair[pair], rule, weights) for pair in sorted(by_pair)]
    return [one for one in joined if one is not None]


def _join(
    answers: Sequence[StoredAnswer], rule: Rule, weights: Mapping[str, float]
) -> StoredAnswer | None:
    columns = AnswerColumns(answers)
    shares = np.array([weights.get(one.annotator, 1.0) for one in answers])

    def middle(column: Floats) -> float | None:
        given = ~np.isnan(column)
        values = column[given]
        if not len(values):
            return None
        if rule == "median":
            return float(np.median(values))
        mean = (values * shares[given]).sum() / shares[given].sum()
        # Rounding must not carry a mean out of the range of what was said.
        return float(np.clip(mean, values.min(), values.max()))

    similarity, difference = middle(columns.similarity), middle(columns.difference)
    preference = 0
    if similarity is None and difference is None:
        preference = int(np.sign(columns.preference.sum()))
        if preference == 0:
            return None
    return replace(
        answers[-1], annotator=rule, similarity=similarity, difference=difference,
        preference=preference, note="", seconds=math.fsum(one.seconds for one in answers),
    )  # fmt: skip


@dataclass(frozen=True)
class Exported:
    """A table of pairs, and what did not go into it.

    Attributes
    ----------
    cant_say, undecided : int
        Answers "can't say" and pairs with evenly split preferences, which are left out.
    infeasible : int
        Rows whose s and c no posteriors produce, even after rounding; they are exported.
    levels : tuple of str
        The answer in words of each row, "" where numbers were given; empty if none was.
    """

    table: PairTable
    cant_say: int
    undecided: int
    infeasible: int
    levels: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Write the table, with a column ``level`` where answers were given in words."""
        columns = in_words(self.table)
        if any(self.levels):
            columns["level"] = np.array(self.levels)
        with open_rows(path, list(columns)) as rows:
            rows.write(columns)


def settled(answers: Sequence[StoredAnswer], author: str | None) -> list[StoredAnswer]:
    """The answers without those that a supervisor's answer to the same pair overrules."""
    decided = {one.pair for one in answers if one.annotator == author}
    return [one for one in answers if one.annotator == author or one.pair not in decided]


def exportable(store: Stored) -> list[StoredAnswer]:
    """The answers that an export takes, without what was mixed in, with inclusion weights."""
    drawn = [one for one in store.answers() if one.pair not in store.mixed_in]
    return weighed(drawn, store.pairs(), len(store.items))


def weighed(
    answers: Sequence[StoredAnswer], pairs: Sequence[Pair], items: int
) -> list[StoredAnswer]:
    """The answers with the inclusion weights of their pairs, which have mean one.

    ``pairs`` has all pairs in the order in which they were drawn. Imported pairs were not drawn
    and keep their weight.
    """
    drawn = [pair for pair in pairs if pair.origin != "import"]
    of_pair: dict[int, float] = {}
    if drawn:
        weights = inclusion_weights([pair.weight for pair in drawn], items)
        of_pair = dict(zip([pair.id for pair in drawn], weights.tolist(), strict=True))
    return [replace(one, weight=of_pair.get(one.pair, one.weight)) for one in answers]


def judgements(answers: Sequence[StoredAnswer], *, weights: bool = False) -> Exported:
    """All judgements, one row each, with the annotators' names; ValueError if there are none.

    ``weights`` adds the inclusion weights, which pairs chosen by a model need.
    """
    said = _said(answers)
    table = pair_table(said, weights=weights, names=[one.annotator for one in said])
    levels = tuple(one.level for one in said)
    return Exported(table, len(answers) - len(said), 0, _infeasible(table), levels)


def aggregated(answers: Sequence[StoredAnswer], rule: Rule, *, weights: bool = False) -> Exported:
    """One judgement for each pair, by the mean, the median, or weighted by reliability."""
    said = _said(answers)
    compared = [replace(one, others={}) for one in said if one.answer("-").compares]
    # Statements of other kinds have no rule, and stay as they are.
    others = [
        replace(one, similarity=None, difference=None, preference=0) for one in said if one.others
    ]
    joined = aggregate(compared, rule)
    undecided = len({one.pair for one in compared}) - len(joined)
    if not joined and not others:
        raise ValueError("nothing to export: all preferences are evenly split")
    table = pair_table([*joined, *others], weights=weights, names=None)
    return Exported(table, len(answers) - len(said), undecided, _infeasible(table))


def write_lines(
    answers: Sequence[StoredAnswer], path: Path, asked: str, author: str | None = None
) -> None:
    """Write every answer as a line of JSON: what, by whom, when, how fast and why.

    Also those that could not say. Answers that one of ``author``'s overrules are marked.
    """
    with replacing(path) as part, part.open("wb") as file:
        file.writelines(answer_lines(answers, asked, author))


def answer_lines(
    answers: Sequence[StoredAnswer], asked: str, author: str | None = None
) -> Iterator[bytes]:
    """The lines of `write_lines`."""
    unsaid = {"id", "pair", "others"}
    standing = {one.id for one in settled(answers, author)}
    for one in answers:
        line = {name: value for name, value in vars(one).items() if name not in unsaid}
        line |= {**one.others, "asked": asked}
        line |= {} if one.id in standing else {"overruled": True}
        yield msgspec.json.encode(line) + b"\n"


def _said(answers: Sequence[StoredAnswer]) -> list[StoredAnswer]:
    said = [one for one in answers if not one.cant_say]
    if not said:
        raise ValueError(
            "nothing to export: there are no answers yet"
            if not answers
            else f"nothing to export: all {len(answers)} answers are “can't say”"
        )
    return said


def pair_table(
    answers: Sequence[StoredAnswer], *, weights: bool = False, names: Sequence[str] | None = None
) -> PairTable:
    """Answers that say something as a table of pairs, one row each."""
    columns = AnswerColumns(answers)
    known = dict.fromkeys(name for one in answers for name in one.others)
    others: Any = {name: [one.others.get(name, np.nan) for one in answers] for name in known}
    return PairTable(
        convert("left", "id", [one.left for one in answers]),
        convert("right", "id", [one.right for one in answers], empty=True),
        columns.similarity,
        columns.difference,
        preference=columns.preference if columns.preference.any() else None,
        weight=columns.weight if weights else None,
        annotator=names,
        **others,
    )


def _infeasible(table: PairTable) -> int:
    """Rows that no posteriors produce, also if they are rounded to a scale of few levels."""
    names = np.zeros(len(table)) if table.annotator is None else np.asarray(table.annotator)
    found = 0
    for name in np.unique(names):
        s, c = table.similarity[names == name], table.difference[names == name]
        both = ~np.isnan(s) & ~np.isnan(c)
        found += int((~scale_of(s, c).admits(s[both], c[both])).sum())
    return found
