"""Features of instances: data frames, and transformers of pairs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from pairlearn.columns import TableError, locate_errors, quote
from pairlearn.io.cells import (
    UNNAMED,
    ColumnChoice,
    ColumnKind,
    no_name,
    read_values,
)
from pairlearn.io.encoder import ItemEncoder, unused_columns


class ColumnsWarning(UserWarning):
    """A data frame has columns that are not used."""


def is_frame(x: Any) -> bool:
    """Whether an object is a data frame: pandas, polars, an Arrow table."""
    return hasattr(x, "columns") and (hasattr(x, "iloc") or hasattr(x, "__arrow_c_stream__"))


def columns_in_order(values: Any, *names: str) -> Any:
    """A data frame of just these columns in this order; anything else as it is."""
    named = is_frame(values) and {*names} == {*(_names_of(values) or ())}
    return _columns_of(values, [*names]) if named else values


class FeatureStep:
    """Makes features of data frames and tables of items, by the columns of the first of them.

    Columns are found by name. Those of numbers without gaps are taken as they are; others get an
    `ItemEncoder`. ``encoder`` and ``names`` are those of an earlier fit.
    """

    def __init__(self, encoder: ItemEncoder | None = None, names: Any = None) -> None:
        self.encoder, self.names = encoder, names

    @classmethod
    def of_items(cls, items: Any) -> FeatureStep:
        """The step that made a table of items."""
        step = cls()
        step._adopt(items.names, items.encoder)
        return step

    def reads(self, kind: ColumnKind) -> bool:
        """Whether there is a column of this kind."""
        return self.encoder is not None and self.encoder.reads(kind)

    def numbers(self, raw: Any) -> NDArray[Any]:
        """Features (m, d) of a data frame."""
        names = _names_of(raw)
        if names is None:
            return np.asarray(raw)
        if len({*names}) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two columns are named {quote(twice)}: give each its own name")
        names = [name for name in names if name != "id"]  # as in files
        if self.names is None:
            for name in filter(UNNAMED.fullmatch, names):
                warnings.warn(no_name(name), ColumnsWarning, stacklevel=2)
            names = [name for name in names if not UNNAMED.fullmatch(name)]
            self.names = np.array(names, dtype=object)
            self._learn(_cells(_columns_of(raw, names)))
        else:
            for note in unused_columns(names, list(self.names), "X"):
                warnings.warn(note, ColumnsWarning, stacklevel=2)
        raw = _columns_of(raw, list(self.names))
        if self.encoder is None:
            return np.asarray(raw)
        with locate_errors():
            return self.encoder.encode(self.encoder.values(_cells(raw)))

    def of_table(self, items: Any, rows: Any) -> NDArray[Any]:
        """Features of rows of a table of items, by the rules of the first such table."""
        names = getattr(items, "names", None)
        if self.names is None or names is None:
            self._adopt(names, getattr(items, "encoder", None))
            return np.asarray(np.asarray(items.features)[rows])
        rules = self.encoder or ItemEncoder.of_numbers(self.names)
        features = rules.features_of(items, rows)
        if tuple(names) != rules.outputs:
            held = getattr(getattr(items, "encoder", None), "names", names)
            for note in unused_columns([*rules.names, *held], rules.names, "the table of items"):
                warnings.warn(note, ColumnsWarning, stacklevel=2)
        return features

    def _adopt(self, names: Any, encoder: ItemEncoder | None) -> None:
        """Adopt the names and encoder of items that are encoded already."""
        if self.names is None and names is not None:
            self.names = np.array(names if encoder is None else encoder.names, dtype=object)
            self.encoder = self.encoder or encoder

    def _learn(self, cells: dict[str, Any]) -> None:
        """Fit an encoder if columns hold more than numbers."""
        if all(_is_plain(column) for column in cells.values()):
            return
        kinds, notes = ColumnChoice().kinds_of(cells)
        with locate_errors():
            self.encoder = ItemEncoder.fit(kinds, read_values(kinds, cells))
        for note in notes:
            warnings.warn(note, ColumnsWarning, stacklevel=2)
        self.names = np.array(self.encoder.names, dtype=object)


def _dense(array: Any) -> NDArray[Any]:
    return np.asarray(array.toarray() if hasattr(array, "toarray") else array)


def _names_of(frame: Any) -> list[str] | None:
    names = list(getattr(frame, "column_names", frame.columns))
    return names if all(isinstance(name, str) for name in names) else None


def _columns_of(frame: Any, names: Sequence[str]) -> Any:
    """Some columns of a data frame, in this order."""
    return frame.select(names) if hasattr(frame, "select") else frame[list(names)]


def _cells(frame: Any) -> dict[str, Any]:
    """Columns of a data frame as Arrow arrays."""
    import pyarrow

    cells, bad = {}, {}
    for name in _names_of(frame) or ():
        try:
            column = pyarrow.chunked_array(pyarrow.array(frame[name], from_pandas=True))
            cells[name] = column.combine_chunks()
        except (pyarrow.ArrowException, TypeError, OverflowError) as error:
            bad[name] = str(error)
    if bad:
        reasons = "; ".join(f"{quote(name)}: {reason:.80}" for name, reason in bad.items())
        raise TableError(f"columns hold values of several types: {reasons}. Make each one type")
    return cells


def _is_plain(column: Any) -> bool:
    from pyarrow import types

    number = types.is_integer(column.type) or types.is_floating(column.type)
    return bool((number or types.is_boolean(column.type)) and not column.null_count)


class PairwiseTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Apply a transformer of instances to pairs of them, and to instances as they are.

    Fits on the 2n instances of pairs (n, 2, d), so that x and x' are treated the same. Transforms
    pairs to (n, 2, d') and single instances (m, d) to (m, d'): a `Pipeline` with it in front of a
    `PairClassifier` fits on pairs and predicts on instances.

    Parameters
    ----------
    transformer : scikit-learn transformer
        For instance StandardScaler or PCA. It is cloned; the fitted one is ``transformer_``.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> pairs = np.array([[[0.0], [2.0]], [[4.0], [2.0]]])
    >>> scale = PairwiseTransformer(StandardScaler()).fit(pairs)
    >>> scale.transform(pairs).shape, scale.transform([[2.0]])
    ((2, 2, 1), array([[0.]]))
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def set_output(self, *, transform: Any = None) -> PairwiseTransformer:
        """Has no effect: pairs have three axes, and a data frame has two."""
        return self

    def fit(self, X: Any, y: Any = None) -> PairwiseTransformer:
        """Fit the transformer to all ends of pairs (n, 2, d), or to instances (m, d).

        ``y`` is ignored: it labels pairs, not instances.
        """
        flat, _ = _instances(X)
        validate_data(self, flat, skip_check_array=True)
        self.transformer_ = clone(self.transformer).fit(flat)
        return self

    def transform(self, X: Any) -> Any:
        """Transform pairs (n, 2, d) to (n, 2, d'), instances (m, d) to (m, d')."""
        check_is_fitted(self)
        flat, paired = _instances(X)
        validate_data(self, flat, reset=False, skip_check_array=True)
        transformed = self.transformer_.transform(flat)
        return _dense(transformed).reshape(-1, 2, transformed.shape[1]) if paired else transformed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = True
        return tags


def _instances(X: Any) -> tuple[Any, bool]:
    """The instances of X as rows, and whether X was pairs."""
    if hasattr(X, "columns"):  # a DataFrame of instances keeps its column names
        return X, False
    array = np.asarray(X)
    if array.ndim == 2:
        return array, False
    if array.ndim == 3 and array.shape[1] == 2:
        return array.reshape(-1, array.shape[2]), True
    raise ValueError(
        f"X must be pairs of shape (n, 2, d) or instances of shape (m, d); got {array.shape}"
    )
