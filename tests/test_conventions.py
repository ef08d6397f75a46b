"""PairClassifier under `check_pair_estimator`, and the names of the room.

`test_classifier_sklearn.py` runs every check on the linear model, one test a check.
"""

from __future__ import annotations

import pytest
from sklearn.linear_model import LogisticRegression

import pairlearn.estimators
from pair_checks import CHECKS
from pairlearn.estimators import PairClassifier

COMPLETED = (
    "check_clone",
    "check_fit_keeps_parameters",
    "check_keeps_its_input",
    "check_learns",
    "check_pipeline",
)


@pytest.mark.parametrize("name", CHECKS)
def test_a_linear_model_keeps_the_conventions(name: str) -> None:
    CHECKS[name](
        PairClassifier(model="linear", epochs=15, batch_size=32, learning_rate=0.02, device="cpu")
    )


@pytest.mark.parametrize("name", COMPLETED)
def test_a_scikit_learn_model_keeps_the_conventions(name: str) -> None:
    CHECKS[name](PairClassifier(model=LogisticRegression()))


@pytest.mark.long
@pytest.mark.parametrize("model", [LogisticRegression(), "mlp-bn"], ids=str)
@pytest.mark.parametrize("name", CHECKS)
def test_all_conventions(name: str, model: object) -> None:
    CHECKS[name](PairClassifier(model=model, epochs=30, learning_rate=0.02, batch_size=32))


def test_all_names_are_there() -> None:
    for name in pairlearn.estimators.__all__:
        assert getattr(pairlearn.estimators, name).__name__ == name
