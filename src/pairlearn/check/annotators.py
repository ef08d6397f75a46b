"""Checks of who gave the answers in a table of judgements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from pairlearn.annotators.answers import constant_people, untouched_words
from pairlearn.annotators.sides import against_classes, with_sides_right
from pairlearn.check.answers import EXPLAINING, Answers, leans_of
from pairlearn.check.findings import Finding, about_people, finding
from pairlearn.judgements import Judgements
from pairlearn.prior import PriorEstimate

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
    one_answer = {name for name, manner in answers.crowd.manners.items() if manner.constant}
    for question, column in (("similarity", answers.s), ("difference", answers.c)):
        values_of = {
            name: column[~np.isnan(column) & (answers.names == name)] for name in answers.scales
        }
        habits = constant_people([values[:, None] for values in values_of.values()])
        constant = [
            name
            for (name, values), habit in zip(values_of.items(), habits, strict=True)
            if len(values) >= ALIKE and np.ptp(values) == 0 and habit
            if not (name and name in one_answer)
        ]
        if constant:
            yield about_people("constant", constant, name=f"constant-{question}", question=question)
    middles, shares = answers.untouched
    if shares:
        yield finding("untouched", np.flatnonzero(middles), words=untouched_words(shares))
    by_scale: dict[str, list[str]] = {}
    for name, scale in answers.scales.items():
        if any(scale.levels) and name not in one_answer:  # one answer shows no levels
            by_scale.setdefault(scale.words(), []).append(name)
    if by_scale:
        scales = [f"{scale} ({', '.join(names)})" for scale, names in by_scale.items()]
        everybody = [*chain.from_iterable(by_scale.values())]
        yield about_people("levels", everybody, scale="; ".join(scales).replace(" ()", ""))
    bare = {name: "".join(name.casefold().split()) for name in answers.annotators.tolist()}
    alike = [name for name in bare if [*bare.values()].count(bare[name]) > 1]
    if alike:
        alike.sort(key=bare.__getitem__)
        yield about_people("similar-names", alike, words=", ".join(map(repr, alike)))
    # Where the table names nobody, the checks of answers say as much.
    for doubt in answers.crowd.doubts() if len(answers.annotators) else ():
        if doubt.code == "untouched":  # which is a finding with its rows
            continue
        agreeing = AGREEING * any(len(group) > 1 for group in answers.crowd.rivals)
        told = {"agreeing": agreeing, "features": FEATURES[answers.features is not None]}
        told["others"] = OTHERS[answers.crowd.by_classes]
        yield about_people(doubt.code, doubt.names, words=doubt.words, **told)
    right = with_sides_right(answers.judgements, answers.crowd.manners.values())
    statements = Judgements.concatenate([right, answers.statements[answers.statements.known]])
    if (share := against_classes(statements, answers.features)) is not None:
        yield finding("contradicted-classes", share=share)
    # Where three answer the same pairs, contradictions show.
    scattered = len(answers.annotators) > 1 and len(answers) < 3 * (answers.pair.max() + 1)
    if scattered and answers.features is None:
        yield finding("answers-alone")


def prior_caveats(
    answers: Answers, implied: PriorEstimate, *, dependent: bool = False
) -> list[str]:
    """Reasons why the share of positives that similarities imply may be wrong."""
    used = {*answers.names[answers.comparable].tolist()}
    codes = {d.code for d in answers.crowd.doubts() if used.intersection(d.names)}
    leaning = codes & EXPLAINING or any(leans_of(answers, answers.infeasible()))
    rivals, unlike = "rival-annotators" in codes, too_unlike(implied)
    caveats = {LEANING: leaning, RIVALS: rivals, DEPENDENT: dependent, UNLIKE: unlike}
    return [text for text, holds in caveats.items() if holds]


def too_unlike(implied: PriorEstimate) -> bool:
    """Whether similarities average clearly below ½."""
    return implied.low == implied.high == 0.5 and round(implied.mean_similarity, 3) < 0.5
