"""Finished runs as a table for other programs."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pairlearn.atomic import replacing
from pairlearn.experiments.records import Record
from pairlearn.extras import missing_extra

__all__ = ["flat_rows", "write_csv", "write_parquet"]


def flat_rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """One flat dictionary for each run, all with the same columns.

    Parameters
    ----------
    records : iterable of Record
        What to flatten.

    Returns
    -------
    list of dict
        The fields of the run, its results as ``accuracy_NAME``, and its notes; None
        where a run has no such entry.

    Examples
    --------
    >>> flat_rows([])
    []
    """
    rows = [
        record.run.fields()
        | {f"accuracy_{name}": value for name, value in record.results.items()}
        | record.notes
        for record in records
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]


def write_csv(records: Iterable[Record], path: str | os.PathLike[str]) -> Path:
    """Write runs as CSV; the file is whole or is not there.

    Parameters
    ----------
    records : iterable of Record
        What to write.
    path : path-like
        The file to write.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv([], f"{folder}/runs.csv").name
    'runs.csv'
    """
    rows = flat_rows(records)
    with replacing(Path(path)) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return Path(path)


def write_parquet(records: Iterable[Record], path: str | os.PathLike[str]) -> Path:
    """Write runs as Parquet; the file is whole or is not there.

    Parameters
    ----------
    records : iterable of Record
        What to write.
    path : path-like
        The file to write.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet([], f"{folder}/runs.parquet").name
    'runs.parquet'
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise missing_extra("files", "pyarrow", "Parquet") from None
    table = pyarrow.Table.from_pylist(flat_rows(records))
    with replacing(Path(path)) as part:
        parquet.write_table(table, part)
    return Path(path)
