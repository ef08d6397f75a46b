"""Input from people who mean harm: each is refused or made harmless, and nothing is stored."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from browser import LiveStudio, live_studio, make_project
from pairlearn.annotate import Plan, Project, Store
from pairlearn.annotate.label_studio import LabelStudioError, read_label_studio
from pairlearn.annotate.server import make_app
from pairlearn.annotate.server.security import BODY_LIMIT, Hosts, masked
from test_annotate_web import HERE, Visitor

SCRIPTS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "\u202eevil\u2066",
    "]]><![CDATA[<b>",
]

GOOD = {"similarity": 0.5, "difference": 0.0, "seconds": 1.0, "key": "form-000001"}

# (name, what replaces a field of a good answer)
FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("similarity above 1", {"similarity": 1.0000001}),
    ("similarity below 0", {"similarity": -1e-9}),
    ("similarity in percent", {"similarity": 80}),
    ("difference below -1", {"difference": -1.5}),
    ("difference above 1", {"difference": 2}),
    ("a number as text", {"similarity": "0.5"}),
    ("true as a number", {"similarity": True}),
    ("a list as a number", {"difference": [0.1]}),
    ("an object as a number", {"difference": {"$gt": 0}}),
    ("a huge whole number", {"similarity": 10**400}),
    ("negative seconds", {"seconds": -1}),
    ("huge seconds", {"seconds": 10**400}),
    ("text for seconds", {"seconds": "1"}),
    ("nothing said", {"similarity": None, "difference": None}),
    ("can't say with an answer", {"cant_say": True}),
    ("can't say as text", {"cant_say": "yes"}),
    ("can't say as 1", {"cant_say": 1}),
    ("a note of 2,001 letters", {"note": "x" * 2001}),
    ("a note that is no text", {"note": ["x"]}),
    ("half a surrogate in the note", {"note": "\ud800"}),
    ("no key", {"key": None}),
    ("a short key", {"key": "short"}),
    ("a long key", {"key": "k" * 65}),
    ("a key with a line break", {"key": "form-000001\nx"}),
    ("a key of SQL", {"key": "'; DROP TABLE answer; --"}),
    ("a key in other letters", {"key": "förm-00001"}),
    ("a pair as text", {"pair": "1"}),
    ("a pair as a fraction", {"pair": 1.5}),
    ("a negative pair", {"pair": -1}),
    ("a pair beyond 64 bits", {"pair": 2**70}),
    ("true as a pair", {"pair": True}),
    ("no pair", {"pair": None}),
    ("an unknown field", {"annotator": 2}),
    ("a prototype", {"__proto__": {"admin": True}}),
]

# (name, body, content type, status)
BODIES: list[tuple[str, bytes, str, int]] = [
    ("empty", b"", "application/json", 400),
    ("not JSON", b"{", "application/json", 400),
    ("a list", b"[]", "application/json", 400),
    ("a number", b"1", "application/json", 400),
    ("null", b"null", "application/json", 400),
    ("NaN", b'{"pair":1,"similarity":NaN,"key":"form-000001"}', "application/json", 400),
    ("infinity", b'{"pair":1,"similarity":Infinity,"key":"form-000001"}', "application/json", 400),
    (
        "-infinity",
        b'{"pair":1,"difference":-Infinity,"key":"form-000001"}',
        "application/json",
        400,
    ),
    ("overflow", b'{"pair":1,"similarity":1e999,"key":"form-000001"}', "application/json", 400),
    ("not UTF-8", b'{"pair":"\xff\xfe"}', "application/json", 400),
    ("UTF-16", '{"pair":1}'.encode("utf-16"), "application/json", 400),
    ("a name twice", b'{"pair":1,"pair":2,"key":"form-000001"}', "application/json", 400),
    ("deeply nested", b"[" * 8000, "application/json", 400),
    ("a number of 5,000 digits", b'{"pair":' + b"9" * 5000 + b"}", "application/json", 400),
    ("too large", b'{"note":"' + b"x" * BODY_LIMIT + b'"}', "application/json", 413),
    ("a form", b"pair=1&similarity=0.5&key=form-000001", "application/x-www-form-urlencoded", 415),
    ("plain text", b'{"pair":1}', "text/plain", 415),
    ("multipart", b"--x\r\n\r\n--x--", "multipart/form-data; boundary=x", 415),
    ("no content type", b'{"pair":1}', "", 415),
    ("XML", b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>", "application/xml", 415),
]

PATHS = [
    "../project.json", "../../../../etc/passwd", "/etc/passwd", "..\\..\\secret", "items/../00.png",
    "./00.png", "00.png\x00.txt", "%2e%2e%2fproject.json", "..%252fproject.json",
    "....//project.json", "file:///etc/passwd", "http://127.0.0.1/x.png", "~/.ssh/id_rsa", "",
    "00.png/", "00.PNG",
    "answers.sqlite", "link.png", "CON", "x" * 5000,
]  # fmt: skip

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
    pair: int = ann.client.get("/api/task").json()["task"]["pair"]
    return pair


@pytest.mark.parametrize("change", [c for _, c in FIELDS], ids=[n for n, _ in FIELDS])
def test_answers_that_no_page_sends(ann: Visitor, change: dict[str, Any]) -> None:
    body = {"pair": own_pair(ann)} | GOOD | change
    reply = ann.client.post(
        "/api/answer",
        content=json.dumps(body).encode(),
        headers={"X-Studio-Form": ann.form, "Content-Type": "application/json"},
    )
    assert reply.status_code == 400 and reply.json()["error"]


@pytest.mark.parametrize(
    ("body", "kind", "status"), [case[1:] for case in BODIES], ids=[case[0] for case in BODIES]
)
def test_bodies_that_no_page_sends(ann: Visitor, body: bytes, kind: str, status: int) -> None:
    headers = {"X-Studio-Form": ann.form} | ({"Content-Type": kind} if kind else {})
    for path in ("/api/answer", "/api/annotators"):
        reply = ann.client.post(path, content=body, headers=headers)
        assert reply.status_code in ((status,) if path == "/api/answer" else (status, 401))


def test_body_without_a_length_is_counted(ann: Visitor) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(BODY_LIMIT // 1024 + 2):
            yield b" " * 1024

    reply = ann.client.post(
        "/api/answer",
        content=endless(),
        headers={"X-Studio-Form": ann.form, "Content-Type": "application/json"},
    )
    assert reply.status_code == 413


@pytest.mark.parametrize("length", ["-1", "1e3", "99999999999999999999", "0x10", "１２"])
def test_lengths_that_are_lies(ann: Visitor, length: str) -> None:
    reply = ann.client.post(
        "/api/undo",
        content=b"{}",
        headers=[
            (b"X-Studio-Form", ann.form.encode()),
            (b"Content-Type", b"application/json"),
            (b"Content-Length", length.encode()),
        ],
    )
    assert reply.status_code == 413


def test_pairs_of_others_and_of_nobody(ann: Visitor, folder: Path) -> None:
    with Store.open(Project.load(folder)) as store:
        bobs = store.next_task(store.annotators()[1].id)
        assert bobs is not None
    for pair in (bobs.pair, 999, 0, 2**52):
        reply = ann.post("/api/answer", GOOD | {"pair": pair})
        assert reply.status_code == 404, pair


@pytest.mark.parametrize("path", PATHS)
def test_images_by_path(ann: Visitor, path: str) -> None:
    reply = ann.client.get("/image", params={"item": path})
    assert reply.status_code == 404 and reply.headers["content-type"] == "application/json"
    assert ann.client.get("/image", params={"item": ["02.png", path]}).status_code == 404


@pytest.mark.parametrize("item", ["00.png", "01.png"])
def test_files_that_only_claim_to_be_pictures(ann: Visitor, item: str) -> None:
    reply = ann.client.get("/image", params={"item": item})
    assert reply.status_code == 415 and "script" not in reply.text


def test_an_item_that_became_a_link_out_of_the_project(ann: Visitor, folder: Path) -> None:
    path = folder / "items" / "02.png"
    kept = path.read_bytes()
    secret = folder.parent / "secret.png"
    secret.write_bytes(kept)
    path.unlink()
    path.symlink_to(secret)
    try:
        assert ann.client.get("/image?item=02.png").status_code == 415
    finally:
        path.unlink()
        path.write_bytes(kept)


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
    assert ann.post("/api/answer", body, **headers).status_code == 403
    assert ann.post("/api/undo", {}, **headers).status_code == 403


@pytest.mark.parametrize("form", ["", "0" * 64, "x", "é", "a" * 10_000])
def test_forged_form_tokens(ann: Visitor, form: str) -> None:
    reply = ann.client.post(
        "/api/answer",
        json=GOOD | {"pair": own_pair(ann)},
        headers={"X-Studio-Form": form.encode("latin-1")},  # type: ignore[dict-item]
    )
    assert reply.status_code == 403


def test_form_of_another_session(ann: Visitor, client: TestClient, tokens: dict[str, str]) -> None:
    # Another link was opened in the same browser: an answer must not go under a wrong name.
    pair = own_pair(ann)
    Visitor(client, tokens["bob"])
    reply = ann.post("/api/answer", GOOD | {"pair": pair})
    assert reply.status_code == 403 and "reload" in reply.json()["error"]


def test_no_form_token_at_all(ann: Visitor) -> None:
    assert ann.client.post("/api/answer", json=GOOD | {"pair": own_pair(ann)}).status_code == 403


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "A" * 5000, "%00", "%c3%a9", "' OR 1=1 --"])
def test_forged_links_and_cookies(
    client: TestClient, ann: Visitor, tokens: dict[str, str], token: str
) -> None:
    name = next(iter(client.cookies.keys()))
    client.cookies.clear()
    for role in "as":
        assert client.get(f"/{role}/{token}").status_code == 404
    reply = client.get("/api/task", headers={"Cookie": f"{name}={token}"})
    assert reply.status_code == 401
    assert client.get("/annotate", headers={"Cookie": f"{name}={token}"}).status_code == 401


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
        replies = [client.get("/api/task") for _ in range(5)]
        assert [reply.status_code for reply in replies] == [200, 429, 429, 429, 429]
        assert int(replies[-1].headers["retry-after"]) >= 1
        client.cookies.clear()
        Visitor(client, tokens["bob"])
        assert client.get("/api/task").status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods(ann: Visitor, method: str) -> None:
    reply = ann.client.request(method, "/api/answer", json=GOOD)
    assert reply.status_code == 405 and "access-control-allow-origin" not in reply.headers


def test_post_where_only_get_is(ann: Visitor) -> None:
    assert ann.post("/annotate", {}).status_code == 405
    assert ann.client.get("/api/answer").status_code == 405


def test_headers_that_are_too_large(client: TestClient) -> None:
    assert client.get("/", headers={"X-Long": "x" * 20_000}).status_code == 431


def test_header_injection(client: TestClient, tokens: dict[str, str]) -> None:
    for path in (
        "/a/x%0d%0aSet-Cookie:%20a=b",
        "/%0d%0aLocation:%20//evil.example",
        "/image?item=%0d%0aX:1",
    ):
        reply = client.get(path, follow_redirects=False)
        assert reply.status_code in (401, 404)
        assert "set-cookie" not in reply.headers and "location" not in reply.headers
    assert "\n" not in masked("/x\nINFO forged line") and "\x1b" not in masked("/\x1b[2J")


def test_every_reply_carries_the_headers(client: TestClient, tokens: dict[str, str]) -> None:
    paths = [
        "/",
        f"/a/{tokens['ann']}",
        "/annotate",
        "/api/task",
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
        reply = client.get("/api/task")
        assert reply.status_code == 500 and "secret" not in reply.text
        assert "content-security-policy" in reply.headers


def test_a_full_disk_makes_the_page_try_again(
    folder: Path, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with TestClient(make_app(folder), HERE) as client:
        ann = Visitor(client, tokens["ann"])
        pair = own_pair(ann)

        def full(*_: object) -> None:
            raise OSError("No space left on device")

        monkeypatch.setattr(Store, "submit", full)
        assert ann.post("/api/answer", GOOD | {"pair": pair}).status_code == 503


@pytest.mark.parametrize("evil", SCRIPTS)
def test_scripts_in_items_and_in_the_project(tmp_path: Path, evil: str) -> None:
    rows = [f'{n},"{evil.replace(chr(34), chr(34) * 2)}"' for n in range(4)]
    (tmp_path / "items.csv").write_text("\n".join(["id,text", *rows]) + "\n", "utf-8")
    project = Project(
        tmp_path, "table", "items.csv", Plan(3),
        title=evil, positive_name=evil, negative_name=evil, help=evil,
        question_similarity=evil, question_difference=evil,
    )  # fmt: skip
    project.save()
    with Store.create(project) as store:
        _, token = store.add_annotator("ann")
        boss = store.supervisor_token
    with TestClient(make_app(tmp_path), HERE) as client:
        page = client.get(f"/a/{token}").text
        task = client.get("/api/task")
        ann = Visitor(client, token)
        assert ann.answer(note=evil).status_code == 200
        overview = client.get(f"/s/{boss}").text
    # As data it is untouched, and its type is not one that a browser would run.
    assert task.headers["content-type"] == "application/json"
    assert task.json()["task"]["left"]["rows"] == [["text", evil]]
    for text in (page, overview):
        assert evil not in text or not re.search("[<>\"']", evil)
        assert (
            len(re.findall("<script", text)) == 1
            and "49" not in re.findall(r"<h1>(.*)</h1>", text)[0]
        )
        assert not re.search(r"<(svg onload|img|iframe)", text)


@pytest.mark.parametrize("name", ["", " ", "x" * 500, "a\nb", "a\x00b", "\ud800", 7, None, ["x"]])
def test_names_that_are_none(client: TestClient, tokens: dict[str, str], name: Any) -> None:
    boss = Visitor(client, tokens["boss"], "s")
    reply = client.post(
        "/api/annotators",
        content=json.dumps({"name": name}).encode(),
        headers={"X-Studio-Form": boss.form, "Content-Type": "application/json"},
    )
    assert reply.status_code == 400


def test_annotators_cannot_do_what_the_supervisor_does(ann: Visitor) -> None:
    for path, body in (
        ("/api/annotators", {"name": "eve"}),
        ("/api/annotators/renew", {"annotator": 2}),
        ("/api/annotators/end", {"annotator": 2}),
    ):
        assert ann.post(path, body).status_code == 401


def test_undo_with_odd_numbers(ann: Visitor) -> None:
    for number in ("1", 1.5, -1, True, [1], 2**80):
        assert ann.post("/api/undo", {"answer": number}).status_code == 400
    assert ann.post("/api/undo", {"pair": 1}).status_code == 400
    assert ann.post("/api/undo", {"answer": 12345}).json()["undone"] is False


def test_ahead_with_odd_numbers(ann: Visitor) -> None:
    for pair in ("", "-1", "1.5", "１", "9" * 400, "x"):
        assert ann.client.get("/api/ahead", params={"pair": pair}).status_code == 400


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
        b"POST /api/answer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
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


TASK: dict[str, Any] = {"id": 1, "data": {"left_id": "00.png", "right_id": "01.png"}}


def _result(value: Any, name: str = "similarity", kind: str = "number") -> dict[str, Any]:
    return {"from_name": name, "to_name": "left", "type": kind, "value": value}


def _task(*results: Any) -> list[dict[str, Any]]:
    return [TASK | {"annotations": [{"id": 1, "completed_by": 1, "result": list(results)}]}]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"null", b'{"tasks": []}', b'[1]', b'[{"id": 1}]', b"\xff\xfe[]", b"[" * 100_000,
        json.dumps([TASK | {"annotations": 7}]).encode(),
        json.dumps([TASK | {"annotations": [{"result": "x"}]}]).encode(),
        json.dumps(_task("x")).encode(),
        json.dumps(_task(_result({"number": 180}))).encode(),
        json.dumps(_task(_result({"number": "80"}))).encode(),
        json.dumps(_task(_result({"number": float("nan")}))).encode(),
        json.dumps(_task(_result(None))).encode(),
        json.dumps(_task(_result({"number": 80}), _result({"number": 20}))).encode(),
    ],
    ids=range(16),
)  # fmt: skip
def test_malformed_label_studio_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(content)
    with pytest.raises(LabelStudioError):
        read_label_studio(path)
