"""Asking an endpoint, against servers of every sort on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chat_server as sorts
from chat_server import ChatServer, Handler, chat_server, hangs_up, refuses, replies
from pairlearn_studio.ask import (
    AnswerCache,
    Budget,
    ChatEndpoint,
    LimitReached,
    ModelError,
    SaidOfItem,
    Wording,
    by_items,
    by_pairs,
    chat_item_model,
    chat_pair_model,
)
from pairlearn_studio.items import ItemView
from pairlearn_studio.limits import SkippedError

WORDS = Wording("Coins", "heads", "tails")
KEY = "sk-very-secret-0123456789"


class Line:
    """A server, and the answers on disk."""

    def __init__(self, server: ChatServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.cache = AnswerCache(folder / "answers.jsonl")

    def endpoint(self, name: str = "small", **options: Any) -> ChatEndpoint:
        return ChatEndpoint(self.server.base_url, name, self.cache, **({"retries": 1} | options))

    def ask(self, p: float = 0.4, **options: Any) -> SaidOfItem:
        return chat_item_model(self.endpoint(**options), WORDS)(coin(p))


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with chat_server() as server:
        made = Line(server, tmp_path)
        yield made
        server.gate.set()


def coin(p: float) -> ItemView:
    return ItemView("table", "c", rows=(("p", repr(float(p))),))


@pytest.mark.parametrize(
    ("sort", "way"),
    [
        (None, "logprobs"),
        (sorts.five_alternatives, "logprobs"),
        (sorts.older_parameters, "logprobs"),
        (sorts.no_logprobs, "stated"),
        (sorts.thinks_first, "stated"),
        (refuses(400, "logprobs are not supported"), None),
    ],
)
def test_known_posteriors_come_back(line: Line, sort: Any, way: str | None) -> None:
    def without_logprobs(handler: Handler) -> bool:
        refused = "logprobs" in handler.body
        return (sort if refused else sorts.no_logprobs)(handler)

    line.server.always = sort if way else without_logprobs
    endpoint = line.endpoint()
    r = np.random.default_rng(0).uniform(0.1, 0.9, (5, 2))
    views = {str(p): coin(p) for p in r.ravel()}
    judge = by_pairs(chat_pair_model(endpoint, WORDS), views.__getitem__)
    items = by_items(chat_item_model(endpoint, WORDS), views.__getitem__)
    for left, right in r.tolist():
        for judgement in (judge(str(left), str(right)), items(str(left), str(right))):
            same = left * right + (1 - left) * (1 - right)
            assert judgement.similarity == pytest.approx(same)
            assert judgement.difference == pytest.approx(right - left)
    assert endpoint.way == (way or "stated")


def test_samples_are_counted_where_nothing_else_is_understood(line: Line) -> None:
    line.server.always = sorts.breaks_json
    endpoint = line.endpoint(samples=3)
    reply = chat_pair_model(endpoint, WORDS)(coin(0.9), coin(0.1))
    assert endpoint.way == "samples"
    assert (reply.similarity, reply.difference) == (0.0, -1.0)
    assert len(line.server.bodies) == 1 + 1 + 3


def test_position_bias_is_averaged_out(line: Line) -> None:
    line.server.bias = 0.06
    judge = by_pairs(chat_pair_model(line.endpoint(), WORDS), lambda p: coin(float(p)))
    judgement = judge("0.4", "0.5")
    assert judgement.difference == pytest.approx(0.1)
    assert [c for _, c in judgement.orders] == pytest.approx([0.22, -0.02])
    one = by_pairs(
        chat_pair_model(line.endpoint(), WORDS), lambda p: coin(float(p)), both_orders=False
    )
    assert one("0.4", "0.5").difference == pytest.approx(0.22)


def test_too_little_understood_is_said(line: Line) -> None:
    line.server.outside = 0.6
    answer = line.ask(0.4, way="logprobs")
    assert answer.posterior is None
    assert answer.mass == pytest.approx(0.4)
    assert answer.text


def test_what_is_sent_and_cached_by_address_model_and_question(line: Line) -> None:
    for name in ("small", "small", "large"):
        assert line.ask(name=name, key=KEY).posterior == pytest.approx(0.4)
    assert [body["model"] for body in line.server.bodies] == ["small", "large"]
    body = line.server.bodies[0]
    assert body["logprobs"] is True and body["top_logprobs"] == 20 and body["temperature"] == 1
    assert body["max_completion_tokens"] <= 10 and "max_tokens" not in body
    assert line.server.keys == [f"Bearer {KEY}"] * 2
    assert KEY.encode() not in b"".join(path.read_bytes() for path in line.folder.iterdir())


def test_an_item_of_several_pairs_is_one_request(line: Line) -> None:
    endpoint = line.endpoint(way="logprobs")
    entered, gate = threading.Event(), threading.Event()

    def wait(_: Handler) -> bool:
        entered.set()
        gate.wait(60)
        return False

    line.server.troubles.append(wait)
    judge = by_items(chat_item_model(endpoint, WORDS), lambda _: coin(0.4))
    threads = [threading.Thread(target=judge, args=("a", "a")) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert entered.wait(60)
    gate.set()
    for thread in threads:
        thread.join()
    assert len(line.server.bodies) == 1


def test_limit_on_requests(line: Line) -> None:
    budget = Budget(max_requests=2)
    assert line.ask(0.4, budget=budget).posterior == pytest.approx(0.4)
    assert line.ask(0.4, budget=budget).posterior == pytest.approx(0.4)  # from disk
    assert line.ask(0.3, budget=budget).posterior == pytest.approx(0.3)
    with pytest.raises(LimitReached, match="max-requests"):
        line.ask(0.2, budget=budget)


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": -1}, {"prompt_tokens": "many"}])
def test_without_counts_the_most_is_charged(line: Line, usage: dict[str, Any] | None) -> None:
    line.server.usage = usage
    budget = Budget(price_in=1e6, price_out=1e6)
    line.ask(budget=budget)
    assert budget.spent > 100 and budget.prompt_tokens == 0


@pytest.mark.parametrize(
    "trouble", [refuses(500), refuses(503), refuses(429, Retry_After="0"), hangs_up]
)
def test_passing_trouble_is_tried_again(line: Line, trouble: Any) -> None:
    line.server.troubles.append(trouble)
    endpoint = line.endpoint()
    assert chat_item_model(endpoint, WORDS)(coin(0.4)).posterior == pytest.approx(0.4)
    assert endpoint.retried == 1


@pytest.mark.parametrize(
    ("trouble", "error", "message"),
    [
        (refuses(401, f"bad key {KEY}"), ModelError, "refuses access"),
        (refuses(404, "no such model"), ModelError, "no such address or model"),
        (refuses(302, Location="http://127.0.0.1:1/"), ModelError, "redirects"),
        (refuses(429, "quota", Retry_After="0"), ModelError, "limits the rate"),
        (refuses(500, f"oops {KEY}"), SkippedError, "HTTP 500"),
        (refuses(400, f"filtered {KEY}", code="content_filter"), SkippedError, "refused"),
        (replies(b"<html>"), SkippedError, "not a chat completion"),
        (replies(b'{"choices": []}'), SkippedError, "not a chat completion"),
        (hangs_up, ModelError, "cannot be reached"),
    ],
)
def test_trouble_that_does_not_pass(line: Line, trouble: Any, error: Any, message: str) -> None:
    line.server.always = trouble
    with pytest.raises(error, match=message) as raised:
        line.ask(key=KEY)
    assert KEY not in str(raised.value)


def test_a_refusal_is_not_asked_again(line: Line) -> None:
    refusal = {"message": {"content": None, "refusal": "I must not."}, "logprobs": None}
    line.server.always = lambda handler: handler.write(None, **refusal)
    for _ in range(2):
        with pytest.raises(SkippedError, match="I must not"):
            line.ask(way="stated")
    assert len(line.server.bodies) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": ""}, "name is empty"),
        ({"key": "two words"}, "the key holds blanks"),
    ],
)
def test_wrong_settings(line: Line, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        line.endpoint(**options)


@pytest.mark.parametrize(
    "url",
    ["http://example.com/v1", "ftp://x/v1", "https://u:p@x/v1", "https://x/v1?k=1", "x", "http://"],
)
def test_addresses_that_are_refused(line: Line, url: str) -> None:
    with pytest.raises(ModelError):
        ChatEndpoint(url, "m", line.cache)
