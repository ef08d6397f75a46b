"""Install the built package into empty environments and use it as a stranger would.

    python -m build && python tests/try_package.py dist
    python tests/try_package.py dist --versions oldest

Every file in the folder is installed into an environment of its own: with the newest versions that
pip finds, or with the oldest that pyproject.toml allows. Then the commands of the README run in an
empty folder.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = "from pairlearn import PairClassifier; PairClassifier.load('model'); print('loaded')"


def oldest_versions() -> list[str]:
    """The lower bounds of the dependencies, as pins."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [one.replace(">=", "==") for one in project["dependencies"]]


def readme_commands() -> list[str]:
    """The lines of the first shell block of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    return [line.split("#")[0].strip() for line in block[1].splitlines()]


def run(*command: str | Path, folder: Path) -> None:
    """Run a command, without a path into the repository."""
    print("$", *command, flush=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(list(map(str, command)), cwd=folder, env=environment, check=True)


def try_package(package: Path, pins: list[str]) -> None:
    """Install a wheel or an sdist into an empty environment, and run the README's commands."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bin_ = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        maker = "venv" if not subprocess.call([sys.executable, "-c", "import ensurepip"]) else None
        run(sys.executable, "-m", maker or "virtualenv", folder / "env", folder=folder)
        run(bin_ / "python", "-m", "pip", "install", "--quiet", package, *pins, folder=folder)
        run(bin_ / "python", "-m", "pip", "check", folder=folder)
        for line in readme_commands():
            command, *rest = line.split()
            run(bin_ / command, *rest, folder=folder)
        run(bin_ / "python", "-W", "error", "-c", PYTHON, folder=folder)


def main() -> None:
    """Try every package in the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--versions", choices=("newest", "oldest"), default="newest")
    told = parser.parse_args()
    packages = sorted([*told.folder.glob("*.whl"), *told.folder.glob("*.tar.gz")])
    if not packages:
        sys.exit(f"{told.folder} has neither a wheel nor an sdist: run python -m build first")
    for package in packages:
        try_package(package.resolve(), oldest_versions() if told.versions == "oldest" else [])
        print(f"{package.name} with the {told.versions} versions: works")


if __name__ == "__main__":
    main()
