"""Checks of the people who gave the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pairlearn.annotators import SENTENCES, Annotators
from pairlearn.check.checks import CHECKS, Check
from pairlearn.check.view import TableView
from pairlearn.evaluation.ranking import against_classes
from pairlearn.finding import Finding
from pairlearn.judgements import Judgements

#: Findings that cast doubt on the similarities.
UNRELIABLE = {"outlying-annotator", "leaning-annotator", "rival-annotators"}


class AnnotatorCheck(Check):
    """A check of answers that are on their scales."""


class Habit(AnnotatorCheck):
    """What the model of annotators does not contain: one of `pairlearn.annotators.findings`."""

    severity = "warning"

    def __init__(self, code: str) -> None:
        self.code, self.sentence = code, SENTENCES[code]  # type: ignore[misc]

    def look(self, view: TableView) -> Iterator[Finding]:
        yield from (found for found in view.habits if found.code == self.code)


CHECKS |= {code: Habit(code) for code in SENTENCES}


class Levels(AnnotatorCheck):
    """Answers use few levels: {scale}. They are treated as rounded, and what rounding explains is
    not a contradiction. Hard answers are fine if you asked for them; if you asked for soft ones,
    probabilities in between are lost. An accuracy without labels depends on these numbers: if
    “probably” is right more often or less often than its number says, the accuracy is wrong too.
    """

    code, severity = "levels", "note"

    def look(self, view: TableView) -> Iterator[Finding]:
        by_scale: dict[str, list[str]] = {}
        for name, scale in view.answer_scales.items():
            if any(scale.levels):
                by_scale.setdefault(scale.words(), []).append(name)
        if by_scale:
            scales = [f"{scale} ({', '.join(names)})" for scale, names in by_scale.items()]
            named = [name for names in by_scale.values() for name in names if name]
            yield self.found((), named, scale="; ".join(scales).replace(" ()", ""))


class SimilarNames(AnnotatorCheck):
    """These names of annotators differ only in case or spaces, and count as different people:
    {words}. If they belong to one person, write them in the same way.
    """

    code, severity = "similar-names", "note"

    def look(self, view: TableView) -> Iterator[Finding]:
        bare = {name: "".join(name.casefold().split()) for name in view.annotators.tolist()}
        alike = [name for name in bare if [*bare.values()].count(bare[name]) > 1]
        if alike:
            alike.sort(key=bare.__getitem__)
            yield self.found((), alike, words=", ".join(map(repr, alike)))


class _People(AnnotatorCheck):
    """A check of what was learnt about each annotator, where the table names several."""

    trait: ClassVar[str]

    def look(self, view: TableView) -> Iterator[Finding]:
        named = [person.name for person in view.people.people if getattr(person, self.trait)]
        if named:
            words = "; ".join(f"{name}: {view.people.describe(name)}" for name in named)
            needed = Annotators.needed(view.judgements)
            yield self.found(
                (), named, words=words, fit="fit" if needed else "fit --annotators learn"
            )


class OutlyingAnnotator(_People):
    """Many answers do not fit the pairs. {words}. {fit} gives them little or no weight; talk to
    these people, or leave them out.
    """

    code, severity, trait = "outlying-annotator", "warning", "outlying"


class LeaningAnnotator(_People):
    """A habit shifts the answers. {words}. {fit} corrects this; ask how the question was read."""

    code, severity, trait = "leaning-annotator", "warning", "leaning"


class ContradictedClasses(AnnotatorCheck):
    """The known classes contradict all annotators' differences or preferences: in {share:.0%} of
    the comparisons, the item of the negative class is judged more likely positive. Either the
    positive class is the other one (--positive), or left and right are exchanged: a difference
    above 0 says that the right item is more likely positive, so reverse the signs.
    """

    code, severity = "contradicted-classes", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        known = view.statements[view.statements.known]
        statements = Judgements.concatenate([view.judgements, known])
        if (share := against_classes(statements, view.features)) is not None:
            yield self.found(share=share)
