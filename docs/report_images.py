"""Take the two screenshots of reports that `guides/accuracy.md` shows.

    python docs/report_images.py

Needs Chromium and the tools of the tests. The page about a model is what the commands of that guide
write, the one about the benchmark is made from `bench/results/`. Each picture carries
the numbers that it was made from, which the tests compare with the current output of the commands.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "studio" / "tests")]

from pages import read_page, run_commands  # noqa: E402

IMAGES = ROOT / "docs" / "images"
GUIDE = ROOT / "docs" / "guides" / "accuracy.md"
LIMITED = ROOT / "bench" / "results" / "runs" / "limited.parquet"


def write_model_report(folder: Path) -> dict[str, Any]:
    """Run the guide's commands in a folder, and return the numbers shown in its report.html."""
    commands = [block for block in read_page(GUIDE) if block.language == "sh"]
    (last,) = (block for block in commands if block.text.startswith("pairlearn report "))
    with contextlib.chdir(folder):
        run_commands(commands[0])
        report = json.loads(run_commands(replace(last, text=f"{last.text.strip()} --json")))
    report["accuracy"] = {end: report["accuracy"][end] for end in ("value", "low", "high")}
    return {name: report[name] for name in ("pairs", "items", "accuracy", "warnings")}


def bench_source() -> dict[str, str]:
    """The runs that the picture of the benchmark's page shows."""
    return {"limited.parquet": hashlib.sha256(LIMITED.read_bytes()).hexdigest()}


def describe(picture: Path, numbers: dict[str, Any]) -> None:
    """Write numbers into a picture, as its description."""
    info = PngInfo()
    info.add_text("Description", json.dumps(numbers))
    with Image.open(picture) as image:
        image.load()
    image.save(picture, pnginfo=info, optimize=True)


def main() -> None:
    """Write docs/images/report-model.png and report-bench.png."""
    from browser import chromium

    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        numbers = write_model_report(folder)
        command = ("bench", "report", "bench.html", "--results", str(ROOT / "bench" / "results"))
        subprocess.run([sys.executable, "-m", "pairlearn", *command], cwd=folder, check=True)
        page = browser.new_page(viewport={"width": 1120, "height": 700})
        page.goto((folder / "report.html").as_uri())
        page.screenshot(path=IMAGES / "report-model.png")
        describe(IMAGES / "report-model.png", numbers)
        page.goto((folder / "bench.html").as_uri())
        page.locator("#limited").evaluate("section => section.scrollIntoView()")
        page.mouse.wheel(0, -70)  # from below the bar of filters
        page.wait_for_timeout(300)
        page.screenshot(path=IMAGES / "report-bench.png")
        describe(IMAGES / "report-bench.png", bench_source())


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
