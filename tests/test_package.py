"""The package as a stranger meets it: imports, README, size of the core, the demo."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pairlearn

ROOT = Path(__file__).parents[1]
SOURCE = Path(pairlearn.__file__).parent


def loaded_after(code: str, *names: str) -> list[str]:
    """Which of these modules a fresh interpreter has after some code."""
    code = f"import sys\n{code}\nprint('loaded', *[m for m in {names!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return out.stdout.splitlines()[-1].split()[1:]


def test_import_is_light() -> None:
    heavy = ("sklearn", "matplotlib", "pyarrow", "typer", "rich", "PIL", "pandas")
    every = "from pairlearn import PairLabels, estimate_prior, evaluate, make_risk"
    assert loaded_after("import pairlearn", "torch", "numpy", "starlette", *heavy) == []
    assert loaded_after("import pairlearn.io", "torch", "scipy", *heavy) == []
    assert loaded_after(every, "torch", *heavy) == ["torch"]


def test_public_names_are_found() -> None:
    assert set(pairlearn.__all__) <= set(dir(pairlearn))
    for name in pairlearn.__all__:
        assert getattr(pairlearn, name).__name__ == name
    assert pairlearn.risks.make_risk is pairlearn.make_risk
    with pytest.raises(AttributeError, match="no attribute 'make_rsik'"):
        _ = pairlearn.make_rsik
    with pytest.raises(ImportError, match="make_rsik"):
        exec("from pairlearn import make_rsik")


RUN = """
from pairlearn.cli.root import app
for arguments in {!r}:
    try:
        app(arguments)
    except SystemExit as done:
        assert done.code in (None, 0, 1), (arguments, done.code)"""


def test_help_imports_nothing_heavy() -> None:
    commands = ("", "check", "fit", "evaluate")
    heavy = ("torch", "numpy", "sklearn", "pyarrow", "matplotlib", "starlette", "PIL", "pandas")
    assert loaded_after(RUN.format([[*name.split(), "--help"] for name in commands]), *heavy) == []


def test_py_typed_is_there() -> None:
    assert (SOURCE / "py.typed").exists()


def test_no_two_modules_have_one_name() -> None:
    paths = [path for path in SOURCE.rglob("*.py") if not path.stem.startswith("_")]
    names = [path.stem for path in paths]
    names += [path.name for path in SOURCE.rglob("*") if (path / "__init__.py").exists()]
    twice = sorted({name for name in names if names.count(name) > 1})
    assert len(names) > 50
    assert not twice


def test_no_two_classes_have_one_name() -> None:
    files = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    names = [
        node.name
        for text in files
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(names) > 100
    assert not sorted({name for name in names if names.count(name) > 1})


def imported(path: Path) -> set[str]:
    """The top-level packages that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize(
    ("folder", "others", "packages"),
    [
        ("tests", ["studio", "bench", "docs"], {"pairlearn_studio", "pairlearn_bench"}),
        ("studio/tests", ["bench", "docs"], {"pairlearn_bench"}),
        ("bench/tests", ["studio", "docs"], {"pairlearn_studio", "playwright"}),
    ],
)
def test_each_distribution_is_tested_without_the_others(
    folder: str, others: list[str], packages: set[str]
) -> None:
    """The studio's and the bench's tests use the library's; nothing else is shared."""
    foreign = packages | {path.stem for one in others for path in (ROOT / one / "tests").iterdir()}
    foreign |= {"playwright"} if folder == "tests" else set()
    foreign -= {"conftest", "__pycache__"}
    found = {path.name: imported(path) & foreign for path in (ROOT / folder).rglob("*.py")}
    assert found and not {name: names for name, names in found.items() if names}


def test_one_version_and_exact_pins() -> None:
    projects = [
        tomllib.loads((ROOT / part / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for part in (".", "studio", "bench")
    ]
    assert {project["version"] for project in projects} == {pairlearn.__version__}
    for project in projects[1:]:
        (pin,) = [one for one in project["dependencies"] if one.startswith("pairlearn")]
        assert re.sub(r"\[.*\]", "", pin) == f"pairlearn=={pairlearn.__version__}"


#: What conda calls otherwise; extras are packages of their own there.
CONDA = {
    "torch": "pytorch",
    "uvicorn[standard]": "uvicorn-standard",
    "matplotlib": "matplotlib-base",
    "pairlearn": "pairlearn ==${{ version }}",
}


@pytest.mark.parametrize("part", [".", "studio", "bench"])
def test_a_conda_recipe_asks_for_what_pip_does(part: str) -> None:
    library, project = (
        tomllib.loads((ROOT / one / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for one in (".", part)
    )
    wanted = {f"python {project['requires-python']}"} | ({"__unix"} if part == "studio" else set())
    for line in project["dependencies"]:
        name, extras, bound = re.fullmatch(r"([\w-]+)(\[.*\])?([<>=].*)", line).groups()
        given = [f"{name}{bound}"]
        if name == "pairlearn":
            named = extras.strip("[]").split(",") if extras else []
            given = [
                name,
                *(one for extra in named for one in library["optional-dependencies"][extra]),
            ]
        elif extras:
            given = [line]
        for one in given:
            name, bound = re.fullmatch(r"(.*?)([<>=].*)?", one).groups()
            wanted.add(" ".join(filter(None, [CONDA.get(name, name), bound])))
    file = ROOT / "packaging" / "conda" / project["name"] / "recipe.yaml"
    recipe = file.read_text(encoding="utf-8")
    listed = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, re.M)[1]
    assert {line[6:].split("  #")[0] for line in listed.splitlines()} == wanted
    assert f'version: "{pairlearn.__version__}"' in recipe
    assert f"summary: {project['description']}" in recipe
    source = re.search(r"^  path: (\S+)", recipe, re.M)[1]
    assert (file.parent / source).resolve() == (ROOT / part).resolve()


def test_the_oldest_versions_are_the_lower_bounds_of_all_three() -> None:
    found = runpy.run_path(str(ROOT / "tests" / "try_package.py"))["oldest_versions"]()
    oldest = dict(one.split("==") for one in found)
    assert len(oldest) == len(found)  # the distributions agree
    for part in (".", "studio", "bench"):
        text = (ROOT / part / "pyproject.toml").read_text(encoding="utf-8")
        for line in tomllib.loads(text)["project"]["dependencies"]:
            name = re.split(r"[\[=<>]", line)[0]
            assert name == "pairlearn" or f">={oldest[name]}" in line


def test_the_workflows_run_what_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    targets = {name for text in texts for name in re.findall(r"run: make (\S+)", text)}
    assert targets >= {"test", "docs"}
    assert not {name for name in targets if not re.search(rf"^{name}:", makefile, re.M)}
    paths = {path for text in texts for path in re.findall(r"\b(?:\w+/)+\w+\.(?:py|txt)\b", text)}
    assert len(paths) > 4 and not {path for path in paths if not (ROOT / path).exists()}
    jobs = "".join(texts).count("runs-on:")
    assert jobs == "".join(texts).count("timeout-minutes:")  # none hangs for six hours


def test_links_of_a_readme_lead_to_the_repository_from_a_package_index() -> None:
    absolute = runpy.run_path(str(ROOT / "packaging" / "absolute_links.py"))["absolute"]
    source = "https://github.com/pairlearn/pairlearn"
    text = "![a](docs/a.svg) [b](../b.md#c) [d](https://e.org) [f](#g)"
    assert absolute(text, "studio", "v1.0.0") == (
        f"![a]({source}/raw/v1.0.0/studio/docs/a.svg) [b]({source}/blob/v1.0.0/b.md#c) "
        "[d](https://e.org) [f](#g)"
    )
    readme = absolute((ROOT / "README.md").read_text(encoding="utf-8"), ".", "v1.0.0")
    paths = re.findall(rf"{source}/(?:raw|blob)/v1\.0\.0/([^)#]+)", readme)
    assert len(paths) > 10 and all((ROOT / path).exists() for path in paths)
    assert not re.search(r"\]\((?!https:|#)", readme)
