"""A studio without a port, and people with a link and without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from starlette.testclient import TestClient

from browser import make_project
from pairlearn.studio import Project, Store, StoredAnswer
from pairlearn.studio.server import make_app

HERE = "http://127.0.0.1:8337"


class Visitor:
    """An annotator or the supervisor, who opened their link."""

    def __init__(self, client: Any, token: str, role: str = "a") -> None:
        self.client = client
        page = client.get(f"/{role}/{token}")
        assert page.status_code == 200
        found = re.search(r'name="csrf" content="([0-9a-f]{64})"', page.text)
        assert found
        self.form = found[1]
        self.home = page.url.path
        self.count = 0

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self.client.post(path, json=body, headers={"X-Studio-Form": self.form})

    def task(self) -> Any:
        return self.client.get(f"{self.home}/api/task").json()["task"]

    def answer(self, **fields: Any) -> Any:
        self.count += 1
        body = {"pair": self.task()["pair"], "similarity": 0.5, "difference": 0.0, "seconds": 3.0}
        return self.post(
            f"{self.home}/api/answer", body | {"key": f"form-{self.count:06}"} | fields
        )


class Studio(NamedTuple):
    """A project that is served, with the tokens of everybody, the supervisor's as "boss"."""

    folder: Path
    tokens: dict[str, str]
    client: TestClient

    def visit(self, name: str = "ann") -> Visitor:
        """Open somebody's link, and nobody else's."""
        self.client.cookies.clear()
        return Visitor(self.client, self.tokens[name], "s" if name == "boss" else "a")

    def bearer(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[name]}"}

    def store(self) -> Store:
        return Store.open(Project.load(self.folder))

    def answers(self) -> list[StoredAnswer]:
        with self.store() as store:
            return store.answers()


@contextmanager
def serving(folder: Path, tokens: dict[str, str], **options: Any) -> Iterator[Studio]:
    """Serve a project that is there."""
    with TestClient(make_app(folder, **options), HERE) as client:
        yield Studio(folder, tokens, client)


@contextmanager
def studio_of(
    folder: Path, kind: str = "table", *, webhook: str | None = None, **project: Any
) -> Iterator[Studio]:
    """Make a project and serve it."""
    _, tokens, boss = make_project(folder, kind, **project)
    with serving(folder, tokens | {"boss": boss}, webhook=webhook) as studio:
        yield studio
