"""``pairlearn annotate extend``, ``pause`` and ``resume``: steer a project that is under way."""

from __future__ import annotations

from typing import Annotated

from pairlearn.cli.command import Command, Output, new_app
from pairlearn.cli.options import Json, option
from pairlearn_studio.cli.exchange import ProjectFolder, opened

app = new_app()


@app.command(cls=Command)
def extend(
    project: ProjectFolder,
    *,
    pairs: Annotated[int, option("Pairs to add.", min=1)] = 50,
    as_json: Json = False,
) -> Output:
    """Add random pairs to a project, also while people are answering.

    New pairs go to the annotators with the fewest; nothing that was assigned before moves.

    For example:
      pairlearn annotate extend pumps --pairs 50

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    with opened(project) as store:
        planned = store.extend(pairs)
    data = {"project": str(project), "added": pairs, "pairs": planned}
    return Output(data, [f"{project}: {pairs:,} pairs added, {planned:,} in all"])


@app.command(cls=Command)
def pause(project: ProjectFolder) -> None:
    """Give annotators no further pairs; the pair that they are judging is still stored.

    For example:
      pairlearn annotate pause pumps

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    with opened(project) as store:
        store.pause(True)


@app.command(cls=Command)
def resume(project: ProjectFolder) -> None:
    """Continue a project that was paused.

    For example:
      pairlearn annotate resume pumps

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    with opened(project) as store:
        store.pause(False)
