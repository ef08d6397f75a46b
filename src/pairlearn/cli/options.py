"""Arguments and options that several commands have."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


class Majority(StrEnum):
    """The larger class."""

    positive = "positive"
    negative = "negative"


class Model(StrEnum):
    """The network that is trained."""

    mlp_bn = "mlp-bn"
    mlp = "mlp"
    linear = "linear"


ItemsArgument = Annotated[
    Path, typer.Argument(help="Table of items, id and features: .csv, .parquet or .npy.")
]
PairsArgument = Annotated[Path, typer.Argument(help="Table of judgements: .csv or .parquet.")]
ModelArgument = Annotated[Path, typer.Argument(help="Folder that `pairlearn fit` wrote.")]
ProjectArgument = Annotated[Path, typer.Argument(help="The project's folder.")]
IdsOption = Annotated[Path | None, typer.Option(help="Ids of .npy items: .npy.")]
PositiveOption = Annotated[
    str | None,
    typer.Option(help="The positive class of --labelled; of two numbers, the larger one."),
]
PriorOption = Annotated[
    float | None, typer.Option(help="Share of positive items in the pairs, if known.")
]
MajorityOption = Annotated[Majority | None, typer.Option(help="The larger class, if known.")]
ThresholdOption = Annotated[
    float, typer.Option(help="Probability above which an item is called positive.")
]
ConfidenceOption = Annotated[float, typer.Option(help="Coverage of the intervals.")]
SeedOption = Annotated[int, typer.Option(help="Everything random follows from it.", min=0)]
NoisyOption = Annotated[
    bool, typer.Option("--noisy", help="Admit judgements that noise took out of range.")
]
StreamOption = Annotated[
    bool, typer.Option("--stream", help="Leave the pairs in their file: .parquet, any size.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print nothing.")]


def tell(report: Any, as_json: bool, *lines: str) -> None:
    """Print a report as JSON, or else in lines.

    Examples
    --------
    >>> tell({"rows": 3}, True, "3 rows")
    {"rows": 3}
    """
    typer.echo(json.dumps(report) if as_json else "\n".join(lines))


def with_options(block: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command have the fields of a dataclass as options, after its own.

    Parameters
    ----------
    block : dataclass
        Its fields are annotated as a command's parameters are.

    Returns
    -------
    callable
        Decorates a command whose first parameter is a `block`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Where:
    ...     host: str
    >>> @with_options(Where)
    ... def greet(where: Where, loud: bool = False) -> None:
    ...     print(where.host, loud)
    >>> inspect.signature(greet)
    <Signature (*, loud: bool = False, host: str) -> None>
    >>> greet(host="b", loud=True)
    b True
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command).parameters.values())[1:]
        shared = list(inspect.signature(block).parameters.values())
        hints = get_type_hints(block, include_extras=True)
        hints |= get_type_hints(command, include_extras=True)

        def run(**given: Any) -> None:
            chosen = block(**{one.name: given.pop(one.name) for one in shared})
            command(chosen, **given)

        parameters = [
            one.replace(kind=one.KEYWORD_ONLY, annotation=hints[one.name])
            for one in (*own, *shared)
        ]
        run.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__name__, run.__doc__, run.__module__ = (
            command.__name__,
            command.__doc__,
            command.__module__,
        )
        return run

    return decorate
