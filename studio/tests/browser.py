"""A studio on a real port, and a browser that opens it.

The browser is Debian's Chromium. Without it the tests fail: a studio that no browser has
opened is not tested.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Playwright,
    expect,
    sync_playwright,
)

from pairlearn_studio import Plan, Project, Store, StoredAnswer
from pairlearn_studio.server import make_app
from pairlearn_studio.server.app import server_config
from processes import free_port

PATIENCE = 120_000  # milliseconds: a busy machine is no fault of the page
expect.set_options(timeout=PATIENCE)
SCREENSHOTS = os.environ.get("PAIRLEARN_SCREENSHOTS")
"""A folder for screenshots of the pages, if they are wanted."""

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
}

MACHINES = """id,model,age in years,hours last month,oil temperature °C,vibration mm/s,last service
M-{n:03},{model},{age},{hours},{oil},{vibration},{service} months ago
"""


def make_project(
    folder: Path,
    kind: str = "table",
    *,
    pairs: int = 30,
    names: tuple[str, ...] = ("ann",),
    **more: Any,
) -> tuple[Project, dict[str, str], str]:
    """Make a project with a store; return it, the tokens by name, and the supervisor's."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "table":
        items = _machines(folder)
    else:
        items = _files(folder, ".txt", _text) if kind == "text" else _files(folder, ".png", png)
    options: dict[str, Any] = {
        "id": secrets.token_hex(8),
        "title": "Pump house maintenance",
        "positive_name": "will fail",
        "negative_name": "will hold",
        "question_similarity": "How likely is it that both pumps share the same fate?",
        "question_difference": "Which pump is more likely to fail, and by how much?",
        "help": "Judge whether each pump fails within the next month.",
    }
    project = Project(folder, kind, items, Plan(pairs=pairs), **(options | more))  # type: ignore[arg-type]
    project.save()
    with Store.create(project) as store:
        tokens = {who.name: token for who, token in store.add_annotators(list(names))}
        assert store.supervisor_token is not None
        return project, tokens, store.supervisor_token


def _machines(folder: Path) -> str:
    rng = np.random.default_rng(7)
    head, row = MACHINES.splitlines()
    rows = [
        row.format(
            n=n,
            model=rng.choice(["KS-40", "KS-60", "Etanorm"]),
            age=rng.integers(1, 22),
            hours=rng.integers(80, 700),
            oil=rng.integers(48, 94),
            vibration=f"{rng.gamma(3, 0.9):.1f}",
            service=rng.choice([1, 3, 6, 12]),
        )
        for n in range(1, 61)
    ]
    (folder / "items.csv").write_text("\n".join([head, *rows]) + "\n", "utf-8")
    return "items.csv"


def _text(n: int) -> bytes:
    return f"Log {n}: bearing noise, level {n % 5}.\n".encode() * 4


def _files(folder: Path, suffix: str, content: Callable[[int], bytes]) -> str:
    (folder / "items").mkdir()
    for n in range(20):
        (folder / "items" / f"{n:02}{suffix}").write_bytes(content(n))
    return "items"


def png(shade: int, size: int = 48) -> bytes:
    """A square picture with a colour for each number."""
    colour = (40 + 9 * shade % 200, 90, 250 - 11 * shade % 200)
    file = io.BytesIO()
    Image.new("RGB", (size, size), colour).save(file, "PNG")
    return file.getvalue()


@dataclass
class LiveStudio:
    """A studio on a port of this machine, which can be stopped and started again."""

    folder: Path
    options: dict[str, Any] = field(default_factory=dict)
    port: int = 0

    def start(self) -> None:
        app = make_app(self.folder, **self.options)
        self.port = self.port or free_port()
        self._socket = socket.create_server(("127.0.0.1", self.port))
        config = server_config(app, log_level="error")
        config.timeout_graceful_shutdown = 1
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.folder.name}"


@contextmanager
def live_studio(folder: Path, **options: Any) -> Iterator[LiveStudio]:
    studio = LiveStudio(folder, options)
    studio.start()
    try:
        yield studio
    finally:
        studio.stop()


def chromium_path() -> str:
    """Debian's Chromium, or the one named by the environment variable CHROMIUM."""
    names = ("chromium", "chromium-browser")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    assert path, "the browser tests need Chromium: apt-get install chromium, or set CHROMIUM"
    return path


@contextmanager
def chromium() -> Iterator[Browser]:
    playwright: Playwright
    with sync_playwright() as playwright:
        # No sandbox: root cannot use it, and these pages are ours.
        browser = playwright.chromium.launch(
            executable_path=chromium_path(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        new_context = browser.new_context

        def patient_context(**options: Any) -> BrowserContext:
            made = new_context(**options)
            made.set_default_timeout(PATIENCE)
            return made

        browser.new_context = patient_context  # type: ignore[method-assign]
        try:
            yield browser
        finally:
            browser.close()


def open_link(page: Page, studio: Any, token: str, *, tutorial: bool = False) -> None:
    """Open an annotator's link, and go past the start page and, by default, the tutorial."""
    if not tutorial:
        page.add_init_script("localStorage.setItem('pairlearn tutorial seen', '1')")
    page.goto(f"{studio.url}/a/{token}")
    page.wait_for_url("**/annotate/*")
    settled(page)


def settled(page: Page, done: int | None = None, *, begin: bool = True) -> None:
    """Wait until the page accepts answers, and ``done`` are given; go past the start page."""
    body = "body" if done is None else f"body[data-done='{done}']"
    ready = f"{body} #work:not([hidden]) #pair[aria-busy=false], {body} #finished:not([hidden])"
    start = "#start:not([hidden])"
    page.wait_for_selector(f"{ready}, {start}", state="attached")
    if begin and page.locator(start).count():
        page.locator("#begin").click()
        page.wait_for_selector(ready, state="attached")


def complaints(page: Page) -> list[str]:
    """The errors and console messages of a page from now on, such as refused scripts."""
    messages: list[str] = []
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("console", lambda line: messages.append(line.text))
    return messages


def answers_of(folder: Path) -> list[StoredAnswer]:
    with Store.open(Project.load(folder)) as store:
        return store.answers()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def done(page: Page, number: int, total: int) -> None:
    """Wait until so many are answered and the page accepts the next one."""
    settled(page, number)
    assert page.locator("#count").inner_text() == f"{number} of {total}" or number == total


def scan(page: Page) -> list[str]:
    """Serious and critical findings of axe."""
    results = Axe().run(page, options={"resultTypes": ["violations"]})
    return [
        f"{rule['id']} ({rule['impact']}): {[node['html'][:120] for node in rule['nodes'][:3]]}"
        for rule in results.response["violations"]
        if rule["impact"] in ("serious", "critical")
    ]


def watch_shifts(page: Page) -> None:
    """Have ``window.shifts`` add up all layout shifts of the page."""
    page.evaluate(
        """() => {
            window.shifts = 0;
            new PerformanceObserver((list) => {
                for (const entry of list.getEntries()) window.shifts += entry.value;
            }).observe({ type: "layout-shift", buffered: true });
        }"""
    )


def snapshot(page: Page, name: str) -> None:
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS, f"{name}.png"))


class Desk(NamedTuple):
    """A studio of 12 pairs, two people who judge all of them, and a page of a browser."""

    studio: LiveStudio
    tokens: dict[str, str]
    page: Page

    def open(self, name: str, *, tutorial: bool = False) -> None:
        open_link(self.page, self.studio, self.tokens[name], tutorial=tutorial)

    def answers(self) -> list[StoredAnswer]:
        return answers_of(self.studio.folder)

    def numbers(self) -> list[tuple[float | None, float | None]]:
        return [answer.numbers for answer in self.answers()]

    def key(self, count: int, *keys: str) -> None:
        """Press keys, and wait until so many pairs are done."""
        press(self.page, *keys)
        done(self.page, count, 12)
