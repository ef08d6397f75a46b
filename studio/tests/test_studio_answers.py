"""How pairs are answered: in words, by how likely each one is, or by two exact numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from browser import (
    PHONE,
    Desk,
    LiveStudio,
    answers_of,
    complaints,
    done,
    live_studio,
    make_project,
    open_link,
    press,
    scan,
    settled,
    snapshot,
    watch_shifts,
)
from pairlearn import PairLabels, annotators
from pairlearn.io import read_pairs
from pairlearn_studio import server
from pairlearn_studio.exchange import export_table
from pairlearn_studio.project import translations
from pairlearn_studio.records import LEVELS
from studio_client import studio_of

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
    [("desktop", 8), ("laptop", 3), ("phone", 8)]
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
        first = sum(answer.annotator == way for answer in answers_of(studio.folder))
        watch_shifts(page)
        for number in range(first, pairs):
            assert in_sight(page)
            button = page.locator("[data-level]").nth(number % len(LEVELS))
            button.tap() if way.startswith("phone") else button.click()
            done(page, number + 1, PAIRS)
        snapshot(page, f"graded-{way}")
        assert page.evaluate("window.shifts") < 0.02
        assert troubles == []
    kept = [answer for answer in answers_of(studio.folder) if answer.annotator == way]
    names = list(LEVELS)
    assert [answer.level for answer in kept] == [names[k % len(names)] for k in range(pairs)]
    assert all(answer.numbers == LEVELS[answer.level] for answer in kept)
    assert export_table(kept).infeasible == 0


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
        # A key that comes 170 ms after another one does not answer the pair that just appeared.
        page.evaluate(
            """() => new Promise((resolve) => {
                const key = (name) => document.body.dispatchEvent(
                    new KeyboardEvent("keydown", { key: name, bubbles: true }));
                const seen = new MutationObserver(() => {
                    seen.disconnect();
                    setTimeout(() => { key("2"); resolve(); }, 170);
                });
                seen.observe(document.body, { attributeFilter: ["data-done"] });
                key("1");
            })"""
        )
        done(page, 1, PAIRS)
        press(page, "z")
        done(page, 0, PAIRS)
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
    kept = [answer for answer in answers_of(studio.folder) if answer.annotator == "keys"]
    assert [answer.level for answer in kept] == [
        "left surely", "can't tell which", "right surely", "right probably",
    ]  # fmt: skip
    assert kept[-1].note == "7 is no answer here"


@pytest.mark.parametrize("bare", [{"project": {"answers": "each"}}], indirect=True)
def test_how_likely_each_one_is_always_fits(desk: Desk) -> None:
    press(desk.page, "Enter")
    expect(desk.page.locator("#status")).to_contain_text("Answer both")
    ways = [("2", "9"), ("0", "0"), ("100", "0"), ("55", "07")]
    for number, (left, right) in enumerate(ways, 1):
        desk.key(number, *left, "Tab", *right, "Enter")
    desk.key(5, "c")
    r, r_prime = np.array([[0.2, 0.9], [0, 0], [1, 0], [0.55, 0.07]]).T
    labels = PairLabels.from_posteriors(r, r_prime)
    numbers = np.array(desk.numbers()[:4], float)
    np.testing.assert_allclose(numbers, np.asarray(labels.to_array()), atol=1e-12)
    kept = desk.answers()
    assert export_table(kept).infeasible == 0 and kept[4].cant_say


def _shaded(page: Page, name: str) -> list[list[int]]:
    """The ranges that are shown as fitting, from what is really visible on the track."""
    track = page.locator(f"#question-{name} .track").bounding_box()
    assert track is not None
    low = -100 if name == "difference" else 0
    ranges = []
    for fit in page.locator(f"#question-{name} .fit:visible").all():
        box = fit.bounding_box()
        assert box is not None
        ends = (box["x"] + 7, box["x"] + box["width"] - 7)  # its round ends reach over
        ranges.append([round(low + (100 - low) * (x - track["x"]) / track["width"]) for x in ends])
    return ranges


def test_shading_is_what_fits(desk: Desk) -> None:
    page = desk.page
    grid_s, grid_c = np.meshgrid(np.arange(101), np.arange(-100, 101), indexing="ij")
    feasible = (
        PairLabels(grid_s.ravel() / 100, grid_c.ravel() / 100).feasible().reshape(grid_s.shape)
    )
    assert _shaded(page, "similarity") == _shaded(page, "difference") == []
    for s in (0, 20, 35, 50, 90):
        page.locator("#similarity").focus()
        press(page, "Shift+ArrowLeft", *f"{s:02}")
        ranges = _shaded(page, "difference")
        inside = np.zeros(201, bool)
        for low, high in ranges:
            inside[low + 100 : high + 101] = True
        assert (inside == feasible[s]).all(), (s, ranges)
        assert len(ranges) == (2 if s < 50 else 1)
    for c in (0, 30, 60, 100):
        page.locator("#difference").focus()
        press(page, "Shift+ArrowLeft", "+", *(f"{c:02}"))
        ((low, high),) = _shaded(page, "similarity")
        inside = np.zeros(101, bool)
        inside[low : high + 1] = True
        assert (inside == feasible[:, c + 100]).all(), (c, low, high)
    snapshot(page, "shading")


def test_formulas_of_the_page(bare: Desk) -> None:
    bare.page.goto(bare.studio.url)
    table = bare.page.evaluate(
        """async () => {
            const { feasible, nearest, conflict } = await import("/static/feasible.js");
            const all = [];
            for (let s = 0; s <= 100; s += 1) for (let c = -100; c <= 100; c += 1) {
                const near = nearest(s, c);
                all.push([s, c, feasible(s, c), near.similarity, near.difference,
                          conflict(s, c, "x") === null]);
            }
            return JSON.stringify(all);
        }"""
    )
    s, c, fits, near_s, near_c, silent = np.array(json.loads(table), int).T
    labels = PairLabels(s / 100, c / 100)
    assert (fits.astype(bool) == labels.feasible()).all() and (silent == fits).all()
    # The nearest on the grid of whole percents, by comparing with every feasible point.
    good = np.stack([s, c], 1)[fits.astype(bool)]
    rows = np.random.default_rng(0).choice(len(s), 400, replace=False)
    distance = ((np.stack([s, c], 1)[rows, None] - good) ** 2).sum(2).min(1)
    assert ((near_s - s)[rows] ** 2 + (near_c - c)[rows] ** 2 == distance).all()
    assert PairLabels(near_s / 100, near_c / 100).feasible().all()


def test_answers_that_do_not_fit_are_questioned_not_forbidden(desk: Desk) -> None:
    page = desk.page
    press(page, "9", "Enter", "5")
    expect(page.locator("#status")).to_contain_text("at most 50% of the time")
    expect(page.locator("#use-nearest")).to_contain_text("Use 70% and right, by 30")
    snapshot(page, "do-not-fit")
    press(page, "f")
    expect(page.locator("#value-similarity")).to_have_text("70%")
    desk.key(1, "Enter")
    press(page, "2", "Enter", "1", "Enter")
    expect(page.locator("#status")).to_contain_text("by at least 78")
    desk.key(2, "Enter")
    press(page, "9", "Enter", "5")
    page.locator("#use-nearest").click()
    press(page, "Enter")
    page.locator("#submit").click()
    done(page, 3, 12)
    assert desk.numbers() == [(0.7, 0.3), (0.2, 0.1), (0.7, 0.3)]


LONG = "A very long line of a log that goes on and on. " * 200


@pytest.mark.parametrize(
    "bare",
    [{"project": {"kind": "text", "answers": mode}} for mode in ("exact", "each", "graded")],
    indirect=True,
)
def test_answers_are_in_sight(bare: Desk) -> None:
    for path in (bare.studio.folder / "items").iterdir():
        path.write_text(LONG)
    bare.open("Ann")
    for width, height in ((1280, 720), (1440, 1440), (390, 844)):
        bare.page.set_viewport_size({"width": width, "height": height})
        assert in_sight(bare.page), (width, height)
        assert bare.page.evaluate("document.documentElement.scrollWidth") <= width


GERMAN_EXACT = {"language": "de", "question_similarity": "", "question_difference": ""}


@pytest.mark.parametrize(
    "bare",
    [{"project": {"kind": kind, "answers": mode} | words}
     for kind, mode, words in (("table", "exact", GERMAN_EXACT), ("image", "exact", {}),
                               ("text", "each", {}), ("table", "graded", {}))],
    indirect=True,
)  # fmt: skip
def test_items_keep_a_height_on_small_and_zoomed_screens(bare: Desk) -> None:
    bare.open("Ann")
    for width, height in ((1280, 720), (640, 360), (390, 844), (320, 568)):
        bare.page.set_viewport_size({"width": width, "height": height})
        heights = bare.page.evaluate(
            "[...document.querySelectorAll('.item')].map((e) => e.offsetHeight).filter(Boolean)"
        )
        assert heights and min(heights) >= 120, (width, height, heights)
        assert bare.page.evaluate("document.documentElement.scrollWidth") <= width


def test_levels_stand_beside_their_numbers(tmp_path: Path) -> None:
    with studio_of(tmp_path / "p", pairs=5, answers="graded") as studio:
        numbers = {"similarity": None, "difference": None}
        assert studio.visit().answer(level="right surely", **numbers).status_code == 200
    (answer,) = studio.answers()
    assert (answer.similarity, answer.difference, answer.level) == (0.098, 0.9, "right surely")
    export_table([answer]).write(tmp_path / "pairs.csv")
    assert (tmp_path / "pairs.csv").read_text().splitlines()[0].endswith(",annotator,level")
    assert len(read_pairs(tmp_path / "pairs.csv")) == 1


SERVER = Path(server.__file__).parent


@pytest.mark.parametrize("language", ["de", "fr"])
def test_a_language_has_every_text_of_the_page(language: str) -> None:
    packages = SERVER.parent, Path(annotators.__file__).parent
    source = "".join(
        path.read_text("utf-8") for package in packages for path in package.rglob("*.py")
    )
    asked = set(re.findall(r'self\.words\(\s*"([^"]+)"', source))
    asked |= set(re.findall(r'raise HTTPException\(\d+, "([^"]+)"', source))
    asked |= set(re.findall(r'(?:^ {16}reason =|        words =) "([^"]+)"', source, re.M))
    asked |= set(re.findall(r'(?:return (?:found or )?\[|append\()\("([^"]+)", {', source))
    asked |= set(re.findall(r'(?<!f)"([^"\n]*\{(?:share|lean|spread|all)[:}][^"\n]*)"', source))
    for pattern in ("static/*.js", "templates/*.html"):
        for path in SERVER.glob(pattern):
            asked |= set(re.findall(r'\bt\(\s*"([^"]+)"', path.read_text("utf-8")))
    table = translations(language)
    assert asked <= table.keys()
    assert [text for text in table.keys() - asked if f'"{text}"' not in source] == []
    for text, translated in table.items():
        fields = [sorted(re.findall(r"{\w+}", words)) for words in (text, translated)]
        assert fields[0] == fields[1], text


GERMAN = {"answers": "graded", "language": "de", "question_difference": ""}


@pytest.mark.parametrize("bare", [{"project": GERMAN, "context": PHONE}], indirect=True)
def test_the_page_in_german(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """And as if it were written from right to left: left stays left, nothing is cut off."""
    page = desk.page
    for direction in ("ltr", "rtl"):
        table = translations("de") | {"(direction)": direction}
        monkeypatch.setattr(
            "pairlearn_studio.server.pages.translations", lambda _, table=table: table
        )
        page.reload()
        settled(page)
        expect(page.locator("#asked")).to_have_text("Welches ist eher „will fail“?")
        assert page.evaluate("[document.documentElement.lang, document.dir]") == ["de", direction]
        assert in_sight(page) and page.evaluate("document.documentElement.scrollWidth") == 390
        left, right = (
            page.locator(f"[data-level='{side} surely']").bounding_box()
            for side in ("left", "right")
        )
        assert left is not None and right is not None and left["x"] <= right["x"]
        snapshot(page, f"german-{direction}")
    page.locator("[data-level='right surely']").tap()
    expect(page.locator("#count")).to_have_text("1 von 12")
    expect(page.locator("#status")).to_contain_text("Gespeichert.")
