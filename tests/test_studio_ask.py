"""Model annotators without a network: functions, limits, runs."""

from __future__ import annotations

import json
import math
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlearn import PairLabels
from pairlearn.studio.ask import (
    AnswerCache,
    Budget,
    Judgement,
    LimitReached,
    ModelError,
    Pace,
    PairToJudge,
    Said,
    SaidOfItem,
    Wording,
    by_items,
    by_pairs,
    fill,
    find_function,
    item_model,
    pair_model,
)
from pairlearn.studio.endpoint import MalformedReply, chat_url, error_text, read_reply, retry_after
from pairlearn.studio.items import ItemView
from pairlearn.studio.judges import ITEM_ANSWERS, PAIR_ANSWERS, answer_shares
from pairlearn.studio.limits import Stopped

WORDS = Wording("Pumps", "will fail", "will hold")


def text(words: str) -> ItemView:
    return ItemView("text", "t", text=words)


# ---- judgements ---------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-0.3, 0.3), st.floats(-0.2, 0.2))
def test_position_bias_cancels(r: float, r_prime: float, bias: float, tilt: float) -> None:
    """Whatever is added to the second place, and whatever s depends on the order."""
    truth = PairLabels.from_posteriors([r], [r_prime])
    s, c = truth.similarity.item(), truth.difference.item()

    def model(first: str, second: str) -> Said:
        sign = 1 if first == "left" else -1
        return Said(s + sign * tilt, sign * c + bias)

    judgement = by_pairs(model, lambda one: one)("left", "right")  # type: ignore[arg-type]
    assert judgement.similarity == pytest.approx(s, abs=1e-12)
    assert judgement.difference == pytest.approx(c, abs=1e-12)
    assert judgement.bias == pytest.approx(bias, abs=1e-12)


def test_one_order_without_an_answer_is_cant_say() -> None:
    answers = iter([Said(0.5, 0.1), Said(None, None, 0.2)])
    judgement = by_pairs(lambda a, b: next(answers), text)("a", "b")
    assert judgement.cant_say
    assert judgement.similarity is None
    assert judgement.mass == 0.2


def test_items_are_asked_once_even_from_many_threads() -> None:
    calls: Counter[str] = Counter()
    barrier = threading.Barrier(4)

    def model(item: ItemView) -> SaidOfItem:
        calls[item.text] += 1
        return SaidOfItem(None if item.text == "c" else {"a": 0.9, "b": 0.4}[item.text])

    judge = by_items(model, text)
    results: list[Judgement] = []

    def work() -> None:
        barrier.wait()
        results.extend(judge(*ends) for ends in ("ab", "ba", "ac"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == {"a": 1, "b": 1, "c": 1}
    for judgement in results:
        if judgement.cant_say:
            continue
        assert judgement.similarity == pytest.approx(0.42)
        assert abs(judgement.difference or 0) == pytest.approx(0.5)
    assert sum(one.cant_say for one in results) == 4


# ---- functions ----------------------------------------------------------------------------------


def test_function_is_found_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_pump_model.py").write_text("def judge(left, right):\n    return 0.5, 0.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert find_function("my_pump_model:judge")(1, 2) == (0.5, 0.0)
    with pytest.raises(ModelError, match="'my_pump_model' has no function 'guess'"):
        find_function("my_pump_model:guess")


@pytest.mark.parametrize("name", ["", "a", ":f", "a:", "a/b:f", "a:b:c", "a:f()", "..a:f"])
def test_names_that_are_no_functions(name: str) -> None:
    with pytest.raises(ModelError, match="module:function"):
        find_function(name)


def test_module_that_cannot_be_imported() -> None:
    with pytest.raises(ModelError, match="'no_such_thing' cannot be imported"):
        find_function("no_such_thing:f")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((1.2, 0.0), "similarity must lie in"),
        ((0.5, -1.1), "difference must lie in"),
        ((math.nan, 0.0), "similarity must lie in"),
        (0.5, "return \\(similarity, difference\\)"),
        ((0.5, 0.1, 0.2), "return \\(similarity, difference\\)"),
        (("x", 0.2), "return \\(similarity, difference\\)"),
    ],
)
def test_bad_answers_about_pairs(answer: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        pair_model(lambda left, right: answer)(text("a"), text("b"))


@pytest.mark.parametrize("answer", [1.5, -0.1, math.nan, "x", (1, 2)])
def test_bad_answers_about_items(answer: object) -> None:
    with pytest.raises(ModelError, match=r"P\(positive\)"):
        item_model(lambda item: answer)(text("a"))


def test_none_is_cant_say() -> None:
    assert pair_model(lambda left, right: None)(text("a"), text("b")) == Said(None, None, 0.0)
    assert item_model(lambda item: None)(text("a")) == SaidOfItem(None, 0.0)


# ---- limits -------------------------------------------------------------------------------------


class Clock:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def test_pace_and_hold() -> None:
    clock = Clock()
    pace = Pace(120, clock=lambda: clock.now, wait=clock.wait)
    turns = []
    for number in range(4):
        pace.turn()
        turns.append(clock.now)
        if number == 1:
            pace.hold(10)
    assert turns == [0.0, 0.5, 10.5, 11.0]


def test_stop_ends_waiting() -> None:
    pace = Pace(1)
    pace.turn()
    failures: list[type[BaseException]] = []

    def work() -> None:
        try:
            pace.turn()
        except Stopped:
            failures.append(Stopped)

    thread = threading.Thread(target=work)
    thread.start()
    pace.stop()
    thread.join(timeout=30)
    assert failures == [Stopped]


@pytest.mark.parametrize("wrong", [lambda item: item["size"], lambda item: item.fields["size"]])
def test_an_item_that_is_taken_for_a_dict_is_explained(wrong: Any) -> None:
    item = ItemView("table", "a", rows=(("size", "3"),))
    with pytest.raises(ModelError, match=r"ItemView.*A cell of a table is dict\(item.rows\)\[name"):
        item_model(wrong)(item)
    with pytest.raises(ModelError, match=r"dict\(item.rows\)\[name"):
        pair_model(lambda left, right: (wrong(left), 0.0))(item, item)
    assert item_model(lambda item: float(dict(item.rows)["size"]) / 10)(item).posterior == 0.3


def test_other_errors_of_a_function_stay_what_they_are() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        item_model(lambda item: 1 + "a")(text("so"))  # type: ignore[operator]


def test_budget_holds_money_for_requests_in_flight() -> None:
    budget = Budget(max_cost=1.0, price_in=1.0, price_out=2.0)
    first = budget.reserve(600_000, 0)
    passed = threading.Event()
    thread = threading.Thread(target=lambda: (budget.reserve(300_000, 100_000), passed.set()))
    thread.start()
    assert not passed.wait(0.05)
    budget.settle(first, (200_000, 0))
    thread.join(timeout=30)
    assert passed.is_set()
    assert budget.spent == pytest.approx(0.2)


@pytest.mark.parametrize(
    "options",
    [{"max_requests": -1}, {"max_cost": 1.0}, {"price_in": math.nan}, {"price_out": -1.0}],
)
def test_budgets_that_make_no_sense(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Budget(**options)  # type: ignore[arg-type]


# ---- cache --------------------------------------------------------------------------------------


def test_cache_survives_and_keeps_the_first_answer(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    with AnswerCache(path) as cache:
        cache.put("k", {"a": 1})
        cache.put("k", {"a": 2})
    with AnswerCache(path) as one, AnswerCache(path) as two:
        assert one.get("k") == two.get("k") == {"a": 1}
        two.put("l", {"a": 3})
        assert one.get("l") == {"a": 3}
        assert len(one) == 2


def test_file_that_is_no_cache(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"precious" * 1000)
    with pytest.raises(ModelError, match="is no cache of answers"):
        AnswerCache(path)
    assert path.read_bytes() == b"precious" * 1000


# ---- runs ---------------------------------------------------------------------------------------

PAIRS = [PairToJudge(number, str(number), "x") for number in range(20)]


@pytest.mark.parametrize("concurrent", [1, 5])
def test_every_pair_is_judged_and_kept_once(concurrent: int) -> None:
    kept: list[int] = []
    done: list[int] = []
    filled = fill(
        PAIRS,
        lambda left, right: Judgement(0.5, 0.0, 0.1, 1.0),
        lambda pair, judgement, seconds: kept.append(pair.pair),
        concurrent=concurrent,
        progress=done.append,
    )
    assert sorted(kept) == list(range(20))
    assert done[-1] == 20
    assert filled.summary() == {
        "judged": 20, "cant_say": 0, "infeasible": 0,
        "position_bias": pytest.approx(0.1), "least_mass": 1.0,
    }  # fmt: skip


def test_limit_ends_a_run_and_keeps_what_there_is() -> None:
    def judge(left: str, right: str) -> Judgement:
        if left == "7":
            raise LimitReached("max-requests")
        return Judgement(0.9, 0.5, math.nan, 1.0)

    kept: list[int] = []
    filled = fill(PAIRS, judge, lambda pair, *_: kept.append(pair.pair))
    assert filled.stopped == "max-requests"
    assert filled.error is None
    assert kept == list(range(7))
    assert filled.summary()["infeasible"] == 7
    assert filled.summary()["position_bias"] is None


def test_error_names_the_pair_and_stops_the_others() -> None:
    stopped = []

    def judge(left: str, right: str) -> Judgement:
        if left == "3":
            raise ZeroDivisionError("by zero")
        return Judgement(0.5, 0.0, 0.0, 1.0)

    filled = fill(PAIRS, judge, lambda *_: None, stop=lambda: stopped.append(True))
    assert filled.stopped == "error"
    assert str(filled.error) == "pair 3, x: the model failed with ZeroDivisionError: by zero"
    assert stopped
    assert len(filled.judgements) == 3


def test_interrupt_keeps_what_is_in_flight() -> None:
    kept: list[int] = []

    def interrupt(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    filled = fill(
        PAIRS,
        lambda left, right: Judgement(0.5, 0.0, 0.0, 1.0),
        lambda pair, *_: kept.append(pair.pair),
        concurrent=3,
        progress=interrupt,
    )
    assert filled.stopped == "interrupted"
    assert 2 <= len(kept) <= 8
    assert len(filled.judgements) == len(kept)


def test_a_store_that_fails_is_not_hidden() -> None:
    def keep(*_: object) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fill(PAIRS, lambda left, right: Judgement(0.5, 0.0, 0.0, 1.0), keep)


# ---- prompts ------------------------------------------------------------------------------------


def user_text(item: ItemView) -> str:
    content = WORDS.about_item(item).messages[1]["content"]
    assert isinstance(content, str)
    return content


@given(st.text())
def test_whatever_an_item_says_stays_in_its_line(words: str) -> None:
    content = user_text(text(words))
    lines = content.splitlines()
    assert lines[1:] == user_text(text("")).splitlines()[1:]
    line = lines[0].removeprefix("Item: ")
    assert "<" not in line
    assert "[" not in line
    assert json.loads(line)["text"] == words


def test_half_of_a_character_can_be_sent() -> None:
    """File names and broken tables have such; UTF-8 has not."""
    content = user_text(text("a\ud800b"))
    content.encode()
    assert json.loads(content.splitlines()[0].removeprefix("Item: "))["text"] == "a\ud800b"


def test_words_of_the_project_are_in_the_question() -> None:
    words = Wording("Pumps", "will fail", "will hold", "Old ones leak.", ("Alike?", "Which?"))
    row = ItemView("table", "7", rows=(("age", "9"), ("note", "rusty")))
    system, user = words.about_pair(row, row).messages
    for part in ("Pumps", "will fail", "will hold", "Old ones leak.", "Alike? Which?"):
        assert part in system["content"]
    assert 'Item A: {"age": "9", "note": "rusty"}\n' in user["content"]
    assert user["content"].endswith("Answer with one word: A, B or Same.")
    assert "A: item A is “will fail”, item B is “will hold”." in user["content"]


def test_long_text_is_cut_and_cost_is_bounded_by_bytes() -> None:
    question = WORDS.about_item(text("é" * 30_000))
    assert "(10,000 characters more)" in question.messages[1]["content"]
    length = sum(len(message["content"].encode()) for message in question.messages)
    assert length <= question.most_tokens <= length + 200


def test_images_are_sent_as_data(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\nrest")
    image = ItemView("image", "a.png", image_path=path)
    question = WORDS.about_pair(image, image)
    parts = question.messages[1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"] * 2 + ["text"]
    assert parts[1]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgpy")
    assert question.most_tokens > 4000
    path.write_bytes(b"<svg onload=alert(1)>")
    with pytest.raises(ModelError, match=r"a\.png is no PNG, JPEG, GIF or WebP image"):
        WORDS.about_item(image)


# ---- tokens and replies -------------------------------------------------------------------------


def test_variants_of_an_answer_are_summed() -> None:
    tokens = (("A", 0.1), (" a", 0.1), ("**B**", 0.2), ("(b", 0.1), ("Same", 0.2), ("S", 0.1))
    shares, mass = answer_shares((*tokens, ("Both", 0.2)), PAIR_ANSWERS)
    assert mass == pytest.approx(0.8)
    assert shares == pytest.approx({"A": 0.25, "B": 0.375, "Same": 0.375})


def test_nothing_recognised_is_no_mass() -> None:
    assert answer_shares((("Sorry", 1.0),), ITEM_ANSWERS) == ({"Yes": 0.0, "No": 0.0}, 0.0)
    assert answer_shares((), ITEM_ANSWERS)[1] == 0.0


def reply(**changes: object) -> bytes:
    top = [{"token": "Yes", "logprob": math.log(0.75)}, {"token": "No", "logprob": math.log(0.25)}]
    content = [{"token": "Yes", "logprob": math.log(0.75), "top_logprobs": top}]
    choice = {"message": {"content": "Yes"}, "logprobs": {"content": content}}
    return json.dumps({"choices": [choice | changes]}).encode()


def test_chosen_token_counts_where_it_is_not_among_the_top() -> None:
    content = [{"token": "No", "logprob": math.log(0.1), "top_logprobs": []}]
    assert dict(read_reply(reply(logprobs={"content": content})).tokens) == pytest.approx(
        {"No": 0.1}
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"<html>",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": 3}]}',
        b'{"choices": 7}',
        b"[" * 100_000,
        reply(logprobs={"content": [{"token": "Yes"}]}),
        reply(logprobs={"content": [{"token": 3, "logprob": -1}]}),
        reply(logprobs={"content": [{"token": "Yes", "logprob": "x"}]}),
        reply(logprobs={"content": [{"token": "Yes", "logprob": 5}]}),
        reply(logprobs={"content": [{"token": "Yes", "logprob": math.nan}]}),
        reply(logprobs={"content": [{"token": "Yes", "logprob": True}]}),
        reply(logprobs={"content": {"a": 1}}),
        reply(logprobs=[1, 2]),
    ],
)
def test_malformed_replies(data: bytes) -> None:
    with pytest.raises(MalformedReply):
        read_reply(data)


@given(st.binary())
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    with pytest.raises((MalformedReply, ModelError)):
        read_reply(data)


def test_missing_token_probabilities_are_named() -> None:
    for logprobs in (None, {}, {"content": None}):
        with pytest.raises(ModelError, match="without token probabilities"):
            read_reply(reply(logprobs=logprobs))


def test_error_texts_are_short_and_printable() -> None:
    assert error_text(b'{"error": "plain"}') == ("plain", "")
    assert error_text(b"\x1b[31m" + b"x" * 1000) == ("[31m" + "x" * 296, "")
    assert error_text(b'{"error": {"message": "a\\nb", "code": 7}}') == ("a b", "7")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("-5", 0.0), ("nan", None), ("inf", None), ("x", None), (None, None)],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert retry_after(header) == seconds


# ---- addresses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("https://api.example.com/v1", "https://api.example.com/v1/chat/completions"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1/chat/completions"),
        ("http://127.8.9.1", "http://127.8.9.1/chat/completions"),
        ("http://[::1]:99/v1", "http://[::1]:99/v1/chat/completions"),
    ],
)
def test_addresses(url: str, whole: str) -> None:
    assert chat_url(url) == whole


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com",
        "file:///etc/passwd",
        "example.com/v1",
        "https://",
        "https://user:secret@example.com/v1",
        "https://example.com/v1?key=secret",
        "https://example.com/v1#x",
        "https://example.com:99999/v1",
        "https://exa mple.com/v1",
        "https://example.com/v1\r\nX-Evil: 1",
        "https://exämple.com/v1",
        "http://example.com/v1",
        "http://10.0.0.1/v1",
        "http://0.0.0.0/v1",
        "http://localhost.example.com/v1",
        "http://127.0.0.1.example.com/v1",
    ],
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(ModelError) as refused:
        chat_url(url)
    assert "user:secret" not in str(refused.value)


def test_plain_http_beyond_this_machine_needs_to_be_asked_for() -> None:
    assert chat_url("http://10.0.0.1/v1", plain_http=True).startswith("http://10.0.0.1/v1")
