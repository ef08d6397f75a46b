"""Tables of judged pairs whose truth is known, to try things out on.

Instances come from two Gaussians or two moons, whose posteriors are exact, or from data
that come with scikit-learn (digits, even against odd; breast cancer, malignant against
benign), whose posteriors are those of a cross-fitted logistic regression. Pairs are
judged by annotators who know the posteriors and write them down with noise. What follows
from a seed is the same on every machine up to rounding, except for the regressions.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Floats, Indices, Mask
from pairlearn.data.sampling import draw_at_prior
from pairlearn.kinds import kind
from pairlearn.labels import PairLabels
from pairlearn.randomness import normal, permutation, stream, uniform
from pairlearn.tables import ItemTable, PairTable, open_rows, write_items, write_pairs

__all__ = ["Distribution", "Simulation", "simulate"]

Distribution = Literal["gaussians", "moons", "digits", "breast-cancer"]
OVERLAP = 0.05
"""Error of the best classifier at a balanced prior, where nothing else is said."""
LARGEST_OVERLAP = {"gaussians": 0.45, "moons": 0.3}
_INVERSE_PENALTY = {"digits": 0.1, "breast-cancer": 1.0}
"""Of the regressions, by the least cross-validated log loss: those are calibrated best."""


@dataclass(frozen=True)
class Simulation:
    """Items, judged pairs and the truth about the items.

    The items have ids 0, 1, …; ``positive`` are their true classes, for checking, not for learning,
    and ``posterior`` is their P(y = +1 | x) at the prior of the simulation.
    """

    items: ItemTable
    pairs: PairTable
    positive: Mask
    posterior: Floats

    def write(
        self, folder: str | os.PathLike[str], format: Literal["csv", "parquet"] = "csv"
    ) -> list[Path]:
        """Write items, pairs and truth.csv (id, class of +1 or −1, posterior) to a folder."""
        if format not in ("csv", "parquet"):
            raise ValueError(f"format must be 'csv' or 'parquet'; got {format!r}")
        items, pairs = (Path(folder, f"{name}.{format}") for name in ("items", "pairs"))
        truth = Path(folder, "truth.csv")
        write_items(self.items, items)
        write_pairs(self.pairs, pairs)
        known = {"id": self.items.ids, "class": np.where(self.positive, 1, -1)}
        with open_rows(truth, [*known, "posterior"]) as rows:
            rows.write(known | {"posterior": self.posterior})
        return [items, pairs, truth]


def simulate(
    distribution: Distribution = "gaussians",
    *,
    pairs: int = 1000,
    prior: float = 0.3,
    items: int | None = None,
    annotators: int = 1,
    noise: float = 0.0,
    missing: float = 0.0,
    preference: float = 0.0,
    repeated: float = 0.0,
    annotator_prior: float | None = None,
    overlap: float | None = None,
    also: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Simulation:
    """Simulate items and judged pairs.

    Parameters
    ----------
    distribution : {"gaussians", "moons", "digits", "breast-cancer"}
        Where the items come from.
    pairs : int
        Pairs to judge.
    prior : float
        Share π₊ of positive items.
    items : int, optional
        Number of items, 2 · `pairs` if not given (or all that a data set has at the
        prior, if those are fewer). With more some are in no pair; with fewer they recur.
    annotators : int
        Each judgement is by one of them, at random.
    noise : float
        σ: every judgement is multiplied by a draw from N(1, σ²) and clipped to its range.
    missing : float
        Share of judgements that lack the similarity or the difference.
    preference : float
        Share of judgements that only say which of the two is the more positive.
    repeated : float
        Share of pairs that a second annotator judges too.
    annotator_prior : float, optional
        The annotators judge by a population with this prior; by `prior` if not given.
    overlap : float, optional
        Error of the best classifier at a balanced prior (gaussians and moons), 0.05 if
        not given.
    also : mapping of str to float, optional
        Further statements by kind (`pairlearn.kinds`), as shares of `pairs`: {"label": 0.1}
        gives a label for a tenth as many items.
    seed : int

    Examples
    --------
    >>> made = simulate("moons", pairs=100, prior=0.2, missing=0.5)
    >>> len(made.items), len(made.pairs), int(made.positive.sum())
    (200, 100, 40)
    """
    if distribution not in get_args(Distribution):
        known = ", ".join(get_args(Distribution))
        raise ValueError(f"distribution must be one of {known}; got {distribution!r}")
    counts = (("pairs", pairs, 1), ("items", items, 2), ("annotators", annotators, 1))
    for name, number, least in (*counts, ("seed", seed, 0)):
        if number is not None and number < least:
            raise ValueError(f"{name} must be at least {least}; got {number}")
    judged = prior if annotator_prior is None else annotator_prior
    for name, share in (("prior", prior), ("annotator_prior", judged)):
        if not 0 < share < 1:
            raise ValueError(f"{name} must lie in (0, 1); got {share:g}")
    for name, share in (("missing", missing), ("preference", preference), ("repeated", repeated)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must lie in [0, 1]; got {share:g}")
    more = dict(also or {})
    for name, share in more.items():
        kind(name)  # which says which kinds there are
        if not 0 < share <= 1:
            raise ValueError(f"also gives {name} a share of {share:g}: it must lie in (0, 1]")
    if missing + preference > 1:
        raise ValueError(f"missing and preference are {missing + preference:g} together: at most 1")
    if not 0 <= noise < math.inf:
        raise ValueError(f"noise must be a finite number of at least 0; got {noise:g}")
    if repeated and annotators < 2:
        raise ValueError(f"repeated is {repeated:g}: a second judgement needs two annotators")
    if distribution in ("digits", "breast-cancer"):
        if overlap is not None:
            raise ValueError(f"overlap is what it is in {distribution}: leave it out")
        drawn = _from_data_set(distribution, pairs, prior, items, seed)
    else:
        count = 2 * pairs if items is None else items
        error = OVERLAP if overlap is None else overlap
        drawn = _from_density(distribution, count, prior, error, seed)
    posterior = _sigmoid(drawn.evidence + _logit(judged))
    table = _judge(
        posterior, pairs, seed, annotators=annotators,
        noise=noise, missing=missing, preference=preference, repeated=repeated,
    )  # fmt: skip
    parts = [_stated(name, round(share * pairs), posterior, seed) for name, share in more.items()]
    table = PairTable.concatenate([table, *parts])
    ids = np.arange(len(drawn.positive))
    found = ItemTable(ids, drawn.features.astype(np.float32), list(drawn.names))
    return Simulation(found, table, drawn.positive, _sigmoid(drawn.evidence + _logit(prior)))


class _Items(NamedTuple):
    """Instances with their classes and log P(x | +) − log P(x | −)."""

    features: NDArray[Any]
    names: list[str]
    positive: Mask
    evidence: Floats


# ---- items ------------------------------------------------------------------------------------


def _from_density(distribution: str, count: int, prior: float, overlap: float, seed: int) -> _Items:
    if not 0 < overlap <= LARGEST_OVERLAP[distribution]:
        raise ValueError(
            f"overlap must lie in (0, {LARGEST_OVERLAP[distribution]:g}] for {distribution}; "
            f"got {overlap:g}"
        )
    positive = np.arange(count) < int(count * prior + 1e-9)
    positive = positive[permutation(stream(seed, "classes"), count)]
    draws = normal(stream(seed, "features"), 2 * count).reshape(count, 2)
    if distribution == "gaussians":
        # The best classifier errs in Φ(−d/2) of cases at distance d.
        distance = -2 * NormalDist().inv_cdf(overlap)
        draws[:, 0] += distance * (positive - 0.5)
        return _Items(draws, ["x1", "x2"], positive, distance * draws[:, 0])
    sigma = _moon_noise(overlap)
    angle = math.pi * uniform(stream(seed, "angles"), count)
    points = np.where(positive[:, None], _arc(angle, 1), _arc(angle, 0)) + sigma * draws
    return _Items(points, ["x1", "x2"], positive, _moon_evidence(points, sigma))


def _arc(angle: Floats, moon: int) -> Floats:
    """Points of the upper (0) or of the lower (1) moon."""
    turn = 1 - 2 * moon
    return np.stack([moon + turn * np.cos(angle), 0.5 * moon + turn * np.sin(angle)], axis=-1)


def _moon_evidence(points: Floats, sigma: float) -> Floats:
    """Log P(x | lower moon) − log P(x | upper moon), by the midpoint rule along the arcs."""
    angles = (np.arange(120) + 0.5) * math.pi / 120
    result = np.empty(len(points))
    for start in range(0, len(points), 8192):
        part = points[start : start + 8192]
        logs = []
        for moon in (1, 0):
            squares = ((part[:, None] - _arc(angles, moon)) ** 2).sum(-1) / (2 * sigma**2)
            least = squares.min(axis=1)
            logs.append(np.log(np.exp(least[:, None] - squares).sum(axis=1)) - least)
        result[start : start + 8192] = logs[0] - logs[1]
    return result


@cache
def _moon_noise(overlap: float) -> float:
    """The σ at which the best classifier errs in this share of cases, at a balanced prior."""
    probabilities = (np.arange(10) + 0.5) / 10
    steps = np.array([NormalDist().inv_cdf(p) for p in probabilities])
    cross = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    arc = _arc((np.arange(24) + 0.5) * math.pi / 24, 0)
    low, high = 0.05, 1.5
    for _ in range(14):
        middle = (low + high) / 2
        # By symmetry both moons err alike: one of them will do.
        points = (arc[:, None] + middle * cross).reshape(-1, 2)
        error = float((_moon_evidence(points, middle) > 0).mean())
        low, high = (middle, high) if error < overlap else (low, middle)
    return high


def _from_data_set(name: str, pairs: int, prior: float, items: int | None, seed: int) -> _Items:
    features, names, positive, evidence = _judged(name)
    available = int(min(positive.sum() / prior, (~positive).sum() / (1 - prior)) + 1e-9)
    count = min(2 * pairs, available) if items is None else items
    rng, what = stream(seed, "items"), f"{count} items of {name}"
    chosen = draw_at_prior(positive, count, prior, rng, what)
    return _Items(features[chosen], names, positive[chosen], evidence[chosen])


@cache
def _judged(name: str) -> _Items:
    """A whole data set, as annotators see it."""
    features, names, positive = _load(name)
    evidence = _cross_fitted_evidence(features, positive, _INVERSE_PENALTY[name])
    return _Items(features, names, positive, evidence)


def _load(name: str) -> tuple[Floats, list[str], Mask]:
    from sklearn.datasets import load_breast_cancer, load_digits

    if name == "digits":
        digits = load_digits()
        return digits.data, [f"pixel_{i}" for i in range(64)], digits.target % 2 == 0
    cancer = load_breast_cancer()
    return cancer.data, [str(n).replace(" ", "_") for n in cancer.feature_names], cancer.target == 0


def _cross_fitted_evidence(features: Floats, positive: Mask, c: float) -> Floats:
    """Log-odds by models that did not see the instance, less those of the whole set."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=2000))
    log_odds = cross_val_predict(model, features, positive, cv=5, method="decision_function")
    return np.asarray(log_odds, dtype=np.float64) - _logit(float(positive.mean()))


# ---- judgements -------------------------------------------------------------------------------


def _judge(
    posterior: Floats,
    pairs: int,
    seed: int,
    *,
    annotators: int,
    noise: float,
    missing: float,
    preference: float,
    repeated: float,
) -> PairTable:
    ends = _pair_up(len(posterior), pairs, seed)
    who = permutation(stream(seed, "annotators"), pairs) % annotators
    again = permutation(stream(seed, "repeated"), pairs)[: round(repeated * pairs)]
    others = 1 + permutation(stream(seed, "second annotators"), len(again)) % max(annotators - 1, 1)
    ends = np.concatenate([ends, ends[again]])
    who = np.concatenate([who, (who[again] + others) % annotators])
    n = len(ends)
    labels = PairLabels.from_posteriors(posterior[ends[:, 0]], posterior[ends[:, 1]])
    factors = 1 + noise * normal(stream(seed, "label noise"), 2 * n).reshape(2, n)
    similarity = np.clip(labels.similarity * factors[0], 0, 1)
    difference = np.clip(labels.difference * factors[1], -1, 1)
    order = permutation(stream(seed, "kinds"), n)
    ranked, partial = np.split(order[: round(preference * n) + round(missing * n)],
                               [round(preference * n)])  # fmt: skip
    choice = np.zeros(n, np.int8)
    choice[ranked] = np.where(difference[ranked] < 0, -1, 1)
    similarity[ranked] = difference[ranked] = np.nan
    similarity[partial[::2]] = np.nan
    difference[partial[1::2]] = np.nan
    return PairTable(
        ends[:, 0],
        ends[:, 1],
        similarity,
        difference,
        preference=choice if preference else None,
        annotator=np.array([f"annotator-{k + 1}" for k in who]) if annotators > 1 else None,
    )


def _stated(name: str, count: int, posterior: Floats, seed: int) -> PairTable:
    """Statements of one kind about random items or pairs, as an honest annotator makes them."""
    of, rng = kind(name), stream(seed, "also", name)
    size = 1 if of.single else 2
    if not 0 < count * size <= len(posterior):
        raise ValueError(f"also asks for {count} of {name}, and there are {len(posterior)} items")
    ends = permutation(rng, len(posterior))[: count * size].reshape(count, size)
    left, right = np.repeat(ends[:: of.shared, 0], of.shared)[:count], ends[:, -1]
    values = of.simulate(posterior[left], posterior[right], rng)
    said_of = ~np.isnan(values).any(1)
    left, right, values = left[said_of], right[said_of], values[said_of]
    said: dict[str, Any] = {"similarity": None, "difference": None}
    said |= {column.name: values[:, column.place] for column in of.columns}
    return PairTable(left, np.full(len(left), "") if of.single else right, **said)


def _pair_up(items: int, pairs: int, seed: int) -> Indices:
    """Distinct pairs of distinct items, in rounds in which every item is used about once."""
    possible = items * (items - 1) // 2
    if pairs > possible:
        raise ValueError(f"{items} items make {possible} pairs: ask for no more, or more items")
    rng = stream(seed, "pairs")
    if 2 * pairs > possible:  # rounds would mostly meet pairs that were drawn before
        every = np.stack(np.triu_indices(items, 1), axis=1)[permutation(rng, possible)[:pairs]]
        turned = permutation(rng, pairs) % 2 == 0
        return np.where(turned[:, None], every[:, ::-1], every)
    made = np.empty((0, 2), np.int64)
    while len(made) < pairs:
        rounds = -(-(pairs - len(made)) // (items // 2))
        more = [permutation(rng, items)[: items // 2 * 2].reshape(-1, 2) for _ in range(rounds)]
        made = np.concatenate([made, *more])
        key = made.min(axis=1) * items + made.max(axis=1)
        made = made[np.sort(np.unique(key, return_index=True)[1])]
    return made[:pairs]


def _logit(p: float) -> float:
    return math.log(p / (1 - p))


def _sigmoid(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(z, -700, 700)))
