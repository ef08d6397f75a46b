"""Findings about the people who gave the answers: the only caller of `pairlearn.annotators`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from pairlearn.annotators.answers import constant_people, listed, untouched, untouched_words
from pairlearn.annotators.crowd import Crowd
from pairlearn.annotators.sides import against_classes, with_sides_right
from pairlearn.check.findings import Finding, Severity
from pairlearn.check.view import TableView
from pairlearn.judgements import Judgements

UNRELIABLE = {"outlying-annotator", "leaning-annotator", "rival-annotators"}
"""Findings that cast doubt on the similarities."""
ALIKE = 20
"""Equal answers of one annotator from which on they are a habit."""
AGREEING = "Two people who agree may have copied each other, so numbers do not decide. "
FEATURES = (
    "The features may tell which side is right (--items), and fit lets them decide.",
    "A linear model of the features does not tell which side is right; what fit trains may.",
)
"""What features tell about rivals: where they are not given, and where they are."""
OTHERS = ("those of most others, about the same items or similar ones", "the known classes")
"""What answers with left and right exchanged run against: if most people decide, or classes."""
RULES: dict[str, tuple[Severity, str]] = {
    "constant": ("warning", "Always the same {question}: such answers teach nothing."),
    "untouched": (
        "warning",
        "{words}. fit does not learn from them. If they mean “no answer”, drop these rows.",
    ),
    "levels": (
        "note",
        "Answers are on a scale: {scale}. They are taken as rounded, and what rounding "
        "explains is no contradiction. Hard answers are fine where they are meant; if "
        "soft ones were asked, probabilities in between are lost. An accuracy without "
        "labels is as good as these numbers: if “probably” is right more often or less "
        "often than they say, so is everything measured.",
    ),
    "copied-annotator": (
        "note",
        "Answers of {names} are those of others, to the last digit, or nearly and also "
        "where they cannot be right. {words}. A table imported twice, one model under two"
        " names, or people who copy each other are one voice, and fit counts it once.",
    ),
    "reversed-annotator": (
        "warning",
        "Differences or preferences of {names} run against {others}: left and right are "
        "exchanged. A difference above 0 says that the right one is the more positive. "
        "fit takes them the other way round; ask, and change the sign of theirs.",
    ),
    "contrary-annotators": (
        "warning",
        "Differences or preferences run against each other, about the same items or "
        "similar ones: {words}. Somebody has left and right exchanged, and the answers do"
        " not tell who. Ask, and change the sign of theirs; some items of known class can"
        " tell, too (--labelled).",
    ),
    "contradicted-classes": (
        "warning",
        "The known classes contradict the differences or preferences of everybody: by "
        "these, an item called negative is the more positive one in {share:.0%} of the "
        "couples. Either the positive class is the other one (--positive), or left and "
        "right are exchanged: a difference above 0 says that the right one is the more "
        "positive, so change their sign.",
    ),
    "rival-annotators": (
        "warning",
        "Answers to the same pairs contradict each other, and either side could be right:"
        " {words}. {agreeing}{features} Look at some of these pairs yourself, or have "
        "other people judge them.",
    ),
    "outlying-annotator": (
        "warning",
        "Many answers of {names} do not fit the pairs. {words}. fit counts them less or "
        "not at all; talk to them, or leave them out.",
    ),
    "similar-names": (
        "note",
        "Names of annotators that differ only in case or spaces count as different "
        "people: {words}. If they are one person's, write them alike.",
    ),
    "answers-alone": (
        "note",
        "How annotators answer is learnt from the answers alone. Somebody whose answers "
        "fit together, but not the items, is only seen with the features (--items), and "
        "by fit.",
    ),
    "leaning-annotator": (
        "warning",
        "A habit shifts the answers of {names}. {words}. fit takes it back (not from a "
        "stream); ask how the question was understood.",
    ),
}
"""Severity and sentence of each finding about annotators."""


def crowd_of(view: TableView) -> Crowd:
    """Learn how each annotator answers, from the answers and from the features if they help."""
    oriented = view.has_c.any() or view.preference.any()  # else features tell nothing
    known = view.statements[view.statements.known]
    return Crowd.of(view.judgements, view.features if oriented else None, known)


def _found(
    code: str, names: Sequence[str] = (), rows: Any = (), *, name: str | None = None, **values: Any
) -> Finding:
    """A finding about some annotators, or rows; `name` replaces its code."""
    severity, sentence = RULES[code]
    known = [name for name in names if name]
    values |= {"names": listed(known) if known else ""}
    places = tuple(int(row) for row in rows[:5]), tuple(map(str, known[:5]))
    return Finding(severity, name or code, sentence, len(rows) or len(known), *places, values)


def check_annotators(view: TableView, crowd: Crowd) -> Iterator[Finding]:
    """Check how each annotator answers, or the table as one annotator where it names none."""
    one_answer = {name for name, manner in crowd.manners.items() if manner.constant}
    for question, column in (("similarity", view.s), ("difference", view.c)):
        values_of = {
            name: column[~np.isnan(column) & (view.names == name)] for name in view.answer_scales
        }
        habits = constant_people([values[:, None] for values in values_of.values()])
        constant = [
            name
            for (name, values), habit in zip(values_of.items(), habits, strict=True)
            if len(values) >= ALIKE and np.ptp(values) == 0 and habit
            if not (name and name in one_answer)
        ]
        if constant:
            yield _found("constant", constant, name=f"constant-{question}", question=question)
    both = np.flatnonzero(view.has_s & view.has_c)
    columns = {"similarity": view.s[both], "difference": view.c[both]}
    middles, shares = untouched(
        Judgements.from_columns(view.ends[both], columns, annotator=view.names[both])
    )
    if shares:
        yield _found("untouched", rows=both[middles], words=untouched_words(shares))
    by_scale: dict[str, list[str]] = {}
    for name, scale in view.answer_scales.items():
        if any(scale.levels) and name not in one_answer:  # one answer shows no levels
            by_scale.setdefault(scale.words(), []).append(name)
    if by_scale:
        scales = [f"{scale} ({', '.join(names)})" for scale, names in by_scale.items()]
        everybody = [*chain.from_iterable(by_scale.values())]
        yield _found("levels", everybody, scale="; ".join(scales).replace(" ()", ""))
    bare = {name: "".join(name.casefold().split()) for name in view.annotators.tolist()}
    alike = [name for name in bare if [*bare.values()].count(bare[name]) > 1]
    if alike:
        alike.sort(key=bare.__getitem__)
        yield _found("similar-names", alike, words=", ".join(map(repr, alike)))
    # Where the table names nobody, the checks of answers say as much.
    for doubt in crowd.doubts() if len(view.annotators) else ():
        if doubt.code == "untouched":  # which is a finding with its rows
            continue
        agreeing = AGREEING * any(len(group) > 1 for group in crowd.rivals)
        told = {"agreeing": agreeing, "features": FEATURES[view.features is not None]}
        told["others"] = OTHERS[crowd.by_classes]
        yield _found(doubt.code, doubt.names, words=doubt.words, **told)
    right = with_sides_right(view.judgements, crowd.manners.values())
    statements = Judgements.concatenate([right, view.statements[view.statements.known]])
    if (share := against_classes(statements, view.features)) is not None:
        yield _found("contradicted-classes", share=share)
    # Where three answer the same pairs, contradictions show.
    scattered = len(view.annotators) > 1 and len(view) < 3 * (view.pair.max() + 1)
    if scattered and view.features is None:
        yield _found("answers-alone")
