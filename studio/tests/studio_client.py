"""The commands `annotate …`, and a studio without a port or browsers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from starlette.testclient import TestClient
from typer.testing import CliRunner, Result

from browser import make_project
from pairlearn.cli.root import app
from pairlearn_studio import Project, Store, StoredAnswer
from pairlearn_studio.server import make_app

HERE = "http://127.0.0.1:8337"


def annotate(*arguments: object) -> Result:
    """Run ``pairlearn annotate``."""
    return CliRunner().invoke(app, ["annotate", *map(str, arguments)])


def annotate_json(*arguments: object) -> Any:
    """The JSON that a command prints, which must succeed."""
    result = annotate(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refusal(*arguments: object) -> str:
    """The line by which a command refuses a request."""
    result = annotate(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("pairlearn annotate ")
    assert result.stderr.count("\n") == 1
    return result.stderr


class Visitor:
    """An annotator or the supervisor after opening their link."""

    def __init__(self, client: Any, token: str, role: str = "a") -> None:
        self.client = client
        page = client.get(f"/{role}/{token}")
        assert page.status_code == 200
        match = re.search(r'name="csrf" content="([0-9a-f]{64})"', page.text)
        assert match
        self.form = match[1]
        self.home = page.url.path.removeprefix(client.base_url.path.rstrip("/"))
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
    """A served project, with the tokens of all annotators and, as "boss", the supervisor."""

    folder: Path
    tokens: dict[str, str]
    client: TestClient

    def visit(self, name: str = "ann") -> Visitor:
        """Open the link of one person only."""
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
    """Serve an existing project."""
    # Paths in tests are below the project's name.
    with TestClient(make_app(folder, **options), f"{HERE}/{folder.name}") as client:
        yield Studio(folder, tokens, client)


@contextmanager
def studio_of(
    folder: Path, kind: str = "table", *, webhook: str | None = None, **project: Any
) -> Iterator[Studio]:
    """Create a project and serve it."""
    _, tokens, boss = make_project(folder, kind, **project)
    with serving(folder, tokens | {"boss": boss}, webhook=webhook) as studio:
        yield studio
