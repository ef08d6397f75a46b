"""Hostile requests: each is refused or made harmless, and nothing is stored."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from browser import live_studio, make_project
from pairlearn_studio import Items, Project, Store
from pairlearn_studio.server import make_app
from pairlearn_studio.server.security import BODY_LIMIT, Hosts, masked
from studio_client import HERE, Visitor, serving

ANSWER, UNDO, IMAGE = "/annotate/1/api/answer", "/annotate/1/api/undo", "/annotate/1/image"
LINKS, BASE = "/api/annotators", f"{HERE}/p"
GOOD = {"similarity": 0.5, "difference": 0.0, "seconds": 1.0, "key": "form-000001"}
JSON = "application/json"


class Target(NamedTuple):
    """A studio with hostile files among its items, and two people who have opened their links."""

    folder: Path
    tokens: dict[str, str]
    client: TestClient
    ann: Visitor
    boss: Visitor
    cookies: dict[str, str]

    def send(self, method: str, path: str, body: Any, headers: dict[Any, Any]) -> Any:
        """Send a request as a page of either person does, except for the given parts."""
        if isinstance(body, dict) and path == ANSWER:
            body = {"pair": self.ann.task()["pair"]} | GOOD | body
        form = (self.boss if path.startswith(LINKS) else self.ann).form
        usual = {"X-Studio-Form": form, "Content-Type": JSON} if method != "GET" else {}
        sent = [(name, value) for name, value in (usual | headers).items() if value is not None]
        data = body if isinstance(body, (bytes, Iterator)) else json.dumps(body).encode()
        content = None if method == "GET" else data
        return self.client.request(
            method, path, content=content, headers=sent, follow_redirects=False
        )


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("hostile") / "p"
    _, tokens, boss = make_project(folder, "image", pairs=12, names=("ann", "bob"))
    (folder / "items" / "link.png").symlink_to("/etc/passwd")
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>"
    (folder / "items" / "00.png").write_bytes(svg)
    (folder / "items" / "01.png").write_text("<script>alert(1)</script>")
    with TestClient(make_app(folder), BASE) as client:
        ann, supervisor = Visitor(client, tokens["ann"]), Visitor(client, boss, "s")
        cookies = {c.path: f"{c.name}={c.value}" for c in client.cookies.jar}
        yield Target(folder, tokens | {"boss": boss}, client, ann, supervisor, cookies)
    with Store.open(Project.load(folder)) as store:
        assert store.answers(current=False) == []
        assert [annotator.name for annotator in store.annotators()] == ["ann", "bob"]


def endless() -> Iterator[bytes]:
    for _ in range(BODY_LIMIT // 1024 + 2):
        yield b" " * 1024


FIELDS: list[dict[str, Any]] = [
    {"similarity": 1.0000001}, {"similarity": -1e-9}, {"similarity": 80}, {"similarity": "0.5"},
    {"similarity": True}, {"similarity": 10**400}, {"difference": -1.5}, {"difference": 2},
    {"difference": [0.1]}, {"difference": {"$gt": 0}}, {"similarity": None, "difference": None},
    {"seconds": -1}, {"seconds": 10**400}, {"seconds": "1"}, {"cant_say": True},
    {"cant_say": "yes"}, {"cant_say": 1}, {"note": "x" * 2001}, {"note": ["x"]},
    {"note": "\ud800"}, {"key": None}, {"key": "short"}, {"key": "k" * 65},
    {"key": "form-000001\nx"}, {"key": "'; DROP TABLE answer; --"}, {"key": "förm-00001"},
    {"pair": "1"}, {"pair": 1.5}, {"pair": -1}, {"pair": 2**70}, {"pair": True}, {"pair": None},
    {"annotator": 2}, {"__proto__": {"admin": True}},
]  # fmt: skip
BODIES = [
    b"", b"{", b"[]", b"1", b"null", b'{"pair":1,"similarity":NaN,"key":"form-000001"}',
    b'{"pair":1,"similarity":Infinity,"key":"form-000001"}',
    b'{"pair":1,"similarity":1e999,"key":"form-000001"}', b'{"pair":"\xff\xfe"}',
    '{"pair":1}'.encode("utf-16"), b'{"pair":1,"pair":2,"key":"form-000001"}', b"[" * 8000,
    b'{"pair":' + b"9" * 5000 + b"}",
]  # fmt: skip
KINDS = ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", None, "text/xml"]
PATHS = [
    "../project.json", "../../../../etc/passwd", "/etc/passwd", "..\\..\\secret", "items/../00.png",
    "./00.png", "00.png%00.txt", "%2e%2e%2fproject.json", "..%252fproject.json", "file:///etc/x",
    "....//project.json", "http://127.0.0.1/x.png", "~/.ssh/id_rsa", "", "00.png/", "00.PNG",
    "answers.sqlite", "link.png", "CON", "x" * 5000, "02.png&item=03.png", "%0d%0aX:1",
]  # fmt: skip
ADDRESSES = [
    "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd",
    "/static/%5c..%5capp.py", "/static/.%00./app.py", "/project.json", "/answers.sqlite",
    "/items/00.png", "/a/", "/a/x/y", "/.git/config", "/static/", "/annotate",
    "/a/x%0d%0aSet-Cookie:%20a=b", "/%0d%0aLocation:%20//evil.example",
]  # fmt: skip
HOSTS = [
    "evil.example", "evil.example:8337", "127.0.0.1.evil.example", "localhost.evil.example",
    "evil.example@127.0.0.1", "127.0.0.1:8337@evil.example", "127.0.0.1#evil.example",
    "0x7f000001.", "127.0.0.1:notaport", "[::1", "10.0.0.7", "studio.example",
]  # fmt: skip
ORIGINS = [
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:9999"},
    {"Origin": HERE + ".evil.example"}, {"Origin": ""}, {"Origin": "http://["},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
    {"Origin": HERE, "Sec-Fetch-Site": "cross-site"},
]  # fmt: skip
NAMES = ["", " ", "x" * 500, "a\nb", "a\x00b", "\ud800", 7, None, ["x"], "ann"]
NUMBERS = ["1", 1.5, -1, True, [1], 2**80]
TOKENS = ["x", "A" * 43, "A" * 5000, "%00", "%c3%a9", "' OR 1=1 --"]
CASES: list[tuple[int, str, str, Any, dict[Any, Any]]] = [
    *((400, "POST", ANSWER, change, {}) for change in FIELDS),
    *((400, "POST", path, body, {}) for body in BODIES for path in (ANSWER, LINKS)),
    *((415, "POST", ANSWER, {}, {"Content-Type": kind}) for kind in KINDS),
    (413, "POST", ANSWER, b'{"note":"' + b"x" * BODY_LIMIT + b'"}', {}),
    (413, "POST", ANSWER, endless(), {}),
    *((413, "POST", UNDO, {}, {b"Content-Length": length.encode()})
      for length in ("-1", "1e3", "99999999999999999999", "0x10", "１２")),
    *((404, "POST", ANSWER, {"pair": pair}, {}) for pair in (999, 0, 2**52)),
    *((404, "GET", f"{IMAGE}?item={path}", None, {}) for path in PATHS),
    *((415, "GET", f"{IMAGE}?item={name}.png", None, {}) for name in ("00", "01")),
    *((404, "GET", address, None, {}) for address in ADDRESSES),
    *((421, "GET", "/", None, {"Host": host}) for host in HOSTS),
    *((403, "POST", path, {}, origin) for origin in ORIGINS for path in (ANSWER, UNDO)),
    *((403, "POST", ANSWER, {}, {"X-Studio-Form": form and form.encode("latin-1")})
      for form in (None, "", "0" * 64, "x", "é", "a" * 10_000)),
    *((400, "POST", LINKS, {"name": name}, {}) for name in NAMES),
    *((400, "POST", UNDO, {"answer": number}, {}) for number in NUMBERS),
    (400, "POST", UNDO, {"pair": 1}, {}),
    *((400, "GET", f"/annotate/1/api/ahead?pair={pair}", None, {})
      for pair in ("", "-1", "1.5", "１", "9" * 400, "x")),
    *((404, "POST", f"{LINKS}/{what}", {"annotator": 99}, {}) for what in ("renew", "end")),
    *((404, "GET", f"/{role}/{token}", None, {}) for token in TOKENS for role in "as"),
    *((405, method, ANSWER, {}, {}) for method in ("PUT", "DELETE", "PATCH", "TRACE", "BREW")),
    (405, "POST", "/annotate/1", {}, {}), (405, "GET", ANSWER, None, {}),
]  # fmt: skip


def check(reply: Any) -> None:
    """Check the security headers, which every reply has."""
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert reply.headers["x-frame-options"] == "DENY"
    assert reply.headers["cache-control"] in ("no-store", "no-cache")
    assert "server" not in reply.headers
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize(
    ("status", "method", "path", "body", "headers"), CASES, ids=map(str, range(len(CASES)))
)
def test_what_no_page_sends(
    target: Target, status: int, method: str, path: str, body: Any, headers: dict[Any, Any]
) -> None:
    reply = target.send(method, path, body, headers)
    assert reply.status_code == status, (method, path[:80], str(body)[:80], reply.text[:200])
    check(reply)
    assert "set-cookie" not in reply.headers and "location" not in reply.headers
    assert "import" not in reply.text and "root:" not in reply.text and "<svg" not in reply.text
    if "/api/" in path:
        assert reply.json()["error"]


def test_good_replies_carry_the_headers_too(target: Target) -> None:
    link = f"/a/{target.tokens['ann']}"
    for path in ("/", link, "/annotate/1", "/annotate/1/api/task", "/static/annotate.js"):
        check(target.client.get(path, follow_redirects=False))
    two = [(b"Host", b"127.0.0.1"), (b"Host", b"evil.example")]
    assert target.client.get("/", headers=two).status_code == 421


def test_one_person_is_nobody_else(target: Target) -> None:
    """No cookie, form or link of one person opens another's pages."""
    client, ann, task = target.client, target.ann, "/annotate/1/api/task"
    with Store.open(Project.load(target.folder)) as store:
        bobs = store.next_task(2)
    assert bobs is not None
    assert ann.post(ANSWER, GOOD | {"pair": bobs.pair}).status_code == 404
    for path in (LINKS, f"{LINKS}/renew", f"{LINKS}/end"):
        headers = {"Cookie": target.cookies["/p/annotate/1"], "X-Studio-Form": ann.form}
        bare = TestClient(client.app, BASE)
        assert bare.post(path, json={"annotator": 2}, headers=headers).status_code == 401
    name, token = target.cookies["/p/annotate/1"].split("=", 1)
    for cookie in (*TOKENS, "", token[:-1], token + "A", token.swapcase(), target.tokens["bob"]):
        for path in (task, "/annotate/1", f"{IMAGE}?item=00.png"):
            reply = TestClient(client.app, BASE).get(path, headers={"Cookie": f"{name}={cookie}"})
            assert reply.status_code == 401
    for near in (token[:-1], token + "A", token.swapcase(), token + "%00", " " + token):
        assert client.get(f"/a/{near}").status_code == 404
    for role, other, closed in (("s", "ann", "/annotate/1"), ("a", "boss", "/supervisor")):
        assert client.get(f"/{role}/{target.tokens[other]}").status_code == 404
        alone = TestClient(client.app, BASE)
        Visitor(alone, target.tokens["boss" if other == "ann" else "ann"], role)
        assert alone.get(closed).status_code == 401
    bob = Visitor(TestClient(client.app, BASE), target.tokens["bob"])
    reply = client.post(ANSWER, json=GOOD | {"pair": 1}, headers={"X-Studio-Form": bob.form})
    assert reply.status_code == 403 and "reload" in reply.json()["error"]


def test_an_item_that_became_a_link_out_of_the_project(target: Target) -> None:
    path, secret = target.folder / "items" / "02.png", target.folder.parent / "secret.png"
    path.rename(secret)
    path.symlink_to(secret)
    assert target.client.get(f"{IMAGE}?item=02.png").status_code == 415
    secret.replace(path)


def test_an_error_inside_is_one_line_of_the_log_and_tells_nothing(
    target: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret path /home/x")

    monkeypatch.setattr(Store, "next_task", broken)
    client = TestClient(target.client.app, BASE, raise_server_exceptions=False)
    client.cookies = target.client.cookies
    reply = client.get("/annotate/1/api/task")
    assert reply.status_code == 500 and "secret" not in reply.text
    check(reply)
    ours = [line for line in caplog.records if line.name.startswith(("pairlearn", "uvicorn"))]
    (line,) = [line for line in ours if line.levelname != "INFO"]
    assert line.exc_info is None
    assert line.getMessage().endswith("/api/task: RuntimeError('secret path /home/x')")


def test_names_of_a_public_studio_and_lines_of_the_log() -> None:
    hosts = Hosts(public=True, names=frozenset({"studio.example"}))
    assert all(map(hosts.admits, ("10.0.0.7:8337", "[fe80::1]", "STUDIO.example")))
    assert not any(map(hosts.admits, ("evil.example", "", "a b")))
    assert "\n" not in masked("/x\nINFO forged line") and "\x1b" not in masked("/\x1b[2J")


SCRIPTS = [
    "<script>alert(1)</script>", "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>', "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}", "javascript:alert(1)", "\u202eevil\u2066", "]]><![CDATA[<b>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
]  # fmt: skip


@pytest.mark.parametrize("evil", SCRIPTS)
@pytest.mark.parametrize("kind", ["text", "table"])
def test_scripts_in_items_and_in_the_project(tmp_path: Path, kind: str, evil: str) -> None:
    names = ("title", "positive_name", "negative_name", "help")
    words = dict.fromkeys((*names, "question_similarity", "question_difference"), evil)
    project, tokens, boss = make_project(tmp_path, kind, pairs=3, **words)
    if kind == "table":
        cell = evil.replace('"', '""')
        rows = [f'{number},"{cell}"\n' for number in Items.open(project).ids]
        (tmp_path / project.items).write_text("".join(["id,text\n", *rows]), "utf-8")
    for path in (tmp_path / "items").glob("*.txt"):
        path.write_text(evil, "utf-8")
    with serving(tmp_path, tokens | {"boss": boss}) as studio:
        ann = studio.visit()
        page = studio.client.get(ann.home).text
        task = studio.client.get(f"{ann.home}/api/task")
        assert ann.answer(note=evil).status_code == 200
        overview = studio.client.get(studio.visit("boss").home).text
    # As data it is untouched, and its type is not one that a browser would run.
    assert task.headers["content-type"] == JSON
    left = task.json()["task"]["left"]
    assert left["text"] == evil if kind == "text" else left["rows"] == [["text", evil]]
    for text in (page, overview):
        assert evil not in text or not re.search("[<>\"']", evil)
        assert text.count("<script") == 1 and "49" not in re.findall(r"<h1>(.*)</h1>", text)[0]
        assert not re.search(r"<(svg onload|img|iframe)", text)


GET = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n"
RAW = [
    (GET % (b"/static/../app.py", b""), (404,)),
    (GET % (b"/static/%2e%2e/%2e%2e/project.py", b""), (404,)),
    (GET % (b"/static//etc/passwd", b""), (404,)),
    (b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", (421,)),
    (b"GET / HTTP/1.1\r\n\r\n", (400, 421)),
    (b"GET / HTTP/1.0\r\n\r\n", (400, 421)),
    (GET % (b"/", b"Host: evil.example\r\n"), (400, 421)),
    (GET % (b"/", b"X: a\x00b\r\n"), (400,)),
    (b"\x16\x03\x01\x02\x00\x01\x00", (400,)),
    (
        b"POST /p/annotate/1/api/answer HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/json\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
        (400, 401),
    ),
]


def test_what_no_client_library_would_send(target: Target) -> None:
    with live_studio(target.folder) as studio:
        for sent, expected in RAW:
            with socket.create_connection(("127.0.0.1", studio.port), timeout=120) as wire:
                wire.sendall(sent)
                reply = wire.recv(65536)
            assert int(reply.split(b" ")[1]) in expected, sent
            assert b"import" not in reply and b"root:" not in reply
