"""Files of the library in the studio: items, scales, kinds of statement, a kept project."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from model_folders import answer, plain, run
from pairlearn.io import read_pairs
from test_column_kinds import TEN, table
from test_scales import written

HERE = Path(__file__).parent


def test_it_goes_into_the_studio_and_out_again(tmp_path: Path) -> None:
    items, judged, project = tmp_path / "items.csv", tmp_path / "judged.csv", tmp_path / "study"
    items.write_text("id,x\na,1\nb,2\nc,3\n")
    rows = ["a,b,0.5,0.25,,,,ann", "b,,,,,,0.75,ann", "c,,,,,positive,,ann", "c,a,,,right,,,ann"]
    head = "left,right,similarity,difference,preference,label,confidence,annotator"
    judged.write_text("\n".join([head, *rows]) + "\n")
    assert run("annotate", "init", project, items, "--pairs", 1).exit_code == 0
    for new in (4, 0):  # the second time all of it is there
        assert answer("annotate", "import", project, judged)["new"] == new
    assert run("annotate", "export", project, tmp_path / "out.csv").exit_code == 0
    assert sorted((tmp_path / "out.csv").read_text().splitlines()) == sorted([head, *rows])
    assert run("annotate", "import", project, tmp_path / "out.csv").exit_code == 0
    judged.write_text(judged.read_text().replace("ann\n", "bob\n"))
    assert run("annotate", "import", project, judged).exit_code == 0
    status = answer("annotate", "status", project)
    assert (status["answers"], status["cant_say"]) == (8, 0)
    assert (status["pairs"], status["pairs_answered"]) == (1, 1)  # of the plan
    assert run("annotate", "label-studio", project, tmp_path / "tasks").exit_code == 0
    assert len(json.loads((tmp_path / "tasks" / "tasks.json").read_text())) == 2


def test_annotate_init_says_what_fit_will_need(tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    items.write_text(table(x=TEN, sex=["f", "m"] * 5))
    result = run("annotate", "init", tmp_path / "one", items, "--pairs", 3).stdout
    assert "items.csv PAIRS` will learn from x (number); sex (category)" in result
    items.write_text(table(x=TEN, key=[f"k{k}" for k in TEN]))
    result = run("annotate", "init", tmp_path / "two", items, "--pairs", 3).stdout
    assert "`pairlearn fit` will not take these items as they are" in result
    assert "key" in result and "--ignore" in result
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in "abc":
        (photos / f"{name}.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    result = run("annotate", "init", tmp_path / "three", photos).stdout
    assert f"fit {tmp_path / 'three' / 'items'} PAIRS` will learn from image (image)" in result


def test_import_knows_scales(tmp_path: Path) -> None:
    path = written(tmp_path, np.array([1.0, 5, 3, 2]), None)
    project = tmp_path / "project"
    assert run("annotate", "init", project, tmp_path / "items.csv", "--pairs", 2).exit_code == 0
    refused = run("annotate", "import", project, path, "--annotator", "ann")
    assert refused.exit_code == 2 and "--similarity-scale=1,5" in plain(refused.output)
    line = ("annotate", "import", project, path, "--annotator", "ann", "--similarity-scale", "1,5")
    assert json.loads(run(*line, "--json").stdout)["new"] == 4
    run("annotate", "export", project, tmp_path / "out.csv")
    assert sorted(read_pairs(tmp_path / "out.csv").similarity) == [0, 0.25, 0.5, 1]


def test_a_project_still_exports(tmp_path: Path) -> None:
    shutil.copytree(HERE / "golden_project", tmp_path / "project")
    assert run("annotate", "export", tmp_path / "project", tmp_path / "export.csv").exit_code == 0
    assert (tmp_path / "export.csv").read_text() == (HERE / "golden_export.csv").read_text()
