"""A linear score of the items whose differences predict what was said: c ≈ g(x') − g(x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairlearn.columns import Floats, Indices, Mask
from pairlearn.judgements import Judgements
from pairlearn.judgements.answer_scale import LEAST_ANSWERS

#: Folds of the linear score, and most rows that it is fitted to.
FOLDS, ROWS = 5, 1000
#: Probability to call ranks reversed by chance: five items of each class suffice.
CHANCE = 0.005


def linear_scores(
    features: Any, ends: Indices, difference: Floats, weight: Floats, folds: int, most: int
) -> Floats:
    """Scores (n, 2) of both ends of pairs, by a ridge regression on about `most` of other folds.

    Rows of weight 0 are scored, and not fitted to; the others are in the folds in turn. The
    products of the smaller of the two systems are computed once for all folds.
    """
    from scipy.linalg import solve

    used, places = np.unique(ends, return_inverse=True)
    x, places = features.reshape(len(features), -1)[used], places.reshape(-1, 2)
    scores, turn = np.empty((len(ends), 2)), (np.cumsum(weight > 0) - 1) % folds
    rows = np.flatnonzero(weight > 0)[: most * folds // (folds - 1)]
    left, right = (x[end].astype(np.float64) for end in places[rows].T)
    root = np.sqrt(weight[rows] / weight[rows].mean())
    d, c = (right - left) * root[:, None], difference[rows] * root
    few = len(d) < d.shape[1]
    products = d @ d.T if few else d.T @ d
    for fold in range(folds):
        kept, held = turn[rows] != fold, turn == fold
        if few:
            system, target = products[np.ix_(kept, kept)], c[kept]
        else:
            system, target = products - d[~kept].T @ d[~kept], d[kept].T @ c[kept]
        penalty = float(np.square(d[kept]).sum()) / d.shape[1] + 1e-12
        system[np.diag_indices_from(system)] += penalty
        solved = solve(system, target, assume_a="pos", overwrite_a=True, check_finite=False)
        direction = d[kept].T @ solved if few else solved
        scores[held] = x[places[held]] @ direction.astype(x.dtype)
    return scores


def against_classes(judged: Judgements, features: Any = None) -> float | None:
    """Share of couples of known classes that differences and preferences rank the wrong way round.

    None unless it is clearly above a half: then all annotators have exchanged left and right, or
    the classes. Items are ranked by a linear score of the features, or without them by the mean
    difference of the pairs that they are in.

    Examples
    --------
    >>> ends = np.arange(40).reshape(-1, 2)
    >>> c = np.tile([0.6, -0.6], 10)
    >>> y = (np.stack([-c, c], 1) > 0).ravel()
    >>> judged = Judgements.from_columns(ends, {"difference": c})
    >>> for classes in (y, ~y):
    ...     known = Judgements.about_items("label", np.arange(12), classes[:12])
    ...     print(against_classes(Judgements.concatenate([judged, known])))
    None
    1.0
    """
    sided = judged.has("difference") | judged.has("preference")
    rows, classes = judged[sided & (judged.ends[:, 0] != judged.ends[:, 1])], judged[judged.known]
    if len(rows) < LEAST_ANSWERS or len(np.unique(classes.u)) < 2:
        return None
    c = np.where(rows.has("difference"), rows.v, rows.u)
    items = classes.ends[:, 0]
    if features is None or not np.asarray(features[:1]).size:
        total, count = np.zeros((2, int(max(rows.ends.max(), items.max())) + 1))
        np.add.at(total, rows.ends, np.stack([-c, c], 1))
        np.add.at(count, rows.ends, 1)
        scores, seen = total[items] / count[items].clip(1), count[items] > 0
        return reversed_share(scores[seen], classes.u[seen] > 0.5)
    ends = np.concatenate([rows.ends, np.stack([items, items], 1)])
    weight = np.r_[np.ones(len(rows)), np.zeros(len(items))]
    used, places = np.unique(ends, return_inverse=True)
    x = np.nan_to_num(np.asarray(features[used], np.float64).reshape(len(used), -1))
    x = (x - x.mean(0)) / (x.std(0) + 1e-12)
    c = np.r_[c - c.mean(), np.zeros(len(items))]
    scores = linear_scores(x, places.reshape(-1, 2), c, weight, FOLDS, ROWS)
    return reversed_share(scores[len(rows) :, 0], classes.u > 0.5)


def reversed_share(scores: Floats, positive: Mask) -> float | None:
    """Share of couples of two classes that scores rank the wrong way round.

    None unless it is clearly above a half, by the rank-sum test.
    """
    if len(np.unique(positive)) < 2:
        return None
    from scipy.stats import mannwhitneyu

    n, m = int(positive.sum()), int((~positive).sum())
    test = mannwhitneyu(scores[positive], scores[~positive], alternative="less")
    return 1 - float(test.statistic) / (n * m) if test.pvalue < CHANCE else None
