"""Install the built distributions into empty environments and use them as a stranger would.

    make release
    python tests/try_package.py dist --versions oldest --tests

The wheel and the sdist of the library get an environment each, with the newest versions that pip
finds or the oldest that pyproject.toml allows; then the commands of the README run in an empty
folder. Two more have all three distributions, as wheels and as sdists, and run commands of each.
With --tests, the tests of the library and the bench then run with what the wheels installed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = "from pairlearn import PairClassifier; PairClassifier.load('model'); print('loaded')"
MISSING = (("annotate", "./studio"), ("bench", "./bench"))
#: What the tests need beside the three distributions.
TESTERS = ("hypothesis", "onnx", "onnxruntime", "pandas", "pytest", "pytest-xdist")


def oldest_versions() -> list[str]:
    """The lower bounds of all dependencies and extras, as constraints of pip."""
    files = [ROOT / part / "pyproject.toml" for part in (".", "studio", "bench")]
    projects = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    extras = [project.get("optional-dependencies", {}) for project in projects]
    given = [one for project in projects for one in project["dependencies"]]
    given += [one for named in extras for listed in named.values() for one in listed]
    found = [re.match(r"([\w.-]+)(?:\[.*\])?>=([\w.]+)", one) for one in given]
    return sorted({f"{bound[1]}=={bound[2]}" for bound in found if bound})


def readme_commands() -> list[str]:
    """The lines of the first shell block of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    return [line.split("#")[0].strip() for line in block[1].splitlines()]


def run(*command: str | Path, folder: Path) -> None:
    """Run a command, without a path into the repository."""
    print("$", *command, flush=True)
    subprocess.run(list(map(str, command)), cwd=folder, env=_environment(), check=True)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def install(folder: Path, packages: Sequence[Path | str], pins: Sequence[str]) -> Path:
    """Make an environment with these packages, at these versions; its folder of commands."""
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(pins), encoding="utf-8")
    bin_ = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    maker = "venv" if not subprocess.call([sys.executable, "-c", "import ensurepip"]) else None
    run(sys.executable, "-m", maker or "virtualenv", folder / "env", folder=folder)
    pip = ("-m", "pip", "install", "--quiet", "--constraint", constraints)
    run(bin_ / "python", *pip, *packages, folder=folder)
    run(bin_ / "python", "-m", "pip", "check", folder=folder)
    return bin_


def try_library(package: Path, pins: list[str]) -> None:
    """The library alone: the README's commands, and what it says about the other two."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bin_ = install(folder, [package], pins)
        for line in readme_commands():
            command, *rest = line.split()
            run(bin_ / command, *rest, folder=folder)
        run(bin_ / "python", "-W", "error", "-c", PYTHON, folder=folder)
        for command, part in MISSING:
            done = subprocess.run(
                [bin_ / "pairlearn", command, "--help"],
                cwd=folder, env=_environment(), capture_output=True, text=True,
            )  # fmt: skip
            assert done.returncode == 2 and f"pip install . {part}" in done.stderr, done


def try_all(packages: Sequence[Path], pins: list[str], tests: bool) -> None:
    """All three: each has its commands, and the package data that they read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bin_ = install(folder, [*packages, *(TESTERS if tests else ())], pins)
        (folder / "items.csv").write_text("id,x\na,1\nb,2\nc,3\n")
        for line in (
            "pairlearn --version",
            "pairlearn annotate init project items.csv --pairs 2 --annotators ann",
            "pairlearn annotate status project",
            "pairlearn bench run accuracy --datasets digits --priors 0.5 --seeds 1 --epochs 1 "
            "--methods likelihood-abs --model linear --store runs.jsonl",
            "pairlearn bench table accuracy --store runs.jsonl",
        ):
            command, *rest = line.split()
            run(bin_ / command, *rest, folder=folder)
        if tests:  # what the versions warn of is theirs
            options = ("-m", "not long", "-o", "filterwarnings=default", "-n", "2")
            parts = ("tests", "bench/tests")
            run(bin_ / "python", "-m", "pytest", *options, *parts, folder=ROOT)


def main() -> None:
    """Try everything in the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--versions", choices=("newest", "oldest"), default="newest")
    parser.add_argument("--tests", action="store_true", help="run the tests as well")
    options = parser.parse_args()
    wheels, archives = (
        {path.name.split("-")[0]: path.resolve() for path in options.folder.glob(pattern)}
        for pattern in ("*.whl", "*.tar.gz")
    )
    three = ("pairlearn", "pairlearn_studio", "pairlearn_bench")
    if not {*three} <= wheels.keys() & archives.keys():
        sys.exit(f"{options.folder} lacks a wheel or an sdist of {', '.join(three)}: make release")
    pins = oldest_versions() if options.versions == "oldest" else []
    for package in (wheels["pairlearn"], archives["pairlearn"]):
        try_library(package, pins)
        print(f"{package.name} with the {options.versions} versions: works")
    for built in (archives, wheels):
        tests = options.tests and built is wheels
        try_all([built[name] for name in three], pins, tests)
        print(f"all three with the {options.versions} versions: work")


if __name__ == "__main__":
    main()
