"""The table of statements about items.

Every row is one statement of one kind (`kinds`) about an ordered pair of items, or about
one item. Files and the studio produce this table; checks, training and measures take it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import (
    LISTED,
    MISSING_WORDS,
    Floats,
    Ids,
    Indices,
    Mask,
    RowError,
    TableError,
    as_ids,
    as_text,
    find_rows,
    first_rows,
    locate_errors,
    quote,
    unify_ids,
    unknown_id,
    whole_number,
)
from pairlearn.judgements import kinds as known_kinds
from pairlearn.judgements.kinds import KINDS, Column, Kind, code, columns_of, kind
from pairlearn.judgements.scales import Scale
from pairlearn.judgements.sets import Sets, check_classes, join_set, members_of, names_in, read_sets
from pairlearn.labels import PairLabels
from pairlearn.randomness import permutation, stream

__all__ = ["Judgements"]

#: The columns of a table, in which every statement has a value.
OF_ROWS = ("ends", "kind", "values", "weight", "annotator", "about", "q")
#: The value of every statement in a column that is not given.
WHERE_MISSING = {"weight": 1.0, "annotator": "", "about": "", "q": 1.0}


@dataclass(frozen=True, eq=False)
class Judgements:
    """Statements about items, one in each row.

    Parameters
    ----------
    ends : array of int, shape (n, 2)
        Positions of x and x' among the items; −1 for x' where a statement is about x alone.
    kind : array of int, shape (n,)
        Which kind each row is, as in `pairlearn.judgements.kinds.KINDS`.
    values : array of shape (n, 2)
        The values u and v of each row; 0 where the kind has none.
    weight : array of shape (n,), optional
        How much each row counts; 1 by default.
    annotator : array of shape (n,), optional
        Who made each statement, as text.
    ids : array of shape (m,), optional
        Names of the items that `ends` refer to, integers or text.
    about : array of shape (n,), optional
        The set of classes that each statement is about, as text such as "cat" or "cat|dog"; ""
        where it names none, as a similarity that says "the same class at all".
    q : array of shape (n,), optional
        The probability with which that set was chosen to be asked about; 1 by default.
    classes : tuple of str, optional
        Names of all classes, if there are more than two; see `of_classes`.

    See Also
    --------
    pairlearn.io.read_pairs : Reads statements from a file.
    pairlearn.judgements.kinds.KINDS : The kinds of statement.

    Examples
    --------
    >>> table = Judgements.from_pairs([[0, 1], [1, 2]], [[0.9, 0.1], [0.4, np.nan]])
    >>> len(table), table.kinds(), table[1:].labels()
    (2, ('both', 'similarity'), PairLabels(n=1, similarity=[0.4], difference=[nan]))
    """

    ends: Indices
    kind: NDArray[np.int8]
    values: Floats
    weight: Floats | Any = None
    annotator: NDArray[np.str_] | None = None
    ids: Ids | None = None
    about: Sets | None = None
    q: Floats | None = None
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        n = len(self.ends)
        if self.weight is None:
            object.__setattr__(self, "weight", np.ones(n))
        for name in OF_ROWS:
            shape = (n, 2) if name in ("ends", "values") else (n,)
            column = getattr(self, name)
            if column is not None and np.shape(column) != shape:
                raise ValueError(f"{name} must have shape {shape}; got {np.shape(column)}")

    @classmethod
    def from_columns(
        cls,
        ends: Any,
        columns: Mapping[str, Any],
        weight: Any = None,
        annotator: Any = None,
        ids: Any = None,
        *,
        about: Any = None,
        q: Any = None,
    ) -> Judgements:
        """Make statements from the columns of a table, NaN where nothing is stated.

        A row with the columns of several kinds makes several statements, which follow each other: a
        similarity and a difference together are one of kind "both", a preference in the same row is
        another.

        Parameters
        ----------
        ends : array of int, shape (m, 2)
            The two items of each row of the table; −1 for the second where a row is about one.
        columns : mapping of str to array of shape (m,)
            Values by the names of the kinds' columns.
        weight, annotator : array of shape (m,), optional
        ids : array, optional
            Names of the items.
        about, q : array of shape (m,), optional
            The set of classes that the row is about, and with which probability it was chosen.

        Examples
        --------
        >>> soft = {"similarity": [0.4, np.nan], "difference": [0.1, np.nan]}
        >>> table = Judgements.from_columns([[0, 1], [2, 3]], soft | {"preference": [1, -1]})
        >>> table.kinds(), table.ends.tolist()
        (('both', 'preference'), [[0, 1], [0, 1], [2, 3]])
        """
        ends = np.asarray(ends, np.int64)
        weight = None if weight is None else np.asarray(weight, np.float64)
        with locate_errors(lambda row: f"row {row}"):
            annotator = None if annotator is None else as_text("annotator", annotator)
            numbers = known_kinds.read_columns(columns)
            chosen = _read_shares({"q": q})
            if problems := [*known_kinds.mistakes(numbers, noisy=True), *_refused_shares(chosen)]:
                raise RowError.listing(problems)
            sets = None if about is None else read_sets(about)
            of_row = {"weight": weight, "annotator": annotator, "about": sets, **chosen}
            return cls._from_numbers(ends, numbers, ids, of_row)

    @classmethod
    def _from_numbers(
        cls, ends: Indices, numbers: Mapping[str, Floats], ids: Any, of_row: Mapping[str, Any]
    ) -> Judgements:
        """Make statements from columns of numbers that were checked before."""
        stated = np.full((len(ends), len(KINDS)), -1, np.int8)
        # Kinds with more columns come later, and take the rows that have all of them.
        for number in sorted(range(len(KINDS)), key=lambda number: len(KINDS[number].columns)):
            if numbers.keys() >= {*KINDS[number].named}:
                filled = [~np.isnan(numbers[name]) for name in KINDS[number].named]
                stated[np.logical_and.reduce(filled), _place(number)] = number
        for codes in stated.T:
            check_ends(ends, codes)
        row, place = np.nonzero(stated >= 0)
        kinds, values = stated[row, place], np.zeros((len(row), 2))
        for number in np.unique(kinds):
            rows = kinds == number
            for column in KINDS[number].columns:
                values[rows, column.place] = numbers[column.name][row[rows]]
            for message in KINDS[number].mistakes(ends[row[rows]], *values[rows].T):
                raise ValueError(message)
        given = {name: column[row] for name, column in of_row.items() if column is not None}
        return cls(ends[row], kinds, values, ids=ids, **given)

    @classmethod
    def from_cells(
        cls,
        ends: Indices,
        cells: Mapping[str, Any],
        ids: Ids,
        *,
        noisy: bool = False,
        scales: Mapping[str, Any] = MappingProxyType({}),
    ) -> Judgements:
        """Make statements from the columns of a file; RowError lists the rows with bad values.

        ``cells`` are words or numbers by the names of all columns but ``left`` and ``right``, and
        ``scales`` of some columns are those that answers were given on.
        """
        known, alone, cells = known_kinds.columns(), ends[:, 1] < 0, dict(cells)
        if "about" in cells:
            cells["about"] = read_sets(cells["about"])
            if "label" in cells:
                cells |= classes_in_labels(cells["label"], cells["about"])
        numbers = known_kinds.read_columns({name: cells[name] for name in known if name in cells})
        for name in numbers.keys() & columns_of(single=True):
            numbers[name] = np.where(alone, numbers[name], np.nan)  # may be anything beside pairs
        for name, scale in scales.items():
            if scale is not None and name in numbers:
                numbers[name] = Scale.of(scale).map(name, numbers[name], known[name].low)
        shares = _read_shares(cells)
        about_pair, about_item = (
            alone & False
            | np.logical_or.reduce([~np.isnan(numbers[n]) for n in names if n in numbers])
            for names in (columns_of(single=False), columns_of(single=True))
        )
        problems = [*known_kinds.mistakes(numbers, noisy=noisy), *_refused_shares(shares)]
        *first, last = columns_of(single=False)[:3]
        for row in first_rows(~alone & ~about_pair, LISTED):
            problems.append(
                (row, f"no judgement; give {', '.join(first)} or {last}, or drop the row")
            )
        for row in first_rows(alone & (about_pair | ~about_item), LISTED):
            problems.append((row, "right is empty; every row needs it"))
        if problems:
            raise RowError.listing(problems)
        try:
            of_row = {name: cells.get(name) for name in ("annotator", "about")} | shares
            return cls._from_numbers(ends, numbers, ids, of_row)
        except ValueError as error:
            raise RowError(None, str(error)) from None

    @classmethod
    def from_pairs(
        cls,
        items: Any,
        labels: Any,
        about: Any = None,
        annotator: Any = None,
        weight: Any = None,
        q: Any = None,
    ) -> Judgements:
        """Make statements from the similarities and differences of pairs.

        Parameters
        ----------
        items : array of int, shape (n, 2)
            Positions of x and x' among the items.
        labels : PairLabels, or array of shape (n, 2)
            Similarity and difference, NaN where not given.
        about, annotator, weight, q : array of shape (n,), optional
            The set of classes that each row is about, who judged the pair, how much it counts, and
            with which probability the set was chosen.
        """
        ends = np.asarray(items)
        if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
            raise ValueError(
                "items must be positions, whole numbers of shape (n, 2); got "
                f"{ends.dtype} of shape {ends.shape}"
            )
        if not isinstance(labels, PairLabels):
            labels = PairLabels.from_array(labels)
        values = np.asarray(labels.to_array(), np.float64)
        if len(values) != len(ends):
            raise ValueError(f"labels has {len(values)} rows and items has {len(ends)}")
        for row in first_rows(np.isnan(values).all(1)):
            raise ValueError(f"labels have no judgement in row {row}: drop it")
        columns = {"similarity": values[:, 0], "difference": values[:, 1]}
        return cls.from_columns(ends, columns, weight, annotator, about=about, q=q)

    @classmethod
    def about_items(
        cls,
        name: str,
        items: Any,
        values: Any,
        weight: Any = None,
        ids: Any = None,
        *,
        about: Any = None,
    ) -> Judgements:
        """Make statements of one kind about single items.

        Examples
        --------
        >>> Judgements.about_items("label", [3, 4], [1, 0]).ends.tolist()
        [[3, -1], [4, -1]]
        """
        items, values = np.asarray(items, np.int64), np.asarray(values, np.float64)
        (first, *_), stated = kind(name).columns, values if values.ndim == 1 else values[:, 0]
        for row in first_rows(~((first.low <= stated) & (stated <= first.high))):
            span = f"[{first.low:g}, {first.high:g}]"
            raise ValueError(f"{first.name} must lie in {span}; row {row} is {stated[row]:g}")
        table = cls(
            np.stack([items, np.full_like(items, -1)], 1),
            np.full(len(items), code(name), np.int8),
            values if values.ndim == 2 else np.stack([values, np.zeros_like(values)], 1),
            None if weight is None else np.asarray(weight, np.float64),
            ids=ids,
            about=None if about is None else read_sets(about),
        )
        check_ends(table.ends, table.kind)
        return table

    @classmethod
    def in_groups(cls, of_item: Any, shares: Mapping[Any, Any]) -> Judgements:
        """Make statements about the share of positives in groups of items.

        A share θ of n items with standard error τ counts as much as the classes of
        n/(1 + nτ²/θ(1 − θ)) of them: all of them where τ is 0.

        Parameters
        ----------
        of_item : array of shape (N,)
            The group of each item.
        shares : mapping
            {group: share} or {group: (share, standard error)} of the groups with known shares.

        Examples
        --------
        >>> table = Judgements.in_groups(["a", "b", "a"], {"a": 0.3, "b": (0.9, 0.3)})
        >>> table.ends[:, 0].tolist(), table.u.tolist(), table.weight.round(2).tolist()
        ([0, 2, 1], [0.3, 0.3, 0.9], [1.0, 1.0, 0.5])
        """
        parts = []
        for number, (group, stated) in enumerate(shares.items()):
            share, error = stated if isinstance(stated, (tuple, list)) else (stated, 0.0)
            rows = np.flatnonzero(np.asarray(of_item) == group)
            if not 0 <= share <= 1 or not error >= 0 or not len(rows):
                raise ValueError(
                    f"group {group!r} has {len(rows)} items, share {share:g} and uncertainty "
                    f"{error:g}: give items, a share in [0, 1], an uncertainty of at least 0"
                )
            values = np.tile([share, float(number)], (len(rows), 1))
            weight = 1 / (1 + len(rows) * error**2 / max(share * (1 - share), 0.01))
            parts.append(cls.about_items("group", rows, values, np.full(len(rows), weight)))
        return cls.concatenate(parts)

    @classmethod
    def silent(cls, items: Any) -> Judgements:
        """Make rows that state no more than that items belong to the population."""
        return cls.about_items("unlabelled", items, np.ones(len(items)))

    @classmethod
    def concatenate(cls, parts: Sequence[Judgements]) -> Judgements:
        """Concatenate tables about the same items; an unknown annotator or set becomes ""."""
        if not parts:
            raise ValueError("parts is empty: give at least one table")
        if len(parts) == 1:
            return parts[0]
        named = [part.ids for part in parts if part.ids is not None]
        if any(not np.array_equal(ids, named[0]) for ids in named[1:]):
            if len(named) < len(parts):
                raise ValueError("parts with and without ids are not about the same items")
            joined: Any = np.unique(np.concatenate(unify_ids(named)))
            parts = [part.located(joined) for part in parts]
            named = [joined]
        columns: dict[str, Any] = {
            name: np.concatenate([part._column(name) for part in parts])
            for name in OF_ROWS
            if any(getattr(part, name) is not None for part in parts)
        }
        classes = next((part.classes for part in parts if part.classes is not None), None)
        return cls(**columns, ids=named[0] if named else None, classes=classes)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, rows: Any) -> Judgements:
        if isinstance(rows, (int, np.integer)):
            rows = [rows]
        given = {name: getattr(self, name) for name in OF_ROWS}
        return replace(self, **{k: v[rows] for k, v in given.items() if v is not None})

    def __eq__(self, other: object) -> bool:
        """Whether both make the same statements about items of the same names, in order."""
        if not isinstance(other, Judgements):
            return NotImplemented
        return (self.ids is None) == (other.ids is None) and all(
            map(np.array_equal, self._comparable(), other._comparable())
        )

    __hash__ = None  # type: ignore[assignment]  # its arrays can change

    def _comparable(self) -> list[NDArray[Any]]:
        items = [self.ends] if self.ids is None else [self.left, self.right]
        return [*items, self.kind, self.values, *map(self._column, WHERE_MISSING)]

    def _column(self, name: str) -> NDArray[Any]:
        """A column of `OF_ROWS`, filled where it is not given."""
        column: NDArray[Any] | None = getattr(self, name)
        return np.full(len(self), WHERE_MISSING[name]) if column is None else column

    @property
    def sets(self) -> Sets:
        """The set of classes that each row is about, "" for none."""
        return self._column("about")

    @property
    def inverse_q(self) -> Floats:
        """Weight of each row, divided by the probability with which its set was chosen."""
        return np.asarray(self.weight if self.q is None else self.weight / self.q)

    def members(self) -> Mask:
        """Mask (n, K) of the classes that each row is about; none for "the same class at all"."""
        return members_of(self.sets, self.classes or ())

    def of_classes(self, classes: Sequence[Any] | NDArray[Any] | None = None) -> Judgements:
        """The table for a task with these classes, by default those that it names.

        With one name that class is set against the rest, "not NAME"; with two, the last class is
        the positive one, and a statement about the other becomes one about it: then there are no
        sets any more. ValueError for a statement that says nothing about such classes.

        Examples
        --------
        >>> labels, about = [[0.9, 0.1], [0.2, -0.5]], ["cat", "dog"]
        >>> table = Judgements.from_pairs([[0, 1], [1, 2]], labels, about=about)
        >>> table.of_classes().v.tolist(), table.of_classes(["cat", "dog", "cow"]).classes
        ([-0.1, -0.5], ('cat', 'dog', 'cow'))
        """
        found = names_in(self.about)
        if classes is None:
            classes = (f"not {found[0]}", *found) if len(found) == 1 else found
            if not classes:
                return self
        names = check_classes(classes)
        if len(names) == 2 and self.about is None:
            return self
        masks = members_of(self.sets, names)
        named = masks.any(1)
        if len(names) == 2:
            values, other = self.values.copy(), masks[:, 0]
            for number in np.unique(self.kind[other]):
                rows = other & (self.kind == number)
                values[rows] = KINDS[number].complement(values[rows])
            return replace(self, values=values, about=None, q=None, classes=None)
        bare = ~named & ~self._of_kinds(lambda kind: kind.about_all)
        for row in first_rows(bare):
            known = KINDS[self.kind[row]]
            raise TableError(
                f"a {known.singular or known.name} is about a class, or a set of classes, where "
                f"there are {len(names)}: name it in the column about (rows without: {bare.sum()})"
            )
        return replace(self, classes=names)

    @property
    def left(self) -> Ids:
        """Ids of the first items."""
        return self._ids()[self.ends[:, 0]]

    @property
    def right(self) -> Ids:
        """Ids of the second items, "" where a statement is about one."""
        ids, single = self._ids(), self.single
        if not single.any():
            return ids[self.ends[:, 1]]
        return np.where(single, "", ids.astype(np.str_)[self.ends[:, 1]])

    def _ids(self) -> Ids:
        if self.ids is None:
            raise ValueError("these judgements refer to positions: they have no ids of items")
        return self.ids

    def located(self, ids: Any) -> Judgements:
        """The same statements about positions in other ids; TableError for an unknown id.

        Examples
        --------
        >>> names = np.array(["a", "c"])
        >>> table = Judgements.from_columns([[0, 1]], {"similarity": [0.5]}, ids=names)
        >>> table.located(["a", "b", "c"]).ends
        array([[0, 2]])
        """
        wanted, known = self._ids(), as_ids("items", ids)
        places = np.append(find_rows(wanted, known), -1)
        ends = places[self.ends]
        for row in first_rows(((ends < 0) & (self.ends >= 0)).any(1)):
            second = int(ends[row, 0] >= 0)
            message = unknown_id(
                ("left", "right")[second], wanted[self.ends[row, second]].item(), known
            )
            raise TableError(f"row {row + 1}: {message}")
        return replace(self, ends=ends, ids=known)

    def used(self) -> Indices:
        """Positions of the items that some statement is about."""
        items = np.unique(self.ends)
        return items[items >= 0]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={count}" for name, count in self.counts().items())
        return f"Judgements(n={len(self)}{counts and ', ' + counts})"

    @property
    def u(self) -> Floats:
        """First value of each row: the similarity, preference or class."""
        return self.values[:, 0]

    @property
    def v(self) -> Floats:
        """Second value of each row: the difference."""
        return self.values[:, 1]

    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds that occur."""
        return tuple(KINDS[number].name for number in np.unique(self.kind))

    def counts(self) -> dict[str, int]:
        """Number of statements of each kind that occurs."""
        return {name: int(self.of(name).sum()) for name in self.kinds()}

    def of(self, *names: str) -> Mask:
        """Mask of the rows of these kinds."""
        mask: Mask = np.isin(self.kind, [code(name) for name in names])
        return mask

    def has(self, column: str) -> Mask:
        """Mask of the rows that have a value in a column, such as "similarity"."""
        return self._of_kinds(lambda kind: column in (*kind.named, *kind.means))

    def _of_kinds(self, predicate: Callable[[Kind], bool]) -> Mask:
        return self.of(*(known.name for known in KINDS if predicate(known)))

    def fixed(self, *, prior_known: bool = False) -> frozenset[str]:
        """What the statements determine: the "level" of the posteriors and their "side"."""
        return frozenset().union(*(kind(name).fixes(prior_known) for name in self.kinds()))

    @property
    def soft(self) -> Mask:
        """Mask of the rows with a similarity or a difference, on which accuracies are measured."""
        return self.has("similarity") | self.has("difference")

    def hard(self) -> Mask:
        """Mask of the rows with hard answers, yes or no rather than a probability.

        Examples
        --------
        >>> Judgements.from_pairs([[0, 1], [1, 2]], [[1, 0], [0.9, 0.1]]).hard()
        array([ True, False])
        """
        return np.asarray(np.isin(np.nan_to_num(self.values), (-1, 0, 1)).all(1))

    @property
    def joint(self) -> Mask:
        """Mask of the rows that are completed together before each epoch."""
        return self._of_kinds(lambda kind: kind.joint)

    @property
    def single(self) -> Mask:
        """Mask of the rows about one item."""
        return self.ends[:, 1] < 0

    @property
    def known(self) -> Mask:
        """Mask of the rows that state the class of one item, or how likely it is."""
        return self.single & self._of_kinds(lambda kind: kind.states)

    @property
    def one_sided(self) -> Mask:
        """Mask of the rows about one item that do not determine how frequent the classes are."""
        return self.known & self._of_kinds(lambda kind: "level" not in kind.fixes(False))

    @property
    def says_nothing(self) -> Mask:
        """Mask of the rows that `silent` makes."""
        return self._of_kinds(lambda kind: kind.implied)

    @property
    def similarity(self) -> Floats:
        """Similarity of every row, NaN where not given."""
        return np.where(self.has("similarity"), self.u, np.nan)

    @property
    def difference(self) -> Floats:
        """Difference of every row, NaN where not given."""
        return np.where(self.has("difference"), self.v, np.nan)

    def answers(self) -> Floats:
        """Similarity and difference (n, 2) of every row, NaN where not given."""
        return np.stack([self.similarity, self.difference], 1)

    def labels(self) -> PairLabels:
        """Similarities and differences of the rows that have one, NaN where not given."""
        return PairLabels(*self.answers()[self.soft].T, noisy=True)

    def file_rows(self) -> Indices:
        """Row of a file in which each statement stands.

        Consecutive statements of one annotator about the same items share a row where their columns
        do not, and stand in the order of the kinds.
        """
        place = np.array([_place(number) for number in range(len(KINDS))])[self.kind]
        same = (self.ends[1:] == self.ends[:-1]).all(1) & (self.weight[1:] == self.weight[:-1])
        same &= place[1:] > place[:-1]
        for column in (self.annotator, self.about, self.q):
            if column is not None:
                same &= column[1:] == column[:-1]
        return np.cumsum(np.append(False, ~same)[: len(self)])

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns of a file, NaN or masked where a cell is empty."""
        row = self.file_rows()
        firsts = np.flatnonzero(np.diff(row, prepend=-1))
        right: NDArray[Any] = self._ids()[self.ends[:, 1]]
        if self.single.any():
            right = np.ma.masked_where(self.single, right)
        columns: dict[str, NDArray[Any]] = {"left": self.left[firsts], "right": right[firsts]}
        for name, column in known_kinds.columns().items():
            filled = self.of(*(kind.name for kind in KINDS if name in kind.named))
            if filled.any() or (not len(self) and name == "similarity"):
                columns[name] = np.full(len(firsts), np.nan)
                columns[name][row[filled]] = self.values[filled, column.place]
        for name in WHERE_MISSING:
            column = getattr(self, name)
            if column is not None and (name != "weight" or (column != 1).any()):
                columns[name] = column[firsts]
        return columns

    def scaled(self, factor: float) -> Judgements:
        """The same rows with weights multiplied by a factor."""
        return replace(self, weight=self.weight * factor)

    def item_weight(self, items: int) -> Floats:
        """Total weight of each item in statements about pairs; without any, in all statements."""
        rows = self[~self.single] if not self.single.all() else self
        ends, weight = rows.ends.ravel(), np.repeat(rows.weight, 2)
        return np.bincount(ends[ends >= 0], weight[ends >= 0], items).astype(np.float64)

    def packed(self, seed: int) -> Judgements:
        """Rows for training, with two statements about single items in one row.

        Two statements of the same kind, weight and set of classes share a row, in random order,
        with the second value as v. An odd one out is paired with itself at half the weight, and so
        are statements with two values.

        Examples
        --------
        >>> rows = Judgements.about_items("label", [5, 6, 7], [1, 0, 1]).packed(seed=0)
        >>> rows.ends.tolist(), rows.weight.tolist()
        ([[6, 7], [5, 5]], [1.0, 0.5])
        """
        single = self.single
        if not single.any():
            return self
        parts = [self[~single], self[single & self.joint].doubled()]
        rows = self[single & ~self.joint]
        sets = np.unique(rows.sets, return_inverse=True)[1].reshape(-1)
        keys = np.stack([rows.kind, rows.weight, sets], 1)
        group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
        order = permutation(stream(seed, "labelled"), len(rows))
        order = order[np.argsort(group[order], kind="stable")]
        first = np.searchsorted(group[order], group[order])  # of the group, in this order
        at = np.flatnonzero((np.arange(len(order)) - first) % 2 == 0)
        alone = np.append(first, -1)[at + 1] != first[at]
        one, other = order[at], order[np.where(alone, at, at + 1)]
        packed = replace(rows[one], annotator=None, weight=rows.weight[one] / (1 + alone))
        ends = np.stack([rows.ends[one, 0], rows.ends[other, 0]], 1)
        parts.append(replace(packed, ends=ends, values=np.stack([rows.u[one], rows.u[other]], 1)))
        return Judgements.concatenate([part for part in parts if len(part)])

    def doubled(self) -> Judgements:
        """Rows for training, one for each statement, with single items paired with themselves.

        These rows have half the weight, so that they count as in `packed`.
        """
        single = self.single
        if not single.any():
            return self
        ends, values, with_u = self.ends.copy(), self.values.copy(), single & ~self.joint
        ends[single, 1], values[with_u, 1] = ends[single, 0], values[with_u, 0]
        weight = np.where(single, self.weight / 2, self.weight)
        return replace(self, ends=ends, values=values, weight=weight)

    def weight_columns(self, names: Sequence[str]) -> list[Floats]:
        """For each kind the weights of its rows, zero for others; all together have mean one."""
        scale = len(self) / self.weight.sum()
        return [np.where(self.of(name), self.weight * scale, 0.0) for name in names]


#: The largest value of columns of positive numbers, which are 1 where empty, and what they are.
SHARES = {
    "weight": (sys.float_info.max, "weights are positive numbers"),
    "q": (1.0, "probabilities of a choice lie in (0, 1]"),
}


def _read_shares(cells: Mapping[str, Any]) -> dict[str, Floats]:
    """Those of the `SHARES` that are given."""
    given = {name: cells[name] for name in SHARES if cells.get(name) is not None}
    numbers = {name: Column(name, 0, np.inf).read(values) for name, values in given.items()}
    return {name: np.where(np.isnan(column), 1.0, column) for name, column in numbers.items()}


def _refused_shares(shares: Mapping[str, Floats]) -> Iterator[tuple[int, str]]:
    """Rows with a share out of its range, and the reason."""
    for name, column in shares.items():
        most, meaning = SHARES[name]
        for row in first_rows(~((column > 0) & (column <= most)), LISTED):
            yield row, f"{name} is {quote(column[row].item())}; {meaning}"


def classes_in_labels(label: Any, sets: Sets) -> dict[str, Any]:
    """Labels with the name of a class, as labels "positive" about it; and the sets of classes.

    A cell that is neither a word for a label nor empty is such a name, if its set is empty.
    """
    cells = np.array([str(whole_number(cell)) for cell in np.asarray(label).tolist()], np.str_)
    words = known_kinds.columns()["label"].words
    named = ~np.isin(np.char.lower(cells), ["", *words, *MISSING_WORDS]) & (sets == "")
    names = np.array([join_set([cell]) for cell in cells.tolist()], np.str_)
    return {"label": np.where(named, "positive", cells), "about": np.where(named, names, sets)}


def check_ends(ends: Indices, kinds: NDArray[np.int8]) -> None:
    """ValueError for the first statement (kind −1 is none) about the wrong number of items."""
    single = np.array([*(known.single for known in KINDS), False])[kinds]
    wrong = (ends[:, 0] < 0) | (single != (ends[:, 1] < 0))
    for row in first_rows((kinds >= 0) & wrong):
        known, items = KINDS[kinds[row]], " and ".join(map(str, ends[row]))
        number, remedy = "two items", "give two positions from 0 on"
        if known.single:
            number, remedy = "one item", "give its position and -1, or use Judgements.about_items"
        raise ValueError(f"row {row}: {known.name!r} is about {number}; got {items}: {remedy}")


def _place(number: int) -> int:
    """The first kind that shares a column with a kind: a row has one statement of such kinds."""
    named = {*KINDS[number].named}
    return next(place for place, known in enumerate(KINDS) if named & {*known.named})
