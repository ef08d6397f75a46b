"""Columns of any type as features: numbers, booleans, dates, categories and free text.

An `ItemEncoder` is fitted to the training items. It holds plain values, which a model folder stores
as JSON and an ONNX graph as constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Mask, RowError, TableError, first_rows, quote
from pairlearn.io.cells import (
    COLUMN_KINDS,
    MOST_CATEGORIES,
    PIXELS,
    ColumnKind,
    UnusableColumns,
    Values,
    list_names,
    read_values,
)

#: Words of a text with a feature each, the most frequent ones.
MOST_WORDS = 2000
#: Words times items: large tables keep fewer words, so that their features fit in memory.
MOST_CELLS = 1 << 27
TOKEN = r"(?u)\b\w\w+\b"


@dataclass(frozen=True)
class ItemColumn:
    """What an encoder has learnt about a column.

    ``fill`` is the median, which replaces gaps (None if training had none). ``words`` are the
    categories or words with a feature each, ``weights`` their inverse document frequencies. With
    ``other``, rare and unknown categories are one more feature.
    """

    name: str
    kind: ColumnKind
    fill: float | None = None
    words: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    other: bool = False

    def __post_init__(self) -> None:
        if self.kind == "text" and len(self.weights) != len(self.words):
            raise ValueError(f"column {self.name!r:.80} does not have as many weights as words")

    def outputs(self) -> list[str]:
        """Names of its features."""
        if self.kind == "category":
            categories = [f"{self.name}={word}" for word in self.words]
            return categories + [f"{self.name} is another"] * self.other
        if self.kind == "text":
            return [f"{self.name}: {word}" for word in self.words]
        if self.kind == "image":
            return [
                f"{self.name}: {'rgb'[c]} {row},{column}" for c, row, column in np.ndindex(PIXELS)
            ]
        return [self.name] + [f"{self.name} is missing"] * (self.fill is not None)

    def encode(self, values: NDArray[Any]) -> NDArray[Any]:
        """Features (m, k) of values (m,)."""
        if self.kind == "category":
            hot = values[:, None] == np.array(self.words, object)[None]
            rest = ~hot.any(1, keepdims=True)
            return np.concatenate([hot, rest], 1) if self.other else hot
        if self.kind == "text":
            return np.asarray(self._vectorizer.transform(values).toarray())
        if self.kind == "image":
            return values.reshape(len(values), -1)
        missing = np.isnan(values)
        if self.fill is None:
            for row in first_rows(missing):
                message = f"feature {quote(self.name)} is missing; fill it in or drop the row"
                raise RowError(row, message)
            return values[:, None]
        return np.stack([np.where(missing, self.fill, values), missing], 1)

    @cached_property
    def _vectorizer(self) -> Any:
        vectorizer = _tfidf(vocabulary={word: place for place, word in enumerate(self.words)})
        vectorizer.idf_ = np.array(self.weights)
        return vectorizer


def unused_columns(names: Sequence[str], wanted: Sequence[str], where: object) -> list[str]:
    """A note on columns that a model was not fitted to; TableError if some it needs are missing.

    ``where`` the columns are is for messages.
    """
    if missing := [name for name in wanted if name not in names]:
        raise TableError(f"{where} lacks {_list_features(missing)} that the model was fitted to")
    if extra := [name for name in names if name not in wanted]:
        features = _list_features(extra)
        return [f"{where} has {features} that the model was not fitted to: not used"]
    return []


def _list_features(names: Sequence[str]) -> str:
    count = "the feature" if len(names) == 1 else f"{len(names)} features"
    return f"{count} {list_names(names)}"


def _tfidf(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(token_pattern=TOKEN, sublinear_tf=True, dtype=np.float32, **options)


@dataclass(frozen=True)
class ItemEncoder:
    """Turns columns into features, as learnt from the training items.

    Parameters
    ----------
    columns : tuple of ItemColumn
        The columns that it needs; a table may have others, in any order.

    Examples
    --------
    >>> import pyarrow
    >>> from pairlearn.io.cells import ColumnChoice
    >>> cells = {"age": pyarrow.array([31, None, 9]), "sex": pyarrow.array(["f", "m", "f"])}
    >>> kinds, _ = ColumnChoice().kinds_of(cells)
    >>> values = read_values(kinds, cells)
    >>> encoder = ItemEncoder.fit(kinds, values)
    >>> encoder.outputs
    ('age', 'age is missing', 'sex=f', 'sex is another')
    >>> encoder.encode(values)
    array([[31.,  0.,  1.,  0.],
           [20.,  1.,  0.,  1.],
           [ 9.,  0.,  1.,  0.]], dtype=float32)
    """

    columns: tuple[ItemColumn, ...]

    def __post_init__(self) -> None:
        if not self.columns or not all(isinstance(column, ItemColumn) for column in self.columns):
            raise ValueError("an encoder needs at least one column")

    @classmethod
    def of_numbers(cls, names: Sequence[str]) -> ItemEncoder:
        """Make an encoder that keeps numbers without gaps as they are."""
        return cls(tuple(ItemColumn(str(name), "number") for name in names))

    @classmethod
    def fit(cls, kinds: Mapping[str, ColumnKind], values: Mapping[str, Any]) -> ItemEncoder:
        """Fit an encoder to the values of columns of known kinds."""
        columns, unusable = [], {}
        for name, kind in kinds.items():
            try:
                columns.append(_fit_column(name, kind, values[name]))
            except ValueError as error:
                unusable[name] = str(error)
        if unusable:
            raise UnusableColumns(unusable)
        return cls(tuple(columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(name for column in self.columns for name in column.outputs())

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers that are features as they are."""
        return all(column.kind == "number" and column.fill is None for column in self.columns)

    def reads(self, kind: ColumnKind) -> bool:
        """Whether some columns are of this kind."""
        return any(column.kind == kind for column in self.columns)

    @property
    def scaled(self) -> Mask:
        """Mask of the features with a scale: numbers and dates, not indicators or words."""
        scaled = [
            column.kind in ("number", "date") and name == column.name
            for column in self.columns
            for name in column.outputs()
        ]
        return np.array(scaled)

    def values(self, cells: Mapping[str, Any]) -> Values:
        """Convert the cells of its columns, which are Arrow arrays, to values."""
        return read_values({column.name: column.kind for column in self.columns}, cells)

    def encode(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Encode the values of columns as features (m, d)."""
        parts = [column.encode(values[column.name]) for column in self.columns]
        return np.concatenate([part.astype(np.float32) for part in parts], 1)

    def features_of(self, items: Any, rows: Any = slice(None)) -> NDArray[Any]:
        """Features of rows of a table of items, which was read by these rules or holds numbers.

        Raises TableError for a table of other columns, or read by other rules.
        """
        names, encoder = tuple(items.names), getattr(items, "encoder", None)
        features = np.asarray(items.features)
        if encoder == self or (encoder is None and names == self.outputs):
            return np.asarray(features[rows])
        if encoder is not None or not self.plain or not {*self.outputs} <= {*names}:
            raise TableError(
                "the table of items was not read by the model's rules: pass a data frame, or "
                "read the file with read_items(path, columns=classifier.columns())"
            )
        return np.asarray(features[rows][:, [names.index(name) for name in self.outputs]])

    def __str__(self) -> str:
        groups = []
        for kind in COLUMN_KINDS:
            columns = [column for column in self.columns if column.kind == kind]
            names = [
                f"{column.name} ({len(column.words):,} words)" if kind == "text" else column.name
                for column in columns
            ]
            more = f", … {len(columns):,} in all" if len(columns) > 4 else ""
            groups += [f"{kind} {', '.join(names[:4])}{more}"] if columns else []
        return "; ".join(groups)


def _fit_column(name: str, kind: ColumnKind, values: NDArray[Any]) -> ItemColumn:
    """Fit a transformer of scikit-learn to a column, and keep what it has learnt."""
    if kind == "category":
        from sklearn.preprocessing import OneHotEncoder

        encoder = OneHotEncoder(
            min_frequency=2, max_categories=MOST_CATEGORIES, handle_unknown="infrequent_if_exist"
        ).fit(values[:, None])
        (rare,) = encoder.infrequent_categories_
        if rare is not None and len(rare) == len(encoder.categories_[0]):
            raise ValueError("has no value that two items share")
        kept = [str(word) for word in encoder.categories_[0] if rare is None or word not in rare]
        return ItemColumn(name, kind, words=tuple(kept), other=rare is not None)
    if kind == "image":
        return ItemColumn(name, kind)
    if kind == "text":
        most = int(np.clip(MOST_CELLS // len(values), 100, MOST_WORDS))
        vectorizer = _tfidf(max_features=most, min_df=2).fit(values)
        words = tuple(map(str, vectorizer.get_feature_names_out()))
        return ItemColumn(name, kind, words=words, weights=tuple(vectorizer.idf_.tolist()))
    gaps = np.isnan(values).any()
    fill = float(np.nanmedian(values.astype(np.float64))) if gaps else None
    return ItemColumn(name, kind, fill)
