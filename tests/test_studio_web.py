"""The pages and the interface of the studio over HTTP."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from browser import make_project, png
from pairlearn.studio import Answer, Project, Store, StoreError
from pairlearn.studio.server import make_app, serve

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import annotate_durability

HERE = "http://127.0.0.1:8337"


class Visitor:
    """Somebody with a link and without a browser."""

    def __init__(self, client: TestClient, token: str, role: str = "a") -> None:
        self.client = client
        page = client.get(f"/{role}/{token}")
        assert page.status_code == 200
        found = re.search(r'name="csrf" content="([0-9a-f]{64})"', page.text)
        assert found
        self.form = found[1]
        self.count = 0

    def post(self, path: str, body: dict[str, Any], **headers: str) -> Any:
        return self.client.post(path, json=body, headers={"X-Studio-Form": self.form} | headers)

    def answer(self, **fields: Any) -> Any:
        self.count += 1
        task = self.client.get("/annotate/1/api/task").json()["task"]
        body = {"pair": task["pair"], "similarity": 0.5, "difference": 0.0, "seconds": 3.0}
        return self.post("/annotate/1/api/answer", body | {"key": f"form-{self.count:06}"} | fields)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "p"


@pytest.fixture
def tokens(folder: Path) -> dict[str, str]:
    _, tokens, boss = make_project(folder, pairs=12, names=("ann", "bob"), overlap=1)
    return tokens | {"boss": boss}


@pytest.fixture
def client(folder: Path, tokens: dict[str, str]) -> Iterator[TestClient]:
    with TestClient(make_app(folder), HERE) as client:
        yield client


def test_link_becomes_a_cookie_and_leaves_the_address(
    client: TestClient, tokens: dict[str, str]
) -> None:
    reply = client.get(f"/a/{tokens['ann']}", follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/annotate/1")
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    page = client.get("/annotate/1")
    assert page.status_code == 200 and tokens["ann"] not in page.text


def test_link_from_another_site_goes_on_by_itself(
    client: TestClient, tokens: dict[str, str]
) -> None:
    # A browser sends no Strict cookie along a redirect that began elsewhere.
    reply = client.get(f"/a/{tokens['ann']}", headers={"Sec-Fetch-Site": "cross-site"})
    assert reply.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/annotate/1"' in reply.text
    assert tokens["ann"] not in reply.text and "HttpOnly" in reply.headers["set-cookie"]


def test_cookie_is_secure_where_people_come_over_https(
    folder: Path, tokens: dict[str, str]
) -> None:
    app = make_app(folder, public=True, url="https://studio.example")
    with TestClient(app, "https://studio.example") as client:
        reply = client.get(f"/a/{tokens['ann']}", follow_redirects=False)
        assert "Secure" in reply.headers["set-cookie"]
        assert reply.headers["strict-transport-security"].startswith("max-age=")


def test_whole_run_over_http(client: TestClient, tokens: dict[str, str], folder: Path) -> None:
    ann = Visitor(client, tokens["ann"])
    given = []
    for number in range(6):
        s = 0.5 + number / 20
        reply = ann.answer(similarity=s, note=f"n{number}").json()
        given.append((s, f"n{number}"))
        assert reply["receipt"]["revision"] == 1
        assert reply["progress"] == {
            "done": number + 1, "total": 6, "per_hour": 1200.0, "seconds_left": 3.0 * (5 - number),
        }  # fmt: skip
    assert reply["task"] is None
    with Store.open(Project.load(folder)) as store:
        kept = [(one.similarity, one.note) for one in store.answers()]
    assert kept == given


def test_undo_reopens_the_last_one_once(client: TestClient, tokens: dict[str, str]) -> None:
    ann = Visitor(client, tokens["ann"])
    assert ann.post("/annotate/1/api/undo", {}).json()["undone"] is False
    first = ann.answer().json()
    second = ann.answer().json()
    number = second["receipt"]["answer_id"]
    undone = ann.post("/annotate/1/api/undo", {"answer": number}).json()
    assert undone["undone"] and undone["task"]["pair"] == first["task"]["pair"]
    # The reply was lost and the page asks again: no second answer is taken back.
    again = ann.post("/annotate/1/api/undo", {"answer": number}).json()
    assert not again["undone"] and again["task"]["pair"] == first["task"]["pair"]
    assert again["progress"]["done"] == 1


def test_left_open_and_cant_say(client: TestClient, tokens: dict[str, str], folder: Path) -> None:
    ann = Visitor(client, tokens["ann"])
    assert ann.answer(similarity=None).status_code == 200
    assert ann.answer(difference=None).status_code == 200
    assert ann.answer(similarity=None, difference=None, cant_say=True).status_code == 200
    with Store.open(Project.load(folder)) as store:
        kept = [(one.similarity, one.difference, one.cant_say) for one in store.answers()]
    assert kept == [(None, 0.0, False), (0.5, None, False), (None, None, True)]


def test_a_link_taken_back_ends_at_once(
    client: TestClient, tokens: dict[str, str], folder: Path
) -> None:
    ann = Visitor(client, tokens["ann"])
    assert ann.answer().status_code == 200
    with Store.open(Project.load(folder)) as store:
        store.renew_token(store.annotators()[0].id)
    assert client.get("/annotate/1/api/task").status_code == 401
    assert client.get(f"/a/{tokens['ann']}").status_code == 404


def test_supervisor_makes_ends_and_renews_links(
    client: TestClient, tokens: dict[str, str], folder: Path
) -> None:
    boss = Visitor(client, tokens["boss"], "s")
    made = boss.post("/api/annotators", {"name": "  Zoë  "})
    assert made.json()["name"] == "Zoë"
    assert client.get(made.json()["path"]).url.path == "/annotate/3"
    with Store.open(Project.load(folder)) as store:
        zoe = store.annotators()[-1].id
    renewed = boss.post("/api/annotators/renew", {"annotator": zoe}).json()
    assert renewed["path"] != made.json()["path"]
    assert client.get(made.json()["path"]).status_code == 404
    assert boss.post("/api/annotators/end", {"annotator": zoe}).status_code == 200
    assert client.get(renewed["path"]).status_code == 404
    assert boss.post("/api/annotators/end", {"annotator": zoe}).status_code == 404
    assert boss.post("/api/annotators", {"name": "ann"}).status_code == 400


def test_supervisor_page_tells_how_everybody_works(
    client: TestClient, tokens: dict[str, str], folder: Path
) -> None:
    with Store.open(Project.load(folder)) as store:
        ann = store.annotators()[0]
        for number, (s, c) in enumerate([(0.9, 0.0), (0.9, 0.5), (0.5, -0.25)]):
            task = store.next_task(ann.id)
            assert task is not None
            note = "odd <b>one</b>" if number == 0 else ""
            answer = Answer(similarity=s, difference=c, seconds=6, note=note, key=f"k{number}")
            store.submit(ann.id, task.pair, answer).result()
    page = Visitor(client, tokens["boss"], "s").client.get("/supervisor").text
    assert "3 of 6" in page and "600" in page and "33%" in page  # one of three does not fit
    assert page.count('class="dot"') == 2 and page.count('class="dot out"') == 1
    assert 'cx="-25.0" cy="50.0"' in page
    assert "odd &lt;b&gt;one&lt;/b&gt;" in page


def test_roles_do_not_mix(client: TestClient, tokens: dict[str, str]) -> None:
    assert client.get(f"/s/{tokens['ann']}").status_code == 404
    assert client.get(f"/a/{tokens['boss']}").status_code == 404
    Visitor(client, tokens["ann"])
    assert client.get("/supervisor").status_code == 401
    client.cookies.clear()
    Visitor(client, tokens["boss"], "s")
    assert client.get("/annotate/1").status_code == 401
    assert client.get("/annotate/1/api/task").status_code == 401


def test_pictures_and_what_is_ahead(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    _, tokens, _ = make_project(folder, "image", pairs=8)
    with TestClient(make_app(folder), HERE) as client:
        assert client.get("/annotate/1/image?item=00.png").status_code == 401
        ann = Visitor(client, tokens["ann"])
        task = client.get("/annotate/1/api/task").json()["task"]
        picture = client.get(f"/annotate/1/{task['left']['image']}")
        assert picture.headers["content-type"] == "image/png"
        assert picture.content == png(int(task["left"]["title"][:2]))
        ahead = client.get(f"/annotate/1/api/ahead?pair={task['pair']}").json()["ahead"]
        following = ann.answer().json()["task"]
        assert [view["image"] for view in ahead] == [
            following["left"]["image"], following["right"]["image"],
        ]  # fmt: skip


def test_an_item_that_is_gone_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    _, tokens, _ = make_project(folder, "text", pairs=8)
    with TestClient(make_app(folder), HERE) as client:
        ann = Visitor(client, tokens["ann"])
        left = client.get("/annotate/1/api/task").json()["task"]["left"]["title"]
        (folder / "items" / left).unlink()
        assert "not there" in client.get("/annotate/1/api/task").json()["task"]["left"]["text"]
        gone = ann.answer(similarity=None, difference=None, cant_say=True)
        assert gone.json()["progress"]["done"] == 1


def test_access_log_holds_no_token(
    client: TestClient, tokens: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        Visitor(client, tokens["ann"]).answer()
        client.get("/a/guess%0d%0aGET")
    text = "\n".join(record.getMessage() for record in caplog.records if "pairlearn" in record.name)
    assert (
        "GET /a/*** 303" in text
        and "POST /annotate/1/api/answer 200" in text
        and "guess" not in text
    )
    everything = "\n".join(record.getMessage() for record in caplog.records)
    assert tokens["ann"] not in re.sub(r"HTTP Request: .*", "", everything)  # the test's own client


def test_serving_beyond_loopback_must_be_said(folder: Path, tokens: dict[str, str]) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.7", "", "example.org"):
        with pytest.raises(ValueError, match="public=True"):
            serve(folder, host=host)


def test_what_is_no_project_is_refused(tmp_path: Path, folder: Path, tokens: Any) -> None:
    with pytest.raises(ValueError, match="not a project"):
        make_app(tmp_path)
    with pytest.raises(ValueError, match="url is"):
        make_app(folder, url="studio.example")
    (folder / "answers.sqlite").unlink()
    with pytest.raises(StoreError):
        make_app(folder)


def test_the_package_carries_no_script_in_its_pages() -> None:
    package = Path(sys.modules["pairlearn.studio.server"].__file__ or "").parent
    for template in (package / "templates").glob("*.html"):
        text = template.read_text("utf-8")
        assert not re.search(r"<script(?![^>]* src=\"/static/)", text), template
        assert not re.search(r"\son\w+=|\sstyle=|https?://|\|\s*safe", text), template
    for script in (package / "static").glob("*.js"):
        text = script.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|eval\(|https?://", text), script


def test_importing_pairlearn_does_not_load_the_server() -> None:
    code = "import pairlearn, sys; sys.exit('starlette' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_three_kills_lose_and_double_nothing() -> None:
    found = annotate_durability.run_kills(kills=3, clients=8, seed=1)
    assert found.acknowledged > 50 and found.resent > 0
    assert (found.missing, found.doubled, found.changed) == (0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="strace is a tool of Linux")
def test_every_answer_is_flushed_before_its_reply() -> None:
    found = annotate_durability.run_traced(clients=4, seconds=0.5)
    assert found.answers > 10 and found.flushed_before_reply == found.answers


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
    found = annotate_durability.read_trace(lines)
    assert (found.answers, found.flushed_before_reply) == (1, flushed)
