"""The documentation site: built without a warning, whole, and readable without a network.

The site is built once, from a clean start. `PAIRLEARN_SITE` names one that was built
already, by `make docs`.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import re
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

import numpy as np
import pytest
import yaml
from playwright.sync_api import Page

from browser import complaints
from pairlearn import PairLabels

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "pairlearn"
sys.path.insert(0, str(DOCS / "_ext"))

from site_links import (  # noqa: E402
    broken_links,
    external_links,
    foreign_loads,
    is_well_formed,
    main,
    read_site,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The built site."""
    if built := os.environ.get("PAIRLEARN_SITE"):
        return (ROOT / built).resolve()
    out = tmp_path_factory.mktemp("site")
    # Without the pages of source code, a fifth of the work.
    options = ["-t", "quick", "-b", "html", "-q", "-n", "-W", "--keep-going"]
    options += ["-d", str(out / "doctrees")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(out / "html")],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def site(folder):
    return read_site(folder)


# --- links ----------------------------------------------------------------------------------


def test_every_link_inside_the_site_leads_somewhere(site):
    assert len(site) > 50
    assert list(broken_links(site)) == []


def test_nothing_is_loaded_from_another_host(site, folder):
    assert list(foreign_loads(site, folder)) == []


def test_links_to_other_sites_are_well_formed(site):
    assert [link for link in external_links(site) if not is_well_formed(link)] == []


def test_the_checker_finds_what_is_wrong(tmp_path, capsys):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">1</a> <a href="b.html#gone">2</a> <a href="c.html">3</a>'
        '<a href="#here">4</a> <h1 id="here"></h1> <a href="https://exa mple.org">5</a>'
        '<script src="https://cdn.example.org/x.js"></script> <img src="data:image/png,">'
        '<link rel="canonical" href="https://example.org/a.html">'
        '<link rel="stylesheet" href="//example.org/a.css">'
        "<style>@import 'https://example.org/b.css';</style>",
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="there"><a href="./">6</a></p>', encoding="utf-8")
    (tmp_path / "s.css").write_text("a { src: url(https://example.org/f.woff) }", "utf-8")
    site = read_site(tmp_path)
    assert [line.split(": ")[1] for line in broken_links(site)] == ["b.html#gone", "c.html", "./"]
    assert [line.split("loads ")[1] for line in foreign_loads(site, tmp_path)] == [
        "https://cdn.example.org/x.js",
        "//example.org/a.css",
        "https://example.org/b.css",
        "https://example.org/f.woff",
    ]
    assert [is_well_formed(link) for link in external_links(site)] == [False]
    assert main(tmp_path) == 1
    assert "c.html: there is no such file" in capsys.readouterr().out


# --- formulas -------------------------------------------------------------------------------


def test_formulas_are_mathml():
    from mathml import to_mathml

    assert to_mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "block").count("<mtr>") == 2
    assert to_mathml(r"\pi_+ \ge \tfrac12", "inline").startswith("<math")
    hat = "".join(to_mathml(r"\hat\pi_+ + \sum_k a_k", "inline").split())  # an index, not a limit
    assert (
        '<msub><moveraccent="true"><mi>π</mi><mostretchy="false">ˆ</mo></mover><mo>+</mo></msub>'
        in hat
    )
    assert "<munder><mo" in hat
    with pytest.raises(ValueError, match=r"\\nosuch"):
        to_mathml(r"\nosuch x", "inline")


def test_no_formula_is_left_as_latex(site):
    for path, page in site.items():
        text = page.path.read_text(encoding="utf-8")
        assert 'class="math notranslate' not in text, path.name
        assert "MathJax" not in text, path.name


# --- API reference --------------------------------------------------------------------------


def offered(path: Path) -> list[str]:
    """The public names of a file, read and not imported: `__all__`, or `import x as x`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return [
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]


def packages() -> dict[str, Path]:
    """The modules and packages that people import from, with their files."""
    found = {f"pairlearn.{path.stem}": path for path in sorted(SOURCE.glob("*.py"))}
    for path in sorted(SOURCE.rglob("__init__.py")):
        found[".".join(path.parent.relative_to(SOURCE.parent).parts)] = path
    return {name: path for name, path in found.items() if path.stem != "__main__"} | {
        "pairlearn": SOURCE / "__init__.py"
    }


def documented(folder: Path) -> set[str]:
    """The names in the inventory of the site (Sphinx's format 2)."""
    head, _, body = (folder / "objects.inv").read_bytes().partition(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2")
    lines = zlib.decompress(body).decode().splitlines()
    return {line.split(" py:")[0] for line in lines if " py:" in line}


def test_every_public_name_is_documented(folder):
    entries = documented(folder)
    files = {name: path for name, path in packages().items() if name not in ("pairlearn.__init__",)}
    missing = [
        f"{module}.{name}"
        for module, path in files.items()
        if module != "pairlearn"
        for name in offered(path)
        if f"{module}.{name}" not in entries
    ]
    assert missing == []
    assert len(entries) > 300


def test_the_names_at_the_top_are_listed():
    listed = re.findall(r"^   (\w+)$", (DOCS / "api" / "index.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(offered(SOURCE / "__init__.py"))


def test_every_package_is_on_a_page_and_internal_ones_are_not_in_the_sidebar(folder):
    pages = "".join(path.read_text("utf-8") for path in (DOCS / "api").glob("*.md"))
    described = set(re.findall(r"\{package\} pairlearn\.(\w+)", pages))
    table = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    assert described == set(re.findall(r"^\| `(\w+)(?:\.py|/)` \|", table, re.MULTILINE))
    sidebar = (folder / "api" / "index.html").read_text("utf-8").split("sidebar-tree")[1]
    assert "estimators.html" in sidebar.split("</div>")[0]
    assert "internal.html" not in sidebar.split("</div>")[0]


# --- gallery --------------------------------------------------------------------------------

SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_gallery_scripts_are_short_and_use_what_is_public(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines = path.read_text(encoding="utf-8").splitlines()[tree.body[0].end_lineno :]
    assert len([line for line in lines if line.strip()]) < 40
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("pairlearn"):
            module = importlib.import_module(str(node.module))
            names = getattr(module, "__all__", [x for x in vars(module) if x[0] != "_"])
            assert {alias.name for alias in node.names} <= set(names)


def test_every_script_has_a_page_with_a_figure(site):
    pages = {path.stem: page for path, page in site.items() if path.parent.name == "auto_gallery"}
    assert len(SCRIPTS) >= 8
    for path in SCRIPTS:
        assert any("_images" in target for target in pages[path.stem].loads), path.stem


# --- results, citation ----------------------------------------------------------------------


def test_results_are_those_of_the_files(folder):
    page = re.sub(r"<[^>]+>", "", (folder / "results" / "accuracy.html").read_text("utf-8"))
    table = (ROOT / "bench" / "results" / "paper" / "accuracy.md").read_text(encoding="utf-8")
    numbers = set(re.findall(r"\d\.\d{3} ± \d\.\d{3}", table))
    assert len(numbers) > 100
    assert not [number for number in numbers if number not in page]
    assert "rely on the second" in " ".join(page.split())


def test_the_citation_has_what_the_format_asks_for():
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= found.keys()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # Between releases the last one is cited.
    assert found["version"] == project["version"] or ".dev" in project["version"]
    assert found["license"] == project["license"]
    assert f"version = {{{found['version']}}}" in (DOCS / "references.md").read_text("utf-8")
    assert f"## [{found['version']}] - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (paper,) = found["references"]
    assert paper["type"] == "article"
    assert [author["family-names"] for author in paper["authors"]] == ["Tate", "Sugiyama", "Uchida"]


# --- in a browser ---------------------------------------------------------------------------


def check_interactive_page(page: Page, folder: Path) -> None:
    """Its formulas are those of `PairLabels`; dragging, keys and clicks do what the page says."""
    page.goto((folder / "interactive.html").as_uri())
    labels = PairLabels([0.605, 0.9, 0.2, 0.5], [-0.2, 0.5, 0.1, 0.0])
    both = np.stack(labels.posteriors(), axis=1)
    for row, (s, c) in enumerate(labels.to_array().tolist()):
        found = page.evaluate(f"[outcomes({s}, {c}), feasible({s}, {c}), posteriors({s}, {c})]")
        assert found[0] == pytest.approx(labels.outcomes()[row])
        assert found[1] == labels.feasible()[row]
        if found[1]:
            np.testing.assert_allclose(found[2], both[row], atol=1e-12)
    page.locator("#plane .handle").focus()
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#plane .output p >> nth=0") == "s = 0.60, c = −0.15"
    box = page.locator("#plane svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.2, steps=3)
    page.mouse.up()
    assert "cannot be so similar" in page.inner_text("#plane .output")
    page.locator("#geometry .handle >> nth=0").focus()
    page.keyboard.press("ArrowRight")  # from 0.25 to 0.30, beside 0.70
    expected = PairLabels.from_posteriors(np.array([0.3]), np.array([0.7]))
    inner, along = (page.inner_text(f"#geometry [data-key={key}]") for key in ("inner", "along"))
    assert [float(inner), float(along)] == pytest.approx(expected.to_array()[0].tolist())
    page.click("text=A rather")
    assert "1 pair judged" in page.inner_text("#clicks .output")
    assert not page.locator("[data-key=estimate]").count(), "one answer measures nothing"
    page.click("text=Start again")
    for _ in range(3):
        page.click("text=Answer 20 pairs")
    assert "60 pairs judged" in page.inner_text("#clicks .output")
    estimate, truth = (float(page.inner_text(f"[data-key={key}]")) for key in ("estimate", "truth"))
    assert truth > 0.85  # nobody reaches more than 0.91 on average: the classes overlap
    assert abs(estimate - truth) < float(page.inner_text("[data-key=doubt]")) < 0.1


def check_results_table(page, folder):
    """All columns fit on a laptop, and the stripes alternate whatever is filtered."""
    page.set_viewport_size({"width": 1366, "height": 900})
    page.goto((folder / "results" / "accuracy.html").as_uri())
    wide = page.eval_on_selector(".scroll", "box => box.scrollWidth - box.clientWidth")
    assert wide <= 0
    page.select_option("select[data-facet=method]", "Sconf-ABS")
    page.select_option("select[data-facet=verdict]", "yes")
    colours = page.eval_on_selector_all(
        "table.sortable tbody tr:not([hidden])",
        "rows => rows.map((row) => getComputedStyle(row.cells[1]).backgroundColor)",
    )
    assert len(colours) > 5 and len(set(colours)) == 2
    assert all(a != b for a, b in itertools.pairwise(colours))


def test_pages_open_from_disk_without_a_request_or_an_error(folder, browser):
    requested: list[str] = []
    with browser.new_context() as context:
        page = context.new_page()
        wrong = complaints(page)
        page.on("request", lambda sent: requested.append(sent.url))
        for name in (
            "index",
            "auto_gallery/index",
            "api/risks",
            "results/accuracy",
            "notebook",
            "interactive",
        ):
            page.goto((folder / f"{name}.html").as_uri())
            wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wide <= 0, f"{name} is wider than the window by {wide}"
        check_interactive_page(page, folder)
        check_results_table(page, folder)
        page.goto((folder / "theory" / "family.html").as_uri())
        page.wait_for_function("document.fonts.check('1em \"STIX Two Math\"')")
        page.goto((folder / "search.html").as_uri() + "?q=estimate_prior")
        page.wait_for_selector("#search-results li a")
    assert wrong == []
    assert [url for url in requested if not url.startswith(("file:", "data:"))] == []
