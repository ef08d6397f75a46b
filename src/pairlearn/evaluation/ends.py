"""Whether the two ends of pairs were drawn independently of each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairlearn.columns import Floats
from pairlearn.dependence import Dependence

#: Correlation of the ends that may bias an accuracy: 0.24 did by 0.025, and 0.86 by 0.33.
ALIKE = 0.15
#: Standard errors that are clear: chance exceeds them in one of 160 tables of 100 columns.
CLEAR = 4.0


def correlated_ends(
    left: Any, right: Any, weight: Floats, dependence: Dependence
) -> tuple[float, Floats] | None:
    """The correlation between the ends of pairs, if it is clear and may do harm.

    Items can be alike in all columns (n, k), as near neighbours are, or in some of them, as where
    pairs are matched on a score. So it is the mean over columns or that of a single one, whichever
    is more standard errors from 0. Deviations are from the common mean of both ends, so that it
    does not matter which end is left.

    Returns
    -------
    correlation, columns : float, array of shape (k,), or None
        The correlation, and those of single columns.
    """
    share = weight / weight.sum()
    x = np.stack([left, right]).astype(np.float64)
    mean = (share @ x).mean(0)
    scale = np.sqrt((share @ (x - mean) ** 2).mean(0))
    # Values that differ by the rounding of float32 only are constant.
    varying = scale > np.finfo(np.float32).eps * 10 * abs(mean)
    if not varying.any():
        return None
    products = np.prod((x - mean) / np.where(varying, scale, np.inf), axis=0)
    both = np.column_stack([products[:, varying].mean(1), products])
    found = share @ both
    errors = np.sqrt(np.atleast_1d(dependence.variance(share[:, None] * (both - found))))
    clear = (abs(found) > CLEAR * errors) & (abs(found) > ALIKE)
    if not clear.any():
        return None
    best = int(np.where(clear, abs(found) / errors.clip(np.finfo(np.float64).tiny), -1).argmax())
    return float(found[best]), found[1:]
