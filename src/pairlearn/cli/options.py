"""Options that several commands share, and checks of what they were given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

FIGURES = (".png", ".svg", ".pdf")


def option(help: str, *names: str, default: str | bool = True, **more: Any) -> Any:
    """An option with its help; ``default`` in words where the value is found later."""
    return typer.Option(*names, help=help, show_default=default, **more)


def argument(help: str, **more: Any) -> Any:
    """A positional argument with its help."""
    return typer.Argument(help=help, **more)


_ITEMS = "Table of items, id and features: .csv, .parquet or .npy; or a folder of texts or images."
_LARGER = "of two numbers, the larger"
Items = Annotated[Path, argument(_ITEMS)]
Pairs = Annotated[Path, argument("Table of judgements: .csv or .parquet.")]
Model = Annotated[Path, argument("Folder that `pairlearn fit` wrote.")]
Ids = Annotated[Path | None, option("Ids of the items in a .npy table: .npy.")]
Labelled = Annotated[Path | None, option("Items of known class, id and class: .csv or .parquet.")]
Classes = Annotated[
    str | None,
    option("Names of the classes, separated by commas, or their number.", default="as named"),
]
Positive = Annotated[str | None, option("The positive class of --labelled.", default=_LARGER)]
Prior = Annotated[
    Any,
    option(
        "Share of positive items in the pairs; with more classes, that of each, as cat=0.5,dog=…",
        default="estimated",
        parser=lambda text: parse_prior(text),
        metavar="<float>",
    ),
]
Majority = Annotated[
    Literal["positive", "negative"] | None, option("The larger class, if known.", default=False)
]
Threshold = Annotated[float, option("Probability above which an item is called positive.")]
Confidence = Annotated[float, option("Coverage of the intervals.")]
Epochs = Annotated[int | None, option("Passes over the pairs.", default="by their number", min=1)]
Device = Annotated[str, option("auto, cpu, cuda, cuda:1, …")]
Noisy = Annotated[bool, option("Accept judgements that noise has pushed out of range.", "--noisy")]
Seed = Annotated[int, option("Seed of all random numbers.", min=0)]
CheckpointSeconds = Annotated[float, option("Seconds between checkpoints.", min=0)]
Force = Annotated[bool, option("Replace an existing file or folder.", "--force")]
Json = Annotated[bool, option("Print JSON.", "--json")]
Quiet = Annotated[bool, option("Print nothing.", "--quiet")]
QuietNumber = Annotated[bool, option("Print only the number.", "--quiet")]
Columns = Annotated[
    str | None, option("Columns to learn from, separated by commas.", default="all but id")
]
Ignore = Annotated[str | None, option("Columns to leave out, separated by commas.")]
Kinds = Annotated[
    str | None,
    option("Kinds of columns, where the automatic choice is wrong, as in zip:category,notes:text."),
]
SimilarityScale = Annotated[
    str | None,
    option("Lowest and highest possible similarity, as 1,5. fit stores it in the model."),
]
DifferenceScale = Annotated[
    str | None,
    option("Lowest and highest possible difference, as =-2,2. fit stores it in the model."),
]


def parse_names(text: str | None, option: str = "") -> list[str]:
    """Split names at commas; an `option` that is given must have some."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if option and text is not None and not names:
        raise ValueError(f"{option} must be names separated by commas; got {text!r}")
    return names


def parse_prior(text: str) -> float | dict[str, float]:
    """Parse the option --prior: one share, or NAME=SHARE separated by commas."""
    try:
        return parse_shares(text) if "=" in text else float(text)
    except ValueError:
        raise typer.BadParameter(
            f"a share, or NAME=SHARE for each class, separated by commas; got {text!r}"
        ) from None


def parse_shares(text: str) -> dict[str, float]:
    """Parse NAME=SHARE separated by commas."""
    shares = (part.rpartition("=") for part in text.split(","))
    try:
        return {name.strip(): float(share) for name, _, share in shares}
    except ValueError:
        raise ValueError(f"{text!r} is not NAME=SHARE, such as label=0.1") from None


def check_positive(positive: str | None, labelled: Path | None) -> None:
    """Refuse a positive class without known classes."""
    if positive is not None and labelled is None:
        raise ValueError("--positive names a class of --labelled: pass --labelled as well")


def check_absent(folder: Path, *names: str, force: bool) -> None:
    """Refuse to replace files in a folder without ``force``."""
    if folder.is_file():
        raise ValueError(f"{folder} is a file; give a folder")
    for path in (folder / name for name in names):
        if path.exists() and not force:
            raise ValueError(f"{path} already exists: choose another folder, or --force")


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
            raise ValueError(f"{path} is an input of this command: choose another file to write")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a file")
    if path.exists() and not force:
        raise ValueError(f"{path} already exists: choose another file, or --force")
    _check_parent(path)


def check_new_model(path: Path, *, force: bool) -> None:
    """Refuse a folder that cannot become a model, or is one already."""
    from pairlearn.estimators.folder_format import check_replaceable

    folder = path.expanduser().resolve()
    check_replaceable(folder, overwrite=force)
    _check_parent(folder)


def _check_parent(path: Path) -> None:
    """Refuse a path whose folder cannot be written to."""
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise ValueError(f"{path} cannot be written: {above} is a file")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: permission denied in {above}")
