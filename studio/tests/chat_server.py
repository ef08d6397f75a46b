"""Servers on loopback: a chat completions endpoint, and any other in a thread.

The endpoint judges items of the form {"p": "0.7"} by the posterior that they state, with a
given position bias towards the second item, and misbehaves on request.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any, TypeVar

Server = TypeVar("Server", bound=HTTPServer)
Trouble = Callable[["Handler"], bool]
"""Handles a request; returns whether it has answered (False: answer as usual)."""


class ChatServer(ThreadingHTTPServer):
    """Counts and records what it is asked."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bias = 0.0
        self.outside = 0.0  # probability of tokens that are no answer
        self.blank_first = False
        self.usage: dict[str, Any] | None = {"prompt_tokens": 100, "completion_tokens": 1}
        self.troubles: deque[Trouble] = deque()
        self.gate = threading.Event()
        self.always: Trouble | None = None
        self.questions: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that hang up are part of the tests."""


class Handler(BaseHTTPRequestHandler):
    server: ChatServer
    body: dict[str, Any]
    question: str

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = text_of(body["messages"][-1]["content"])
        self.body, self.question = body, question
        with server.lock:
            server.questions[question] += 1
            server.bodies.append(body)
            server.keys.append(self.headers.get("Authorization"))
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
            trouble = server.troubles.popleft() if server.troubles else server.always
        try:
            if self.path != "/v1/chat/completions":
                self.send(404, {"error": {"message": "no such page"}})
            elif trouble is None or not trouble(self):
                self.answer(question)
        finally:
            with server.lock:
                server.at_once -= 1

    def answer(self, question: str) -> None:
        tokens = token_probabilities(question, self.server.bias)
        kept = 1 - self.server.outside
        content = []
        if self.server.blank_first:
            content.append({"token": "\n", "logprob": -0.1, "top_logprobs": []})
        top = [{"token": t, "logprob": math.log(p * kept)} for t, p in tokens.items() if p > 0]
        if self.server.outside:
            top.append({"token": "Perhaps", "logprob": math.log(self.server.outside)})
        top.sort(key=lambda token: -float(token["logprob"]))
        content.append({**top[0], "top_logprobs": top})
        reply: dict[str, Any] = {"choices": [choice(top[0]["token"], {"content": content})]}
        if self.server.usage is not None:
            reply["usage"] = self.server.usage
        self.send(200, reply)
        with self.server.lock:
            self.server.answered[question] += 1

    def write(self, content: str | None, **more: Any) -> bool:
        """Reply with a text, without logprobs."""
        self.send(200, {"choices": [choice(content, None) | more], "usage": self.server.usage})
        return True

    def words(self, stated: bool) -> str:
        """The answer as JSON of percentages, or as the most likely word."""
        tokens = token_probabilities(self.question, self.server.bias)
        shares: Counter[str] = Counter()
        for token, p in tokens.items():
            shares[{"b": "B", "a": "A"}.get(token.strip().lower(), token.strip().capitalize())] += p
        if stated:
            return json.dumps({name: 100 * p for name, p in shares.items()})
        return max(shares, key=shares.__getitem__)

    def send(self, status: int, reply: Any, **headers: str) -> None:
        data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def choice(content: str | None, logprobs: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content}, "logprobs": logprobs}


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", part)) for part in content)


def token_probabilities(question: str, bias: float) -> dict[str, float]:
    """Probabilities of tokens, each answer in several spellings."""
    items = [json.loads(line) for line in re.findall(r"^Item.*?: (\{.*\})$", question, re.M)]
    posteriors = [float(item["p"]) for item in items]
    if len(posteriors) == 1:
        yes = posteriors[0]
        return {"Yes": 0.5 * yes, " yes": 0.3 * yes, "YES": 0.2 * yes, "No": 1 - yes}
    r, r_prime = posteriors
    a, b = r * (1 - r_prime) - bias, (1 - r) * r_prime + bias
    same = r * r_prime + (1 - r) * (1 - r_prime)
    return {"A": a, "B": 0.6 * b, " B": 0.4 * b, "Same": 0.9 * same, "same": 0.1 * same}


def no_logprobs(handler: Handler) -> bool:
    return handler.write(handler.words("response_format" in handler.body))


def five_alternatives(handler: Handler) -> bool:
    if handler.body.get("top_logprobs", 0) <= 5:
        return False
    return refuses(400, "top_logprobs must be at most 5")(handler)


def older_parameters(handler: Handler) -> bool:
    if "max_completion_tokens" in handler.body:
        return refuses(400, "unknown parameter: max_completion_tokens")(handler)
    return False


def thinks_first(handler: Handler) -> bool:
    text = (
        f"<think>Could be A, could be B.</think>{handler.words('response_format' in handler.body)}"
    )
    token = {"token": "<think>", "logprob": -0.001}
    logprobs = {"content": [token | {"top_logprobs": [token]}]}
    if "logprobs" in handler.body:
        return handler.write("<think>Could", logprobs=logprobs)
    return handler.write(text)


def refuses_some(handler: Handler) -> bool:
    """A content filter that dislikes one of the items."""
    if '"0.65"' not in handler.question:
        return False
    return refuses(400, "the content is filtered", code="content_filter")(handler)


def limits_the_rate(handler: Handler) -> bool:
    if handler.server.questions[handler.question] > 1:
        return False
    return refuses(429, "slow down", Retry_After="0")(handler)


def is_slow(handler: Handler) -> bool:
    """No reply about one of the items before the client gives up."""
    if '"0.65"' in handler.question:
        handler.server.gate.wait(60)
        return hangs_up(handler)
    return False


def breaks_json(handler: Handler) -> bool:
    if "response_format" in handler.body:
        return handler.write('{"A": 20, "B": ')
    return handler.write(f"I would say {handler.words(stated=False)}.")


def refuses(status: int, message: str = "no", code: str = "", **headers: str) -> Trouble:
    def trouble(handler: Handler) -> bool:
        handler.send(status, {"error": {"message": message, "code": code}}, **headers)
        return True

    return trouble


def replies(data: bytes) -> Trouble:
    def trouble(handler: Handler) -> bool:
        handler.send(200, data)
        return True

    return trouble


def hangs_up(handler: Handler) -> bool:
    handler.close_connection = True
    handler.connection.close()
    return True


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Run a server in a thread."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def chat_server() -> AbstractContextManager[ChatServer]:
    return running(ChatServer())
