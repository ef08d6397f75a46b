"""Progress bars for long work, shown on a terminal only and removed at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Progress", "Update", "bar", "hidden_bars", "shows_bars", "training_bar"]


#: Called after each epoch with the number of epochs planned and the epoch's history.
Progress = Callable[[int, dict[str, float]], None]
#: Called with the work done, and optionally the total and the text beside the bar.
Update = Callable[..., None]
_HIDDEN = ContextVar("_HIDDEN", default=False)


@contextmanager
def hidden_bars(hidden: bool = True) -> Iterator[None]:
    """Hide bars within a block, if `hidden`."""
    token = _HIDDEN.set(hidden or _HIDDEN.get())
    try:
        yield
    finally:
        _HIDDEN.reset(token)


def shows_bars() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def bar(
    title: str, total: int | None = None, *, unit: str = "", shown: bool = True
) -> Iterator[Update | None]:
    """Show a bar with the remaining time; yields a function to update it, None without a terminal.

    ``title`` is shown beside the bar until an update replaces it; ``unit`` is the unit of counts.
    """
    if _HIDDEN.get() or not (shown and shows_bars()):
        yield None
        return
    # Imported here because importing rich takes longer than many trainings.
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=total)

        def update(done: int, total: int | None = total, text: str | None = None) -> None:
            counted = f"{title}: {done:,} {unit}" if unit else None
            bars.update(task, completed=done, total=total, description=text or counted)

        yield update


@contextmanager
def training_bar(title: str, *, shown: bool = True) -> Iterator[Progress | None]:
    """Show a bar over epochs with the loss and the remaining time; yields a callback, or None."""
    with bar(title, shown=shown) as update:
        if update is None:
            yield None
            return

        def report(epochs: int, row: dict[str, float]) -> None:
            epoch, loss = int(row["epoch"]), row.get("validation_risk", row["risk"])
            # A second training with the classes exchanged continues the count.
            update(
                epoch, max(epochs, epoch), f"{title}: epoch {epoch} of {epochs}, loss {loss:.4f}"
            )

        yield report
