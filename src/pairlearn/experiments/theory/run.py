"""All tables of the theory, and what they show in a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pairlearn.experiments.theory.error_bounds import bound_rows
from pairlearn.experiments.theory.geometry import geometry_rows
from pairlearn.experiments.theory.numbers import Row, Tables, log_log_slope, rounded
from pairlearn.experiments.theory.prior_error import prior_rows
from pairlearn.experiments.theory.two_gaussians import ESTIMATORS
from pairlearn.experiments.theory.variance import beta_rows, lambda_rows, member_rows, plane_rows

__all__ = ["FULL", "QUICK", "Progress", "TheorySettings", "compute_theory", "summarize_theory"]

Progress: TypeAlias = Callable[[int, int, str], None]


@dataclass(frozen=True)
class TheorySettings:
    """How much to compute.

    Examples
    --------
    >>> FULL.prior_repetitions > QUICK.prior_repetitions
    True
    """

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
    settings: TheorySettings = FULL, *, seed: int = 0, progress: Progress | None = None
) -> Tables:
    """All tables by name: what `pairlearn bench theory` writes.

    Parameters
    ----------
    settings : TheorySettings
        How much to compute.
    seed : int
        Everything follows from it.
    progress : callable, optional
        Called with the steps done, all steps, and what comes next.

    Returns
    -------
    dict of str to list of dict
        geometry, prior, variance-lambda, variance-beta, variance-plane,
        variance-members, bounds.

    Examples
    --------
    >>> tiny = TheorySettings((0.2,), (30,), 5, 10, (30,), 1)
    >>> list(compute_theory(tiny))[:3]
    ['geometry', 'prior', 'variance-lambda']
    """
    chosen = {"repetitions": settings.prior_repetitions, "seed": seed}
    steps: list[tuple[str, Callable[[], list[Row]]]] = [("geometry", geometry_rows)]
    for prior in settings.priors:
        for n in settings.prior_sizes:
            steps.append(("prior", partial(prior_rows, prior, [n], **chosen)))
    chosen = {"repetitions": settings.variance_repetitions, "seed": seed}
    steps += [
        ("variance-lambda", partial(lambda_rows, **chosen)),
        ("variance-beta", partial(beta_rows, **chosen)),
        ("variance-plane", plane_rows),
        ("variance-members", member_rows),
    ]
    chosen = {"repetitions": settings.bound_repetitions, "seed": seed}
    for n in settings.bound_sizes:
        steps.append(("bounds", partial(bound_rows, n, **chosen)))
    tables: Tables = {}
    for done, (name, step) in enumerate(steps):
        if progress is not None:
            progress(done, len(steps), name)
        tables.setdefault(name, []).extend(step())
    return tables


def summarize_theory(tables: Mapping[str, Sequence[Row]]) -> dict[str, float]:
    """What the tables show, in a few numbers.

    Examples
    --------
    >>> tiny = TheorySettings((0.2,), (100, 1000), 20, 10, (30, 100), 2)
    >>> summary = summarize_theory(compute_theory(tiny))
    >>> summary["least variance at lambda"]
    0.5
    """
    summary: dict[str, float] = {}
    for prior in dict.fromkeys(row["prior"] for row in tables["prior"]):
        # Below 100 pairs a prior of .3 is not yet far from ½.
        rows = [r for r in tables["prior"] if r["prior"] == prior and r["n"] >= 100]
        slope = log_log_slope([r["n"] for r in rows], [r["rmse"] for r in rows])
        summary[f"exponent of the prior's error at {prior:g}"] = slope
    least = min(tables["variance-lambda"], key=lambda row: float(row["exact"]))
    summary["least variance at lambda"] = least["lam"]
    for row in tables["variance-members"]:
        if row["member"] != "optimum":
            summary[f"variance of {row['member']} over the optimum's"] = row["relative"]
    for name in ESTIMATORS:
        rows = [row for row in tables["bounds"] if row["risk"] == name]
        slope = log_log_slope([r["n"] for r in rows], [r["excess_mean"] for r in rows])
        summary[f"exponent of the excess risk, {name}"] = slope
        for row in (rows[0], rows[-1]):
            limits = (row["bound_rederived"], row["bound_uniform"])
            factor = min(limit for limit in limits if limit is not None) / row["excess_q95"]
            summary[f"least bound over excess risk at n = {row['n']}, {name}"] = factor
    return rounded(summary)
