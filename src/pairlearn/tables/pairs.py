"""Judgements of pairs as a table: the two items of each, and the statements about them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn import kinds
from pairlearn.columns import (
    Floats,
    Ids,
    Indices,
    Mask,
    RowError,
    TableError,
    as_ids,
    as_text,
    check_unique,
    find_rows,
    first_rows,
    locate_errors,
    quote,
    unify_ids,
    unknown_id,
)
from pairlearn.judgements import Judgements
from pairlearn.labels import PairLabels
from pairlearn.tables.items import Columnar, ItemTable, is_empty, row_index


class PairTable(Columnar):
    """One row for each judgement of an ordered pair (x, x'), x on the left.

    A pair may have several rows, which all count, and an item may be paired with itself. A row
    with an empty ``right`` is about x alone. Raises TableError for the first bad row, from 1.

    Parameters
    ----------
    left, right : array of shape (n,)
        Ids of x and x', integers or text; all are text if any is.
    similarity, difference : array of shape (n,), or None
        s = P(y = y') in [0, 1] and c = P(y' = +1) − P(y = +1) in [−1, 1]; NaN where not
        given, None where never given.
    preference : array of shape (n,), optional
        Which one is more positive: −1 or "left", +1 or "right", 0, NaN or "" if not given.
        Every row needs a similarity, a difference or a preference.
    weight : array of shape (n,), optional
        Positive weight of each row; 1 if not given.
    annotator : array of shape (n,), optional
        Name of the annotator; "" where unknown.
    noisy : bool, default False
        Admit finite similarities and differences outside their ranges.
    **others : array of shape (n,)
        Columns of other kinds of statement (`pairlearn.kinds.columns`), such as ``label``.
        Those about one item are for rows with the right "", which need one.

    Attributes
    ----------
    ignored : dict of str to int
        Number of rows about pairs that fill a column about one item, which is ignored there; and
        columns of a file that are no columns of pairs, with its number of rows.

    Examples
    --------
    >>> table = PairTable(["a", "b"], ["b", "c"], [0.9, np.nan], [0.1, -0.5])
    >>> len(table), table[1:].left, table.similarity
    (2, array(['b'], dtype='<U1'), array([0.9, nan]))
    >>> PairTable([1], [2], [85], [0.0])
    Traceback (most recent call last):
    pairlearn.tables.TableError: row 1: similarity is 85, outside [0, 1]; looks like
    percent: divide by 100 (noisy=True admits labels with noise)
    """

    left: Ids
    right: Ids
    similarity: Floats
    difference: Floats
    preference: NDArray[np.int8] | None
    weight: Floats | None
    annotator: NDArray[np.str_] | None
    ignored: Mapping[str, int] = MappingProxyType({})  # pickles of 0.2 have none

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
        **others: Any,
    ) -> None:
        statements = {"similarity": similarity, "difference": difference, "preference": preference}
        given = {name: cells for name, cells in (statements | others).items() if cells is not None}
        known = kinds.columns()
        if unknown := given.keys() - known.keys():
            raise TypeError(f"PairTable has no column {sorted(unknown)[0]!r}")
        with locate_errors():
            ids = as_ids("left", left), as_ids("right", right, empty=bool(others))
            columns: dict[str, Any] = {name: known[name].read(given[name]) for name in given}
            if weight is not None:
                columns["weight"] = kinds.Column("weight", 0, np.inf).read(weight)
            if annotator is not None:
                columns["annotator"] = as_text("annotator", annotator)
            columns["left"], columns["right"] = unify_ids(ids)
            for name, column in columns.items():
                if len(column) != len(ids[0]):
                    raise TableError(f"{name} has {len(column)} rows and left has {len(ids[0])}")
            alone, ignored = is_empty(columns["right"]), {}
            for name in statement_columns(single=True):
                if name in columns:
                    if beside := int((~np.isnan(columns[name]) & ~alone).sum()):
                        ignored[name] = beside
                    columns[name] = np.where(alone, columns[name], np.nan) if alone.any() else None
            vars(self).update(vars(self.trusted(**columns, ignored=ignored)))
            check_pairs(self, noisy=noisy)

    @classmethod
    def trusted(cls, **columns: Any) -> PairTable:
        """Make a table of columns that were checked before."""
        table = cls.__new__(cls)
        table.ignored = dict(columns.get("ignored", {}))
        for name in pair_columns():
            setattr(table, name, columns.get(name))
        for name in ("similarity", "difference"):
            if columns.get(name) is None:
                setattr(table, name, np.full(len(table), np.nan))
        for name, column in kinds.columns().items():
            values = getattr(table, name)
            if column.signed and values is not None and values.dtype != np.int8:
                setattr(table, name, np.nan_to_num(values).astype(np.int8))
        return table

    @classmethod
    def concatenate(cls, parts: Sequence[PairTable]) -> PairTable:
        """Join several tables, in order.

        Tables without an optional column get no preference, weight 1 or annotator "".
        """
        if not parts:
            raise TableError("parts is empty: give at least one PairTable")
        if len(parts) == 1:
            return parts[0]
        ids = unify_ids([ids for part in parts for ids in (part.left, part.right)])
        joined: dict[str, Any] = {
            "left": np.concatenate(ids[::2]),
            "right": np.concatenate(ids[1::2]),
        }
        for name in pair_columns()[2:]:
            columns = [getattr(part, name) for part in parts]
            dtype = next((column.dtype for column in columns if column is not None), None)
            if dtype is not None:
                empty = {"i": 0, "f": np.nan, "U": ""}[dtype.kind]
                fill = np.array(1.0 if name == "weight" else empty, dtype)
                joined[name] = np.concatenate(
                    [
                        np.full(len(part), fill) if column is None else column
                        for part, column in zip(parts, columns, strict=True)
                    ]
                )
        ignored = sum((Counter(part.ignored) for part in parts), Counter[str]())
        return cls.trusted(**joined, ignored=dict(ignored))

    @classmethod
    def from_judgements(cls, judgements: Judgements, ids: Any) -> PairTable:
        """Make a table with one statement in each row; `ids` are those of the items."""
        known, single = np.asarray(ids), judgements.single
        if single.any():
            known = known.astype(np.str_)
        left, right = known[judgements.ends].T
        columns: dict[str, Any] = {
            name: np.where(judgements.fills(name), judgements.values[:, column.place], np.nan)
            for name, column in kinds.columns().items()
            if judgements.fills(name).any()
        }
        return cls.trusted(
            left=left,
            right=np.where(single, "", right) if single.any() else right,
            weight=None if (judgements.weight == 1).all() else judgements.weight,
            annotator=judgements.annotator,
            **columns,
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns that are not None, by name, in the order of files."""
        columns = {name: getattr(self, name) for name in pair_columns()}
        return {name: column for name, column in columns.items() if column is not None}

    def changed(self, **columns: Any) -> PairTable:
        """The same table with some columns replaced, or removed by None."""
        return self.trusted(**{"ignored": self.ignored} | self.columns() | columns)

    def statements(self) -> dict[str, Floats]:
        """The columns of statements as numbers, NaN where there is none."""
        known = kinds.columns()
        return {
            name: np.where(column == 0, np.nan, column) if column.dtype.kind == "i" else column
            for name, column in self.columns().items()
            if name in known
        }

    def said(self) -> dict[str, Floats]:
        """Deprecated: the name of `statements` in 0.2."""
        warnings.warn("PairTable.said is now statements", FutureWarning, stacklevel=2)
        return self.statements()

    def ids(self) -> NDArray[Any]:
        """The ids as one (n, 2) array, left and right."""
        self._refuse_single()
        return np.stack([self.left, self.right], 1)

    @property
    def single(self) -> Mask:
        """Mask of the rows about one item, whose ``right`` is empty."""
        return is_empty(self.right)

    @property
    def judged(self) -> Mask:
        """Mask of the rows with a similarity or a difference, or with an answer that means one."""
        return np.asarray(~np.isnan(self.to_array()).all(1))

    def numbered(self) -> tuple[Ids, Indices]:
        """The distinct ids, and positions (n, 2) among them; −1 for an empty ``right``."""
        right = np.where(self.single, self.left, self.right)
        ids, positions = np.unique([self.left, right], return_inverse=True)
        ends = positions.reshape(2, -1).T.astype(np.int64)
        ends[self.single, 1] = -1
        return ids, ends

    def labels(self) -> PairLabels:
        """Similarity and difference as `PairLabels`, as in `to_array`; each row needs one."""
        unjudged = np.flatnonzero(~self.judged)
        if len(unjudged):
            rows = ", ".join(str(row + 1) for row in unjudged[:5])
            more = f" and {len(unjudged) - 5} more" if len(unjudged) > 5 else ""
            raise TableError(
                f"neither similarity nor difference in row {rows}{more}: "
                "take the labels of table[table.judged]"
            )
        # The ranges were checked, or noise admitted, when the table was made.
        return PairLabels(*self.to_array().T, noisy=True)

    def to_array(self) -> Floats:
        """Similarity and difference as one (n, 2) array, NaN where not given.

        The answers "same" and "different" are similarities of 1 and 0.

        Examples
        --------
        >>> PairTable(["a", "b"], ["b", "c"], [0.9, np.nan], None, same=["", "no"]).to_array()
        array([[0.9, nan],
               [0. , nan]])
        """
        values, statements = np.stack([self.similarity, self.difference], 1), self.statements()
        for kind in kinds.KINDS:
            for column, meant in zip(kind.columns, kind.means, strict=False):
                if column.name in statements and meant in ("similarity", "difference"):
                    given = values[:, column.place]
                    np.copyto(given, statements[column.name], where=np.isnan(given))
        return values

    def judgements(self, items: ItemTable | Any) -> Judgements:
        """The statements as `Judgements`, one in each row; ``items`` are as in `positions`.

        Examples
        --------
        >>> table = PairTable(["a", "a"], ["b", ""], [0.5, np.nan], None, label=["", "positive"])
        >>> judgements = table.judgements(["a", "b"])
        >>> judgements.kinds(), judgements.ends.tolist()
        (('similarity', 'label'), [[0, 1], [0, -1]])
        """
        return Judgements.from_columns(
            self._ends(items), self.statements(), self.weight, self.annotator
        )

    def positions(self, items: ItemTable | Any) -> Indices:
        """Positions of both ends of each pair among the items, shape (n, 2).

        ``items`` are a table or ids (m,), compared as text unless both sides are integers.
        TableError for an unknown id, or a row about one item.

        Examples
        --------
        >>> PairTable(["a", "b"], ["c", "a"], [0.5, 0.5], None).positions(["a", "b", "c"])
        array([[0, 2],
               [1, 0]])
        """
        self._refuse_single()
        return self._ends(items)

    def _refuse_single(self) -> None:
        for row in first_rows(self.single):
            raise TableError(
                f"row {row + 1}: right is empty, and only pairs can be used here: "
                "leave out rows about one item"
            )

    def _ends(self, items: ItemTable | Any) -> Indices:
        """Positions of the items, −1 for the right of a row about one item."""
        if isinstance(items, ItemTable):
            known = items.ids
        else:
            with locate_errors():
                known = as_ids("items", items)
                check_unique("items", known)
        rows = find_rows(np.concatenate([self.left, self.right]), known).reshape(2, -1).T
        unknown = rows < 0
        unknown[:, 1] &= ~self.single
        for row in first_rows(unknown.any(1)):
            side = "left" if unknown[row, 0] else "right"
            message = unknown_id(side, getattr(self, side)[row].item(), known)
            raise TableError(f"row {row + 1}: {message}")
        return rows

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, index: Any) -> PairTable:
        rows = row_index(index)
        return self.trusted(**{name: column[rows] for name, column in self.columns().items()})

    def __repr__(self) -> str:
        return f"PairTable(n={len(self)}, columns={list(self.columns())})"


USUAL = 3
"""Number of columns about pairs that messages name."""


def pair_columns() -> list[str]:
    """Columns that a table of pairs can have, in the order of files."""
    return ["left", "right", *kinds.columns(), "weight", "annotator"]


def statement_columns(*, single: bool) -> list[str]:
    """Columns of statements about one item, or about pairs."""
    columns = [column for kind in kinds.KINDS if kind.single == single for column in kind.columns]
    return list(dict.fromkeys(column.name for column in columns))


def check_pairs(table: PairTable, single: Mask | None = None, *, noisy: bool) -> None:
    """Raise a RowError for the first row with a value that cannot be a judgement.

    `single` masks the rows about one item where the ids do not tell.
    """
    statements, known = table.statements(), kinds.columns()
    alone = table.single if single is None else single
    problems: list[tuple[int, str]] = []
    about_pair, about_item = np.zeros((2, len(table)), bool)
    for name, values in statements.items():
        problems += known[name].mistakes(values, noisy=noisy)
        about_pair |= ~np.isnan(values) & (name in statement_columns(single=False))
        about_item |= ~np.isnan(values) & (name in statement_columns(single=True))
    problems += kinds.incomplete(statements)
    *first, last = statement_columns(single=False)[:USUAL]
    missing = f"no judgement; give {', '.join(first)} or {last}, or drop the row"
    if table.ignored:
        missing += f"; {next(iter(table.ignored))!r} is about one item: leave right empty for it"
    for row in first_rows(~alone & ~about_pair):
        problems.append((row, missing))
    for row in first_rows(alone & (about_pair | ~about_item)):
        problems.append((row, "right is empty; every row needs it"))
    if (weight := table.weight) is not None:
        for row in first_rows(~np.isfinite(weight)):
            problems.append((row, f"weight is {quote(weight[row].item())}, not a finite number"))
        for row in first_rows(weight <= 0):
            problems.append((row, f"weight is {quote(weight[row].item())}; weights are positive"))
    if problems:
        raise RowError(*min(problems, key=lambda problem: problem[0]))
