"""A studio with hostile files among its items, for tests of what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from browser import make_project
from pairlearn.studio.server import make_app
from test_studio_web import HERE

__all__ = ["client", "folder", "tokens"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "p"


@pytest.fixture(scope="module")
def tokens(folder: Path) -> dict[str, str]:
    _, tokens, boss = make_project(folder, "image", pairs=12, names=("ann", "bob"))
    (folder / "items" / "link.png").symlink_to("/etc/passwd")
    (folder / "items" / "00.png").write_bytes(
        b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>"
    )
    (folder / "items" / "01.png").write_text("<script>alert(1)</script>")
    return tokens | {"boss": boss}


@pytest.fixture
def client(folder: Path, tokens: dict[str, str]) -> Iterator[TestClient]:
    with TestClient(make_app(folder, requests_per_second=1e6), HERE) as client:
        yield client
