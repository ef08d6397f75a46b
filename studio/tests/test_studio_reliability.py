"""What `annotate export` says about annotators who disagree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from pairlearn.labels import PairLabels
from studio_client import annotate

PAIRS = 400


def project_with(folder: Path, people: Mapping[str, str]) -> Path:
    """A project whose pairs all people judged: honestly, alike each time, or other pairs."""
    rng = np.random.default_rng(1)
    shown, others = (PairLabels.from_posteriors(*rng.random((2, PAIRS))) for _ in range(2))
    answers = {"honest": shown.to_array(), "other pairs": others.to_array()}
    answers["constant"] = np.tile([1.0, 0.0], (PAIRS, 1))
    (folder / "items.csv").write_text("id,a\n" + "".join(f"{k},{k}\n" for k in range(2 * PAIRS)))
    rows = [
        f"{2 * pair},{2 * pair + 1},{s:.3f},{c:.3f},{name}\n"
        for name, manner in people.items()
        for pair, (s, c) in enumerate(
            answers[manner] + (manner == "honest") * rng.normal(0, 0.01, (PAIRS, 2)) * [0, 1]
        )
    ]
    (folder / "pairs.csv").write_text(
        "left,right,similarity,difference,annotator\n" + "".join(rows)
    )
    project = folder / "project"
    assert annotate("init", project, folder / "items.csv", "--pairs", 5).exit_code == 0
    done = annotate("import", project, folder / "pairs.csv")
    assert done.exit_code == 0, done.output
    return project


@pytest.mark.parametrize("rule", ["mean", "reliability"])
def test_two_people_who_contradict_each_other_are_named(tmp_path: Path, rule: str) -> None:
    project = project_with(tmp_path, {"ann": "honest", "cy": "other pairs"})
    done = annotate("export", project, tmp_path / "out.csv", "--aggregate", rule)
    assert "warning: ann and cy contradict each other on the same pairs" in done.stderr


def test_a_mean_of_doubtful_answers_is_warned_of(tmp_path: Path) -> None:
    people = {"ann": "honest", "bob": "constant", "cy": "honest", "dan": "other pairs"}
    project, out = project_with(tmp_path, people), tmp_path / "out.csv"
    for rule in ("mean", "median"):
        done = annotate("export", project, out, "--aggregate", rule, "--force")
        assert "reliability of" not in done.stdout
        assert "bob's 400 answers all have similarity 1 and difference 0" in done.stderr
        assert f"The {rule} counts these answers like all others" in done.stderr
        assert "--without dan leaves them out" in done.stderr
    done = annotate("export", project, out, "--aggregate", "reliability", "--force")
    assert "reliability of bob: 0.00; gives one answer to everything" in done.stdout
    assert "counts these answers" not in done.stderr
    for options in (("--aggregate", "mean", "--without", "bob,dan"), ()):
        assert not annotate("export", project, out, *options, "--force").stderr
