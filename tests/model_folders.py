"""A small fitted model and the files around it, for tests of the commands that use one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typer.testing import CliRunner, Result

from pairlearn.cli.root import app
from pairlearn.estimators import PairClassifier, TrainingOptions
from pairlearn.io import ItemTable
from pairlearn.simulation import Simulation, simulate
from tables import pair_ids


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*words: object) -> dict[str, Any]:
    """What a command says with --json, if it ends well."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    output: dict[str, Any] = json.loads(result.stdout)
    return output


def plain(text: str) -> str:
    """What was printed, whatever the width of the terminal."""
    return " ".join(text.split())


def simulated(folder: Path, seed: int, **options: Any) -> Simulation:
    """Items, pairs and truth in a folder, and what they are."""
    data = simulate(**({"pairs": 200, "prior": 0.3, "seed": seed} | options))
    data.write(folder)
    return data


def fitted(data: Simulation, epochs: int = 30, **options: Any) -> PairClassifier:
    """A linear classifier of a simulation, with the names of its features."""
    items = ItemTable(None, data.items.features, data.items.names)
    classifier = PairClassifier(
        model="linear", epochs=epochs, training=TrainingOptions(learning_rate=0.02),
        random_state=0, preprocessor=items, **options,
    )  # fmt: skip
    classifier.fit(pair_ids(data.pairs), data.pairs.labels())
    return classifier.set_params(preprocessor=None)


def probability(classifier: PairClassifier, features: NDArray[Any]) -> NDArray[np.float64]:
    """P(positive) by the definition: standardise, one matrix product, shift, logistic."""
    state = {
        name: value.double().numpy() for name, value in classifier.module_.state_dict().items()
    }
    x = (features.astype(np.float64) - classifier.mean_) / classifier.scale_
    if "norms.0.weight" in state:
        spread = np.sqrt(state["norms.0.running_var"] + 1e-5)
        x = (x - state["norms.0.running_mean"]) / spread
        x = x * state["norms.0.weight"] + state["norms.0.bias"]
    z = x @ state["layers.0.weight"][0] + state["layers.0.bias"]
    return np.asarray(1 / (1 + np.exp(-(classifier.sign_ * z + classifier.shift_))))
