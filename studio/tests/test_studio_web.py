"""The studio over HTTP: pages, links, programs, several projects, webhooks."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from browser import make_project, png
from chat_server import running
from pairlearn_studio import Answer, StoreError
from pairlearn_studio.exchange import Statement, import_judgements
from pairlearn_studio.records import LEVELS
from pairlearn_studio.server import make_app, serve
from pairlearn_studio.writer import lock_answers
from studio_client import HERE, Studio, serving, studio_of
from studio_store import free_pairs

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "speed"))

import annotate_durability


@pytest.fixture
def studio(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Studio]:
    kind = getattr(request, "param", "table")
    with studio_of(tmp_path / "p", kind, pairs=12, names=("ann", "bob")) as studio:
        yield studio


def test_link_becomes_a_cookie_and_leaves_the_address(studio: Studio) -> None:
    link, client = f"/a/{studio.tokens['ann']}", studio.client
    reply = client.get(link, follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/p/annotate/1")
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    page = client.get("/annotate/1")
    assert page.status_code == 200 and studio.tokens["ann"] not in page.text
    # A browser sends no Strict cookie along a redirect that began on another site.
    reply = client.get(link, headers={"Sec-Fetch-Site": "cross-site"})
    assert 'http-equiv="refresh" content="0; url=/p/annotate/1"' in reply.text
    assert studio.tokens["ann"] not in reply.text and "HttpOnly" in reply.headers["set-cookie"]
    app = make_app(studio.folder, public=True, url="https://studio.example")
    with TestClient(app, "https://studio.example") as other:
        reply = other.get(f"/p{link}", follow_redirects=False)
        assert "Secure" in reply.headers["set-cookie"]
        assert reply.headers["strict-transport-security"].startswith("max-age=")


def test_whole_run_over_http(studio: Studio) -> None:
    ann, numbers = studio.visit("ann"), [(0.5, 0.0), (None, 0.25), (0.75, None), (None, None)]
    for number, (s, c) in enumerate([*numbers, (0.1, 0.1), (0.2, 0.1)]):
        cant_say = s is None and c is None
        form = {"similarity": s, "difference": c, "note": f"n{number}", "cant_say": cant_say}
        # One long pause does not count: the pace is by the median.
        reply = ann.answer(**form, seconds=600.0 if number == 2 else 3.0).json()
        assert reply["receipt"]["revision"] == 1
        assert reply["progress"] == {
            "done": number + 1, "total": 6, "seconds_left": 3.0 * (5 - number),
        }  # fmt: skip
    assert reply["task"] is None
    stored = [(*answer.numbers, answer.note) for answer in studio.answers()]
    assert stored[:4] == [(s, c, f"n{number}") for number, (s, c) in enumerate(numbers)]


def test_supervisor_makes_ends_and_renews_links(studio: Studio) -> None:
    boss, client = studio.visit("boss"), studio.client
    made = boss.post("/api/annotators", {"name": "  Zoë  "}).json()
    assert (
        made["name"] == "Zoë"
        and client.get(made["path"].removeprefix("/p")).url.path == "/p/annotate/3"
    )
    renewed = boss.post("/api/annotators/renew", {"annotator": 3}).json()
    assert client.get("/annotate/3/api/task").status_code == 401  # the old link ends at once
    assert client.get(made["path"]).status_code == 404
    assert client.get(renewed["path"].removeprefix("/p")).status_code == 200
    assert boss.post("/api/annotators/end", {"annotator": 3}).status_code == 200
    assert client.get(renewed["path"].removeprefix("/p")).status_code == 404
    assert boss.post("/api/annotators/end", {"annotator": 3}).status_code == 404


def test_supervisor_page_tells_how_everybody_works(studio: Studio) -> None:
    with studio.store() as store:
        for number, (s, c) in enumerate([(0.9, 0.0), (0.9, 0.5), (0.5, -0.25)]):
            task = store.next_task(1)
            assert task is not None
            note = "odd <b>one</b>" if number == 0 else ""
            answer = Answer(similarity=s, difference=c, seconds=6, note=note, key=f"k{number}")
            store.submit(1, task.pair, answer).result()
    page = studio.visit("boss").client.get("/supervisor").text
    assert "3 of 6" in page and ">6.0<" in page and "33%" in page  # one of three does not fit
    assert page.count('class="dot"') == 2 and page.count('class="dot out"') == 1
    assert 'cx="-25.0" cy="50.0"' in page and "odd &lt;b&gt;one&lt;/b&gt;" in page


@pytest.mark.parametrize("studio", ["image"], indirect=True)
def test_pictures_and_what_is_ahead(studio: Studio) -> None:
    client = studio.client
    assert client.get("/annotate/1/image?item=00.png").status_code == 401
    ann = studio.visit("ann")
    task = ann.task()
    picture = client.get(f"/annotate/1/{task['left']['image']}")
    assert picture.headers["content-type"] == "image/png"
    assert picture.content == png(int(task["left"]["title"][:2]))
    ahead = client.get(f"/annotate/1/api/ahead?pair={task['pair']}").json()["ahead"]
    following = ann.answer().json()["task"]
    assert ahead == [following["left"], following["right"]]
    while following is not None:
        last, following = following["pair"], ann.answer().json()["task"]
    assert client.get(f"/annotate/1/api/ahead?pair={last}").json()["ahead"] == []


def test_an_item_that_is_gone_does_not_stop_the_others(tmp_path: Path) -> None:
    with studio_of(tmp_path / "p", "text", pairs=3, language="de") as studio:
        ann = studio.visit()
        (studio.folder / "items" / ann.task()["left"]["title"]).unlink()
        assert ann.task()["left"]["text"] == "Dieses Objekt gibt es nicht mehr."
        gone = ann.answer(similarity=None, difference=None, cant_say=True)
        assert gone.json()["progress"]["done"] == 1


def test_access_log_holds_no_token(studio: Studio, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        studio.visit("ann").answer()
        studio.client.get("/a/guess%0d%0aGET")
    lines = [line.getMessage() for line in caplog.records if not line.name.startswith("http")]
    text = "\n".join(lines)
    assert "GET /p/a/*** 303" in text and "POST /p/annotate/1/api/answer 200" in text
    assert "guess" not in text and studio.tokens["ann"] not in text


def test_what_is_not_served(tmp_path: Path, studio: Studio) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.7", "", "example.org"):
        with pytest.raises(ValueError, match="public=True"):
            serve(studio.folder, host=host)
    with pytest.raises(ValueError, match="not a project"):
        make_app(tmp_path)
    with pytest.raises(ValueError, match="url is"):
        make_app(studio.folder, url="studio.example")
    for name in ("answers.sqlite", "items.csv"):
        (studio.folder / name).unlink()
        with pytest.raises(ValueError, match=f"{name} does not exist"):
            make_app(studio.folder)


def test_the_package_carries_no_script_in_its_pages() -> None:
    package = Path(sys.modules["pairlearn_studio.server"].__file__ or "").parent
    for template in (package / "templates").glob("*.html"):
        text = template.read_text("utf-8")
        assert not re.search(r"<script(?![^>]* src=\"(?:{{ root }})?/static/)", text), template
        assert not re.search(r"\son\w+=|\sstyle=|https?://|\|\s*safe", text), template
    for script in (package / "static").glob("*.js"):
        text = script.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|eval\(|https?://", text), script


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.long)])
def test_kills_lose_and_double_nothing(kills: int) -> None:
    result = annotate_durability.run_kills(kills=kills, clients=4, seed=1)
    assert result.acknowledged >= 20 * kills and result.resent > 0
    assert (result.missing, result.doubled, result.changed) == (0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="strace is a tool of Linux")
def test_every_answer_is_flushed_before_its_reply() -> None:
    result = annotate_durability.run_traced(clients=4, answers=30)
    assert result.answers >= 30 and result.flushed_before_reply == result.answers


ASK = '7 read(9<TCP:[1]>, "POST /api/answer HTTP/1.1\\r\\nHost", 65536) = 300'
TELL = '7 sendto(9<TCP:[1]>, "HTTP/1.1 200 OK\\r\\ndate", 900, 0, NULL, 0) = 900'
FLUSH = "8 fdatasync(5</p/answers.sqlite-wal>) = 0"
BEGIN = "8 fdatasync(5</p/answers.sqlite-wal> <unfinished ...>"
END = "8 <... fdatasync resumed>)            = 0"


@pytest.mark.parametrize(
    ("lines", "flushed"),
    [
        ([ASK, FLUSH, TELL], 1),
        ([ASK, BEGIN, END, TELL], 1),
        ([FLUSH, ASK, TELL], 0),
        ([ASK, TELL, FLUSH], 0),
        ([BEGIN, ASK, END, TELL], 0),  # begun before the answer came: it may be without it
        ([ASK, BEGIN, TELL, END], 0),
        ([ASK, FLUSH.replace("= 0", "= -1 EIO"), TELL], 0),
        ([ASK, FLUSH.replace("answers.sqlite-wal", "other"), TELL], 0),
    ],
)
def test_reading_a_trace(lines: list[str], flushed: int) -> None:
    result = annotate_durability.read_trace(lines)
    assert (result.answers, result.flushed_before_reply) == (1, flushed)


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
            link = client.post(f"/studio/p/api/annotators{path}", json=form).json()["path"]
            assert client.get(link).url.path == "/studio/p/annotate/2"


def test_a_store_that_cannot_be_opened_leaves_no_other_open(tmp_path: Path) -> None:
    for name in ("pumps", "valves"):
        make_project(tmp_path / name, pairs=3)
    (tmp_path / "valves" / "answers.sqlite").write_bytes(b"")
    with pytest.raises(StoreError, match="empty"):
        make_app([tmp_path / "pumps", tmp_path / "valves"])
    with lock_answers(tmp_path / "pumps", exclusive=True):
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
        status = client.get("/api/status", headers=boss).json()
        assert (status["pairs_answered"], status["pairs"]) == (1, 3)  # those of the plan
        assert status["annotators"][0]["done"] == 1
        assert status["forecast"] is None and not status["forecast_is_current"]
        lines = client.get("/api/export", headers=boss).text.splitlines()
        assert [json.loads(line)["annotator"] for line in lines] == ["ann", "cy"]
        nobody = {"Authorization": f"Bearer {'x' * 43}"}
        for token, path in ((ann, "/api/status"), (nobody, "/annotate/1/api/task")):
            refused = client.get(path, headers=token)
            assert refused.status_code == 401
            assert refused.json()["error"].startswith("dieses Token öffnet das nicht")


class Hook(HTTPServer):
    """A webhook that records the paths and bodies it receives."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HookHandler)
        self.paths, self.received = list[str](), list[Any]()
        self.status, self.starts_with_nonsense = 200, False
        self.url = f"http://127.0.0.1:{self.server_port}/judged"


class HookHandler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        self.do_GET()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append(json.loads(body))
        if self.server.starts_with_nonsense and len(self.server.paths) == 1:
            self.wfile.write(b"nonsense\r\n\r\n")
            return
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(10**12))  # and never comes
        self.end_headers()

    def do_GET(self) -> None:
        self.server.paths.append(self.path)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Hook]:
    with running(Hook()) as server:
        yield server


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
    wrong_urls = (
        "ci.example/judged",
        "file:///etc/passwd",
        "http://",
        "http://127.0.0.1:80o0/judged",
    )
    for wrong in wrong_urls:
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
    assert [body["answers"] for body in received] == [4]


def test_a_webhook_that_redirects_or_talks_nonsense_is_tried_again(
    tmp_path: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hook.status, hook.starts_with_nonsense = 302, True
    monkeypatch.setattr("pairlearn_studio.server.api.time.sleep", lambda _: None)
    with studio_of(tmp_path / "p", pairs=1, webhook=hook.url) as studio:
        studio.visit().answer()
    assert hook.paths == ["/judged"] * 3
    (line,) = [text for text in caplog.messages if "webhook" in text]
    assert line == "pairlearn annotate: the webhook could not be notified: HTTP 302"


def test_a_webhook_that_cannot_be_told_is_told_later(
    tmp_path: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pairlearn_studio.server.api.time.sleep", lambda _: None)
    # No name has a part of so many letters: to look it up is a UnicodeError.
    url = f"http://{'a' * 64}.example/secret"
    with studio_of(tmp_path / "p", pairs=1, webhook=url) as studio:
        studio.visit().answer()
    (line,) = [text for text in caplog.messages if "webhook" in text]
    assert (
        "the webhook could not be notified: " in line and "\n" not in line and "secret" not in line
    )
    with serving(tmp_path / "p", studio.tokens, webhook=hook.url) as studio:
        visitor = studio.visit()
        again = {"pair": 1, "similarity": 0.9, "difference": 0.1, "key": "revised-1"}
        again["replaces"] = studio.answers()[0].id
        assert visitor.post(f"{visitor.home}/api/answer", again).status_code == 200
    assert hook.paths == ["/judged"]
