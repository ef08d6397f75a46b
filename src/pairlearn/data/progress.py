"""Reporting how far a download is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes done and the bytes in all, None while those are unknown."""


@contextmanager
def reporting(progress: Progress | None, title: str) -> Iterator[Progress]:
    """The given callback; without one a bar on the terminal, or nothing where there is none.

    Parameters
    ----------
    progress : callable or None
        What to call with the bytes done and the bytes in all.
    title : str
        What the bar is about.

    Yields
    ------
    callable
        What to report to.

    Examples
    --------
    >>> with reporting(lambda done, total: print(done, total), "download") as report:
    ...     report(10, None)
    10 None
    """
    if progress is not None:
        yield progress
    elif not sys.stderr.isatty():
        yield lambda done, total: None
    else:
        # Here, because importing rich takes longer than reading a small data set.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bars

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(title, total=None)
            yield lambda done, total: bars.update(task, completed=done, total=total)
