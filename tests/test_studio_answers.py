"""How pairs are answered: in words, by how likely each one is, or by two exact numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.testclient import TestClient

from browser import (
    PHONE,
    LiveStudio,
    answers_of,
    complaints,
    done,
    live_studio,
    make_project,
    open_link,
    press,
    scan,
    snapshot,
    watch_shifts,
)
from pairlearn import PairLabels
from pairlearn.check import check
from pairlearn.studio import Annotator, Project, server
from pairlearn.studio.export import judgements
from pairlearn.studio.graded import LEVELS
from pairlearn.studio.overview import overview_of
from pairlearn.studio.server import make_app
from pairlearn.studio.words import words_of
from pairlearn.tables import read_pairs
from studio_client import HERE, Visitor
from studio_store import stored

PAIRS = 40
WAYS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "laptop": {"viewport": {"width": 1280, "height": 720}, "color_scheme": "dark"},
    "phone": PHONE | {"color_scheme": "light"},
    "desktop-dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "laptop-light": {"viewport": {"width": 1280, "height": 720}, "color_scheme": "light"},
    "phone-dark": PHONE | {"color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveStudio, dict[str, str]]]:
    """One studio for all ways of looking at it; everybody judges all pairs."""
    folder = tmp_path_factory.mktemp("graded") / "p"
    _, tokens, _ = make_project(
        folder, "image", pairs=PAIRS, names=(*WAYS, "keys"), overlap=len(WAYS) + 1,
        answers="graded", hide_ids=True,
    )  # fmt: skip
    with live_studio(folder) as studio:
        yield studio, tokens


def in_sight(page: Page) -> bool:
    """Whether everything that answers a pair is inside the window, without scrolling."""
    return bool(
        page.evaluate(
            """() => [...document.querySelectorAll("#answer button:not([hidden]), #answer input")]
                .map((one) => one.getBoundingClientRect())
                .every((box) => box.height > 0 && box.top >= 0 && box.bottom <= innerHeight
                    && box.left >= 0 && box.right <= innerWidth)"""
        )
    )


@pytest.mark.parametrize(
    ("way", "pairs"),
    [("desktop", 8), ("laptop", 8), ("phone", 8)]
    + [pytest.param(way, PAIRS, marks=pytest.mark.long) for way in WAYS],
)
def test_one_action_a_pair(
    browser: Browser, graded: tuple[LiveStudio, dict[str, str]], way: str, pairs: int
) -> None:
    studio, tokens = graded
    with browser.new_context(**WAYS[way]) as context:
        page = context.new_page()
        troubles = complaints(page)
        open_link(page, studio, tokens[way])
        first = sum(one.annotator == way for one in answers_of(studio.folder))
        watch_shifts(page)
        for number in range(first, pairs):
            assert in_sight(page)
            button = page.locator("[data-level]").nth(number % len(LEVELS))
            button.tap() if way.startswith("phone") else button.click()
            done(page, number + 1, PAIRS)
        snapshot(page, f"graded-{way}")
        assert page.evaluate("window.shifts") < 0.02
        assert troubles == []
    kept = [one for one in answers_of(studio.folder) if one.annotator == way]
    names = list(LEVELS)
    assert [one.level for one in kept] == [names[k % len(names)] for k in range(pairs)]
    assert [(one.similarity, one.difference) for one in kept] == [LEVELS[one.level] for one in kept]
    assert judgements(kept).infeasible == 0


def test_keys_undo_zoom_and_hidden_ids(
    browser: Browser, graded: tuple[LiveStudio, dict[str, str]]
) -> None:
    studio, tokens = graded
    # The scanner is injected as an inline script, which the page's policy would refuse.
    scanned = WAYS["laptop"] | {"reduced_motion": "reduce", "bypass_csp": True}
    with browser.new_context(**scanned) as context:
        page = context.new_page()
        open_link(page, studio, tokens["keys"])
        assert scan(page) == []
        assert page.locator("#left-title").inner_text() == ""
        page.locator("#left-content img").click()
        expect(page.locator("#zoom img")).to_have_count(2)
        snapshot(page, "zoom")
        press(page, "Escape")
        expect(page.locator("#zoom")).to_be_hidden()
        for number, key in enumerate("1470c", 1):
            press(page, key)
            done(page, number, PAIRS)
        press(page, "z")
        done(page, 4, PAIRS)
        press(page, "z")
        done(page, 3, PAIRS)
        expect(page.locator("[data-level=alike]")).to_have_attribute("aria-pressed", "true")
        press(page, "n")
        page.keyboard.type("7 is no answer here")
        press(page, "Escape", "6")
        done(page, 4, PAIRS)
    kept = [one for one in answers_of(studio.folder) if one.annotator == "keys"]
    assert [one.level for one in kept] == [
        "left surely", "can't tell which", "right surely", "right probably",
    ]  # fmt: skip
    assert kept[-1].note == "7 is no answer here"


def test_how_likely_each_one_is_always_fits(browser: Browser, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p", pairs=12, answers="each")
    ways = [("2", "9"), ("0", "0"), ("100", "0"), ("55", "07")]
    with live_studio(tmp_path / "p") as studio, browser.new_context() as context:
        page = context.new_page()
        open_link(page, studio, tokens["ann"])
        press(page, "Enter")
        expect(page.locator("#status")).to_contain_text("Answer both")
        for number, (left, right) in enumerate(ways, 1):
            press(page, *left, "Tab", *right, "Enter")
            done(page, number, 12)
        press(page, "c")
        done(page, 5, 12)
    kept = answers_of(tmp_path / "p")
    r, r_prime = np.array([[0.2, 0.9], [0, 0], [1, 0], [0.55, 0.07]]).T
    labels = PairLabels.from_posteriors(r, r_prime)
    said = np.array([[one.similarity, one.difference] for one in kept[:4]])
    np.testing.assert_allclose(said, np.asarray(labels.to_array()), atol=1e-12)
    assert judgements(kept).infeasible == 0 and kept[4].cant_say


LONG = "A very long line of a log that goes on and on. " * 200


@pytest.mark.parametrize("mode", ["exact", "each", "graded"])
def test_answers_are_in_sight(browser: Browser, tmp_path: Path, mode: str) -> None:
    project, tokens, _ = make_project(tmp_path / "p", "text", pairs=3, answers=mode)
    for path in project.items_path.iterdir():
        path.write_text(LONG)
    with live_studio(tmp_path / "p") as studio, browser.new_context() as context:
        page = context.new_page()
        open_link(page, studio, tokens["ann"])
        for width, height in ((1280, 720), (1440, 1440), (390, 844)):
            page.set_viewport_size({"width": width, "height": height})
            assert in_sight(page), (width, height)
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_levels_are_those_of_the_project(tmp_path: Path) -> None:
    project, tokens, _ = make_project(
        tmp_path / "p", pairs=5, answers="graded", levels={"right surely": [0.05, 0.95]}
    )
    assert Project.load(project.folder).levels["right surely"] == (0.05, 0.95)
    with TestClient(make_app(project.folder), HERE) as client:
        ann = Visitor(client, tokens["ann"])
        numbers = {"similarity": None, "difference": None}
        assert ann.answer(level="right surely", **numbers).status_code == 200
        assert ann.answer(level="right perhaps", **numbers).status_code == 400
        assert ann.answer(level="right surely").status_code == 400  # with numbers of its own
    (one,) = answers_of(project.folder)
    assert (one.similarity, one.difference, one.level) == (0.05, 0.95, "right surely")
    judgements([one]).write(tmp_path / "pairs.csv")
    assert (tmp_path / "pairs.csv").read_text().splitlines()[0].endswith(",annotator,level")
    assert len(read_pairs(tmp_path / "pairs.csv")) == 1


def test_a_crowd_on_the_scale_of_words() -> None:
    """Of ten people, 40 answers each, those and only those deserve a look who don't look."""
    rng = np.random.default_rng(0)
    levels = np.array(list(LEVELS.values()))
    careful = {f"careful {k}" for k in range(6)}
    others = {f"{kind} {k}" for kind in ("constant", "random") for k in range(2)}
    left = dict.fromkeys(sorted(careful | others), 40)
    rows = []
    for pair in range(134):
        r, r_prime = rng.beta(0.6, 0.6, 2)
        busy = sorted(left, key=lambda who: (-left[who], rng.random()))[:3]
        for who in busy:
            left[who] -= 1
            mine = np.clip(rng.normal([r, r_prime], 0.05), 0, 1)
            honest = np.asarray(PairLabels.from_posteriors(mine[:1], mine[1:]).to_array())
            chosen = int(np.abs(levels - honest).max(1).argmin())
            chosen = {"random": int(rng.integers(10)), "constant": 3}.get(who.split()[0], chosen)
            rows.append(stored(who, pair, *levels[chosen], number=len(rows)))
    totals = {Annotator(number, who): 40 for number, who in enumerate(left)}
    assert {one.annotator.name for one in overview_of(rows, totals) if one.doubt} == others
    table = judgements([one for one in rows if one.annotator == "careful 0"]).table
    (note,) = [one for one in check(table).findings if one.code == "levels"]
    assert note.severity == "note" and note.ids == ("careful 0",)
    assert "6 levels of similarity and 7 levels of difference" in note.message


SERVER = Path(server.__file__).parent


@pytest.mark.parametrize("language", ["de", "fr"])
def test_a_language_has_every_text_of_the_page(language: str) -> None:
    project = (SERVER.parent / "project.py").read_text("utf-8")
    asked = set(re.findall(r'self\.words\(\s*"([^"]+)"', project))
    for pattern in ("static/*.js", "templates/*.html"):
        for path in SERVER.glob(pattern):
            asked |= set(re.findall(r'\bt\(\s*"([^"]+)"', path.read_text("utf-8")))
    table = words_of(language)
    assert table.keys() == asked
    for text, translated in table.items():
        fields = [sorted(re.findall(r"{\w+}", one)) for one in (text, translated)]
        assert fields[0] == fields[1], text


def test_the_page_in_german(browser: Browser, tmp_path: Path) -> None:
    _, tokens, _ = make_project(
        tmp_path / "p", pairs=3, answers="graded", language="de", question_difference=""
    )
    with live_studio(tmp_path / "p") as studio, browser.new_context(**PHONE) as context:
        page = context.new_page()
        open_link(page, studio, tokens["ann"])
        assert page.evaluate("document.documentElement.lang") == "de"
        expect(page.locator("#asked")).to_have_text("Welches ist eher „will fail“?")
        assert in_sight(page)
        snapshot(page, "german")
        page.locator("[data-level='right surely']").tap()
        expect(page.locator("#count")).to_have_text("1 von 3")
        expect(page.locator("#status")).to_contain_text("Gespeichert.")
