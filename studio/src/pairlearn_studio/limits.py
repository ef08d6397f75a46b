"""Limits on requests to a model: their rate, their number and cost, and answers asked before."""

from __future__ import annotations

import math
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec


class ModelError(ValueError):
    """The model or the endpoint cannot be used as asked; earlier judgements are kept."""


class SkippedError(Exception):
    """A question has no answer, for a reason of its own; others may have one."""


class LimitReached(Exception):
    """A limit on requests or cost is reached; run again to continue."""


class Budget:
    """Count requests, tokens and cost, and refuse requests that could exceed a limit.

    A request's cost is known with its answer. Until then the most that it can cost counts as spent,
    so that requests in flight do not add up to more than the limit. ``max_requests`` is without
    retries; ``max_cost`` is in the unit of the prices, which are for one million prompt tokens
    (``price_in``) and answer tokens (``price_out``).
    """

    def __init__(
        self,
        *,
        max_requests: int | None = None,
        max_cost: float | None = None,
        price_in: float = 0.0,
        price_out: float = 0.0,
    ) -> None:
        if max_cost is not None and not (price_in or price_out):
            raise ValueError("max_cost needs prices: give price_in, price_out or both")
        self._max_requests = math.inf if max_requests is None else max_requests
        self._max_cost = math.inf if max_cost is None else max_cost
        self._prices = price_in / 1e6, price_out / 1e6
        self._lock = threading.Lock()
        self.requests = self.prompt_tokens = self.completion_tokens = 0
        self.spent = 0.0

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Count one request and the most that these tokens cost; `settle` it later."""
        most = self._cost(prompt_tokens, completion_tokens)
        with self._lock:
            if self.requests >= self._max_requests:
                raise LimitReached("max-requests")
            if self.spent + most > self._max_cost:
                raise LimitReached("max-cost")
            self.requests += 1
            self.spent += most
            return most

    def settle(self, reserved: float, usage: tuple[int, int] | None) -> None:
        """Replace a reserved cost by that of the usage reported; None counts it in full."""
        if usage is not None:
            with self._lock:
                self.prompt_tokens += usage[0]
                self.completion_tokens += usage[1]
                self.spent += self._cost(*usage) - reserved

    def _cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return prompt_tokens * self._prices[0] + completion_tokens * self._prices[1]


class AnswerCache:
    """Answers by the hash of their question, as lines of a file that processes may share.

    An answer is on disk when `put` returns. Questions are not stored: items may be private. A line
    that was cut off is left out, and its question is asked again.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = AnswerCache(Path(folder, "answers.jsonl"))
    ...     cache.put("k", {"mass": 0.9})
    ...     AnswerCache(Path(folder, "answers.jsonl")).get("k"), len(cache.answers)
    ({'mass': 0.9}, 1)
    """

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        self.answers: dict[str, dict[str, Any]] = {}
        for line in path.read_bytes().splitlines() if path.exists() else ():
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                key, answer = msgspec.json.decode(line, type=tuple[str, dict[str, Any]])
                self.answers.setdefault(key, answer)

    def get(self, key: str) -> dict[str, Any] | None:
        """Answer to a question, or None."""
        return self.answers.get(key)

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """Store an answer; the first one stays."""
        line = msgspec.json.encode((key, answer))
        with self._lock:
            if key in self.answers:
                return
            with self.path.open("ab") as file:  # after whatever a process that was killed left
                file.write(b"\n" + line + b"\n")
                file.flush()
                os.fsync(file.fileno())
            self.answers[key] = answer
