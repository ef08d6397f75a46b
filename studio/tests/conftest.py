"""What tests of several files share."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sessions import same_draws as same_draws

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from browser import Desk

# Processes are forked from one that has everything imported, so that they start at once.
multiprocessing.set_forkserver_preload(
    [
        "pairlearn_studio.cli.annotate",
        "pairlearn_studio.ask",
        "pairlearn_studio.exchange",
        "pairlearn_studio.server",
        "pairlearn.estimators",
        "studio_processes",
    ]
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; while it is open no other event loop can run, so that it closes with a module."""
    from browser import chromium

    with chromium() as opened:
        yield opened


@pytest.fixture
def bare(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A desk with an empty page; a parameter changes the project, or the browser's context."""
    from browser import Desk, live_studio, make_project

    changes = getattr(request, "param", {})
    options = {"pairs": 12, "names": ("Ann", "Bob"), "overlap": 2} | changes.get("project", {})
    _, tokens, boss = make_project(tmp_path / "p", **options)
    context = {"viewport": {"width": 1280, "height": 860}} | changes.get("context", {})
    with live_studio(tmp_path / "p") as studio, browser.new_context(**context) as opened:
        yield Desk(studio, tokens | {"boss": boss}, opened.new_page())


@pytest.fixture
def desk(bare: Desk) -> Desk:
    """With Ann's page, past the tutorial."""
    bare.open("Ann")
    return bare
