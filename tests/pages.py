"""Pages whose code is run: their blocks, and whether what they show is what happens.

A page has fenced blocks: ``python`` and ``sh`` ones are run in order, and a ``text``
block below one of them shows what it prints. A line ``…`` in it stands for lines that
were left out. A ``python`` block below a line with a name, as in ```my_risk.py`:``, is
that file: it is written into the folder, for the blocks below.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairlearn.cli.root import app

ROOT = Path(__file__).parents[1]
LEFT_OUT = "…"
_NUMBER = re.compile(r"(?<![\w.])[-−+±]?(?:\d[\d,]*\.?\d*|\.\d+)(?![\w])")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, its line, what it shows below, and its file."""

    language: str
    text: str
    line: int
    shown: str | None
    file: str | None


def read_page(path: Path) -> list[Block]:
    """The blocks of a page that are run, in order."""
    page = path.read_text(encoding="utf-8")
    found = list(re.finditer(r"^```(\w+)\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE))
    blocks = []
    for here, after in zip(found, [*found, None][1:], strict=True):
        if here[1] not in ("python", "sh"):
            continue
        shown = after[2] if after is not None and after[1] == "text" else None
        file = re.search(r"^`(\w+\.py)`:\n+\Z", page[: here.start()], flags=re.MULTILINE)
        line = page[: here.start()].count("\n") + 2
        blocks.append(Block(here[1], here[2], line, shown, file and file[1]))
    return blocks


def run_page(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page in a folder, one after the other; each with what it printed."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in read_page(path):
        if block.language == "sh":
            yield block, run_commands(block)
            continue
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
            continue
        # Errors and warnings then name the line of the page.
        code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, namespace)
        yield block, printed.getvalue()


def run_commands(block: Block) -> str:
    """Run the commands of a block: ours in this process, which is faster, others by the shell."""
    printed = []
    for line in block.text.replace("\\\n", " ").splitlines():
        command = line.split("  #")[0].strip()
        if command.startswith("pairlearn "):
            result = CliRunner().invoke(app, shlex.split(command)[1:], catch_exceptions=False)
            code, output = result.exit_code, result.output
        else:
            done = subprocess.run(command, shell=True, capture_output=True, text=True)
            code, output = done.returncode, done.stdout + done.stderr
        assert code == 0, f"{command}: {output}"
        printed.append(output)
    return "".join(printed)


def assert_shown(shown: str, printed: str, *, within: float) -> None:
    """What a page shows was printed, in this order: words as they are, numbers about so.

    Parameters
    ----------
    shown, printed : str
        The page's text and the program's.
    within : float
        How far a number may be from the one shown, as a share of it where it is above one.
    """
    lines = iter([_normal(line) for line in printed.splitlines() if line.strip()])
    wanted = [_normal(line) for line in shown.splitlines() if line.strip()]
    for number, want in enumerate(wanted):
        if want == LEFT_OUT:
            continue
        follows = number == 0 or wanted[number - 1] != LEFT_OUT
        for line in lines:
            if _same(want, line, within):
                break
            assert not follows, f"the page shows\n  {want}\nand what was printed is\n  {line}"
        else:
            raise AssertionError(f"the page shows\n  {want}\nwhich is not in\n{printed}")
    if wanted and wanted[-1] != LEFT_OUT:
        assert not list(lines), f"more was printed than the page shows:\n{printed}"


def _normal(line: str) -> str:
    return " ".join(line.split())


def _same(want: str, line: str, within: float) -> bool:
    if _NUMBER.sub("#", want) != _NUMBER.sub("#", line):
        return False
    pairs = zip(_numbers(want), _numbers(line), strict=True)
    return all(abs(a - b) <= within * max(1.0, abs(a)) for a, b in pairs)


def _numbers(line: str) -> list[float]:
    return [
        float(text.replace(",", "").replace("−", "-").lstrip("±")) for text in _NUMBER.findall(line)
    ]
