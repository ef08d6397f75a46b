"""Annotators and the supervisor in a real browser: Debian's Chromium, never skipped."""

from __future__ import annotations

import http.server
import re
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from browser import (
    PHONE,
    Desk,
    answers_of,
    complaints,
    done,
    open_link,
    press,
    scan,
    settled,
    snapshot,
    watch_shifts,
)
from chat_server import running
from pairlearn_studio import Answer, Project, Store
from pairlearn_studio.exchange import Statement, import_judgements
from studio_processes import Place, check_outage_log, limit_files
from studio_store import history


def test_by_keyboard_alone(bare: Desk) -> None:
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
    troubles = complaints(bare.page)
    bare.open("Ann")
    for number, (keys, _) in enumerate(ways, 1):
        bare.key(number, *keys)
    assert bare.numbers() == [answer for _, answer in ways]
    assert sum(answer.cant_say for answer in bare.answers()) == 1
    for number in range(len(ways) + 1, 13):
        bare.key(number, "s")
    expect(bare.page.locator("#finished")).to_contain_text("You judged 12 pairs")
    snapshot(bare.page, "keyboard-finished")
    assert troubles == []


def test_by_mouse(desk: Desk) -> None:
    page, thumb = desk.page, 26
    for number in range(1, 7):
        if number > 2:
            page.locator("[data-sure]").nth(number - 3).click()
        else:
            for name, share in (("similarity", 0.7), ("difference", 0.6)):
                box = page.locator(f"#{name}").bounding_box()
                assert box is not None
                # Where the thumb would stand at this share of the track.
                x = box["x"] + thumb / 2 + share * (box["width"] - thumb)
                page.mouse.click(x, box["y"] + box["height"] / 2)
            page.locator("#submit").click()
        done(page, number, 12)
    kept = desk.numbers()
    assert kept[0] == kept[1]
    np.testing.assert_allclose(np.array(kept[0], float), [0.7, 0.2], atol=0.011)
    assert sorted(kept[2:], key=str) == [(0.0, -1.0), (0.0, 1.0), (1.0, 0.0), (None, None)]


@pytest.mark.parametrize("bare", [{"context": PHONE, "project": {"kind": "text"}}], indirect=True)
def test_on_a_phone(desk: Desk) -> None:
    page = desk.page
    above, below = (page.locator(name).bounding_box() for name in ("#left", "#right"))
    assert above is not None and below is not None
    assert above["y"] + above["height"] <= below["y"]  # stacked
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    watch_shifts(page)
    for name in ("similarity", "difference"):
        slider = page.locator(f"#{name}")
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        assert box is not None
        slider.tap(position={"x": 0.6 * box["width"], "y": 17})
    snapshot(page, "phone")
    page.locator("#submit").tap()
    done(page, 1, 12)
    page.locator("[data-sure=same]").tap()
    done(page, 2, 12)
    assert page.evaluate("window.shifts") < 0.02
    assert None not in desk.numbers()[0] and desk.numbers()[1] == (1.0, 0.0)


def test_undo_and_note(desk: Desk) -> None:
    page = desk.page
    press(page, "z")
    expect(page.locator("#status")).to_have_text("There is nothing to undo.")
    first = page.locator("#both-content thead").inner_text()
    press(page, "6", "Enter", "1", "n")
    page.keyboard.type("s l r c z: not keys here")
    desk.key(1, "Escape", "Enter")
    desk.key(2, "s")
    desk.key(1, "z")
    desk.key(0, "Control+z")
    assert page.locator("#both-content thead").inner_text() == first
    expect(page.locator("#value-similarity")).to_have_text("60%")  # as it was answered
    expect(page.locator("#note")).to_have_value("s l r c z: not keys here")
    desk.key(1, "8", "Enter")
    page.reload()
    settled(page)
    page.locator("#undo").click()  # a page that knows no receipt can undo, too
    done(page, 0, 12)
    desk.key(1, "9", "Enter", "0", "Enter")
    (only,) = desk.answers()
    assert (only.similarity, only.difference, only.note, only.revision) == (0.9, 0.0, "", 3)
    with Store.open(Project.load(desk.studio.folder)) as store:
        actions = [change.action for change in history(store, only.pair)]
    assert actions == ["answered", "withdrawn", "answered", "withdrawn", "answered"]


def test_two_people_in_two_tabs_of_one_browser(desk: Desk) -> None:
    page, other = desk.page, desk.page.context.new_page()
    open_link(other, desk.studio, desk.tokens["Bob"])
    for number in range(1, 5):
        press(page, "s")
        press(other, "r")
        done(page, number, 12)
        done(other, number, 12)
    page.reload()
    settled(page, 4)
    for tab, name in ((page, "Ann"), (other, "Bob")):
        expect(tab.locator(".who")).to_have_text(f"You are {name}")
        expect(tab.locator(".who bdi")).to_be_visible()
    snapshot(page, "name")
    kept = desk.answers()
    assert {(answer.annotator, answer.similarity) for answer in kept} == {
        ("Ann", 1.0),
        ("Bob", 0.0),
    }
    assert len(kept) == len({(answer.annotator, answer.pair) for answer in kept}) == 8


def test_an_answer_that_waits_is_sent_by_nobody_else(desk: Desk, tmp_path: Path) -> None:
    """But by its own person in another tab, also after the project was moved."""
    page, studio = desk.page, desk.studio
    studio.stop()
    press(page, "l")
    expect(page.locator("#away")).to_be_visible()
    other = page.context.new_page()
    page.close()  # and with it all that the tab knew
    studio.folder = (tmp_path / "p").rename(tmp_path / "moved")
    studio.start()
    open_link(other, studio, desk.tokens["Bob"])
    press(other, "r")
    settled(other, 1)
    assert {answer.annotator for answer in answers_of(studio.folder)} == {"Bob"}
    open_link(other, studio, desk.tokens["Ann"])
    settled(other, 1)
    expect(other.locator("#status")).to_contain_text("The waiting answer is saved now.")
    assert other.evaluate("Object.keys(localStorage).filter(k => k.includes('answer'))") == []
    kept = {answer.annotator: answer.difference for answer in answers_of(studio.folder)}
    assert kept == {"Ann": -1.0, "Bob": 1.0}


def test_a_studio_that_is_away_loses_nothing(desk: Desk) -> None:
    page, studio = desk.page, desk.studio
    desk.key(1, "s")
    studio.stop()
    press(page, "8", "Enter", "1", "Enter")
    expect(page.locator("#away")).to_contain_text(
        "Your answer is not stored yet: this browser keeps it"
    )
    snapshot(page, "away")
    press(page, "r")  # ignored: the answer before it is not safe yet
    studio.start()
    page.locator("#retry").click()
    done(page, 2, 12)
    expect(page.locator("#away")).to_be_hidden()
    # A reply that was lost: the studio has the answer, the page does not know.
    lost = []

    def lose(route: Any) -> None:
        lost.append(route)  # before the reply: on a busy machine the page asks again meanwhile
        route.fetch()
        route.abort()

    page.route("**/api/answer", lose, times=1)
    desk.key(3, "l")
    assert len(lost) == 1
    # The page itself is closed while an answer waits.
    studio.stop()
    press(page, "6", "Enter", "2", "Enter")
    expect(page.locator("#away")).to_be_visible()
    studio.start()
    page.goto(f"{studio.url}/annotate/1")
    done(page, 4, 12)
    assert desk.numbers() == [(1.0, 0.0), (0.8, 0.1), (0.0, -1.0), (0.6, 0.2)]


def test_the_page_keeps_an_answer_that_the_disk_does_not_take(
    browser: Browser, tmp_path: Path
) -> None:
    place = Place(tmp_path, ("ann",), pairs=20)
    with place.served() as server, browser.new_context() as context:
        page = context.new_page()
        open_link(page, place, place.tokens["ann"])
        press(page, "s")
        settled(page, 1)
        limit_files(server.pid, 4096)
        press(page, "l")
        expect(page.locator("#away")).to_contain_text(
            "The studio cannot write to its disk. Your answer is not stored yet: "
            "this browser keeps it and tries again in"
        )
        snapshot(page, "disk-full")
        page.reload()  # it waits through that, too
        expect(page.locator("#away")).to_contain_text("The studio cannot write to its disk")
        limit_files(server.pid, resource.RLIM_INFINITY)
        page.locator("#retry").dispatch_event("click")  # unless it went by itself
        settled(page, 2)
        check_outage_log(server.words())
    assert sorted(place.stored().values(), key=str) == [0.0, 1.0]


def test_tutorial_of_three_pairs(bare: Desk) -> None:
    page = bare.page
    bare.open("Ann", tutorial=True)
    expect(page.locator("#coach-step")).to_contain_text("Practice 1 of 3")
    page.reload()
    settled(page)
    expect(page.locator("#coach-step")).to_contain_text("Practice 1 of 3")
    snapshot(page, "tutorial")
    press(page, "r")
    expect(page.locator("#status")).to_contain_text("press S")
    press(page, "s")
    expect(page.locator("#coach-step")).to_contain_text("Practice 2 of 3")
    settled(page)
    press(page, "r")
    expect(page.locator("#coach-step")).to_contain_text("Practice 3 of 3")
    settled(page)
    press(page, "5", "Enter", "4", "Enter")
    expect(page.locator("#coach")).to_be_hidden()
    expect(page.locator("#count")).to_have_text("0 of 12")
    assert bare.numbers() == []
    page.reload()
    settled(page)
    expect(page.locator("#coach")).to_be_hidden()  # the first time only


def test_letters_can_be_switched_off(desk: Desk) -> None:
    page = desk.page
    press(page, "?")
    expect(page.locator("#help")).to_be_visible()
    snapshot(page, "help")
    page.locator("#letters").uncheck()
    press(page, "Escape", "s", "7")
    expect(page.locator("#value-similarity")).to_have_text("—")
    desk.key(1, "ArrowRight", "Tab", "ArrowRight", "Enter")
    assert desk.numbers() == [(0.55, 0.05)]


EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.mark.parametrize(
    "bare", [{"project": {"kind": "text", "title": EVIL, "positive_name": EVIL}}], indirect=True
)
def test_hostile_items_are_text(bare: Desk) -> None:
    for path in (bare.studio.folder / "items").iterdir():
        path.write_text(EVIL)
    page = bare.page
    bare.open("Ann")
    expect(page.locator("#left-content .prose")).to_have_text(EVIL)
    assert page.locator("#left-content *").count() == 1 and page.title() == EVIL
    assert page.locator("main img, main script").count() == 0
    # Even a script that did get in would not run.
    assert page.evaluate(
        "() => { try { document.body.innerHTML = '<b>' } catch { return true } return false }"
    )


@pytest.mark.parametrize("bare", [{"project": {"kind": "image"}}], indirect=True)
def test_pictures_are_there_before_they_are_needed(bare: Desk) -> None:
    page, asked = bare.page, []
    page.on(
        "request", lambda request: asked.append(request.url) if "/image" in request.url else None
    )
    bare.open("Ann")
    for number in range(1, 4):
        page.wait_for_load_state("networkidle")
        before = len(asked)
        bare.key(number, "s")
        shown = page.locator("#left-content img, #right-content img")
        expect(shown).to_have_count(2)
        for picture in shown.all():
            assert picture.get_attribute("src") in "".join(asked[:before])
            assert picture.evaluate("image => image.complete && image.naturalWidth") == 48
    snapshot(page, "pictures")


def test_link_from_another_site_and_the_address_bar(bare: Desk) -> None:
    page, token = bare.page, bare.tokens["Ann"]
    link = f"{bare.studio.url}/a/{token}"

    class Mail(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<a href="{link}">your link</a>'.encode())

        def log_message(self, *_: object) -> None:
            pass

    with running(http.server.HTTPServer(("127.0.0.1", 0), Mail)) as mail:
        # Another host name is another site, so the Strict cookie is put to the test.
        page.goto(f"http://localhost:{mail.server_port}/")
        page.get_by_text("your link").click()
        page.wait_for_url("**/annotate/*")
        settled(page)
    expect(page.locator("#count")).to_have_text("0 of 12")
    assert token not in page.url and page.evaluate("document.referrer") == ""
    assert token not in page.content()
    assert page.evaluate("document.cookie") == ""


@pytest.mark.parametrize("bare", [{"project": {"overlap": 1, "pairs": 24}}], indirect=True)
def test_supervisor_makes_a_link_that_works(desk: Desk) -> None:
    page, url = desk.page, desk.studio.url
    desk.key(1, "s")
    page.goto(f"{url}/s/{desk.tokens['boss']}")
    page.wait_for_url("**/supervisor")
    expect(page.locator("tr[data-annotator='1']")).to_contain_text("1 of 12")
    expect(page.locator("#dots circle")).to_have_count(1)
    expect(page.locator("#disputed")).to_be_hidden()
    page.locator("#who").select_option("Ann")
    (first,) = desk.answers()
    other = Statement("Elsewhere", first.left, first.right, Answer(0.0, -1.0, key="other"))
    with Store.open(Project.load(desk.studio.folder)) as store:
        import_judgements(store, [other])
    page.locator("#name").fill("Zoë")
    press(page, "Enter")
    expect(page.locator("#made")).to_contain_text("A link for Zoë is ready")
    # All of this in place: a section that was not shown, and new names to choose from.
    expect(page.locator("#disputed")).to_have_text("Disputed pairs (1)")
    expect(page.locator("#who option")).to_have_text(
        ["all annotators", "Ann", "Bob", "Elsewhere", "Zoë"]
    )
    expect(page.locator("#who")).to_have_value("1")
    expect(page.locator("#dots .dim")).to_have_count(1)
    page.locator("#who").select_option(label="all annotators")
    expect(page.locator("#dots .dim")).to_have_count(0)
    link = page.locator("#link").input_value()
    assert re.fullmatch(rf"{url}/a/[\w-]{{43}}", link)
    snapshot(page, "supervisor")
    # What failed shows no link, which would be that of another person.
    page.locator("#name").fill("Zoë")
    press(page, "Enter")
    expect(page.locator("#made")).to_contain_text("Not done: an annotator 'Zoë' already exists")
    expect(page.locator("#link-box")).to_be_hidden()
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.locator("tr:has-text('Zoë') [data-renew]").click()  # asks, and changes nothing
    expect(page.locator("#link-box")).to_be_hidden()
    page.goto(link)
    page.wait_for_url("**/annotate/*")
    settled(page)
    page.go_back()
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("[data-end='2']").click()
    expect(page.locator("tr[data-annotator='2']")).to_contain_text("ended")


# The scanner is injected as an inline script, which the page's policy would refuse.
SCANNED: dict[str, Any] = {"reduced_motion": "reduce", "bypass_csp": True}


@pytest.mark.parametrize(
    "bare",
    [
        {"context": SCANNED | {"color_scheme": "light"}, "project": {"pairs": 3}},
        {"context": SCANNED | PHONE | {"color_scheme": "dark"}, "project": {"pairs": 3}},
    ],
    indirect=True,
    ids=["desktop-light", "phone-dark"],
)
def test_accessibility_scan(bare: Desk, request: pytest.FixtureRequest) -> None:
    page, name = bare.page, request.node.callspec.id
    bare.open("Ann", tutorial=True)
    scans = {"tutorial": scan(page)}
    page.locator("#skip-tutorial").click()
    settled(page)
    press(page, "9", "Enter", "5", "n")
    expect(page.locator("#use-nearest")).to_be_visible()
    scans["in doubt"] = scan(page)
    snapshot(page, name)
    page.locator("#open-help").click()
    scans["help"] = scan(page)
    press(page, "Escape")
    for number in range(1, 4):
        page.locator("[data-sure=left]").click()
        done(page, number, 3)
    scans["finished"] = scan(page)
    page.goto(f"{bare.studio.url}/s/{bare.tokens['boss']}")
    page.wait_for_url("**/supervisor")
    scans["supervisor"] = scan(page)
    snapshot(page, f"{name}-supervisor")
    page.goto(bare.studio.url)
    scans["front"] = scan(page)
    assert {name: findings for name, findings in scans.items() if findings} == {}
