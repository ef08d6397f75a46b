"""Ask a chat model through the ``openai`` client, at any address that speaks its protocol.

A question has a few possible answers, and a reply gives a share to each of them, in the first of
three ways that the endpoint understands:

**logprobs**: the model answers with one word; the probabilities of the alternatives for its first
token are the shares.

**stated**: the model states its probabilities as JSON, by a schema where the endpoint takes one.

**samples**: the model answers with one word several times, and the shares are frequencies.

Models that think aloud before they answer do so in ``<think>…</think>``, which is skipped.
Parameters that an endpoint refuses are replaced or left out.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

import msgspec

from pairlearn_studio.addresses import http_url, is_loopback
from pairlearn_studio.limits import AnswerCache, Budget, ModelError, SkippedError

if TYPE_CHECKING:
    from pairlearn_studio.judges import Question

Way: TypeAlias = Literal["logprobs", "stated", "samples"]

#: For an answer of one word: one token, and blanks that may precede it.
WORD_TOKENS = 4
#: What may surround an answer; the last two are the spaces of raw vocabularies.
AROUND_WORDS = " \t\r\n\"'`*_.,:;!()[]{}<>▁Ġ"
#: Below this probability of recognised answers, the reply is not understood.
LEAST_MASS = 0.5
#: The most that some endpoints give.
FEWER_ALTERNATIVES = 5
FATAL = {
    401: "refuses access: check the key in the variable of --key-env",
    403: "refuses access: check the key in the variable of --key-env",
    404: "has no such address or model: check --endpoint (often …/v1) and --model-name",
}
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_OBJECT = re.compile(r"\{[^{}]*\}")


class Reply(msgspec.Struct, frozen=True):
    """Share of each answer, and ``mass``, the probability of recognised answers.

    ``text`` is the beginning of what the model wrote; ``skipped`` says why there is no answer.
    """

    shares: dict[str, float]
    mass: float
    text: str = ""
    skipped: str = ""


class _Token(msgspec.Struct):
    token: str
    logprob: Annotated[float, msgspec.Meta(le=0.02)]  # above 0 only by rounding


class _Position(_Token):
    top_logprobs: list[_Token] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Position] | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    completion_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: Any = None


class ChatEndpoint:
    """Asks each question once: answers are cached on disk, failures are retried by the client.

    Redirects are not followed and proxies not used: the key goes only to the given address.

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
    budget : Budget, optional
    timeout, retries : float, int
        Seconds for one request, and number of retries.
    way : {"logprobs", "stated", "samples"}, optional
        How answers are read; by default the first that works.
    samples : int
        Number of replies to a question for "samples".
    answer_tokens : int
        Most tokens of a reply that is not one word, thinking included.

    Attributes
    ----------
    way : str or None
        How answers are read; None before the first one.
    cached, retried : int
        Questions answered from the cache, and requests sent again.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        cache: AnswerCache,
        *,
        key: str | None = None,
        plain_http: bool = False,
        budget: Budget | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        way: Way | None = None,
        samples: int = 5,
        answer_tokens: int = 2000,
    ) -> None:
        from openai import DefaultHttpxClient, OpenAI

        self.url = _check_base_url(base_url, plain_http)
        if not model:
            raise ModelError("the model's name is empty: give --model-name")
        if key is not None and (not key.isascii() or not key.isprintable() or " " in key):
            raise ModelError("the key holds blanks, line breaks or other odd characters")
        self._model, self._key, self._cache = model, key, cache
        self.budget, self.way = budget or Budget(), way
        self._samples, self._answer_tokens = samples, answer_tokens
        self._lock, self._choosing = threading.Lock(), threading.Lock()
        self._refused: set[str] = set()
        self.cached = self.retried = 0
        self._client = OpenAI(
            api_key=key or "none", base_url=self.url, timeout=timeout, max_retries=retries,
            http_client=DefaultHttpxClient(
                trust_env=False, follow_redirects=False, timeout=timeout
            ),
        )  # fmt: skip

    def ask(self, question: Question) -> Reply:
        """The answer, from the cache if known; SkippedError if the question has none.

        Raises ModelError if the endpoint cannot be used at all.
        """
        if self.way is None:
            with self._choosing:  # the others wait for the first reply that is understood
                if self.way is None:
                    return self._try_ways(question)
        return self._read(question, self.way)

    def _try_ways(self, question: Question) -> Reply:
        refusal, reply = None, Reply({}, 0.0)
        for way in get_args(Way):
            try:
                reply = self._read(question, way)
            except SkippedError as error:  # perhaps this way is refused, and not the question
                refusal = error
                continue
            if reply.mass >= LEAST_MASS:
                self.way = way
                return reply
        if refusal is not None:
            raise refusal
        return reply

    def _read(self, question: Question, way: Way) -> Reply:
        if way != "samples":
            return self._ask_once(question, way)
        replies = [self._ask_once(question, way, number) for number in range(self._samples)]
        understood = [reply for reply in replies if reply.mass]
        count = max(len(understood), 1)
        shares = {
            answer: math.fsum(reply.shares[answer] for reply in understood) / count
            for answer in question.answers
        }
        return Reply(shares, len(understood) / self._samples, replies[0].text)

    def _ask_once(self, question: Question, way: Way, number: int = 0) -> Reply:
        # The hash covers all that determines the reply but the key, which is never stored.
        parts = [self.url, self._model, question.messages(way == "stated"), way, number]
        key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        stored = self._cache.get(key)
        reply = self._request(question, way) if stored is None else msgspec.convert(stored, Reply)
        if stored is None:
            self._cache.put(key, msgspec.to_builtins(reply))
        else:
            with self._lock:
                self.cached += 1
        if reply.skipped:
            raise SkippedError(reply.skipped)
        return reply

    def _request(self, question: Question, way: Way) -> Reply:
        """Send a question; parameters that the endpoint refuses are changed, and it is sent again.

        A question that the endpoint refuses to answer counts as a reply: it is not asked again.
        """
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        while True:
            body = self._body(question, way)
            reserved = self.budget.reserve(question.most_tokens, self._most_tokens(way))
            usage: tuple[int, int] | None = None
            try:
                raw = self._client.chat.completions.with_raw_response.create(**body)
                with self._lock:
                    self.retried += raw.retries_taken
                completion, usage = _read_completion(raw.content)
                return _read_choice(completion.choices[0], way, question.answers)
            except APIStatusError as error:
                usage = (0, 0)
                reply = self._refusal(error, body)
                if reply is not None:
                    return reply
            except APITimeoutError:
                raise SkippedError("no reply in time (--timeout)") from None
            except APIConnectionError as error:
                cause = self._without_key(str(error.__cause__ or error))
                raise ModelError(f"{self.url} cannot be reached ({cause})") from None
            finally:
                self.budget.settle(reserved, usage)

    def _body(self, question: Question, way: Way) -> dict[str, Any]:
        """Parameters of a request, without those that the endpoint has refused."""
        body: dict[str, Any] = {
            "model": self._model,
            "messages": question.messages(way == "stated"),
            # Some servers report probabilities after applying the temperature.
            "temperature": 1,
            "max_completion_tokens": self._most_tokens(way),
        }
        if way == "logprobs":
            few = "top_logprobs" in self._refused
            body |= {"logprobs": True, "top_logprobs": FEWER_ALTERNATIVES if few else 20}
        if way == "stated":
            schema = {
                "type": "object",
                "properties": {answer: {"type": "number"} for answer in question.answers},
                "required": list(question.answers),
                "additionalProperties": False,
            }
            named = {"name": "probabilities", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        if "max_completion_tokens" in self._refused:
            body["max_tokens"] = body.pop("max_completion_tokens")
        dropped = self._refused - {"top_logprobs"}
        return {name: value for name, value in body.items() if name not in dropped}

    def _most_tokens(self, way: Way) -> int:
        return WORD_TOKENS if way == "logprobs" else self._answer_tokens

    def _refusal(self, error: Any, body: dict[str, Any]) -> Reply | None:
        """Handle a status that is an error: None if the question is to be sent again."""
        status, details = error.status_code, error.body if isinstance(error.body, dict) else {}
        message = self._without_key(" ".join(str(details.get("message") or error).split())[:300])
        code = str(details.get("code") or "")
        if status in FATAL:  # without its message: some servers repeat a part of the key
            raise ModelError(f"{self.url} {FATAL[status]} (HTTP {status})")
        if status == 429 or 300 <= status < 400:
            reason = "redirects, which is not followed" if status < 400 else "limits the rate"
            raise ModelError(f"{self.url} {reason} (HTTP {status}: {message}): run again later")
        if status >= 500:
            raise SkippedError(f"HTTP {status}: {message}")
        for name in ("top_logprobs", "logprobs", "max_completion_tokens", "max_tokens",
                     "temperature", "response_format"):  # fmt: skip
            named = re.search(rf"\b{name}\b", f"{details.get('param')} {message}")
            if named and name in body and (name not in self._refused):
                self._refused.add(name)
                if name == "logprobs":  # then there is nothing to read
                    return Reply({}, 0.0)
                return None
            if named and name == "top_logprobs" and name in body:
                return Reply({}, 0.0)
        return Reply({}, 0.0, skipped=f"refused (HTTP {status} {code}: {message})")

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def _check_base_url(base_url: str, plain_http: bool) -> str:
    """The base URL: https, or http to this machine; ``plain_http`` allows it to others."""
    if (url := http_url(base_url)) is None:
        raise ModelError(
            f"{base_url!r} must be an http or https URL such as http://127.0.0.1:8000/v1"
        )
    if "@" in url.netloc or url.query or url.fragment:
        raise ModelError("the URL holds a user, a ? or a #: give keys in a variable by --key-env")
    if url.scheme == "http" and not plain_http and not is_loopback(str(url.hostname)):
        raise ModelError(
            f"{base_url} is plain http beyond this machine, where items and the key can be "
            "read on the way: use https, or --plain-http if the network is yours"
        )
    return base_url.rstrip("/")


def _read_completion(data: bytes) -> tuple[_Completion, tuple[int, int] | None]:
    """Read the body of a reply, with its counts of prompt and answer tokens if it has them."""
    try:
        completion = msgspec.json.decode(data, type=_Completion)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise SkippedError(f"the reply is not a chat completion ({error!s:.200})") from None
    with suppress(msgspec.ValidationError):
        usage = msgspec.convert(completion.usage, _Usage)
        return completion, (usage.prompt_tokens, usage.completion_tokens)
    return completion, None


def _read_choice(choice: _Choice, way: Way, answers: dict[str, tuple[str, ...]]) -> Reply:
    """Read the shares of the answers from a reply."""
    text, start = choice.message.content or "", (choice.message.content or "")[:80]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        reason = choice.message.refusal or "content filter"
        return Reply({}, 0.0, start, skipped=f"refused ({reason[:200]})")
    if way == "logprobs":
        positions = (choice.logprobs and choice.logprobs.content) or []
        first = next((one for one in positions if one.token.strip(AROUND_WORDS)), None)
        tokens: list[_Token] = []
        if first is not None:
            tokens = list(first.top_logprobs or [])
            if first.token not in [token.token for token in tokens]:
                tokens.append(first)
        pairs = [(token.token, min(math.exp(token.logprob), 1.0)) for token in tokens]
        return Reply(*answer_shares(pairs, answers), start)
    text = _THINKING.sub("", text)
    if way == "stated":
        return Reply(*_stated_shares(text, answers), start)
    words = [(word, 1.0) for word in text.split()]
    # Models that explain themselves name the answer at the end.
    known = [word for word in words if answer_shares([word], answers)[1]]
    return Reply(*answer_shares(known[-1:], answers), start)


def answer_shares(
    tokens: list[tuple[str, float]], answers: dict[str, tuple[str, ...]]
) -> tuple[dict[str, float], float]:
    """Share of each answer in the mass of recognised tokens, and this mass.

    ``answers`` lists the spellings of each answer. Tokens are compared without case, surrounding
    blanks and punctuation. The shares are 0 if no token is recognised.
    """
    sums = {
        answer: math.fsum(
            p for token, p in tokens if token.strip(AROUND_WORDS).casefold() in spellings
        )
        for answer, spellings in answers.items()
    }
    return _normalised(sums, min(sum(sums.values()), 1.0))


def _stated_shares(
    text: str, answers: dict[str, tuple[str, ...]]
) -> tuple[dict[str, float], float]:
    """Shares that a reply states as a JSON object, the last one in its text."""
    for part in reversed(_OBJECT.findall(text)):
        with suppress(ValueError):
            stated = msgspec.json.decode(part, type=dict[str, float])
            shares = {answer: stated.get(answer, -1.0) for answer in answers}
            if min(shares.values()) >= 0 and 0 < sum(shares.values()) < math.inf:
                return _normalised(shares, 1.0)
    return dict.fromkeys(answers, 0.0), 0.0


def _normalised(sums: dict[str, float], mass: float) -> tuple[dict[str, float], float]:
    total = sum(sums.values())
    return {answer: p / total if total else 0.0 for answer, p in sums.items()}, mass
