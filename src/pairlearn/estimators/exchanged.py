"""Reasons why judgements may have the classes exchanged: an accuracy is then one minus that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.columns import Floats
from pairlearn.estimators.population import classes_against_differences
from pairlearn.evaluation.judged import Estimate
from pairlearn.evaluation.ranking import reversed_share
from pairlearn.judgements import Judgements

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier
    from pairlearn.estimators.prediction import ScoredPairs

CONTRADICTED = "classes_contradict_differences"
"""Key of `trained_on_`, if `fit` warned of it."""
EITHER_WAY = (
    "it is {low:.3f} to {high:.3f}, or {least:.3f} to {most:.3f} if these judgements have the "
    "classes exchanged: see the warnings"
)
AGAINST_DIFFERENCES = (
    "the known classes that fit was given contradict the differences: one of the two has the "
    "classes exchanged. If it is the differences, and these judgements as well, the accuracy is "
    "one minus that. Correct it, and fit again"
)
AGAINST_MODEL = (
    "the known classes contradict the model: it takes an item called negative for the more "
    "positive one in {share:.0%} of the couples. Either the positive class (positive=, or "
    "--positive) is the other one, or the model was fitted to differences with left and right "
    "exchanged"
)


def either_way(accuracy: Estimate, text: str = EITHER_WAY) -> str:
    """Fill a text with an accuracy, and with what it is if the classes are exchanged."""
    low, high = accuracy.low, accuracy.high
    return text.format(low=low, high=high, least=1 - high, most=1 - low)


def side_doubts(classifier: PairClassifier) -> list[str]:
    """Warnings of `fit` that the classes may be exchanged."""
    source: Any = getattr(classifier, "trained_on_", None)
    return [AGAINST_DIFFERENCES] * (isinstance(source, dict) and CONTRADICTED in source)


def class_doubts(scored: ScoredPairs, classes: Floats) -> list[str]:
    """What known classes (n, 2) of the ends of pairs contradict: their differences, and the model.

    Classes are NaN where unknown.
    """
    items, first = np.unique(scored.ends, return_index=True)
    of_items, z = classes.ravel()[first], scored.z.ravel()[first]
    told = ~np.isnan(of_items)
    # Similar items are those with similar log-odds, whatever the features are.
    numbered = np.searchsorted(items, scored.ends)
    judged = Judgements.from_pairs(numbered, scored.labels)
    known = Judgements.about_items("label", np.flatnonzero(told), of_items[told])
    doubt = classes_against_differences(z[:, None], Judgements.concatenate([judged, known]))
    share = reversed_share(z[told], of_items[told] > 0.5)
    against_model = None if share is None else AGAINST_MODEL.format(share=share)
    return [text for text in (doubt, against_model) if text is not None]
