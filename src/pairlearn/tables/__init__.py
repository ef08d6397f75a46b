"""Files of pairs and of items: read, checked, written.

A table of pairs has one row for each judgement: ``left``, ``right``, ``similarity``,
``difference``, and optionally ``preference``, ``weight`` and ``annotator``. A table of items
has an ``id`` and numeric features. Both are CSV or Parquet files; features can also be NPY.
Whatever is wrong with a file is a `TableError` that says where.
"""

from pairlearn.tables.errors import TableError
from pairlearn.tables.items import ItemTable
from pairlearn.tables.pairs import PairTable
from pairlearn.tables.read import iter_items, iter_pairs, read_items, read_pairs
from pairlearn.tables.rows import RowWriter, open_rows
from pairlearn.tables.write import write_items, write_pairs

__all__ = [
    "ItemTable",
    "PairTable",
    "RowWriter",
    "TableError",
    "iter_items",
    "iter_pairs",
    "open_rows",
    "read_items",
    "read_pairs",
    "write_items",
    "write_pairs",
]
