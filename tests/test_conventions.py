"""PairClassifier keeps scikit-learn's conventions.

``sklearn.utils.estimator_checks.check_estimator`` skips nearly all of its checks for
estimators whose input is not two-dimensional; these are their equivalents on pairs: fitted
on (n, 2, d) with labels (n, 2), asked about instances (m, d).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from pairlearn.estimators import PairClassifier, PairwiseTransformer, TrainingOptions
from pairlearn.labels import PairLabels

METHODS = ("predict", "predict_proba", "decision_function")
RNG = np.random.default_rng(0)
PAIRS, OTHERS = RNG.normal(size=(2, 120, 2, 3))
X = RNG.normal(size=(50, 3))
MODELS: dict[str, Any] = {
    "linear": {"model": "linear", "epochs": 15},
    "mlp-bn": {"model": "mlp-bn", "epochs": 30},
    "scikit-learn": {"model": LogisticRegression()},
}
LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("mlp-bn", "scikit-learn")]
with_a_scikit_learn_model = pytest.mark.parametrize(
    "estimator", ["linear", "scikit-learn", LONG[0]], indirect=True
)


def posterior(x: NDArray[Any]) -> NDArray[Any]:
    """P(+) of instances (..., d): a minority of positives."""
    return np.asarray(1 / (1 + np.exp(2 - 4 * x[..., 0])))


LABELS, OTHER_LABELS = (
    np.asarray(PairLabels.from_posteriors(*posterior(pairs).T).to_array())
    for pairs in (PAIRS, OTHERS)
)


@pytest.fixture(scope="module", params=["linear", *LONG])
def estimator(request: pytest.FixtureRequest) -> PairClassifier:
    """An estimator that is not fitted; tests clone it."""
    options = {"training": TrainingOptions(batch_size=32, learning_rate=0.02), "random_state": 0}
    return PairClassifier(**(options | MODELS[request.param]))


@pytest.fixture(scope="module")
def fitted(estimator: PairClassifier) -> PairClassifier:
    """One that is fitted; tests leave it as it is."""
    return fit(estimator)


def fit(estimator: PairClassifier, pairs: Any = PAIRS, labels: Any = LABELS, **more: Any) -> Any:
    return clone(estimator).fit(pairs, labels, **more)


def assert_alike(estimator: Any, other: Any) -> None:
    """Nearly the same decisions, where the order of batches may differ."""
    x = np.random.default_rng(2).normal(size=(50, 3))
    assert np.mean(estimator.predict(x) == other.predict(x)) >= 0.9


# ---- parameters -------------------------------------------------------------------------------


def test_init_stores_its_arguments_and_nothing_else(estimator: Any) -> None:
    parameters = estimator.get_params(deep=False)
    attributes = vars(type(estimator)(**parameters))
    assert attributes.keys() == parameters.keys()
    assert all(attributes[name] is value for name, value in parameters.items())


@with_a_scikit_learn_model
def test_fit_keeps_parameters_and_returns_self(estimator: Any) -> None:
    fresh = clone(estimator)
    before = fresh.get_params(deep=False)
    contents, names = repr(before), set(vars(fresh))
    assert fresh.fit(PAIRS, LABELS) is fresh
    after = fresh.get_params(deep=False)
    assert all(after[name] is value for name, value in before.items())
    assert repr(after) == contents
    public = {name for name in set(vars(fresh)) - names if not name.startswith("_")}
    assert public and all(name.endswith("_") for name in public)


@with_a_scikit_learn_model
def test_a_clone_is_not_fitted_and_a_pickle_is(fitted: Any) -> None:
    copied = clone(fitted)
    assert not [name for name in vars(copied) if name.endswith("_")]
    assert repr(copied) == repr(clone(copied))
    for method in METHODS:
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(copied, method)(X)
    with pytest.raises(NotFittedError, match="not fitted"):
        copied.score(PAIRS, LABELS)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.decision_function(X), fitted.decision_function(X))


def test_tags_and_fitted_attributes(estimator: Any, fitted: Any) -> None:
    assert is_classifier(fitted)
    assert get_tags(estimator).input_tags.three_d_array
    assert (fitted.classes_.tolist(), fitted.n_features_in_) == ([-1, 1], 3)


# ---- fit --------------------------------------------------------------------------------------


def test_a_fit_follows_its_random_state_alone(estimator: Any, fitted: Any) -> None:
    """Also after another fit, and without a draw on numpy's and torch's global generators."""
    before = repr(np.random.get_state()), torch.get_rng_state()  # noqa: NPY002
    again = clone(estimator).fit(OTHERS[:, :, :2], OTHER_LABELS).fit(PAIRS, LABELS)
    assert np.array_equal(again.decision_function(X), fitted.decision_function(X))
    assert before[0] == repr(np.random.get_state())  # noqa: NPY002
    assert torch.equal(before[1], torch.get_rng_state())


@pytest.mark.parametrize("estimator", ["linear"], indirect=True)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_a_fit_that_fails_changes_nothing(estimator: Any, fitted: Any, error: type) -> None:
    def fail(*_: Any) -> None:
        raise error

    failing = clone(estimator).set_params(callbacks=[fail])
    with pytest.raises(error):
        failing.fit(PAIRS, LABELS)
    assert vars(failing).keys() == vars(clone(estimator)).keys()
    with pytest.raises(NotFittedError, match="not fitted"):
        failing.predict(X)
    refitted = pickle.loads(pickle.dumps(fitted)).set_params(callbacks=[fail])
    before = dict(vars(refitted))
    with pytest.raises(error):
        refitted.fit(50 * PAIRS[:, :, :2] + 100, LABELS)
    assert vars(refitted) == before  # the very same objects


def test_a_fit_leaves_nothing_of_an_earlier_one() -> None:
    frame = pd.DataFrame({"a": RNG.normal(size=8), "b": list("xyxyxyxy")})
    classifier = PairClassifier(preprocessor=frame, random_state=0, epochs=1, annotators="ideal")
    classifier.fit(np.arange(8).reshape(4, 2), LABELS[:4])
    classifier.note = classifier.of_a_subclass_ = "mine"
    for model in ("linear", LogisticRegression()):
        classifier.set_params(preprocessor=None, model=model).fit(PAIRS, LABELS)
        assert vars(classifier).keys() == vars(fit(classifier)).keys() | {"note", "of_a_subclass_"}


@with_a_scikit_learn_model
def test_an_easy_problem_is_learnt(fitted: Any) -> None:
    x = np.random.default_rng(4).normal(size=(400, 3))
    truth = fitted.classes_[(posterior(x) > 0.5).astype(int)]
    assert np.mean(fitted.predict(x) == truth) >= 0.85


def test_pair_labels_and_arrays_mean_the_same(estimator: Any, fitted: Any) -> None:
    from_labels = fit(estimator, labels=PairLabels.from_array(LABELS))
    assert np.array_equal(from_labels.decision_function(X), fitted.decision_function(X))


def test_the_ends_of_pairs_can_be_exchanged(estimator: Any, fitted: Any) -> None:
    """(x', x) with −c says what (x, x') with c says."""
    assert_alike(fit(estimator, PAIRS[:, ::-1], LABELS * [1, -1]), fitted)


def test_types_of_features(estimator: Any) -> None:
    pairs, x = np.round(PAIRS * 4), np.round(X * 4)  # whole numbers, exact in every type
    expected = fit(estimator, pairs).predict_proba(x)
    kinds: tuple[Callable[[Any], Any], ...] = (
        lambda a: a.astype(np.float32),
        lambda a: a.astype(np.int64),
        lambda a: a.tolist(),
        np.asfortranarray,
        lambda a: torch.tensor(a, requires_grad=True),
    )
    for make in kinds:
        actual = fit(estimator, make(pairs)).predict_proba(make(x))
        assert actual == pytest.approx(expected, abs=1e-2)


@with_a_scikit_learn_model
def test_nothing_is_written_into_what_is_given(estimator: Any) -> None:
    arguments = [PAIRS.copy(), LABELS.copy(), X.copy(), np.ones(len(PAIRS))]
    before = [array.copy() for array in arguments]
    pairs, labels, x, weight = arguments
    fresh = fit(estimator, pairs, labels, sample_weight=weight)
    for method in METHODS:
        getattr(fresh, method)(x)
    fresh.score(pairs[::-1] + 0.01, labels[::-1])  # other items than those of the training
    assert all(map(np.array_equal, before, arguments))


def test_weights_are_repetitions(estimator: Any) -> None:
    """A weight of four is nearly the row four times, also against contrary rows."""
    pairs, labels = np.tile(PAIRS, (2, 1, 1)), np.concatenate([LABELS, LABELS * [1, -1]])
    counts = np.repeat([4, 1], len(PAIRS))
    weighted = fit(estimator, pairs, labels, sample_weight=counts.astype(float))
    assert_alike(weighted, fit(estimator, pairs.repeat(counts, 0), labels.repeat(counts, 0)))


# ---- predictions ------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7])
def test_shapes(fitted: Any, count: int) -> None:
    shapes = [np.shape(getattr(fitted, method)(X[:count])) for method in METHODS]
    assert shapes == [(count,), (count, 2), (count,)]
    assert set(fitted.predict(X)) <= set(fitted.classes_)


def test_outputs_agree(fitted: Any) -> None:
    p, z, y = fitted.predict_proba(X), fitted.decision_function(X), fitted.predict(X)
    assert np.all((p >= 0) & (p <= 1)) and np.allclose(p.sum(1), 1, atol=1e-6)
    assert np.array_equal(fitted.classes_[(z > 0).astype(int)], y)
    clear = np.abs(p[:, 1] - 0.5) > 1e-6
    assert np.array_equal((p[:, 1] > 0.5)[clear], (z > 0)[clear])
    assert np.all(np.diff(p[np.argsort(z, kind="stable"), 1]) >= -1e-6)


def test_a_prediction_depends_on_its_own_instance(fitted: Any) -> None:
    """Not on the order, not on the others, and not on the names of a data frame."""
    whole = fitted.decision_function(X)
    order = RNG.permutation(len(X))
    assert fitted.decision_function(X[order]) == pytest.approx(whole[order], abs=1e-4)
    alone = np.concatenate([fitted.decision_function(row[None]) for row in X])
    assert alone == pytest.approx(whole, abs=1e-4)
    # Fitted without names, since pairs (n, 2, d) have none: scikit-learn says so.
    with pytest.warns(UserWarning, match="X has feature names"):
        framed = fitted.decision_function(pd.DataFrame(X, columns=list("abc")))
    assert np.allclose(framed, whole)


@with_a_scikit_learn_model
def test_pipelines_fit_on_pairs_and_predict_instances(estimator: Any) -> None:
    scale = PairwiseTransformer(StandardScaler())
    pipeline = Pipeline([("scale", scale), ("classify", clone(estimator))]).fit(PAIRS, LABELS)
    assert pipeline.predict_proba(X).shape == (50, 2)
    assert np.isfinite(pipeline.score(PAIRS + 0.01, LABELS))
