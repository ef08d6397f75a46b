"""The paper's experiments: what to run, what has been run, and what came out.

A :class:`Grid` expands to :class:`Run` objects; a :class:`RunStore` keeps the finished
ones; :func:`summarize` averages over seeds; tables, figures and the comparison with the
published numbers are functions of that summary.

>>> from pairlearn_bench import get_grid
>>> len(get_grid("accuracy").select(datasets=["mnist"]).runs())
285
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairlearn_bench.cells import Cell as Cell
    from pairlearn_bench.cells import PublishedCell as PublishedCell
    from pairlearn_bench.cells import published_accuracy as published_accuracy
    from pairlearn_bench.cells import published_datasets as published_datasets
    from pairlearn_bench.cells import published_robustness as published_robustness
    from pairlearn_bench.cells import result_rows as result_rows
    from pairlearn_bench.cells import summarize as summarize
    from pairlearn_bench.grids import GRIDS as GRIDS
    from pairlearn_bench.grids import PAPER_DATASETS as PAPER_DATASETS
    from pairlearn_bench.grids import Grid as Grid
    from pairlearn_bench.grids import Selection as Selection
    from pairlearn_bench.grids import get_grid as get_grid
    from pairlearn_bench.headline import Contest as Contest
    from pairlearn_bench.headline import Tally as Tally
    from pairlearn_bench.headline import headline_counts as headline_counts
    from pairlearn_bench.reproduction import ComparedCell as ComparedCell
    from pairlearn_bench.reproduction import Comparison as Comparison
    from pairlearn_bench.reproduction import compare_with_published as compare_with_published
    from pairlearn_bench.runs import Method as Method
    from pairlearn_bench.runs import Record as Record
    from pairlearn_bench.runs import Run as Run
    from pairlearn_bench.runs import StoreError as StoreError
    from pairlearn_bench.store import DuplicateRunError as DuplicateRunError
    from pairlearn_bench.store import RunStore as RunStore
    from pairlearn_bench.store import Source as Source
    from pairlearn_bench.store import StoreLockedError as StoreLockedError
    from pairlearn_bench.store import read_sources as read_sources
    from pairlearn_bench.store import to_csv as to_csv
    from pairlearn_bench.tables import TABLES as TABLES
    from pairlearn_bench.tables import accuracy_table as accuracy_table
    from pairlearn_bench.tables import gamma_table as gamma_table
    from pairlearn_bench.tables import limited_table as limited_table
    from pairlearn_bench.tables import robustness_table as robustness_table
    from pairlearn_bench.tables import to_markdown as to_markdown

_HOMES = ("runs", "grids", "cells", "store", "reproduction", "headline", "tables")
"""Modules with the names above, imported when one is used: `--help` needs none of them."""


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    for home in () if name.startswith("_") else _HOMES:
        module = import_module(f"{__name__}.{home}")
        if name in vars(module):
            return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
