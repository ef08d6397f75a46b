"""The checks of estimators: a good one passes, and each broken one is caught by its check.

The estimator is logistic regression by target completion: a few lines around scikit-learn,
so that one mistake at a time can be put into it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, validate_data

from pairlearn import PairLabels
from pairlearn.estimators.checks import check_pair_estimator, pair_checks
from pairlearn.estimators.completion import complete_and_fit

CHECKS = {check.__name__: check for check in pair_checks()}


class Good(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Keeps every convention."""

    def __init__(self, C: float = 100.0, random_state: int | None = None) -> None:
        self.C = C
        self.random_state = random_state

    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        x, s, c = self._read(pairs, labels)
        if sample_weight is not None and np.shape(sample_weight) != (len(s),):
            raise ValueError(f"sample_weight must have shape ({len(s)},)")
        ends = np.arange(2 * len(s)).reshape(-1, 2)
        self.model_, _ = complete_and_fit(
            LogisticRegression(C=self.C), x, ends, s, c, weight=sample_weight, folds=1, rounds=5
        )
        self.classes_, self.n_features_in_ = np.array([-1, 1]), x.shape[1]
        return self

    def _read(self, pairs: Any, labels: Any) -> Any:
        pairs = np.asarray(pairs)
        if pairs.ndim != 3 or pairs.shape[1] != 2:
            raise ValueError(f"pairs must have shape (n, 2, d); got {pairs.shape}")
        if pairs.dtype.kind not in "fiu" or not np.isfinite(pairs).all() or not pairs.size:
            raise ValueError("pairs must be finite numbers, at least one")
        if labels is None:
            raise ValueError("labels are missing")
        told = labels if isinstance(labels, PairLabels) else PairLabels.from_array(labels)
        if len(told) != len(pairs):
            raise ValueError(f"{len(told)} labels for {len(pairs)} pairs")
        return pairs.reshape(-1, pairs.shape[2]), told.similarity, told.difference

    def decision_function(self, X: Any) -> Any:
        check_is_fitted(self)
        return self.model_.decision_function(validate_data(self, X, reset=False, dtype=float))

    def predict_proba(self, X: Any) -> Any:
        p = 1 / (1 + np.exp(-self.decision_function(X)))
        return np.stack([1 - p, p], 1)

    def predict(self, X: Any) -> Any:
        decided = self.decision_function(X) > 0
        return self.classes_[decided.astype(int)]

    def score(self, pairs: Any, labels: Any, sample_weight: Any = None) -> float:
        check_is_fitted(self)
        x, _, c = self._read(pairs, labels)
        p = self.predict_proba(x)[:, 1].reshape(-1, 2)
        return float(-np.mean((p[:, 1] - p[:, 0] - c) ** 2))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


@pytest.mark.parametrize("name", CHECKS)
def test_a_good_estimator_passes(name: str) -> None:
    CHECKS[name](Good())


# ---- one mistake each -------------------------------------------------------------------------


class ChangesArgument(Good):
    def __init__(self, C: float = 100.0, random_state: int | None = None) -> None:
        self.C = float(f"{C}")
        self.random_state = random_state


class SetsMoreInInit(Good):
    def __init__(self, C: float = 100.0, random_state: int | None = None) -> None:
        super().__init__(C, random_state)
        self.cache = None


class FitChangesParameter(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        super().fit(pairs, labels, sample_weight)
        self.C = self.C / 2
        return self


class FitReturnsNothing(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        super().fit(pairs, labels, sample_weight)
        return None  # type: ignore[return-value]


class PublicState(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        self.seen = len(pairs)
        return super().fit(pairs, labels, sample_weight)


class Random(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        super().fit(pairs, labels, sample_weight)
        self.model_.intercept_ = self.model_.intercept_ + np.random.default_rng().normal() / 99
        return self


class GlobalNumpy(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        np.random.rand()  # noqa: NPY002
        return super().fit(pairs, labels, sample_weight)


class GlobalTorch(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        torch.rand(1)
        return super().fit(pairs, labels, sample_weight)


class Remembers(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        before = getattr(self, "fits_", 0)
        super().fit(pairs, labels, sample_weight)
        self.fits_ = before + 1
        self.model_.intercept_ = self.model_.intercept_ + before
        return self


class CountsBothEnds(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        super().fit(pairs, labels, sample_weight)
        self.n_features_in_ = 2
        return self


class ReversedClasses(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        super().fit(pairs, labels, sample_weight)
        self.classes_ = np.array([1, -1])
        return self


class Flipped(Good):
    def decision_function(self, X: Any) -> Any:
        return -super().decision_function(X)


class OneSided(Good):
    """Calls everything positive where the right ends are the more positive ones."""

    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        super().fit(pairs, labels, sample_weight)
        if self._read(pairs, labels)[2].mean() > 0:
            self.model_.intercept_ = self.model_.intercept_ + 100
        return self


class ArraysOnly(Good):
    def _read(self, pairs: Any, labels: Any) -> Any:
        if isinstance(labels, PairLabels):
            raise ValueError("labels must be an array")
        return super()._read(pairs, labels)


class Float64Only(Good):
    def _read(self, pairs: Any, labels: Any) -> Any:
        if getattr(pairs, "dtype", None) != np.float64:
            raise ValueError("pairs must be float64")
        return super()._read(pairs, labels)


class InPlace(Good):
    def _read(self, pairs: Any, labels: Any) -> Any:
        result = super()._read(pairs, labels)
        if isinstance(pairs, np.ndarray) and pairs.flags.writeable:
            pairs += 1
        return result


class WritesLabels(Good):
    def _read(self, pairs: Any, labels: Any) -> Any:
        if isinstance(labels, np.ndarray) and labels.shape == (len(pairs), 2):
            labels[:, 0] = np.clip(labels[:, 0], 0, 1)
        return super()._read(pairs, labels)


class HalvesWeights(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        if sample_weight is not None:
            self._read(pairs, labels)
            sample_weight = np.where(np.arange(len(pairs)) < len(pairs) // 2, 0, sample_weight)
        return super().fit(pairs, labels, sample_weight)


class InvertsWeights(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        if sample_weight is not None:
            sample_weight = 1 / np.asarray(sample_weight) ** 2
        return super().fit(pairs, labels, sample_weight)


class ColumnOfDecisions(Good):
    def predict(self, X: Any) -> Any:
        return super().predict(X)[:, None]


class WrongSums(Good):
    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(X) * 0.99


class Disagrees(Good):
    def predict(self, X: Any) -> Any:
        return self.classes_[(self.decision_function(X) > 0.5).astype(int)]


class CentresBatches(Good):
    def decision_function(self, X: Any) -> Any:
        z = super().decision_function(X)
        return z - z.mean()


class ConstantScore(Good):
    def score(self, pairs: Any, labels: Any, sample_weight: Any = None) -> float:
        super().score(pairs, labels)
        return 0.5


class NoCopies(Good):
    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)()


class AnswersUnfitted(Good):
    def decision_function(self, X: Any) -> Any:
        return super().decision_function(X) if hasattr(self, "model_") else np.zeros(len(X))


class AnyWidth(Good):
    def decision_function(self, X: Any) -> Any:
        check_is_fitted(self)
        x = np.asarray(X, dtype=float)
        return super().decision_function(np.resize(x, (len(x), self.n_features_in_)))


class FillsNaN(Good):
    def _read(self, pairs: Any, labels: Any) -> Any:
        if np.asarray(pairs).dtype.kind == "f":
            pairs = np.nan_to_num(pairs)
        return super()._read(pairs, labels)


class AnyLabels(Good):
    def _read(self, pairs: Any, labels: Any) -> Any:
        if isinstance(labels, np.ndarray) and len(labels) < len(pairs):
            pairs = pairs[: len(labels)]
        return super()._read(pairs, labels)


class AnyWeights(Good):
    def fit(self, pairs: Any, labels: Any, sample_weight: Any = None) -> Good:
        if sample_weight is not None:
            sample_weight = np.abs(np.nan_to_num(sample_weight)) + 1e-9
        return super().fit(pairs, labels, sample_weight)


class CrypticError(Good):
    def _read(self, pairs: Any, labels: Any) -> Any:
        try:
            return super()._read(pairs, labels)
        except ValueError:
            raise IndexError("list index out of range") from None


class TwoDimensional(Good):
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = False
        return tags


class ScoreOfNaN(Good):
    def score(self, pairs: Any, labels: Any, sample_weight: Any = None) -> float:
        check_is_fitted(self)
        return float("nan")


class NoRepr(Good):
    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return "an estimator"


class SharedState(Good):
    """A clone is told apart by its parameters only; this one smuggles a fit along."""

    def __sklearn_clone__(self) -> Any:
        return self


class PairsOnly(Good):
    """Predicts pairs, so that a Pipeline or a search with instances fails."""

    def decision_function(self, X: Any) -> Any:
        if len(X) > 40:
            raise RuntimeError("give pairs")
        return super().decision_function(X)


class AnyParameter(Good):
    def set_params(self, **parameters: Any) -> Any:
        for name, value in parameters.items():
            setattr(self, name, value)
        return self


BROKEN: list[tuple[type[Good], str, str]] = [
    (ChangesArgument, "check_init_keeps_parameters", "__init__ changes its argument C"),
    (SetsMoreInInit, "check_init_keeps_parameters", "__init__ sets .*'cache'"),
    (FitChangesParameter, "check_fit_keeps_parameters", "fit changes the parameter C"),
    (AnyParameter, "check_get_and_set_params", "an unknown parameter must be an error"),
    (SharedState, "check_clone", "a clone keeps the fitted attributes .*model_"),
    (NoRepr, "check_repr", "repr does not name the class"),
    (TwoDimensional, "check_tags", "three_d_array must be True"),
    (FitReturnsNothing, "check_fit_returns_self", "fit does not return self"),
    (PublicState, "check_fit_returns_self", "fit sets .*'seen'"),
    (CountsBothEnds, "check_fitted_attributes", "n_features_in_ is 2; the instances have 3"),
    (ReversedClasses, "check_fitted_attributes", "classes_ must be sorted"),
    (Random, "check_deterministic", "two fits with one random_state: decision_function differs"),
    (Remembers, "check_refit", "a fit after another fit: decision_function differs"),
    (GlobalNumpy, "check_leaves_global_random_state", "fit draws on np.random"),
    (GlobalTorch, "check_leaves_global_random_state", "fit draws on torch's generator"),
    (Flipped, "check_learns", "accuracy 0.0. on an easy problem"),
    (ArraysOnly, "check_kinds_of_labels", "labels must be an array"),
    (OneSided, "check_exchange_of_ends", "ends exchanged: only .* of the predictions agree"),
    (Float64Only, "check_types_of_features", "pairs must be float64"),
    (InPlace, "check_keeps_its_input", "pairs are changed in place"),
    (WritesLabels, "check_read_only_memory", "read-only"),
    (HalvesWeights, "check_weights_of_one", "sample_weight of ones: decision_function differs"),
    (InvertsWeights, "check_weights_are_repetitions", "instead of repetitions: only"),
    (ColumnOfDecisions, "check_shapes", r"predict of 1 instances has shape \(1, 1\), not \(1,\)"),
    (WrongSums, "check_outputs_agree", "predict_proba does not sum to one"),
    (Disagrees, "check_outputs_agree", "predict is not the sign of decision_function"),
    (CentresBatches, "check_instances_are_independent", "an instance alone is predicted otherw"),
    (ConstantScore, "check_score", "0.5 for true labels and 0.5 for reversed ones"),
    (NoCopies, "check_deep_copy", "not fitted"),
    (AnswersUnfitted, "check_not_fitted", "predict before fit raises AttributeError: "),
    (AnyWidth, "check_refuses_bad_instances", "predict of too many features must be an error"),
    (FillsNaN, "check_refuses_bad_pairs", "fit with NaN in the features must be an error"),
    (AnyLabels, "check_refuses_bad_pairs", "fit with fewer labels than pairs must be an error"),
    (CrypticError, "check_refuses_bad_pairs", "fit with one axis raises IndexError: list index"),
    (AnyWeights, "check_refuses_bad_weights", "fit with negative weights must be an error"),
    (ScoreOfNaN, "check_cross_validation", "cross_val_score gives"),
    (PairsOnly, "check_grid_search", "give pairs"),
    (PairsOnly, "check_pipeline", "give pairs"),
]


@pytest.mark.filterwarnings("ignore:Scoring failed")
@pytest.mark.parametrize(
    ("kind", "name", "message"), BROKEN, ids=[f"{one.__name__}-{two}" for one, two, _ in BROKEN]
)
def test_a_broken_estimator_is_caught(kind: type[Good], name: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        CHECKS[name](kind())


def test_every_check_catches_something() -> None:
    untested = set(CHECKS) - {name for _, name, _ in BROKEN}
    assert untested == {"check_data_frames"}


def test_all_failures_are_told_at_once() -> None:
    class Hopeless(ConstantScore, WrongSums):
        pass

    with pytest.raises(AssertionError) as caught:
        check_pair_estimator(Hopeless())
    first, *lines = str(caught.value).splitlines()
    assert first.startswith(f"Hopeless fails {len(lines)} of {len(CHECKS)} checks")
    assert any(line.startswith("  check_score: score is 0.5") for line in lines)
    assert any(line.startswith("  check_outputs_agree: ") for line in lines)


def test_a_good_estimator_passes_them_all() -> None:
    check_pair_estimator(Good())


def test_a_class_is_not_an_instance() -> None:
    with pytest.raises(TypeError, match=r"give an instance, such as Good\(\), not the class"):
        check_pair_estimator(Good)
