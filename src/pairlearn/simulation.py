"""Simulated tables of judged pairs with known true classes.

Items come from two Gaussians or two moons, with exact posteriors, or from data sets of scikit-learn
(digits, even against odd; breast cancer, malignant against benign), with posteriors from a
cross-fitted logistic regression. A single annotator knows the posteriors exactly. Several differ:
each sees the log-odds of an item with a normal error, whose spread is their own, and then answers
consistently. Noise can be added to the answers of all. A seed
gives the same table on every machine up to rounding, except for the regressions.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp, softmax

from pairlearn.columns import Floats, Indices, Mask, check_share
from pairlearn.io import ItemTable, open_rows, write_items, write_pairs
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import kind
from pairlearn.judgements.sets import check_classes, join_set, propose_sets
from pairlearn.labels import PairLabels
from pairlearn.randomness import normal, permutation, stream, uniform

__all__ = ["Distribution", "Simulation", "simulate"]

Distribution = Literal["gaussians", "moons", "digits", "breast-cancer"]
#: Default error of the best classifier at a balanced prior.
OVERLAP = 0.05
LARGEST_OVERLAP = {"gaussians": 0.45, "moons": 0.3}
#: Least and largest spread σ_j of an annotator's log-odds, if there are several: the posterior of
#: an uncertain item, r(1 − r) ≤ ¼, moves by 0.025 to 0.075, so that people agree to about a tenth.
SPREAD = 0.1, 0.3
#: C of the regressions, chosen by the cross-validated log loss for calibration.
_INVERSE_PENALTY = {"digits": 0.1, "breast-cancer": 1.0}


@dataclass(frozen=True)
class Simulation:
    """Items, judged pairs and the true classes of the items.

    The items have ids 0, 1, …; ``positive`` are their true classes, for evaluation only, and
    ``posterior`` is P(y = +1 | x) at the prior of the simulation. With more than two classes
    ``names`` they are the number of the class, and posteriors (N, K).
    """

    items: ItemTable
    pairs: Judgements
    positive: Mask | Indices
    posterior: Floats
    names: tuple[str, ...] = ()

    def write(
        self, folder: str | os.PathLike[str], format: Literal["csv", "parquet"] = "csv"
    ) -> list[Path]:
        """Write items, pairs and truth.csv (id, class, posterior, or posteriors) to a folder."""
        if format not in ("csv", "parquet"):
            raise ValueError(f"format must be 'csv' or 'parquet'; got {format!r}")
        items, pairs = (Path(folder, f"{name}.{format}") for name in ("items", "pairs"))
        truth = Path(folder, "truth.csv")
        write_items(self.items, items)
        write_pairs(self.pairs, pairs)
        columns: dict[str, Any] = {"id": self.items.ids}
        if self.names:
            posteriors = zip(self.names, self.posterior.T, strict=True)
            columns["class"] = np.array(self.names)[self.positive]
            columns |= {f"posterior_{name}": posterior for name, posterior in posteriors}
        else:
            columns |= {"class": np.where(self.positive, 1, -1), "posterior": self.posterior}
        with open_rows(truth, list(columns)) as rows:
            rows.write(columns)
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
    classes: Sequence[str] = (),
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
        Number of items, by default 2 · `pairs` (or all that a data set has at the prior, if
        fewer). With more, some are in no pair; with fewer, items recur.
    annotators : int
        Number of annotators; each judgement is by a random one. One annotator is exact. Several
        see the log-odds of both items with an error from N(0, σ_j²), drawn anew for each
        judgement, with σ_j of their own between 0.1 and 0.3.
    noise : float
        σ: every judgement is multiplied by a draw from N(1, σ²) and clipped to its range.
    missing : float
        Share of judgements that lack the similarity or the difference.
    preference : float
        Share of judgements that only state which item is more positive.
    repeated : float
        Share of pairs that a second annotator judges too.
    annotator_prior : float, optional
        Class prior of the population that the annotators judge by; `prior` by default.
    overlap : float, optional
        Error of the best classifier at a balanced prior (gaussians and moons), by default
        0.05.
    also : mapping of str to float, optional
        Further statements by kind (`kinds`), as shares of `pairs`: {"label": 0.1}
        labels a tenth as many items.
    classes : sequence of str, optional
        Names of more than two classes, which are equally frequent: Gaussians around the corners of
        a simplex, any two of which overlap by `overlap`. Each pair is judged as to one class: in
        the first quarter any class, then one that `propose_sets` draws from a regression on these
        answers.
    seed : int

    Examples
    --------
    >>> data = simulate("moons", pairs=100, prior=0.2, missing=0.5)
    >>> len(data.items), len(data.pairs), int(data.positive.sum())
    (200, 100, 40)
    """
    if distribution not in get_args(Distribution):
        known = ", ".join(get_args(Distribution))
        raise ValueError(f"distribution must be one of {known}; got {distribution!r}")
    counts = (("pairs", pairs, 1), ("items", items, 2), ("annotators", annotators, 1))
    for name, number, least in (*counts, ("seed", seed, 0)):
        if number is not None and number < least:
            raise ValueError(f"{name} must be at least {least}; got {number}")
    check_share("prior", prior)
    check_share("annotator_prior", annotator_prior)
    for name, share in (("missing", missing), ("preference", preference), ("repeated", repeated)):
        check_share(name, share, ends="[]")
    if missing + preference > 1:
        raise ValueError(f"missing and preference are {missing + preference:g} together: at most 1")
    for name, share in (also := also or {}).items():
        kind(name)  # refuses unknown names
        check_share(f"also: the share of {name}", share, ends="(]")
    if not 0 <= noise < math.inf:
        raise ValueError(f"noise must be a finite number of at least 0; got {noise:g}")
    if repeated and annotators < 2:
        raise ValueError(f"repeated is {repeated:g}: a second judgement needs two annotators")
    if len(classes):
        names = check_classes(classes)
        if len(names) < 3 or distribution != "gaussians" or annotator_prior or also or preference:
            raise ValueError(
                "classes must be three or more, from gaussians, without annotator_prior, also or "
                f"preference; got {', '.join(names)} from {distribution}"
            )
    if overlap is not None and distribution in _INVERSE_PENALTY:
        raise ValueError(f"overlap is fixed in {distribution}: leave it out")
    error, count = OVERLAP if overlap is None else overlap, items or 2 * pairs
    if distribution in LARGEST_OVERLAP and not 0 < error <= LARGEST_OVERLAP[distribution]:
        raise ValueError(
            f"overlap must lie in (0, {LARGEST_OVERLAP[distribution]:g}] for {distribution}; "
            f"got {error:g}"
        )
    answering: Any = {"noise": noise, "missing": missing, "preference": preference, "seed": seed}
    if len(classes):
        x, y, posterior = _draw_classes(names, count, error, seed)
        ends, annotator = _assign(count, pairs, annotators, repeated, seed)
        about, q = _ask(x, posterior, ends, seed)
        log_odds = logit(posterior[ends, about[:, None]].clip(1e-12, 1 - 1e-12))
        judged = _judge(log_odds, ends, np.arange(count), annotator, **answering)
        sets = np.array([join_set([name]) for name in names])
        table = ItemTable(judged.ids, x, [f"x{k + 1}" for k in range(len(names))])
        return Simulation(table, replace(judged, about=sets[about], q=q), y, posterior, names)
    if distribution in _INVERSE_PENALTY:
        drawn = _from_data_set(distribution, pairs, prior, items, seed)
    else:
        drawn = _from_density(distribution, count, prior, error, seed)
    ids, log_odds = np.arange(len(drawn.evidence)), drawn.evidence + logit(annotator_prior or prior)
    ends, annotator = _assign(len(ids), pairs, annotators, repeated, seed)
    judged = _judge(log_odds[ends], ends, ids, annotator, **answering)
    others = [_state(k, round(share * pairs), expit(log_odds), seed) for k, share in also.items()]
    return Simulation(
        ItemTable(ids, drawn.features.astype(np.float32), list(drawn.names)),
        Judgements.concatenate([judged, *others]),
        drawn.positive,
        expit(drawn.evidence + logit(prior)),
    )


class _Items(NamedTuple):
    """Items with their classes and their evidence log P(x | +) − log P(x | −)."""

    features: NDArray[Any]
    names: list[str]
    positive: Mask
    evidence: Floats


# ---- items ------------------------------------------------------------------------------------


def _from_density(distribution: str, count: int, prior: float, overlap: float, seed: int) -> _Items:
    positive = np.arange(count) < int(count * prior + 1e-9)
    positive = positive[permutation(stream(seed, "classes"), count)]
    draws = normal(stream(seed, "features"), 2 * count).reshape(count, 2)
    if distribution == "gaussians":
        # At distance d the best classifier has the error Φ(−d/2).
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
    logs = []
    for part in np.array_split(points, range(8192, len(points), 8192)):  # they fit into memory
        squares = (((part[:, None] - _arc(angles, moon)) ** 2).sum(-1) for moon in (1, 0))
        logs.append([logsumexp(-each / (2 * sigma**2), axis=1) for each in squares])
    lower, upper = np.concatenate(logs, 1)
    return np.asarray(lower - upper)


@cache
def _moon_noise(overlap: float) -> float:
    """The σ at which the best classifier has this error, at a balanced prior."""
    probabilities = (np.arange(10) + 0.5) / 10
    steps = np.array([NormalDist().inv_cdf(p) for p in probabilities])
    cross = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    arc = _arc((np.arange(24) + 0.5) * math.pi / 24, 0)
    low, high = 0.05, 1.5
    for _ in range(14):
        middle = (low + high) / 2
        # By symmetry the error is the same on both moons.
        points = (arc[:, None] + middle * cross).reshape(-1, 2)
        error = float((_moon_evidence(points, middle) > 0).mean())
        low, high = (middle, high) if error < overlap else (low, middle)
    return high


def draw_at_prior(
    positive: Mask, n: int, prior: float, rng: np.random.Generator, purpose: str
) -> Indices:
    """Draw n distinct instances, ⌊n π₊⌋ of them positive, in random order.

    ``purpose`` starts the error message if there are too few.
    """
    n_positive = int(n * prior + 1e-9)
    chosen = []
    for name, members, wanted in (
        ("positive", np.flatnonzero(positive), n_positive),
        ("negative", np.flatnonzero(~positive), n - n_positive),
    ):
        if wanted > len(members):
            raise ValueError(
                f"{purpose} at prior {prior:g} need {wanted} distinct {name} instances, "
                f"and there are {len(members)}: ask for fewer"
            )
        chosen.append(members[permutation(rng, len(members))[:wanted]])
    return np.concatenate(chosen)[permutation(rng, n)]


def _from_data_set(name: str, pairs: int, prior: float, items: int | None, seed: int) -> _Items:
    features, names, positive, evidence = _data_set(name)
    available = int(min(positive.sum() / prior, (~positive).sum() / (1 - prior)) + 1e-9)
    count = min(2 * pairs, available) if items is None else items
    rng, purpose = stream(seed, "items"), f"{count} items of {name}"
    chosen = draw_at_prior(positive, count, prior, rng, purpose)
    return _Items(features[chosen], names, positive[chosen], evidence[chosen])


@cache
def _data_set(name: str) -> _Items:
    """A whole data set, with cross-fitted evidence."""
    from sklearn.datasets import load_breast_cancer, load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "digits":
        data = load_digits()
        names, positive = [f"pixel_{i}" for i in range(64)], data.target % 2 == 0
    else:
        data = load_breast_cancer()
        names, positive = [str(n).replace(" ", "_") for n in data.feature_names], data.target == 0
    regression = LogisticRegression(C=_INVERSE_PENALTY[name], max_iter=2000)
    model = make_pipeline(StandardScaler(), regression)
    log_odds = cross_val_predict(model, data.data, positive, cv=5, method="decision_function")
    evidence = np.asarray(log_odds, dtype=np.float64) - logit(positive.mean())
    return _Items(data.data, names, positive, evidence)


def _draw_classes(
    names: tuple[str, ...], items: int, overlap: float, seed: int
) -> tuple[Floats, Indices, Floats]:
    """Features, classes and posteriors (n, K) of Gaussians around the corners of a simplex."""
    count = len(names)
    classes = permutation(stream(seed, "classes"), items) % count
    corners = -math.sqrt(2) * NormalDist().inv_cdf(overlap) * np.eye(count)
    x = corners[classes] + normal(stream(seed, "features"), items * count).reshape(items, count)
    return x, classes, softmax(x @ corners, 1)


def _ask(x: Floats, posterior: Floats, ends: Indices, seed: int) -> tuple[Indices, Floats]:
    """The class that each pair is asked about, and the probability with which it was chosen."""
    first, count = len(ends) // 4, posterior.shape[1]
    about, q = permutation(stream(seed, "about"), len(ends)) % count, np.full(len(ends), 1 / count)
    quick, gaps = np.empty_like(posterior), x[ends[:first, 1]] - x[ends[:first, 0]]
    for k in range(count):  # differences of posteriors are about linear in those of features
        asked = about[:first] == k
        c = posterior[ends[:first], k][asked] @ [-1, 1]
        slope = np.linalg.lstsq(gaps[asked], c, rcond=None)[0]
        quick[:, k] = ((x - x.mean(0)) @ slope + 1 / count).clip(0.01)
    quick /= quick.sum(1, keepdims=True)
    about[first:], q[first:] = propose_sets(quick, ends[first:], seed=seed)
    return about, q


# ---- judgements -------------------------------------------------------------------------------


def _assign(
    items: int, pairs: int, annotators: int, repeated: float, seed: int
) -> tuple[Indices, NDArray[np.str_] | None]:
    """Pairs of items with the annotator of each; repeated ones come a second time at the end."""
    ends = _pair_up(items, pairs, seed)
    first = permutation(stream(seed, "annotators"), pairs) % annotators
    again = permutation(stream(seed, "repeated"), pairs)[: round(repeated * pairs)]
    steps = 1 + permutation(stream(seed, "second annotators"), len(again)) % max(annotators - 1, 1)
    annotator = np.concatenate([first, (first[again] + steps) % annotators])
    names = np.array([f"annotator-{k + 1}" for k in annotator])
    return np.concatenate([ends, ends[again]]), names if annotators > 1 else None


def _perceive(log_odds: Floats, annotator: NDArray[np.str_] | None, seed: int) -> Floats:
    """Posteriors (n, 2) of both items as the annotator of each judgement sees them."""
    if annotator is None:
        return np.asarray(expit(log_odds))
    names, who = np.unique(annotator, return_inverse=True)
    low, high = SPREAD
    spread = low + (high - low) * uniform(stream(seed, "spreads"), len(names))
    errors = normal(stream(seed, "perception"), log_odds.size).reshape(log_odds.shape)
    return np.asarray(expit(log_odds + spread[who][:, None] * errors))


def _judge(
    log_odds: Floats,
    ends: Indices,
    ids: Indices,
    annotator: NDArray[np.str_] | None,
    *,
    noise: float,
    missing: float,
    preference: float,
    seed: int,
) -> Judgements:
    """Similarities and differences with noise; of some pairs only one of them, or a preference."""
    n, labels = len(ends), PairLabels.from_posteriors(*_perceive(log_odds, annotator, seed).T)
    factors = 1 + noise * normal(stream(seed, "label noise"), 2 * n).reshape(2, n)
    similarity = np.clip(labels.similarity * factors[0], 0, 1)
    difference = np.clip(labels.difference * factors[1], -1, 1)
    order, n_ranked = permutation(stream(seed, "kinds"), n), round(preference * n)
    ranked, partial = order[:n_ranked], order[n_ranked : n_ranked + round(missing * n)]
    preferences = np.full(n, np.nan)
    preferences[ranked] = np.where(difference[ranked] < 0, -1, 1)
    similarity[ranked] = difference[ranked] = np.nan
    similarity[partial[::2]] = np.nan
    difference[partial[1::2]] = np.nan
    columns = {"similarity": similarity, "difference": difference, "preference": preferences}
    return Judgements.from_columns(ends, columns, None, annotator, ids)


def _state(name: str, count: int, posterior: Floats, seed: int) -> Judgements:
    """Statements of one kind about random items or pairs, by an honest annotator."""
    statement, rng = kind(name), stream(seed, "also", name)
    size = 1 if statement.single else 2
    if not 0 < count * size <= len(posterior):
        raise ValueError(f"also asks for {count} of {name}, and there are {len(posterior)} items")
    ends = permutation(rng, len(posterior))[: count * size].reshape(count, size)
    left, right = np.repeat(ends[:: statement.shared, 0], statement.shared)[:count], ends[:, -1]
    values = statement.simulate(posterior[left], posterior[right], rng)
    answered = ~np.isnan(values).any(1)
    left, right, values = left[answered], right[answered], values[answered]
    columns = {column.name: values[:, column.place] for column in statement.columns}
    ends = np.stack([left, np.full_like(right, -1) if statement.single else right], 1)
    return Judgements.from_columns(ends, columns, ids=np.arange(len(posterior)))


def _pair_up(items: int, pairs: int, seed: int) -> Indices:
    """Distinct pairs of distinct items, drawn in rounds that use every item about once."""
    possible = items * (items - 1) // 2
    if pairs > possible:
        raise ValueError(f"{items} items make {possible} pairs: ask for no more, or more items")
    rng = stream(seed, "pairs")
    if 2 * pairs > possible:  # rounds would mostly repeat earlier pairs
        every = np.stack(np.triu_indices(items, 1), axis=1)[permutation(rng, possible)[:pairs]]
        turned = permutation(rng, pairs) % 2 == 0
        return np.where(turned[:, None], every[:, ::-1], every)
    drawn = np.empty((0, 2), np.int64)
    while len(drawn) < pairs:
        rounds = -(-(pairs - len(drawn)) // (items // 2))
        more = [permutation(rng, items)[: items // 2 * 2].reshape(-1, 2) for _ in range(rounds)]
        drawn = np.concatenate([drawn, *more])
        key = drawn.min(axis=1) * items + drawn.max(axis=1)
        drawn = drawn[np.sort(np.unique(key, return_index=True)[1])]
    return drawn[:pairs]
