"""Items as a table: an id and numeric features for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import (
    Ids,
    RowError,
    TableError,
    as_ids,
    check_unique,
    first_rows,
    locate_errors,
    quote,
)

if TYPE_CHECKING:
    from pairlearn.io.encoder import ItemEncoder


class ItemTable:
    """One row for each item: its id and its features in float32.

    Parameters
    ----------
    ids : array of shape (m,), or None
        Unique integers or text; None is 0, 1, …, m − 1.
    features : array of shape (m, d)
        Finite numbers.
    names : sequence of d str, optional
        Names of the features; x0, x1, … if not given.

    Attributes
    ----------
    encoder : ItemEncoder or None
        The encoder that made the features, if the columns were not all plain numbers.
    notes : tuple of str
        Notes on columns that were left out.

    Examples
    --------
    >>> items = ItemTable(["a", "b"], [[1.0, 2.0], [3.0, 4.0]])
    >>> len(items), items.names, items[1:].features
    (2, ('x0', 'x1'), array([[3., 4.]], dtype=float32))
    """

    ids: Ids
    features: NDArray[np.float32]
    names: tuple[str, ...]
    encoder: ItemEncoder | None = None
    notes: tuple[str, ...] = ()
    path: Path | None = None

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
        with locate_errors():
            self.features = as_features(self.names, array)
            self.ids = np.arange(len(array)) if ids is None else as_ids("ids", ids)
            if len(self.ids) != len(array):
                raise TableError(f"ids has {len(self.ids)} rows and features has {len(array)}")
            check_unique("id", self.ids)

    @classmethod
    def trusted(cls, **parts: Any) -> ItemTable:
        """Make a table of attributes that were checked before."""
        table = cls.__new__(cls)
        vars(table).update(parts)
        return table

    def like(self, ids: Any, features: Any) -> ItemTable:
        """Make a table of other items with the same features."""
        return self.trusted(**vars(self) | {"ids": ids, "features": features})

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: Any) -> ItemTable:
        rows = row_index(index)
        ids: Any = self.ids[rows]
        if isinstance(rows, np.ndarray) and rows.dtype != bool:
            with locate_errors(lambda row: f"row {row + 1} of the selection"):
                check_unique("id", ids)
        return self.like(ids, self.features[rows])

    def columns(self) -> dict[str, NDArray[Any]]:
        """The ids, and the features by name."""
        return {"id": self.ids, **dict(zip(self.names, self.features.T, strict=True))}

    def __repr__(self) -> str:
        return f"ItemTable(m={len(self)}, features={len(self.names)})"


def row_index(index: Any) -> Any:
    """An index of rows for numpy; a single row selects a table of one."""
    if isinstance(index, slice):
        return index
    rows = np.asarray(index).reshape(-1)
    return rows if rows.size else rows.astype(np.int64)


def default_names(d: int) -> tuple[str, ...]:
    """Names for features without names."""
    return tuple(f"x{column}" for column in range(d))


def check_names(names: Sequence[Any]) -> None:
    """Check that names of features can stand in the header of a file."""
    if not names:
        raise TableError("no features; an item has at least one")
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable():
            raise TableError(
                f"feature {number} is named {quote(name)}; give it a name of printable text, "
                "without spaces around it"
            )
        if name == "id":
            raise TableError(f"feature {number} is named 'id', which is the column of ids")
        if name in seen:
            raise TableError(f"features {seen[name]} and {number} are both named {quote(name)}")
        seen[name] = number


def as_features(
    names: Sequence[str], array: NDArray[Any], *, gaps: bool = False
) -> NDArray[np.float32]:
    """Features in float32, without a copy if they already are; `gaps` admits NaN.

    Raises RowError for the first row with a feature that is missing, infinite or beyond float32.
    """
    with np.errstate(over="ignore"):
        features = array.astype(np.float32, copy=False)
    bad = np.isinf(features) if gaps else ~np.isfinite(features)
    for row in first_rows(bad.any(1)):
        column = int(bad[row].argmax())
        value = float(array[row, column])
        problem = f"{value:g}, too large for float32; rescale"
        if np.isnan(value):
            problem = "missing; fill it in or drop the row"
        elif np.isinf(value):
            problem = f"{value:g}, not a finite number"
        raise RowError(row, f"feature {quote(names[column])} is {problem}")
    return features
