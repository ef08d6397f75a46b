"""From what annotators said to what `fit` learns from: their manners, learnt and taken back."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators.answers import Answers, opposed, without_copies
from pairlearn.annotators.crowd import with_errors
from pairlearn.annotators.link import Link, learn_link
from pairlearn.annotators.manner import Manner, is_constant
from pairlearn.estimators.cross_fitting import FOLDS, out_of_fold
from pairlearn.estimators.table import Table

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

SHARE = 0.2
"""Of the epochs that models of a fold train for: more would learn their pairs by heart."""
LEAST = 20
"""Pairs under which there is nothing to learn about annotators."""
MANY = 1000
"""Pairs from which on three folds do: two thirds of the pairs are enough to train on."""


class AnnotatorsWarning(UserWarning):
    """Something about the annotators that one should know."""


def listen(
    classifier: PairClassifier, table: Table, features: NDArray[np.float32], seed: int
) -> tuple[Table, list[Manner]]:
    """The table with one corrected statement for each pair, and how its annotators answer.

    Unchanged, and without manners, where annotators are taken as ideal: where the classifier says
    so, and with "auto" where the table gives no reason to do otherwise.
    """
    if type(table) is not Table:  # rows that stay in their file are taken as they are
        if classifier.annotators == "learn":
            raise ValueError("annotators='learn' needs all pairs in memory: fit without a stream")
        return table, []
    if classifier.annotators == "ideal":
        return table, []
    answers = Answers.of(table.judged)
    if len(answers) and all(is_constant(answers.values[rows]) for rows in answers.each()):
        who = "all annotators give" if len(answers.names) > 1 else "the table gives"
        warnings.warn(
            f"{who} one answer to everything: there is nothing to learn from. Check that these are "
            "the right columns, and ask again",
            AnnotatorsWarning,
            stacklevel=3,
        )
    if len(answers.ends) < LEAST:
        return table, []
    if classifier.annotators == "auto" and answers.speak() is None and not answers.few_levels:
        return table, []
    rows, copies = without_copies(table.judged)
    if copies:
        listed = ", ".join(f"{one!r} those of {other!r}" for one, other in copies[:3])
        warnings.warn(
            f"annotators repeat the answers of others to the last digit, {listed}: counted once",
            AnnotatorsWarning,
            stacklevel=3,
        )
        table, answers = replace(table, judged=rows), Answers.of(rows)
    if against := opposed(table.judged):
        warnings.warn(
            "the differences of {!r} and {!r} run against each other on the same pairs: one of "
            "them has left and right exchanged, and which one judgements do not tell. Ask, and "
            "change the sign of theirs".format(*against[0]),
            AnnotatorsWarning,
            stacklevel=3,
        )
    link = learn_link(answers, seed=seed)
    # Where it is open who is right, the features decide, by models of what all say on average.
    first = Link.naive(answers) if link.rivals else link
    judged = first.statements(table.judged, answers)
    fold = np.full(len(judged), -1)  # what is said of single items is in all trainings
    folds = FOLDS if len(answers.ends) < MANY else 3
    fold[: len(answers.ends)] = np.random.default_rng(seed).permutation(len(answers.ends)) % folds
    scores = out_of_fold(classifier, features, judged, fold, seed, SHARE)[: len(answers.ends)]
    if not np.isfinite(scores).all():  # training diverges, which the model to keep will show
        return replace(table, judged=judged), list(link.manners)
    link = learn_link(answers, scores, start=link.manners, seed=seed)
    manners = with_errors(link, answers, scores)
    return replace(table, judged=link.statements(table.judged, answers, scores)), list(manners)
