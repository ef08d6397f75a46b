"""From instances as they are given to numbers: data frames by name, and steps of one's own."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from pairlearn.columns import TableError, placed, shown
from pairlearn.tables.cells import ColumnChoice, ColumnKind, read_cells
from pairlearn.tables.encoder import ItemEncoder


class ColumnsWarning(UserWarning):
    """A data frame has columns that are not used."""


def is_frame(x: Any) -> bool:
    """Whether something is a data frame: pandas, polars, an Arrow table."""
    return hasattr(x, "columns") and (hasattr(x, "iloc") or hasattr(x, "__arrow_c_stream__"))


class FeatureStep:
    """Makes features of instances: the user's ``own`` step, or one fitted to the first instances.

    Data frames are read by column name. Columns of numbers without gaps are taken as they are;
    others get an `ItemEncoder`. ``fitted`` and ``names`` are the step and columns of an earlier
    fit.
    """

    def __init__(self, own: Any = None, fitted: Any = None, names: Any = None) -> None:
        self.own, self.fitted, self.names = own, fitted, names

    @property
    def encoder(self) -> ItemEncoder | None:
        """How columns become features, where they are not plain numbers."""
        return self.fitted if isinstance(self.fitted, ItemEncoder) else None

    def reads(self, kind: ColumnKind) -> bool:
        """Whether there is a column of this kind."""
        return self.encoder is not None and self.encoder.reads(kind)

    def numbers(self, raw: Any) -> NDArray[Any]:
        """Features (m, d, ...) of instances."""
        names = _names_of(raw) if is_frame(raw) else None
        if names is not None:
            names = [name for name in names if name != "id"]  # which is no feature in files
            if self.names is None:
                self.names = np.array(names, dtype=object)
                if self.own is None:
                    self._learn(_cells(_columns_of(raw, names)))
            else:
                _compare(names, list(self.names))
            raw = _columns_of(raw, list(self.names))
        if self.own is not None:
            return self._by_own(raw)
        if names is None or self.encoder is None:
            return np.asarray(raw)
        with placed():
            return self.encoder.encode(self.encoder.values(_cells(raw)))

    def take(self, names: Any, encoder: ItemEncoder | None) -> None:
        """Keep the step of items that are numbers already."""
        if self.names is None and names is not None:
            self.names = np.array(names if encoder is None else encoder.names, dtype=object)
            self.fitted = self.fitted or encoder

    def remember(self, estimator: Any) -> None:
        """Let an estimator have what was learnt."""
        own = None if self.own is None else self.fitted
        kept = {"feature_names_in_": self.names, "encoder_": self.encoder, "features_": own}
        for name, value in kept.items():
            if value is not None:
                setattr(estimator, name, value)
            elif hasattr(estimator, name):
                delattr(estimator, name)
        if self.encoder is not None:
            estimator.n_features_in_ = len(self.encoder.columns)

    def _learn(self, cells: dict[str, Any]) -> None:
        """Fit an encoder where columns hold more than numbers."""
        if all(_is_plain(column) for column in cells.values()):
            return
        kinds, notes = ColumnChoice().kinds_of(cells, typed=True)
        for note in notes:
            warnings.warn(note, ColumnsWarning, stacklevel=2)
        with placed():
            values = {name: read_cells(name, kind, cells[name]) for name, kind in kinds.items()}
        self.fitted = ItemEncoder.fit(kinds, values)
        self.names = np.array(self.fitted.names, dtype=object)

    def _by_own(self, raw: Any) -> NDArray[Any]:
        if self.fitted is None:
            fits = hasattr(self.own, "transform")
            self.fitted = clone(self.own).fit(raw) if fits else self.own
        step = getattr(self.fitted, "transform", self.fitted)
        found = step(raw)
        found = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
        if found.ndim < 2 or len(found) != len(raw):
            raise ValueError(
                f"features must give numbers (m, d, ...) for m instances; for {len(raw)} it gave "
                f"an array of shape {found.shape}"
            )
        return found


def _names_of(frame: Any) -> list[str] | None:
    names = list(getattr(frame, "column_names", frame.columns))
    return names if all(isinstance(name, str) for name in names) else None


def _columns_of(frame: Any, names: Sequence[str]) -> Any:
    """Some columns of a data frame, in this order."""
    return frame.select(names) if hasattr(frame, "select") else frame[list(names)]


def _compare(names: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a data frame that lacks columns of training, and warn of others."""
    if missing := [name for name in wanted if name not in names]:
        raise ValueError(
            f"X lacks {', '.join(map(shown, missing[:5]))}, which the classifier was fitted to"
        )
    if extra := [name for name in names if name not in wanted]:
        listed = ", ".join(map(shown, extra[:5])) + ", …" * (len(extra) > 5)
        what = f"X has {listed}, which the classifier was not fitted to: not used"
        warnings.warn(what, ColumnsWarning, stacklevel=2)


def _cells(frame: Any) -> dict[str, Any]:
    """Columns of a data frame as Arrow arrays."""
    import pyarrow

    cells, bad = {}, {}
    for name in _names_of(frame) or ():
        try:
            column = pyarrow.chunked_array(pyarrow.array(frame[name], from_pandas=True))
            cells[name] = column.combine_chunks()
        except (pyarrow.ArrowException, TypeError) as error:
            bad[name] = str(error)
    if bad:
        said = "; ".join(f"{shown(name)}: {why:.80}" for name, why in bad.items())
        raise TableError(f"columns hold values of several types: {said}. Make each one type")
    return cells


def _is_plain(column: Any) -> bool:
    from pyarrow import types

    number = types.is_integer(column.type) or types.is_floating(column.type)
    return bool((number or types.is_boolean(column.type)) and not column.null_count)
