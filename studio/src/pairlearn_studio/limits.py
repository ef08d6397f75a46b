"""Limits on requests to a model: their rate, their number and cost, and answers asked before."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from pairlearn_studio.store_file import enable_wal, open_sqlite, to_file_error

T = TypeVar("T")


class ModelError(ValueError):
    """The model or the endpoint cannot be used as asked; earlier judgements are kept."""


class SkippedError(Exception):
    """A question has no answer, for a reason of its own; others may have one."""


class LimitReached(Exception):
    """A limit on requests or cost is reached; run again to continue."""


class Stopped(Exception):
    """The run ended while a question waited for its turn."""


class Pace:
    """Spaces requests evenly, whichever thread sends them, if ``per_minute`` is given."""

    def __init__(self, per_minute: float | None = None) -> None:
        if per_minute is not None and not 0 < per_minute < math.inf:
            raise ValueError(f"per_minute must be a positive number; got {per_minute}")
        self._interval, self._next = 60 / per_minute if per_minute else 0.0, -math.inf
        self._stopped, self._lock = threading.Event(), threading.Lock()

    def turn(self) -> None:
        """Return when the next request may be sent; raise `Stopped` after `stop`."""
        while True:
            with self._lock:
                if self._stopped.is_set():
                    raise Stopped
                now = time.monotonic()
                if self._next <= now:
                    self._next = now + self._interval
                    return
                delay = self._next - now
            self._stopped.wait(delay)

    def stop(self) -> None:
        """Let no further request through, and wake those that wait."""
        self._stopped.set()


class Budget:
    """Count requests, tokens and cost, and refuse requests that could exceed a limit.

    A request's cost is known with its answer. Until then the most that it can cost is reserved, so
    that requests in flight do not add up to more than the limit. ``max_requests`` is without
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
        self._reserved: list[float] = []
        self._changed = threading.Condition()
        self.requests = self.prompt_tokens = self.completion_tokens = 0
        self.spent = 0.0

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Count one request and reserve the cost of these tokens; `settle` it later.

        Waits while requests in flight hold the budget that this one needs.
        """
        most = self._cost(prompt_tokens, completion_tokens)
        with self._changed:
            while self.requests < self._max_requests:
                if self.spent + sum(self._reserved) + most <= self._max_cost:
                    self.requests += 1
                    self._reserved.append(most)
                    return most
                if not self._reserved:
                    raise LimitReached("max-cost")
                self._changed.wait()
            raise LimitReached("max-requests")

    def settle(self, reserved: float, usage: tuple[int, int] | None) -> None:
        """Replace a reserved cost by that of the usage reported; None counts it in full."""
        with self._changed:
            self._reserved.remove(reserved)
            if usage is None:
                self.spent += reserved
            else:
                self.prompt_tokens += usage[0]
                self.completion_tokens += usage[1]
                self.spent += self._cost(*usage)
            self._changed.notify_all()

    def _cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return prompt_tokens * self._prices[0] + completion_tokens * self._prices[1]


class AnswerCache:
    """Answers by the hash of their question, in an SQLite file that processes can share.

    An answer is on disk when `put` returns. Questions are not stored: items may be private.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AnswerCache(Path(folder, "answers.sqlite")) as cache:
    ...         cache.put("k", {"tokens": [["Yes", -0.1]]})
    ...         cache.get("k"), cache.get("other"), len(cache)
    ({'tokens': [['Yes', -0.1]]}, None, 1)
    """

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        # Only SQLite opens the file, as `pairlearn_studio.store_file` explains.
        try:
            self._connection = open_sqlite(path)
        except sqlite3.DatabaseError as error:
            raise self._refusal(error) from None
        with ExitStack() as on_failure:
            on_failure.callback(self._connection.close)
            with self._using() as connection:
                enable_wal(connection)
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS answers "
                    "(question TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID"
                )
            on_failure.pop_all()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; errors of the file become `ModelError`."""
        try:
            with self._lock, self._connection:
                yield self._connection
        except (sqlite3.DatabaseError, ValueError, TypeError, RecursionError) as error:
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> ModelError:
        file_error = to_file_error(self.path, error)
        if not file_error.damaged:
            return ModelError(str(file_error))
        return ModelError(
            f"{self.path} is no cache of answers, or is damaged ({error!s:.300}): move it away, "
            "and a new one is made"
        )

    def get(self, key: str) -> dict[str, Any] | None:
        """Answer to a question, or None."""
        query = "SELECT answer FROM answers WHERE question = ?"
        with self._using() as connection:
            row = connection.execute(query, (key,)).fetchone()
            return None if row is None else dict(json.loads(row[0]))

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """Store an answer; the first one stays."""
        insert, text = "INSERT OR IGNORE INTO answers VALUES (?, ?)", json.dumps(answer)
        with self._using() as connection:
            connection.execute(insert, (key, text))

    def __len__(self) -> int:
        with self._using() as connection:
            return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Once(Generic[T]):
    """Share the result of a call among the threads that need it."""

    def __init__(self) -> None:
        self._lock, self._futures = threading.Lock(), dict[str, Future[T]]()

    def get(self, key: str, call: Callable[[], T]) -> T:
        """Result of the call; if it fails, all who wait get the error and the next one retries."""
        with self._lock:
            first = key not in self._futures
            future = self._futures.setdefault(key, Future())
        if first:
            try:
                future.set_result(call())
            except BaseException as error:
                with self._lock:
                    del self._futures[key]
                future.set_exception(error)
        return future.result()
