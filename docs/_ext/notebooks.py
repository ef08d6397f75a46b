"""A notebook as a page: its cells are run at build time, in order, and shown with outputs.

Notebooks here are plain Python: no magics, no display calls. A cell shows what it prints,
the value of its last expression, and the figures that it leaves open, as Jupyter does.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Cell = tuple[str, str]


def read_notebook(path: Path) -> list[Cell]:
    """Kind and source of the cells of a notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]


def run_cell(source: str, namespace: dict[str, Any], name: str) -> str:
    """Run a cell; what it prints, and the value of its last expression without a semicolon."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
            if value is not None and not source.rstrip().endswith(";"):
                print(value if isinstance(value, str) else repr(value))
    return printed.getvalue()


def run_notebook(path: Path, figures: Path) -> Iterator[tuple[Cell, str, tuple[Path, ...]]]:
    """Run a notebook in an empty folder: each cell with its text and its figures."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, (kind, source) in enumerate(read_notebook(path), start=1):
            code = source if kind == "code" else ""
            printed = run_cell(code, namespace, f"{path.name}, cell {number}")
            yield (kind, source), printed, save_figures(figures / f"{path.stem}-{number}")


def save_figures(stem: Path) -> tuple[Path, ...]:
    """Write every open figure next to this stem, and close them."""
    import matplotlib.pyplot as plt

    stem.parent.mkdir(parents=True, exist_ok=True)
    found = []
    for number in plt.get_fignums():
        found.append(stem.with_name(f"{stem.name}-{number}.png"))
        plt.figure(number).savefig(found[-1], dpi=180, bbox_inches="tight", facecolor="white")
    plt.close("all")
    return tuple(found)
