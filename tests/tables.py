"""Short ways to write tables in tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn import Judgements, PairLabels
from pairlearn.io import ItemTable, read_pairs


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
    return read_pairs(columns | others, noisy=noisy)


def pair_ids(table: Judgements) -> NDArray[Any]:
    """Ids (n, 2) of the items of each row."""
    return np.stack([table.left, table.right], 1)


def contents(items: ItemTable) -> tuple[Any, ...]:
    """Names, ids with their type, and features of a table of items, to compare."""
    return items.names, items.ids.dtype.kind, items.ids.tolist(), items.features.tolist()


def changed(table: Judgements, **columns: Any) -> Judgements:
    """The same judgements with some columns of their file replaced, or removed by None."""
    return read_pairs(table.columns() | columns, noisy=True)


def people_table(*people: str, seed: int = 0, pairs: int = 60) -> Judgements:
    """Every pair judged by all people, who have a spread of their own; a name is a habit.

    Who "copied" has the answers of the first.
    """
    rng = np.random.default_rng(seed)
    labels = PairLabels.from_posteriors(*rng.beta(1, 1, (2, pairs))).to_array()

    def answers(habit: str) -> Any:
        values = labels + 0.05 * rng.normal(size=labels.shape)
        if habit == "reversed":
            values = values * [1, -1]
        elif habit == "constant":
            values = np.tile([1.0, 0.0], (pairs, 1))
        elif habit == "untouched":
            values[: pairs // 2] = [0.5, 0.0]
        elif habit == "random":
            values = np.stack([rng.random(pairs), rng.uniform(-1, 1, pairs)], 1)
        elif habit == "elsewhere":
            values = PairLabels.from_posteriors(*rng.beta(1, 1, (2, pairs))).to_array()
        elif habit == "leaning":
            values[:, 0] += 0.25
        elif habit == "levels":
            values = np.round(4 * values) / 4
        return values.clip([0, -1], [1, 1])

    given = [answers(habit) for habit in people]
    given = [
        given[0] if habit == "copied" else own for habit, own in zip(people, given, strict=True)
    ]
    s, c = np.concatenate(given).T
    names = np.repeat([f"{habit}{k}" for k, habit in enumerate(people)], pairs)
    left = np.tile(np.arange(pairs), len(people))
    return pair_table(left, left + pairs, s, c, annotator=names)
