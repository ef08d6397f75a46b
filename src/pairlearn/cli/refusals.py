"""What a command refuses: wrong requests, places it cannot write to, packages that are missing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier

__all__ = [
    "REFUSED",
    "check_new_file",
    "check_new_model",
    "load_model",
    "refusing",
]

REFUSED = 2
"""Exit code of a wrong request."""


@contextmanager
def refusing(command: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn an error in the request into one line and exit code 2.

    Parameters
    ----------
    command : str
        Its name, which starts the line.
    *kinds : type
        Which errors; by default those that a wrong request or file raises.

    Examples
    --------
    >>> with refusing("check"):
    ...     print("all is well")
    all is well
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, kinds or (ImportError, OSError, ValueError)):
            raise
        typer.echo(f"pairlearn {command}: {error}", err=True)
        raise typer.Exit(REFUSED) from None


def load_model(path: Path) -> PairClassifier:
    """Read a model folder.

    Examples
    --------
    >>> load_model(Path("no/such/model"))
    Traceback (most recent call last):
    pairlearn.estimators.folder_format.ModelFolderError: no/such/model: there is no such folder
    """
    from pairlearn.estimators import PairClassifier

    return PairClassifier.load(path)


def check_new_file(
    path: Path, what: str, suffixes: Sequence[str], *, inputs: Sequence[Path], force: bool
) -> None:
    """Refuse a file that cannot be written, or whose loss would be regretted.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What it will hold, in the plural, for messages.
    suffixes : sequence of str
        Those that it may have.
    inputs : sequence of Path
        What the command reads: never replaced.
    force : bool
        Replace another file that is there.

    Examples
    --------
    >>> check_new_file(Path("p.txt"), "predictions", (".csv",), inputs=[], force=False)
    Traceback (most recent call last):
    pairlearn.tables.TableError: p.txt has the suffix '.txt'; predictions are .csv
    """
    from pairlearn.tables.sources import suffix_of

    suffix_of(path, what, suffixes)
    for file in inputs:
        if path.exists() and file.exists() and path.samefile(file):
            raise ValueError(f"{path} is what is read here: choose another file to write")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a file")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already: choose another file, or --force")
    _check_parent(path)


def check_new_model(path: Path, *, force: bool) -> None:
    """Refuse a folder that cannot become a model, or is one and shall not be replaced.

    Examples
    --------
    >>> check_new_model(Path("no/such/folder"), force=False)
    """
    from pairlearn.estimators.folder_format import check_replaceable

    folder = path.expanduser().resolve()
    check_replaceable(folder)
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise ValueError(f"{path} is a model already: choose another folder, or --force")
    _check_parent(folder)


def _check_parent(path: Path) -> None:
    """Refuse what cannot be made where it shall be."""
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise ValueError(f"{path} cannot be written: {above} is a file")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: permission denied in {above}")
