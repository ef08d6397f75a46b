"""How often the interval of `estimate_accuracy` holds the true accuracy, and how wide it is.

    python bench/speed/coverage.py [--tables 2000] [--pairs 500] [--json]

Every cell simulates tables of pairs with a calibrated annotator,

    logit r = μ u + logit π₊,   u ~ N(±μ/2, 1) by class, so that r = P(y=+1 | u),

and a classifier that sees what the annotator sees: it decides by r > ½, and errors are
made by flipping decisions at random, of both kinds alike (symmetric), positive ones
only (misses), or negative ones only (alarms). The rate of flips is set so that
the probability of a wrong decision, P(h ≠ y), is 2% or 12% exactly. Decisions depend on
the class through u alone, as those of any classifier do; one that knew more of the class
than u tells would disagree with a calibrated annotator. 12% of misses cannot be reached
at prior 0.1.

Widths are compared with ConfDiff's normal interval on the same tables: with the prior
that the similarities imply at priors 0.1 and 0.2, with the known prior at 0.5.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import NormalDist

import numpy as np

from pairlearn import PairLabels
from pairlearn.evaluation import estimate_accuracy

KINDS = ("symmetric", "misses", "alarms")
Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Cell:
    """One simulated population and classifier."""

    separation: float
    prior: float
    error: float
    kind: str

    def turned(self) -> tuple[float, float]:
        """Rates at which positive and negative decisions are flipped, for P(h ≠ y) = error."""
        normal, prior = NormalDist(), self.prior
        cut = -math.log(prior / (1 - prior)) / self.separation
        missed = normal.cdf(cut - self.separation / 2)
        alarmed = 1 - normal.cdf(cut + self.separation / 2)
        excess = self.error - prior * missed - (1 - prior) * alarmed
        # What flipping every positive, and every negative, decision adds to the error.
        by_misses = prior * (1 - missed) - (1 - prior) * alarmed
        by_alarms = (1 - prior) * (1 - alarmed) - prior * missed
        if self.kind == "symmetric":
            return (excess / (by_misses + by_alarms),) * 2
        return (excess / by_misses, 0.0) if self.kind == "misses" else (0.0, excess / by_alarms)

    def tables(self, count: int, n: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Posteriors and decisions, each (2, n), of one table after another."""
        rng = np.random.default_rng([seed, int(10 * self.prior), int(100 * self.error)])
        misses, alarms = self.turned()
        for _ in range(count):
            y = rng.random((2, n)) < self.prior
            u = rng.normal(np.where(y, 0.5, -0.5) * self.separation, 1)
            r = 1 / (1 + np.exp(-self.separation * u) * (1 - self.prior) / self.prior)
            turn = rng.random((2, n))
            yield r, np.where(r > 0.5, turn >= misses, turn < alarms)


@dataclass(frozen=True)
class Row:
    """Measurements of a cell; `above` and `below` are the shares of intervals that miss."""

    separation: float
    prior: float
    error: float
    kind: str
    coverage: float
    above: float
    below: float
    width: float
    confdiff_width: float
    ratio: float
    limit: float


def cells() -> Iterator[Cell]:
    for separation in (5.0, 8.0):
        for prior in (0.1, 0.2, 0.5):
            for error in (0.02, 0.12):
                for kind in KINDS:
                    cell = Cell(separation, prior, error, kind)
                    if max(cell.turned()) <= 1:
                        yield cell


def confdiff_width(s: np.ndarray, c: np.ndarray, h: np.ndarray, prior: float | None) -> float:
    """Width of the delta-method interval of ConfDiff's accuracy, the prior by √ if None."""
    decided, covariation = h.mean(0), c * (h[0] - h[1])
    if prior is None:
        root = math.sqrt(max(2 * s.mean() - 1, 1e-9))
        # 1 − accuracy = π(1 − q) + (1 − π)q + k with π = (1 − root)/2, root² = 2 mean(s) − 1.
        terms = root * decided + covariation - (1 - 2 * decided.mean()) / (2 * root) * s
    else:
        terms = (1 - 2 * prior) * decided + covariation
    return float(2 * Z * terms.std(ddof=1) / math.sqrt(len(s)))


def measure(cell: Cell, tables: int, n: int, seed: int) -> Row:
    truth = 1 - cell.error
    lows, highs, reference = np.empty((3, tables))
    for t, (r, h) in enumerate(cell.tables(tables, n, seed)):
        labels = PairLabels.from_posteriors(r[0], r[1])
        estimate = estimate_accuracy(h[0] - 0.5, h[1] - 0.5, labels)
        lows[t], highs[t] = estimate.low, estimate.high
        reference[t] = confdiff_width(
            labels.similarity,
            labels.difference,
            h.astype(float),
            cell.prior if cell.prior == 0.5 else None,
        )
    above, below = float((truth < lows).mean()), float((truth > highs).mean())
    width, wide = float((highs - lows).mean()), float(reference.mean())
    limit = 1.05 if cell.prior < 0.5 else 0.35 if cell.error < 0.1 else 0.75
    return Row(
        **asdict(cell),
        coverage=1 - above - below,
        above=above,
        below=below,
        width=width,
        confdiff_width=wide,
        ratio=width / wide,
        limit=limit,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    start, rows = time.perf_counter(), []
    if not options.json:
        print("  μ  prior error  kind       coverage  width  ÷ ConfDiff  at most")
    for cell in cells():
        row = measure(cell, options.tables, options.pairs, options.seed)
        rows.append(row)
        if not options.json:
            print(
                f"{row.separation:3g}  {row.prior:<5g} {row.error:<5g}  {row.kind:<9}  "
                f"{row.coverage:8.4f}  {row.width:.4f}  {row.ratio:10.2f}  {row.limit:7g}",
                flush=True,
            )
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        covered = [row.coverage for row in rows]
        print(f"coverage {min(covered):.4f} to {max(covered):.4f}", end=", ")
        print(f"{time.perf_counter() - start:.0f} s for {len(rows)} × {options.tables} tables")


if __name__ == "__main__":
    main()
