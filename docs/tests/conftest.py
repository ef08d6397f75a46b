"""Settings of the tests of the pages, which need all three distributions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import pairlearn_bench.data  # noqa: F401 - whose registry `forgetful` restores
from registries import forgetful as forgetful
from sessions import same_draws as same_draws

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; while it is open no other event loop can run, so that it closes with a module."""
    from browser import chromium

    with chromium() as opened:
        yield opened
