"""From simulated items through the studio to a trained model, as by hand."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from pairlearn import PairClassifier, PairLabels
from pairlearn.cli import app
from pairlearn.data.simulation import simulate
from pairlearn.studio.server import make_app
from pairlearn.tables import read_items, read_pairs
from test_annotate_web import HERE, Visitor

PAIRS = 120


def command(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_fit_of_what_was_answered_is_a_fit_of_what_was_meant(tmp_path: Path) -> None:
    made = simulate("gaussians", pairs=PAIRS, prior=0.3, seed=5)
    made.write(tmp_path / "data", "csv")
    items = read_items(tmp_path / "data" / "items.csv")
    posterior = dict(zip(map(str, items.ids), made.posterior, strict=True))

    folder, exported = tmp_path / "project", tmp_path / "answers.csv"
    report = json.loads(
        command("annotate", "init", folder, tmp_path / "data" / "items.csv", "--pairs", PAIRS,
                "--annotators", "ann", "--json")
    )  # fmt: skip
    (link,) = report["links"].values()
    meant: dict[tuple[str, str], tuple[float, float]] = {}
    with TestClient(make_app(folder, requests_per_second=1e6), HERE) as client:
        ann = Visitor(client, urlsplit(link).path.rsplit("/", 1)[1])
        while (task := client.get("/annotate/1/api/task").json()["task"]) is not None:
            left, right = task["left"]["title"], task["right"]["title"]
            told = PairLabels.from_posteriors([posterior[left]], [posterior[right]])
            s, c = float(told.similarity[0]), float(told.difference[0])
            meant[left, right] = s, c
            assert ann.answer(similarity=s, difference=c).status_code == 200
    command("annotate", "export", folder, exported)

    table = read_pairs(exported)
    assert len(table) == len(meant) == PAIRS
    for pair, judgement in zip(table.ids(), table.to_array(), strict=True):
        assert meant[str(pair[0]), str(pair[1])] == pytest.approx(tuple(judgement), abs=1e-12)

    def accuracy(pairs: np.ndarray, labels: np.ndarray) -> float:
        classifier = PairClassifier(
            model="linear", epochs=60, random_state=0, preprocessor=items.features, device="cpu"
        ).fit(pairs, labels)
        return float(((classifier.predict(items.features) == 1) == made.positive).mean())

    through_the_studio = accuracy(table.positions(items), table.to_array())
    as_meant = np.array([meant[str(left), str(right)] for left, right in table.ids()])
    assert through_the_studio == accuracy(table.positions(items), as_meant)
    directly = accuracy(made.pairs.positions(items), made.pairs.to_array())
    assert through_the_studio == pytest.approx(directly, abs=0.03)  # other pairs of the same items
    assert through_the_studio > 0.85
