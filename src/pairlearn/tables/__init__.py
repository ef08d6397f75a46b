"""Files of pairs and of items: read, checked, written.

A table of pairs has one row for each judgement: ``left``, ``right``, ``similarity``,
``difference``, and optionally ``preference``, ``weight`` and ``annotator``; a row with an empty
``right`` is about one item, and gives a ``label``. Other kinds of statement have columns of
their own (`pairlearn.kinds`). A table of items has an ``id`` and features: numbers, categories,
dates, text, with gaps. Both are CSV or Parquet files; features can also be NPY, and texts a
folder. Whatever is wrong with a file is a `TableError` that says where.
"""

from pairlearn.columns import TableError
from pairlearn.tables.cells import ColumnChoice
from pairlearn.tables.encoder import ItemEncoder
from pairlearn.tables.item_files import iter_items, read_items
from pairlearn.tables.items import ItemTable
from pairlearn.tables.pairs import PairTable
from pairlearn.tables.read import iter_pairs, read_pairs
from pairlearn.tables.write import RowWriter, open_rows, write_items, write_pairs

__all__ = [
    "ColumnChoice",
    "ItemEncoder",
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
