"""Checks of who gave the answers in a table of judgements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from pairlearn.check.answers import Answers, leaning, leans_of, outlying
from pairlearn.check.findings import Finding, about_people, finding
from pairlearn.evaluation.ranking import against_classes
from pairlearn.judgements import Judgements
from pairlearn.prior import PriorEstimate

LEANING = (
    "similarities are taken as they are, and somebody leans or guesses: the share of positives may "
    "lie outside of the interval; `pairlearn fit` takes habits back, and says the share too"
)
RIVALS = (
    "annotators contradict each other, and all of them count: the share of positives may lie "
    "outside of the interval; `pairlearn fit` lets the features decide whom to believe, and says "
    "the share too"
)
DEPENDENT = (
    "the items of a pair were not drawn independently: the share of positives may lie outside of "
    "the interval"
)
UNLIKE = (
    "similarities of independent pairs cannot average clearly below ½, so these tell no share of "
    "positives"
)


def check_annotators(answers: Answers) -> Iterator[Finding]:
    """Check how each annotator answers, or the table as one annotator where it names none."""
    for found in answers.about_people:
        rule = "constant-annotator" if found.code.startswith("constant") else found.code
        yield about_people(rule, found.names, name=found.code, words=found.sentence)
    by_scale: dict[str, list[str]] = {}
    for name, scale in answers.scales.items():
        if any(scale.levels):
            by_scale.setdefault(scale.words(), []).append(name)
    if by_scale:
        scales = [f"{scale} ({', '.join(names)})" for scale, names in by_scale.items()]
        people = [*chain.from_iterable(by_scale.values())]
        yield about_people("levels", people, scale="; ".join(scales).replace(" ()", ""))
    bare = {name: "".join(name.casefold().split()) for name in answers.annotators.tolist()}
    alike = [name for name in bare if [*bare.values()].count(bare[name]) > 1]
    if alike:
        alike.sort(key=bare.__getitem__)
        yield about_people("similar-names", alike, words=", ".join(map(repr, alike)))
    for code, names in (
        ("outlying-annotator", outlying(answers.people)),
        ("leaning-annotator", leaning(answers.people)),
    ):
        if names:
            words = "; ".join(f"{name}: {answers.people.describe(name)}" for name in names)
            yield about_people(code, names, words=words)
    known = answers.statements[answers.statements.known]
    statements = Judgements.concatenate([answers.judgements, known])
    if (share := against_classes(statements, answers.features)) is not None:
        yield finding("contradicted-classes", share=share)


def prior_caveats(
    answers: Answers, implied: PriorEstimate, *, dependent: bool = False
) -> list[str]:
    """Reasons why the share of positives that similarities imply may be wrong."""
    used = {*answers.names[answers.comparable].tolist()}
    habits = used.intersection(outlying(answers.people) + leaning(answers.people))
    leans = habits or any(leans_of(answers, answers.infeasible()))
    rivals = any(found.code == "rival-annotators" for found in answers.about_people)
    unlike = too_unlike(implied)
    caveats = {LEANING: leans, RIVALS: rivals, DEPENDENT: dependent, UNLIKE: unlike}
    return [text for text, holds in caveats.items() if holds]


def too_unlike(implied: PriorEstimate) -> bool:
    """Whether similarities average clearly below ½."""
    return implied.low == implied.high == 0.5 and round(implied.mean_similarity, 3) < 0.5
