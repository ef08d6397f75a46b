"""PairClassifier under `check_pair_estimator`, and the names of the room.

`test_classifier_sklearn.py` runs every check on the linear model, one test a check.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from sklearn.linear_model import LogisticRegression

import pairlearn.estimators
from pairlearn.estimators import PairClassifier, check_pair_estimator, pair_checks

COMPLETED = (
    "check_clone",
    "check_deep_copy",
    "check_fit_keeps_parameters",
    "check_keeps_its_input",
    "check_learns",
    "check_pipeline",
    "check_refuses_bad_weights",
)
CHECKS = {check.__name__: check for check in pair_checks()}


@pytest.mark.parametrize("name", COMPLETED)
def test_a_scikit_learn_model_keeps_the_conventions(name: str) -> None:
    CHECKS[name](PairClassifier(model=LogisticRegression()))


@pytest.mark.long
@pytest.mark.parametrize("model", [LogisticRegression(), "linear", "mlp-bn"], ids=str)
def test_all_conventions(model: object) -> None:
    check_pair_estimator(PairClassifier(model=model, epochs=30, learning_rate=0.02, batch_size=32))


def test_all_names_are_there() -> None:
    for name in pairlearn.estimators.__all__:
        assert getattr(pairlearn.estimators, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pairlearn.estimators.nothing  # type: ignore[attr-defined]


def test_checks_and_export_load_when_they_are_asked_for() -> None:
    modules = ("checks", "completion", "onnx_export", "model_folder", "streaming")
    code = (
        "import sys, pairlearn.estimators\n"
        f"print([m for m in {modules!r} if f'pairlearn.estimators.{{m}}' in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
