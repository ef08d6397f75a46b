"""Judgements of pairs as a table: who was compared, and what was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.labels import PairLabels
from pairlearn.tables.errors import RowError, TableError, placed, shown
from pairlearn.tables.ids import Ids, as_ids, as_text, check_unique, find_rows, same_kind
from pairlearn.tables.items import ItemTable, row_index

__all__ = ["PairTable", "check_pairs"]

Floats = NDArray[np.float64]


class PairTable:
    """One row for each judgement of an ordered pair (x, x'), x on the left.

    Several rows for one pair are several judgements, and all count; a pair of an item
    with itself is admitted.

    Parameters
    ----------
    left, right : array of shape (n,)
        Ids of x and x', integers or text; if any is text, all are.
    similarity, difference : array of shape (n,), or None
        s = P(y = y') in [0, 1] and c = P(y' = +1) − P(y = +1) in [−1, 1]; NaN where not
        given, None where never given.
    preference : array of shape (n,), optional
        Which one is the more positive: −1 the left, +1 the right, 0 or NaN not given;
        or the words "left", "right" and "". Every row needs a similarity, a difference
        or a preference.
    weight : array of shape (n,), optional
        How much each row counts, positive; 1 if not given.
    annotator : array of shape (n,), optional
        Who judged, as text; "" where not known.
    noisy : bool, default False
        Admit finite similarities and differences outside their ranges.

    Attributes
    ----------
    left, right : array of int64 or str
    similarity, difference : array of float64
    preference : array of int8, or None
    weight : array of float64, or None
    annotator : array of str, or None

    Raises
    ------
    TableError
        For the first bad row, counted from 1.

    Examples
    --------
    >>> table = PairTable(["a", "b"], ["b", "c"], [0.9, np.nan], [0.1, -0.5])
    >>> len(table), table[1:].left, table.similarity
    (2, array(['b'], dtype='<U1'), array([0.9, nan]))
    >>> PairTable([1], [2], [1.5], [0.0])
    Traceback (most recent call last):
    pairlearn.tables.errors.TableError: row 1: similarity is 1.5, outside [0, 1]; looks like
    percent: divide by 100 (noisy=True admits labels with noise)
    """

    left: Ids
    right: Ids
    similarity: Floats
    difference: Floats
    preference: NDArray[np.int8] | None
    weight: Floats | None
    annotator: NDArray[np.str_] | None

    def __init__(
        self,
        left: Any,
        right: Any,
        similarity: Any,
        difference: Any,
        preference: Any = None,
        weight: Any = None,
        annotator: Any = None,
        *,
        noisy: bool = False,
    ) -> None:
        with placed(lambda row: f"row {row + 1}"):
            self.left, self.right = same_kind([as_ids("left", left), as_ids("right", right)])
            n = len(self.left)
            self.similarity = _numbers("similarity", similarity, n)
            self.difference = _numbers("difference", difference, n)
            self.preference = None if preference is None else as_preference(preference)
            self.weight = None if weight is None else _numbers("weight", weight, n)
            self.annotator = None if annotator is None else as_text("annotator", annotator)
            for name, column in self.columns().items():
                if len(column) != n:
                    raise TableError(f"{name} has {len(column)} rows and left has {n}")
            check_pairs(self, noisy=noisy)

    @classmethod
    def trusted(cls, **columns: Any) -> PairTable:
        """A table of columns that were checked before, of the types of the attributes.

        Examples
        --------
        >>> one = PairTable([1], [2], [0.5], None)
        >>> PairTable.trusted(**one.columns()) == one
        True
        """
        table = cls.__new__(cls)
        for name in ("left", "right", "similarity", "difference", *_OPTIONAL):
            setattr(table, name, columns.get(name))
        return table

    @classmethod
    def concatenate(cls, parts: Sequence[PairTable]) -> PairTable:
        """Join several tables, in order.

        An optional column that only some of them have is filled up where it is missing:
        no preference, weight 1, annotator "".

        Examples
        --------
        >>> one = PairTable([1], [2], [0.5], [0.1])
        >>> PairTable.concatenate([one, PairTable([3], [4], [1.0], None, weight=[2])]).weight
        array([1., 2.])
        """
        if not parts:
            raise TableError("parts is empty: give at least one PairTable")
        if len(parts) == 1:
            return parts[0]
        ids = same_kind([ids for part in parts for ids in (part.left, part.right)])
        columns: dict[str, Any] = {
            "left": np.concatenate(ids[::2]),
            "right": np.concatenate(ids[1::2]),
            "similarity": np.concatenate([part.similarity for part in parts]),
            "difference": np.concatenate([part.difference for part in parts]),
        }
        for name, fill in _OPTIONAL.items():
            found = [getattr(part, name) for part in parts]
            if any(column is not None for column in found):
                columns[name] = np.concatenate(
                    [
                        np.full(len(part), fill) if column is None else column
                        for part, column in zip(parts, found, strict=True)
                    ]
                )
        return cls.trusted(**columns)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns that there are, by name, in the order of the parameters.

        Examples
        --------
        >>> list(PairTable([1], [2], [0.5], None, weight=[2.0]).columns())
        ['left', 'right', 'similarity', 'difference', 'weight']
        """
        names = ("left", "right", "similarity", "difference", *_OPTIONAL)
        found = {name: getattr(self, name) for name in names}
        return {name: column for name, column in found.items() if column is not None}

    def ids(self) -> NDArray[Any]:
        """The ids as one (n, 2) array, left and right.

        Examples
        --------
        >>> PairTable([1, 2], [5, 6], [0.5, 0.5], None).ids()
        array([[1, 5],
               [2, 6]])
        """
        return np.stack([self.left, self.right], 1)

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Mask of the rows with a similarity or a difference.

        Examples
        --------
        >>> PairTable([1, 2], [5, 6], [0.5, np.nan], None, ["", "left"]).judged
        array([ True, False])
        """
        return ~(np.isnan(self.similarity) & np.isnan(self.difference))

    def labels(self) -> PairLabels:
        """Similarity and difference as `PairLabels`; each row needs one of them.

        Examples
        --------
        >>> PairTable([1, 2], [5, 6], [0.5, 0.9], None).labels()
        PairLabels(n=2, similarity=[0.5 0.9], difference=[nan nan])
        """
        bare = np.flatnonzero(~self.judged)
        if len(bare):
            rows = ", ".join(str(row + 1) for row in bare[:5])
            more = f" and {len(bare) - 5} more" if len(bare) > 5 else ""
            raise TableError(
                f"neither similarity nor difference in row {rows}{more}: "
                "take the labels of table[table.judged]"
            )
        # The ranges were checked, or noise admitted, when the table was made.
        return PairLabels(self.similarity, self.difference, noisy=True)

    def to_array(self) -> Floats:
        """Similarity and difference as one (n, 2) array, NaN where not given.

        Examples
        --------
        >>> PairTable([1], [2], [0.5], None).to_array()
        array([[0.5, nan]])
        """
        return np.stack([self.similarity, self.difference], 1)

    def positions(self, items: ItemTable | Any) -> NDArray[np.int64]:
        """Rows of both ends of each pair among the items, shape (n, 2).

        Parameters
        ----------
        items : ItemTable or array of shape (m,)
            The items, or their ids. Where one side has integers and the other text, both
            are compared as text.

        Raises
        ------
        TableError
            If an id is not among the items.

        Examples
        --------
        >>> PairTable(["a", "b"], ["c", "a"], [0.5, 0.5], None).positions(["a", "b", "c"])
        array([[0, 2],
               [1, 0]])
        """
        if isinstance(items, ItemTable):
            known = items.ids
        else:
            with placed(lambda row: f"row {row + 1}"):
                known = as_ids("items", items)
                check_unique("items", known)
        wanted = np.concatenate([self.left, self.right])
        rows = find_rows(wanted, known).reshape(2, -1).T
        unknown = (rows < 0).any(1)
        if unknown.any():
            row = int(unknown.argmax())
            side = "left" if rows[row, 0] < 0 else "right"
            value = getattr(self, side)[row].item()
            hint = ""
            if isinstance(value, str) and find_rows(np.array([value.strip()]), known)[0] >= 0:
                hint = f"; {value.strip()!r} is: remove the spaces around it"
            raise TableError(f"row {row + 1}: {side} {shown(value)} is not among the items{hint}")
        return rows

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, index: Any) -> PairTable:
        rows = row_index(index)
        return self.trusted(**{name: column[rows] for name, column in self.columns().items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairTable):
            return NotImplemented
        mine, theirs = self.columns(), other.columns()
        return mine.keys() == theirs.keys() and all(
            column.dtype.kind == theirs[name].dtype.kind
            and np.array_equal(column, theirs[name], equal_nan=column.dtype.kind == "f")
            for name, column in mine.items()
        )

    __hash__ = None  # type: ignore[assignment]  # its arrays can change

    def __repr__(self) -> str:
        return f"PairTable(n={len(self)}, columns={list(self.columns())})"


_OPTIONAL = {"preference": np.int8(0), "weight": np.float64(1), "annotator": ""}
"""Columns that a table may lack, with what stands for them."""


def as_preference(values: Any) -> NDArray[np.int8]:
    """−1, 0 and +1 from numbers, or from the words "left", "" and "right"; None and NaN are 0.

    Examples
    --------
    >>> as_preference(["left", "", "right"]), as_preference([np.nan, 1.0])
    (array([-1,  0,  1], dtype=int8), array([0, 1], dtype=int8))
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise TableError(f"preference must have shape (n,); got {array.shape}")
    if array.dtype.kind == "O":
        array = np.array([_as_word(value) for value in array.tolist()], dtype=np.str_)
    if array.dtype.kind == "U":
        words = np.char.strip(array.astype(np.str_))
        right, left, none = words == "right", words == "left", words == ""
        expected = "left, right or nothing"
    elif array.dtype.kind in "iuf":
        right, left, none = array == 1, array == -1, (array == 0) | np.isnan(array)
        expected = "-1 (left), 1 (right) or 0"
    else:
        raise TableError(f"preference must be numbers or text; got {array.dtype}")
    bad = ~(right | left | none)
    if bad.any():
        row = int(bad.argmax())
        raise RowError(row, f"preference is {shown(array[row].item())}; give {expected}")
    preference: NDArray[np.int8] = right.astype(np.int8) - left.astype(np.int8)
    return preference


def _as_word(value: Any) -> str:
    """A missing value of any kind as "", a number as the word that it stands for."""
    if value is None or value != value:
        return ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return {-1.0: "left", 0.0: "", 1.0: "right"}.get(value, str(value))
    return str(value)


def check_pairs(table: PairTable, *, noisy: bool) -> None:
    """Refuse values that cannot be judgements, the earliest row first.

    Raises
    ------
    RowError
        For the first bad row.

    Examples
    --------
    >>> check_pairs(PairTable([1], [2], [0.5], None), noisy=False)
    """
    problems: list[tuple[int, str]] = []

    def look(bad: NDArray[np.bool_], column: Floats | None, text: str) -> None:
        if bad.any():
            row = int(bad.argmax())
            value = "" if column is None else shown(column[row].item())
            problems.append((row, text.format(value)))

    for name, values, low in (
        ("similarity", table.similarity, 0),
        ("difference", table.difference, -1),
    ):
        look(np.isinf(values), values, f"{name} is {{}}, not a finite number")
        if not noisy:
            hint = "(noisy=True admits labels with noise)"
            outside = ((values < low) | (values > 1)) & ~np.isinf(values)
            percent = (values > 1 if low == 0 else np.abs(values) > 1) & (np.abs(values) <= 100)
            look(
                outside & percent,
                values,
                f"{name} is {{}}, outside [{low}, 1]; looks like percent: divide by 100 {hint}",
            )
            look(outside & ~percent, values, f"{name} is {{}}, outside [{low}, 1] {hint}")
    bare = ~table.judged
    if table.preference is not None:
        bare &= table.preference == 0
    look(bare, None, "no judgement; give similarity, difference or preference, or drop the row")
    if table.weight is not None:
        weight = table.weight
        look(~np.isfinite(weight), weight, "weight is {}, not a finite number")
        look(weight <= 0, weight, "weight is {}; weights are positive")
    if problems:
        raise RowError(*min(problems, key=lambda problem: problem[0]))


def _numbers(name: str, values: Any, n: int) -> Floats:
    if values is None:
        return np.full(n, np.nan)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TableError(f"{name} must be numbers: {error}") from None
    if array.ndim != 1:
        raise TableError(f"{name} must have shape (n,); got {array.shape}")
    return array
