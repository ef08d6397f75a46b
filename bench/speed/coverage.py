"""How often intervals of `estimate_accuracy` hold the true accuracy, and how wide they are.

    python bench/speed/coverage.py [--tables 1000] [--pairs 500] [--jobs 2] [--part readings]

Every table has pairs of items, an annotator who is calibrated given what that annotator knows, and
a classifier. The truth is the accuracy on new items, which are in no pair. Except for ``sets``, it
is computed exactly.

``large``
    No intervals: both readings of one table of 100,000 pairs, beside the share of its items that
    is decided rightly. Each feature is N(±1, 1) by class. In "private" the classifier has one,
    N(±signal, 1), and the annotator another, N(±1.5, 1). "logistic" and "related" are the worlds
    of ``readings``.
``informed``
    The annotator sees u ~ N(±μ/2, 1) by class, and the classifier decides by what the annotator
    sees, with errors made by flipping decisions: of both kinds (symmetric), of positive ones
    (misses), or of negative ones (alarms), so that 2% or 12% of decisions are wrong. The column
    ÷ ConfDiff is the width divided by that of ConfDiff's normal interval on the same tables.
``readings``
    The classifier uses two features, and annotators come in several sorts: they see these features
    (features), something else (private), one of the features and something else (both), all
    of it and more (more), or one feature only (less). The model's log-odds are those that it would
    learn from private annotators, and the true ones for the other sorts. "logistic" is the
    counterexample in which y ~ σ(1.2 x₁ + 2.4 x₂) and the annotator sees x₁. "related" is the same
    with a correlation of 0.3 between both features, and a classifier that has x₂ alone, as one that
    was learnt from these answers.
``labels``
    The same tables with 30, 100 or 300 labelled items, beside Wilson's interval from the labels
    alone and the normal interval of PPI++.
``sets``
    Breast cancer and digits (even or odd) of scikit-learn. What features tell, an annotator knows
    from a support vector machine with calibrated probabilities that did not see the item: all
    (features), every second one (less), something else, N(±1.5, 1) by class (private), or every
    second one and something else (both). Linear `PairClassifier`s learn from the answers about
    some pairs. In each of 20 random splits of the other items, one is measured on pairs of some;
    the rest tells the truth, whose sampling error is added to the interval: half the width becomes
    √(half² + (1.96 se)²). Standard errors are those of the mean over models, which share a set.

Needs numpy, scipy, scikit-learn and this package. One process per job, one thread each.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from multiprocessing import get_context
from statistics import NormalDist

import numpy as np
from scipy.integrate import quad
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pairlearn import PairClassifier, PairLabels
from pairlearn.evaluation import Estimate, estimate_accuracy
from pairlearn.evaluation.judged import proportion

Z, PHI = NormalDist().inv_cdf(0.975), NormalDist().cdf
LABELS = (30, 100, 300)
CHUNK = 50
"""Tables of one task; each task has its own stream of random numbers."""


@dataclass(frozen=True)
class Flipped:
    """A classifier that decides as the annotator would, but for flipped decisions."""

    separation: float
    prior: float
    error: float
    kind: str

    def flips(self) -> tuple[float, float]:
        """Rates at which positive and negative decisions are flipped, for P(h ≠ y) = error."""
        prior = self.prior
        cut = -logit(prior) / self.separation
        missed = PHI(cut - self.separation / 2)
        alarmed = 1 - PHI(cut + self.separation / 2)
        excess = self.error - prior * missed - (1 - prior) * alarmed
        # What flipping every positive, and every negative, decision adds to the error.
        by_misses = prior * (1 - missed) - (1 - prior) * alarmed
        by_alarms = (1 - prior) * (1 - alarmed) - prior * missed
        if self.kind == "symmetric":
            return (excess / (by_misses + by_alarms),) * 2
        return (excess / by_misses, 0.0) if self.kind == "misses" else (0.0, excess / by_alarms)

    def table(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Truth, ends of the informed interval, and the width of ConfDiff's."""
        y = rng.random((2, n)) < self.prior
        u = rng.normal(np.where(y, 0.5, -0.5) * self.separation, 1)
        r = expit(self.separation * u + logit(self.prior))
        turn, (misses, alarms) = rng.random((2, n)), self.flips()
        h = np.where(r > 0.5, turn >= misses, turn < alarms)
        labels = PairLabels.from_posteriors(r[0], r[1])
        informed = estimate_accuracy(h[0] - 0.5, h[1] - 0.5, labels).informed
        s, c = labels.to_array().T
        known = self.prior if self.prior == 0.5 else None
        reference = confdiff_width(s, c, h.astype(float), known)
        return np.array([1 - self.error, informed.low, informed.high, reference])


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


def flipped_cells() -> Iterator[Flipped]:
    for separation in (5.0, 8.0):
        for prior in (0.1, 0.2, 0.5):
            for error in (0.02, 0.12):
                for kind in ("symmetric", "misses", "alarms"):
                    cell = Flipped(separation, prior, error, kind)
                    if max(cell.flips()) <= 1:
                        yield cell


@cache
def knowledge(signal: float, prior: float) -> float:
    """κ = Var(r)/(π(1 − π)) of an annotator who sees N(±signal, 1)."""

    def density(v: float) -> float:
        r = expit(2 * signal * v + logit(prior))
        both = [math.exp(-((v - side * signal) ** 2) / 2) for side in (1, -1)]
        return (prior * both[0] + (1 - prior) * both[1]) / math.sqrt(2 * math.pi) * r * r

    square = quad(density, -signal - 9, signal + 9)[0]
    return (square - prior**2) / (prior * (1 - prior))


PRIVATE = 1.5
"""Signal of what annotators know on their own; by itself, 93.3% right for equal classes."""


@dataclass(frozen=True)
class World:
    """A sort of annotator, and a classifier of a given accuracy."""

    sort: str
    prior: float
    accuracy: float

    def _cut(self, signal: float) -> float:
        """Mean of both features above which the model's log-odds are positive, times √2."""
        level = 0.5
        if self.sort == "private":
            kappa = knowledge(PRIVATE, self.prior)
            level = (0.5 - self.prior * (1 - kappa)) / kappa
        return float((logit(level) - logit(self.prior)) / (2 * signal))

    def _right(self, signal: float) -> float:
        cut = self._cut(signal)
        return self.prior * PHI(signal - cut) + (1 - self.prior) * PHI(signal + cut)

    @cached_property
    def signal(self) -> float:
        """Signal of both features together that gives the accuracy, by bisection."""
        low, high = 0.1, 8.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._right(middle) < self.accuracy else (low, middle)
        return high

    def items(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Classes, the model's log-odds and the annotator's probabilities."""
        signal = self.signal / math.sqrt(2)
        y = rng.random(size) < self.prior
        side = np.where(y, 1.0, -1.0)
        one, two = rng.normal(side * signal, 1, size=(2, size))
        own = rng.normal(side * PRIVATE, 1)
        base = logit(self.prior)
        posterior = expit(2 * signal * (one + two) + base)
        if self.sort == "private":
            kappa = knowledge(PRIVATE, self.prior)
            learnt = self.prior * (1 - kappa) + kappa * posterior
            return y, logit(learnt), expit(2 * PRIVATE * own + base)
        seen = {
            "features": 2 * signal * (one + two),
            "both": 2 * signal * one + 2 * PRIVATE * own,
            "more": 2 * signal * (one + two) + 2 * PRIVATE * own,
            "less": 2 * signal * one,
        }[self.sort]
        return y, logit(posterior.clip(1e-15, 1 - 1e-15)), expit(seen + base)


@dataclass(frozen=True)
class Logistic:
    """y ~ σ(1.2 x₁ + 2.4 x₂) with normal features; the annotator sees x₁, the classifier both.

    With a ``correlation`` of the features the classifier has x₂ alone.
    """

    sort: str = "logistic"
    prior: float = 0.5
    correlation: float = 0.0

    @cached_property
    def accuracy(self) -> float:
        """The accuracy of deciding by the sign of the model's log-odds z, E[σ(|z|)] or its like."""
        if self.correlation:
            rest = 1.2 * math.sqrt(1 - self.correlation**2)

            def right(x: float) -> float:
                return float(_mean_expit((1.2 * self.correlation + 2.4) * x, rest))

            return float(2 * quad(lambda x: right(x) * NormalDist().pdf(x), 0, 10)[0])
        spread = math.hypot(1.2, 2.4)
        density = NormalDist(0, spread).pdf
        return float(2 * quad(lambda z: expit(z) * density(z), 0, 12 * spread)[0])

    def items(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Classes, the model's log-odds and the annotator's probabilities."""
        x, rho = rng.normal(size=(2, size)), self.correlation
        x[1] = rho * x[0] + math.sqrt(1 - rho**2) * x[1]
        z = 1.2 * x[0] + 2.4 * x[1]
        seen = _mean_expit((1.2 + 2.4 * rho) * x[0], 2.4 * math.sqrt(1 - rho**2))
        y = rng.random(size) < expit(z)
        return y, logit(_mean_expit(2.4 * x[1], 1.2)) if rho else z, seen


def _mean_expit(mean: np.ndarray | float, spread: float) -> np.ndarray:
    """E[σ(mean + spread·u)] for a normal u."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return expit(np.asarray(mean)[..., None] + spread * nodes) @ weights / weights.sum()


def large_items(
    sort: str, prior: float, signal: float, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Classes, the model's log-odds and the annotator's probabilities of ``large``."""
    y = rng.random(size) < prior
    side, base = np.where(y, 1.0, -1.0), logit(prior)
    if sort == "private":
        x, own = rng.normal(signal * side, 1), rng.normal(PRIVATE * side, 1)
        return y, 2 * signal * x + base, expit(2 * PRIVATE * own + base)
    one, two, own = rng.normal(side, 1, size=(3, size))
    seen = {"both": one + own, "less": one, "more": one + two + own}[sort]
    return y, 2 * (one + two) + base, expit(2 * seen + base)


def bracket_table(world: World | Logistic, n: int, rng: np.random.Generator) -> np.ndarray:
    """Truth, then ends of the informed interval, the independent one, and the bracket."""
    _, z, r = world.items(2 * n, rng)
    estimate = estimate_accuracy(z[:n], z[n:], PairLabels.from_posteriors(r[:n], r[n:]))
    parts = (estimate.informed, estimate.independent, estimate)
    return np.array([world.accuracy, *(x for part in parts for x in (part.low, part.high))])


def labelled_table(
    labels: int, world: World | Logistic, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Truth, then ends of ours, Wilson's and PPI++'s normal interval."""
    y, z, r = world.items(2 * n + labels, rng)
    pair = PairLabels.from_posteriors(r[:n], r[n : 2 * n])
    known = z[2 * n :], y[2 * n :]
    ours = estimate_accuracy(z[:n], z[n : 2 * n], pair, labelled=known)
    right = ((known[0] > 0) == known[1]).astype(float)
    share = right.mean()
    wilson = proportion(share, share * (1 - share) / labels, labels, Z)
    normal = normal_interval(right, expit(abs(known[0])), expit(abs(z[: 2 * n])))
    return np.array([world.accuracy, ours.low, ours.high, wilson.low, wilson.high, *normal])


def normal_interval(
    right: np.ndarray, guess: np.ndarray, others: np.ndarray
) -> tuple[float, float]:
    """PPI++ with a normal interval, as published: the variance of the predictions is pooled."""
    m, n = len(right), len(others)
    spread = np.concatenate([guess, others]).var(ddof=1)
    covariance = np.mean((right - right.mean()) * (guess - guess.mean()))
    tuning = min(max(covariance / spread / (1 + m / n), 0.0), 1.0)
    value = right.mean() + tuning * (others.mean() - guess.mean())
    variance = (right - tuning * guess).var() / m + tuning**2 * others.var() / n
    return value - Z * math.sqrt(variance), value + Z * math.sqrt(variance)


SETS = {"breast cancer": (load_breast_cancer, 80, 200), "digits": (load_digits, 200, 600)}
"""Loaders of sets, and their items in pairs to learn from and in pairs to measure with."""
SPLITS = 20
"""Random splits, for each model, of the items that it did not learn from."""


@dataclass(frozen=True)
class RealSet:
    """A set of scikit-learn, and a sort of annotator."""

    name: str
    sort: str

    def tables(self, _: int, rng: np.random.Generator) -> np.ndarray:
        """A row for each split of the items that a model did not learn from.

        Truth, then ends of the informed interval, the bracket, and with labels, all widened.
        """
        x, y, log_odds = known_items(self.name, self.sort)
        if self.sort in ("private", "both"):
            own = 2 * PRIVATE * rng.normal(np.where(y, PRIVATE, -PRIVATE))
            log_odds = own + (logit(y.mean()) if self.sort == "private" else log_odds)
        r, order = expit(log_odds), rng.permutation(len(x))
        learnt, judged = SETS[self.name][1:]
        ends, new = order[:learnt].reshape(-1, 2), order[learnt:]
        model = PairClassifier(model="linear", random_state=int(rng.integers(2**31)))
        model.fit(x[ends], PairLabels.from_posteriors(*r[ends].T))
        z = model.decision_function(x)
        splits = (rng.permutation(new) for _ in range(SPLITS))
        return np.stack([self.row(z, y, r, np.split(split, [judged])) for split in splits])

    def row(self, z: np.ndarray, y: np.ndarray, r: np.ndarray, parts: list) -> list[float]:
        """One row, from the items in pairs and the others."""
        pairs, others = parts[0].reshape(-1, 2), parts[1]
        known = *z[pairs].T, PairLabels.from_posteriors(*r[pairs].T)
        estimate = estimate_accuracy(*known)
        right = ((z > 0) == y).astype(float)
        row = [right[others].mean()]
        for part in (estimate.informed, estimate):
            row += widened(part, right[others])
        for count in LABELS:
            some, rest = others[:count], others[count:]
            if len(rest) < count:
                row += [math.nan, math.nan]
                continue
            powered = estimate_accuracy(*known, labelled=(z[some], y[some]))
            # Around the truth of the rest, as the first column is that of all others.
            moved = row[0] - right[rest].mean()
            row += [end + moved for end in widened(powered, right[rest])]
        return row


def widened(estimate: Estimate, right: np.ndarray) -> list[float]:
    """The ends of an interval that allows for the sampling error of the truth."""
    error = 1.96 * right.std() / math.sqrt(len(right))
    low = math.hypot(estimate.value - estimate.low, error)
    return [
        estimate.value - low,
        estimate.value + math.hypot(estimate.high - estimate.value, error),
    ]


@cache
def known_items(name: str, sort: str) -> tuple[np.ndarray, ...]:
    """Features and classes of a set, and log-odds of the annotator by what they see of both."""
    x, y = SETS[name][0](return_X_y=True)
    y = y == 0 if name == "breast cancer" else y % 2 == 0
    seen = x if sort == "features" else x[:, ::2]
    machine = make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), ensemble=False))
    r = cross_val_predict(machine, seen, y, cv=10, method="predict_proba")[:, 1]
    return x, y, logit(r.clip(1e-6, 1 - 1e-6))


Draw = Callable[[int, np.random.Generator], np.ndarray]


def chunk(task: tuple[int, Draw, int, int, int]) -> tuple[int, np.ndarray]:
    """Rows of some tables of a cell."""
    cell, draw, tables, n, seed = task
    rng = np.random.default_rng([seed, cell])
    return cell, np.stack([draw(n, rng) for _ in range(tables)])


def simulate(draws: list[Draw], tables: int, n: int, jobs: int) -> list[np.ndarray]:
    """Rows of all tables of every cell, in processes."""
    sizes = [min(CHUNK, tables - start) for start in range(0, tables, CHUNK)]
    tasks = [(c, d, size, n, s) for c, d in enumerate(draws) for s, size in enumerate(sizes)]
    rows: list[list[np.ndarray]] = [[] for _ in draws]
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(threads, "1")
    with get_context("spawn").Pool(jobs) as pool:
        for cell, some in pool.imap(chunk, tasks):
            rows[cell].append(some)
    return [np.concatenate(some) for some in rows]


def held(rows: np.ndarray) -> list[tuple[float, float]]:
    """Coverage and mean width of each interval; columns are the truth, then pairs of ends."""
    truth, ends = rows[:, :1], rows[:, 1:].reshape(len(rows), -1, 2)
    covered = (ends[:, :, 0] <= truth) & (truth <= ends[:, :, 1])
    return list(zip(covered.mean(0), (ends[:, :, 1] - ends[:, :, 0]).mean(0), strict=True))


def worlds() -> list[World | Logistic]:
    """Sorts of annotators at three accuracies for nearly equal classes, and a rare class."""
    sorts = ("features", "private", "both", "more", "less")
    near = [World(sort, 0.4, accuracy) for sort in sorts for accuracy in (0.8, 0.95, 0.98)]
    rare = [World(sort, 0.1, 0.95) for sort in sorts]
    others = [World("private", 0.5, 0.95), Logistic(), Logistic("related", correlation=0.3)]
    return [*near, *rare, *others]


def report_large(_: argparse.Namespace) -> None:
    rng, n = np.random.default_rng(0), 100_000
    private = [("private", prior, signal) for prior in (0.4, 0.1) for signal in (0.8, 1.5, 2.5)]
    others = [(sort, prior, 1.0) for sort in ("both", "less", "more") for prior in (0.4, 0.1)]
    tables = [(*cell, large_items(*cell, 2 * n, rng)) for cell in (*private, *others)]
    logistic = (Logistic(), Logistic("related", correlation=0.3))
    tables += [(one.sort, one.prior, math.nan, one.items(2 * n, rng)) for one in logistic]
    print("annotator  prior  signal  κ      true   informed  independent")
    for sort, prior, signal, (y, z, r) in tables:
        estimate = estimate_accuracy(z[:n], z[n:], PairLabels.from_posteriors(r[:n], r[n:]))
        print(
            f"{sort:<9}  {prior:<5g}  {signal:<6g}  {estimate.knowledge.value:.3f}  "
            f"{np.mean((z > 0) == y):.3f}  {estimate.informed.value:.3f}     "
            f"{estimate.independent.value:.3f}"
        )


def report_sets(options: argparse.Namespace) -> None:
    sorts = ("features", "private", "both", "less")
    cells = [RealSet(name, sort) for name in SETS for sort in sorts]
    models = options.tables // 100
    rows = simulate([cell.tables for cell in cells], models, options.pairs, options.jobs)
    print(f"{models} models of each cell, {SPLITS} splits each: covers (standard error) width")
    heads = ("informed", "bracket", *(f"{count} labels" for count in LABELS))
    print(f"{'set':<13}  annotator  accuracy  " + "".join(f"{head:<22}" for head in heads).rstrip())
    for cell, some in zip(cells, rows, strict=True):
        by_model = np.array([held(one) for one in some])
        error = by_model[:, :, 0].std(0, ddof=1) / math.sqrt(models)
        shown = [
            "–" if math.isnan(width) else f"{share:.3f} ({one:.3f}) {width:.3f}"
            for (share, width), one in zip(by_model.mean(0), error, strict=True)
        ]
        numbers = "".join(f"{text:<22}" for text in shown).rstrip()
        print(f"{cell.name:<13}  {cell.sort:<9}  {some[..., 0].mean():.3f}     {numbers}")


def report_informed(options: argparse.Namespace) -> None:
    cells = list(flipped_cells())
    rows = simulate([cell.table for cell in cells], options.tables, options.pairs, options.jobs)
    print("  μ  prior error  kind       coverage  width  ÷ ConfDiff")
    covered = []
    for cell, some in zip(cells, rows, strict=True):
        ((coverage, width),) = held(some[:, :3])
        covered.append(coverage)
        print(
            f"{cell.separation:3g}  {cell.prior:<5g} {cell.error:<5g}  {cell.kind:<9}  "
            f"{coverage:8.3f}  {width:.4f}  {width / some[:, 3].mean():9.2f}"
        )
    print(f"{len(cells)} settings: coverage {min(covered):.3f} to {max(covered):.3f}")


def report_readings(options: argparse.Namespace) -> None:
    cells = worlds()
    draws: list[Draw] = [partial(bracket_table, world) for world in cells]
    rows = simulate(draws, options.tables, options.pairs, options.jobs)
    print("                            informed        independent     bracket")
    print("annotator  prior  accuracy  covers  width   covers  width   covers  width")
    for world, some in zip(cells, rows, strict=True):
        numbers = "   ".join(f"{coverage:.3f}   {width:.3f}" for coverage, width in held(some))
        print(f"{world.sort:<9}  {world.prior:<5g}  {world.accuracy:.3f}     {numbers}")


def report_labels(options: argparse.Namespace) -> None:
    cells = [(world, labels) for world in worlds() for labels in LABELS]
    draws: list[Draw] = [partial(labelled_table, labels, world) for world, labels in cells]
    rows = simulate(draws, options.tables, options.pairs, options.jobs)
    print("                                    ours             Wilson   PPI++, normal")
    print("annotator  prior  accuracy  labels  covers  ÷ Wilson  covers   covers")
    least, most = 1.0, 0.0
    for (world, labels), some in zip(cells, rows, strict=True):
        (ours, width), (wilson, reference), (normal, _) = held(some)
        least, most = min(least, ours), max(most, width / reference)
        print(
            f"{world.sort:<9}  {world.prior:<5g}  {world.accuracy:.3f}     {labels:>6}  "
            f"{ours:.3f}   {width / reference:.3f}     {wilson:.3f}    {normal:.3f}"
        )
    print(f"ours: coverage at least {least:.3f}, width at most {most:.3f} times Wilson's")


PARTS = {
    "large": report_large,
    "informed": report_informed,
    "readings": report_readings,
    "labels": report_labels,
    "sets": report_sets,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    options = parser.parse_args()
    for part, report in PARTS.items():
        if options.part in (part, "all"):
            start = time.perf_counter()
            size = f": {options.tables} tables of {options.pairs} pairs"
            print(part + size * (part not in ("large", "sets")))
            report(options)
            print(f"{time.perf_counter() - start:.0f} s, {options.jobs} jobs\n", flush=True)


if __name__ == "__main__":
    main()
