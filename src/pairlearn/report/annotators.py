"""The annotators of a table beside one another, and beside a model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairlearn.check.columns import Columns
from pairlearn.labels import PairLabels
from pairlearn.tables import PairTable

__all__ = ["AnnotatorRow", "compare_annotators", "model_labels", "probabilities"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AnnotatorRow:
    """One annotator in numbers; NaN where there is nothing to compare with.

    Parameters
    ----------
    name : str
        As the table has it.
    judgements : int
        Rows.
    shared : int
        Rows about pairs that others judged too.
    gap : float
        Mean distance |Δs| and |Δc| to the mean of the others on the same pairs, over both
        kinds of judgement.
    similarity_bias, difference_bias : float
        Mean of own less others': above 0 is more often "same", or further to the right.
    model_gap : float
        Mean distance to what the model says.

    Examples
    --------
    >>> AnnotatorRow("ann", 3, 0, np.nan, np.nan, np.nan, 0.1).shared
    0
    """

    name: str
    judgements: int
    shared: int
    gap: float
    similarity_bias: float
    difference_bias: float
    model_gap: float


def compare_annotators(table: PairTable, log_odds: Floats) -> tuple[AnnotatorRow, ...]:
    """Compare the annotators of a table.

    Parameters
    ----------
    table : PairTable
        The judgements.
    log_odds : array of shape (n, 2)
        Of the model, for both ends of each row.

    Returns
    -------
    tuple of AnnotatorRow
        None where the table does not name them.

    Examples
    --------
    Two annotators of one pair, in opposite orders of its ends:

    >>> table = PairTable([1, 2], [2, 1], [0.8, 0.6], [0.1, -0.3], annotator=["ann", "bob"])
    >>> ann, bob = compare_annotators(table, np.zeros((2, 2)))
    >>> round(ann.similarity_bias, 3), round(ann.difference_bias, 3), round(ann.gap, 3)
    (0.2, -0.2, 0.2)
    """
    columns = Columns.of(table)
    said = np.stack([columns.s, columns.c])
    turn = np.stack([np.ones(len(columns)), columns.turn])  # bias is as the annotator saw the pair
    away = turn * (turn * said - np.stack([_others(values, columns) for values in turn * said]))
    model_away = said - model_labels(log_odds).T
    rows = []
    for who, name in enumerate(columns.annotators):
        mine = columns.who == who
        rows.append(
            AnnotatorRow(
                str(name),
                int(mine.sum()),
                int((~np.isnan(away[:, mine])).any(axis=0).sum()),
                _mean(np.abs(away[:, mine])),
                _mean(away[0, mine]),
                _mean(away[1, mine]),
                _mean(np.abs(model_away[:, mine])),
            )
        )
    return tuple(rows)


def _others(values: Floats, columns: Columns) -> Floats:
    """For each row the mean of what other annotators said of its pair, NaN if none did."""
    given = ~np.isnan(values) & (columns.who >= 0)
    own = columns.pair * (len(columns.annotators) + 1) + columns.who + 1
    totals = []
    for keys in (columns.pair, own):
        place = np.unique(keys, return_inverse=True)[1].reshape(-1)
        terms = (given * 1.0, np.where(given, values, 0.0))
        totals.append([np.bincount(place, term)[place] for term in terms])
    count, sums = np.array(totals[0]) - np.array(totals[1])
    return np.where(given & (count > 0.5), sums / np.maximum(count, 1), np.nan)


def _mean(values: Floats) -> float:
    given = values[~np.isnan(values)]
    return float(given.mean()) if len(given) else math.nan


def probabilities(z: Floats) -> Floats:
    """Probabilities of the positive class from log-odds."""
    return np.asarray((1 + np.tanh(z / 2)) / 2)


def model_labels(log_odds: Floats) -> Floats:
    """Similarity and difference (n, 2) as a model sees them, from log-odds of both ends."""
    return np.asarray(PairLabels.from_posteriors(*probabilities(log_odds).T).to_array())
