"""Run a notebook from top to bottom and store it with its outputs, as Jupyter would.

    python docs/tests/run_notebook.py docs/first_steps.ipynb

Notebooks here are plain Python: no magics, no display calls. A cell shows what it prints,
the value of its last expression, and the figures that it leaves open.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any


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


def run_notebook(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of its cells, run in an empty folder."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, cell in enumerate(cells, start=1):
            name = f"{path.name}, cell {number}"
            printed = run_cell("".join(cell["source"]), namespace, name)
            cell["execution_count"] = number
            cell["outputs"] = [_stream(printed)] if printed else []
            cell["outputs"] += [_figure(png) for png in take_figures()]
    return notebook


def _stream(text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}


def _figure(png: bytes) -> dict[str, Any]:
    data = {"image/png": base64.b64encode(png).decode()}
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def take_figures() -> list[bytes]:
    """Every open figure as a PNG file; they are closed."""
    import matplotlib.pyplot as plt

    taken = []
    for number in plt.get_fignums():
        buffer = io.BytesIO()
        plt.figure(number).savefig(buffer, dpi=144, bbox_inches="tight", facecolor="white")
        taken.append(buffer.getvalue())
    plt.close("all")
    return taken


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("agg")
    target = Path(sys.argv[1])
    text = json.dumps(run_notebook(target), indent=1, ensure_ascii=False)
    target.write_text(text + "\n", encoding="utf-8")
