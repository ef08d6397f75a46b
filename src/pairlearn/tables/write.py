"""Write tables of pairs and of items, so that reading gives the same table back."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pairlearn.atomic import replacing
from pairlearn.tables.errors import TableError
from pairlearn.tables.items import ItemTable, default_names
from pairlearn.tables.layout import suffix_of
from pairlearn.tables.pairs import PairTable
from pairlearn.tables.rows import open_rows

__all__ = ["write_items", "write_pairs"]

BATCH = 65536

_WORDS = np.array(["left", "", "right"])


def write_pairs(table: PairTable, path: str | os.PathLike[str]) -> Path:
    """Write a table of pairs as CSV or Parquet; the file is whole or is not there.

    `read_pairs` gives the same table back, bit for bit; but CSV cannot tell text ids that
    all look like integers from integers.

    Parameters
    ----------
    table : PairTable
        What to write.
    path : path-like
        The ``.csv`` or ``.parquet`` file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TableError
        If the suffix is another.
    ImportError
        If it is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> table = PairTable([1, 2], [5, 6], [0.5, np.nan], None, preference=[0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_pairs(table, f"{folder}/pairs.csv").read_text().split()
    ['left,right,similarity,difference,preference', '1,5,0.5,,', '2,6,,,right']
    """
    path = Path(path)
    suffix_of(path, "pairs", (".csv", ".parquet"))
    with open_rows(path, list(table.columns())) as rows:
        for start in range(0, len(table), BATCH):
            columns = table[start : start + BATCH].columns()
            if "preference" in columns:
                columns["preference"] = _WORDS[columns["preference"] + 1]
            rows.write(columns)
    return path


def write_items(items: ItemTable, path: str | os.PathLike[str]) -> Path:
    """Write a table of items as CSV, Parquet or NPY; the file is whole or is not there.

    `read_items` gives the same table back, bit for bit; but CSV cannot tell text ids that
    all look like integers from integers. NPY has room for the features only, so it takes
    items with the ids 0, 1, …, m − 1 and the names x0, x1, ….

    Parameters
    ----------
    items : ItemTable
        What to write.
    path : path-like
        The ``.csv``, ``.parquet`` or ``.npy`` file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TableError
        If the suffix is another, or NPY would lose ids or names.
    ImportError
        If it is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_items(ItemTable(["a"], [[0.5, 2]]), f"{folder}/items.csv").read_text().split()
    ['id,x0,x1', 'a,0.5,2.0']
    """
    path = Path(path)
    if suffix_of(path, "items", (".csv", ".parquet", ".npy")) == ".npy":
        if items.ids.dtype.kind != "i" or not np.array_equal(items.ids, np.arange(len(items))):
            raise TableError(f"{path} has no room for ids; write .parquet or .csv")
        if items.names != default_names(len(items.names)):
            raise TableError(f"{path} has no room for names; write .parquet or .csv")
        with replacing(path) as part, part.open("wb") as file:
            np.save(file, items.features, allow_pickle=False)
        return path
    with open_rows(path, ["id", *items.names]) as rows:
        for start in range(0, len(items), BATCH):
            batch = items[start : start + BATCH]
            features = dict(zip(batch.names, batch.features.T, strict=True))
            rows.write({"id": batch.ids} | features)
    return path
