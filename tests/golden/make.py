"""Golden files: what was computed once, so that a change of a number does not go unnoticed.

Run this to add a case, or where a change is meant:

    python tests/golden/make.py NAME

`tests/test_golden.py` computes every case anew and compares. Fits run in float64 with a
fixed number of steps, so that only another order of operations can change a digit.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from pairlearn import PairClassifier, make_risk
from pairlearn.cli.root import app
from pairlearn.io import read_pairs
from pairlearn.simulation import simulate

HERE = Path(__file__).parent
FIT = {"epochs": 4, "training__batch_size": 32, "training__learning_rate": 0.01,
       "training__precision": "float64", "training__device": "cpu", "random_state": 7,
       "annotators": "ideal"}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "both": {},
    "both-linear": {"model": "linear"},
    "both-mlp": {"model": "mlp"},
    "guided": {"model": "linear", "epochs": 12, "table": {"prior": 0.1}},
    "likelihood-none": {"risk": "likelihood-none"},
    "likelihood-relu": {"risk": "likelihood-relu"},
    "sconf": {"risk": "sconf-abs", "prior": 0.3},
    "confdiff": {"risk": "confdiff-abs", "prior": 0.3},
    "convex": {"risk": "convex-0.5-abs", "prior": 0.3},
    "sconfconfdiff": {"risk": "sconfconfdiff-abs", "majority": "negative"},
    "sconfconfdiff-found": {"risk": "sconfconfdiff-abs"},
    "nonnegative": {"risk": make_risk("nonnegative-abs", 0.3, "squared")},
    "similarity": {"majority": "negative", "keep": "similarity"},
    "difference": {"prior": 0.3, "keep": "difference"},
    "difference-affine": {"risk": "sconfconfdiff-abs", "prior": 0.3, "keep": "difference"},
    "missing": {"table": {"missing": 0.5}},
    "missing-affine": {"risk": "sconfconfdiff-abs", "prior": 0.3, "table": {"missing": 0.5}},
    "preference": {"table": {"preference": 0.4}},
    "preference-only": {"prior": 0.3, "table": {"preference": 1.0}},
    "weights": {"weights": True},
    "labelled": {"labelled": 31},
    "labelled-weight": {"labelled": 30, "training__labelled_weight": 0.4,
                        "table": {"missing": 0.3}},
    "recurring": {"table": {"items": 60}},
    "target": {"target_prior": 0.5},
    "scikit-learn": {"model": "logistic"},
    "scikit-learn-mixed": {"model": "logistic", "labelled": 20,
                           "table": {"missing": 0.4, "preference": 0.2}},
}  # fmt: skip


def fitted(name: str) -> tuple[PairClassifier, Any]:
    """The classifier of a case, and the items that it was fitted to."""
    options = dict(CASES[name])
    table = {"pairs": 150, "prior": 0.3, "seed": 3, "noise": 0.2} | options.pop("table", {})
    keep, weights = options.pop("keep", None), options.pop("weights", False)
    labelled = options.pop("labelled", 0)
    made = simulate("gaussians", **table)
    columns = made.pairs.columns()
    if keep is not None:
        columns = {name: columns[name] for name in ("left", "right", keep)}
    if weights:
        columns["weight"] = np.linspace(0.5, 2.0, len(columns["left"]))
    if options.get("model") == "logistic":
        options["model"] = LogisticRegression()
    more: dict[str, Any] = {}
    if labelled:
        known = made.items.ids[:labelled]
        more["labelled"] = (known, np.where(made.positive[:labelled], 1, -1))
    classifier = PairClassifier(preprocessor=made.items.features).set_params(**(FIT | options))
    pairs = read_pairs(columns, noisy=True)
    return classifier.fit(pairs, **more), made.items


def fit_case(name: str) -> dict[str, Any]:
    """Log-odds of 25 items and what else was learnt."""
    classifier, items = fitted(name)
    return {
        "log_odds": classifier.decision_function(items.features[:25]).tolist(),
        "sign": int(classifier.sign_),
        "shift": float(classifier.shift_),
        "prior": float(classifier.prior_),
        "n_iter": int(classifier.n_iter_),
        "risk": [row["risk"] for row in classifier.history_ if "risk" in row],
    }


def output(*arguments: object) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def check_case(folder: Path) -> Any:
    """`check --json` of a table with something of everything; of the sentences, the decimals."""
    simulate("gaussians", pairs=160, prior=0.3, seed=5, noise=0.3, missing=0.3, preference=0.1,
             annotators=3, repeated=0.2, items=120).write(folder)  # fmt: skip
    found = json.loads(
        output("check", folder / "pairs.csv", "--items", folder / "items.csv", "--json")
    )
    for finding in found["findings"]:
        finding["decimals"] = sorted(re.findall(r"\d+\.\d+|\d+%", finding.pop("message")))
    return found


def evaluate_case(folder: Path) -> Any:
    """`evaluate --json` of a stored model folder on other pairs."""
    simulate("gaussians", pairs=200, prior=0.3, seed=9, noise=0.1).write(folder)
    model = HERE / "models" / "linear"
    found = json.loads(
        output("evaluate", model, folder / "items.csv", folder / "pairs.csv", "--json")
    )
    return {key: value for key, value in found.items() if key not in ("model", "pairs")}


WHOLE: dict[str, Callable[[Path], Any]] = {
    "check": check_case,
    "evaluate": evaluate_case,
}


def main() -> None:
    """Write the cases that are named, or all that are missing."""
    path = HERE / "fit.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    for name in [*CASES, *WHOLE]:
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        if name in CASES and (name in sys.argv[1:] or name not in kept):
            kept[name] = fit_case(name)
        elif name in WHOLE:
            with tempfile.TemporaryDirectory() as folder:
                found = WHOLE[name](Path(folder))
            (HERE / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    path.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
