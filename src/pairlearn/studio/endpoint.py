"""An endpoint of the chat completions protocol that is asked for token probabilities.

This much of a reply is read:

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
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pairlearn.extras import missing_extra
from pairlearn.studio.limits import AnswerCache, Budget, ModelError, Once, Pace

if TYPE_CHECKING:
    from pairlearn.studio.judges import Question

ANSWER_TOKENS = 4
"""One is the answer; blanks may stand before it."""
AROUND_WORDS = " \t\r\n\"'`*_.,:;!()[]{}<>▁Ġ"
"""What may surround an answer; the last two are the spaces of raw vocabularies."""
LARGEST_REPLY = 4 * 2**20
"""Bytes; an answer of a few tokens has some thousand."""
LONGEST_WAIT = 300.0
"""Seconds; an endpoint that asks for more has closed for today."""
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses that may be different next time."""


class MalformedReply(Exception):
    """The reply is not JSON of this protocol; the next one may be."""


class Reply(msgspec.Struct, frozen=True):
    """Tokens and probabilities of the first token that is not blank; none without an answer.

    ``usage`` counts prompt and answer tokens, where the endpoint does.
    """

    tokens: tuple[tuple[str, float], ...]
    usage: tuple[int, int] | None


class _Token(msgspec.Struct):
    token: str
    logprob: Annotated[float, msgspec.Meta(le=0.02)]  # above 0 by rounding only


class _Position(_Token):
    top_logprobs: list[_Token] | None = None


class _Listed(msgspec.Struct):
    content: list[_Position] | None = None


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    logprobs: _Listed | None = None


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: Any = None


_Count = Annotated[int, msgspec.Meta(ge=0, lt=10**9)]


class _Usage(msgspec.Struct):
    prompt_tokens: _Count
    completion_tokens: _Count = 0


def read_reply(data: bytes) -> Reply:
    """Read the body of a reply; MalformedReply if it is none, ModelError if it has no logprobs."""
    try:
        completion = msgspec.json.decode(data, type=_Completion)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise MalformedReply(f"the reply is no chat completion ({error!s:.200})") from None
    choice = completion.choices[0]
    listed = (choice.logprobs and choice.logprobs.content) or []
    if choice.message.content and not listed:
        raise ModelError(
            "the endpoint answers without token probabilities (logprobs): choose a model and a "
            "server that give them"
        )
    tokens: list[_Token] = []
    for first in listed:
        if first.token.strip(AROUND_WORDS):
            tokens = list(first.top_logprobs or [])
            if first.token not in [one.token for one in tokens]:
                tokens.append(first)
            break
    try:
        usage = msgspec.convert(completion.usage, _Usage)
        counts = (usage.prompt_tokens, usage.completion_tokens)
    except msgspec.ValidationError:
        counts = None
    return Reply(tuple((one.token, min(math.exp(one.logprob), 1.0)) for one in tokens), counts)


def error_text(data: bytes) -> tuple[str, str]:
    """Message and code of an error reply, without control characters."""
    found: tuple[Any, Any] = data.decode("utf-8", "replace"), ""
    try:
        error = json.loads(data)["error"]
        found = (error["message"], error.get("code")) if isinstance(error, dict) else (error, "")
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    message, code = (" ".join(str(one or "").split()) for one in found)
    return tuple("".join(c for c in one if c.isprintable())[:300] for one in (message, code))  # type: ignore[return-value]


def is_loopback(host: str) -> bool:
    """Whether a name or an address is reached from this machine only.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "")]
    [True, True, True, False, False]
    """
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def chat_url(base_url: str, *, plain_http: bool = False) -> str:
    """The address for questions from a base URL: https, or http to this machine.

    ``plain_http`` admits http to other machines.
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
    """An address of the web as the client reads it; None if it is not one."""
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
    """Seconds that a ``Retry-After`` header asks for: a number, or a date.

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
    # NaN compares false with everything, and is dropped here.
    return max(seconds, 0.0) if seconds < math.inf else None


class ChatEndpoint:
    """Asks each question once: answers are kept on disk, failures are retried.

    The temperature is 1: some servers report probabilities after it is applied, and all
    alternatives of the first token are read, whichever is sampled. Redirects are not followed and
    proxies not used: the key goes only to the named address.

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
        Admit http to other machines.
    pace : Pace, optional
    budget : Budget, optional
    timeout, retries : float, int
        Seconds for one request, and how often a failed one is sent again.
    alternatives : int
        Alternatives of the token to ask for (``top_logprobs``).

    Attributes
    ----------
    url : str
        Where questions go.
    asked, cached, retried : int
        Questions answered by the endpoint and from disk, requests sent again.
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
        # A connection for each request; the certificates are read once for all of them.
        limits = self._http.Limits(max_connections=None, max_keepalive_connections=0)
        self._client = self._http.Client(trust_env=False, timeout=timeout, limits=limits)
        self.asked = self.cached = self.retried = 0

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
        # Of all that is sent but the key, which is not kept in any form.
        text = json.dumps([self.url, body], sort_keys=True, ensure_ascii=True)
        key = hashlib.sha256(text.encode("ascii")).hexdigest()
        try:
            return self._under_way.get(key, lambda: self._find(key, body, question.most_tokens))
        finally:
            self._under_way.forget(key)

    def _find(self, key: str, body: dict[str, Any], most_tokens: int) -> Reply:
        stored = self._cache.get(key)
        if stored is not None:
            self._count("cached")
            return msgspec.convert(stored, Reply)
        reply = self._request(body, most_tokens)
        self._cache.put(key, msgspec.to_builtins(reply))
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
            status, wait, data = self._post(body)
            if status == 200:
                reply = read_reply(data)
                usage = reply.usage
                return reply
            usage = (0, 0)
            return self._refusal(status, data), retry_after(wait)
        except MalformedReply as error:
            return str(error), None
        except (TimeoutError, self._http.TimeoutException):
            return f"no answer within {self._timeout:g} s", None
        except self._http.TransportError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise ModelError(f"the certificate of {self.url} is not trusted: {error}") from None
            return f"{type(error).__name__}: {self._without_key(str(error))}", None
        finally:
            self.budget.settle(held, usage)

    def _post(self, body: dict[str, Any]) -> tuple[int, str | None, bytes]:
        """Status, ``Retry-After`` and body, unless it is too large or drips in for too long."""
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        payload, data = json.dumps(body).encode("ascii"), b""
        deadline = time.monotonic() + self._timeout
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

    def _refusal(self, status: int, data: bytes) -> str:
        """What is wrong, if it may pass; else an error that says what to do."""
        message, code = error_text(data)
        message = self._without_key(message)
        if status in _PASSING and code != "insufficient_quota":
            return f"HTTP {status} {message}".strip()
        key = "check the key in the variable of --key-env" if self._key else "give --key-env"
        reasons = {
            # Not its words: some servers repeat a part of the key.
            401: f"refuses access (HTTP {status}): {key}",
            404: f"has no such address or no model {self._model!r} (HTTP 404: {message}): check "
            "--endpoint, which often ends in /v1, and --model-name",
            307: f"redirects (HTTP {status}), which is not followed: give the address that it "
            "redirects to",
        }
        kind = 401 if status == 403 else 307 if 300 <= status < 400 else status
        reason = reasons.get(kind, f"refuses the question (HTTP {status}): {message}")
        raise ModelError(f"{self.url} {reason}")

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text

    def _count(self, what: str) -> None:
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)
