"""What several commands take, and places that a command refuses to write to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

FIGURES = (".png", ".svg", ".pdf")
Majority = Literal["positive", "negative"]
Seed = Annotated[int, typer.Option(min=0)]
AtLeastOne = Annotated[int, typer.Option(min=1)]
PerhapsSome = Annotated[int | None, typer.Option(min=1)]


@dataclass(frozen=True)
class Training:
    """How to train, and what is known: parameters of the library with the same names."""

    prior: float | None = None
    majority: Majority | None = None
    epochs: PerhapsSome = None
    learning_rate: float | None = None
    seed: Seed = 0
    device: str = "auto"

    def given(self) -> dict[str, Any]:
        """The parameters that were given: the others keep the library's defaults."""
        return {name: value for name, value in vars(self).items() if value is not None}


HELP = {
    "items": "Table of items, id and features: .csv, .parquet or .npy; or a folder of texts or "
    "images.",
    "pairs": "Table of judgements: .csv or .parquet.",
    "model": "Folder that `pairlearn fit` wrote.",
    "project": "The project's folder.",
    "ids": "Ids of .npy items: .npy.",
    "labelled": "Items of known class, id and class: .csv or .parquet.",
    "positive": "The positive class of --labelled. [default: of two numbers, the larger]",
    "prior": "Share of positive items in the pairs. [default: estimated]",
    "majority": "The larger class, if known.",
    "threshold": "Probability above which an item is called positive.",
    "confidence": "Coverage of the intervals.",
    "epochs": "Passes over the pairs. [default: by their number]",
    "learning_rate": "Of Adam. [default: by the model]",
    "device": "auto, cpu, cuda, cuda:1, …",
    "noisy": "Admit judgements that noise took out of range.",
    "seed": "Everything random follows from it.",
    "stream": "Leave the pairs in their file: .parquet, any size.",
    "force": "Replace what is there.",
    "json": "Print JSON.",
}
"""Help of parameters that several commands have."""


def check_share(option: str, value: float, *, zero: bool = False) -> None:
    """Refuse what is not a share."""
    if not (0 < value < 1 or (zero and value == 0)):
        raise ValueError(f"{option} must lie in {'[' if zero else '('}0, 1); got {value:g}")


def check_suffix(option: str, path: Path | None, *suffixes: str) -> None:
    """Refuse a file that ends in something else."""
    if path is not None and path.suffix not in suffixes:
        listed = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise ValueError(f"{option} {path.name} must end in {listed}")


def check_absent(folder: Path, *names: str, force: bool) -> None:
    """Refuse to replace files of a folder, unless that is asked for."""
    for path in (folder / name for name in names):
        if path.exists() and not force:
            raise ValueError(f"{path} is there already: choose another folder, or --force")


def check_new_file(
    path: Path, what: str, suffixes: Sequence[str], *, inputs: Sequence[Path | None], force: bool
) -> None:
    """Refuse a file that cannot be written, or whose loss would be regretted.

    ``what`` it will hold, in the plural, is for messages. What the command reads (``inputs``) is
    never replaced, and other files only with ``force``.
    """
    from pairlearn.tables.sources import suffix_of

    suffix_of(path, what, suffixes)
    for file in inputs:
        if file is not None and path.exists() and file.exists() and path.samefile(file):
            raise ValueError(f"{path} is what is read here: choose another file to write")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a file")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already: choose another file, or --force")
    _check_parent(path)


def check_new_model(path: Path, *, force: bool) -> None:
    """Refuse a folder that cannot become a model, or is one and shall not be replaced."""
    from pairlearn.estimators.folder_format import check_replaceable

    folder = path.expanduser().resolve()
    check_replaceable(folder, overwrite=force)
    _check_parent(folder)


def _check_parent(path: Path) -> None:
    """Refuse what cannot be made where it shall be."""
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise ValueError(f"{path} cannot be written: {above} is a file")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: permission denied in {above}")
