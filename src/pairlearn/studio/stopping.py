"""When to stop: how accurate a quick model is on the answers so far, and what more would buy.

The model is linear in the items' features and maximises the pair likelihood with a ridge penalty.
Items are put into folds, and each end of a pair is predicted by a model that saw no pair with that
item. The same with a few large folds, which leave far fewer pairs to train with, tells how the
accuracy grows; it is taken to approach its limit like n^-½.

An answer at the end of a scale in words stands for everything up to certainty: the interval
reaches from the estimate with the numbers of the project file to that with certain answers.

The studio's server runs this as a program, which also learns how everybody answers, and in mode
"information" tells the posteriors by which `pairlearn.studio.choosing` chooses pairs.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Floats
from pairlearn.evaluation import AccuracyEstimate, estimate_accuracy
from pairlearn.labels import PairLabels
from pairlearn.studio.creating import describe_fit
from pairlearn.studio.exchange import exportable, settled
from pairlearn.studio.overview import AnswerColumns, crowd_of
from pairlearn.studio.project import Project
from pairlearn.studio.reader import StoreReader
from pairlearn.studio.records import CERTAIN, StoredAnswer
from pairlearn.tables import TableError, read_items

LEAST_PAIRS = 30
NEXT = 50
"""Pairs whose worth is told."""
FOLDS, FEW_FOLDS = 10, 3
CONFIDENCE = 0.98
"""Of the sampling of pairs alone; the model, too, is a matter of luck, so that intervals are meant
to hold nine times in ten (`benchmarks/stopping.py`)."""
RIDGES = (1.0, 10.0, 100.0)
WIDEST = 200
"""Features; of more, so many principal components are used."""


class TooFewPairsError(ValueError):
    """There are too few pairs for a forecast."""


@dataclass(frozen=True)
class Outlook:
    """The accuracy of a quick model, ``now`` and as planned, each as (estimate, low, high).

    ``pairs`` counts those judged with both numbers. ``gain`` is the accuracy expected from the
    next 50 pairs, and ``next_half_width`` that of the interval after them.
    """

    pairs: int
    planned: int
    now: tuple[float, float, float]
    planned_accuracy: tuple[float, float, float]
    gain: float
    half_width: float
    next_half_width: float


def outlook(
    features: Any,
    ends: NDArray[np.int64],
    stated: PairLabels,
    certain: PairLabels,
    planned: int,
    weight: Floats | None = None,
) -> Outlook:
    """How good a quick model is, and what more pairs are expected to buy.

    ``ends`` (n, 2) has the rows of ``features`` (N, d) of each judged pair, ``weight`` (n,) its
    inclusion weight; ``certain`` is what was ``stated`` with the ends of the scale taken for
    certainty. Raises TooFewPairsError.
    """
    pairs = len(np.unique(np.sort(ends, 1), axis=0))
    if pairs < LEAST_PAIRS:
        raise TooFewPairsError(f"{pairs} pairs have both numbers so far; {LEAST_PAIRS} are needed")
    model = _Model(_prepared(features), ends, stated, weight)

    def measured(z: Floats, labels: PairLabels) -> AccuracyEstimate:
        return estimate_accuracy(
            z[:, 0], z[:, 1], labels, items=ends, weight=model.weight, confidence=CONFIDENCE
        )

    ridge, predicted = model.choose()
    low, high = measured(predicted, stated), measured(predicted, certain)
    fewer = [model.out_of_fold(FEW_FOLDS, ridge, seed) for seed in range(FEW_FOLDS)]
    before = np.mean([measured(z, certain).value for z in fewer])
    # A model of a fold has the pairs without any of its items.
    trained, less = (pairs * (1 - 1 / folds) ** 2 for folds in (FOLDS, FEW_FOLDS))
    grown, sampling = max(high.value - float(before), 0.0), (high.high - high.low) / 2

    def with_pairs(number: float) -> tuple[float, float, float]:
        share = (trained**-0.5 - number**-0.5) / (less**-0.5 - trained**-0.5)
        # The growth is about half as uncertain as the accuracy, both being of the same pairs.
        top = min(high.high + share * (grown + sampling / 4), 1.0)
        return min((low.value + high.value) / 2 + share * grown, top), low.low, top

    now, later = with_pairs(pairs), with_pairs(pairs + NEXT)
    half = (now[2] - now[1]) / 2
    narrower = sampling * (1 - math.sqrt(pairs / (pairs + NEXT)))
    return Outlook(
        pairs, planned, now, with_pairs(max(planned, pairs)), later[0] - now[0], half,
        half - narrower,
    )  # fmt: skip


def quick_model(
    features: Any, ends: NDArray[np.int64], stated: PairLabels, weight: Floats | None = None
) -> Floats:
    """Log-odds of the items by the model whose accuracy `outlook` tells."""
    model = _Model(_prepared(features), ends, stated, weight)
    z: Floats = model.x @ model.fit(np.arange(len(ends)), model.choose()[0])
    return z


def _prepared(features: Any) -> Floats:
    """Columns of mean 0 and variance 1, or the principal components of many."""
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    x = StandardScaler().fit_transform(np.asarray(features, np.float64))
    if x.shape[1] > WIDEST:
        x = PCA(min(WIDEST, len(x)), random_state=0).fit_transform(x)
    return np.asarray(x)


class _Model:
    """The linear model of a table of judged pairs."""

    def __init__(
        self, x: Floats, ends: NDArray[np.int64], labels: PairLabels, weight: Floats | None
    ) -> None:
        self.x, self.ends = np.column_stack([np.ones(len(x)), x]), ends
        self.outcomes: Floats = labels.project().outcomes()
        self.weight = np.ones(len(ends)) if weight is None else weight

    def choose(self) -> tuple[float, Floats]:
        """The ridge that predicts best out of fold, and its log-odds."""
        found = {ridge: self.out_of_fold(FOLDS, ridge) for ridge in RIDGES}
        ridge = max(RIDGES, key=lambda one: self.likelihood(*found[one].T))
        return ridge, found[ridge]

    def out_of_fold(self, folds: int, ridge: float, seed: int = 0) -> Floats:
        """Log-odds (n, 2) of the ends, by models that saw no pair with the item."""
        part = np.random.default_rng(seed).permutation(len(self.x)) % folds
        found = np.empty(self.ends.shape)
        for fold in range(folds):
            theirs = part[self.ends] == fold
            if theirs.any():
                z = self.x @ self.fit(~theirs.any(1), ridge)
                found[theirs] = z[self.ends][theirs]
        return found

    def fit(self, rows: Any, ridge: float) -> Floats:
        """The coefficients, the intercept first, which has no penalty."""
        from scipy.optimize import minimize
        from scipy.special import expit

        left, right = (self.x[end] for end in self.ends[rows].T)
        (a, b, same), weight = self.outcomes[rows].T, self.weight[rows]
        penalty = np.r_[0.0, np.full(self.x.shape[1] - 1, ridge)]

        def loss(w: Floats) -> tuple[float, Floats]:
            z, q = left @ w, right @ w
            # By what an outcome says of an end: the classes of two alike are those of z + q.
            alike = same * expit(z + q)
            dz, dq = weight * (expit(z) - a - alike), weight * (expit(q) - b - alike)
            value = -self.likelihood(z, q, rows) + penalty @ w**2 / 2
            return value, left.T @ dz + right.T @ dq + penalty * w

        start = np.zeros(self.x.shape[1])
        best: Floats = minimize(loss, start, jac=True, method="L-BFGS-B").x
        return best

    def likelihood(self, z: Floats, q: Floats, rows: Any = slice(None)) -> float:
        """Log-likelihood of pairs by the log-odds of their ends."""
        # Of (+, −), (−, +) and same class, less their common factor.
        logs = np.stack([z, q, np.logaddexp(0, z + q)], 1)
        logs -= (np.logaddexp(0, z) + np.logaddexp(0, q))[:, None]
        return float(self.weight[rows] @ (self.outcomes[rows] * logs).sum(1))


class _Said(NamedTuple):
    """Answers that have both numbers and whose items are there, as `outlook` takes them."""

    ends: NDArray[np.int64]
    stated: PairLabels
    certain: PairLabels
    weight: Floats | None

    @classmethod
    def of(cls, answers: Sequence[StoredAnswer], ids: Sequence[str], weighted: bool) -> _Said:
        places = {one: row for row, one in enumerate(ids)}
        said = [
            one
            for one in answers
            if None not in one.numbers and places.keys() >= {one.left, one.right}
        ]
        columns = AnswerColumns(said)
        ends = np.array([(places[one.left], places[one.right]) for one in said], np.int64)
        s, c = columns.similarity, columns.difference
        sure = [CERTAIN.get(one.level, pair) for one, *pair in zip(said, s, c, strict=True)]
        return cls(
            ends.reshape(-1, 2),
            PairLabels(s, c, noisy=True),
            PairLabels(*np.reshape(sure, (-1, 2)).T, noisy=True),
            columns.weight if weighted else None,
        )


def look(store: StoreReader) -> Iterator[dict[str, Any]]:
    """What the supervisor's page is told, part by part, the quickest first.

    The outlook with all answers; how everybody answers, and who is flagged; the outlook without
    those; and, where a model chooses the pairs, its posteriors.
    """
    project, author = store.project, store.adjudicator
    features = None
    try:
        features = read_items(project.items_path).features
    except TableError:
        yield {"needs": describe_fit(project), "featureless": True}
    except (ImportError, OSError) as error:
        yield {"needs": str(error), "featureless": False}
    standing = [one for one in settled(exportable(store), author) if one.right]
    planned = sum(pair.origin != "import" for pair in store.pairs())
    chooses = project.plan.mode == "information"

    def said(left_out: Collection[str] = ()) -> _Said:
        rows = [one for one in standing if one.annotator not in left_out]
        return _Said.of(rows, store.items.ids, chooses)

    def told(rows: _Said, posterior: bool = False) -> dict[str, Any]:
        try:
            if posterior:
                return {"posterior": _posterior(features, rows)}
            found = outlook(features, rows.ends, rows.stated, rows.certain, planned, rows.weight)
            return asdict(found)
        except TooFewPairsError as error:
            return {"needs": str(error), "few": True}
        except Exception as error:  # whatever it is, the rest is still told
            return {"needs": str(error) or repr(error), "few": False}

    if features is not None:
        yield {"everybody": told(said()), "needs": None}
    crowd = crowd_of(store.answers())
    doubted = {name for doubt in crowd.doubts() for name in doubt.names}
    manners = {name: (crowd.phrases(name), name in doubted) for name in crowd.manners}
    doubted |= {name for name, one in store.quality().items() if one.phrases}
    flagged = sorted(doubted - {author})
    yield {"manners": manners, "flagged": flagged}
    if features is None:
        return
    rows = said(flagged)
    yield {"without": told(rows) if flagged else None}
    if chooses and len(rows.ends) >= LEAST_PAIRS:
        yield told(rows, posterior=True)


def _posterior(features: Any, rows: _Said) -> list[float]:
    """P(y = +1 | x) of all items."""
    from scipy.special import expit

    z = quick_model(features, rows.ends, rows.stated, rows.weight)
    if not np.isfinite(z).all():
        raise ValueError("the quick model that chooses pairs is not finite for some items")
    found: list[float] = np.round(expit(z), 4).tolist()
    return found


def main() -> None:
    """Print what is told of the project in the first argument, a line of JSON for each part."""
    os.nice(5)
    for part in look(StoreReader(Project.load(sys.argv[1]))):
        print(msgspec.json.encode(part).decode(), flush=True)


if __name__ == "__main__":
    main()
