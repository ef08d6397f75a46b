"""A team at work: growing and pausing a project, links, addresses, and what the supervisor sees."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from starlette.testclient import TestClient

from browser import make_project, png
from chat_server import running
from pairlearn.io import read_pairs
from pairlearn_studio import Answer, Project, Store, StoreError, writer
from pairlearn_studio.creating import create_project
from pairlearn_studio.overview import agreement, krippendorff_alpha, weighted_kappa
from pairlearn_studio.server import make_app
from pairlearn_studio.server.pages import disputes
from processes import free_port
from studio_client import Studio, annotate, annotate_json, refusal, studio_of
from studio_processes import Place, wait_until
from studio_store import make, stored, submit


def assignments(store: Store) -> dict[tuple[int, int], int | None]:
    rows = store.rows("SELECT annotator, pair, answer FROM assignment")
    return {(who, pair): answer for who, pair, answer in rows}


# ---- growing and pausing ------------------------------------------------------------------------


def test_a_project_grows_while_two_people_answer(tmp_path: Path) -> None:
    project = make(tmp_path / "p", items=20, pairs=30)
    with Store.create(project) as store:
        people = [who.id for who, _ in store.add_annotators(["ann", "bob"])]
        grown = threading.Event()

        def work(who: int) -> None:
            count, last = 0, False
            while not last:
                last = grown.is_set()  # before the question, whose answer it decides
                while (task := store.next_task(who)) is not None:
                    submit(store, who, task.pair, key=f"{who}-{count}")
                    count += 1

        threads = [threading.Thread(target=work, args=(who,)) for who in people]
        for thread in threads:
            thread.start()
        before = assignments(store)
        report = annotate_json("extend", tmp_path / "p", "--pairs", 50)
        after = assignments(store)
        grown.set()
        for thread in threads:
            thread.join()
        assert (report["added"], report["pairs"]) == (50, 80)
        assert before.keys() <= after.keys() and len(after) == 80
        answers = store.answers()
        assert len(answers) == len({answer.pair for answer in answers}) == 80 == store.planned()
        ends = {frozenset((pair.left, pair.right)) for pair in store.pairs()}
        assert len(ends) == 80
        assert sorted(store.progress(who).total for who in people) == [40, 40]
    assert Project.load(tmp_path / "p").plan.pairs == 80


def test_a_raised_plan_takes_effect_and_a_lowered_one_is_refused(tmp_path: Path) -> None:
    project = make(tmp_path / "p", items=8, pairs=12)
    Store.create(project).close()
    more = replace(project, plan=replace(project.plan, pairs=20))
    with Store.open(more) as store:
        assert store.planned() == 20
        with pytest.raises(StoreError, match="8 items make 8 further pairs; got 9"):
            store.extend(9)
    with pytest.raises(StoreError, match=r"plan\.pairs is 12, and 20 pairs are drawn already"):
        Store.open(project)


def test_pause_and_resume(tmp_path: Path) -> None:
    with studio_of(tmp_path / "p") as studio:
        ann, pair = studio.visit("ann"), None
        pair = ann.task()["pair"]
        boss = studio.visit("boss")
        assert boss.post("/api/pause", {"paused": True}).json() == {"paused": True}
        assert annotate_json("status", tmp_path / "p")["paused"]
        page = boss.client.get("/supervisor").text
        assert "The project is paused" in page and "Resume" in page
        ann = studio.visit("ann")
        state = ann.client.get(f"{ann.home}/api/task").json()
        assert state["paused"] and state["task"] is None
        # What was under way is stored in any case.
        sent = ann.post(
            f"{ann.home}/api/answer",
            {"pair": pair, "similarity": 0.5, "difference": 0.0, "key": "form-000"},
        )
        assert sent.status_code == 200
        assert annotate("resume", tmp_path / "p").exit_code == 0
        assert ann.task() is not None
        boss = studio.visit("boss")
        assert boss.post("/api/extend", {"pairs": 5}).json() == {"pairs": 35}
        assert boss.post("/api/extend", {"pairs": 0}).status_code == 400


def test_quotas_and_links_that_expire(tmp_path: Path) -> None:
    make_project(tmp_path / "p", pairs=30)
    links = annotate_json("link", tmp_path / "p", "bob", "--quota", 4, "--days", 1)
    assert "/p/a/" in links["bob"]
    gone = annotate_json("link", tmp_path / "p", "cy", "--days", 0)["cy"]
    with Store.open(Project.load(tmp_path / "p")) as store:
        ann, bob, cy = store.annotators()
        assert [store.progress(who.id).total for who in (ann, bob, cy)] == [26, 4, 0]
        assert bob.active and not cy.active and bob.quota == 4
    annotate_json("link", tmp_path / "p", "bob", "--renew", "--quota", 6)
    annotate_json("link", tmp_path / "p", "bob", "--renew")  # the quota stays
    with Store.open(Project.load(tmp_path / "p")) as store:
        assert [store.progress(who.id).total for who in (ann, bob, cy)] == [24, 6, 0]
        assert store.by_token(gone.rsplit("/", 1)[1]) is None
    with TestClient(make_app(tmp_path / "p"), "http://127.0.0.1") as client:
        assert client.get(gone.partition("8337")[2]).status_code == 404
        for days, status in (("1", 200), ("0", 404)):
            boss = annotate_json("link", tmp_path / "p", "--supervisor", "--days", days)
            link = boss["supervisor"].partition("8337")[2]
            assert client.get(link).status_code == status
        boss = annotate_json("link", tmp_path / "p", "--supervisor")["supervisor"]
        sent = client.post(
            "/p/api/annotators",
            json={"name": "dee", "quota": 2, "days": 3},
            headers={"Authorization": f"Bearer {boss.rsplit('/', 1)[1]}"},
        )
        assert sent.json()["name"] == "dee"
    with Store.open(Project.load(tmp_path / "p")) as store:
        dee = store.annotators()[-1]
        assert store.progress(dee.id).total == dee.quota == 2 and dee.expires_at is not None


def test_the_supervisor_says_who_judges_what(tmp_path: Path) -> None:
    project, _, _ = make_project(tmp_path / "p", pairs=12, names=("ann", "bob"))
    lines = annotate("assign", project.folder).stdout.splitlines()
    assert lines[0] == "left,right,annotator,answered" and len(lines) == 13
    of_ann = [line.split(",")[:2] for line in lines if line.endswith(",ann,False")]
    file, given = tmp_path / "who.csv", [frozenset(pair) for pair in of_ann[2:6]]
    rows = [f"{right},{left},bob" for left, right in of_ann[2:6]]  # in any direction
    file.write_text("\n".join(["left,right,annotator", *rows]) + "\n")
    assert "4 pairs assigned" in annotate("assign", project.folder, file).stdout
    annotate("link", project.folder, "cy")
    annotate("extend", project.folder, "--pairs", 12)
    whose = {
        frozenset((row["left"], row["right"])): row["annotator"]
        for row in annotate_json("assign", project.folder)
    }
    assert len(whose) == 24 and {whose[pair] for pair in given} == {"bob"}
    with Store.open(Project.load(project.folder)) as store:
        ann, bob, cy = store.annotators()
        assert [store.progress(who.id).total for who in (ann, bob, cy)] == [8, 8, 8]
        first = []
        for number in range(4):
            task = store.next_task(bob.id)
            assert task is not None
            first.append(frozenset((task.left, task.right)))
            submit(store, bob.id, task.pair, f"key-{number}")
    assert first == given
    file.write_text(f"left,right,annotator\n{rows[0].replace('bob', 'dee')}\n")
    assert "row 1: no annotator 'dee' takes part" in refusal("assign", project.folder, file)
    file.write_text("left,right,annotator\nM-001,M-001,bob\n")
    assert "row 1: 'M-001', 'M-001' is no pair of the plan" in refusal(
        "assign", project.folder, file
    )


def test_who_has_ended_is_told_so(tmp_path: Path) -> None:
    with studio_of(tmp_path / "p") as studio:
        ann = studio.visit("ann")
        with studio.store() as store:
            store.retire(1)
        reply = ann.client.get(f"{ann.home}/api/task")
        assert reply.status_code == 401 and "your participation has ended" in reply.json()["error"]


# ---- answers ------------------------------------------------------------------------------------


def test_a_second_window_does_not_overwrite_the_first(tmp_path: Path) -> None:
    with studio_of(tmp_path / "p") as studio:
        ann = studio.visit("ann")
        pair, path = ann.task()["pair"], f"{ann.home}/api/answer"
        form: dict[str, Any] = {"pair": pair, "similarity": 0.2, "difference": 0.7}
        first = ann.post(path, form | {"key": "window-1"}).json()["receipt"]
        second = ann.post(path, form | {"similarity": 0.9, "difference": 0, "key": "window-2"})
        assert second.status_code == 409 and "in another window" in second.json()["error"]
        (kept,) = studio.answers()
        assert (kept.id, kept.similarity) == (first["answer_id"], 0.2)
        own = ann.client.get(f"{ann.home}/api/answers").json()["answers"]
        assert [one["pair"] for one in own] == [pair] and own[0]["answer"] == "s = 20%, c = +70%"
        task = ann.client.get(f"{ann.home}/api/task?pair={pair}").json()["task"]
        assert task["answer"]["id"] == kept.id
        other = ann.client.get(f"{ann.home}/api/task?pair={pair + 1}")
        assert other.status_code == 404
        revised = form | {"similarity": 0.3, "key": "window-3", "replaces": kept.id}
        assert ann.post(path, revised).json()["receipt"]["revision"] == 2
        assert [answer.similarity for answer in studio.answers()] == [0.3]


def test_both_positive_and_both_negative_are_disputed() -> None:
    ann = stored("ann", 1, 0.9, 0.0, level="both positive")
    bob = stored("bob", 1, 0.9, 0.0, level="both negative")
    near = stored("bob", 2, 0.8, 0.0, level="alike")
    assert disputes([ann, bob, near, replace(ann, pair=2)]) == [[ann, bob]]


def test_alpha_of_published_data() -> None:
    """The three coders of Wikipedia's article on the coefficient; interval metric: 0.811."""
    data = {
        "A": [None, None, None, None, None, 3, 4, 1, 2, 1, 1, 3, 3, None, 3],
        "B": [1, None, 2, 1, 3, 3, 4, 3, None, None, None, None, None, None, None],
        "C": [None, None, 2, 1, 3, 4, 4, None, 2, 1, 1, 3, 3, None, 4],
    }
    pair = np.tile(np.arange(15), 3)
    values = np.array([value for coder in data.values() for value in coder], np.float64)
    assert krippendorff_alpha(pair, values) == pytest.approx(0.811, abs=5e-4)


def test_weighted_kappa_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 7, 60)
    second = np.clip(first + rng.integers(-2, 3, 60), 0, 6)
    expected = cohen_kappa_score(first, second, weights="quadratic")
    assert weighted_kappa(first / 3 - 1, second / 3 - 1) == pytest.approx(expected)
    rows = [stored("ann", k, 0.5, c / 3 - 1) for k, c in enumerate(first)]
    rows += [stored("bob", k, 0.5, c / 3 - 1) for k, c in enumerate(second)]
    rows += [stored("cy", k, 0.5, 1 - c / 3) for k, c in enumerate(first)]
    rows += [stored("di", k, 0.5, 0.0) for k in range(9)]  # shares too few pairs
    kappas = agreement(rows)["kappas"]
    assert [kappa[:2] for kappa in kappas] == [("ann", "cy"), ("bob", "cy"), ("ann", "bob")]
    assert kappas[-1][2] == pytest.approx(expected)


def test_the_supervisor_browses_and_downloads(tmp_path: Path) -> None:
    with studio_of(tmp_path / "my_project", names=("ann", "bob"), overlap=2) as studio:
        studio.visit("ann").answer(note="odd one")
        studio.visit("bob").answer(similarity=0.2, difference=0.7)
        boss = studio.visit("boss")
        page = boss.client.get("/answers").text
        assert "odd one" in page and "+0.70" in page
        page = boss.client.get("/answers?who=bob").text
        assert "odd one" not in page and "+0.70" in page
        for kind in ("csv", "parquet"):
            reply = boss.client.get(f"/api/export?format={kind}")
            assert f'filename="my_project.{kind}"' in reply.headers["content-disposition"]
            path = tmp_path / f"pairs.{kind}"
            path.write_bytes(reply.content)
            assert len(read_pairs(path)) == 2
        assert len(boss.client.get("/api/export").text.splitlines()) == 2
        (line,) = boss.client.get("/api/export?who=bob&answer=&text=").text.splitlines()
        assert json.loads(line)["annotator"] == "bob" and "overruled" not in line
        assert boss.client.get("/api/export?format=csv&text=odd").text.count(",ann\n") == 1
        assert "api/export?who=bob" in page  # of what is shown
        assert boss.client.get("/api/export?format=exe").status_code == 400
        studio.visit("ann")
        assert studio.client.get("/answers").status_code == 401


# ---- identity, addresses and operations ---------------------------------------------------------


def test_a_backup_of_another_project_is_refused(tmp_path: Path) -> None:
    projects = []
    for name in ("pumps", "valves"):
        (tmp_path / f"{name}.csv").write_text("id,x\na,1\nb,2\nc,3\n")
        projects.append(create_project(tmp_path / name, tmp_path / f"{name}.csv")[0])
    pumps, valves = projects
    backup, _ = writer.back_up(valves)
    with pytest.raises(StoreError, match="is a backup of another project"):
        writer.restore(pumps, backup)
    assert writer.restore(valves, backup).answers == 0
    moved = tmp_path / "moved"
    shutil.move(valves.folder, moved)
    assert writer.restore(Project.load(moved), moved / "backups" / backup.name).answers == 0


@pytest.mark.parametrize("stripped", [True, False])
def test_below_a_path_behind_a_proxy(tmp_path: Path, stripped: bool) -> None:
    """As nginx passes requests on by default: under its own Host, with the browser's Origin."""
    _, tokens, _ = make_project(tmp_path / "p")
    app = make_app(tmp_path / "p", url="https://x.example/studio")
    base = "" if stripped else "/studio"
    with TestClient(app, "http://127.0.0.1:8337") as client:
        link = client.get(f"{base}/p/a/{tokens['ann']}", follow_redirects=False)
        assert link.headers["location"] == "/studio/p/annotate/1"
        assert "Path=/studio/p/annotate/1;" in link.headers["set-cookie"]
        headers = {"Authorization": f"Bearer {tokens['ann']}"}
        page = client.get(
            f"{base}/p/annotate/1", headers={"Cookie": link.headers["set-cookie"].split(";")[0]}
        )
        assert 'src="/studio/p/static/annotate.js"' in page.text
        task = client.get(f"{base}/p/annotate/1/api/task", headers=headers).json()["task"]
        body = {"pair": task["pair"], "similarity": 0.5, "difference": 0.0, "key": "form-000"}
        for origin, status in (("https://evil.example", 403), ("https://x.example", 200)):
            reply = client.post(
                f"{base}/p/annotate/1/api/answer", json=body, headers=headers | {"Origin": origin}
            )
            assert reply.status_code == status


NGINX = """daemon off; pid {folder}/nginx.pid; error_log stderr;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port}; {location} }}
}}
"""
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "collecting.md"


CADDY = """{{
  admin off
  auto_https off
  storage file_system {folder}
}}
http://127.0.0.1:{port} {{
{location}
}}
"""
PROXIES = {
    "nginx": (NGINX, r"^location /studio/ \{.*?^\}", ["nginx", "-p", ".", "-c"]),
    "caddy": (CADDY, r"^handle_path /studio/\* \{.*?^\}", ["caddy", "run", "--adapter", "caddyfile",
                                                          "--config"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROXIES)
@pytest.mark.skipif(not GUIDE.exists(), reason="the guide is in the repository alone")
def test_behind_a_proxy_as_the_guide_says(tmp_path: Path, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is missing")
    place, port = Place(tmp_path, ("ann",), pairs=3), free_port()
    template, pattern, command = PROXIES[name]
    (location,) = re.findall(pattern, GUIDE.read_text(), re.M | re.S)
    location = location.replace("8337", str(place.port))
    config = tmp_path / f"{name}.conf"
    config.write_text(template.format(folder=tmp_path, port=port, location=location))
    origin = f"http://127.0.0.1:{port}"
    options = ("--port", place.port, "--url", f"{origin}/studio", "--trusted-proxy", "127.0.0.1")
    server = place.run("serve", *options)
    with subprocess.Popen([*command, config], cwd=tmp_path, stderr=subprocess.DEVNULL) as proxy:
        try:
            with httpx2.Client(base_url=origin, timeout=120) as client:
                wait_until(lambda: _status(client, "/studio/healthz") == 200)
                link = client.get(f"/studio/p/a/{place.tokens['ann']}")
                assert link.headers["location"] == "/studio/p/annotate/1"
                home, page = link.headers["location"], client.get(link.headers["location"]).text
                assert client.get("/studio/p/static/annotate.js").status_code == 200
                task = client.get(f"{home}/api/task").json()["task"]
                body = {"pair": task["pair"], "similarity": 0.5, "difference": 0.0}
                (csrf,) = re.findall(r'name="csrf" content="([^"]+)"', page)
                for source, status in (("https://evil.example", 403), (origin, 200)):
                    reply = client.post(
                        f"{home}/api/answer",
                        json=body | {"key": "form-000"},
                        headers={"X-Studio-Form": csrf, "Origin": source},
                    )
                    assert reply.status_code == status, reply.text
            assert f"{origin}/studio/p" in server.words()  # links begin with this address
        finally:
            proxy.terminate()
            server.end(signal.SIGTERM)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is missing")
@pytest.mark.skipif(not GUIDE.exists(), reason="the guide is in the repository alone")
def test_the_unit_of_the_guide_is_one_that_systemd_takes(tmp_path: Path) -> None:
    (text,) = re.findall(r"^\[Unit\]$.*?^WantedBy=\S+$", GUIDE.read_text(), re.M | re.S)
    assert " ".join(text.split()).count("pairlearn annotate serve") == 1
    unit = tmp_path / "studio.service"
    # The command and its user need not be here.
    text = re.sub(r"=/srv/studio/venv/bin/pairlearn", f"={sys.executable}", text)
    unit.write_text(text.replace("User=studio", "User=root"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert done.returncode == 0 and "studio.service" not in done.stderr, done.stderr


def _status(client: httpx2.Client, path: str) -> int:
    try:
        return client.get(path).status_code
    except httpx2.TransportError:
        return 0


def test_addresses_stay_when_a_second_project_is_served(tmp_path: Path) -> None:
    _, tokens, _ = make_project(tmp_path / "a")
    make_project(tmp_path / "b")
    for folders in ([tmp_path / "a"], [tmp_path / "a", tmp_path / "b"]):
        with TestClient(make_app(folders), "http://127.0.0.1") as client:
            assert client.get(f"/a/a/{tokens['ann']}").status_code == 200
            health = client.get("/healthz", headers={"Host": "10.0.0.7:1"})
            assert health.json() == {"status": "ok", "projects": len(folders)}
            assert client.get("/", headers={"Host": "10.0.0.7:1"}).status_code == 421
            client.app.state.studios["/a"].store.close()
            health = client.get("/healthz")
            assert (health.status_code, health.json()["status"]) == (503, "failing")


def test_logs_are_lines_of_json_without_tokens(tmp_path: Path) -> None:
    place = Place(tmp_path, ("ann",), pairs=3)
    server = place.run("serve", "--port", place.port, "--log-level", "info", "--log-json")
    link = f"{place.url}/a/{place.tokens['ann']}"
    with httpx2.Client() as client:
        wait_until(lambda: _status(client, link) == 303)
    server.end(signal.SIGTERM)
    lines = [json.loads(line) for line in server.words().splitlines() if line.startswith("{")]
    assert {line["level"] for line in lines} == {"info"}
    assert "GET /p/a/*** 303" in [line["message"] for line in lines]
    assert place.tokens["ann"] not in server.words()


def test_webhooks_are_signed(tmp_path: Path) -> None:
    received: list[tuple[bytes, str | None]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((body, self.headers["X-Pairlearn-Signature"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with running(HTTPServer(("127.0.0.1", 0), Receiver)) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        _, tokens, boss = make_project(tmp_path / "p", pairs=1)
        app = make_app(tmp_path / "p", webhook=url, webhook_key="secret")
        with TestClient(app, "http://127.0.0.1:8337/p") as client:
            studio = Studio(tmp_path / "p", tokens | {"boss": boss}, client)
            assert studio.visit("ann").answer().status_code == 200
    ((body, signature),) = received
    assert json.loads(body)["event"] == "completed"
    assert signature == "sha256=" + hmac.new(b"secret", body, hashlib.sha256).hexdigest()


# ---- making a project ---------------------------------------------------------------------------


def test_init_warns_and_keeps_items_private(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for number in range(3):
        (images / f"{number}.png").write_bytes(png(40 * number))
    (images / "logo.svg").write_text("<svg/>")
    result = annotate("init", tmp_path / "p", images, "--language", "de")
    assert result.exit_code == 0
    assert "the classes have no definitions" in result.stderr
    assert "no items of kind image: 1 .svg" in result.stderr
    modes = {path.name: path.stat().st_mode for path in (tmp_path / "p").rglob("*.png")}
    assert not any(mode & (stat.S_IRWXG | stat.S_IRWXO) for mode in modes.values())
    project = Project.load(tmp_path / "p")
    assert project.title == "Positiv oder negativ?"
    assert project.level_words("alike") == "Gleich, egal was"
    assert "is not a field" in refusal("status", _with(tmp_path / "p", mode="information"))


def _with(folder: Path, **plan: Any) -> Path:
    path = folder / "project.json"
    values = json.loads(path.read_text())
    values["plan"] |= plan
    path.write_text(json.dumps(values))
    return folder


def test_the_first_page_explains_the_task(tmp_path: Path) -> None:
    with studio_of(tmp_path / "p", answers="graded", positive_means="It breaks.") as studio:
        ann = studio.visit("ann")
        page = ann.client.get(ann.home).text
        assert "Each of them is either “will fail” or “will hold”." in page
        assert "It breaks." in page and "is “will fail” in 90, and only the other in 0" in page
        assert "is “will fail” in 62, and only the other in 2" in page


def test_a_store_without_a_project_identity_is_restored(tmp_path: Path) -> None:
    project = make(tmp_path / "p")
    with Store.create(project) as store:
        who, _ = store.add_annotator("ann")
        store.submit(who.id, 1, Answer(0.5, key="k")).result()
    backup, _ = writer.back_up(project)
    assert writer.restore(project, backup).answers == 1
