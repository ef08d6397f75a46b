"""A bar for one training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pairlearn.progress import Progress, training_bar

__all__ = ["Progress", "showing"]


@contextmanager
def showing(progress: Progress | None, verbose: int) -> Iterator[Progress | None]:
    """The given callback; without one, and if asked to be verbose, a bar on a terminal.

    Examples
    --------
    >>> with showing(None, verbose=0) as report:
    ...     report is None
    True
    """
    with training_bar("training", shown=progress is None and bool(verbose)) as report:
        yield progress or report
