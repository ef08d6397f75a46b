"""Both reports in a real browser: they sort, tell, print, and load nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from browser import PHONE, complaints, scan, snapshot
from pairlearn.estimators import PairClassifier
from pairlearn.report import build_report as build_model_report
from pairlearn.report import measure, write_page
from pairlearn.simulation import simulate
from pairlearn_bench import Source
from pairlearn_bench.page import build_report
from paper_results import made_up
from tables import pair_ids

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
REPORTS = ("bench", "model")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    files = {name: folder / f"{name}.html" for name in REPORTS}
    chosen: dict[str, dict[str, Any]] = {
        "accuracy": {
            "datasets": ("letter", "mnist"),
            "priors": (0.2, 0.5),
            "methods": ("sconfconfdiff-abs", "confdiff-relu", "likelihood-abs", "supervised"),
        },
        "gamma": {"datasets": ("letter",)},
        "limited": {"datasets": ("letter",), "priors": (0.2,), "methods": ("confdiff-abs",)},
        "robustness": {"datasets": ("letter",), "methods": ("likelihood-abs",)},
    }
    sources = [
        Source(Path(f"{g}.jsonl"), g, tuple(made_up(g, **options))) for g, options in chosen.items()
    ]
    write_page(files["bench"], build_report(sources).page)
    data, other = (
        simulate(pairs=250, annotators=3, repeated=0.3, noise=0.2, missing=0.1, seed=seed)
        for seed in (2, 3)
    )
    model = PairClassifier(model="linear", epochs=15, random_state=0)
    model.fit(other.items.features[pair_ids(other.pairs)], other.pairs.labels())
    evaluation = model.evaluate(data.items.features[pair_ids(data.pairs)], data.pairs.labels())
    measured = measure(model, data.items, data.pairs, evaluation, names=("pumps", "pairs.csv"))
    write_page(files["model"], build_model_report(measured))
    return files


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(**DESKTOP) as context:
        yield context.new_page()


def column(page: Page, table: str, place: int) -> list[str]:
    return page.locator(f"{table} tbody tr > *:nth-child({place}):visible").all_inner_texts()


def _own(route: Any, reports: dict[str, Path]) -> bool:
    return route.request.url in {path.as_uri() for path in reports.values()}


@pytest.mark.parametrize("report", REPORTS)
def test_opens_quietly_loads_nothing_sorts_and_prints(
    page: Page, reports: dict[str, Path], report: str
) -> None:
    messages, requests = complaints(page), []
    page.on("request", lambda request: requests.append(request.url))
    page.route("**/*", lambda route: route.continue_() if _own(route, reports) else route.abort())
    page.goto(reports[report].as_uri())
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 20_000)
    page.wait_for_load_state("networkidle")
    check_sorting(page)
    check_print(page)
    assert messages == []
    assert requests == [reports[report].as_uri()]
    refused = page.evaluate("() => fetch('data:,x').then(() => 'loaded', () => 'refused')")
    assert refused == "refused", "the page's own policy"


def check_sorting(page: Page) -> None:
    """Every table, both ways, by a click."""
    tables = page.locator("table.sortable").all()
    assert len(tables) >= 4
    for table in tables:
        for up, down in table.evaluate(CLICKED):
            known = sorted(value for value in up if value is not None)
            missing = [None] * (len(up) - len(known))
            assert up == known + missing and down == known[::-1] + missing
        first = table.locator("thead th").first
        first.locator("button").click()
        expect(first).to_have_attribute("aria-sort", "ascending")
        first.locator("button").click()
        expect(first).to_have_attribute("aria-sort", "descending")
        assert table.locator("[aria-sort=none]").count() == table.locator("thead th").count() - 1


CLICKED = """(table) => [...table.tHead.rows[0].cells].filter((h) => h.classList.contains("n"))
    .map((head) => {
        const values = () => [...table.tBodies[0].rows].map((row) => {
            const value = row.cells[head.cellIndex].dataset.v;
            return value === undefined ? null : Number(value);
        });
        const button = head.querySelector("button");
        button.click();
        const up = values();
        button.click();
        return [up, values()];
    })"""
"""For each column of numbers, its values after one click on its title and after two."""


def test_sorts_by_keyboard_and_filters_rows_and_figures(
    page: Page, reports: dict[str, Path]
) -> None:
    page.goto(reports["bench"].as_uri())
    before = sorted(page.locator("#gamma tbody tr").all_inner_texts())
    page.locator("#gamma thead th button").nth(1).focus()
    page.keyboard.press("Enter")
    gammas = [float(text) for text in column(page, "#gamma", 2)]
    assert gammas == sorted(gammas)
    page.keyboard.press("Space")
    assert [float(text) for text in column(page, "#gamma", 2)] == sorted(gammas, reverse=True)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert column(page, "#gamma", 3) == sorted(column(page, "#gamma", 3))
    assert sorted(page.locator("#gamma tbody tr").all_inner_texts()) == before
    shown = page.locator("#accuracy figure:visible")
    assert shown.count() == 4
    page.locator("select[data-facet=dataset]").select_option("letter")
    assert shown.count() == 2
    assert set(column(page, "#accuracy", 1)) == {"Letter"}
    page.locator("select[data-facet=prior]").select_option("0.5")
    assert shown.count() == 1
    assert set(column(page, "#accuracy", 2)) == {"0.5"}
    rows = page.locator("tr[data-dataset]:visible").count()
    expect(page.locator(".filters .said")).to_have_text(f"{rows} rows shown")
    expect(page.locator("#gamma .figures")).to_be_hidden()  # it has no such prior
    page.locator("select[data-facet=method]").select_option("Likelihood-ABS")
    assert set(column(page, "#accuracy", 3)) == {"Likelihood-ABS"}
    page.locator("select[data-facet=subset]").select_option("stratified")
    assert shown.count() == 1 and shown.get_attribute("data-subset") == "stratified"


def test_dashes_come_last_and_a_table_that_scrolls_says_so(
    page: Page, reports: dict[str, Path]
) -> None:
    page.goto(reports["bench"].as_uri())
    titles = page.locator("#accuracy thead th button").all_inner_texts()
    for place, title in enumerate(titles, 1):
        for _ in range(2):
            page.locator("#accuracy thead th button").nth(place - 1).click()
            texts = [text.strip() for text in column(page, "#accuracy", place)]
            dashes = texts.count("–")
            assert bool(dashes) == (title in ("published", "difference", "within tolerance"))
            assert set(texts[len(texts) - dashes :]) <= {"–"}
    box = page.locator("#accuracy .scroll")
    expect(box).not_to_have_class(re.compile("scrolls"))
    page.set_viewport_size({"width": 390, "height": 844})
    expect(box).to_have_class("scroll scrolls goes-on")
    box.evaluate("box => { box.scrollLeft = 5000 }")
    expect(box).to_have_class("scroll scrolls")


def check_print(page: Page) -> None:
    """Nothing is clipped on paper."""
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 688, "height": 970})  # A4 less its margins
    clipped = page.evaluate(
        """() => [...document.querySelectorAll(".scroll, table, figure, section")]
            .filter((one) => one.offsetParent !== null)
            .filter((one) => one.scrollWidth > one.clientWidth + 1
                || one.getBoundingClientRect().right > innerWidth + 1
                || (one.matches(".scroll") && one.scrollHeight > one.clientHeight + 1))
            .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert clipped == []
    expect(page.locator("nav")).to_be_hidden()
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert ink == "rgb(28, 31, 38)", "dark ink on paper, whatever the screen prefers"


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize(("scheme", "device"), [("light", "desktop"), ("dark", "phone")])
def test_accessibility_scan_and_width(
    browser: Browser, reports: dict[str, Path], report: str, scheme: Any, device: str
) -> None:
    options = PHONE if device == "phone" else DESKTOP
    # The scanner is injected as a script that is not the page's own.
    with browser.new_context(**options, color_scheme=scheme, bypass_csp=True) as context:
        page = context.new_page()
        page.goto(reports[report].as_uri())
        snapshot(page, f"report-{report}-{device}-{scheme}")
        # On a phone innerWidth would grow with what is too wide.
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= options["viewport"]["width"], "the page itself does not scroll sideways"
        page.evaluate(ONE_OF_EACH)
        assert scan(page) == []


ONE_OF_EACH = """() => {
    const seen = new Set();
    for (const one of document.querySelectorAll("section figure, tbody tr")) {
        const classes = [...one.querySelectorAll("th, td, td *")].map((part) => part.className);
        const kind = [one.tagName, one.closest("section")?.id, ...classes].join();
        if (seen.has(kind)) one.remove();
        seen.add(kind);
    }
}"""
"""The same markup again and again takes the scanner long: leave one figure of each section, and
one row of each sort."""


def test_hostile_names_do_not_run(page: Page, tmp_path: Path) -> None:
    from pairlearn_bench import Record, Run

    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    run = Run(dataset=evil, prior=0.2, seed=0, method="supervised", pairs=9, epochs=1)
    source = Source(Path(evil), "accuracy", (Record(run, {"paper": 0.9}, {"device": evil}),))
    write_page(tmp_path / "evil.html", build_report([source]).page)
    messages = complaints(page)
    page.goto((tmp_path / "evil.html").as_uri())
    page.locator("select[data-facet=dataset]").select_option(evil)
    assert page.title().startswith("The SconfConfDiff benchmark") and messages == []
    assert page.locator("img").count() == 0 and page.locator("script").count() == 1
    expect(page.locator("#accuracy tbody tr:visible th")).to_have_text([evil])
