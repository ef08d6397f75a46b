"""A bar for one training."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "showing"]

Progress = Callable[[int, dict[str, float]], None]
"""Called after each epoch with the number of epochs planned and the epoch's history."""


@contextmanager
def showing(progress: Progress | None, verbose: int) -> Iterator[Progress | None]:
    """The given callback; without one, and if asked to be verbose, a bar on a terminal.

    Examples
    --------
    >>> with showing(None, verbose=0) as report:
    ...     report is None
    True
    """
    if progress is not None or not verbose or not sys.stderr.isatty():
        yield progress
        return
    # Here, because importing rich takes longer than many a training.
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("training", total=None)

        def report(epochs: int, row: dict[str, float]) -> None:
            risk = row.get("validation_risk", row["risk"])
            text = f"epoch {row['epoch']:.0f} of {epochs}, risk {risk:.4f}"
            bars.update(task, completed=row["epoch"], total=epochs, description=text)

        yield report
