"""The other pages and the safety of the studio in a real browser."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from browser import (
    PHONE,
    chromium,
    done,
    live_studio,
    make_project,
    open_link,
    press,
    said,
    settled,
    snapshot,
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        yield context.new_page()


def test_tutorial_of_three_pairs(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"], tutorial=True)
        expect(page.locator("#coach-step")).to_contain_text("Practice 1 of 3")
        snapshot(page, "tutorial")
        press(page, "r")
        expect(page.locator("#status")).to_contain_text("S says that in one key")
        press(page, "s")
        expect(page.locator("#coach-step")).to_contain_text("Practice 2 of 3")
        settled(page)
        press(page, "r")
        expect(page.locator("#coach-step")).to_contain_text("Practice 3 of 3")
        page.wait_for_timeout(200)
        press(page, "5", "Enter", "4", "Enter")
        expect(page.locator("#coach")).to_be_hidden()
        expect(page.locator("#count")).to_have_text("0 of 30")
        assert said(tmp_path / "p") == []
        page.reload()
        settled(page)
        expect(page.locator("#coach")).to_be_hidden()  # the first time only


def test_letters_can_be_switched_off(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        press(page, "?")
        expect(page.locator("#help")).to_be_visible()
        snapshot(page, "help")
        page.locator("#letters").uncheck()
        press(page, "Escape", "s", "7")
        expect(page.locator("#value-similarity")).to_have_text("—")
        press(page, "ArrowRight", "Tab", "ArrowRight", "Enter")
        done(page, 1, 30)
    assert said(tmp_path / "p") == [(0.55, 0.05)]


def test_hostile_items_are_text(page: Page, tmp_path: Path) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    _, tokens, _ = make_project(tmp_path / "p", "text", title=evil, positive_name=evil)
    for path in (tmp_path / "p" / "items").iterdir():
        path.write_text(evil)
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        expect(page.locator("#left-content .prose")).to_have_text(evil)
        assert page.locator("#left-content *").count() == 1 and page.title() == evil
        assert page.locator("main img, main script").count() == 0
        # Even a script that did get in would not run.
        blocked = page.evaluate(
            "() => { try { document.body.innerHTML = '<b>' } catch { return true } return false }"
        )
        assert blocked


def test_pictures_are_there_before_they_are_needed(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p", "image", pairs=6)
    asked: list[str] = []
    page.on(
        "request", lambda request: asked.append(request.url) if "/image" in request.url else None
    )
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        for number in range(1, 6):
            page.wait_for_load_state("networkidle")
            before = len(asked)
            press(page, "s")
            done(page, number, 6)
            shown = page.locator("#left-content img, #right-content img")
            expect(shown).to_have_count(2)
            for picture in shown.all():
                assert picture.get_attribute("src") in "".join(asked[:before])
                assert picture.evaluate("image => image.complete && image.naturalWidth") == 48
        snapshot(page, "pictures")


def test_link_from_another_site_and_the_address_bar(page: Page, tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "p")
    with live_studio(tmp_path / "p") as studio:
        link = f"{studio.url}/a/{tokens['ann']}"

        class Mail(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(f'<a href="{link}">your link</a>'.encode())

            def log_message(self, *_: object) -> None:
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Mail) as mail:
            threading.Thread(target=mail.serve_forever, daemon=True).start()
            # Another host name is another site, so the Strict cookie is put to the test.
            page.goto(f"http://localhost:{mail.server_port}/")
            page.get_by_text("your link").click()
            page.wait_for_url("**/annotate/*")
            settled(page)
            mail.shutdown()
        expect(page.locator("#count")).to_have_text("0 of 30")
        assert tokens["ann"] not in page.url and page.evaluate("document.referrer") == ""
        assert tokens["ann"] not in page.content()
        assert page.evaluate("document.cookie") == ""


def test_supervisor_makes_a_link_that_works(page: Page, tmp_path: Path) -> None:
    _, tokens, boss = make_project(tmp_path / "p", pairs=20, names=("ann", "bob"), overlap=2)
    with live_studio(tmp_path / "p") as studio:
        open_link(page, studio, tokens["ann"])
        press(page, "s")
        done(page, 1, 20)
        page.goto(f"{studio.url}/s/{boss}")
        page.wait_for_url("**/supervisor")
        expect(page.locator("tr[data-annotator='1']")).to_contain_text("1 of 20")
        expect(page.locator("#dots circle")).to_have_count(1)
        page.locator("#name").fill("Zoë")
        press(page, "Enter")
        expect(page.locator("#made")).to_contain_text("A link for Zoë is ready")
        link = page.locator("#link").input_value()
        assert re.fullmatch(rf"{studio.url}/a/[\w-]{{43}}", link)
        snapshot(page, "supervisor")
        page.goto(link)
        page.wait_for_url("**/annotate/*")
        settled(page)
        page.go_back()
        page.on("dialog", lambda dialog: dialog.accept())
        page.locator("[data-end='2']").click()
        expect(page.locator("tr[data-annotator='2']")).to_contain_text("ended")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", ["desktop", "phone"])
def test_accessibility_scan(browser: Browser, tmp_path: Path, scheme: Any, device: str) -> None:
    _, tokens, boss = make_project(tmp_path / "p", pairs=3, names=("ann", "bob"), overlap=2)
    options = PHONE if device == "phone" else {"viewport": {"width": 1280, "height": 860}}
    # The scanner is injected as an inline script, which the page's policy would refuse.
    context = browser.new_context(
        **options, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True
    )
    with live_studio(tmp_path / "p") as studio, context:
        page = context.new_page()
        open_link(page, studio, tokens["ann"], tutorial=True)
        scans = {"tutorial": _scan(page)}
        page.locator("#skip-tutorial").click()
        settled(page)
        scans["fresh"] = _scan(page)
        press(page, "9", "Enter", "5", "n")
        expect(page.locator("#use-nearest")).to_be_visible()
        scans["in doubt"] = _scan(page)
        snapshot(page, f"{scheme}-{device}")
        page.locator("#open-help").click()
        scans["help"] = _scan(page)
        press(page, "Escape")
        for number in range(1, 4):
            page.locator("[data-sure=left]").click()
            done(page, number, 3)
        scans["finished"] = _scan(page)
        page.goto(f"{studio.url}/s/{boss}")
        page.wait_for_url("**/supervisor")
        scans["supervisor"] = _scan(page)
        snapshot(page, f"{scheme}-{device}-supervisor")
        page.goto(studio.url)
        scans["front"] = _scan(page)
    assert {name: found for name, found in scans.items() if found} == {}


def _scan(page: Page) -> list[str]:
    """Findings of axe that are serious or critical."""
    results = Axe().run(page, options={"resultTypes": ["violations"]})
    return [
        f"{one['id']} ({one['impact']}): {[node['html'][:120] for node in one['nodes']]}"
        for one in results.response["violations"]
        if one["impact"] in ("serious", "critical")
    ]
