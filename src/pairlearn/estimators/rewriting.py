"""Files of pairs in the form that streams well."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path

from pairlearn.tables import TableError, iter_pairs, open_rows
from pairlearn.tables.sources import suffix_of
from pairlearn.tables.write import in_words

__all__ = ["rewrite_pairs"]


def rewrite_pairs(
    source: str | os.PathLike[str], out: str | os.PathLike[str], *, rows: int = 1 << 17
) -> int:
    r"""Write a table of pairs as Parquet in row groups of equal size, in constant memory.

    Parameters
    ----------
    source : path-like
        A ``.csv`` or ``.parquet`` file of pairs.
    out : path-like
        The ``.parquet`` file, another one.
    rows : int
        Rows of a row group.

    Returns
    -------
    int
        Rows in all.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     csv = Path(folder, "pairs.csv")
    ...     _ = csv.write_text("left,right,similarity\n7,9,0.8\n9,4,0.1\n4,7,1\n")
    ...     rewrite_pairs(csv, Path(folder, "pairs.parquet"), rows=2)
    3
    """
    source, out = Path(source), Path(out)
    suffix_of(out, "streamed pairs", (".parquet",))
    if out.exists() and source.exists() and out.samefile(source):
        raise TableError(f"{out} is what is read here: choose another file to write")
    tables = iter_pairs(source, rows, noisy=True)
    first = next(tables)
    with open_rows(out, list(first.columns())) as written:
        for table in chain([first], tables):
            written.write(in_words(table))
        return written.count
