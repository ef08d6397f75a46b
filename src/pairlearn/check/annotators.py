"""Findings about the people who gave the answers: the only caller of `pairlearn.annotators`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from pairlearn.annotators import Annotators, findings
from pairlearn.annotators.answers import listed
from pairlearn.check.findings import Finding, Severity
from pairlearn.check.view import TableView
from pairlearn.evaluation.ranking import against_classes
from pairlearn.judgements import Judgements

UNRELIABLE = {"outlying-annotator", "leaning-annotator", "rival-annotators"}
"""Findings that cast doubt on the similarities."""
MANY_GUESSES, LEAN = 0.15, 0.05
"""Share of guesses, and lean, that are reported if they are significant: none is in 108 honest
crowds of `bench/speed/annotators.py --honest`."""
RULES: dict[str, tuple[Severity, str]] = {
    "levels": (
        "note",
        "Answers are on a scale: {scale}. They are taken as rounded, and what rounding "
        "explains is no contradiction. Hard answers are fine where they are meant; if "
        "soft ones were asked, probabilities in between are lost. An accuracy without "
        "labels is as good as these numbers: if “probably” is right more often or less "
        "often than they say, so is everything measured.",
    ),
    "contradicted-classes": (
        "warning",
        "The known classes contradict the differences or preferences of everybody: by "
        "these, an item called negative is the more positive one in {share:.0%} of the "
        "couples. Either the positive class is the other one (--positive), or left and "
        "right are exchanged: a difference above 0 says that the right one is the more "
        "positive, so change their sign.",
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
    "leaning-annotator": (
        "warning",
        "A habit shifts the answers of {names}. {words}. fit takes it back (not from a "
        "stream); ask how the question was understood.",
    ),
}
"""Severity and sentence of each finding that `pairlearn.annotators.findings` does not make."""


def people_of(view: TableView) -> Annotators:
    """Learn how each annotator answers, from the answers alone, if there are several."""
    return Annotators.learn(view.judgements) if len(view.annotators) > 1 else Annotators()


def _found(
    code: str, names: Sequence[str] = (), rows: Any = (), *, name: str | None = None, **values: Any
) -> Finding:
    """A finding about some annotators, or rows; `name` replaces its code."""
    severity, sentence = RULES[code]
    known = [name for name in names if name]
    values |= {"names": listed(known) if known else ""}
    places = tuple(int(row) for row in rows[:5]), tuple(map(str, known[:5]))
    return Finding(severity, name or code, sentence, len(rows) or len(known), *places, values)


def check_annotators(view: TableView, people: Annotators) -> Iterator[Finding]:
    """Check how each annotator answers, or the table as one annotator where it names none."""
    for found in findings(view.judgements):
        known = [name for name in found.names if name]
        values = {"words": found.sentence} | found.numbers
        yield Finding("warning", found.code, "{words}.", len(known), (), tuple(known[:5]), values)
    by_scale: dict[str, list[str]] = {}
    for name, scale in view.answer_scales.items():
        if any(scale.levels):
            by_scale.setdefault(scale.words(), []).append(name)
    if by_scale:
        scales = [f"{scale} ({', '.join(names)})" for scale, names in by_scale.items()]
        named = [*chain.from_iterable(by_scale.values())]
        yield _found("levels", named, scale="; ".join(scales).replace(" ()", ""))
    bare = {name: "".join(name.casefold().split()) for name in view.annotators.tolist()}
    alike = [name for name in bare if [*bare.values()].count(bare[name]) > 1]
    if alike:
        alike.sort(key=bare.__getitem__)
        yield _found("similar-names", alike, words=", ".join(map(repr, alike)))
    # Where the table names nobody, the checks of answers say as much.
    for code, names in (
        ("outlying-annotator", _outlying(people)),
        ("leaning-annotator", _leaning(people)),
    ):
        if names and len(view.annotators):
            words = "; ".join(f"{name}: {people.describe(name)}" for name in names)
            yield _found(code, names, words=words)
    known_classes = view.statements[view.statements.known]
    statements = Judgements.concatenate([view.judgements, known_classes])
    if (share := against_classes(statements, view.features)) is not None:
        yield _found("contradicted-classes", share=share)


def _outlying(people: Annotators) -> list[str]:
    return [p.name for p in people.people if p.guesses - 2 * p.guesses_error > MANY_GUESSES]


def _leaning(people: Annotators) -> list[str]:
    return [
        p.name
        for p in people.people
        if p.informative
        and (
            abs(p.lean_same) > LEAN + 2 * p.lean_same_error
            or abs(p.lean_right) > LEAN + 2 * p.lean_right_error
        )
    ]
