"""Annotators who answer in a real browser: Debian's Chromium, never skipped."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from browser import (
    PHONE,
    answers_of,
    chromium,
    complaints,
    done,
    live_studio,
    make_project,
    open_link,
    press,
    said,
    settled,
    snapshot,
)
from pairlearn import PairLabels
from pairlearn.studio import Project, Store


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        yield context.new_page()


def test_thirty_pairs_by_keyboard_alone(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    ways: list[tuple[tuple[str, ...], tuple[float | None, float | None]]] = [
        (("7", "Enter", "2", "Enter"), (0.7, 0.2)),
        (("7", "5", "Tab", "-", "1", "5", "Enter"), (0.75, -0.15)),
        (("s",), (1.0, 0.0)),
        (("l",), (0.0, -1.0)),
        (("r",), (0.0, 1.0)),
        (("c",), (None, None)),
        (("ArrowRight", "ArrowRight", "Tab", "Shift+ArrowLeft", "Enter"), (0.6, -0.01)),
        (("1", "0", "0", "Enter", "0", "Enter"), (1.0, 0.0)),
        (("8", "Enter", "Enter"), (0.8, None)),
        (("Space", "Enter", "Space", "Enter"), (0.5, 0.0)),
    ]
    troubles = complaints(page)
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        expected = []
        for number, (keys, answer) in zip(range(1, 31), itertools.cycle(ways), strict=False):
            press(page, *keys)
            done(page, number, 30)
            expected.append(answer)
        expect(page.locator("#finished")).to_contain_text("You judged 30 pairs")
        snapshot(page, "keyboard-finished")
    assert said(tmp_path / "p") == expected
    assert sum(one.cant_say for one in answers_of(tmp_path / "p")) == 3
    assert troubles == []


def _click(page: Page, name: str, share: float) -> None:
    """Click a slider where the thumb would stand at this share of the track."""
    box = page.locator(f"#{name}").bounding_box()
    assert box is not None
    thumb = 26
    x = box["x"] + thumb / 2 + share * (box["width"] - thumb)
    page.mouse.click(x, box["y"] + box["height"] / 2)


def test_thirty_pairs_by_mouse(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    troubles = complaints(page)
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        for number in range(1, 31):
            if number % 5 == 0:
                page.locator("[data-sure]").nth(number // 5 % 4).click()
            else:
                _click(page, "similarity", 0.7)
                _click(page, "difference", 0.6)
                page.locator("#submit").click()
            done(page, number, 30)
        expect(page.locator("#finished")).to_be_visible()
    kept = said(tmp_path / "p")
    assert len(kept) == 30 and kept[0] == kept[1]
    np.testing.assert_allclose(np.array(kept[0], float), [0.7, 0.2], atol=0.011)
    assert [kept[n] for n in (4, 9, 14, 19)] == [(0.0, -1.0), (0.0, 1.0), (None, None), (1.0, 0.0)]
    assert troubles == []


def test_thirty_pairs_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    with live_studio(tmp_path / "p") as studio, browser.new_context(**PHONE) as context:
        page = context.new_page()
        open_link(page, studio, tokens["ann"])
        for number in range(1, 31):
            if number % 3 == 0:
                page.locator("[data-sure=same]").tap()
            else:
                for name in ("similarity", "difference"):
                    slider = page.locator(f"#{name}")
                    slider.scroll_into_view_if_needed()
                    box = slider.bounding_box()
                    assert box is not None
                    slider.tap(position={"x": 0.6 * box["width"], "y": 17})
                if number == 1:
                    left, right = page.locator("#left"), page.locator("#right")
                    above, below = left.bounding_box(), right.bounding_box()
                    assert above is not None and below is not None
                    assert above["y"] + above["height"] <= below["y"]  # stacked
                    wide = page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= 390
                    snapshot(page, "phone")
                page.locator("#submit").tap()
            done(page, number, 30)
        expect(page.locator("#finished")).to_be_visible()
    assert len(said(tmp_path / "p")) == 30


def _shaded(page: Page, name: str) -> list[list[int]]:
    """The ranges that are shown as fitting, from what is really visible on the track."""
    track = page.locator(f"#question-{name} .track").bounding_box()
    assert track is not None
    low = -100 if name == "difference" else 0
    found = []
    for fit in page.locator(f"#question-{name} .fit:visible").all():
        box = fit.bounding_box()
        assert box is not None
        ends = (box["x"] + 7, box["x"] + box["width"] - 7)  # its round ends reach over
        found.append([round(low + (100 - low) * (x - track["x"]) / track["width"]) for x in ends])
    return found


def test_shading_is_what_fits(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    grid_s, grid_c = np.meshgrid(np.arange(101), np.arange(-100, 101), indexing="ij")
    feasible = (
        PairLabels(grid_s.ravel() / 100, grid_c.ravel() / 100).feasible().reshape(grid_s.shape)
    )
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        assert _shaded(page, "similarity") == _shaded(page, "difference") == []
        for s in (0, 20, 35, 50, 90):
            page.locator("#similarity").focus()
            press(page, "Shift+ArrowLeft", *f"{s:02}")
            found = _shaded(page, "difference")
            inside = np.zeros(201, bool)
            for low, high in found:
                inside[low + 100 : high + 101] = True
            assert (inside == feasible[s]).all(), (s, found)
            assert len(found) == (2 if s < 50 else 1)
        for c in (0, 30, 60, 100):
            page.locator("#difference").focus()
            press(page, "Shift+ArrowLeft", "+", *(f"{c:02}"))
            ((low, high),) = _shaded(page, "similarity")
            inside = np.zeros(101, bool)
            inside[low : high + 1] = True
            assert (inside == feasible[:, c + 100]).all(), (c, low, high)
        snapshot(page, "shading")


def test_formulas_of_the_page(page: Page, tmp_path: Path) -> None:
    make_project(tmp_path / "p")
    with live_studio(tmp_path / "p") as studio:
        page.goto(studio.url)
        table = page.evaluate(
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


def test_answers_that_do_not_fit_are_questioned_not_forbidden(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        press(page, "9", "Enter", "5")
        expect(page.locator("#status")).to_contain_text("at most 50% of the time")
        expect(page.locator("#use-nearest")).to_contain_text("Use 70% and right, by 30")
        snapshot(page, "do-not-fit")
        press(page, "f")
        expect(page.locator("#value-similarity")).to_have_text("70%")
        press(page, "Enter")
        done(page, 1, 30)
        press(page, "2", "Enter", "1", "Enter")
        expect(page.locator("#status")).to_contain_text("by at least 78")
        press(page, "Enter")
        done(page, 2, 30)
        press(page, "9", "Enter", "5")
        page.locator("#use-nearest").click()
        press(page, "Enter")
        page.locator("#submit").click()
        done(page, 3, 30)
    assert said(tmp_path / "p") == [(0.7, 0.3), (0.2, 0.1), (0.7, 0.3)]


def test_undo_and_note(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        press(page, "z")
        expect(page.locator("#status")).to_have_text("There is nothing to undo.")
        first = page.locator("#left-title").inner_text()
        press(page, "6", "Enter", "1", "n")
        page.keyboard.type("s l r c z: not keys here")
        press(page, "Escape", "Enter")
        done(page, 1, 30)
        press(page, "s")
        done(page, 2, 30)
        press(page, "z")
        done(page, 1, 30)
        press(page, "Control+z")
        done(page, 0, 30)
        assert page.locator("#left-title").inner_text() == first
        expect(page.locator("#value-similarity")).to_have_text("60%")  # as it was answered
        expect(page.locator("#note")).to_have_value("s l r c z: not keys here")
        press(page, "8", "Enter")
        done(page, 1, 30)
        page.reload()
        settled(page)
        page.locator("#undo").click()  # a page that knows no receipt can undo, too
        done(page, 0, 30)
        press(page, "9", "Enter", "0", "Enter")
        done(page, 1, 30)
    (only,) = answers_of(tmp_path / "p")
    assert (only.similarity, only.difference, only.note, only.revision) == (0.9, 0.0, "", 4 - 1)
    with Store.open(Project.load(tmp_path / "p")) as store:
        actions = [one.action for one in store.history() if one.pair == only.pair]
    assert actions == ["answered", "withdrawn", "answered", "withdrawn", "answered"]


def test_two_annotators_at_once(browser: Browser, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p", pairs=10, names=("ann", "bob"), overlap=2)
    with (
        live_studio(tmp_path / "p") as studio,
        browser.new_context() as one,
        browser.new_context() as two,
    ):
        ann, bob = one.new_page(), two.new_page()
        open_link(ann, studio, tokens["ann"])
        open_link(bob, studio, tokens["bob"])
        for number in range(1, 11):
            press(ann, "s")
            press(bob, "r")
            done(ann, number, 10)
            done(bob, number, 10)
    kept = answers_of(tmp_path / "p")
    assert {(one.annotator, one.similarity) for one in kept} == {("ann", 1.0), ("bob", 0.0)}
    assert len(kept) == 20 and len({(one.annotator, one.pair) for one in kept}) == 20


def test_two_people_in_two_tabs_of_one_browser(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p", names=("Ann", "Bob"))
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["Ann"])
        other = page.context.new_page()
        open_link(other, studio, tokens["Bob"])
        press(page, "s")
        settled(page, 1)
        press(other, "r")
        settled(other, 1)
        page.reload()
        settled(page, 1)
        for tab, name in ((page, "Ann"), (other, "Bob")):
            expect(tab.locator(".who")).to_have_text(f"You are {name}")
            expect(tab.locator(".who bdi")).to_be_visible()
        snapshot(page, "name")
    kept = {one.annotator: one.similarity for one in answers_of(tmp_path / "p")}
    assert kept == {"Ann": 1.0, "Bob": 0.0}


def test_an_answer_that_waits_is_sent_by_nobody_else(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p", names=("Ann", "Bob"))
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["Ann"])
        studio.stop()
        press(page, "l")
        expect(page.locator("#away")).to_be_visible()
        other = page.context.new_page()
        page.close()  # and with it all that the tab knew
        studio.start()
        open_link(other, studio, tokens["Bob"])
        press(other, "r")
        settled(other, 1)
        assert {one.annotator for one in answers_of(tmp_path / "p")} == {"Bob"}
        open_link(other, studio, tokens["Ann"])
        settled(other, 1)
        expect(other.locator("#status")).to_contain_text("The answer that was waiting is saved.")
        assert other.evaluate("Object.keys(localStorage).filter(k => k.includes('answer'))") == []
    kept = {one.annotator: one.difference for one in answers_of(tmp_path / "p")}
    assert kept == {"Ann": -1.0, "Bob": 1.0}


def test_an_answer_that_waits_is_sent_after_a_move(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        studio.stop()
        press(page, "l")
        expect(page.locator("#away")).to_be_visible()
        other = page.context.new_page()
        page.close()
        studio.folder = (tmp_path / "p").rename(tmp_path / "moved")
        studio.start()
        open_link(other, studio, tokens["ann"])
        settled(other, 1)
    assert said(tmp_path / "moved") == [(0.0, -1.0)]


def test_a_studio_that_is_away_loses_nothing(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        press(page, "s")
        done(page, 1, 30)
        studio.stop()
        press(page, "8", "Enter", "1", "Enter")
        expect(page.locator("#away")).to_contain_text(
            "Your answer is kept in this browser, not stored yet"
        )
        snapshot(page, "away")
        press(page, "r")  # ignored: the answer before it is not safe yet
        studio.start()
        page.locator("#retry").click()
        done(page, 2, 30)
        expect(page.locator("#away")).to_be_hidden()
        # A reply that was lost: the studio has the answer, the page does not know.
        lost = {"count": 0}

        def lose(route: Any) -> None:
            lost["count"] += 1
            route.fetch()
            route.abort()

        page.route("**/api/answer", lose, times=1)
        press(page, "l")
        done(page, 3, 30)
        assert lost["count"] == 1
        # The page itself is closed while an answer waits.
        studio.stop()
        press(page, "6", "Enter", "2", "Enter")
        expect(page.locator("#away")).to_be_visible()
        studio.start()
        page.goto(f"{studio.url}/annotate/1")
        done(page, 4, 30)
    assert said(tmp_path / "p") == [(1.0, 0.0), (0.8, 0.1), (0.0, -1.0), (0.6, 0.2)]
