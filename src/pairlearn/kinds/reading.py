"""Columns of statements as numbers, checked: what a file may not say, an array may not either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pairlearn.columns import Floats, Mask, placed
from pairlearn.kinds import KINDS, columns


def read_columns(given: Mapping[str, Any]) -> dict[str, Floats]:
    """Numbers, NaN where nothing is said, of columns of numbers or words."""
    numbers = {name: _numbers(name, column) for name, column in given.items()}
    _check_whole({name: ~np.isnan(column) for name, column in numbers.items()})
    return numbers


def _numbers(name: str, values: Any) -> Floats:
    """A column as numbers, checked as in a file; what has noise is checked where it is used."""
    known = columns()
    if name not in known:
        raise ValueError(f"there is no column {name!r}; the kinds have {', '.join(known)}")
    if name in ("similarity", "difference"):
        return np.asarray(values, np.float64)
    with placed(lambda row: f"row {row}"):
        numbers = known[name].read(values)
    for row, text in known[name].mistakes(numbers):
        raise ValueError(f"row {row}: {text}")
    return numbers


def _check_whole(said: Mapping[str, Mask]) -> None:
    """Refuse rows with one column of a kind that takes two."""
    for name, rows in said.items():
        lacking = rows.copy()
        for one in KINDS:
            names = [column.name for column in one.columns]
            if name in names and all(other in said for other in names):
                lacking &= ~np.logical_and.reduce([said[other] for other in names])
        if lacking.any():
            needs = " or ".join(
                " and ".join(column.name for column in one.columns)
                for one in KINDS
                if name in [column.name for column in one.columns]
            )
            raise ValueError(f"row {int(lacking.argmax())} has a {name} alone: give {needs}")
