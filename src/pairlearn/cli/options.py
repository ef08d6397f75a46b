"""Options that several commands share: how to read items and judgements, and where to write."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from pairlearn.io.cells import ColumnChoice
    from pairlearn.judgements import Judgements
    from pairlearn.judgements.scales import Scale

FIGURES = (".png", ".svg", ".pdf")
RANGES = {"similarity-range", "difference-range"}
"""Findings that ``--noisy`` admits."""
Majority = Literal["positive", "negative"]
Seed = Annotated[int, typer.Option(min=0)]
Count = Annotated[int, typer.Option(min=1)]
OptionalCount = Annotated[int | None, typer.Option(min=1)]


@dataclass
class Training:
    """How to train, and what is known: parameters of the library with the same names."""

    prior: float | None = None
    majority: Majority | None = None
    epochs: OptionalCount = None
    learning_rate: float | None = None
    seed: Seed = 0
    device: str = "auto"

    def chosen(self) -> dict[str, Any]:
        """The options that were given; the others keep the library's defaults."""
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
    "learning_rate": "Step size of Adam. [default: by the model]",
    "device": "auto, cpu, cuda, cuda:1, …",
    "noisy": "Allow judgements that noise has moved out of range.",
    "seed": "Seed of all random numbers.",
    "test_subset": "How the test set is reduced to the class prior.",
    "checkpoint_seconds": "Seconds between checkpoints of the training.",
    "port": "Port to listen at.",
    "force": "Replace an existing file or folder.",
    "json": "Print JSON.",
}
"""Help of parameters that several commands have."""


def parse_names(text: str | None, option: str = "") -> list[str]:
    """Split names at commas; an `option` that is given must have some."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if option and text is not None and not names:
        raise ValueError(f"{option} must be names with commas between; got {text!r}")
    return names


def check_suffix(option: str, path: Path | None, *suffixes: str) -> None:
    """Refuse a file with another suffix."""
    if path is not None and path.suffix not in suffixes:
        endings = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise ValueError(f"{option} {path.name} must end in {endings}")


def check_positive(positive: str | None, labelled: Path | None) -> None:
    """Refuse a positive class without known classes."""
    if positive is not None and labelled is None:
        raise ValueError("--positive is a class of --labelled, which is not given")


def check_absent(folder: Path, *names: str, force: bool) -> None:
    """Refuse to replace files in a folder without ``force``."""
    if folder.is_file():
        raise ValueError(f"{folder} is a file; give a folder")
    for path in (folder / name for name in names):
        if path.exists() and not force:
            raise ValueError(f"{path} is there already: choose another folder, or --force")


def check_new_file(
    path: Path, content: str, suffixes: Sequence[str], *, inputs: Sequence[Path | None], force: bool
) -> None:
    """Refuse a file that cannot be written or must not be replaced.

    ``content`` says in the plural what it will hold, for messages. ``inputs`` of the command are
    never replaced, and other files only with ``force``.
    """
    from pairlearn.io.sources import suffix_of

    suffix_of(path, content, suffixes)
    for file in inputs:
        if file is not None and path.exists() and file.exists() and path.samefile(file):
            raise ValueError(f"{path} is what is read here: choose another file to write")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a file")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already: choose another file, or --force")
    _check_parent(path)


def check_new_model(path: Path, *, force: bool) -> None:
    """Refuse a folder that cannot become a model, or is one already."""
    from pairlearn.estimators.folder_format import check_replaceable

    folder = path.expanduser().resolve()
    check_replaceable(folder, overwrite=force)
    _check_parent(folder)


@contextmanager
def in_file(path: Path) -> Iterator[None]:
    """Add the file to errors that begin with a row or the like."""
    try:
        yield
    except ValueError as error:
        if re.match(r"(row|task|triplet|group) \d", str(error)):
            raise ValueError(f"{path}, {error}") from None
        raise


def _check_parent(path: Path) -> None:
    """Refuse a path whose folder cannot be written to."""
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise ValueError(f"{path} cannot be written: {above} is a file")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: permission denied in {above}")


@dataclass
class Columns:
    """Which columns of the items to learn from.

    Parameters
    ----------
    columns
        Names, with commas between. [default: all but id]
    ignore
        Columns to leave out, with commas between.
    kinds
        Kinds of columns, where the guess is wrong, as in zip:category,notes:text.
    """

    columns: str | None = None
    ignore: str | None = None
    kinds: str | None = None

    def choice(self) -> ColumnChoice:
        """The choice as the library takes it."""
        from pairlearn.io.cells import ColumnChoice

        kinds: dict[str, Any] = {}
        for part in parse_names(self.kinds):
            name, mark, kind = part.rpartition(":")
            if not mark:
                raise ValueError(f"--kinds must be as in zip:category; got {part!r}")
            kinds[name.strip()] = kind.strip()
        return ColumnChoice(parse_names(self.columns), parse_names(self.ignore), kinds)


@dataclass
class Reading:
    """How to read judgements.

    Parameters
    ----------
    similarity_scale
        Lowest and highest possible similarity, as 1,5 or 0,100.
    difference_scale
        Lowest and highest possible difference, with an equals sign: =-2,2.
    difference_means
        preference: which item is more positive, not by how much; difference: take it as it is.
    """

    similarity_scale: str | None = None
    difference_scale: str | None = None
    difference_means: Literal["difference", "preference"] | None = None
    notes: list[str] = field(default_factory=list, init=False)

    def scales(self) -> list[Scale | None]:
        """The scales of similarities and of differences, where they are given."""
        from pairlearn.judgements.scales import Scale

        scales = []
        for name in ("similarity", "difference"):
            text = getattr(self, f"{name}_scale")
            try:
                scale = None if text is None else Scale.parse(text, either=name == "similarity")
                scales.append(scale)
            except ValueError as error:
                raise ValueError(f"--{name}-scale: {error}") from None
        return scales

    def table(self, path: Path) -> Judgements:
        """Read judgements on their scale; those out of range are for `check` to find."""
        from pairlearn.io import read_pairs

        similarity, difference = self.scales()
        table = read_pairs(
            path, noisy=True, similarity_scale=similarity, difference_scale=difference
        )
        if self.difference_means == "preference":
            with in_file(path):
                table, ties = table.as_comparisons()
            if ties:
                self.notes.append(f"{ties:,} differences of 0 prefer neither item and are left out")
        return table

    def checked(self, path: Path, *, noisy: bool, prior: float | None = None) -> Judgements:
        """Read judgements, and refuse those whose numbers mean something else."""
        from pairlearn.check.answers import check_meaning
        from pairlearn.io import read_pairs

        table, settled = self.table(path), self.settled(noisy=noisy)
        errors = [
            finding
            for finding in check_meaning(table, prior)
            if finding.severity == "error" and finding.code not in settled
        ]
        for finding in errors:
            if finding.code not in RANGES:
                raise ValueError(f"{path}: {finding.code}: {finding.message}")
        if errors:
            read_pairs(path)  # which names the line of the first value out of range
        return table

    def settled(self, *, noisy: bool = False) -> set[str]:
        """Codes of findings that the options answer."""
        codes = set(RANGES) if noisy else set()
        codes |= {"comparisons"} if self.difference_means is not None else set()
        return codes | ({"upside-down"} if self.similarity_scale is not None else set())
