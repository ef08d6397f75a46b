"""Asking an endpoint, against a server of the protocol on loopback."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chat_server import ChatServer, Handler, chat_server, choice, hangs_up, refuses, replies
from pairlearn_studio.ask import (
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
from pairlearn_studio.items import ItemView
from pairlearn_studio.limits import Stopped
from studio_processes import wait_until

WORDS = Wording("Coins", "heads", "tails")
KEY = "sk-very-secret-0123456789"


class Line:
    """A server, the answers on disk, and waits that take no time and are remembered."""

    def __init__(self, server: ChatServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.cache = AnswerCache(folder / "answers.sqlite")
        self.now, self.waits = 0.0, list[float]()
        self.pace = Pace(clock=lambda: self.now, wait=self._wait)

    def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def endpoint(self, name: str = "small", **options: Any) -> ChatEndpoint:
        return ChatEndpoint(
            self.server.base_url, name, self.cache, **({"pace": self.pace} | options)
        )

    def ask(self, p: float = 0.4, **options: Any) -> SaidOfItem:
        return chat_item_model(self.endpoint(**options), WORDS)(coin(p))


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with chat_server() as server:
        made = Line(server, tmp_path)
        yield made
        made.cache.close()


def coin(p: float) -> ItemView:
    return ItemView("table", "c", rows=(("p", repr(float(p))),))


@pytest.mark.parametrize(
    ("bias", "outside", "blank"), [(0.0, 0.0, False), (0.06, 0.3, False), (-0.08, 0.0, True)]
)
def test_known_posteriors_come_back(line: Line, bias: float, outside: float, blank: bool) -> None:
    """Whatever the model leans to, and however it spells its answers; each is asked once."""
    server, endpoint = line.server, line.endpoint()
    server.bias, server.outside, server.blank_first = bias, outside, blank
    r = np.random.default_rng(0).uniform(0.35, 0.65, 8)
    per_pair = by_pairs(chat_pair_model(endpoint, WORDS), lambda row: coin(r[int(row)]))
    per_item = by_items(chat_item_model(endpoint, WORDS), lambda row: coin(r[int(row)]))
    for left in range(4):
        right = left + 4
        agree = r[left] * r[right] + (1 - r[left]) * (1 - r[right])
        for judgement in (per_pair(str(left), str(right)), per_item(str(left), str(right))):
            assert judgement.similarity == pytest.approx(agree, abs=1e-9)
            assert judgement.difference == pytest.approx(r[right] - r[left], abs=1e-9)
            assert judgement.mass == pytest.approx(1 - outside)
        assert per_pair(str(left), str(right)).bias == pytest.approx(2 * bias, abs=1e-9)
    assert sum(server.questions.values()) == 8 + 8
    assert set(server.questions.values()) == {1}


def test_too_little_understood_is_cant_say(line: Line) -> None:
    line.server.outside = 0.7
    assert line.ask() == SaidOfItem(None, pytest.approx(0.3))
    answer = chat_item_model(line.endpoint(), WORDS, least_mass=0.2)(coin(0.4))
    assert answer.posterior == pytest.approx(0.4)
    with pytest.raises(ValueError, match=r"least_mass must lie in \[0, 1\]; got 2"):
        chat_pair_model(line.endpoint(), WORDS, 2.0)
    line.server.troubles.append(replies(json.dumps({"choices": [choice(None, None)]}).encode()))
    ask_pair = chat_pair_model(line.endpoint(), WORDS)
    assert ask_pair(coin(0.4), coin(0.6)) == Said(None, None, 0.0)  # filtered out


def test_what_is_sent_and_cached_by_address_model_and_question(line: Line) -> None:
    for name in ("small", "large", "small"):
        answer = line.ask(0.4321, name=name, key=KEY, alternatives=7)
        assert answer.posterior == pytest.approx(0.4321)
    body, _ = line.server.bodies
    sent = (body["model"], body["logprobs"], body["top_logprobs"], body["temperature"])
    assert sent == ("small", True, 7, 1)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert line.server.keys == [f"Bearer {KEY}"] * 2
    with chat_server() as other:
        chat_item_model(ChatEndpoint(other.base_url, "small", line.cache), WORDS)(coin(0.4321))
        assert len(other.bodies) == 1
    stored = b"".join(path.read_bytes() for path in line.folder.iterdir())
    assert KEY.encode() not in stored and b"0.4321" not in stored and b"Yes" in stored


def test_equal_questions_at_once_are_one_request(line: Line) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def hold(handler: Handler) -> bool:
        asked.set()
        go_on.wait(120)
        return False

    line.server.troubles.append(hold)
    ask = chat_item_model(line.endpoint(), WORDS)
    results: list[SaidOfItem] = []
    threads = [threading.Thread(target=lambda: results.append(ask(coin(0.4)))) for _ in range(6)]
    threads[0].start()
    assert asked.wait(120)
    for thread in threads[1:]:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(line.server.bodies) == 1 and len(set(results)) == 1


def test_limit_on_requests_counts_every_try(line: Line) -> None:
    line.server.troubles.append(refuses(500))
    budget = Budget(max_requests=2)
    line.ask(0.1, budget=budget)
    with pytest.raises(LimitReached, match="max-requests"):
        line.ask(0.2, budget=budget)
    assert line.ask(0.1, budget=budget).posterior == pytest.approx(0.1)  # from disk, for nothing
    assert len(line.server.bodies) == 2


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": -5}, {"prompt_tokens": "9"}])
def test_without_counts_the_most_is_charged(line: Line, usage: dict[str, Any] | None) -> None:
    line.server.usage, budget = usage, Budget(max_cost=1.0, price_in=1.0)
    line.ask(budget=budget)
    size = sum(len(m["content"].encode()) for m in line.server.bodies[0]["messages"])
    assert size <= budget.spent * 1e6 <= size + 200


# ---- what goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [refuses(429), refuses(500), refuses(503), replies(b"{oops"), replies(b"{}"), hangs_up],
)
def test_passing_trouble_is_tried_again(line: Line, trouble: Any) -> None:
    line.server.troubles.extend([trouble, trouble])
    assert line.ask().posterior == pytest.approx(0.4)
    assert 0.25 <= line.waits[0] <= 0.5 and 0.5 <= line.waits[1] <= 1


def test_retry_after_holds_everybody(line: Line) -> None:
    line.server.troubles.append(refuses(429, Retry_After="17"))
    line.ask()
    assert line.waits == [17.0]
    line.server.troubles.append(refuses(429, "come back tomorrow", Retry_After="86400"))
    with pytest.raises(ModelError, match=r"asks to wait for 86,400 s .*tomorrow.*run again then"):
        line.ask(0.1)


def slow(handler: Handler) -> bool:
    """Every byte comes in time, and the whole never does."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    with suppress(OSError):  # until the caller gives up
        while not threading.Event().wait(0.02):
            handler.wfile.write(b" ")
    return True


def silent(handler: Handler) -> bool:
    handler.connection.recv(1)  # until the caller gives up
    return hangs_up(handler)


def cut(handler: Handler) -> bool:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{}")
    return hangs_up(handler)


@pytest.mark.parametrize(
    ("trouble", "tries", "message"),
    [
        (refuses(502, "bad \x1b[31mgateway"), 2, "failed 2 times, at last with: HTTP 502 bad [31m"),
        (silent, 2, "no answer within 0.2 s"),
        (slow, 2, "no answer within 0.2 s"),
        (cut, 2, "failed 2 times"),
        (replies(b" " * (5 * 2**20)), 1, "more than 4,194,304 bytes"),
        (refuses(401, f"bad key {KEY}"), 1, "refuses access (HTTP 401): check the key"),
        (refuses(403, f"bad key {KEY}"), 1, "refuses access (HTTP 403): check the key"),
        (refuses(404, "no model 'small'"), 1, "no model 'small' (HTTP 404"),
        (refuses(400, f"too long, {KEY}"), 1, "(HTTP 400): too long, [key]"),
        (refuses(429, "pay first", "insufficient_quota"), 1, "(HTTP 429): pay first"),
        (refuses(307, "elsewhere", Location="http://evil.example"), 1, "redirects (HTTP 307)"),
    ],
)
def test_trouble_that_does_not_pass(
    line: Line, caplog: pytest.LogCaptureFixture, trouble: Any, tries: int, message: str
) -> None:
    caplog.set_level(logging.DEBUG)  # of the HTTP client, too
    line.server.always = trouble
    with pytest.raises(ModelError) as refused:
        line.ask(key=KEY, retries=1, timeout=0.2 if trouble in (slow, silent) else 60)
    assert message in str(refused.value)
    assert caplog.records and KEY not in str(refused.value) + caplog.text
    wait_until(lambda: len(line.server.bodies) == tries)
    assert len(line.cache) == 0


def test_addresses_where_nobody_answers(line: Line) -> None:
    with chat_server() as gone:
        url = gone.base_url
    for address, message in (
        (line.server.base_url.removesuffix("/v1"), "often ends in /v1"),
        (url, "Connection refused"),
    ):
        endpoint = ChatEndpoint(address, "small", line.cache, retries=1, pace=line.pace)
        with pytest.raises(ModelError, match=message):
            chat_item_model(endpoint, WORDS)(coin(0.4))


def test_stop_ends_retries(line: Line) -> None:
    pace = Pace()

    def fail(handler: Handler) -> bool:
        pace.stop()
        return refuses(500)(handler)

    line.server.always = fail
    with pytest.raises(Stopped):
        line.ask(pace=pace)
    assert len(line.server.bodies) == 1


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
def test_wrong_settings(line: Line, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message) as refused:
        line.endpoint(**options)
    assert "two words" not in str(refused.value)
