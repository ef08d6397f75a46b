"""Somebody with a link and without a browser."""

from __future__ import annotations

import re
from typing import Any

from starlette.testclient import TestClient

HERE = "http://127.0.0.1:8337"


class Visitor:
    """An annotator or the supervisor, who opened their link."""

    def __init__(self, client: TestClient, token: str, role: str = "a") -> None:
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
