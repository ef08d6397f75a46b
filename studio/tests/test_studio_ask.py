"""Model annotators without a network: functions, limits, runs, questions and replies."""

from __future__ import annotations

import json
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlearn import PairClassifier
from pairlearn_studio.ask import (
    AnswerCache,
    Budget,
    Judgement,
    LimitReached,
    ModelError,
    SaidOfItem,
    Seat,
    Wording,
    by_pairs,
    fill,
    find_function,
    item_model,
    pair_model,
)
from pairlearn_studio.exchange import export_table
from pairlearn_studio.items import ItemView
from pairlearn_studio.records import Pair
from pairlearn_studio.store import Store
from studio_store import make

WORDS = Wording("Pumps", "will fail", "will hold", ("It stops.", ""), "Old ones leak.")


def text(words: str) -> ItemView:
    return ItemView("text", "t", text=words)


# ---- judgements ---------------------------------------------------------------------------------


def test_both_orders_are_averaged_or_nothing_is_said() -> None:
    answers = iter(
        [
            Judgement(0.5, 0.1),
            Judgement(0.7, 0.3),
            Judgement(0.5, 0.1),
            Judgement(None, None, mass=0.2),
        ]
    )
    judge = by_pairs(lambda a, b: next(answers), text)
    both, silent = judge("a", "b"), judge("a", "b")
    assert (both.similarity, both.difference) == pytest.approx((0.6, -0.1))
    assert both.orders == ((0.5, 0.1), (0.7, -0.3))
    assert silent.cant_say and silent.similarity is None and silent.mass == 0.2


# ---- functions ----------------------------------------------------------------------------------


def test_function_is_found_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_pump_model.py").write_text("def judge(left, right):\n    return 0.5, 0.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert find_function("my_pump_model:judge")(1, 2) == (0.5, 0.0)
    wrong = {"my_pump_model:guess": "no attribute 'guess'", "no_such:f": "cannot be imported"}
    names = ("", "a", ":f", "a:", "a/b:f", "a:b:c", "a:f()", "..a:f")
    for name, message in (wrong | dict.fromkeys(names, "module:function")).items():
        with pytest.raises(ModelError, match=message):
            find_function(name)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((1.2, 0.0), "similarity must lie in"),
        ((0.5, -1.1), "difference must lie in"),
        ((math.nan, 0.0), "similarity must lie in"),
        (0.5, "return numbers for similarity, difference"),
        ((0.5, 0.1, 0.2), "return numbers for similarity, difference"),
        (("x", 0.2), "return numbers for similarity, difference"),
    ],
)
def test_bad_answers_of_a_function(answer: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        pair_model(lambda left, right: answer)(text("a"), text("b"))
    assert pair_model(lambda left, right: None)(text("a"), text("b")) == Judgement(
        None, None, mass=0.0
    )
    for value in (1.5, -0.1, math.nan, "x", (1, 2)):
        with pytest.raises(ModelError, match=r"P\(positive\)"):
            item_model(lambda item, value=value: value)(text("a"))
    assert item_model(lambda item: None)(text("a")) == SaidOfItem(None, 0.0)


# ---- limits -------------------------------------------------------------------------------------


def test_budget_holds_money_for_requests_in_flight() -> None:
    budget = Budget(max_cost=1.0, price_in=1.0, price_out=2.0)
    first = budget.reserve(600_000, 0)
    with pytest.raises(LimitReached, match="max-cost"):
        budget.reserve(300_000, 100_000)
    budget.settle(first, (200_000, 0))
    second = budget.reserve(300_000, 100_000)
    budget.settle(second, None)  # without counts the most is charged
    assert budget.spent == pytest.approx(0.7) and budget.requests == 2
    with pytest.raises(ValueError, match="max_cost needs prices"):
        Budget(max_cost=1.0)


def test_cache_survives_and_keeps_the_first_answer(tmp_path: Path) -> None:
    path = tmp_path / "cache.jsonl"
    cache, other = AnswerCache(path), AnswerCache(path)
    cache.put("k", {"a": 1})
    cache.put("k", {"a": 2})
    with pytest.raises(TypeError, match="complex"):
        cache.put("other", {"a": 1j})
    other.put("k", {"a": 3})  # of another process that did not know the first
    with path.open("ab") as file:
        file.write(b'["cut", {"a"')  # by a process that was killed
    other.put("l", {"a": 4})
    assert cache.get("k") == {"a": 1}
    again = AnswerCache(path)
    assert [again.get(key) for key in "kl"] == [{"a": 1}, {"a": 4}] and len(again.answers) == 2
    path.write_bytes(b"precious" * 1000)
    assert len(AnswerCache(path).answers) == 0 and path.read_bytes() == b"precious" * 1000


# ---- runs ---------------------------------------------------------------------------------------

PAIRS = [Pair(number, str(number), "x") for number in range(20)]


def judging(fails: str = "", error: Exception | None = None) -> Any:
    def judge(left: str, right: str, about: str | None) -> Judgement:
        if error is not None and left == fails:
            raise error
        return Judgement(0.9, 0.5, 0.1, 1.0)

    return judge


def test_interrupt_keeps_what_is_in_flight() -> None:
    kept: list[int] = []

    def interrupt(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    keep = lambda pair, *_: kept.append(pair.id)  # noqa: E731
    filled = fill(PAIRS, judging(), keep, concurrent=3, progress=interrupt)
    assert filled.stopped == "interrupted"
    assert 2 <= len(kept) <= 8 and len(filled.judgements) == len(kept)

    def full(*_: object) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):  # of the store: it is not hidden
        fill(PAIRS, judging(), full)


# ---- questions ----------------------------------------------------------------------------------


def user_text(item: ItemView) -> str:
    content = WORDS.about_item(item).messages(False)[1]["content"]
    assert isinstance(content, str)
    return content


@settings(max_examples=50)
@given(st.text() | st.just("a\ud800b"))
def test_whatever_an_item_says_stays_in_its_line(words: str) -> None:
    content = user_text(text(words))
    lines = content.splitlines()
    assert lines[1:] == user_text(text("")).splitlines()[1:]
    line = lines[0].removeprefix("Item: ")
    assert "<" not in line and "[" not in line
    assert json.loads(line)["text"] == words
    content.encode()  # half of a character, which file names may have, can be sent


def test_words_of_the_project_are_in_the_question() -> None:
    row = ItemView("table", "7", rows=(("age", "9"), ("note", "rusty")))
    system, user = WORDS.about_pair(row, row).messages(False)
    for part in (
        "Pumps",
        "will fail",
        "will hold",
        "Old ones leak.",
        "“will fail” means: It stops.",
    ):
        assert part in system["content"]
    assert 'Item A: {"age": "9", "note": "rusty"}\n' in user["content"]
    assert user["content"].endswith("Answer with one word: A, B or Same.")
    assert "A: item A is “will fail”, item B is “will hold”." in user["content"]


def test_long_text_is_cut_and_cost_is_bounded_by_bytes() -> None:
    question = WORDS.about_item(text("é" * 30_000))
    assert "(10,000 characters more)" in question.messages(False)[1]["content"]
    length = sum(len(message["content"].encode()) for message in question.messages(False))
    assert length <= question.most_tokens <= length + 200


def test_images_are_sent_as_data(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\nrest")
    image = ItemView("image", "a.png", image_path=path)
    question = WORDS.about_pair(image, image)
    parts = question.messages(False)[1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"] * 2 + ["text"]
    assert parts[1]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgpy")
    assert question.most_tokens > 4000
    path.write_bytes(b"<svg onload=alert(1)>")
    with pytest.raises(ModelError, match=r"a\.png is not a PNG, JPEG, GIF or WebP image"):
        WORDS.about_item(image)


# ---- position bias ------------------------------------------------------------------------------


def test_position_bias_is_found_and_does_not_reach_the_fit(tmp_path: Path) -> None:
    """Of a judge who says “the second one” in a fifth of the questions, whatever it sees."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 3))
    r = 1 / (1 + np.exp(-3 * x[:, 0] - 2 * x[:, 1]))
    project = make(tmp_path / "p", items=150, pairs=250)

    def judge(first: ItemView, second: ItemView, share: float) -> Judgement:
        if rng.random() < share:
            return Judgement(0.0, 1.0)
        p, q = (r[int(item.title[1:])] for item in (first, second))
        return Judgement(p * q + (1 - p) * (1 - q), q - p)

    with Store.create(project) as store:
        orders = {}
        for name, share in (("fair", 0.0), ("biased", 0.2)):
            seat, ask = Seat(store, name), partial(judge, share=share)
            filled = fill(seat.open_pairs(), by_pairs(ask, store.items.view), seat.keep, seat.skip)
            assert len(filled.judgements) == 250
            orders[name] = filled.summary()["orders"]
        answers = store.answers()
    assert abs(orders["fair"]["bias"]) < 1e-9 and orders["fair"]["agreement"] == 1
    assert orders["biased"]["p_value"] < 1e-6 and orders["biased"]["agreement"] < 0.9
    assert orders["biased"]["bias"] == pytest.approx(
        0.2, abs=3 * orders["biased"]["standard_error"]
    )
    truth, accuracy = rng.normal(size=(5000, 3)), {}
    for name in orders:
        table = export_table([one for one in answers if one.annotator == name]).table
        ends = np.char.lstrip(np.stack([table.left, table.right], 1), "i").astype(np.int64)
        model = PairClassifier(model="linear", random_state=0).fit(x[ends], table.labels())
        positive = 3 * truth[:, 0] + 2 * truth[:, 1] > 0
        accuracy[name] = float(((model.decision_function(truth) > 0) == positive).mean())
    assert accuracy["biased"] > accuracy["fair"] - 0.02
