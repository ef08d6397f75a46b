"""Pictures that claim numbers, against the commands that make them."""

from __future__ import annotations

import json
import math
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngImageFile
from typer.testing import CliRunner

from pairlearn import demo
from pairlearn.cli.root import app
from pairlearn.style import STYLE

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
THEORY = runpy.run_path(str(ROOT / "docs" / "figures" / "theory.py"))["PICTURES"]
sys.path.insert(0, str(ROOT / "docs"))

from report_images import bench_source, write_model_report  # noqa: E402


@pytest.mark.parametrize("epochs", [5, pytest.param(demo.EPOCHS, marks=pytest.mark.long)])
def test_demo_and_its_picture_in_the_readme(
    epochs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = epochs == demo.EPOCHS, tmp_path / "demo.png"
    monkeypatch.setattr(demo, "EPOCHS", epochs)
    result = CliRunner().invoke(app, ["demo", "--json", "--out", str(out)])
    assert result.exit_code == 0, result.output
    output = json.loads(result.stdout)
    assert out.read_bytes().startswith(b"\x89PNG")
    assert described(out)["results"] == output["results"]
    assert [row["method"] for row in output["results"]] == list(demo.METHODS)
    shown = described(IMAGES / "demo.png")["results"]
    # Other processors and threads round differently, and training grows small differences.
    for drawn, row in zip(shown, output["results"], strict=True):
        allowed = 0.05 if row["method"].endswith("-none") else 0.03
        allowed = allowed if whole else math.inf
        assert drawn["method"] == row["method"]
        assert drawn["test_accuracy"] == pytest.approx(row["test_accuracy"], abs=allowed)
        estimate, before = row["accuracy_without_labels"], drawn["accuracy_without_labels"]
        assert before["value"] == pytest.approx(estimate["value"], abs=allowed)
        for end in ("low", "high"):  # which vary more
            assert before[end] == pytest.approx(estimate[end], abs=2 * allowed)
        assert 0 <= estimate["low"] <= estimate["value"] <= estimate["high"] <= 1
    accuracy = {row["method"]: row["test_accuracy"] for row in output["results"]}
    assert accuracy["likelihood-abs"] > (0.85 if whole else 0.6)


def described(picture: Path) -> dict[str, Any]:
    """The numbers that a picture carries."""
    with Image.open(picture) as image:
        assert isinstance(image, PngImageFile)
        return dict(json.loads(image.text["Description"]))


def test_pictures_of_reports_show_what_the_commands_give(tmp_path: Path) -> None:
    shown, report = described(IMAGES / "report-model.png"), write_model_report(tmp_path)
    accuracy = shown.pop("accuracy"), report.pop("accuracy")
    assert shown == report
    assert accuracy[0] == pytest.approx(accuracy[1], abs=0.005)
    assert described(IMAGES / "report-bench.png") == bench_source()


def test_the_first_picture_shows_what_the_tutorial_prints() -> None:
    drawn = re.findall(r">(\d\.\d{3})<", (IMAGES / "home.svg").read_text(encoding="utf-8"))
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert len(drawn) == 4
    assert not [number for number in drawn if number not in tutorial]


@pytest.mark.parametrize("name", [*THEORY, "scaling"])
def test_drawings_are_what_their_scripts_draw(name: str, tmp_path: Path) -> None:
    """Every coordinate, to a fifth of a point; another matplotlib lays out differently."""
    kept = IMAGES / ("scaling-curves.svg" if name == "scaling" else f"theory-{name}.svg")
    if f"Matplotlib v{matplotlib.__version__}," not in kept.read_text(encoding="utf-8"):
        pytest.skip("drawn by another version of matplotlib")
    if name == "scaling":
        draw = runpy.run_path(str(ROOT / "docs" / "figures" / "scaling.py"))["draw_curves"]
    else:
        draw = THEORY[name]
    with matplotlib.rc_context(STYLE):
        draw().savefig(tmp_path / "new.svg", metadata={"Date": None})
    old, new = (
        [float(n) for path in re.findall(r' d="([^"]*)"', file.read_text(encoding="utf-8"))
         for n in re.findall(r"-?[0-9.]+", path)]
        for file in (kept, tmp_path / "new.svg")
    )  # fmt: skip
    assert old == pytest.approx(new, abs=0.2)
