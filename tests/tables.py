"""Short ways to write tables in tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn import Judgements


def pair_table(
    left: Any,
    right: Any,
    similarity: Any = None,
    difference: Any = None,
    preference: Any = None,
    **others: Any,
) -> Judgements:
    """Judgements from columns of a file."""
    noisy = others.pop("noisy", False)
    columns = {"left": left, "right": right, "similarity": similarity, "difference": difference}
    others["preference"] = preference
    return Judgements.from_frame(columns | others, noisy=noisy)


def pair_ids(table: Judgements) -> NDArray[Any]:
    """Ids (n, 2) of the items of each row."""
    return np.stack([table.left, table.right], 1)


def changed(table: Judgements, **columns: Any) -> Judgements:
    """The same judgements with some columns of their file replaced, or removed by None."""
    return Judgements.from_frame(table.columns() | columns, noisy=True)
