"""Short ways to write tables in tests."""

from __future__ import annotations

from typing import Any

from pairlearn import Judgements


def pair_table(
    left: Any, right: Any, similarity: Any = None, difference: Any = None, **others: Any
) -> Judgements:
    """Judgements from columns of a file."""
    noisy = others.pop("noisy", False)
    columns = {"left": left, "right": right, "similarity": similarity, "difference": difference}
    return Judgements.from_frame(columns | others, noisy=noisy)
