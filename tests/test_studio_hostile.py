"""Input from people who mean harm: each is refused or made harmless, and nothing is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from hostile import client, folder, tokens
from pairlearn.studio import Plan, Project, Store
from pairlearn.studio.server import make_app
from pairlearn.studio.server.security import BODY_LIMIT
from test_studio_web import HERE, Visitor

__all__ = ["client", "folder", "tokens"]  # fixtures

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


@pytest.mark.parametrize("change", [c for _, c in FIELDS], ids=[n for n, _ in FIELDS])
def test_answers_that_no_page_sends(ann: Visitor, change: dict[str, Any]) -> None:
    body = {"pair": own_pair(ann)} | GOOD | change
    reply = ann.client.post(
        "/annotate/1/api/answer",
        content=json.dumps(body).encode(),
        headers={"X-Studio-Form": ann.form, "Content-Type": "application/json"},
    )
    assert reply.status_code == 400 and reply.json()["error"]


@pytest.mark.parametrize(
    ("body", "kind", "status"), [case[1:] for case in BODIES], ids=[case[0] for case in BODIES]
)
def test_bodies_that_no_page_sends(ann: Visitor, body: bytes, kind: str, status: int) -> None:
    headers = {"X-Studio-Form": ann.form} | ({"Content-Type": kind} if kind else {})
    for path in ("/annotate/1/api/answer", "/api/annotators"):
        reply = ann.client.post(path, content=body, headers=headers)
        assert reply.status_code in (
            (status,) if path == "/annotate/1/api/answer" else (status, 401)
        )


def test_body_without_a_length_is_counted(ann: Visitor) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(BODY_LIMIT // 1024 + 2):
            yield b" " * 1024

    reply = ann.client.post(
        "/annotate/1/api/answer",
        content=endless(),
        headers={"X-Studio-Form": ann.form, "Content-Type": "application/json"},
    )
    assert reply.status_code == 413


@pytest.mark.parametrize("length", ["-1", "1e3", "99999999999999999999", "0x10", "１２"])
def test_lengths_that_are_lies(ann: Visitor, length: str) -> None:
    reply = ann.client.post(
        "/annotate/1/api/undo",
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
        reply = ann.post("/annotate/1/api/answer", GOOD | {"pair": pair})
        assert reply.status_code == 404, pair


@pytest.mark.parametrize("path", PATHS)
def test_images_by_path(ann: Visitor, path: str) -> None:
    reply = ann.client.get("/annotate/1/image", params={"item": path})
    assert reply.status_code == 404 and reply.headers["content-type"] == "application/json"
    assert ann.client.get("/annotate/1/image", params={"item": ["02.png", path]}).status_code == 404


@pytest.mark.parametrize("item", ["00.png", "01.png"])
def test_files_that_only_claim_to_be_pictures(ann: Visitor, item: str) -> None:
    reply = ann.client.get("/annotate/1/image", params={"item": item})
    assert reply.status_code == 415 and "script" not in reply.text


def test_an_item_that_became_a_link_out_of_the_project(ann: Visitor, folder: Path) -> None:
    path = folder / "items" / "02.png"
    kept = path.read_bytes()
    secret = folder.parent / "secret.png"
    secret.write_bytes(kept)
    path.unlink()
    path.symlink_to(secret)
    try:
        assert ann.client.get("/annotate/1/image?item=02.png").status_code == 415
    finally:
        path.unlink()
        path.write_bytes(kept)


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
        task = client.get("/annotate/1/api/task")
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
        assert ann.post("/annotate/1/api/undo", {"answer": number}).status_code == 400
    assert ann.post("/annotate/1/api/undo", {"pair": 1}).status_code == 400
    assert ann.post("/annotate/1/api/undo", {"answer": 12345}).json()["undone"] is False


def test_ahead_with_odd_numbers(ann: Visitor) -> None:
    for pair in ("", "-1", "1.5", "１", "9" * 400, "x"):
        assert ann.client.get("/annotate/1/api/ahead", params={"pair": pair}).status_code == 400


TASK: dict[str, Any] = {"id": 1, "data": {"left_id": "00.png", "right_id": "01.png"}}


def _result(value: Any, name: str = "similarity", kind: str = "number") -> dict[str, Any]:
    return {"from_name": name, "to_name": "left", "type": kind, "value": value}


def _task(*results: Any) -> list[dict[str, Any]]:
    return [TASK | {"annotations": [{"id": 1, "completed_by": 1, "result": list(results)}]}]
