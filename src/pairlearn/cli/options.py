"""Arguments and options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "ForceOption",
    "IdsOption",
    "ItemsArgument",
    "JsonOption",
    "Majority",
    "ModelArgument",
    "NoisyOption",
    "PairsArgument",
    "PositiveOption",
    "QuietOption",
]


class Majority(StrEnum):
    """The larger class."""

    positive = "positive"
    negative = "negative"


ItemsArgument = Annotated[
    Path, typer.Argument(help="Table of items, id and features: .csv, .parquet or .npy.")
]
PairsArgument = Annotated[Path, typer.Argument(help="Table of judgements: .csv or .parquet.")]
ModelArgument = Annotated[Path, typer.Argument(help="Folder that `pairlearn fit` wrote.")]
IdsOption = Annotated[Path | None, typer.Option(help="Ids of .npy items: .npy.")]
PositiveOption = Annotated[
    str | None,
    typer.Option(help="The positive class of --labelled; of two numbers, the larger one."),
]
NoisyOption = Annotated[
    bool, typer.Option("--noisy", help="Admit judgements that noise took out of range.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print nothing.")]
