"""What was computed and written once: computed again and read again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn

from pairlearn import PairClassifier

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make as golden  # noqa: E402

FITS = json.loads((GOLDEN / "fit.json").read_text())
# Where scikit-learn's solver stops, which it does early, changes with its version.
SOLVED = 1e-6 if sklearn.__version__.startswith("1.9.") else 0.02


def assert_close(actual: Any, expected: Any, where: str = "", within: float = 1e-6) -> None:
    """Everything that was kept, numbers to 1e-6; more may have been added."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in actual, f"{where}.{key} is gone"
            assert_close(actual[key], value, f"{where}.{key}", within)
    elif isinstance(expected, list):
        assert len(actual) == len(expected), where
        for index, value in enumerate(expected):
            assert_close(actual[index], value, f"{where}[{index}]", within)
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=within, abs=within), where
    else:
        assert actual == expected, where


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", golden.CASES)
def test_fit(name: str) -> None:
    within = SOLVED if name.startswith("scikit-learn") else 1e-6
    assert_close(golden.fit_case(name), FITS[name], name, within)


@pytest.mark.parametrize("name", golden.WHOLE)
def test_command(name: str, tmp_path: Path) -> None:
    kept = json.loads((GOLDEN / f"{name}.json").read_text())
    assert_close(golden.WHOLE[name](tmp_path), kept, name)


@pytest.mark.parametrize("name", ["linear", "labelled", "target", "similarity", "network"])
def test_model_folders_still_load(name: str) -> None:
    kept = json.loads((GOLDEN / "models" / "log_odds.json").read_text())
    x = np.asarray(kept["x"], dtype=np.float32)
    log_odds = PairClassifier.load(GOLDEN / "models" / name).decision_function(x)
    assert log_odds == pytest.approx(np.asarray(kept[name]), abs=1e-5)
