"""Pairs whose answer is known: examples, practice, qualification, checks, and what they tell."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

from browser import (
    PHONE,
    done,
    live_studio,
    make_project,
    press,
    scan,
    settled,
    snapshot,
)
from pairlearn.annotators import in_words
from pairlearn_studio import Annotator, Project, Store, StoreError
from pairlearn_studio.cli.annotate import app
from pairlearn_studio.overview import overview_of
from pairlearn_studio.records import LEVELS, Known
from studio_client import serving, studio_of
from studio_processes import Command, free_port, wait_until
from studio_store import make, stored, submit

NUMBERS: dict[str, Any] = {"similarity": None, "difference": None}
KNOWN = (
    Known("00.png", "01.png", "left surely", "example", "The seal of the left one leaks."),
    Known("02.png", "03.png", "right surely", "practice", "The right one runs hot."),
    Known("04.png", "05.png", "both negative", "practice"),
)
MEANS = {"positive_means": "Stops within a month.", "negative_means": "Runs for a month."}


def test_definition_then_practice_then_pairs(browser: Browser, tmp_path: Path) -> None:
    _, tokens, _ = make_project(
        tmp_path / "p", "image", pairs=12, answers="graded", known=KNOWN, **MEANS
    )
    phone = PHONE | {"reduced_motion": "reduce", "bypass_csp": True, "color_scheme": "dark"}
    with live_studio(tmp_path / "p") as studio, browser.new_context(**phone) as context:
        page = context.new_page()
        page.goto(f"{studio.url}/a/{tokens['ann']}")
        page.wait_for_url("**/annotate/*")
        settled(page, begin=False)
        start = page.locator("#start")
        for words in ("Stops within a month.", "Runs for a month.", "Left, surely", "seal of the"):
            expect(start).to_contain_text(words)
        expect(start.locator("img")).to_have_count(2)
        assert scan(page) == []
        snapshot(page, "start")
        page.locator("#begin").tap()
        settled(page, begin=False)
        page.locator("[data-level='left surely']").tap()
        expect(page.locator("#coach-title")).to_have_text("We would say: below, surely")
        expect(page.locator("#coach-text")).to_have_text("The right one runs hot.")
        assert scan(page) == []
        snapshot(page, "practice")
        page.reload()  # the second pair is theirs still
        expect(page.locator("#begin")).to_have_text("Go on")
        page.locator("#begin").tap()
        settled(page, begin=False)
        expect(page.locator("#coach-step")).to_have_text("Practice 2 of 2")
        page.locator("[data-level=alike]").tap()
        expect(page.locator("#coach-title")).to_have_text("Right!")
        page.locator("#next-lesson").tap()
        done(page, 0, 12)
        page.locator("#open-help").tap()
        expect(page.locator("#help")).to_contain_text("Stops within a month.")
        snapshot(page, "guidelines-phone")
        press(page, "Escape")
        page.reload()
        settled(page, begin=False)
        expect(start).to_be_hidden()
        page.locator("[data-level=alike]").tap()
        done(page, 1, 12)


def test_nobody_begins_before_they_qualify(tmp_path: Path) -> None:
    graded = {"pairs": 5, "known": KNOWN, "qualify": 1.0, "answers": "graded"}
    with studio_of(tmp_path / "p", "image", **graded) as studio:
        ann = studio.visit()

        def practise(level: str) -> Any:
            return ann.post(f"{ann.home}/api/practice", {"level": level}).json()

        assert ann.task() is None
        early = {"pair": 1, "key": "form-000001", "similarity": 0.5}
        assert ann.post(f"{ann.home}/api/answer", early).status_code == 403
        assert practise("right probably")["right"]  # one degree less is near enough
        reply = practise("both positive")
        assert not reply["right"] and reply["answer"] == "Both “will hold”"
        assert (reply["start"]["before"], reply["start"]["position"], reply["task"]) == (1, 0, None)
        practise("right surely")
        reply = practise("both negative")
        assert reply["right"] and reply["start"] is None and reply["task"] is not None
        reply = ann.answer(level="alike", similarity=None, difference=None)
        assert reply.status_code == 200
    with serving(tmp_path / "p", studio.tokens) as studio:  # and that is kept
        assert studio.visit().task() is not None


CHECKS = tuple(Known(f"i{k}", f"i{k + 1}", "alike") for k in range(0, 12, 2))


def judge_all(store: Store, who: int, level: str = "alike") -> list[int]:
    order = []
    while (task := store.next_task(who)) is not None:
        assert store.next_task(who) == task
        ahead = store.next_task(who, after=task.pair)
        s, c = LEVELS[level]
        submit(store, who, task.pair, f"k{task.pair}", s, difference=c, level=level)
        following = store.next_task(who)
        assert (ahead and ahead.pair) == (following and following.pair)
        order.append(task.pair)
    return order


def test_checks_are_mixed_in_at_their_share(tmp_path: Path) -> None:
    project = make(tmp_path, items=30, pairs=60, overlap=2, known=CHECKS, known_share=0.1)
    with Store.create(project) as store:
        (ann, _), _ = store.add_annotators(["ann", "bob"])
        order = judge_all(store, ann.id)
        places = [place for place, pair in enumerate(order) if pair in store.mixed_in]
        due = min(6, len(store.mixed_in))
        assert len(places) == due and len(order) == 60 + due
        blocks = [place // 10 for place in places]
        assert blocks == list(range(due))  # one in each ten, and not at one place
        assert len({place % 10 for place in places}) > 1
        # Taken back, a check comes at once again.
        last = [pair for pair in order if pair in store.mixed_in][-1]
        while (task := store.undo(ann.id).result()) is not None and task.pair != last:
            pass
        assert task is not None and store.next_task(ann.id) == task
        row = store.overview(store.answers())[0]
        known = len(store.checks(project)) - 1  # one is open again, and one is of the plan
        assert (row.known, row.right) == (known, known)
    changed = make(tmp_path / "q", items=30, pairs=60, known=CHECKS[:1])
    with Store.create(changed) as store:
        cy, _ = store.add_annotator("cy")
        (number,) = store.mixed_in
    fewer = Project.load(changed.folder)
    object.__setattr__(fewer, "known", ())
    with Store.open(fewer) as store:  # what is no check any more is nobody's
        assert store.checks(fewer) == {} and store.task(cy.id, number) is None
    object.__setattr__(fewer, "known", (Known("i0", "nobody", "alike"),))
    with pytest.raises(StoreError, match=r"known\[0\]: 'nobody' is not among the items"):
        Store.open(fewer)


def test_flags_in_words() -> None:
    known = {k: Known("a", "b", "left surely") for k in range(4)}
    surely = LEVELS["left surely"]
    rows = [stored("careful", k, *surely, level="left surely") for k in range(4)]
    rows += [stored("careful", k, 0.5 + k / 100, 0.0, seconds=4.0) for k in range(4, 30)]
    rows += [stored("constant", k, 0.5, 0.0, seconds=0.5) for k in range(30)]
    people = dict.fromkeys([Annotator(1, "careful"), Annotator(2, "constant")], 30)
    careful, constant = overview_of(rows, people, known)
    assert (careful.right, careful.flags) == (4, [])
    assert [in_words([phrase]) for phrase in constant.flags] == [
        "only 0 of 4 known pairs right",
        "half of the answers took less than 1 s",
    ]
    (model,) = overview_of(rows, {Annotator(2, "constant", origin="model"): 30}, known)
    assert in_words(model.flags) == "only 0 of 4 known pairs right"


def test_the_supervisor_sees_and_the_export_leaves_out(tmp_path: Path) -> None:
    project, _, boss = make_project(tmp_path / "p", pairs=40, known_share=0.1)
    table = tmp_path / "known.csv"
    rows = [f"M-00{k},M-01{k},left surely,,\n" for k in range(1, 7)]
    table.write_text(
        "left,right,answer,use,why\n" + "".join(rows) + "M-020,M-021,alike,example,x\n"
    )
    run = CliRunner().invoke
    report = run(app, ["known", str(project.folder), str(table), "--share", "0.1", "--json"])
    assert json.loads(report.stdout) == {"example": 1, "practice": 0, "check": 6}
    for text, message in (
        ("left,right,answer\nM-001,M-002,perhaps\n", "known.csv, row 1: answer is 'perhaps'"),
        ("left,right\nM-001,M-002\n", "known.csv: no column 'answer'"),
        (
            "left,right,answer\nM-001,,alike\n",
            "known.csv, row 1: Object missing required field `right`",
        ),
        ("left,right,answer\nM-001,M-999,alike\n", "known.csv, row 1: 'M-999' is not among"),
        ("left,right,answer\nM-001,M-002\n", "known.csv, row 1: 2 cells"),
        ("", "known.csv is empty"),
    ):
        table.write_text(text)
        refused = run(app, ["known", str(project.folder), str(table)])
        assert refused.exit_code == 2 and message in refused.stderr
    with Store.open(Project.load(project.folder)) as store:
        assert len(judge_all(store, 1, "can't tell which")) == 44
    with serving(project.folder, {"boss": boss}) as studio:
        page = studio.visit("boss").client.get("/supervisor").text
    assert "0 of 4" in page and "only 0 of 4 known pairs right" in page
    status = run(app, ["status", str(project.folder)]).stdout
    assert "ann: only 0 of 4 known pairs right" in status
    assert "44 answers to 40 of 40 pairs" in status
    out = tmp_path / "pairs.csv"
    report = run(app, ["export", str(project.folder), str(out), "--json"])
    assert json.loads(report.stdout)["mixed_in"] == 4 and json.loads(report.stdout)["rows"] == 40


def test_demo_in_one_command(browser: Browser, tmp_path: Path) -> None:
    """The links that it prints work, and the pictures, the practice and a check are there."""
    folder, port = tmp_path / "demo", free_port()
    command = Command(tmp_path / "said", "demo", folder, "--port", port, "--no-open")
    try:
        link = re.compile(r"^  (\w+)  (http\S+)$", re.M)
        alive = command.process.is_alive
        wait_until(lambda: len(link.findall(command.words())) == 2 or not alive())
        links = link.findall(command.words())
        with browser.new_context(viewport={"width": 1280, "height": 720}) as context:
            page = context.new_page()
            page.goto(dict(links)["you"])
            settled(page)
            expect(page.locator("#coach-step")).to_have_text("Practice 1 of 3")
            snapshot(page, "demo")
            for _ in range(3):
                press(page, "7")
                page.locator("#next-lesson").click()
                settled(page)
            press(page, "7")
            done(page, 1, 66)
            page.goto(dict(links)["supervisor"])
            expect(page.locator("tr[data-annotator='1']")).to_contain_text("1 of 66")
    finally:
        assert command.end(signal.SIGINT) == 0
    with Store.open(Project.load(folder)) as store:
        assert len(store.checks(store.project)) == len(store.mixed_in) == 6
        assert store.answers()[0].level == "right surely"
