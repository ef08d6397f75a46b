"""Requests from people who mean harm: other hosts and sites, forged tokens, odd wires."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from browser import LiveStudio, live_studio
from hostile import client, folder, tokens
from pairlearn.studio import Project, Store
from pairlearn.studio.server import make_app
from pairlearn.studio.server.security import Hosts, masked
from test_studio_web import HERE, Visitor

__all__ = ["client", "folder", "tokens"]  # fixtures

GOOD = {"similarity": 0.5, "difference": 0.0, "seconds": 1.0, "key": "form-000001"}

ADDRESSES = [
    "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd",
    "/static/%5c..%5capp.py", "/static/.%00./app.py", "/project.json", "/answers.sqlite",
    "/items/00.png", "/a/", "/a/x/y", "/.git/config", "/static/", "//evil.example/annotate",
]  # fmt: skip

HOSTS = [
    "evil.example", "evil.example:8337", "127.0.0.1.evil.example", "localhost.evil.example",
    "evil.example@127.0.0.1", "127.0.0.1:8337@evil.example", "127.0.0.1#evil.example",
    "0x7f000001.", "127.0.0.1:notaport", "[::1", "10.0.0.7", "studio.example",
]  # fmt: skip


@pytest.fixture(scope="module")
def live(folder: Path, tokens: dict[str, str]) -> Iterator[LiveStudio]:
    with live_studio(folder) as studio:
        yield studio


@pytest.fixture
def ann(client: TestClient, tokens: dict[str, str]) -> Visitor:
    return Visitor(client, tokens["ann"])


@pytest.fixture(autouse=True)
def nothing_is_stored(folder: Path, tokens: dict[str, str]) -> Iterator[None]:
    yield
    with Store.open(Project.load(folder)) as store:
        assert store.answers(current=False) == []
        assert [one.name for one in store.annotators()] == ["ann", "bob"]


def own_pair(ann: Visitor) -> int:
    pair: int = ann.client.get("/annotate/1/api/task").json()["task"]["pair"]
    return pair


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_that_lead_nowhere(ann: Visitor, address: str) -> None:
    reply = ann.client.request("GET", HERE + address, follow_redirects=False)
    assert reply.status_code in (404, 405, 421), reply.status_code
    assert "import" not in reply.text and "root:" not in reply.text


@pytest.mark.parametrize("host", HOSTS)
def test_other_host_names(client: TestClient, tokens: dict[str, str], host: str) -> None:
    reply = client.get(f"/a/{tokens['ann']}", headers={"Host": host}, follow_redirects=False)
    assert reply.status_code == 421 and "set-cookie" not in reply.headers


def test_two_host_names(client: TestClient) -> None:
    reply = client.get("/", headers=[(b"Host", b"127.0.0.1"), (b"Host", b"evil.example")])
    assert reply.status_code == 421


def test_public_studio_answers_to_addresses_and_its_own_name_only() -> None:
    hosts = Hosts(public=True, names=frozenset({"studio.example"}))
    assert (
        hosts.admits("10.0.0.7:8337")
        and hosts.admits("[fe80::1]")
        and hosts.admits("STUDIO.example")
    )
    assert not hosts.admits("evil.example") and not hosts.admits("") and not hosts.admits("a b")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://127.0.0.1:8337.evil.example"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": HERE, "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_changes_from_other_sites(ann: Visitor, headers: dict[str, str]) -> None:
    body = GOOD | {"pair": own_pair(ann)}
    assert ann.post("/annotate/1/api/answer", body, **headers).status_code == 403
    assert ann.post("/annotate/1/api/undo", {}, **headers).status_code == 403


@pytest.mark.parametrize("form", ["", "0" * 64, "x", "é", "a" * 10_000])
def test_forged_form_tokens(ann: Visitor, form: str) -> None:
    reply = ann.client.post(
        "/annotate/1/api/answer",
        json=GOOD | {"pair": own_pair(ann)},
        headers={"X-Studio-Form": form.encode("latin-1")},  # type: ignore[dict-item]
    )
    assert reply.status_code == 403


def test_form_of_another_session(ann: Visitor, client: TestClient, tokens: dict[str, str]) -> None:
    # Another link was opened in the same browser: nobody answers under another's name.
    pair, bob = own_pair(ann), Visitor(client, tokens["bob"])
    reply = bob.post("/annotate/1/api/answer", GOOD | {"pair": pair})
    assert reply.status_code == 403 and "reload" in reply.json()["error"]
    assert ann.post("/annotate/2/api/answer", GOOD | {"pair": pair}).status_code == 403
    cookie = next(one for one in client.cookies.jar if one.path == "/annotate/2")
    client.cookies.clear()
    for path in ("/annotate/1", "/annotate/1/api/task", "/annotate/1/image?item=00.png"):
        headers = {"Cookie": f"{cookie.name}={cookie.value}"}
        assert client.get(path, headers=headers).status_code == 401


def test_no_form_token_at_all(ann: Visitor) -> None:
    assert (
        ann.client.post("/annotate/1/api/answer", json=GOOD | {"pair": own_pair(ann)}).status_code
        == 403
    )


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "A" * 5000, "%00", "%c3%a9", "' OR 1=1 --"])
def test_forged_links_and_cookies(
    client: TestClient, ann: Visitor, tokens: dict[str, str], token: str
) -> None:
    name = next(iter(client.cookies.keys()))
    client.cookies.clear()
    for role in "as":
        assert client.get(f"/{role}/{token}").status_code == 404
    reply = client.get("/annotate/1/api/task", headers={"Cookie": f"{name}={token}"})
    assert reply.status_code == 401
    assert client.get("/annotate/1", headers={"Cookie": f"{name}={token}"}).status_code == 401


def test_tokens_are_not_matched_by_parts(client: TestClient, tokens: dict[str, str]) -> None:
    token = tokens["ann"]
    for near in (token[:-1], token + "A", token.swapcase(), token + "%00", " " + token):
        assert client.get(f"/a/{near}").status_code == 404


def test_guessing_becomes_slow_and_harms_nobody_else(
    client: TestClient, tokens: dict[str, str]
) -> None:
    replies = [client.get(f"/a/{number:043}").status_code for number in range(30)]
    assert replies[:5] == [404] * 5 and replies[-1] == 429
    assert client.get(f"/a/{tokens['ann']}").status_code == 200


def test_one_annotator_cannot_flood(folder: Path, tokens: dict[str, str]) -> None:
    with TestClient(make_app(folder, requests_per_second=0.5), HERE) as client:
        Visitor(client, tokens["ann"])
        replies = [client.get("/annotate/1/api/task") for _ in range(5)]
        assert [reply.status_code for reply in replies] == [200, 429, 429, 429, 429]
        assert int(replies[-1].headers["retry-after"]) >= 1
        client.cookies.clear()
        Visitor(client, tokens["bob"])
        assert client.get("/annotate/2/api/task").status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods(ann: Visitor, method: str) -> None:
    reply = ann.client.request(method, "/annotate/1/api/answer", json=GOOD)
    assert reply.status_code == 405 and "access-control-allow-origin" not in reply.headers


def test_post_where_only_get_is(ann: Visitor) -> None:
    assert ann.post("/annotate/1", {}).status_code == 405
    assert ann.client.get("/annotate/1/api/answer").status_code == 405


def test_headers_that_are_too_large(client: TestClient) -> None:
    assert client.get("/", headers={"X-Long": "x" * 20_000}).status_code == 431


def test_header_injection(client: TestClient, tokens: dict[str, str]) -> None:
    for path in (
        "/a/x%0d%0aSet-Cookie:%20a=b",
        "/%0d%0aLocation:%20//evil.example",
        "/annotate/1/image?item=%0d%0aX:1",
    ):
        reply = client.get(path, follow_redirects=False)
        assert reply.status_code in (401, 404)
        assert "set-cookie" not in reply.headers and "location" not in reply.headers
    assert "\n" not in masked("/x\nINFO forged line") and "\x1b" not in masked("/\x1b[2J")


def test_every_reply_carries_the_headers(client: TestClient, tokens: dict[str, str]) -> None:
    paths = [
        "/",
        f"/a/{tokens['ann']}",
        "/annotate/1",
        "/annotate/1/api/task",
        "/static/annotate.js",
        "/nowhere",
    ]
    replies = [client.get(path, follow_redirects=False) for path in paths]
    replies += [client.get("/", headers={"Host": "evil.example"}), client.post("/", content=b"")]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in reply.headers


def test_an_error_inside_tells_nothing(
    folder: Path, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(folder)
    with TestClient(app, HERE, raise_server_exceptions=False) as client:
        Visitor(client, tokens["ann"])

        def broken(*_: object) -> None:
            raise RuntimeError("secret path /home/x")

        monkeypatch.setattr(Store, "next_task", broken)
        reply = client.get("/annotate/1/api/task")
        assert reply.status_code == 500 and "secret" not in reply.text
        assert "content-security-policy" in reply.headers


RAW = [
    (b"GET /static/../app.py HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", (404,)),
    (b"GET /static/%2e%2e/%2e%2e/project.py HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", (404,)),
    (b"GET /static//etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", (404,)),
    (b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", (421,)),
    (b"GET / HTTP/1.1\r\n\r\n", (400, 421)),
    (b"GET / HTTP/1.0\r\n\r\n", (400, 421)),
    (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n", (400, 421)),
    (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n", (400,)),
    (b"\x16\x03\x01\x02\x00\x01\x00", (400,)),
    (
        b"POST /annotate/1/api/answer HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/json\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
        (400, 401),
    ),
]


@pytest.mark.parametrize(("sent", "expected"), RAW, ids=range(len(RAW)))
def test_what_no_client_library_would_send(
    live: LiveStudio, sent: bytes, expected: tuple[int, ...]
) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=5) as wire:
        wire.sendall(sent)
        reply = wire.recv(65536)
    assert int(reply.split(b" ")[1]) in expected
    assert b"import" not in reply and b"root:" not in reply
