"""When to stop: the forecast, what flagged annotators do to it, and pairs that are settled."""

from __future__ import annotations

import json
import re
import shutil
import sys
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import make_project
from pairlearn import PairClassifier
from pairlearn.annotators import Annotator
from pairlearn.check import check
from pairlearn.io import read_pairs
from pairlearn.labels import PairLabels
from pairlearn_studio import Plan, Project, Store
from pairlearn_studio.creating import create_project
from pairlearn_studio.exchange import export_table
from pairlearn_studio.reader import StoreReader
from pairlearn_studio.records import LEVELS, Known
from pairlearn_studio.server.pages import dots
from pairlearn_studio.stopping import Forecast, forecast_parts
from studio_client import annotate, annotate_json, serving
from studio_processes import wait_until
from studio_store import history, stored, submit

CARELESS = ("constant 0", "constant 1", "random 0", "random 1")
NAMES = (*(f"careful {k}" for k in range(6)), *CARELESS)


def nearest(r: float, q: float) -> str:
    s, c = r * q + (1 - r) * (1 - q), q - r
    return min(LEVELS, key=lambda name: abs(LEVELS[name][0] - s) + abs(LEVELS[name][1] - c))


def submit_level(store: Store, who: int, pair: int, level: str) -> None:
    s, c = LEVELS[level]
    submit(store, who, pair, similarity=s, difference=c, seconds=5.0, level=level)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str, Any, Any]:
    """Ten people, 40 answers each, 5% known pairs: the project, its supervisor, x and P(y = 1)."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 4))
    r = 1 / (1 + np.exp(-(4 * x[:, 0] + 3 * x[:, 1])))
    folder = tmp_path_factory.mktemp("crowd")
    rows = [",".join([f"i{n}", *map(str, values)]) for n, values in enumerate(x)]
    (folder / "items.csv").write_text("\n".join(["id,a,b,c,d", *rows]) + "\n")
    ends = rng.permutation(300)[:40].reshape(-1, 2).tolist()
    known = [Known(f"i{a}", f"i{b}", nearest(r[a], r[b])) for a, b in ends]
    project, boss = create_project(
        folder / "p", folder / "items.csv", pairs=134, overlap=3, known=known
    )
    with Store.open(project) as store:
        for who, _ in store.add_annotators(NAMES):
            for _ in range(40):
                task = store.next_task(who.id)
                assert task is not None
                left, right = (r[int(item[1:])] for item in (task.left, task.right))
                level = nearest(*np.clip(rng.normal([left, right], 0.05), 0, 1))
                other = {"constant": "left probably", "random": str(rng.choice([*LEVELS]))}
                submit_level(store, who.id, task.pair, other.get(who.name.split()[0], level))
    return project, boss, x, r


def test_the_page_shows_what_the_careless_cost(
    crowd: tuple[Project, str, Any, Any], tmp_path: Path
) -> None:
    project, boss, x, r = crowd
    out = tmp_path / "pairs.csv"
    run = annotate("export", project.folder, out, "--without", ",".join(CARELESS))
    assert run.exit_code == 0, run.output
    with serving(project.folder, {"boss": boss}) as studio:
        visitor = studio.visit("boss")
        status: Any = lambda: visitor.client.get("/api/status").json()  # noqa: E731
        wait_until(lambda: status()["forecast"])  # the page does not wait for that process
        report = status()
        page = visitor.client.get("/supervisor").text
    assert set(report["flagged"]) == set(CARELESS)  # and nobody else
    with Store.open(project) as store:
        answers = [answer for answer in store.answers() if answer.pair not in store.mixed_in]
    careful = [answer for answer in answers if answer.annotator not in CARELESS]

    def accuracy(table: Any) -> float:
        ends = np.stack([table.left, table.right], 1)[table.soft]  # without the classes of both
        ends = np.char.lstrip(ends, "i").astype(np.int64)
        model = PairClassifier(model="linear", annotators="ideal", random_state=0)
        model.fit(x[ends], table.labels())
        return float(np.where(model.decision_function(x) > 0, r, 1 - r).mean())

    exported, alone = accuracy(read_pairs(out)), accuracy(export_table(careful).table)
    assert abs(exported - alone) <= 0.01
    without = report["forecast"]
    assert without["now"][1] <= exported <= without["now"][2]
    assert without["next_half_width"] < without["half_width"]
    low, high = map(float, re.findall(r"([\d.]+)%", without["sentence"])[:2])
    assert low <= 100 * exported <= high and without["sentence"] in unescape(page)
    assert f"Without {', '.join(CARELESS)}, who are flagged below" in page
    assert f"{without['now'][0]:.0%}" in page and "gives every pair the same answer" in page
    first = export_table([answer for answer in answers if answer.annotator == "careful 0"])
    (note,) = [finding for finding in check(first.table).findings if finding.code == "levels"]
    assert note.severity == "note" and note.ids == ("careful 0",)
    assert "levels of similarity and 7 levels of difference" in note.message


def test_what_there_is_to_say_without_a_forecast(tmp_path: Path) -> None:
    project, _, _ = make_project(tmp_path / "p", pairs=3)
    (project.folder / "items.csv").write_text(
        "id,name\n" + "".join(f"M-{n:03},\n" for n in range(60))
    )
    with Store.open(project) as store:
        *_, last = forecast_parts(store)
    assert last["outlook"]["needs"].startswith("`pairlearn fit` will not take these items")
    project, _, _ = make_project(tmp_path / "q", pairs=3)
    with Store.open(project) as store:
        *_, last = forecast_parts(store)
    assert last["outlook"]["needs"].startswith("0 pairs have both numbers so far")


def test_a_forecast_without_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, _, boss = make_project(tmp_path / "p", "image", pairs=3, language="de")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with Store.open(project) as store:
        manners, needs = forecast_parts(store)
        needs["latest"] = store.latest()
    assert "pillow" in needs["outlook"]["needs"].lower()
    assert manners == {"manners": {}, "flagged": []}
    manner = Annotator("ann", 200, guesses=0.5, leans=(0.12, 0.0), scale="hard")
    needs["manners"] = {"ann": (manner.phrases(), True)}
    (project.folder / "forecast.json").write_text(json.dumps(needs))
    with serving(project.folder, {"boss": boss}) as studio:
        page = studio.visit("boss").client.get("/supervisor").text
        words = studio.client.get("/api/status").json()["annotators"][0]["words"]
    assert ">Diese Objekte haben keine Merkmale" not in page and "illow" in page
    assert "geraten: 50% der Antworten (50% bis 50%); sagt um 0.12 ± 0.00 zu oft „gleich“" in page
    assert words == manner.sentence()  # programs are words in English


def test_answers_about_items_that_are_gone_are_left_out(
    crowd: tuple[Project, str, Any, Any], tmp_path: Path
) -> None:
    folder = shutil.copytree(crowd[0].folder, tmp_path / "p")
    lines = (folder / "items.csv").read_text().splitlines()
    (folder / "items.csv").write_text("\n".join([lines[0], *lines[31:]]) + "\n")
    *_, last = forecast_parts(StoreReader(Project.load(folder)))
    outlook = last["outlook"]
    assert 30 < outlook["pairs"] < outlook["planned"] == 134


def test_the_forecast_imports_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, _, _ = make_project(tmp_path / "p", pairs=3)
    (tmp_path / "msgspec.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    store = StoreReader(project)
    forecast = Forecast(store)
    try:
        forecast.refresh(1)
        wait_until(lambda: "outlook" in store.forecast())
    finally:
        forecast.close()


WRITES = """#!/bin/sh
printf 'no end of line' >&2
while [ -e "$0" ]; do sleep 0.1; done &
printf '\\nthe reason\\n\\n' >&2
exit 3
"""


def test_whatever_the_forecast_writes_and_whoever_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writes = tmp_path / "writes"
    writes.write_text(WRITES)
    writes.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(writes))
    forecast = Forecast(StoreReader(Project(tmp_path, "table", "items.csv", Plan(1))))
    try:
        wait_until(lambda: forecast.refresh(1) or caplog.messages)
        assert caplog.messages == ["pairlearn annotate: no forecast of the accuracy (see above)"]
    finally:
        writes.unlink()  # which ends what still has its output open
        forecast.close()


def test_a_forecast_that_cannot_start_is_logged_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    forecast = Forecast(StoreReader(Project(tmp_path, "table", "items.csv", Plan(1))))
    forecast.refresh(1)
    wait_until(lambda: forecast.refresh(2) or len(caplog.messages) > 1)
    assert all("no forecast of the accuracy" in message for message in caplog.messages)
    forecast.close()


def test_the_supervisor_settles_a_disputed_pair(tmp_path: Path) -> None:
    names = ("ann", "bob", "supervisor")
    project, _, boss = make_project(
        tmp_path / "p", pairs=4, names=names, overlap=3, answers="graded"
    )
    levels = {"ann": "left surely", "bob": "right surely", "supervisor": "right probably"}
    with Store.open(project) as store:
        for who in store.annotators():
            for number in range(4):
                task = store.next_task(who.id)
                assert task is not None
                level = levels[who.name] if number == 1 else "alike"
                submit_level(store, who.id, task.pair, level)
        disputed = task.pair - 2
    with serving(project.folder, {"boss": boss}) as studio:
        visitor = studio.visit("boss")
        page = visitor.client.get("/supervisor").text
        assert page.count("data-settle=") == 1 and f'data-settle="{disputed}"' in page
        assert "<bdi>bob</bdi>: Right, surely" in page
        bad = [{"pair": disputed, "level": "perhaps"}, {"pair": 99, "level": "alike"}]
        assert [visitor.post("/api/settle", form).status_code for form in bad] == [400, 400]
        for level in ("alike", "left probably"):  # the last one stands
            settled = visitor.post("/api/settle", {"pair": disputed, "level": level})
            assert settled.json() == {"settled": disputed}
        assert "data-settle=" not in visitor.client.get("/supervisor").text
        lines = [json.loads(line) for line in visitor.client.get("/api/export").text.splitlines()]
    author = "supervisor (settles pairs)"  # somebody else is called supervisor
    assert sum(line.get("overruled", False) for line in lines) == 3
    with Store.open(project) as store:
        assert store.adjudicator == author
        changes = [change for change in history(store, disputed) if change.who == author]
        assert [change.action for change in changes] == ["answered", "revised"]
        (seat,) = [who for who in store.annotators() if who.name == author]
        assert (seat.active, seat.note) == (False, "settles pairs")
        assert store.next_task(1) is None  # nobody got anything new to judge
    out = tmp_path / "pairs.csv"
    assert annotate_json("export", project.folder, out)["overruled"] == 3
    table = read_pairs(out)
    assert table.annotator is not None and len(table) == 10
    mine = table[table.annotator == author]
    assert mine.similarity.tolist() == [0.36] and mine.difference.tolist() == [-0.6]


def test_answers_on_a_coarse_scale_are_rounded_not_impossible() -> None:
    hard = [(0.0, -1.0), (1.0, 0.0), (0.0, 0.0), (0.0, 1.0)] * 5  # the third is (0.45, 0.3), say
    rows = [stored("ann", k, s, c, number=k) for k, (s, c) in enumerate(hard)]
    assert export_table(rows).infeasible == 0 and all(dot.fits for dot in dots(rows, {"ann": 1}))
    assert not PairLabels([0.0], [0.0]).feasible().all()
    rows.append(stored("ann", 20, 1.0, 1.0, number=20))
    (misfit,) = [dot for dot in dots(rows, {"ann": 1}) if not dot.fits]
    assert export_table(rows).infeasible == 1 and (misfit.times, misfit.always) == (1, True)
    rows += [stored("bob", k, s, c, number=30 + k) for k, (s, c) in enumerate(hard)]
    among = [dot for dot in dots(rows, {"ann": 1, "bob": 2}) if (dot.x, dot.y) == (100, 0)]
    assert {(dot.who, dot.times, dot.always) for dot in among} == {
        (0, 10, True), (1, 5, False), (2, 5, False),
    }  # fmt: skip
