"""How fast and how much a model may be asked."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from pairlearn.annotate.models.errors import LimitReached, Stopped

__all__ = ["Budget", "Pace"]


class Pace:
    """Spaces requests evenly, whichever thread sends them.

    Parameters
    ----------
    per_minute : float, optional
        Requests a minute; as fast as they come if not given.
    clock : callable
        Seconds, monotonic.
    wait : callable, optional
        Waits for the given seconds, or less if `stop` is called.

    Examples
    --------
    >>> now = [0.0]
    >>> pace = Pace(30, clock=lambda: now[0], wait=lambda s: now.append(now.pop() + s))
    >>> for _ in range(3):
    ...     pace.turn()
    ...     now[0]
    0.0
    2.0
    4.0
    """

    def __init__(
        self,
        per_minute: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        if per_minute is not None and not 0 < per_minute < math.inf:
            raise ValueError(f"per_minute must be a positive number; got {per_minute}")
        self._interval = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._stopped = threading.Event()
        self._wait = wait or self._stopped.wait
        self._lock = threading.Lock()
        self._next = -math.inf

    def turn(self) -> None:
        """Return when the next request may be sent; raise `Stopped` after `stop`."""
        while True:
            with self._lock:
                if self._stopped.is_set():
                    raise Stopped
                now = self._clock()
                if self._next <= now:
                    self._next = now + self._interval
                    return
                delay = self._next - now
            self._wait(delay)

    def hold(self, seconds: float) -> None:
        """Send nothing for so long: the endpoint asked for it."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)

    def pause(self, seconds: float) -> None:
        """Wait in this thread only; raise `Stopped` if the end comes first."""
        self._wait(seconds)
        if self._stopped.is_set():
            raise Stopped

    def stop(self) -> None:
        """Let nobody through any more, and wake those who wait."""
        self._stopped.set()


class Budget:
    """Counts requests, tokens and money, and refuses what could exceed a limit.

    What a request costs is known when its answer is there. Until then the most that it
    can cost is set aside, so that requests in flight do not add up to more than the limit.

    Parameters
    ----------
    max_requests : int, optional
        Requests, those sent again after a failure included.
    max_cost : float, optional
        Money, in the unit of the prices.
    price_in, price_out : float
        Of one million prompt tokens and of one million answer tokens.

    Attributes
    ----------
    requests, prompt_tokens, completion_tokens : int
    spent : float

    Examples
    --------
    >>> budget = Budget(max_cost=1.0, price_in=2.0)
    >>> held = budget.reserve(400_000, 0)
    >>> budget.settle(held, (100_000, 1))
    >>> budget.requests, round(budget.spent, 3)
    (1, 0.2)
    >>> budget.reserve(400_001, 0)
    Traceback (most recent call last):
    pairlearn.annotate.models.errors.LimitReached: max-cost
    """

    def __init__(
        self,
        *,
        max_requests: int | None = None,
        max_cost: float | None = None,
        price_in: float = 0.0,
        price_out: float = 0.0,
    ) -> None:
        for name, limit in (("max_requests", max_requests), ("max_cost", max_cost)):
            if limit is not None and not limit >= 0:
                raise ValueError(f"{name} must not be negative; got {limit}")
        for name, price in (("price_in", price_in), ("price_out", price_out)):
            if not 0 <= price < math.inf:
                raise ValueError(f"{name} must be a finite number of at least 0; got {price}")
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
        """Count one request and set aside what so many tokens cost; `settle` it later.

        Waits while requests in flight hold the money that this one needs.
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
        """Replace what was set aside by what the answer says, or by itself for None."""
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
