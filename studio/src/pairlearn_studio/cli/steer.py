"""``pairlearn annotate extend``, ``pause`` and ``resume``: steer a project that is under way."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairlearn.cli.command import Output, command
from pairlearn_studio.cli.exchange import opened


@command("annotate extend")
def extend(project: Path, *, pairs: Annotated[int, typer.Option(min=1)] = 50) -> Output:
    """Add random pairs to a project, also while people are answering.

    New pairs go to the annotators with the fewest; nothing that was assigned before moves.

    Parameters
    ----------
    pairs
        Pairs to add.

    For example:
      pairlearn annotate extend pumps --pairs 50
    """
    with opened(project) as store:
        planned = store.extend(pairs)
    data = {"project": str(project), "added": pairs, "pairs": planned}
    return Output(data, [f"{project}: {pairs:,} pairs added, {planned:,} in all"])


@command("annotate pause", has_json=False)
def pause(project: Path) -> None:
    """Give annotators no further pairs; the pair that they are judging is still stored.

    For example:
      pairlearn annotate pause pumps
    """
    with opened(project) as store:
        store.pause(True)


@command("annotate resume", has_json=False)
def resume(project: Path) -> None:
    """Continue a project that was paused.

    For example:
      pairlearn annotate resume pumps
    """
    with opened(project) as store:
        store.pause(False)
