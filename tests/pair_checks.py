"""Whether an estimator of pairs keeps scikit-learn's conventions.

``sklearn.utils.estimator_checks.check_estimator`` skips nearly all of its checks for
estimators whose input is not two-dimensional; these are their equivalents on pairs.

Each one clones what it is given, and fails with an AssertionError that says what was
expected. The estimators here fit on pairs (n, 2, d) with labels (n, 2) and predict on
instances (m, d).
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from pair_check_data import (
    FEATURES,
    PAIRS,
    Floats,
    assert_alike,
    assert_refused,
    assert_same,
    fitted_clone,
    fresh_clone,
    instances,
    judged_pairs,
    posterior,
)
from pairlearn.estimators.pairwise import PairwiseTransformer
from pairlearn.labels import PairLabels

METHODS = ("predict", "predict_proba", "decision_function")


# ---- parameters -------------------------------------------------------------------------------


def check_init_keeps_parameters(estimator: Any) -> None:
    """__init__ stores its arguments, as they are, and nothing else."""
    made = type(estimator)(**estimator.get_params(deep=False))
    parameters = estimator.get_params(deep=False)
    for name, value in parameters.items():
        assert hasattr(made, name), f"__init__ does not store its argument {name}"
        assert getattr(made, name) is value, f"__init__ changes its argument {name}"
    others = set(vars(made)) - set(parameters)
    assert not others, f"__init__ sets {sorted(others)}: only arguments belong there"


def check_fit_keeps_parameters(estimator: Any) -> None:
    """Fit leaves every parameter the object that it was, with the same content."""
    fresh = fresh_clone(estimator)
    before = fresh.get_params(deep=False)
    contents = {name: repr(value) for name, value in before.items()}
    fresh.fit(*judged_pairs())
    for name, value in fresh.get_params(deep=False).items():
        same = value is before[name] and repr(value) == contents[name]
        assert same, f"fit changes the parameter {name}"


def check_clone(estimator: Any) -> None:
    """A clone of a fitted estimator has its parameters and is not fitted."""
    fitted = fitted_clone(estimator)
    copied = clone(fitted)
    left = [name for name in vars(copied) if name.endswith("_") and not name.endswith("__")]
    assert not left, f"a clone keeps the fitted attributes {left}"
    assert repr(copied) == repr(clone(copied)), "clones have different parameters"


def check_tags(estimator: Any) -> None:
    """Of three-dimensional input, and a classifier once it is fitted.

    Before that it may deny it: scikit-learn looks at the labels of a classifier to
    stratify them, and refuses missing ones.
    """
    fitted = fitted_clone(estimator)
    assert is_classifier(fitted), "is_classifier says no: inherit from ClassifierMixin"
    tags = get_tags(estimator)
    assert tags.input_tags.three_d_array, "tags: input_tags.three_d_array must be True for pairs"


# ---- fit --------------------------------------------------------------------------------------


def check_fit_returns_self(estimator: Any) -> None:
    """Fit returns the estimator, and sets attributes that end in an underscore."""
    fresh = fresh_clone(estimator)
    before = set(vars(fresh))
    assert fresh.fit(*judged_pairs()) is fresh, "fit does not return self"
    public = [n for n in set(vars(fresh)) - before if not n.startswith("_")]
    wrong = sorted(name for name in public if not name.endswith("_"))
    assert not wrong, f"fit sets {wrong}: fitted attributes end in an underscore"


def check_fitted_attributes(estimator: Any) -> None:
    """classes_ holds two sorted classes, n_features_in_ the features of one instance."""
    fitted = fitted_clone(estimator)
    classes = np.asarray(fitted.classes_)
    assert classes.shape == (2,), f"classes_ must have two entries; got {classes!r}"
    assert classes[0] < classes[1], f"classes_ must be sorted, positive last; got {classes!r}"
    found = fitted.n_features_in_
    assert found == FEATURES, f"n_features_in_ is {found}; the instances have {FEATURES} features"


def check_deterministic(estimator: Any) -> None:
    """Two fits with one random_state are the same, to the last bit."""
    assert_same(
        fitted_clone(estimator),
        fitted_clone(estimator),
        "two fits with one random_state",
        exact=True,
    )


def check_refit(estimator: Any) -> None:
    """A second fit forgets the first."""
    fresh = fresh_clone(estimator)
    pairs, labels = judged_pairs(3)
    fresh.fit(pairs[:, :, :2], labels)
    fresh.fit(*judged_pairs())
    assert_same(fresh, fitted_clone(estimator), "a fit after another fit", exact=True)


def check_leaves_global_random_state(estimator: Any) -> None:
    """With a random_state, fit does not draw on numpy's and torch's global generators."""
    numpy_before = repr(np.random.get_state())  # noqa: NPY002  (the global one is meant)
    torch_before = torch.get_rng_state()
    fitted_clone(estimator)
    assert numpy_before == repr(np.random.get_state()), "fit draws on np.random"  # noqa: NPY002
    assert torch.equal(torch_before, torch.get_rng_state()), "fit draws on torch's generator"


def check_learns(estimator: Any) -> None:
    """An easy problem is learnt, and the right class is called positive."""
    fitted = fitted_clone(estimator)
    x = np.random.default_rng(4).normal(size=(400, FEATURES))
    truth = fitted.classes_[(posterior(x) > 0.5).astype(int)]
    share = float(np.mean(fitted.predict(x) == truth))
    assert share >= 0.85, f"accuracy {share:.2f} on an easy problem, .85 expected"


def check_kinds_of_labels(estimator: Any) -> None:
    """PairLabels and (n, 2) arrays mean the same."""
    pairs, labels = judged_pairs()
    told = fresh_clone(estimator).fit(pairs, PairLabels.from_array(labels))
    assert_same(told, fitted_clone(estimator), "PairLabels instead of an array", exact=True)


def check_exchange_of_ends(estimator: Any) -> None:
    """(x', x) with −c says what (x, x') with c says."""
    pairs, labels = judged_pairs()
    exchanged = fresh_clone(estimator).fit(pairs[:, ::-1], labels * [1, -1])
    assert_alike(exchanged, fitted_clone(estimator), "pairs with their ends exchanged")


def check_types_of_features(estimator: Any) -> None:
    """float64, float32, lists and whole numbers are all taken."""
    pairs, labels = judged_pairs()
    pairs = np.round(pairs * 4)  # whole numbers, exact in every type
    x = np.round(instances() * 4)
    wanted = fresh_clone(estimator).fit(pairs, labels).predict_proba(x)
    kinds: dict[str, Callable[[Floats], Any]] = {
        "float32": lambda a: a.astype(np.float32),
        "int64": lambda a: a.astype(np.int64),
        "lists": lambda a: a.tolist(),
        "Fortran order": np.asfortranarray,
    }
    for name, make in kinds.items():
        found = fresh_clone(estimator).fit(make(pairs), labels).predict_proba(make(x))
        gap = float(np.abs(found - wanted).max())
        assert gap < 1e-2, f"features as {name} change the probabilities by {gap:.3g}"


def check_keeps_its_input(estimator: Any) -> None:
    """Fit and predict write into none of the arrays that they are given."""
    pairs, labels = judged_pairs()
    x, weight = instances(), np.ones(PAIRS)
    given = (pairs, labels, x, weight)
    before = [array.copy() for array in given]
    fitted = fresh_clone(estimator).fit(pairs, labels, sample_weight=weight)
    for method in METHODS:
        getattr(fitted, method)(x)
    fitted.score(pairs[::-1] + 0.01, labels[::-1])  # other items than those of the training
    for name, old, new in zip(("pairs", "labels", "X", "weights"), before, given, strict=True):
        assert np.array_equal(old, new), f"{name} are changed in place"


# ---- weights ----------------------------------------------------------------------------------


def check_weights_are_repetitions(estimator: Any) -> None:
    """A weight of three is nearly the row three times, also against contrary rows."""
    pairs, labels = judged_pairs()
    pairs, labels = np.tile(pairs, (2, 1, 1)), np.concatenate([labels, labels * [1, -1]])
    counts = np.repeat([4, 1], PAIRS)
    weighted = fresh_clone(estimator).fit(pairs, labels, sample_weight=counts.astype(float))
    rows = np.repeat(np.arange(2 * PAIRS), counts)
    repeated = fresh_clone(estimator).fit(pairs[rows], labels[rows])
    assert_alike(weighted, repeated, "weights instead of repetitions")


# ---- predictions ------------------------------------------------------------------------------


def check_shapes(estimator: Any) -> None:
    """Of m instances there are m predictions, m decisions, (m, 2) probabilities."""
    fitted = fitted_clone(estimator)
    for count in (1, 7):
        x = instances()[:count]
        for method, shape in zip(METHODS, ((count,), (count, 2), (count,)), strict=True):
            found = np.shape(getattr(fitted, method)(x))
            assert found == shape, f"{method} of {count} instances has shape {found}, not {shape}"
    unknown = set(np.unique(fitted.predict(instances()))) - set(fitted.classes_)
    assert not unknown, f"predict gives {unknown}, which classes_ has not"


def check_outputs_agree(estimator: Any) -> None:
    """Probabilities sum to one and say the same as the decisions and the predictions."""
    fitted, x = fitted_clone(estimator), instances()
    p, z, y = fitted.predict_proba(x), fitted.decision_function(x), fitted.predict(x)
    assert np.all((p >= 0) & (p <= 1)), "predict_proba leaves [0, 1]"
    assert np.allclose(p.sum(1), 1, atol=1e-6), "predict_proba does not sum to one"
    decided = fitted.classes_[(z > 0).astype(int)]
    assert np.array_equal(decided, y), "predict is not the sign of decision_function"
    clear = np.abs(p[:, 1] - 0.5) > 1e-6
    assert np.array_equal((p[:, 1] > 0.5)[clear], (z > 0)[clear]), (
        "predict_proba and decision_function fall on different sides"
    )
    order = np.argsort(z, kind="stable")
    assert np.all(np.diff(p[order, 1]) >= -1e-6), "probabilities do not rise with the decisions"


def check_instances_are_independent(estimator: Any) -> None:
    """A prediction depends on its own instance: not on the order, not on the others."""
    fitted, x = fitted_clone(estimator), instances()
    whole = fitted.decision_function(x)
    order = np.random.default_rng(5).permutation(len(x))
    shuffled = fitted.decision_function(x[order])
    assert np.allclose(shuffled, whole[order], atol=1e-4), "the order of instances matters"
    alone = np.concatenate([fitted.decision_function(x[k : k + 1]) for k in range(len(x))])
    assert np.allclose(alone, whole, atol=1e-4), "an instance alone is predicted otherwise"


def check_data_frames(estimator: Any) -> None:
    """A data frame of instances is predicted as its values are, if pandas is there."""
    if importlib.util.find_spec("pandas") is None:
        return
    pd = importlib.import_module("pandas")
    fitted, x = fitted_clone(estimator), instances()
    frame = pd.DataFrame(x, columns=[f"feature {k}" for k in range(FEATURES)])
    with warnings.catch_warnings():
        # Fitted without names, since pairs (n, 2, d) have none: scikit-learn may say so.
        warnings.filterwarnings("ignore", message="X has feature names", category=UserWarning)
        found = fitted.predict_proba(frame)
    assert np.allclose(found, fitted.predict_proba(x)), "a data frame is predicted otherwise"


# ---- errors -----------------------------------------------------------------------------------


def check_not_fitted(estimator: Any) -> None:
    """Before fit, every method raises NotFittedError."""
    for method in METHODS:
        call = getattr(fresh_clone(estimator), method)
        assert_refused(f"{method} before fit", call, instances(), by=NotFittedError)
    score = fresh_clone(estimator).score
    assert_refused("score before fit", score, *judged_pairs(), by=NotFittedError)


# ---- with scikit-learn ------------------------------------------------------------------------


def check_pipeline(estimator: Any) -> None:
    """A Pipeline with PairwiseTransformer fits on pairs and predicts instances."""
    scale = PairwiseTransformer(StandardScaler())
    pipeline = Pipeline([("scale", scale), ("classify", fresh_clone(estimator))])
    pairs, labels = judged_pairs()
    pipeline.fit(pairs, labels)
    p = pipeline.predict_proba(instances())
    assert p.shape == (len(instances()), 2), f"a Pipeline gives probabilities of shape {p.shape}"
    assert np.isfinite(pipeline.score(pairs + 0.01, labels)), "a Pipeline cannot score pairs"


CHECKS: dict[str, Callable[[Any], None]] = {
    name: member for name, member in dict(vars()).items() if name.startswith("check_")
}
