"""Asking an endpoint, against a server of the protocol on loopback."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chat_server import ChatServer, Handler, chat_server, choice, hangs_up, refuses, replies
from pairlearn.studio.ask import (
    AnswerCache,
    Budget,
    ChatEndpoint,
    LimitReached,
    ModelError,
    Pace,
    Said,
    SaidOfItem,
    Wording,
    by_items,
    by_pairs,
    chat_item_model,
    chat_pair_model,
)
from pairlearn.studio.items import ItemView
from pairlearn.studio.limits import Stopped

WORDS = Wording("Coins", "heads", "tails")
KEY = "sk-very-secret-0123456789"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[AnswerCache]:
    with AnswerCache(tmp_path / "answers.sqlite") as opened:
        yield opened


class Calendar:
    """Waits that take no time, and are remembered."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.pace = Pace(clock=lambda: self.now, wait=self._wait)

    def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def coin(p: float) -> ItemView:
    return ItemView("table", "c", rows=(("p", repr(float(p))),))


def ask_pair(endpoint: ChatEndpoint, r: float = 0.4, r_prime: float = 0.6) -> Said:
    return chat_pair_model(endpoint, WORDS)(coin(r), coin(r_prime))


def ask_item(endpoint: ChatEndpoint, p: float = 0.4) -> SaidOfItem:
    return chat_item_model(endpoint, WORDS)(coin(p))


# ---- what comes back --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bias", "outside", "blank"), [(0.0, 0.0, False), (0.06, 0.3, False), (-0.08, 0.0, True)]
)
def test_known_posteriors_come_back(
    server: ChatServer, cache: AnswerCache, bias: float, outside: float, blank: bool
) -> None:
    """Whatever the model leans to, and however it spells its answers."""
    server.bias, server.outside, server.blank_first = bias, outside, blank
    endpoint = ChatEndpoint(server.base_url, "small", cache)
    r = np.random.default_rng(0).uniform(0.35, 0.65, 20)
    per_pair = by_pairs(chat_pair_model(endpoint, WORDS), lambda row: coin(r[int(row)]))
    per_item = by_items(chat_item_model(endpoint, WORDS), lambda row: coin(r[int(row)]))
    for left in range(10):
        right = left + 10
        agree = r[left] * r[right] + (1 - r[left]) * (1 - r[right])
        for judgement in (per_pair(str(left), str(right)), per_item(str(left), str(right))):
            assert judgement.similarity == pytest.approx(agree, abs=1e-9)
            assert judgement.difference == pytest.approx(r[right] - r[left], abs=1e-9)
            assert judgement.mass == pytest.approx(1 - outside)
        assert per_pair(str(left), str(right)).bias == pytest.approx(2 * bias, abs=1e-9)
    assert sum(server.questions.values()) == 20 + 20
    assert set(server.questions.values()) == {1}


def test_too_little_understood_is_cant_say(server: ChatServer, cache: AnswerCache) -> None:
    server.outside = 0.7
    endpoint = ChatEndpoint(server.base_url, "small", cache)
    assert ask_pair(endpoint)[:2] == (None, None)
    assert ask_item(endpoint).posterior is None
    assert ask_item(endpoint).mass == pytest.approx(0.3)
    said = chat_item_model(endpoint, WORDS, least_mass=0.2)(coin(0.4))
    assert said.posterior == pytest.approx(0.4)


def test_answer_that_was_filtered_out_is_cant_say(server: ChatServer, cache: AnswerCache) -> None:
    server.troubles.append(replies(json.dumps({"choices": [choice(None, None)]}).encode()))
    assert ask_pair(ChatEndpoint(server.base_url, "small", cache)) == Said(None, None, 0.0)


def test_request_is_of_the_protocol(server: ChatServer, cache: AnswerCache) -> None:
    ask_pair(ChatEndpoint(server.base_url, "small", cache, key=KEY, alternatives=7))
    (body,) = server.bodies
    assert body["model"] == "small"
    assert body["logprobs"] is True
    assert body["top_logprobs"] == 7
    assert body["temperature"] == 1
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert server.keys == [f"Bearer {KEY}"]


# ---- asked once -------------------------------------------------------------------------------


def test_cache_is_by_address_model_and_question(server: ChatServer, cache: AnswerCache) -> None:
    for name in ("small", "large", "small"):
        endpoint = ChatEndpoint(server.base_url, name, cache, key=KEY)
        first, again = ask_item(endpoint), ask_item(endpoint)
        assert first == again
    assert len(server.bodies) == 2
    assert endpoint.cached == 2
    with chat_server() as other:
        ask_item(ChatEndpoint(other.base_url, "small", cache))
        assert len(other.bodies) == 1


def test_key_and_items_are_not_in_the_cache(server: ChatServer, tmp_path: Path) -> None:
    with AnswerCache(tmp_path / "c.sqlite") as cache:
        ask_item(ChatEndpoint(server.base_url, "small", cache, key=KEY), 0.4321)
        stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert KEY.encode() not in stored
    assert b"0.4321" not in stored
    assert b"Yes" in stored


def test_equal_questions_at_once_are_one_request(server: ChatServer, cache: AnswerCache) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def hold(handler: Handler) -> bool:
        asked.set()
        go_on.wait(30)
        return False

    server.troubles.append(hold)
    endpoint = ChatEndpoint(server.base_url, "small", cache)
    results: list[SaidOfItem] = []
    threads = [
        threading.Thread(target=lambda: results.append(ask_item(endpoint))) for _ in range(6)
    ]
    threads[0].start()
    assert asked.wait(30)
    for thread in threads[1:]:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(server.bodies) == 1
    assert len(set(results)) == 1


def test_limit_on_requests_counts_every_try(server: ChatServer, cache: AnswerCache) -> None:
    calendar = Calendar()
    server.troubles.append(refuses(500))
    budget = Budget(max_requests=2)
    endpoint = ChatEndpoint(server.base_url, "small", cache, pace=calendar.pace, budget=budget)
    ask_item(endpoint, 0.1)
    with pytest.raises(LimitReached, match="max-requests"):
        ask_item(endpoint, 0.2)
    assert ask_item(endpoint, 0.1).posterior == pytest.approx(0.1)  # from disk, for nothing
    assert len(server.bodies) == 2


def test_limit_on_cost_is_kept(server: ChatServer, cache: AnswerCache) -> None:
    server.usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    budget = Budget(max_cost=0.0201, price_in=2.0, price_out=4.0)
    endpoint = ChatEndpoint(server.base_url, "small", cache, budget=budget)
    asked = 0
    with pytest.raises(LimitReached, match="max-cost"):
        for number in range(20):
            ask_item(endpoint, number / 20)
            asked += 1
    # 1000 · 2e-6 + 500 · 4e-6 = .004 a question; the next one might cost .0017 in prompt.
    assert asked == 5
    assert budget.spent == pytest.approx(0.02)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": -5}, {"prompt_tokens": "9"}])
def test_without_counts_the_most_is_charged(
    server: ChatServer, cache: AnswerCache, usage: dict[str, Any] | None
) -> None:
    server.usage = usage
    budget = Budget(max_cost=1.0, price_in=1.0)
    ask_item(ChatEndpoint(server.base_url, "small", cache, budget=budget))
    size = sum(len(m["content"].encode()) for m in server.bodies[0]["messages"])
    assert size <= budget.spent * 1e6 <= size + 200


# ---- what goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [
        refuses(429), refuses(500), refuses(503), replies(b"{oops"), replies(b"{}"), hangs_up,
    ],
)  # fmt: skip
def test_passing_trouble_is_tried_again(
    server: ChatServer, cache: AnswerCache, trouble: Any
) -> None:
    calendar = Calendar()
    server.troubles.extend([trouble, trouble])
    endpoint = ChatEndpoint(server.base_url, "small", cache, pace=calendar.pace)
    assert ask_item(endpoint).posterior == pytest.approx(0.4)
    assert endpoint.retried == 2
    assert 0.25 <= calendar.waits[0] <= 0.5
    assert 0.5 <= calendar.waits[1] <= 1


def test_retry_after_holds_everybody(server: ChatServer, cache: AnswerCache) -> None:
    calendar = Calendar()
    server.troubles.append(refuses(429, Retry_After="17"))
    endpoint = ChatEndpoint(server.base_url, "small", cache, pace=calendar.pace)
    ask_item(endpoint)
    assert calendar.waits == [17.0]


def test_endpoint_that_closes_for_long(server: ChatServer, cache: AnswerCache) -> None:
    server.troubles.append(refuses(429, "come back tomorrow", Retry_After="86400"))
    with pytest.raises(ModelError, match=r"asks to wait for 86,400 s .*tomorrow.*run again then"):
        ask_item(ChatEndpoint(server.base_url, "small", cache))


def test_trouble_that_does_not_pass(server: ChatServer, cache: AnswerCache) -> None:
    calendar = Calendar()
    server.always = refuses(502, "bad \x1b[31mgateway")
    endpoint = ChatEndpoint(server.base_url, "small", cache, pace=calendar.pace, retries=3)
    with pytest.raises(ModelError, match=r"failed 4 times, at last with: HTTP 502 bad \[31mgatew"):
        ask_item(endpoint)
    assert len(server.bodies) == 4
    assert len(cache) == 0


def test_slow_answers_time_out(server: ChatServer, cache: AnswerCache) -> None:
    release = threading.Event()
    server.always = lambda handler: release.wait(30) and hangs_up(handler)
    endpoint = ChatEndpoint(
        server.base_url, "small", cache, timeout=0.1, retries=1, pace=Calendar().pace
    )
    with pytest.raises(ModelError, match=r"no answer within 0\.1 s"):
        ask_item(endpoint)
    release.set()


def test_answers_that_drip_time_out(server: ChatServer, cache: AnswerCache) -> None:
    """Every byte comes in time, and the whole never does."""
    over = threading.Event()

    def drip(handler: Handler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        while not over.wait(0.02):
            handler.wfile.write(b" ")
        return True

    server.always = drip
    endpoint = ChatEndpoint(server.base_url, "small", cache, timeout=0.2, retries=0)
    with pytest.raises(ModelError, match=r"no answer within 0\.2 s"):
        ask_item(endpoint)
    over.set()


def test_answer_that_is_cut_off(server: ChatServer, cache: AnswerCache) -> None:
    def cut(handler: Handler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"{}")
        return hangs_up(handler)

    server.always = cut
    endpoint = ChatEndpoint(server.base_url, "small", cache, retries=0)
    with pytest.raises(ModelError, match="failed 1 times"):
        ask_item(endpoint)


def test_huge_answer_is_refused(server: ChatServer, cache: AnswerCache) -> None:
    server.always = replies(b" " * (5 * 2**20))
    with pytest.raises(ModelError, match="more than 4,194,304 bytes"):
        ask_item(ChatEndpoint(server.base_url, "small", cache))


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (refuses(401, f"bad key {KEY}"), "refuses access (HTTP 401): check the key"),
        (refuses(403, f"bad key {KEY}"), "refuses access (HTTP 403): check the key"),
        (refuses(404, "no model 'small'"), "no model 'small' (HTTP 404"),
        (refuses(400, f"too long, {KEY}"), "(HTTP 400): too long, [key]"),
        (refuses(429, "pay first", "insufficient_quota"), "(HTTP 429): pay first"),
        (refuses(307, "elsewhere", Location="http://evil.example"), "redirects (HTTP 307)"),
    ],
)
def test_refusals_end_the_run_and_hide_the_key(
    server: ChatServer,
    cache: AnswerCache,
    caplog: pytest.LogCaptureFixture,
    trouble: Any,
    message: str,
) -> None:
    caplog.set_level(logging.DEBUG)  # of the HTTP client, too
    server.always = trouble
    with pytest.raises(ModelError) as refused:
        ask_item(ChatEndpoint(server.base_url, "small", cache, key=KEY))
    assert message in str(refused.value)
    assert caplog.records and KEY not in str(refused.value) + caplog.text
    assert len(server.bodies) == 1


def test_address_without_its_path(server: ChatServer, cache: AnswerCache) -> None:
    with pytest.raises(ModelError, match=r"often ends in /v1"):
        ask_item(ChatEndpoint(server.base_url.removesuffix("/v1"), "small", cache))


def test_nobody_listens(cache: AnswerCache) -> None:
    with chat_server() as gone:
        url = gone.base_url
    endpoint = ChatEndpoint(url, "small", cache, retries=1, pace=Calendar().pace, key=KEY)
    with pytest.raises(ModelError, match="Connection refused"):
        ask_item(endpoint)


def test_stop_ends_retries(server: ChatServer, cache: AnswerCache) -> None:
    endpoint = ChatEndpoint(server.base_url, "small", cache)

    def fail(handler: Handler) -> bool:
        endpoint.pace.stop()
        return refuses(500)(handler)

    server.always = fail
    with pytest.raises(Stopped):
        ask_item(endpoint)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "two words"}, "the key holds blanks"),
        ({"key": "line\nbreak"}, "the key holds blanks"),
        ({"timeout": 0}, "timeout must lie in"),
        ({"timeout": math.inf}, "timeout must lie in"),
        ({"alternatives": 0}, "alternatives must lie in"),
    ],
)
def test_wrong_settings(cache: AnswerCache, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message) as refused:
        ChatEndpoint("http://127.0.0.1:1/v1", "small", cache, **options)
    assert "two words" not in str(refused.value)


def test_least_mass_is_a_probability(cache: AnswerCache) -> None:
    endpoint = ChatEndpoint("http://127.0.0.1:1/v1", "small", cache)
    with pytest.raises(ValueError, match=r"least_mass must lie in \[0, 1\]; got 2"):
        chat_pair_model(endpoint, WORDS, 2.0)
