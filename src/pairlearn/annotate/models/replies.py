"""Chat completions with token probabilities: what a reply says.

{"choices": [{"message": {"content": "Yes"}, "logprobs": {"content": [
    {"token": "Yes", "logprob": −0.1, "top_logprobs": [{"token": "Yes", "logprob": −0.1},
     {"token": " no", "logprob": −2.3}, …]}, …]}}],
 "usage": {"prompt_tokens": 90, "completion_tokens": 1}}
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from pairlearn.annotate.models.errors import ModelError

__all__ = ["MalformedReply", "Reply", "answer_shares", "error_text", "read_reply"]

_ROUNDING = 0.02
"""How far a logarithm of a probability may lie above 0."""
_AROUND_WORDS = " \t\r\n\"'`*_.,:;!()[]{}<>▁Ġ"
"""What may surround an answer; the last two are the spaces of raw vocabularies."""


class MalformedReply(Exception):
    """The reply is not JSON of this protocol; the next one may be.

    Examples
    --------
    >>> read_reply(b"<html>")
    Traceback (most recent call last):
    pairlearn.annotate.models.replies.MalformedReply: the reply is not JSON
    """


@dataclass(frozen=True)
class Reply:
    """Probabilities of the first token of the answer that is not blank.

    Attributes
    ----------
    tokens : tuple of (str, float)
        Tokens and probabilities; empty if the model did not answer.
    usage : (int, int) or None
        Prompt tokens and answer tokens, where the endpoint counts them.

    Examples
    --------
    >>> Reply((("Yes", 0.9), (" no", 0.1)), (90, 1)).usage
    (90, 1)
    """

    tokens: tuple[tuple[str, float], ...]
    usage: tuple[int, int] | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"tokens": [list(pair) for pair in self.tokens], "usage": self.usage}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Reply:
        """What `to_dict` made."""
        usage = stored["usage"]
        return cls(
            tuple((str(token), float(share)) for token, share in stored["tokens"]),
            None if usage is None else (int(usage[0]), int(usage[1])),
        )


def read_reply(data: bytes) -> Reply:
    """Read the body of a reply.

    Raises
    ------
    MalformedReply
        It is not JSON of this protocol.
    ModelError
        It is, but has no token probabilities, nor will the next one.

    Examples
    --------
    >>> top = [{"token": "Yes", "logprob": -0.105}, {"token": "no", "logprob": -2.3}]
    >>> content = [{"token": "Yes", "logprob": -0.105, "top_logprobs": top}]
    >>> choice = {"message": {"content": "Yes"}, "logprobs": {"content": content}}
    >>> reply = read_reply(json.dumps({"choices": [choice]}).encode())
    >>> [(token, round(share, 2)) for token, share in reply.tokens]
    [('Yes', 0.9), ('no', 0.1)]
    """
    try:
        parsed = json.loads(data)
    except ValueError:  # also of bytes that are no text
        raise MalformedReply("the reply is not JSON") from None
    except RecursionError:
        raise MalformedReply("the reply is nested too deeply") from None
    try:
        choice = parsed["choices"][0]
        said = choice["message"].get("content") or ""
        listed = (choice.get("logprobs") or {}).get("content") or []
        tokens = _first_answer(listed)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise MalformedReply(f"the reply is no chat completion ({error!r:.200})") from None
    if said and not listed:
        raise ModelError(
            "the endpoint answers without token probabilities (logprobs): choose a model and a "
            "server that give them"
        )
    return Reply(tokens, _usage(parsed.get("usage")))


def _first_answer(listed: list[dict[str, Any]]) -> tuple[tuple[str, float], ...]:
    for position in listed:
        if not position["token"].strip(_AROUND_WORDS):
            continue
        chosen = (position["token"], position["logprob"])
        top = [(one["token"], one["logprob"]) for one in position.get("top_logprobs") or []]
        if chosen[0] not in [token for token, _ in top]:
            top.append(chosen)
        return tuple((_text(token), _probability(log)) for token, log in top)
    return ()


def _text(token: Any) -> str:
    if not isinstance(token, str):
        raise ValueError(f"token {token!r}")
    return token


def _probability(log: Any) -> float:
    if isinstance(log, bool) or not isinstance(log, int | float) or not log <= _ROUNDING:
        raise ValueError(f"logprob {log!r}")
    # Bounded, since an integer may be beyond what a float can hold.
    return min(math.exp(max(log, -1000)), 1.0)


def _usage(usage: Any) -> tuple[int, int] | None:
    if not isinstance(usage, dict):
        return None
    counts: list[Any] = [usage.get("prompt_tokens"), usage.get("completion_tokens", 0)]
    if not all(isinstance(n, int) and 0 <= n < 10**9 for n in counts):
        return None
    return int(counts[0]), int(counts[1])


def answer_shares(
    tokens: tuple[tuple[str, float], ...], answers: dict[str, tuple[str, ...]]
) -> tuple[dict[str, float], float]:
    """Probability of each answer among those that can be recognised, and their mass.

    Tokens are compared without surrounding blanks and punctuation and without regard to
    case, so that "Yes", " yes" and "YES" are one answer.

    Parameters
    ----------
    tokens : tuple of (str, float)
        Tokens and probabilities.
    answers : dict
        Of each answer, the words that mean it, in lower case.

    Returns
    -------
    shares : dict
        They sum to 1; all are 0 where nothing was recognised.
    mass : float
        Probability of all recognised tokens, the sum before it was made 1.

    Examples
    --------
    >>> tokens = ("Yes", 0.5), (" yes", 0.1), ("NO", 0.2), ("Perhaps", 0.2)
    >>> shares, mass = answer_shares(tokens, {"yes": ("yes",), "no": ("no",)})
    >>> round(shares["yes"], 3), round(shares["no"], 3), round(mass, 3)
    (0.75, 0.25, 0.8)
    """
    found = dict.fromkeys(answers, 0.0)
    for token, share in tokens:
        word = token.strip(_AROUND_WORDS).casefold()
        for answer, variants in answers.items():
            if word in variants:
                found[answer] += share
    mass = sum(found.values())
    shares = {answer: share / mass if mass else 0.0 for answer, share in found.items()}
    return shares, min(mass, 1.0)


def error_text(data: bytes) -> tuple[str, str]:
    r"""Message and code of an error reply, fit for a terminal.

    Examples
    --------
    >>> error_text(b'{"error": {"message": "no such model\\u001b[2J", "code": "nope"}}')
    ('no such model[2J', 'nope')
    """
    message, code = data.decode("utf-8", "replace"), ""
    try:
        error = json.loads(data)["error"]
        message = str(error["message"]) if isinstance(error, dict) else str(error)
        code = str(error.get("code") or "") if isinstance(error, dict) else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return _readable(message), _readable(code)


def _readable(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable())[:300]
