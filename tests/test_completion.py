"""Target completion on problems with known posteriors; test_kinds has what kinds complete."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from noisy_labels import add_noise
from pairlearn import Judgements, PairLabels
from pairlearn.estimators.completion import Targets, complete_and_fit

NAN = float("nan")
inner = st.floats(0.01, 0.99)


def judged(s: float = NAN, c: float = NAN, preference: float = NAN) -> Targets:
    columns = {"similarity": [s], "difference": [c], "preference": [preference]}
    return Targets(Judgements.from_columns([[0, 1]], columns))


def targets(judgements: Targets, p: float, p_prime: float) -> NDArray[np.float64]:
    weights, _ = judgements.complete(both([p, p_prime]))
    assert weights.sum(0) == pytest.approx([1, 1])
    return weights[1]


def both(posteriors: Any) -> NDArray[np.float64]:
    """Posteriors (m, 2) of both classes."""
    return np.stack([1 - np.asarray(posteriors), posteriors], 1)


# ---- completion -------------------------------------------------------------------------------


@settings(max_examples=30)
@given(c=st.floats(-1, 1), p=inner, p_prime=inner)
def test_difference_alone_keeps_the_sum_where_it_can(c: float, p: float, p_prime: float) -> None:
    q, q_prime = targets(judged(c=c), p, p_prime)
    assert q_prime - q == pytest.approx(c, abs=1e-9)
    assert min(q, q_prime) >= -1e-9 and max(q, q_prime) <= 1 + 1e-9
    if abs(c) <= p + p_prime <= 2 - abs(c):
        assert q + q_prime == pytest.approx(p + p_prime)
    else:  # then one end is certain
        assert min(q, q_prime, 1 - q, 1 - q_prime) == pytest.approx(0, abs=1e-9)


@settings(max_examples=30)
@given(r=inner, r_prime=inner)
def test_the_truth_is_a_fixed_point_with_risk_zero(r: float, r_prime: float) -> None:
    labels = PairLabels.from_posteriors([r], [r_prime])
    s, c = labels.similarity[0], labels.difference[0]
    truth = np.array([r, r_prime])
    for judgements in (judged(s, c), judged(s=s), judged(c=c)):
        assert targets(judgements, r, r_prime) == pytest.approx(truth, abs=1e-6)
        assert judgements.risk(both(truth)) == pytest.approx(0, abs=1e-6)
    assert judged(s, c).risk(both(1 - truth)) >= -1e-9


def test_every_row_counts_and_ends_of_one_item_add_up() -> None:
    pairs = [[0, 1], [0, 1], [2, 0]]
    rows = Judgements.from_pairs(pairs, np.array([[1, 0], [0, 1], [0, -1]]), weight=[0.5, 0.5, 2])
    (negative, positive), values = Targets(rows).complete(np.full((3, 2), 0.5))
    # Weights ½, ½, 2. Rows: same (½, ½); right positive (0, 1); left positive (1, 0).
    assert positive == pytest.approx([0.25, 0.75, 2])
    assert negative == pytest.approx([0.75 + 2, 0.25, 0])
    assert values.shape == (2, 3, 2)


# ---- fitting ----------------------------------------------------------------------------------


class Table(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Knows every instance by heart: the weighted share of class 1 for each value of x."""

    def fit(self, x: Any, y: Any, sample_weight: Any) -> Table:
        assert (sample_weight >= 0).all() and np.isfinite(sample_weight).all()
        self.classes_ = np.array([0, 1])
        values, of = np.unique(x[:, 0], return_inverse=True)
        total = np.bincount(of, sample_weight)
        shares = np.bincount(of, sample_weight * y) / total
        self.shares_ = dict(zip(values, shares, strict=True))
        return self

    def predict_proba(self, x: Any) -> Any:
        p = np.array([self.shares_.get(value, 0.5) for value in x[:, 0]])
        return np.stack([1 - p, p], 1)


def problem(n: int = 400, seed: int = 0) -> tuple[Any, Any, Any, PairLabels]:
    """Items on a line with posteriors σ(2x − 1), pairs of distinct ones, exact judgements."""
    rng = np.random.default_rng(seed)
    x = rng.normal(scale=2, size=(2 * n, 1))
    r = 1 / (1 + np.exp(1 - 2 * x[:, 0]))
    pairs = rng.permutation(2 * n).reshape(n, 2)
    return x, r, pairs, PairLabels.from_posteriors(r[pairs[:, 0]], r[pairs[:, 1]])


def test_a_table_of_shares_finds_the_posteriors_and_its_risk_only_falls() -> None:
    """Expectation-maximisation with an exact M-step never raises the risk."""
    r = np.array([0.1, 0.3, 0.6, 0.9])
    pairs = np.array(list(itertools.permutations(range(4), 2)))
    labels = PairLabels.from_posteriors(r[pairs[:, 0]], r[pairs[:, 1]])
    model, history = complete_and_fit(
        Table(), np.arange(4.0)[:, None], Judgements.from_pairs(pairs, labels),
        folds=1, rounds=300, tolerance=0,
    )  # fmt: skip
    risks = [one["risk"] for one in history]
    assert (np.diff(risks[1:]) <= 1e-12).all()
    posteriors = model.predict_proba(np.arange(4.0)[:, None])[:, 1]
    assert posteriors == pytest.approx(r, abs=0.01)


def logistic() -> LogisticRegression:
    return LogisticRegression(C=1e4)


def test_weights_are_repetitions_and_none_is_negative_under_noise() -> None:
    x, _, pairs, labels = problem(100)
    noisy = add_noise(labels, 0.5, seed=0)
    assert not noisy.feasible().all()
    complete_and_fit(Table(), x, Judgements.from_pairs(pairs, noisy), folds=1, rounds=2)
    counts = 1 + np.arange(100) % 3
    again = np.repeat(np.arange(100), counts)
    rows = Judgements.from_pairs(pairs, noisy, weight=counts)
    weighted, _ = complete_and_fit(logistic(), x, rows, folds=1)
    rows = Judgements.from_pairs(pairs, noisy)[again]
    repeated, _ = complete_and_fit(logistic(), x, rows, folds=1)
    assert weighted.coef_ == pytest.approx(repeated.coef_, rel=1e-3)


class Witness(LogisticRegression):  # type: ignore[misc]
    """Remembers what it was fitted to, and refuses to be asked about it."""

    asked: int = 0

    def fit(self, x: Any, y: Any, sample_weight: Any = None) -> Witness:
        self.seen_ = set(x[:, 0])
        return super().fit(x, y, sample_weight)  # type: ignore[no-any-return]

    def predict_proba(self, x: Any) -> Any:
        assert not self.seen_ & set(x[:, 0]), "posteriors of items that it was fitted to"
        type(self).asked += len(x)
        return super().predict_proba(x)


def test_posteriors_come_from_fits_without_the_item() -> None:
    x, _, pairs, labels = problem(60)
    Witness.asked = 0
    rows = Judgements.from_pairs(pairs, labels)
    _, history = complete_and_fit(Witness(), x, rows, folds=4, rounds=2)
    assert Witness.asked == 120 * len(history)


@pytest.mark.parametrize(
    "classifier",
    [
        HistGradientBoostingClassifier(max_iter=10, max_leaf_nodes=7),
        RandomForestClassifier(10, min_samples_leaf=5),
        make_pipeline(StandardScaler(), logistic()),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_classifiers_of_scikit_learn_learn_and_are_reproducible(classifier: Any) -> None:
    x, r, pairs, labels = problem(200)
    before = repr(classifier)
    rows = Judgements.from_pairs(pairs, labels)
    fits = [
        complete_and_fit(classifier, x, rows, folds=2, rounds=2, random_state=0) for _ in range(2)
    ]
    (model, history), (again, _) = fits
    assert np.mean(model.predict(x) == (r > 0.5)) > 0.93
    assert np.array_equal(model.predict_proba(x), again.predict_proba(x))
    assert repr(classifier) == before and not hasattr(classifier, "classes_")
    assert [one["epoch"] for one in history] == list(range(1, len(history) + 1))


# ---- refusals ---------------------------------------------------------------------------------

TWO = np.array([[0, 1], [2, 3]])
X4 = np.arange(4.0)[:, None]


@pytest.mark.parametrize(
    ("labels", "change", "message"),
    [
        (
            [[0.5, NAN], [0.6, NAN]],
            {"prior": 0.5, "majority": "positive"},
            "do not tell the classes",
        ),
        ([[1, 0], [1, 0]], {}, "no pair is judged to differ in class"),
        (None, {"classifier": KNeighborsClassifier()}, "KNeighborsClassifier does not take sample"),
        (None, {"classifier": LinearSVC()}, "LinearSVC has no predict_proba: wrap it in"),
    ],
)
def test_bad_input_is_named(labels: Any, change: dict[str, Any], message: str) -> None:
    rows = Judgements.from_pairs(TWO, labels or [[0.5, 0.1], [0.6, -0.2]])
    arguments: dict[str, Any] = {"classifier": LogisticRegression(), "features": X4, "rows": rows}
    with pytest.raises(ValueError, match=message):
        complete_and_fit(**(arguments | change))
