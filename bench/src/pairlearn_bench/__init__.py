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
    from pairlearn_bench.cells import result_rows as result_rows
    from pairlearn_bench.cells import summarize as summarize
    from pairlearn_bench.grids import GRIDS as GRIDS
    from pairlearn_bench.grids import Grid as Grid
    from pairlearn_bench.grids import Selection as Selection
    from pairlearn_bench.grids import get_grid as get_grid
    from pairlearn_bench.headline import Tally as Tally
    from pairlearn_bench.headline import headline_counts as headline_counts
    from pairlearn_bench.runs import Method as Method
    from pairlearn_bench.runs import Record as Record
    from pairlearn_bench.runs import Run as Run
    from pairlearn_bench.runs import StoreError as StoreError
    from pairlearn_bench.store import RunStore as RunStore
    from pairlearn_bench.store import Source as Source
    from pairlearn_bench.store import read_sources as read_sources
    from pairlearn_bench.store import to_csv as to_csv
    from pairlearn_bench.tables import TABLES as TABLES
    from pairlearn_bench.tables import to_markdown as to_markdown

#: Modules with the names above, imported when one is used: `--help` needs none of them.
_HOMES = ("runs", "grids", "cells", "store", "reproduction", "headline", "tables")


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    for home in () if name.startswith("_") else _HOMES:
        module = import_module(f"{__name__}.{home}")
        if name in vars(module):
            return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
