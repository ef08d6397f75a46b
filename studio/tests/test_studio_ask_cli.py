"""The command `annotate ask`, with functions and against an endpoint on loopback."""

from __future__ import annotations

import json
import signal
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chat_server as chat_server_module
from browser import answers_of
from chat_server import ChatServer, Handler, chat_server, hangs_up
from pairlearn_studio.ask import AnswerCache
from pairlearn_studio.cli.ask import CACHE
from pairlearn_studio.project import Plan, Project
from pairlearn_studio.records import Answer, Known
from pairlearn_studio.store import Store
from studio_client import annotate, annotate_json
from studio_processes import Command, wait_until

POSTERIORS = np.random.default_rng(1).permutation(np.linspace(0.35, 0.65, 12).round(3))
KEY = "sk-very-secret-0123456789"
MODULE = """
calls = []

def pairs(left, right):
    r, r_prime = (float(dict(item.rows)["p"]) for item in (left, right))
    calls.append((r, r_prime))
    return r * r_prime + (1 - r) * (1 - r_prime), r_prime - r + 0.01

def items(item):
    calls.append(item.title)
    return float(dict(item.rows)["p"])

def silent(left, right):
    return None

def broken(left, right):
    return 1 / 0
"""


def ask(*arguments: object) -> dict[str, Any]:
    """The report of `annotate ask`, with its exit code."""
    result = annotate("ask", *arguments, "--json")
    return json.loads(result.stdout) | {"exit": result.exit_code}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of 20 pairs of coins, and a module of models, in the current folder."""
    folder = tmp_path / "coins"
    folder.mkdir()
    rows = [f"c{number},{p}" for number, p in enumerate(POSTERIORS)]
    (folder / "items.csv").write_text("\n".join(["id,p", *rows]) + "\n")
    made = Project(folder, "table", "items.csv", Plan(20), positive_name="heads")
    made.save()
    Store.create(made).close()
    # A name of its own for each test: a module is imported once in a process.
    (tmp_path / f"coin_models_{uuid.uuid4().hex}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return folder


def module_of(project: Path) -> str:
    (path,) = project.parent.glob("coin_models_*.py")
    return path.stem


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


def assert_judged(project: Path, who: str, count: int = 20) -> None:
    stored = [answer for answer in answers_of(project) if answer.annotator == who]
    assert len(stored) == len({answer.pair for answer in stored}) == count
    for answer in stored:
        r, r_prime = (POSTERIORS[int(end[1:])] for end in (answer.left, answer.right))
        assert answer.similarity == pytest.approx(r * r_prime + (1 - r) * (1 - r_prime))
        assert answer.difference == pytest.approx(r_prime - r)


def test_function_of_pairs(project: Path) -> None:
    arguments = (project, "--model", f"{module_of(project)}:pairs", "--name", "fn")
    assert ask(*arguments, "--pairs", 8)["left"] == 12
    assert_judged(project, "fn", 8)
    report = ask(*arguments)
    assert (report["exit"], report["judged"], report["cant_say"], report["left"]) == (0, 12, 0, 0)
    assert report["orders"]["bias"] == pytest.approx(0.01)
    assert_judged(project, "fn")
    last = ask(*arguments)  # there is nothing left to do
    assert (last["exit"], last["judged"]) == (0, 0)
    with Store.open(Project.load(project)) as store:
        (model,) = store.annotators()
    assert (model.active, model.origin, model.note) == (False, "model", "model")
    text = annotate("status", project).stdout
    assert "fn (model)" in text and "retired" not in text
    assert max(map(len, text.splitlines()[1:])) <= 80


def test_function_of_items_asks_each_once(project: Path) -> None:
    name = module_of(project)
    report = ask(project, "--model", f"{name}:items", "--per", "item")
    assert report["exit"] == 0
    assert report["orders"] is None
    assert len(sys.modules[name].calls) == len(_ends(project)) <= 12
    assert_judged(project, f"{name}:items")


def test_functions_that_are_silent_or_fail(project: Path) -> None:
    result = annotate("ask", project, "--model", f"{module_of(project)}:broken")
    assert result.exit_code == 1
    assert "the model failed with ZeroDivisionError" in result.stderr
    assert "20 left" in result.stdout and answers_of(project) == []
    report = ask(project, "--model", f"{module_of(project)}:silent", "--name", "silent")
    assert (report["judged"], report["cant_say"]) == (0, 20)
    assert all(answer.cant_say and answer.similarity is None for answer in answers_of(project))


def test_people_keep_their_pairs_and_names(project: Path) -> None:
    with Store.open(Project.load(project)) as store:
        ann, _ = store.add_annotator("ann")
    model = (project, "--model", f"{module_of(project)}:pairs")
    quiet = annotate("ask", *model, "--name", "fn", "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")
    with Store.open(Project.load(project)) as store:
        assert store.progress(ann.id).total == 20
        task = store.next_task(ann.id)
        assert task is not None
        store.submit(ann.id, task.pair, Answer(similarity=0.5, key="k")).result()
        assert {who.name: who.active for who in store.annotators()} == {"ann": True, "fn": False}
    result = annotate("ask", *model, "--name", "ann")
    assert result.exit_code == 2
    assert "'ann' is an annotator, not a model: give another --name" in result.stderr


@pytest.mark.parametrize("per", ["pair", "item"])
def test_endpoint(
    project: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, per: str
) -> None:
    server.bias = 0.03
    monkeypatch.setenv("COIN_KEY", KEY)
    arguments = (
        project, "--endpoint", server.base_url, "--model-name", "small", "--per", per,
        "--key-env", "COIN_KEY", "--price-in", 1, "--price-out", 10,
    )  # fmt: skip
    report = ask(*arguments)
    assert report["exit"] == 0
    assert report["prompt_tokens"] == 100 * report["requests"]
    assert report["cost"] == pytest.approx(report["requests"] * 110e-6)
    assert (
        report["requests"] == len(server.bodies) == (40 if per == "pair" else len(_ends(project)))
    )
    assert server.most_at_once <= 4 and set(server.questions.values()) == {1}
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert_judged(project, "small")
    (model,) = annotate_json("status", project)[
        "annotators"
    ]  # an annotator as others are, by its name
    assert (model["annotator"]["name"], model["done"]) == ("small", 20)
    everything = b"".join(path.read_bytes() for path in project.iterdir())
    assert KEY.encode() not in everything
    if per == "pair":
        assert report["orders"]["bias"] == pytest.approx(0.06)
        assert report["orders"]["p_value"] < 0.001


def _ends(project: Path) -> set[str]:
    return {end for answer in answers_of(project) for end in (answer.left, answer.right)}


def test_as_many_at_a_time_as_asked_for(project: Path, server: ChatServer) -> None:
    """After the first, which shows how answers are read, three are answered together or never."""
    three = threading.Barrier(3, timeout=120)

    def meet(handler: Handler) -> bool:
        three.wait()
        return False

    server.troubles.extend([lambda _: False, *[meet] * 3])
    arguments = (project, "--endpoint", server.base_url, "--model-name", "small")
    assert ask(*arguments, "--concurrent", 3)["exit"] == 0
    assert server.most_at_once == 3
    report = ask(*arguments, "--name", "again")  # of the same model is for nothing
    assert (report["requests"], report["cached"], report["judged"]) == (0, 40, 20)


def test_cost_limit_stops_cleanly_and_goes_on(project: Path, server: ChatServer) -> None:
    arguments = (
        project, "--endpoint", server.base_url, "--model-name", "small", "--concurrent", 3,
        "--price-in", 10, "--max-cost", 0.02,
    )  # fmt: skip
    reports = [ask(*arguments)]
    while reports[-1]["exit"] and len(reports) < 10:
        assert (reports[-1]["exit"], reports[-1]["stopped"]) == (3, "max-cost")
        reports.append(ask(*arguments))
    assert 1 < len(reports) < 10 and all(report["cost"] <= 0.02 for report in reports)
    assert sum(report["cost"] for report in reports) == pytest.approx(40 * 100 * 10e-6)
    assert set(server.questions.values()) == {1}
    assert_judged(project, "small")


@pytest.mark.parametrize(
    ("sort", "skipped"),
    [
        ("no_logprobs", 0),
        ("five_alternatives", 0),
        ("older_parameters", 0),
        ("thinks_first", 0),
        ("refuses_some", None),
        ("limits_the_rate", 0),
        ("is_slow", None),
        ("breaks_json", 0),
    ],
)
def test_every_sort_of_endpoint(
    project: Path, server: ChatServer, sort: str, skipped: int | None
) -> None:
    """All pairs are judged or listed with the reason, and people keep theirs."""
    server.always = getattr(chat_server_module, sort)
    arguments = (project, "--endpoint", server.base_url, "--model-name", "small", "--retries", 1)
    if sort == "is_slow":
        arguments = (*arguments, "--timeout", 0.5, "--retries", 0)
    report = ask(*arguments)
    server.gate.set()
    assert report["exit"] == 0, report
    number = len(report["skipped"])
    assert report["judged"] + number == 20 and report["left"] == number * 0
    worst = f"c{int(np.argmax(POSTERIORS))}"
    for one in report["skipped"]:
        assert worst in (one["left"], one["right"]) and one["reason"]
    assert number == skipped if skipped is not None else 0 < number < 20
    if sort == "is_slow":
        server.always = None
    again = ask(*arguments)  # what was refused is read again, and blocks nothing
    assert (again["exit"], again["judged"]) == (0, number if sort == "is_slow" else 0)


def test_answers_that_are_not_understood_stop_the_run(project: Path, server: ChatServer) -> None:
    server.always = lambda handler: handler.write("Well, that depends.")
    result = annotate(
        "ask", project, "--endpoint", server.base_url, "--model-name", "m", "--samples", 1,
        "--concurrent", 1,
    )  # fmt: skip
    assert result.exit_code == 1
    assert "none of 5 pairs has a judgement" in result.stderr and "that depends" in result.stderr
    assert len(server.bodies) <= 5 * 3 * 2 and answers_of(project) == []


def test_definitions_and_examples_are_in_the_prompt(project: Path, server: ChatServer) -> None:
    known = (Known("c0", "c1", "left surely", "example", "It is bent."),)
    changed = replace(Project.load(project), positive_means="It fell on its back.", known=known)
    changed.save()
    ask(project, "--endpoint", server.base_url, "--model-name", "m", "--pairs", 1)
    system, user = (message["content"] for message in server.bodies[0]["messages"])
    assert "“heads” means: It fell on its back." in system
    assert "Answer to example 1: A (It is bent.)" in user


def test_models_do_not_use_up_pairs_unless_asked(project: Path) -> None:
    with Store.open(Project.load(project)) as store:
        ann, _ = store.add_annotator("ann")
    ask(project, "--model", f"{module_of(project)}:pairs", "--name", "fn")
    ask(project, "--model", f"{module_of(project)}:silent", "--name", "silent")
    with Store.open(Project.load(project)) as store:
        carol, _ = store.add_annotator("carol")
        totals = [store.progress(who.id).total for who in (ann, carol)]
        assert totals == [10, 10] and not store.complete()
    counted = replace(Project.load(project), models_count=True)
    counted.save()
    with Store.open(counted) as store:
        assert [store.progress(who.id).total for who in (ann, carol)] == [1, 1]
        assert len(store.answers()) == 40 and store.complete()


def test_killed_and_run_again_no_answer_is_asked_twice(project: Path, server: ChatServer) -> None:
    """Killed while 13 answers are on disk and others are under way."""
    gate, count = threading.Event(), threading.Semaphore(13)

    def answer_some(handler: Handler) -> bool:
        if count.acquire(blocking=False):
            return False
        gate.wait(300)
        return hangs_up(handler)

    server.always = answer_some
    arguments = [str(project), "--endpoint", server.base_url, "--model-name", "small"]
    command, cache = Command(project.parent / "output", "ask", *arguments), project / CACHE
    try:
        wait_until(lambda: cache.exists() and _cached(cache) == 13 and len(server.bodies) == 17)
        wait_until(lambda: sum(server.answered.values()) == 13 and answers_of(project))
    finally:
        command.end(signal.SIGKILL)
    before = dict(server.answered)
    half_way = len(answers_of(project))
    assert sum(before.values()) == 13
    assert 0 < half_way <= 6
    server.always = None
    gate.set()
    report = ask(*arguments)
    assert report["exit"] == 0
    assert report["judged"] == 20 - half_way
    assert set(server.answered.values()) == {1}
    assert all(server.questions[question] == 1 for question in before)
    assert sum(server.questions.values()) == 40 + 4  # the four that were never answered
    assert_judged(project, "small")


def _cached(path: Path) -> int:
    return len(AnswerCache(path).answers)


HERE = ("--endpoint", "http://127.0.0.1:1/v1", "--model-name", "m")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either --model module:function or --endpoint URL"),
        (["--model", "math:hypot", "--endpoint", "http://127.0.0.1/v1"], "give either --model"),
        (["--endpoint", "http://127.0.0.1:1/v1"], "--endpoint needs --model-name"),
        (["--model", "math:hypot", "--key-env", "HOME"], "--key-env goes with --endpoint"),
        (["--model", "math"], "'math' must be module:function"),
        (["--model", "math:hypot", "--max-cost", "1"], "--max-cost goes with --endpoint"),
        ([*HERE, "--max-cost", "1"], "max_cost needs prices"),
        (["--endpoint", "http://example.com/v1", "--model-name", "m"], "plain http beyond"),
        (["--endpoint", "gopher://x", "--model-name", "m"], "must be an http or https URL"),
        (
            [*HERE, "--key-env", "NO_SUCH"],
            "--key-env NO_SUCH: no such variable",
        ),
    ],
)
def test_wrong_requests(project: Path, arguments: list[str], message: str) -> None:
    result = annotate("ask", project, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")
    assert answers_of(project) == []
