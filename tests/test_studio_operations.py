"""Running the studio: several projects, programs with a token, webhooks, lines in the log."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from browser import make_project
from pairlearn.studio import Answer, StoreError
from pairlearn.studio.exchange import Statement, import_judgements
from pairlearn.studio.records import LEVELS
from pairlearn.studio.server import make_app
from pairlearn.studio.writer import using
from studio_client import HERE, serving, studio_of
from studio_store import free_pairs


def test_several_projects_on_one_server(tmp_path: Path) -> None:
    made = {name: make_project(tmp_path / name, pairs=3) for name in ("pumps", "valves")}
    with TestClient(make_app([tmp_path / name for name in made]), HERE) as client:
        for name, (_, tokens, boss) in made.items():
            page = client.get(f"/{name}/a/{tokens['ann']}", follow_redirects=False)
            assert page.headers["location"] == f"/{name}/annotate/1"
            assert f"Path=/{name}/annotate/1;" in page.headers["set-cookie"]
            assert client.get(f"/{name}/annotate/1/api/task").json()["task"]["number"] == 1
            page = client.get(f"/{name}/s/{boss}")
            assert page.url.path == f"/{name}/supervisor"
            assert f'src="/{name}/static/supervisor.js"' in page.text
            assert client.get(f"/{name}/static/supervisor.js").status_code == 200
            form = page.text.split('name="csrf" content="')[1][:64]
            reply = client.post(
                f"/{name}/api/annotators", json={"name": "Zoë"}, headers={"X-Studio-Form": form}
            )
            assert client.get(reply.json()["path"]).url.path == f"/{name}/annotate/2"
        other = made["valves"][1]["ann"]
        assert client.get(f"/pumps/a/{other}").status_code == 404
        assert client.get("/").status_code == 200 and client.get("/tanks/").status_code == 404
    with pytest.raises(ValueError, match="two folders are called 'pumps'"):
        make_app([tmp_path / "pumps", tmp_path / "pumps"])
    make_project(tmp_path / "old pumps", pairs=3)
    with pytest.raises(ValueError, match="'old pumps' cannot be part of an address"):
        make_app([tmp_path / "pumps", tmp_path / "old pumps"])


def test_links_of_a_studio_inside_another_application(tmp_path: Path) -> None:
    _, _, boss = make_project(tmp_path / "p", pairs=3)
    outer, bearer = Starlette(routes=[Mount("/studio", make_app(tmp_path / "p"))]), f"Bearer {boss}"
    with TestClient(outer, HERE, headers={"Authorization": bearer}) as client:
        for path, form in (("", {"name": "Zoë"}), ("/renew", {"annotator": 2})):
            link = client.post(f"/studio/api/annotators{path}", json=form).json()["path"]
            assert client.get(link).url.path == "/studio/annotate/2"


def test_a_store_that_cannot_be_opened_leaves_no_other_open(tmp_path: Path) -> None:
    for name in ("pumps", "valves"):
        make_project(tmp_path / name, pairs=3)
    (tmp_path / "valves" / "answers.sqlite").write_bytes(b"")
    with pytest.raises(StoreError, match="empty"):
        make_app([tmp_path / "pumps", tmp_path / "valves"])
    with using(tmp_path / "pumps", alone=True):
        pass


@pytest.mark.parametrize(
    ("asked", "taken", "refused"),
    [
        ("graded", {"level": "alike"}, {"similarity": 0.5, "difference": 0.0}),
        ("graded", {"cant_say": True}, {"level": "maybe"}),
        ("exact", {"similarity": 0.5}, {"level": "alike"}),
        ("each", {"similarity": 0.5, "difference": 0.0}, {"level": "alike", "cant_say": True}),
    ],
)
def test_answers_are_taken_as_the_project_asks(
    tmp_path: Path, asked: str, taken: dict[str, Any], refused: dict[str, Any]
) -> None:
    nothing = {"similarity": None, "difference": None}
    with studio_of(tmp_path / "p", pairs=3, answers=asked) as studio:
        visitor = studio.visit()
        reply = visitor.answer(**(nothing | refused))
        assert reply.status_code == 400 and "level" in reply.json()["error"]
        assert visitor.answer(**(nothing | taken)).status_code == 200


def test_programs_use_the_token_of_a_link(tmp_path: Path) -> None:
    with studio_of(tmp_path / "p", pairs=3, language="de") as studio:
        client, ann, boss = studio.client, studio.bearer("ann"), studio.bearer("boss")
        task = client.get("/annotate/1/api/task", headers=ann).json()["task"]
        body = {"pair": task["pair"], "similarity": 0.5, "difference": 0.0, "key": "program-1"}
        sent = client.post("/annotate/1/api/answer", json=body, headers=ann)
        assert sent.json()["receipt"]["revision"] == 1 and not client.cookies
        with studio.store() as store:
            cy = Statement("cy", *free_pairs(store)[0], Answer(0.5, key="k"))
            import_judgements(store, [cy])
        told = client.get("/api/status", headers=boss).json()
        assert (told["judged"], told["pairs"]) == (1, 3)  # those of the plan
        assert told["annotators"][0]["done"] == 1
        assert told["forecast"]  # what is missing, until there is one
        lines = client.get("/api/export", headers=boss).text.splitlines()
        assert [json.loads(line)["annotator"] for line in lines] == ["ann", "cy"]
        nobody = {"Authorization": f"Bearer {'x' * 43}"}
        for token, path in ((ann, "/api/status"), (nobody, "/annotate/1/api/task")):
            refused = client.get(path, headers=token)
            assert refused.status_code == 401
            assert refused.json()["error"].startswith("dieses Token öffnet das nicht")


def test_the_api_is_described_as_it_is(tmp_path: Path) -> None:
    with studio_of(tmp_path / "p", pairs=3) as studio:
        told = studio.client.get("/static/openapi.json").json()
    answer = told["components"]["schemas"]["AnswerForm"]
    assert answer["required"] == ["pair", "key"] and "level" in answer["properties"]
    assert told["paths"].keys() >= {"/api/status", "/annotate/{annotator}/api/answer", "/image"}
    settle = told["paths"]["/api/settle"]["post"]
    assert settle["summary"].startswith("Keep the supervisor's answer to a pair")
    body = settle["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/SettleForm"}
    (path, query) = told["paths"]["/annotate/{annotator}/image"]["get"]["parameters"]
    assert (path["name"], path["in"], query["name"]) == ("annotator", "path", "item")


class Hook:
    """An address, the paths and bodies that were sent there, and how it replies."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.received: list[Any] = []
        self.nonsense = self.redirects = False
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.paths.append(self.path)
                hook.received.append(
                    json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                )
                if hook.nonsense and len(hook.paths) == 1:
                    self.wfile.write(b"nonsense\r\n\r\n")
                    return
                self.send_response(302 if hook.redirects else 200)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(10**12))  # and never comes
                self.end_headers()

            def do_GET(self) -> None:
                hook.paths.append(self.path)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/judged"


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    with made.server:
        thread = threading.Thread(target=made.server.serve_forever)
        thread.start()
        yield made
        made.server.shutdown()
        thread.join()


def test_a_webhook_is_told_when_all_is_answered(tmp_path: Path, hook: Hook) -> None:
    names, received = ("ann", "bob"), hook.received
    with studio_of(tmp_path / "p", pairs=3, names=names, webhook=hook.url) as studio:
        for name in names:
            assert received == []
            visitor = studio.visit(name)
            while visitor.task() is not None:
                visitor.answer()
    title = "Pump house maintenance"
    assert received == [{"event": "completed", "project": "p", "title": title, "answers": 3}]
    for wrong in (
        "ci.example/judged",
        "file:///etc/passwd",
        "http://",
        "http://127.0.0.1:80o0/judged",
    ):
        with pytest.raises(ValueError, match="webhook is"):
            make_app(tmp_path / "p", webhook=wrong)


def test_what_is_complete_and_when_it_is_told(tmp_path: Path, hook: Hook) -> None:
    received, graded = hook.received, {"pairs": 2, "overlap": 2, "answers": "graded"}
    with studio_of(tmp_path / "p", webhook=hook.url, **graded) as studio:
        visitor = studio.visit()
        while visitor.task() is not None:
            visitor.answer(level="alike", similarity=None, difference=None)
        supervisor = studio.visit("boss")
        assert supervisor.post("/api/annotators/end", {"annotator": 1}).status_code == 200
        assert received == []  # each pair has one answer of two
        for pair in (1, 2):  # by another process, of which nothing else tells
            settled = Answer(*LEVELS["alike"], key=f"key-{pair}", level="alike")
            with studio.store() as store:
                store.adjudicate(pair, settled)
        assert supervisor.post("/api/annotators", {"name": "Zoë"}).status_code == 200
        assert received == []
        for pair in (1, 2, 2):
            supervisor.post("/api/settle", {"pair": pair, "level": "alike"})
    assert [one["answers"] for one in received] == [4]


def test_a_webhook_that_redirects_or_talks_nonsense_is_tried_again(
    tmp_path: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hook.nonsense = hook.redirects = True
    monkeypatch.setattr("pairlearn.studio.server.api.time.sleep", lambda _: None)
    with studio_of(tmp_path / "p", pairs=1, webhook=hook.url) as studio:
        studio.visit().answer()
    assert hook.paths == ["/judged"] * 3
    (line,) = [one.getMessage() for one in caplog.records if "webhook" in one.getMessage()]
    assert line == "pairlearn annotate: the webhook was not told: HTTP 302"


def test_a_webhook_that_cannot_be_told_is_told_later(
    tmp_path: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pairlearn.studio.server.api.time.sleep", lambda _: None)
    # No name has a part of so many letters: to look it up is a UnicodeError.
    url = f"http://{'a' * 64}.example/secret"
    with studio_of(tmp_path / "p", pairs=1, webhook=url) as studio:
        studio.visit().answer()
    (line,) = [one.getMessage() for one in caplog.records if "webhook" in one.getMessage()]
    assert "the webhook was not told: " in line and "\n" not in line and "secret" not in line
    with serving(tmp_path / "p", studio.tokens, webhook=hook.url) as studio:
        visitor = studio.visit()
        again = {"pair": 1, "similarity": 0.9, "difference": 0.1, "key": "revised-1"}
        assert visitor.post(f"{visitor.home}/api/answer", again).status_code == 200
    assert hook.paths == ["/judged"]
