"""Items as a table: an id and numeric features for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.tables.errors import RowError, TableError, placed, shown
from pairlearn.tables.ids import Ids, as_ids, check_unique, same_kind

__all__ = ["ItemTable", "as_features", "check_names", "row_index"]


class ItemTable:
    """One row for each item: its id, and its features in float32.

    Parameters
    ----------
    ids : array of shape (m,), or None
        Integers or text, each once; None is 0, 1, …, m − 1.
    features : array of shape (m, d)
        Finite numbers.
    names : sequence of d str, optional
        Of the features; x0, x1, … if not given.

    Attributes
    ----------
    ids : array of int64 or str
    features : array of float32
    names : tuple of str

    Raises
    ------
    TableError
        For the first bad row, counted from 1.

    Examples
    --------
    >>> items = ItemTable(["a", "b"], [[1.0, 2.0], [3.0, 4.0]])
    >>> len(items), items.names, items[1:].features
    (2, ('x0', 'x1'), array([[3., 4.]], dtype=float32))
    """

    ids: Ids
    features: NDArray[np.float32]
    names: tuple[str, ...]

    def __init__(self, ids: Any, features: Any, names: Sequence[str] | None = None) -> None:
        try:
            array = np.asarray(features)
        except ValueError as error:
            raise TableError(f"features must be numbers of shape (m, d): {error}") from None
        if array.ndim != 2:
            raise TableError(f"features must have shape (m, d); got {array.shape}")
        if array.dtype.kind not in "fiub":
            raise TableError(f"features must be numbers; got {array.dtype}")
        self.names = default_names(array.shape[1]) if names is None else tuple(names)
        if len(self.names) != array.shape[1]:
            raise TableError(f"names has {len(self.names)} names for {array.shape[1]} features")
        check_names(self.names)
        with placed(lambda row: f"row {row + 1}"):
            self.features = as_features(self.names, array)
            self.ids = np.arange(len(array)) if ids is None else as_ids("ids", ids)
            if len(self.ids) != len(array):
                raise TableError(f"ids has {len(self.ids)} rows and features has {len(array)}")
            check_unique("id", self.ids)

    @classmethod
    def trusted(cls, ids: Ids, features: NDArray[np.float32], names: Sequence[str]) -> ItemTable:
        """A table of parts that were checked before, of the types of the attributes.

        Examples
        --------
        >>> one = ItemTable([7], [[0.5]])
        >>> ItemTable.trusted(one.ids, one.features, one.names) == one
        True
        """
        table = cls.__new__(cls)
        table.ids, table.features, table.names = ids, features, tuple(names)
        return table

    @classmethod
    def concatenate(cls, parts: Sequence[ItemTable]) -> ItemTable:
        """Join several tables with the same features, in order.

        Examples
        --------
        >>> ItemTable.concatenate([ItemTable([7], [[0.5]]), ItemTable([8], [[1.5]])]).ids
        array([7, 8])
        """
        if not parts:
            raise TableError("parts is empty: give at least one ItemTable")
        for part in parts[1:]:
            if part.names != parts[0].names:
                raise TableError(
                    f"parts have different features: {list(parts[0].names)} and {list(part.names)}"
                )
        ids: Any = np.concatenate(same_kind([part.ids for part in parts]))
        with placed(lambda row: f"row {row + 1}"):
            check_unique("id", ids)
        return cls.trusted(ids, np.concatenate([part.features for part in parts]), parts[0].names)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: Any) -> ItemTable:
        rows = row_index(index)
        ids: Any = self.ids[rows]
        if isinstance(rows, np.ndarray) and rows.dtype != bool:
            with placed(lambda row: f"row {row + 1} of the selection"):
                check_unique("id", ids)
        return self.trusted(ids, self.features[rows], self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ItemTable):
            return NotImplemented
        return (
            self.names == other.names
            and self.ids.dtype.kind == other.ids.dtype.kind
            and np.array_equal(self.ids, other.ids)
            and np.array_equal(self.features, other.features)
        )

    __hash__ = None  # type: ignore[assignment]  # its arrays can change

    def __repr__(self) -> str:
        return f"ItemTable(m={len(self)}, features={len(self.names)})"


def row_index(index: Any) -> Any:
    """A slice, mask or array that selects rows; a single row becomes a table of one.

    Examples
    --------
    >>> row_index(3), row_index([0, 2])
    (array([3]), array([0, 2]))
    """
    if isinstance(index, slice):
        return index
    rows = np.asarray(index)
    if rows.size == 0 and rows.dtype.kind == "f":
        rows = rows.astype(np.int64)
    if rows.dtype.kind not in "iub" or rows.ndim > 1 or (rows.dtype == bool and rows.ndim == 0):
        raise IndexError(f"rows are selected by a slice, a mask or row numbers; got {index!r}")
    return rows.reshape(-1)


def default_names(d: int) -> tuple[str, ...]:
    """Names of features that have none.

    Examples
    --------
    >>> default_names(2)
    ('x0', 'x1')
    """
    return tuple(f"x{column}" for column in range(d))


def check_names(names: Sequence[Any]) -> None:
    """Refuse names of features that could not stand at the head of a file.

    Examples
    --------
    >>> check_names(["height", "id"])
    Traceback (most recent call last):
    pairlearn.tables.errors.TableError: feature 2 is named 'id', which is the column of ids
    """
    if not names:
        raise TableError("no features; an item has at least one")
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable():
            raise TableError(
                f"feature {number} is named {shown(name)}; give it a name of printable text, "
                "without spaces around it"
            )
        if name == "id":
            raise TableError(f"feature {number} is named 'id', which is the column of ids")
        if name in seen:
            raise TableError(f"features {seen[name]} and {number} are both named {shown(name)}")
        seen[name] = number


def as_features(names: Sequence[str], array: NDArray[Any]) -> NDArray[np.float32]:
    """Features in float32, in place where they already are.

    Raises
    ------
    RowError
        For the first row with a feature that is missing, infinite or beyond float32.

    Examples
    --------
    >>> as_features(["x0"], np.array([[0.5]]))
    array([[0.5]], dtype=float32)
    """
    with np.errstate(over="ignore"):
        features = array.astype(np.float32, copy=False)
    bad = ~np.isfinite(features)
    if bad.any():
        row = int(bad.any(1).argmax())
        column = int(bad[row].argmax())
        value, name = float(array[row, column]), names[column]
        if np.isnan(value):
            raise RowError(row, f"feature {shown(name)} is missing; fill it in or drop the row")
        if np.isinf(value):
            raise RowError(row, f"feature {shown(name)} is {value:g}, not a finite number")
        raise RowError(row, f"feature {shown(name)} is {value:g}, too large for float32; rescale")
    return features
