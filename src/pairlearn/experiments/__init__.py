"""The paper's experiments: what to run, what has been run, and what came out.

A :class:`Grid` expands to :class:`Run` objects; a :class:`RunStore` keeps the finished
ones; :func:`summarize` averages over seeds; tables, figures and the comparison with the
published numbers are functions of that summary.

>>> from pairlearn.experiments import get_grid, published_accuracy
>>> len(get_grid("accuracy").select(datasets=["mnist"]).runs())
285
>>> len(published_accuracy())
360
"""

from pairlearn.experiments.better import Improvement as Improvement
from pairlearn.experiments.better import improvements as improvements
from pairlearn.experiments.compare import ComparedCell as ComparedCell
from pairlearn.experiments.compare import Comparison as Comparison
from pairlearn.experiments.compare import compare_with_published as compare_with_published
from pairlearn.experiments.compare import tolerance as tolerance
from pairlearn.experiments.grids import GRIDS as GRIDS
from pairlearn.experiments.grids import PAPER_DATASETS as PAPER_DATASETS
from pairlearn.experiments.grids import Grid as Grid
from pairlearn.experiments.grids import get_grid as get_grid
from pairlearn.experiments.headline import Tally as Tally
from pairlearn.experiments.headline import headline_counts as headline_counts
from pairlearn.experiments.methods import Method as Method
from pairlearn.experiments.published import PublishedCell as PublishedCell
from pairlearn.experiments.published import published_accuracy as published_accuracy
from pairlearn.experiments.published import published_datasets as published_datasets
from pairlearn.experiments.published import published_robustness as published_robustness
from pairlearn.experiments.records import Record as Record
from pairlearn.experiments.records import StoreError as StoreError
from pairlearn.experiments.render import to_csv as to_csv
from pairlearn.experiments.render import to_latex as to_latex
from pairlearn.experiments.render import to_markdown as to_markdown
from pairlearn.experiments.results import result_rows as result_rows
from pairlearn.experiments.selection import Selection as Selection
from pairlearn.experiments.spec import Run as Run
from pairlearn.experiments.store import DuplicateRunError as DuplicateRunError
from pairlearn.experiments.store import RunStore as RunStore
from pairlearn.experiments.store import StoreLockedError as StoreLockedError
from pairlearn.experiments.summary import Cell as Cell
from pairlearn.experiments.summary import summarize as summarize
from pairlearn.experiments.tables import TABLES as TABLES
from pairlearn.experiments.tables import accuracy_table as accuracy_table
from pairlearn.experiments.tables import gamma_table as gamma_table
from pairlearn.experiments.tables import limited_table as limited_table
from pairlearn.experiments.tables import robustness_table as robustness_table
