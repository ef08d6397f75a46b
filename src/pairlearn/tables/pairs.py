"""Judgements of pairs as a table: who was compared, and what was said."""

from __future__ import annotations

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
from pairlearn.tables.items import Columnar, ItemTable, row_index


class PairTable(Columnar):
    """One row for each judgement of an ordered pair (x, x'), x on the left.

    Several rows for one pair all count; an item may be paired with itself. A row with an empty
    ``right`` is about x alone. Raises TableError for the first bad row, counted from 1.

    Parameters
    ----------
    left, right : array of shape (n,)
        Ids of x and x', integers or text; if any is text, all are.
    similarity, difference : array of shape (n,), or None
        s = P(y = y') in [0, 1] and c = P(y' = +1) − P(y = +1) in [−1, 1]; NaN where not
        given, None where never given.
    preference : array of shape (n,), optional
        Which one is more positive: −1 or "left", +1 or "right", 0, NaN or "" if not given.
        Every row needs a similarity, a difference or a preference.
    weight : array of shape (n,), optional
        How much each row counts, positive; 1 if not given.
    annotator : array of shape (n,), optional
        Who judged, as text; "" where not known.
    noisy : bool, default False
        Admit finite similarities and differences outside their ranges.
    **others : array of shape (n,)
        Columns of other kinds of statement (`pairlearn.kinds.columns`), such as ``label``.
        Those about one item count in rows with the right "", which need one.

    Attributes
    ----------
    ignored : dict of str to int
        Rows about pairs that fill a column about one item, where it counts for nothing, by column.

    Examples
    --------
    >>> table = PairTable(["a", "b"], ["b", "c"], [0.9, np.nan], [0.1, -0.5])
    >>> len(table), table[1:].left, table.similarity
    (2, array(['b'], dtype='<U1'), array([0.9, nan]))
    >>> PairTable([1], [2], [1.5], [0.0])
    Traceback (most recent call last):
    pairlearn.tables.TableError: row 1: similarity is 1.5, outside [0, 1]; looks like
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
        given = {"similarity": similarity, "difference": difference, "preference": preference}
        given = {name: said for name, said in (given | others).items() if said is not None}
        columns = {**kinds.columns(), "weight": kinds.Column("weight", 0, np.inf)}
        if unknown := given.keys() - columns.keys():
            raise TypeError(f"PairTable has no column {sorted(unknown)[0]!r}")
        with locate_errors():
            ends = as_ids("left", left), as_ids("right", right, empty=bool(others))
            said: dict[str, Any] = {name: columns[name].read(given[name]) for name in given}
            said["weight"] = None if weight is None else columns["weight"].read(weight)
            said["annotator"] = None if annotator is None else as_text("annotator", annotator)
            said["left"], said["right"] = unify_ids(ends)
            alone = said["right"] == ""
            for name, column in said.items():
                if column is not None and len(column) != len(ends[0]):
                    raise TableError(f"{name} has {len(column)} rows and left has {len(ends[0])}")
            single = [name for name in statement_columns(single=True) if name in said]
            unused = {name: int((~np.isnan(said[name]) & ~alone).sum()) for name in single}
            for name in single:
                said[name] = np.where(alone, said[name], np.nan) if np.any(alone) else None
            said["ignored"] = {name: rows for name, rows in unused.items() if rows}
            vars(self).update(vars(self.trusted(**said)))
            check_pairs(self, noisy=noisy)

    @classmethod
    def trusted(cls, **columns: Any) -> PairTable:
        """A table of columns that were checked before."""
        table = cls.__new__(cls)
        table.ignored = dict(columns.get("ignored", {}))
        for name in pair_columns():
            setattr(table, name, columns.get(name))
        for name in ("similarity", "difference"):
            if columns.get(name) is None:
                setattr(table, name, np.full(len(table), np.nan))
        for name, column in kinds.columns().items():
            said = getattr(table, name)
            if column.signed and said is not None and said.dtype != np.int8:
                setattr(table, name, np.nan_to_num(said).astype(np.int8))
        return table

    @classmethod
    def concatenate(cls, parts: Sequence[PairTable]) -> PairTable:
        """Join several tables, in order.

        Where only some have an optional column: no preference, weight 1, annotator "".
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
            found = [getattr(part, name) for part in parts]
            kept = [column for column in found if column is not None]
            if kept:
                empty = {"i": 0, "f": np.nan, "U": ""}[kept[0].dtype.kind]
                fill = np.array(1.0 if name == "weight" else empty, kept[0].dtype)
                joined[name] = np.concatenate(
                    [
                        np.full(len(part), fill) if column is None else column
                        for part, column in zip(parts, found, strict=True)
                    ]
                )
        ignored = sum((Counter(part.ignored) for part in parts), Counter[str]())
        return cls.trusted(**joined, ignored=dict(ignored))

    @classmethod
    def from_judgements(cls, said: Judgements, ids: Any) -> PairTable:
        """Statements as a table, one in each row; `ids` are those of the items."""
        known, single = np.asarray(ids), said.single
        if single.any():
            known = known.astype(np.str_)
        left, right = known[said.ends].T
        columns: dict[str, Any] = {
            name: np.where(said.fills(name), said.values[:, column.place], np.nan)
            for name, column in kinds.columns().items()
            if said.fills(name).any()
        }
        return cls.trusted(
            left=left,
            right=np.where(single, "", right) if single.any() else right,
            weight=None if (said.weight == 1).all() else said.weight,
            annotator=said.annotator,
            **columns,
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns that there are, by name, in the order of files."""
        found = {name: getattr(self, name) for name in pair_columns()}
        return {name: column for name, column in found.items() if column is not None}

    def changed(self, **columns: Any) -> PairTable:
        """The same table with other columns, None for one less."""
        return self.trusted(**{"ignored": self.ignored} | self.columns() | columns)

    def statements(self) -> dict[str, Floats]:
        """The columns of statements as numbers, NaN where nothing is said."""
        found = {name: getattr(self, name) for name in kinds.columns()}
        return {
            name: np.where(column == 0, np.nan, column) if column.dtype.kind == "i" else column
            for name, column in found.items()
            if column is not None
        }

    said = statements
    """Deprecated: the name of `statements` in 0.2."""

    def ids(self) -> NDArray[Any]:
        """The ids as one (n, 2) array, left and right."""
        self._refuse_single()
        return np.stack([self.left, self.right], 1)

    @property
    def single(self) -> Mask:
        """Mask of the rows about one item, whose ``right`` is empty."""
        if self.right.dtype.kind != "U":
            return np.zeros(len(self), bool)
        return np.asarray(self.right == "")

    @property
    def judged(self) -> Mask:
        """Mask of the rows with a similarity or a difference."""
        return ~(np.isnan(self.similarity) & np.isnan(self.difference))

    def numbered(self) -> tuple[Ids, Indices]:
        """The items that there are, and their places (n, 2); −1 for none on the right."""
        right = np.where(self.single, self.left, self.right)
        ids, places = np.unique([self.left, right], return_inverse=True)
        ends = places.reshape(2, -1).T.astype(np.int64)
        ends[self.single, 1] = -1
        return ids, ends

    def labels(self) -> PairLabels:
        """Similarity and difference as `PairLabels`; each row needs one of them."""
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
        """Similarity and difference as one (n, 2) array, NaN where not given."""
        return np.stack([self.similarity, self.difference], 1)

    def judgements(self, items: ItemTable | Any) -> Judgements:
        """What was said about which of the items: one row for each statement; see `positions`.

        Examples
        --------
        >>> table = PairTable(["a", "a"], ["b", ""], [0.5, np.nan], None, label=["", "positive"])
        >>> said = table.judgements(["a", "b"])
        >>> said.kinds(), said.ends.tolist()
        (('similarity', 'label'), [[0, 1], [0, -1]])
        """
        return Judgements.from_columns(
            self._ends(items), self.statements(), self.weight, self.annotator
        )

    def positions(self, items: ItemTable | Any) -> Indices:
        """Rows of both ends of each pair among the items, shape (n, 2).

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
            said = unknown_id(side, getattr(self, side)[row].item(), known)
            raise TableError(f"row {row + 1}: {said}")
        return rows

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, index: Any) -> PairTable:
        rows = row_index(index)
        return self.trusted(**{name: column[rows] for name, column in self.columns().items()})

    def __repr__(self) -> str:
        return f"PairTable(n={len(self)}, columns={list(self.columns())})"


USUAL = 3
"""Columns about pairs that messages name."""


def pair_columns() -> list[str]:
    """Columns that a table of pairs can have, in the order in which they are written."""
    return ["left", "right", *kinds.columns(), "weight", "annotator"]


def statement_columns(*, single: bool) -> list[str]:
    """Columns of statements about one item, or about pairs."""
    found = [one.columns for one in kinds.KINDS if one.single == single]
    return list(dict.fromkeys(column.name for columns in found for column in columns))


def check_pairs(table: PairTable, single: Mask | None = None, *, noisy: bool) -> None:
    """Refuse values that cannot be judgements: a RowError for the first bad row.

    `single` says which rows are about one item where the ids do not.
    """
    said, alone = table.statements(), table.single if single is None else single
    problems: list[tuple[int, str]] = []
    for name, column in kinds.columns().items():
        if name in said:
            problems += column.mistakes(said[name], noisy=noisy)
    problems += kinds.incomplete(said)
    given = {
        single: np.logical_or.reduce(
            [~np.isnan(said[name]) for name in statement_columns(single=single) if name in said]
            or [np.zeros(len(table), bool)]
        )
        for single in (False, True)
    }
    *first, last = statement_columns(single=False)[:USUAL]
    listed = f"{', '.join(first)} or {last}"
    for bad, text in (
        (~alone & ~given[False], f"no judgement; give {listed}, or drop the row"),
        (alone & (given[False] | ~given[True]), "right is empty; every row needs it"),
    ):
        problems += [(row, text) for row in first_rows(bad)]
    if (weight := table.weight) is not None:
        for bad, text in (
            (~np.isfinite(weight), ", not a finite number"),
            (weight <= 0, "; weights are positive"),
        ):
            problems += [
                (row, f"weight is {quote(weight[row].item())}{text}") for row in first_rows(bad)
            ]
    if problems:
        raise RowError(*min(problems, key=lambda problem: problem[0]))
