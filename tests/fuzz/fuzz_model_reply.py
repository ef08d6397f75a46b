"""``read_reply`` and ``error_text``: what an endpoint of a language model answers."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from fuzz.mutation import json_mutation
from fuzz.sandbox import Broken, same
from pairlearn.studio.ask import ModelError
from pairlearn.studio.endpoint import MalformedReply, Reply, error_text, read_reply
from pairlearn.studio.judges import answer_shares

WORDS = [f'"{name}":'.encode() for name in ("choices", "message", "content", "logprobs", "token")]
WORDS += [b'"logprob":', b'"top_logprobs":', b'"usage":', b'"error":', b'"code":', b"-1e999"]
ANSWERS = {"yes": ("yes",), "no": ("no",)}
mutate = json_mutation


def one_input(data: bytes) -> Any:
    message, code = error_text(data)
    if len(message) > 300 or len(code) > 300 or not (message + code).isprintable():
        raise Broken(f"not fit for a terminal: {message!r:.400}, {code!r:.400}")
    try:
        reply = read_reply(data)
    except (MalformedReply, ModelError) as error:
        if len(str(error)) > 600:
            raise Broken(f"a message of {len(str(error))} characters") from error
        return str(error)
    if not all(0 <= share <= 1 for _, share in reply.tokens):
        raise Broken(f"probabilities {reply.tokens}")
    stored = json.loads(json.dumps(msgspec.to_builtins(reply)))
    same(msgspec.convert(stored, Reply), reply, "written and read")
    shares, mass = answer_shares(reply.tokens, ANSWERS)
    if not (0 <= mass <= 1 and math.isclose(sum(shares.values()), 1 if mass else 0, abs_tol=1e-9)):
        raise Broken(f"shares {shares}, mass {mass}")
    return reply
