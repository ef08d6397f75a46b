"""Client of a chat completions endpoint that reports token probabilities.

These parts of a reply are read:

{"choices": [{"message": {"content": "Yes"}, "logprobs": {"content": [
    {"token": "Yes", "logprob": −0.1, "top_logprobs": [{"token": "Yes", "logprob": −0.1},
     {"token": " no", "logprob": −2.3}, …]}, …]}}],
 "usage": {"prompt_tokens": 90, "completion_tokens": 1}}
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import math
import random
import threading
import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pairlearn.extras import missing_extra
from pairlearn_studio.limits import AnswerCache, Budget, ModelError, Once, Pace

if TYPE_CHECKING:
    from pairlearn_studio.judges import Question

ANSWER_TOKENS = 4
"""One for the answer; blanks may precede it."""
AROUND_WORDS = " \t\r\n\"'`*_.,:;!()[]{}<>▁Ġ"
"""What may surround an answer; the last two are the spaces of raw vocabularies."""
LARGEST_REPLY = 4 * 2**20
"""Bytes; a reply of a few tokens has a few thousand."""
LONGEST_WAIT = 300.0
"""Seconds; an endpoint that asks for more has a daily limit."""
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses worth a retry."""


class TransientError(Exception):
    """A request failed in a way that a retry may fix, after ``wait`` seconds if that is known."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class Reply(msgspec.Struct, frozen=True):
    """Alternatives for the first non-blank token, with probabilities; empty without an answer.

    ``usage`` is the endpoint's count of prompt and answer tokens, if it gives one.
    """

    tokens: tuple[tuple[str, float], ...]
    usage: tuple[int, int] | None


class _Token(msgspec.Struct):
    token: str
    logprob: Annotated[float, msgspec.Meta(le=0.02)]  # above 0 only by rounding


class _Position(_Token):
    top_logprobs: list[_Token] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Position] | None = None


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    logprobs: _Logprobs | None = None


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: Any = None


_Count = Annotated[int, msgspec.Meta(ge=0, lt=10**9)]


class _Usage(msgspec.Struct):
    prompt_tokens: _Count
    completion_tokens: _Count = 0


def read_reply(data: bytes) -> Reply:
    """Read the body of a reply; ModelError if the endpoint gives no token probabilities."""
    try:
        completion = msgspec.json.decode(data, type=_Completion)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise TransientError(f"the reply is no chat completion ({error!s:.200})") from None
    choice = completion.choices[0]
    positions = (choice.logprobs and choice.logprobs.content) or []
    if choice.message.content and not positions:
        raise ModelError(
            "the endpoint answers without token probabilities (logprobs): choose a model and a "
            "server that give them"
        )
    tokens: list[_Token] = []
    first = next((position for position in positions if position.token.strip(AROUND_WORDS)), None)
    if first is not None:
        tokens = list(first.top_logprobs or [])
        if first.token not in [token.token for token in tokens]:
            tokens.append(first)
    try:
        usage = msgspec.convert(completion.usage, _Usage)
        counts = (usage.prompt_tokens, usage.completion_tokens)
    except msgspec.ValidationError:
        counts = None
    alternatives = ((token.token, min(math.exp(token.logprob), 1.0)) for token in tokens)
    return Reply(tuple(alternatives), counts)


def error_text(data: bytes) -> tuple[str, str]:
    """Message and code of an error reply, on one line and without control characters."""
    message: Any = data.decode("utf-8", "replace")
    code: Any = ""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        error = json.loads(data)["error"]
        if isinstance(error, dict):
            message, code = error["message"], error.get("code")
        else:
            message = error
    return _printable(message), _printable(code)


def _printable(value: Any) -> str:
    line = " ".join(str(value or "").split())
    return "".join(character for character in line if character.isprintable())[:300]


def is_loopback(host: str) -> bool:
    """Whether a host name or address is that of this machine only.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "")]
    [True, True, True, False, False]
    """
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def chat_url(base_url: str, *, plain_http: bool = False) -> str:
    """URL for questions below a base URL: https, or http to this machine.

    ``plain_http`` allows http to other machines.
    """
    if not base_url.isascii() or any(character <= " " for character in base_url):
        raise ModelError(f"{base_url!r} must be plain ASCII without spaces")
    if (url := http_url(base_url)) is None:
        raise ModelError(
            f"{base_url!r} must be an http or https URL such as http://127.0.0.1:8000/v1"
        )
    if url.userinfo:
        raise ModelError("the URL holds a user or a password: name a variable by --key-env")
    if url.query or url.fragment:
        raise ModelError(f"{base_url!r} must end with its path, without ? and #")
    if url.scheme == "http" and not plain_http and not is_loopback(url.host):
        raise ModelError(
            f"{base_url} is plain http beyond this machine, where items and the key can be "
            "read on the way: use https, or --plain-http if the network is yours"
        )
    return str(url.copy_with(path=url.path.rstrip("/") + "/chat/completions"))


def http_url(text: str) -> Any:
    """Parse an http or https address as the client does; None if it is not one."""
    httpx = _import_httpx()
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError):
        return None
    port = 80 if url.port is None else url.port
    usable = url.scheme in ("http", "https") and url.host and 0 < port < 2**16
    return url if usable else None


def _import_httpx() -> Any:
    try:
        import httpx2
    except ImportError:
        raise missing_extra("annotate", "httpx2", "an endpoint") from None
    return httpx2


def retry_after(header: str | None) -> float | None:
    """Seconds to wait by a ``Retry-After`` header, which is a number or a date.

    >>> retry_after("2.5"), retry_after("Thu, 01 Jan 1970 00:00:00 GMT"), retry_after("soon")
    (2.5, 0.0, None)
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    # NaN compares false, and is dropped here.
    return max(seconds, 0.0) if seconds < math.inf else None


class ChatEndpoint:
    """Asks each question once: answers are cached on disk, failures are retried.

    The temperature is 1, because some servers report probabilities after applying it; all
    alternatives of the first token are read, whichever is sampled. Redirects are not followed and
    proxies not used: the key goes only to the given address.

    Parameters
    ----------
    base_url : str
        Such as ``http://127.0.0.1:8000/v1``.
    model : str
        Its name at the endpoint.
    cache : AnswerCache
    key : str, optional
        Sent as a bearer token; never stored, never in a message.
    plain_http : bool
        Allow http to other machines.
    pace : Pace, optional
    budget : Budget, optional
    timeout, retries : float, int
        Seconds for one request, and number of retries.
    alternatives : int
        Number of alternative tokens to request (``top_logprobs``).

    Attributes
    ----------
    url : str
        Address of the questions.
    asked, cached, retried : int
        Questions answered by the endpoint and from the cache, and requests sent again.
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
        self.url = chat_url(base_url, plain_http=plain_http)
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
        self._http, self._lock, self._under_way = _import_httpx(), threading.Lock(), Once[Reply]()
        # One connection per request; the certificates are read once for all of them.
        limits = self._http.Limits(max_connections=None, max_keepalive_connections=0)
        headers = {"Accept-Encoding": "identity"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._client = self._http.Client(
            headers=headers, trust_env=False, timeout=timeout, limits=limits
        )
        self.asked = self.cached = self.retried = 0

    def ask(self, question: Question) -> Reply:
        """The answer, from the cache if known; concurrent equal questions are one request."""
        body = {
            "model": self._model,
            "messages": question.messages,
            "temperature": 1,
            "max_tokens": ANSWER_TOKENS,
            "logprobs": True,
            "top_logprobs": self._alternatives,
        }
        # The hash covers all that is sent but the key, which is not stored in any form.
        text = json.dumps([self.url, body], sort_keys=True, ensure_ascii=True)
        key = hashlib.sha256(text.encode("ascii")).hexdigest()
        try:
            return self._under_way.get(key, lambda: self._look_up(key, body, question.most_tokens))
        finally:
            self._under_way.forget(key)

    def _look_up(self, key: str, body: dict[str, Any], most_tokens: int) -> Reply:
        if (stored := self._cache.get(key)) is not None:
            with self._lock:
                self.cached += 1
            return msgspec.convert(stored, Reply)
        reply = self._request(body, most_tokens)
        self._cache.put(key, msgspec.to_builtins(reply))
        with self._lock:
            self.asked += 1
        return reply

    def _request(self, body: dict[str, Any], most_tokens: int) -> Reply:
        for attempt in range(self._retries + 1):
            if attempt:
                with self._lock:
                    self.retried += 1
            self.pace.turn()
            try:
                return self._send(body, most_tokens)
            except TransientError as error:
                message, wait = str(error), error.wait
            if wait is not None:
                if wait > LONGEST_WAIT:
                    raise ModelError(
                        f"{self.url} asks to wait for {wait:,.0f} s ({message}): run again then"
                    )
                self.pace.hold(wait)
            elif attempt < self._retries:
                # Randomised, so that requests that failed together are not sent together again.
                self.pace.pause(min(0.5 * 2**attempt, 30) * random.uniform(0.5, 1))
        raise ModelError(
            f"{self.url} failed {self._retries + 1} times, at last with: {message}. "
            "Run again to go on"
        )

    def _send(self, body: dict[str, Any], most_tokens: int) -> Reply:
        """Send a request once; its cost is charged to the budget."""
        reserved = self.budget.reserve(most_tokens, ANSWER_TOKENS)
        # A request without a reply may have been charged for; a refused one is not.
        usage: tuple[int, int] | None = None
        try:
            status, wait, data = self._post(body)
            if status == 200:
                reply = read_reply(data)
                usage = reply.usage
                return reply
            usage = (0, 0)
            raise self._refusal(status, data, retry_after(wait))
        except (TimeoutError, self._http.TimeoutException):
            raise TransientError(f"no answer within {self._timeout:g} s") from None
        except self._http.TransportError as error:
            text = self._without_key(str(error))
            if "CERTIFICATE_VERIFY_FAILED" in text:
                raise ModelError(f"the certificate of {self.url} is not trusted: {text}") from None
            raise TransientError(f"{type(error).__name__}: {text}") from None
        finally:
            self.budget.settle(reserved, usage)

    def _post(self, body: dict[str, Any]) -> tuple[int, str | None, bytes]:
        """Status, ``Retry-After`` and body, which must be neither too large nor too slow."""
        data, deadline = b"", time.monotonic() + self._timeout
        payload, headers = json.dumps(body).encode("ascii"), {"Content-Type": "application/json"}
        with self._client.stream("POST", self.url, content=payload, headers=headers) as reply:
            for part in reply.iter_raw():
                data += part
                if len(data) > LARGEST_REPLY:
                    raise ModelError(
                        f"the reply has more than {LARGEST_REPLY:,} bytes: no chat endpoint"
                    )
                if time.monotonic() > deadline:
                    raise TimeoutError
            return reply.status_code, reply.headers.get("Retry-After"), data

    def _refusal(self, status: int, data: bytes, wait: float | None) -> Exception:
        """The error for a status: transient, or a ModelError that says what to do."""
        message, code = error_text(data)
        message = self._without_key(message)
        if status in _TRANSIENT and code != "insufficient_quota":
            return TransientError(f"HTTP {status} {message}".strip(), wait)
        key = "check the key in the variable of --key-env" if self._key else "give --key-env"
        reasons = {
            # Without its message: some servers repeat a part of the key.
            401: f"refuses access (HTTP {status}): {key}",
            404: f"has no such address or no model {self._model!r} (HTTP 404: {message}): check "
            "--endpoint, which often ends in /v1, and --model-name",
            307: f"redirects (HTTP {status}), which is not followed: give the address that it "
            "redirects to",
        }
        kind = 401 if status == 403 else 307 if 300 <= status < 400 else status
        reason = reasons.get(kind, f"refuses the question (HTTP {status}): {message}")
        return ModelError(f"{self.url} {reason}")

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text
