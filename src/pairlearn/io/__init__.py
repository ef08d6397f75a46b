"""Files of pairs and of items: read, checked, written.

A table of pairs has one row for each judgement: ``left``, ``right``, ``similarity``,
``difference``, and optionally ``preference``, ``weight`` and ``annotator``; a row with an empty
``right`` is about one item, such as its ``label``. Other kinds of statement have columns of their
own (`pairlearn.judgements.kinds`). A table of items has an ``id`` and features: numbers,
categories, dates, text, with gaps. Both are CSV or Parquet files; features can also be NPY, texts a
folder. Errors are `TableError`.
"""

from pairlearn.columns import TableError as TableError
from pairlearn.io.cells import ColumnChoice as ColumnChoice
from pairlearn.io.encoder import ItemEncoder as ItemEncoder
from pairlearn.io.item_files import iter_items as iter_items
from pairlearn.io.item_files import read_items as read_items
from pairlearn.io.items import ItemTable as ItemTable
from pairlearn.io.pairs import read_pairs as read_pairs
from pairlearn.io.write import RowWriter as RowWriter
from pairlearn.io.write import open_rows as open_rows
from pairlearn.io.write import write_items as write_items
from pairlearn.io.write import write_pairs as write_pairs
