"""Places where a command may write, found out before the work is done."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pairlearn.tables.layout import suffix_of

__all__ = ["check_new_file", "check_new_model"]


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
    pairlearn.tables.errors.TableError: p.txt has the suffix '.txt'; predictions are .csv
    """
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
