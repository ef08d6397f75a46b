"""Which file is opened how, and which of its columns are what."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from pairlearn.tables.cells import Kind
from pairlearn.tables.csv_source import CsvSource
from pairlearn.tables.errors import TableError, shown
from pairlearn.tables.items import check_names
from pairlearn.tables.parquet_source import ParquetSource

__all__ = ["Source", "existing_file", "item_kinds", "open_source", "pair_kinds", "suffix_of"]

PAIR_KINDS: dict[str, Kind] = {
    "left": "id",
    "right": "id",
    "similarity": "number",
    "difference": "number",
    "preference": "text",
    "weight": "number",
    "annotator": "text",
}
"""The columns of a table of pairs, in the order in which they are written."""

_JUDGEMENTS = ("similarity", "difference", "preference")


class Source(Protocol):
    """A file as batches of columns: `CsvSource` or `ParquetSource`."""

    path: Path
    names: list[str]
    header_place: str

    def batches(self, kinds: Mapping[str, Kind]) -> Iterator[dict[str, NDArray[Any]]]:
        """The columns asked for, some rows at a time."""

    def exact_batches(self, kinds: Mapping[str, Kind]) -> Iterator[dict[str, NDArray[Any]]]:
        """The same, cut so that the first error is always the same one."""

    def place(self, row: int) -> str:
        """Where a data row is, counted from 0."""

    def all_integers(self, names: Sequence[str]) -> bool:
        """Whether all ids in these columns are integers."""


def suffix_of(path: Path, what: str, suffixes: Sequence[str]) -> str:
    """The suffix of a file, in lower case, if it is one of those given.

    Examples
    --------
    >>> suffix_of(Path("pairs.CSV"), "pairs", (".csv", ".parquet"))
    '.csv'
    >>> suffix_of(Path("pairs.txt"), "pairs", (".csv", ".parquet"))
    Traceback (most recent call last):
    pairlearn.tables.errors.TableError: pairs.txt has the suffix '.txt'; pairs are .csv or .parquet
    """
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        allowed = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise TableError(f"{path} has the suffix {shown(suffix)}; {what} are {allowed}")
    return suffix


def existing_file(path: Path) -> Path:
    """The path, if a file is there that can be read.

    Examples
    --------
    >>> existing_file(Path("no-such-file.csv"))
    Traceback (most recent call last):
    pairlearn.tables.errors.TableError: no-such-file.csv does not exist
    """
    if path.is_dir():
        raise TableError(f"{path} is a folder; give a file")
    if not path.exists():
        raise TableError(f"{path} does not exist")
    if not path.is_file():
        raise TableError(f"{path} is not a regular file; save the table to one first")
    if not os.access(path, os.R_OK):
        raise TableError(f"{path} cannot be read: permission denied")
    return path


def open_source(path: Path, suffix: str) -> Source:
    """A CSV or Parquet file, with its header read and found in order.

    Examples
    --------
    >>> open_source(Path("no-such-file.csv"), ".csv")
    Traceback (most recent call last):
    pairlearn.tables.errors.TableError: no-such-file.csv does not exist
    """
    existing_file(path)
    source: Source = CsvSource(path) if suffix == ".csv" else ParquetSource(path)
    seen: dict[str, int] = {}
    for number, name in enumerate(source.names, 1):
        if name in seen:
            raise TableError(
                f"{source.header_place}: columns {seen[name]} and {number} are both named "
                f"{shown(name)}"
            )
        seen[name] = number
    return source


def pair_kinds(source: Source) -> dict[str, Kind]:
    """The columns of a table of pairs that a file has.

    Raises
    ------
    TableError
        If one is missing or seems to be misspelt.
    """
    for name in source.names:
        near = difflib.get_close_matches(name.lower(), PAIR_KINDS, n=1, cutoff=0.8)
        if near and near[0] not in source.names:
            raise TableError(
                f"{source.header_place}: column {shown(name)} looks like {near[0]!r}; "
                "rename it so, or otherwise"
            )
    for name in ("left", "right"):
        if name not in source.names:
            raise _missing(source, f"no column {name!r}")
    if not any(name in source.names for name in _JUDGEMENTS):
        raise _missing(source, "no column of judgements ('similarity', 'difference', 'preference')")
    return {name: kind for name, kind in PAIR_KINDS.items() if name in source.names}


def item_kinds(source: Source) -> dict[str, Kind]:
    """The columns of a table of items: ``id``, and all others features.

    Raises
    ------
    TableError
        If there is no ``id``, no feature, or a feature without a proper name.
    """
    if "id" not in source.names:
        near = [name for name in source.names if name.lower().rstrip("s") == "id"]
        hint = f"; rename {near[0]!r}" if near else ""
        raise _missing(source, f"no column 'id'{hint}")
    features = [name for name in source.names if name != "id"]
    try:
        check_names(features)
    except TableError as error:
        raise TableError(f"{source.header_place}: {error}") from None
    kinds: dict[str, Kind] = {"id": "id"}
    return kinds | dict.fromkeys(features, "number")


def _missing(source: Source, what: str) -> TableError:
    found = ", ".join(map(shown, source.names[:8])) + (", …" if len(source.names) > 8 else "")
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(source.names) == 1 and mark in source.names[0]:
            return TableError(f"{source.header_place}: separate the columns by commas, not {word}")
    return TableError(f"{source.header_place}: {what}; the columns are {found}")
