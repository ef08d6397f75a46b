"""An endpoint of the chat completions protocol that is asked for token probabilities."""

from __future__ import annotations

import http.client
import random
import threading
from concurrent.futures import Future
from typing import Any

from pairlearn.annotate.models.address import Address
from pairlearn.annotate.models.cache import AnswerCache, question_key
from pairlearn.annotate.models.errors import ModelError
from pairlearn.annotate.models.limits import Budget, Pace
from pairlearn.annotate.models.prompts import Question
from pairlearn.annotate.models.replies import MalformedReply, Reply, error_text, read_reply
from pairlearn.annotate.models.transport import HttpReply, post, retry_after

__all__ = ["ChatEndpoint"]

ANSWER_TOKENS = 4
"""One is the answer; blanks may stand before it."""
LONGEST_WAIT = 300.0
"""Seconds; an endpoint that asks for more has closed for today."""
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses that may be different next time."""


class ChatEndpoint:
    """Asks questions, each once: answers are kept on disk, failures are tried again.

    The temperature is 1: some servers report probabilities after it is applied, and at 0
    those are no probabilities of the model. What is sampled does not matter, since all
    alternatives of the first token are read.

    Parameters
    ----------
    base_url : str
        Such as ``http://127.0.0.1:8000/v1``.
    model : str
        Its name at the endpoint.
    cache : AnswerCache
        Where answers are kept.
    key : str, optional
        Sent as a bearer token; never stored, never in a message.
    plain_http : bool
        Admit http to other machines.
    pace : Pace, optional
        How fast to ask.
    budget : Budget, optional
        How much to ask.
    timeout : float
        Seconds for one request.
    retries : int
        How often a failed request is sent again.
    alternatives : int
        Alternatives of the token to ask for (``top_logprobs``).

    Attributes
    ----------
    asked, cached, retried : int
        Questions answered by the endpoint and from disk, requests sent again.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AnswerCache(pathlib.Path(folder, "answers.sqlite")) as cache:
    ...         ChatEndpoint("http://127.0.0.1:8000/v1", "small", cache).url
    'http://127.0.0.1:8000/v1/chat/completions'
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        cache: AnswerCache,
        *,
        key: str | None = None,
        plain_http: bool = False,
        pace: Pace | None = None,
        budget: Budget | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        alternatives: int = 20,
    ) -> None:
        self._address = Address.of(base_url, plain_http=plain_http)
        if not model:
            raise ModelError("the model's name is empty: give --model-name")
        if key is not None and (not key.isascii() or not key.isprintable() or " " in key):
            raise ModelError("the key holds blanks, line breaks or other odd characters")
        if not 0 < timeout <= 3600:
            raise ModelError(f"timeout must lie in (0, 3600] seconds; got {timeout:g}")
        if not 1 <= alternatives <= 100:
            raise ModelError(f"alternatives must lie in 1 to 100; got {alternatives}")
        self._model, self._key, self._cache = model, key, cache
        self.pace, self.budget = pace or Pace(), budget or Budget()
        self._timeout, self._retries, self._alternatives = timeout, retries, alternatives
        self._lock = threading.Lock()
        self._waiting: dict[str, Future[Reply]] = {}
        self.asked = self.cached = self.retried = 0

    @property
    def url(self) -> str:
        """Where questions go."""
        return self._address.url

    def ask(self, question: Question) -> Reply:
        """The answer, from disk if it was given before; one request for equal questions."""
        body = {
            "model": self._model,
            "messages": question.messages,
            "temperature": 1,
            "max_tokens": ANSWER_TOKENS,
            "logprobs": True,
            "top_logprobs": self._alternatives,
        }
        key = question_key(self.url, body)
        with self._lock:
            pending = self._waiting.get(key)
            if pending is None:
                mine: Future[Reply] = Future()
                self._waiting[key] = mine
        if pending is not None:
            return pending.result()
        try:
            reply = self._find(key, body, question.most_tokens)
            mine.set_result(reply)
            return reply
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._waiting[key]

    def _find(self, key: str, body: dict[str, Any], most_tokens: int) -> Reply:
        stored = self._cache.get(key)
        if stored is not None:
            self._count("cached")
            return Reply.from_dict(stored)
        reply = self._request(body, most_tokens)
        self._cache.put(key, reply.to_dict())
        self._count("asked")
        return reply

    def _request(self, body: dict[str, Any], most_tokens: int) -> Reply:
        for attempt in range(self._retries + 1):
            if attempt:
                self._count("retried")
            self.pace.turn()
            result = self._send(body, most_tokens)
            if isinstance(result, Reply):
                return result
            trouble, wait = result
            if wait is not None:
                if wait > LONGEST_WAIT:
                    raise ModelError(
                        f"{self.url} asks to wait for {wait:,.0f} s ({trouble}): run again then"
                    )
                self.pace.hold(wait)
            elif attempt < self._retries:
                # Spread out, so that requests that failed together do not return together.
                self.pace.pause(min(0.5 * 2**attempt, 30) * random.uniform(0.5, 1))
        raise ModelError(
            f"{self.url} failed {self._retries + 1} times, at last with: {trouble}. "
            "Run again to go on"
        )

    def _send(self, body: dict[str, Any], most_tokens: int) -> Reply | tuple[str, float | None]:
        """The reply, or what went wrong for now and how long to wait."""
        held = self.budget.reserve(most_tokens, ANSWER_TOKENS)
        # A request without a reply may have been charged; one that was refused is not.
        usage: tuple[int, int] | None = None
        try:
            got = post(self._address, body, self._key, self._timeout)
            if got.status == 200:
                reply = read_reply(got.body)
                usage = reply.usage
                return reply
            usage = (0, 0)
            return self._refusal(got)
        except MalformedReply as error:
            return str(error), None
        except TimeoutError:
            return f"no answer within {self._timeout:g} s", None
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {self._without_key(str(error))}", None
        finally:
            self.budget.settle(held, usage)

    def _refusal(self, got: HttpReply) -> tuple[str, float | None]:
        message, code = error_text(got.body)
        message = self._without_key(message)
        if got.status in _PASSING and code != "insufficient_quota":
            return f"HTTP {got.status} {message}".strip(), retry_after(got.retry_after)
        raise self._failure(got.status, message)

    def _failure(self, status: int, message: str) -> ModelError:
        if status in (401, 403):  # not its words: some servers repeat a part of the key
            return ModelError(
                f"{self.url} refuses access (HTTP {status}): "
                + ("check the key in the variable of --key-env" if self._key else "give --key-env")
            )
        if status == 404:
            return ModelError(
                f"{self.url} has no such address or no model {self._model!r} (HTTP 404: "
                f"{message}): check --endpoint, which often ends in /v1, and --model-name"
            )
        if 300 <= status < 400:
            return ModelError(
                f"{self.url} redirects (HTTP {status}), which is not followed: give the "
                "address that it redirects to"
            )
        return ModelError(f"{self.url} refuses the question (HTTP {status}): {message}")

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text

    def _count(self, what: str) -> None:
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)
