"""Checks of the people who gave the answers: the only caller of `pairlearn.annotators`."""

from __future__ import annotations

from collections.abc import Iterator

from pairlearn.annotators import findings
from pairlearn.annotators.answers import listed
from pairlearn.check.checks import SHOWN, Check
from pairlearn.check.findings import Finding
from pairlearn.check.view import TableView
from pairlearn.evaluation.ranking import against_classes
from pairlearn.judgements import Judgements

UNRELIABLE = {"outlying-annotator", "leaning-annotator", "rival-annotators"}
"""Findings that cast doubt on the similarities."""
MANY_GUESSES, LEAN = 0.15, 0.05
"""Share of guesses, and lean, that are reported if they are significant: none is in 108 honest
crowds of `bench/speed/annotators.py --honest`."""


class AnnotatorCheck(Check):
    """A check of answers that are on their scales."""


class AnnotatorHabits(AnnotatorCheck):
    """{words}."""  # of each finding of `pairlearn.annotators`, which has a code of its own

    code, severity = "annotator-habits", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        for found in findings(view.judgements):
            named = tuple(filter(None, found.names))
            values = {"words": found.sentence} | found.numbers
            yield Finding(
                "warning", found.code, self.sentence, len(named), (), named[:SHOWN], values
            )


class Levels(AnnotatorCheck):
    """Answers are on a scale: {scale}. They are taken as rounded, and what rounding explains is no
    contradiction. Hard answers are fine where they are meant; if soft ones were asked,
    probabilities in between are lost. An accuracy without labels is as good as these numbers: if
    “probably” is right more often or less often than they say, so is everything measured.
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
    """Names of annotators that differ only in case or spaces count as different people: {words}.
    If they are one person's, write them alike.
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

    def names(self, view: TableView) -> list[str]:
        """The annotators whom it is about."""
        raise NotImplementedError

    def look(self, view: TableView) -> Iterator[Finding]:
        if named := self.names(view):
            words = "; ".join(f"{name}: {view.people.describe(name)}" for name in named)
            yield self.found((), named, names=listed(named), words=words)


class OutlyingAnnotator(_People):
    """Many answers of {names} do not fit the pairs. {words}. fit gives them less weight or none;
    talk to them, or leave them out.
    """

    code, severity = "outlying-annotator", "warning"

    def names(self, view: TableView) -> list[str]:
        return [
            p.name for p in view.people.people if p.guesses - 2 * p.guesses_error > MANY_GUESSES
        ]


class LeaningAnnotator(_People):
    """A habit shifts the answers of {names}. {words}. fit removes it; ask how the question was
    understood.
    """

    code, severity = "leaning-annotator", "warning"

    def names(self, view: TableView) -> list[str]:
        return [
            p.name
            for p in view.people.people
            if p.informative
            and (
                abs(p.lean_same) > LEAN + 2 * p.lean_same_error
                or abs(p.lean_right) > LEAN + 2 * p.lean_right_error
            )
        ]


class ContradictedClasses(AnnotatorCheck):
    """The known classes contradict all annotators' differences or preferences: in {share:.0%} of
    the comparisons, the item of the negative class is judged the more positive one. Either the
    positive class is the other one (--positive), or left and right are exchanged: a difference
    above 0 says that the right one is the more positive, so change their sign.
    """

    code, severity = "contradicted-classes", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        known = view.statements[view.statements.known]
        statements = Judgements.concatenate([view.judgements, known])
        if (share := against_classes(statements, view.features)) is not None:
            yield self.found(share=share)
