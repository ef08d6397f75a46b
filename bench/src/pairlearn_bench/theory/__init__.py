"""The theory in numbers and figures: class prior, variance, and bounds with measured errors.

Functions named ``*_rows`` return dictionaries with stable columns; their random numbers depend on
the seed alone. Those named ``plot_*`` draw such rows into given axes and return these.
`compute_theory` collects all rows in tables, `summarize_theory` reduces them to a few numbers, and
`save_theory` writes tables and figures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pairlearn.atomic import replacing
from pairlearn.report.figures import save_figure, styled
from pairlearn_bench.runs import grouped
from pairlearn_bench.store import to_csv
from pairlearn_bench.theory.error_bounds import ESTIMATORS, draw_bounds, least_bound
from pairlearn_bench.theory.error_bounds import TwoGaussians as TwoGaussians
from pairlearn_bench.theory.error_bounds import bound_rows as bound_rows
from pairlearn_bench.theory.error_bounds import plot_bounds as plot_bounds
from pairlearn_bench.theory.prior_error import draw_prior
from pairlearn_bench.theory.prior_error import limiting_prior_error as limiting_prior_error
from pairlearn_bench.theory.prior_error import plot_prior_coverage as plot_prior_coverage
from pairlearn_bench.theory.prior_error import plot_prior_error as plot_prior_error
from pairlearn_bench.theory.prior_error import prior_rows as prior_rows
from pairlearn_bench.theory.rows import Row as Row
from pairlearn_bench.theory.rows import Tables as Tables
from pairlearn_bench.theory.rows import columns, rounded, where
from pairlearn_bench.theory.rows import log_log_slope as log_log_slope
from pairlearn_bench.theory.variance import SmallWorld as SmallWorld
from pairlearn_bench.theory.variance import beta_rows as beta_rows
from pairlearn_bench.theory.variance import draw_variance
from pairlearn_bench.theory.variance import lambda_rows as lambda_rows
from pairlearn_bench.theory.variance import member_rows as member_rows
from pairlearn_bench.theory.variance import plane_rows as plane_rows
from pairlearn_bench.theory.variance import plot_beta_plane as plot_beta_plane
from pairlearn_bench.theory.variance import plot_beta_variance as plot_beta_variance
from pairlearn_bench.theory.variance import plot_lambda_variance as plot_lambda_variance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Report: TypeAlias = Callable[[int, int, str], None]


@dataclass(frozen=True)
class TheorySettings:
    """Sizes and repetitions of the simulations."""

    priors: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5)
    prior_sizes: tuple[int, ...] = (30, 100, 300, 1_000, 3_000, 10_000, 30_000)
    prior_repetitions: int = 4_000
    variance_repetitions: int = 20_000
    bound_sizes: tuple[int, ...] = (30, 100, 300, 1_000, 3_000, 10_000, 30_000)
    bound_repetitions: int = 200


FULL = TheorySettings()
QUICK = TheorySettings(
    prior_sizes=(30, 300, 3_000),
    prior_repetitions=200,
    variance_repetitions=2_000,
    bound_sizes=(100, 1_000),
    bound_repetitions=6,
)


def compute_theory(
    settings: TheorySettings = FULL, *, seed: int = 0, progress: Report | None = None
) -> Tables:
    """Compute all tables of `pairlearn bench theory`, by name.

    ``progress`` is called with the steps done, their total, and the name of the next table.

    Examples
    --------
    >>> tiny = TheorySettings((0.2,), (30,), 5, 10, (30,), 1)
    >>> list(compute_theory(tiny))
    ['prior', 'variance-lambda', 'variance-beta', 'variance-plane', 'variance-members', 'bounds']
    """
    priors = partial(prior_rows, repetitions=settings.prior_repetitions, seed=seed)
    sampling = {"repetitions": settings.variance_repetitions, "seed": seed}
    bounds = partial(bound_rows, repetitions=settings.bound_repetitions, seed=seed)
    steps: list[tuple[str, Callable[[], list[Row]]]] = [
        *(
            ("prior", partial(priors, p, [n]))
            for p in settings.priors
            for n in settings.prior_sizes
        ),
        ("variance-lambda", partial(lambda_rows, **sampling)),
        ("variance-beta", partial(beta_rows, **sampling)),
        ("variance-plane", plane_rows),
        ("variance-members", member_rows),
        *(("bounds", partial(bounds, n)) for n in settings.bound_sizes),
    ]
    tables: Tables = {}
    for done, (name, step) in enumerate(steps):
        if progress is not None:
            progress(done, len(steps), name)
        tables.setdefault(name, []).extend(step())
    return tables


def summarize_theory(tables: Mapping[str, Sequence[Row]]) -> dict[str, float]:
    """Summarize the tables of `compute_theory` in a few numbers."""
    summary: dict[str, float] = {}
    # Below 100 pairs a prior of 0.3 cannot be distinguished from ½.
    large = [row for row in tables["prior"] if row["n"] >= 100]
    for prior, rows in grouped(large, lambda row: row["prior"]).items():
        slope = log_log_slope(*columns(rows, "n", "rmse"))
        summary[f"exponent of the prior's error at {prior:g}"] = slope
    least = min(tables["variance-lambda"], key=lambda row: float(row["exact"]))
    summary["least variance at lambda"] = least["lam"]
    for row in tables["variance-members"]:
        if row["member"] != "optimum":
            summary[f"variance of {row['member']} over the optimum's"] = row["relative"]
    for name in ESTIMATORS:
        rows = where(tables["bounds"], "risk", name)
        slope = log_log_slope(*columns(rows, "n", "excess_mean"))
        summary[f"exponent of the excess risk, {name}"] = slope
        for row in (rows[0], rows[-1]):
            factor = least_bound(row) / row["excess_q95"]
            summary[f"least bound over excess risk at n = {row['n']}, {name}"] = factor
    return rounded(summary)


def draw_theory(tables: Mapping[str, Sequence[Row]]) -> list[tuple[str, Figure]]:
    """Draw the three figures of the theory, each with a name for its file."""
    with styled("a figure"):
        return [
            ("prior", draw_prior(tables["prior"])),
            ("variance", draw_variance(tables)),
            ("bounds", draw_bounds(tables["bounds"])),
        ]


def save_theory(tables: Mapping[str, Sequence[Row]], folder: str | os.PathLike[str]) -> list[Path]:
    """Write every table as CSV and every figure as PNG, atomically, and return the files.

    Examples
    --------
    >>> import tempfile
    >>> tables = compute_theory(TheorySettings((0.2,), (30,), 5, 10, (30,), 1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(save_theory(tables, folder))
    9
    """
    figures = draw_theory(tables)
    files = []
    for name, rows in tables.items():
        files.append(Path(folder, f"{name}.csv"))
        with replacing(files[-1]) as part:
            part.write_text(to_csv(rows), encoding="utf-8")
    return files + [save_figure(figure, Path(folder, f"{name}.png")) for name, figure in figures]
