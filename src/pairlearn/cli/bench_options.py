"""What the commands of ``pairlearn bench`` have in common: options, choices, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.experiments.grids import Grid
from pairlearn.experiments.spec import ANNOTATORS, MODELS, Run
from pairlearn.experiments.store import RunStore


class GridName(StrEnum):
    """The experiments."""

    accuracy = "accuracy"
    gamma = "gamma"
    limited = "limited"
    robustness = "robustness"


GridArgument = Annotated[GridName, typer.Argument(help="The experiment.")]
StoreOption = Annotated[
    Path | None, typer.Option(help="File of finished runs; runs/GRID.jsonl if not given.")
]
DatasetsOption = Annotated[str | None, typer.Option(help="Data sets, separated by commas.")]
PriorsOption = Annotated[str | None, typer.Option(help="Class priors, separated by commas.")]
SeedsOption = Annotated[
    str | None, typer.Option(help="How many seeds (5 is 0 to 4), or a range 3-5, or a list 0,2.")
]
EpochsOption = Annotated[int | None, typer.Option(help="Epochs of every training.")]
MethodsOption = Annotated[
    str | None, typer.Option(help="Methods such as likelihood-abs, separated by commas.")
]
ModelOption = Annotated[str | None, typer.Option(help=f"One of {', '.join(MODELS)}.")]
AnnotatorOption = Annotated[str | None, typer.Option(help=f"One of {', '.join(ANNOTATORS)}.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@contextmanager
def plain_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds end the program with their message, not with a traceback."""
    try:
        yield
    except kinds as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


def runs_of(grid: Grid) -> list[Run]:
    """The runs of a grid; an error if there are none."""
    runs = grid.runs()
    if not runs:
        raise ValueError("nothing is chosen, or no method that is defined at a prior chosen")
    return runs


def store_of(path: Path | None, grid: GridName) -> RunStore:
    """The store at a path, or where a grid's is if there is none given."""
    return RunStore(path or Path("runs", f"{grid.value}.jsonl"))
