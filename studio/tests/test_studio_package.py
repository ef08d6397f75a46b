"""The studio's commands load what they need and no more."""

from __future__ import annotations

from pathlib import Path

from test_package import RUN, loaded_after


def test_help_imports_nothing_heavy() -> None:
    heavy = ("torch", "numpy", "sklearn", "pyarrow", "matplotlib", "starlette", "PIL", "pandas")
    assert loaded_after(RUN.format([["annotate", "--help"]]), *heavy) == []


def test_annotating_and_checking_need_no_torch(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("left,right,similarity,difference\n1,2,0.9,0.05\n2,3,0.2,-0.7\n")
    items = tmp_path / "items.csv"
    items.write_text("id,x\n1,0.1\n2,0.2\n3,0.9\n")
    project = str(tmp_path / "project")
    commands = [
        ["annotate", "init", project, str(items), "--pairs", "2", "--annotators", "ann"],
        ["annotate", "import", project, str(pairs), "--annotator", "bob"],
        ["annotate", "status", project],
        ["annotate", "export", project, str(tmp_path / "out.csv")],
        ["check", str(pairs), "--quiet"],
    ]
    assert loaded_after(RUN.format(commands), "torch", "sklearn", "matplotlib") == []
    assert (tmp_path / "out.csv").exists()
