"""The numbers that the paper printed, shipped as CSV files beside this one."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pairlearn.paper.methods import Method

PUBLISHED_SEEDS = 5
"""Seeds behind every published mean."""


@dataclass(frozen=True, kw_only=True)
class PublishedCell:
    """A cell of the paper's tables.

    Parameters
    ----------
    dataset : str
        Name of the benchmark.
    prior : float
        Class prior.
    method : Method
        The method.
    mean, std : float
        Accuracy over five seeds.
    prior_factor, label_noise : float
        ε and σ of the noise tables.
    copy_of : float or None
        The smaller σ whose printed numbers these repeat, over the whole table of the
        data set and to the last digit. Other noise cannot have given the same fifteen
        means and deviations, so such a cell says nothing about its own noise.

    Examples
    --------
    >>> cell = published_accuracy()[0]
    >>> cell.dataset, cell.prior, cell.method.title, cell.mean, cell.std
    ('mnist', 0.2, 'SconfConfDiff-Unbiased', 0.894, 0.043)
    >>> cell = published_robustness()[3]
    >>> cell.label_noise, cell.copy_of
    (0.01, 0.0)
    """

    dataset: str
    prior: float
    method: Method
    mean: float
    std: float
    prior_factor: float = 1.0
    label_noise: float = 0.0
    copy_of: float | None = None


@cache
def published_accuracy() -> tuple[PublishedCell, ...]:
    """The 360 cells of the accuracy tables.

    Returns
    -------
    tuple of PublishedCell

    Examples
    --------
    >>> len(published_accuracy())
    360
    """
    return tuple(
        PublishedCell(
            dataset=row["dataset"],
            prior=float(row["prior"]),
            method=Method(
                row["risk"], float(row["gamma"]) if row["gamma"] else None, row["correction"]
            ),
            mean=float(row["accuracy_mean"]),
            std=float(row["accuracy_std"]),
        )
        for row in _rows("accuracy.csv")
    )


@cache
def published_robustness() -> tuple[PublishedCell, ...]:
    """The 600 cells of the noise tables, which are all at π₊ = 0.2.

    Returns
    -------
    tuple of PublishedCell

    Examples
    --------
    >>> cells = published_robustness()
    >>> len(cells), sum(cell.copy_of is not None for cell in cells)
    (600, 240)
    """
    rows = _rows("robustness.csv")
    copies = _copied_columns(rows)
    return tuple(
        PublishedCell(
            dataset=row["dataset"],
            prior=0.2,
            method=Method("sconfconfdiff", None, row["correction"]),
            prior_factor=float(row["prior_factor"]),
            label_noise=float(row["label_noise_std"]),
            mean=float(row["accuracy_mean"]),
            std=float(row["accuracy_std"]),
            copy_of=copies.get((row["dataset"], float(row["label_noise_std"]))),
        )
        for row in rows
    )


@cache
def published_datasets() -> tuple[dict[str, str], ...]:
    """The data sets and their training recipe, as printed.

    Returns
    -------
    tuple of dict of str to str

    Examples
    --------
    >>> published_datasets()[3]["model"]
    'resnet34'
    """
    return tuple(_rows("datasets.csv"))


PUBLISHED: dict[str, Callable[[], tuple[PublishedCell, ...]]] = {
    "accuracy": published_accuracy,
    "robustness": published_robustness,
}
"""The published tables by the grid that repeats them."""


def _rows(name: str) -> list[dict[str, str]]:
    file = resources.files("pairlearn.paper").joinpath("published", name)
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def _copied_columns(rows: Iterable[dict[str, str]]) -> dict[tuple[str, float], float]:
    """By (dataset, noise), the smaller noise that has the very same numbers."""
    columns: dict[tuple[str, float], dict[tuple[str, str], tuple[str, str]]] = {}
    for row in rows:
        column = columns.setdefault((row["dataset"], float(row["label_noise_std"])), {})
        place = row["prior_factor"], row["correction"]
        column[place] = row["accuracy_mean"], row["accuracy_std"]
    return {
        (dataset, noise): smaller
        for dataset, noise in columns
        for other, smaller in columns
        if other == dataset
        and smaller < noise
        and columns[dataset, noise] == columns[dataset, smaller]
    }
