"""The annotators of a table: how they answer, and how far they are from a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairlearn.annotators import Crowd, Manner
from pairlearn.check.columns import Columns
from pairlearn.columns import Floats
from pairlearn.labels import PairLabels
from pairlearn.tables import PairTable


@dataclass(frozen=True)
class AnnotatorRow:
    """One annotator.

    Parameters
    ----------
    name : str
    judgements : int
        Rows.
    words : str
        How they answer.
    model_gap : float
        Mean distance |Δs| and |Δc| to what the model says, over both kinds of judgement; NaN
        where there are none.
    manner : Manner or None
        Guesses, leans and precision, where something is known.
    """

    name: str
    judgements: int
    words: str
    model_gap: float
    manner: Manner | None = None


def compare_annotators(
    table: PairTable, log_odds: Floats, crowd: Crowd | None = None
) -> tuple[AnnotatorRow, ...]:
    """Compare the annotators of a table; no rows where it does not name them.

    Parameters
    ----------
    table : PairTable
    log_odds : array of shape (n, 2)
        Of the model, for both ends of each row.
    crowd : Crowd, optional
        What is known about them already.

    Examples
    --------
    >>> table = PairTable([1, 2], [2, 1], [0.8, 0.6], [0.1, -0.3], annotator=["ann", "bob"])
    >>> ann, bob = compare_annotators(table, np.zeros((2, 2)))
    >>> ann.words, round(ann.model_gap, 3)
    ('has too few answers to say', 0.2)
    """
    columns = Columns.of(table)
    crowd = crowd or Crowd.of(columns.judged)
    away = np.abs(table.to_array() - model_labels(log_odds))
    given = ~np.isnan(away)
    return tuple(
        AnnotatorRow(
            str(name),
            int(mine.sum()),
            crowd.words(str(name)),
            float(away[mine][given[mine]].mean()) if given[mine].any() else np.nan,
            crowd.manners.get(str(name)),
        )
        for name in columns.annotators
        for mine in [columns.names == name]
    )


def probabilities(z: Floats) -> Floats:
    """Probabilities of the positive class from log-odds."""
    return np.asarray((1 + np.tanh(z / 2)) / 2)


def model_labels(log_odds: Floats) -> Floats:
    """Similarity and difference (n, 2) as a model sees them, from log-odds of both ends."""
    return np.asarray(PairLabels.from_posteriors(*probabilities(log_odds).T).to_array())
