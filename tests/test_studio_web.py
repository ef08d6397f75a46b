"""The pages and the interface of the studio over HTTP."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from browser import png
from pairlearn.studio import Answer, StoreError
from pairlearn.studio.server import make_app, serve
from studio_client import Studio, studio_of

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import annotate_durability


@pytest.fixture
def studio(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Studio]:
    kind = getattr(request, "param", "table")
    with studio_of(tmp_path / "p", kind, pairs=12, names=("ann", "bob")) as one:
        yield one


def test_link_becomes_a_cookie_and_leaves_the_address(studio: Studio) -> None:
    link, client = f"/a/{studio.tokens['ann']}", studio.client
    reply = client.get(link, follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/annotate/1")
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    page = client.get("/annotate/1")
    assert page.status_code == 200 and studio.tokens["ann"] not in page.text
    # A browser sends no Strict cookie along a redirect that began on another site.
    reply = client.get(link, headers={"Sec-Fetch-Site": "cross-site"})
    assert 'http-equiv="refresh" content="0; url=/annotate/1"' in reply.text
    assert studio.tokens["ann"] not in reply.text and "HttpOnly" in reply.headers["set-cookie"]
    app = make_app(studio.folder, public=True, url="https://studio.example")
    with TestClient(app, "https://studio.example") as other:
        reply = other.get(link, follow_redirects=False)
        assert "Secure" in reply.headers["set-cookie"]
        assert reply.headers["strict-transport-security"].startswith("max-age=")


def test_whole_run_over_http(studio: Studio) -> None:
    ann, said = studio.visit("ann"), [(0.5, 0.0), (None, 0.25), (0.75, None), (None, None)]
    for number, (s, c) in enumerate([*said, (0.1, 0.1), (0.2, 0.1)]):
        silent = s is None and c is None
        given = {"similarity": s, "difference": c, "note": f"n{number}", "cant_say": silent}
        # One long pause does not count: the pace is by the median.
        reply = ann.answer(**given, seconds=600.0 if number == 2 else 3.0).json()
        assert reply["receipt"]["revision"] == 1
        assert reply["progress"] == {
            "done": number + 1, "total": 6, "per_hour": 1200.0, "seconds_left": 3.0 * (5 - number),
        }  # fmt: skip
    assert reply["task"] is None
    kept = [(*one.numbers, one.note) for one in studio.answers()]
    assert kept[:4] == [(*one, f"n{number}") for number, one in enumerate(said)]


def test_supervisor_makes_ends_and_renews_links(studio: Studio) -> None:
    boss, client = studio.visit("boss"), studio.client
    made = boss.post("/api/annotators", {"name": "  Zoë  "}).json()
    assert made["name"] == "Zoë" and client.get(made["path"]).url.path == "/annotate/3"
    renewed = boss.post("/api/annotators/renew", {"annotator": 3}).json()
    assert client.get("/annotate/3/api/task").status_code == 401  # the old link ends at once
    assert client.get(made["path"]).status_code == 404
    assert client.get(renewed["path"]).status_code == 200
    assert boss.post("/api/annotators/end", {"annotator": 3}).status_code == 200
    assert client.get(renewed["path"]).status_code == 404
    assert boss.post("/api/annotators/end", {"annotator": 3}).status_code == 404


def test_invitations_hold_beside_the_links_and_end_with_them(studio: Studio) -> None:
    links = studio.client.app.state.studios[""].sessions.invite()  # type: ignore[attr-defined]
    client, paths = studio.client, {"ann": "/annotate/1", "bob": "/annotate/2"}
    assert client.get(links["supervisor"]).url.path == "/supervisor"
    for name, path in paths.items():
        assert client.get(links[name]).url.path == path
        assert client.get(f"{path}/api/task").status_code == 200
    assert client.get(f"/a/{studio.tokens['ann']}").status_code == 200  # the old one, too
    assert client.get(links["ann"].replace("/a/", "/s/")).status_code == 404
    with studio.store() as store:  # another process takes them back
        store.renew_token(1)
        store.retire(2)
    for name in paths:
        assert client.get(links[name]).status_code == 404


def test_supervisor_page_tells_how_everybody_works(studio: Studio) -> None:
    with studio.store() as store:
        for number, (s, c) in enumerate([(0.9, 0.0), (0.9, 0.5), (0.5, -0.25)]):
            task = store.next_task(1)
            assert task is not None
            note = "odd <b>one</b>" if number == 0 else ""
            answer = Answer(similarity=s, difference=c, seconds=6, note=note, key=f"k{number}")
            store.submit(1, task.pair, answer).result()
    page = studio.visit("boss").client.get("/supervisor").text
    assert "3 of 6" in page and "600" in page and "33%" in page  # one of three does not fit
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


@pytest.mark.parametrize("studio", ["text"], indirect=True)
def test_an_item_that_is_gone_does_not_stop_the_others(studio: Studio) -> None:
    ann = studio.visit("ann")
    (studio.folder / "items" / ann.task()["left"]["title"]).unlink()
    assert "not there" in ann.task()["left"]["text"]
    gone = ann.answer(similarity=None, difference=None, cant_say=True)
    assert gone.json()["progress"]["done"] == 1


def test_access_log_holds_no_token(studio: Studio, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        studio.visit("ann").answer()
        studio.client.get("/a/guess%0d%0aGET")
    lines = [one.getMessage() for one in caplog.records if not one.name.startswith("http")]
    text = "\n".join(lines)
    assert "GET /a/*** 303" in text and "POST /annotate/1/api/answer 200" in text
    assert "guess" not in text and studio.tokens["ann"] not in text


def test_what_is_not_served(tmp_path: Path, studio: Studio) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.7", "", "example.org"):
        with pytest.raises(ValueError, match="public=True"):
            serve(studio.folder, host=host)
    with pytest.raises(ValueError, match="not a project"):
        make_app(tmp_path)
    with pytest.raises(ValueError, match="url is"):
        make_app(studio.folder, url="studio.example")
    (studio.folder / "answers.sqlite").unlink()
    with pytest.raises(StoreError):
        make_app(studio.folder)


def test_the_package_carries_no_script_in_its_pages() -> None:
    package = Path(sys.modules["pairlearn.studio.server"].__file__ or "").parent
    for template in (package / "templates").glob("*.html"):
        text = template.read_text("utf-8")
        assert not re.search(r"<script(?![^>]* src=\"(?:{{ root }})?/static/)", text), template
        assert not re.search(r"\son\w+=|\sstyle=|https?://|\|\s*safe", text), template
    for script in (package / "static").glob("*.js"):
        text = script.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|eval\(|https?://", text), script


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.long)])
def test_kills_lose_and_double_nothing(kills: int) -> None:
    found = annotate_durability.run_kills(kills=kills, clients=4, seed=1)
    assert found.acknowledged >= 20 * kills and found.resent > 0
    assert (found.missing, found.doubled, found.changed) == (0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="strace is a tool of Linux")
def test_every_answer_is_flushed_before_its_reply() -> None:
    found = annotate_durability.run_traced(clients=4, answers=30)
    assert found.answers >= 30 and found.flushed_before_reply == found.answers


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
