"""Annotators beside one another and beside the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairlearn.diagnostics.columns import Columns
from pairlearn.tables import PairTable

__all__ = ["AnnotatorRow", "compare_annotators", "model_labels"]

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


def model_labels(log_odds: Floats) -> tuple[Floats, Floats]:
    """Similarity and difference as a model sees them.

    Parameters
    ----------
    log_odds : array of shape (n, 2)
        Of both ends.

    Returns
    -------
    tuple of array
        p p' + (1 − p)(1 − p') and p' − p.

    Examples
    --------
    >>> model_labels(np.array([[0.0, 0.0]]))
    (array([0.5]), array([0.]))
    """
    p, p_prime = (1 + np.tanh(log_odds.T / 2)) / 2
    return p * p_prime + (1 - p) * (1 - p_prime), p_prime - p


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
    said = np.stack([columns.s, columns.c * columns.turn])
    others = np.stack([_others(values, columns) for values in said])
    away = said - others
    away[1] *= columns.turn  # bias to the right is as the annotator saw the pair
    model = np.stack(model_labels(log_odds))
    model_away = np.stack([columns.s, columns.c]) - model
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
    number = len(columns.annotators) + 1
    own = columns.pair * number + columns.who + 1
    there = given.astype(np.float64)
    known: Floats = np.where(given, values, 0.0)
    count = _totals(columns.pair, there) - _totals(own, there)
    sums = _totals(columns.pair, known) - _totals(own, known)
    found: Floats = np.where(given & (count > 0.5), sums / np.maximum(count, 1), np.nan)
    return found


def _totals(keys: NDArray[np.int64], values: Floats) -> Floats:
    """For each row the sum over all rows with the same key."""
    place = np.unique(keys, return_inverse=True)[1].reshape(-1)
    sums: Floats = np.bincount(place, values).astype(np.float64)
    return sums[place]


def _mean(values: Floats) -> float:
    given = values[~np.isnan(values)]
    return float(given.mean()) if len(given) else float("nan")
