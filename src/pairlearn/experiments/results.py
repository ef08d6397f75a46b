"""Results as rows for a file, with the columns of the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pairlearn.experiments.layout import index_cells
from pairlearn.experiments.summary import Cell

__all__ = ["result_rows"]

_SUMMARY = ("accuracy_mean", "accuracy_std")
_METHOD = ("risk", "gamma", "correction")
_ORIGIN = ("seeds", "epochs", "test_subset")
_COLUMNS: dict[str, tuple[str, ...]] = {
    "accuracy": ("dataset", "prior", *_METHOD, *_SUMMARY, *_ORIGIN),
    "gamma": ("dataset", "prior", *_METHOD, *_SUMMARY, *_ORIGIN),
    "limited": ("dataset", "prior", *_METHOD, "fraction", *_SUMMARY, *_ORIGIN),
    "robustness": (
        *("dataset", "prior_factor", "label_noise_std", "correction", *_SUMMARY),
        *("risk", *_ORIGIN),
    ),
}


def result_rows(grid: str, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The cells with the columns of the published files, and what they come from.

    Parameters
    ----------
    grid : {"accuracy", "gamma", "limited", "robustness"}
        Which columns.
    cells : sequence of Cell
        Its summary, on one or more test subsets.

    Returns
    -------
    list of dict
        ``seeds`` is their number.

    Examples
    --------
    >>> result_rows("accuracy", [])
    []
    """
    columns = _COLUMNS[grid]
    rows = [_values(cell) for cell in cells]
    if grid == "gamma":
        # There ConfDiff and Sconf are the ends of the curve.
        rows = [row | {"gamma": cell.gamma} for row, cell in zip(rows, cells, strict=True)]
    places = [name for name in columns if name not in (*_SUMMARY, "seeds")]
    index_cells(cells, lambda cell: tuple(_values(cell)[name] for name in places))
    return [{name: row[name] for name in columns} for row in rows]


def _values(cell: Cell) -> dict[str, Any]:
    return {
        "dataset": cell.config.dataset,
        "prior": cell.config.prior,
        "risk": cell.method.risk,
        "gamma": cell.method.gamma,
        "correction": cell.method.correction,
        "prior_factor": cell.config.prior_factor,
        "label_noise_std": cell.config.label_noise,
        "fraction": cell.config.fraction,
        "accuracy_mean": round(cell.mean, 6),
        "accuracy_std": round(cell.std, 6),
        "seeds": len(cell.seeds),
        "epochs": cell.config.epochs,
        "test_subset": cell.test_subset,
    }
