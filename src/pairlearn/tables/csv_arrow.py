"""The fast way through plain CSV: pyarrow reads what leaves no room for doubt.

A block of lines is plain if it has no quotes, no NUL, no carriage return but before a
newline, does not start with a mark of byte order, is UTF-8, and every cell wanted
converts at once. Anything else is declined, and the csv module decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.tables.cells import Kind
from pairlearn.tables.errors import RowError
from pairlearn.tables.ids import MAX_LENGTH, check_text

__all__ = ["fast_columns", "import_pyarrow"]

_MAX_PLAIN_LINE = 131072
"""The csv module refuses longer cells; so a longer line is left to it."""


def import_pyarrow() -> ModuleType | None:
    """The module pyarrow with its csv and compute, or None where it is not installed.

    Examples
    --------
    >>> import_pyarrow() is import_pyarrow()
    True
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
    except ImportError:
        return None
    module: ModuleType = pyarrow
    return module


def fast_columns(
    block: bytes, names: Sequence[str], kinds: Mapping[str, Kind]
) -> dict[str, NDArray[Any]] | None:
    r"""The columns asked for of whole lines, or None where pyarrow should not decide.

    Parameters
    ----------
    block : bytes
        Lines without the header.
    names : sequence of str
        The header.
    kinds : mapping of str to {"id", "number", "text"}
        The columns, with what they hold.

    Examples
    --------
    >>> fast_columns(b'1,"0.5"\n', ["left", "similarity"], {"similarity": "number"}) is None
    True
    """
    pyarrow = import_pyarrow()
    if pyarrow is None or not _is_plain(block):
        return None
    at = {name: str(names.index(name)) for name in kinds}
    types = {"id": pyarrow.string(), "text": pyarrow.string(), "number": pyarrow.float64()}
    try:
        table = pyarrow.csv.read_csv(
            pyarrow.BufferReader(block),
            # Its threads and torch's end in an abort, now and then, when the process does.
            pyarrow.csv.ReadOptions(
                use_threads=False, column_names=[str(column) for column in range(len(names))]
            ),
            pyarrow.csv.ParseOptions(quote_char=False, double_quote=False),
            pyarrow.csv.ConvertOptions(
                include_columns=list(at.values()),
                column_types={at[name]: types[kind] for name, kind in kinds.items()},
                null_values=[""],
                strings_can_be_null=False,
            ),
        )
        table = table.combine_chunks()
        return {name: _array(pyarrow, name, kinds[name], table.column(at[name])) for name in kinds}
    except (pyarrow.ArrowException, _Declined, RowError):
        return None


class _Declined(Exception):
    """A cell that is not plainly of its kind."""


def _is_plain(block: bytes) -> bool:
    if b'"' in block or b"\0" in block or block.count(b"\r") != block.count(b"\r\n"):
        return False
    # pyarrow drops a mark of byte order from the start of what it is given, an id's too.
    if block.startswith(b"\xef\xbb\xbf"):
        return False
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
    if np.diff(ends, prepend=-1, append=len(block)).max() > _MAX_PLAIN_LINE:
        return False
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _array(pyarrow: Any, name: str, kind: Kind, column: Any) -> NDArray[Any]:
    compute = pyarrow.compute
    if kind == "number":
        values: NDArray[np.float64] = column.to_numpy()
        if np.isfinite(values).sum() + column.null_count != len(values):
            raise _Declined
        return values
    if kind == "id" and len(column) and compute.max(compute.utf8_length(column)).as_py() <= 20:
        try:
            integers = compute.cast(column, pyarrow.int64())
        except pyarrow.ArrowInvalid:
            pass
        else:
            if compute.all(compute.equal(compute.cast(integers, pyarrow.string()), column)).as_py():
                return np.array(integers.to_numpy())
    if len(column) and compute.max(compute.utf8_length(column)).as_py() > MAX_LENGTH:
        raise _Declined
    text: NDArray[np.str_] = column.to_numpy().astype(np.str_)
    check_text(name, text, empty=kind == "text")
    return text
