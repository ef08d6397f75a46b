"""Bars for long work: on a terminal only, and gone when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairlearn.estimators.progress import Progress

__all__ = ["counting_bar", "shows_bars", "training_bar"]


def shows_bars() -> bool:
    """Whether somebody is there to see a bar.

    Examples
    --------
    >>> shows_bars() in (True, False)
    True
    """
    return sys.stderr.isatty()


@contextmanager
def training_bar(title: str, *, shown: bool) -> Iterator[Progress | None]:
    """A bar over epochs with the loss and the time that is left.

    Parameters
    ----------
    title : str
        What is trained.
    shown : bool
        Otherwise there is no bar, and nothing to report to.

    Yields
    ------
    callable or None
        The `progress` that `PairClassifier.fit` takes.

    Examples
    --------
    >>> with training_bar("fit", shown=False) as report:
    ...     report is None
    True
    """
    if not shown:
        yield None
        return
    with _bars() as bars:
        task = bars.add_task(title, total=None)

        def report(epochs: int, row: dict[str, float]) -> None:
            loss = row.get("validation_risk", row["risk"])
            text = f"{title}: epoch {row['epoch']:.0f} of {epochs}, loss {loss:.4f}"
            # A second round of training, with the classes exchanged, counts on.
            total = max(epochs, int(row["epoch"]))
            bars.update(task, completed=row["epoch"], total=total, description=text)

        yield report


@contextmanager
def counting_bar(
    title: str, total: int | None, *, shown: bool
) -> Iterator[Callable[[int], None] | None]:
    """A bar over rows.

    Parameters
    ----------
    title : str
        What is done with them.
    total : int or None
        How many there are, if that is known.
    shown : bool
        As in `training_bar`.

    Yields
    ------
    callable or None
        To be called with the number of rows that are done.

    Examples
    --------
    >>> with counting_bar("predict", 100, shown=False) as report:
    ...     report is None
    True
    """
    if not shown:
        yield None
        return
    with _bars() as bars:
        task = bars.add_task(title, total=total)

        def report(done: int) -> None:
            bars.update(task, completed=done, description=f"{title}: {done:,} rows")

        yield report


def _bars() -> Any:
    # Here, because importing rich takes longer than many a training.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
