"""Columns of any type as features: numbers, booleans, dates, categories and free text.

What a column holds is found from its cells, or said. An `ItemEncoder` is fitted to the items of
training by transformers of scikit-learn and keeps what they learnt as plain values, so that a
model folder holds it as JSON and an ONNX graph as constants.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import RowError, TableError, first_rows, shown
from pairlearn.tables.items import as_features
from pairlearn.tables.sources import MISSING_WORDS, NUMBER, convert

ColumnKind: TypeAlias = Literal["number", "boolean", "date", "category", "text"]
KINDS: tuple[ColumnKind, ...] = get_args(ColumnKind)
Values: TypeAlias = dict[str, NDArray[Any]]
"""Columns by name: numbers (NaN is a gap; of a date, days since 1970) or text ("" is a gap)."""

BOOLEANS = dict.fromkeys(("true", "yes", "t", "y", "1"), True) | dict.fromkeys(
    ("false", "no", "f", "n", "0"), False
)
PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""Days after which a season comes again."""
MOST_CATEGORIES = 50
MOST_WORDS = 2000
MOST_CELLS = 1 << 27
"""Words times items: large tables keep fewer words, so that their features fit the memory."""
TOKEN = r"(?u)\b\w\w+\b"
_ID_NAME = re.compile(r"(^|[^a-z])(uu|gu)?id$|[a-z]I[dD]$")


@dataclass(frozen=True)
class Column:
    """What is kept of a column.

    Attributes
    ----------
    name : str
    kind : {"number", "boolean", "date", "category", "text"}
    fill : float, optional
        The median, which stands for gaps; None if there were none in training.
    words : tuple of str
        Categories or words that are a feature each.
    weights : tuple of float
        Inverse document frequencies of words.
    other : bool
        Whether rare and unknown categories are one more feature.
    times : bool
        Whether dates have a time of day.
    """

    name: str
    kind: ColumnKind
    fill: float | None = None
    words: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    other: bool = False
    times: bool = False

    def __post_init__(self) -> None:
        plain = isinstance(self.name, str) and all(isinstance(word, str) for word in self.words)
        if self.kind not in KINDS or not plain:
            raise ValueError(f"no column is named {self.name!r:.80} and of kind {self.kind!r:.80}")
        if not np.isfinite(np.array([self.fill or 0, *self.weights], np.float64)).all():
            raise ValueError(f"column {self.name!r:.80} has numbers that are not finite")
        if self.kind == "text" and len(self.weights) != len(self.words):
            raise ValueError(f"column {self.name!r:.80} has not as many weights as words")

    @property
    def periods(self) -> list[str]:
        """Seasons of a date that are features."""
        return [*PERIODS][: 3 if self.times else 2] if self.kind == "date" else []

    def outputs(self) -> list[str]:
        """Names of its features."""
        if self.kind == "category":
            found = [f"{self.name}={word}" for word in self.words]
            return found + [f"{self.name} is another"] * self.other
        if self.kind == "text":
            return [f"{self.name}: {word}" for word in self.words]
        waves = [f"{self.name}, {wave} of the {one}" for one in self.periods
                 for wave in ("sine", "cosine")]  # fmt: skip
        return [self.name, *waves] + [f"{self.name} is missing"] * (self.fill is not None)

    def encode(self, values: NDArray[Any]) -> NDArray[Any]:
        """Features (m, k) of values (m,)."""
        if self.kind == "category":
            hot = values[:, None] == np.array(self.words, object)[None]
            rest = ~hot.any(1, keepdims=True)
            return np.concatenate([hot, rest], 1) if self.other else hot
        if self.kind == "text":
            return np.asarray(self._vectorizer.transform(values).toarray())
        gap = np.isnan(values)
        if self.fill is None:
            for row in first_rows(gap):
                what = f"feature {shown(self.name)} is missing; fill it in or drop the row"
                raise RowError(row, what)
        known = np.where(gap, 0.0 if self.fill is None else self.fill, values)
        found = [known]
        for period in self.periods:
            angle = 2 * np.pi * (known / PERIODS[period] % 1)
            found += [np.sin(angle), np.cos(angle)]
        return np.stack(found if self.fill is None else [*found, gap], 1)

    @cached_property
    def _vectorizer(self) -> Any:
        vectorizer = _tfidf(vocabulary={word: place for place, word in enumerate(self.words)})
        vectorizer.idf_ = np.array(self.weights)
        return vectorizer


def _tfidf(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(token_pattern=TOKEN, sublinear_tf=True, **options)


@dataclass(frozen=True)
class ItemEncoder:
    """Makes features of columns, as it learnt it from the items of training.

    Parameters
    ----------
    columns : tuple of Column
        The columns that it needs; a table may have others, in any order.

    Examples
    --------
    >>> import pyarrow
    >>> cells = {"age": pyarrow.array([31, None, 9]), "sex": pyarrow.array(["f", "m", "f"])}
    >>> kinds, _ = Choice().kinds_of(cells)
    >>> values = {name: read_cells(name, kind, cells[name]) for name, kind in kinds.items()}
    >>> encoder = ItemEncoder.fit(kinds, values)
    >>> encoder.outputs
    ('age', 'age is missing', 'sex=f', 'sex is another')
    >>> encoder.encode(values)
    array([[31.,  0.,  1.,  0.],
           [20.,  1.,  0.,  1.],
           [ 9.,  0.,  1.,  0.]], dtype=float32)
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not self.columns or not all(isinstance(one, Column) for one in self.columns):
            raise ValueError("an encoder has columns, at least one")

    @classmethod
    def of_numbers(cls, names: Sequence[str]) -> ItemEncoder:
        """Numbers without gaps, as they are."""
        return cls(tuple(Column(str(name), "number") for name in names))

    @classmethod
    def fit(cls, kinds: Mapping[str, ColumnKind], values: Mapping[str, Any]) -> ItemEncoder:
        """Learn from the values of columns of known kinds."""
        found, unusable = [], {}
        for name, kind in kinds.items():
            try:
                found.append(_fitted(name, kind, values[name]))
            except ValueError as error:
                unusable[name] = str(error)
        refuse_columns(unusable)
        return cls(tuple(found))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(one.name for one in self.columns)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(name for one in self.columns for name in one.outputs())

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers that are taken as they are."""
        return all(one.kind == "number" and one.fill is None for one in self.columns)

    @property
    def scaled(self) -> NDArray[np.bool_]:
        """Which features have a scale of their own, unlike those that say yes or no, or words."""
        measured = [
            (one.kind in ("number", "date") and name == one.name)
            for one in self.columns
            for name in one.outputs()
        ]
        return np.array(measured)

    def values(self, cells: Mapping[str, Any], *, typed: bool = False) -> Values:
        """What is in the cells of its columns, which are Arrow arrays."""
        return {one.name: read_cells(one.name, one.kind, cells[one.name], typed=typed)
                for one in self.columns}  # fmt: skip

    def encode(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Features (m, d) of columns."""
        parts = [one.encode(values[one.name]).astype(np.float32) for one in self.columns]
        return np.concatenate(parts, 1)

    def __str__(self) -> str:
        found = []
        for kind in KINDS:
            of = [one for one in self.columns if one.kind == kind]
            words = [f" ({len(one.words):,} words)" * (kind == "text") for one in of]
            named = [one.name + more for one, more in zip(of, words, strict=True)]
            more = f", … {len(of):,} in all" if len(of) > 4 else ""
            found += [f"{kind} {', '.join(named[:4])}{more}"] if of else []
        return "; ".join(found)


def _fitted(name: str, kind: ColumnKind, values: NDArray[Any]) -> Column:
    """What transformers of scikit-learn learn from a column."""
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    if kind == "category":
        encoder = OneHotEncoder(
            min_frequency=2, max_categories=MOST_CATEGORIES, handle_unknown="infrequent_if_exist"
        ).fit(values[:, None])
        (rare,) = encoder.infrequent_categories_
        if rare is not None and len(rare) == len(encoder.categories_[0]):
            raise ValueError("has no value that two items share")
        kept = [str(word) for word in encoder.categories_[0] if rare is None or word not in rare]
        return Column(name, kind, words=tuple(kept), other=rare is not None)
    if kind == "text":
        most = int(np.clip(MOST_CELLS // len(values), 100, MOST_WORDS))
        vectorizer = _tfidf(max_features=most, min_df=2).fit(values)
        words = tuple(map(str, vectorizer.get_feature_names_out()))
        return Column(name, kind, words=words, weights=tuple(vectorizer.idf_.tolist()))
    fill = None
    if np.isnan(values).any():
        median = SimpleImputer(strategy="median").fit(values[:, None].astype(np.float64))
        fill = float(median.statistics_[0])
    return Column(name, kind, fill, times=kind == "date" and bool((values % 1 > 0).any()))


def read_cells(name: str, kind: ColumnKind, cells: Any, *, typed: bool = False) -> NDArray[Any]:
    """A column of cells, an Arrow array, as values of its kind.

    Words such as NA are gaps where numbers, dates or yes and no are wanted.

    Examples
    --------
    >>> import pyarrow
    >>> read_cells("bought", "date", pyarrow.array(["1970-01-02", "n/a", "1970-01-03T12:00"]))
    array([1. , nan, 2.5])
    >>> read_cells("member", "boolean", pyarrow.array(["yes", "No"]))
    array([1., 0.], dtype=float32)
    """
    import pyarrow
    from pyarrow import compute, types

    column = cells.dictionary_decode() if types.is_dictionary(cells.type) else cells
    if kind in ("category", "text"):
        if (
            types.is_floating(column.type)
            and compute.all(compute.equal(compute.round(column), column)).as_py()
        ):
            column = column.cast(pyarrow.int64())  # numbers with gaps, as pandas has them
        text = compute.utf8_trim_whitespace(column.cast(pyarrow.string()).fill_null(""))
        return np.asarray(text.to_numpy(zero_copy_only=False), dtype=object)
    if types.is_decimal(column.type):
        column = column.cast(pyarrow.float64())
    words = None
    if _is_text(column.type):
        words = compute.utf8_trim_whitespace(column)
        missing = compute.is_in(compute.utf8_lower(words), pyarrow.array(sorted(MISSING_WORDS)))
        column = words = compute.if_else(missing, pyarrow.scalar(None, words.type), words)
    if kind == "date":
        if words is not None:
            return _each(name, words, _days, "a date such as 2024-05-31")
        if not types.is_temporal(column.type) or types.is_time(column.type):
            raise RowError(None, f"column {name!r} has the type {column.type}; it must hold dates")
        stamps = column.cast(pyarrow.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / 86_400e6)
    if kind == "boolean" and words is not None:
        return _each(name, words, _truth, "yes or no").astype(np.float32)
    numbers = convert(name, "number", column, typed=typed)
    return as_features([name], numbers[:, None], gaps=True)[:, 0]


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _each(name: str, words: Any, parse: Any, wanted: str) -> NDArray[np.float64]:
    """Every word once, since many are in several rows."""
    encoded = words.dictionary_encode()
    numbers = [parse(word) for word in encoded.dictionary.to_pylist()]
    rows = np.asarray(encoded.indices.fill_null(len(numbers)))
    for place, number in enumerate(numbers):
        if number is None:
            cell = shown(encoded.dictionary[place].as_py())
            raise RowError(first_rows(rows == place)[0], f"{name} is {cell}, not {wanted}")
    values: NDArray[np.float64] = np.array([*numbers, np.nan], np.float64)[rows]
    return values


def _days(word: str) -> float | None:
    try:
        found = datetime.fromisoformat(word)
    except ValueError:
        return None
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86_400


def _truth(word: str) -> bool | None:
    return BOOLEANS.get(word.lower())


@dataclass(frozen=True)
class Choice:
    """Which columns of a table of items are features, and what they hold.

    Parameters
    ----------
    columns : sequence of str
        The features; all columns but the id if empty.
    ignore : sequence of str
        Columns that are none.
    kinds : mapping of str to str
        What some columns hold: "number", "boolean", "date", "category" or "text".
    """

    columns: Sequence[str] = ()
    ignore: Sequence[str] = ()
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)

    def named(self, names: Sequence[str]) -> list[str]:
        """The columns to look at, of those that a table has."""
        for option in ("columns", "ignore", "kinds"):
            for name in getattr(self, option):
                if name not in names:
                    have = ", ".join(map(shown, names[:8])) + ", …" * (len(names) > 8)
                    raise TableError(f"{option}={name}: no such column; the columns are {have}")
        for name, kind in self.kinds.items():
            if kind not in KINDS:
                wanted = ", ".join(KINDS)
                raise TableError(f"kinds={name}:{kind}: a column is one of {wanted}")
        chosen = [name for name in self.columns or names if name not in self.ignore]
        if not chosen:
            raise TableError("no column is left to learn from")
        return chosen

    def kinds_of(
        self, cells: Mapping[str, Any], *, typed: bool = False
    ) -> tuple[dict[str, ColumnKind], tuple[str, ...]]:
        """What columns hold, by some of their cells, and what is said of columns left out.

        Raises
        ------
        TableError
            That names every column that cannot be used.
        """
        found: dict[str, ColumnKind] = {}
        unusable, empty = {}, []
        for name, column in cells.items():
            if column.null_count == len(column):
                empty.append(f"column {shown(name)} is empty, and left out")
                continue
            try:
                kind = self.kinds.get(name) or find_kind(name, column, typed=typed)
            except ValueError as error:
                unusable[name] = str(error)
                continue
            if kind not in ("number", "text") and not column.null_count and _count(column) == 1:
                empty.append(f"column {shown(name)} has one value, and is left out")
            else:
                found[name] = kind
        refuse_columns(unusable)
        if not found:
            raise TableError(f"no features: {'; '.join(empty)}")
        return found, tuple(empty)


def refuse_columns(unusable: Mapping[str, str]) -> None:
    """Say of every column that cannot be used why, and what to do about all."""
    if unusable:
        said = "; ".join(f"{shown(name)} {why}" for name, why in unusable.items())
        these = f"column {said}" if len(unusable) == 1 else f"{len(unusable)} columns: {said}"
        raise TableError(
            f"cannot learn from {these}. Leave out with ignore={','.join(unusable)}, or say what "
            f"they hold with kinds={next(iter(unusable))}:category"
        )


def find_kind(name: str, column: Any, *, typed: bool = False) -> ColumnKind:
    """What a column holds, by its type and its cells.

    Text is numbers or dates if half of it is: the rest are errors then. Words that recur are
    categories, and phrases are text.

    Examples
    --------
    >>> import pyarrow
    >>> find_kind("when", pyarrow.array(["2024-02-01", "2024-02-02"]))
    'date'
    >>> find_kind("code", pyarrow.array([f"k{n}" for n in range(9)]))
    Traceback (most recent call last):
    ValueError: has another value in every row, as ids have
    """
    from pyarrow import types

    kind = column.type
    if types.is_boolean(kind):
        return "boolean"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if types.is_dictionary(kind):
        return (
            "category"
            if _is_text(kind.value_type)
            else find_kind(name, column.dictionary_decode(), typed=typed)
        )
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    if not numeric and not _is_text(kind):
        raise ValueError(f"has the type {kind}")
    distinct = len(column) > 4 and _count(column) == len(column)
    if not numeric:
        cells = [word for cell in column.drop_null().to_pylist() if (word := cell.strip())]
        known = [cell for cell in cells if cell.lower() not in MISSING_WORDS]
        numbers = sum(NUMBER.fullmatch(cell) is not None for cell in known)
        numeric = not typed and 2 * numbers >= len(known) > 0
        if not numeric:
            if known and all(_truth(cell) is not None for cell in known):
                return "boolean"
            if 2 * sum(_days(cell) is not None for cell in known) >= len(known) > 0:
                return "date"
            counts = Counter(cells)
            phrases = sum(len(cell.split()) for cell in counts) >= 2 * len(counts)
            if phrases and 2 * len(counts) > len(cells):
                return "text"
    if distinct and (not numeric or _ID_NAME.search(name)):
        raise ValueError("has another value in every row, as ids have")
    return "number" if numeric else "category"


def _count(column: Any) -> int:
    from pyarrow import compute

    return int(compute.count_distinct(column).as_py())
