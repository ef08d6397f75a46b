"""Small Parquet files of pairs in many row groups, for the tests of streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from pairlearn.estimators.files import PairFile
from pairlearn.io import read_items


def write_groups(path: Path, columns: dict[str, Any], rows: int) -> Path:
    """A file with `rows` rows in each row group but the last."""
    table = pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})
    parquet.write_table(table, path, row_group_size=rows)
    return path


def posteriors(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-3 * x[:, 0] - 0.5)))


def make_pair_file(
    folder: Path, pairs: int = 60, items: int = 25, rows: int = 7, seed: int = 0
) -> PairFile:
    """Items (NPY) and pairs with all kinds of rows, similarities all different."""
    rng = np.random.default_rng(seed)
    x = rng.normal(2.0, 3.0, size=(items, 3))
    np.save(folder / "items.npy", x.astype(np.float32))
    r = posteriors((x - 2) / 3)
    left = rng.integers(0, items, pairs)
    right = (left + rng.integers(1, items, pairs)) % items
    s = r[left] * r[right] + (1 - r[left]) * (1 - r[right])
    c = r[right] - r[left]
    s = np.clip(s, 0.01, 0.99) + np.arange(pairs) * 1e-6  # to know the rows again
    kind = rng.integers(0, 8, pairs)
    columns = {
        "left": left,
        "right": right,
        "similarity": [None if k in (1, 2) else v for k, v in zip(kind, s, strict=True)],
        "difference": [None if k in (0, 2) else v for k, v in zip(kind, c, strict=True)],
        "preference": [("right" if v > 0 else "left") if k in (2, 3) else None
                       for k, v in zip(kind, c, strict=True)],
        "weight": rng.integers(1, 4, pairs) / 2,
        "note": ["is ignored"] * pairs,
    }  # fmt: skip
    path = write_groups(folder / "pairs.parquet", columns, rows)
    return PairFile(path, read_items(folder / "items.npy", mapped=True))
