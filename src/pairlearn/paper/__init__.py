"""The paper's experiments: what to run, what has been run, and what came out.

A :class:`Grid` expands to :class:`Run` objects; a :class:`RunStore` keeps the finished
ones; :func:`summarize` averages over seeds; tables, figures and the comparison with the
published numbers are functions of that summary.

>>> from pairlearn.paper import get_grid
>>> len(get_grid("accuracy").select(datasets=["mnist"]).runs())
285
"""

from __future__ import annotations

from pairlearn.paper.cells import Cell as Cell
from pairlearn.paper.cells import PublishedCell as PublishedCell
from pairlearn.paper.cells import published_accuracy as published_accuracy
from pairlearn.paper.cells import published_datasets as published_datasets
from pairlearn.paper.cells import published_robustness as published_robustness
from pairlearn.paper.cells import result_rows as result_rows
from pairlearn.paper.cells import summarize as summarize
from pairlearn.paper.grids import GRIDS as GRIDS
from pairlearn.paper.grids import PAPER_DATASETS as PAPER_DATASETS
from pairlearn.paper.grids import Grid as Grid
from pairlearn.paper.grids import Selection as Selection
from pairlearn.paper.grids import get_grid as get_grid
from pairlearn.paper.headline import Tally as Tally
from pairlearn.paper.headline import headline_counts as headline_counts
from pairlearn.paper.reproduction import ComparedCell as ComparedCell
from pairlearn.paper.reproduction import Comparison as Comparison
from pairlearn.paper.reproduction import compare_with_published as compare_with_published
from pairlearn.paper.reproduction import tolerance as tolerance
from pairlearn.paper.runs import Method as Method
from pairlearn.paper.runs import Record as Record
from pairlearn.paper.runs import Run as Run
from pairlearn.paper.runs import StoreError as StoreError
from pairlearn.paper.store import DuplicateRunError as DuplicateRunError
from pairlearn.paper.store import RunStore as RunStore
from pairlearn.paper.store import Source as Source
from pairlearn.paper.store import StoreLockedError as StoreLockedError
from pairlearn.paper.store import read_sources as read_sources
from pairlearn.paper.store import to_csv as to_csv
from pairlearn.paper.tables import TABLES as TABLES
from pairlearn.paper.tables import accuracy_table as accuracy_table
from pairlearn.paper.tables import gamma_table as gamma_table
from pairlearn.paper.tables import limited_table as limited_table
from pairlearn.paper.tables import robustness_table as robustness_table
from pairlearn.paper.tables import to_markdown as to_markdown
