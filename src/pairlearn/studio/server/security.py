"""What stands between the network and the studio.

A `Connection` has to make progress. Every request passes `Guard`: the Host header must name this
server (a page elsewhere cannot reach it by rebinding a name to 127.0.0.1), a change must come from
the studio's own pages and carry JSON of a few kilobytes, and every reply has headers that forbid
scripts from elsewhere, frames, sniffing and caching.

`Sessions` tells who is asking, by the links that people get and the cookies these turn into. An
annotator's pages, requests and cookie lie under ``/annotate/NUMBER``: two people may work in two
tabs of one browser, and each tab keeps its person.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import re
import resource
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import urlsplit

import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from pairlearn.studio.changes import fresh_token
from pairlearn.studio.endpoint import is_loopback
from pairlearn.studio.reader import token_hash
from pairlearn.studio.records import Annotator
from pairlearn.studio.store import Store

BODY_LIMIT = 16 * 1024
"""Bytes of the largest body that is read."""

HEADER_LIMIT = 16 * 1024
"""Bytes of all headers of a request."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

LOG = logging.getLogger("pairlearn.annotate")
ACCESS = logging.getLogger("pairlearn.annotate.access")

_LINK = re.compile(r"^((?:/[^/]+)?/[as])/.*", re.DOTALL)
_UNPRINTABLE = re.compile(r"[^\x21-\x7e]")


def csrf_token(session: str) -> str:
    """The header value that a page of this session sends with every change.

    HMAC-SHA256 keyed by the session's own secret, which stays when the server restarts.
    """
    return hmac.new(session.encode(), b"pairlearn studio form", hashlib.sha256).hexdigest()


def masked(path: str) -> str:
    r"""A path as it may stand in a log: without tokens and control characters.

    >>> masked("/a/6fQ2c"), masked("/api/task"), masked("/x\r\nfake line")
    ('/a/***', '/api/task', '/x??fake?line')
    """
    return _UNPRINTABLE.sub("?", _LINK.sub(r"\1/***", path))[:200]


@dataclass(frozen=True)
class Hosts:
    """Names under which the studio answers: loopback, and ``names`` in lower case.

    A rebinding attack needs a *name* that its owner points at this machine, so a public studio
    also answers to plain addresses.
    """

    public: bool = False
    names: frozenset[str] = frozenset()

    @lru_cache(maxsize=64)  # noqa: B019 - one object for the life of the server
    def admits(self, header: str) -> bool:
        """Whether a Host header names this server."""
        try:
            parts = urlsplit(f"//{header}")
            name, _ = parts.hostname, parts.port
        except ValueError:
            return False
        if not name or parts.netloc != header or "@" in header:
            return False
        if is_loopback(name) or name in self.names:
            return True
        with suppress(ValueError):
            return self.public and ipaddress.ip_address(name) is not None
        return False


@dataclass
class Buckets:
    """How often each caller may ask: ``burst`` tickets, of which ``per_second`` come back."""

    per_second: float
    burst: float
    _level: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    KEPT = 4096

    def take(self, caller: str, now: float | None = None) -> bool:
        """Take one ticket; False when there is none."""
        now = time.monotonic() if now is None else now
        level, then = self._level.get(caller, (self.burst, now))
        level = min(self.burst, level + (now - then) * self.per_second)
        if caller not in self._level and len(self._level) >= self.KEPT:
            self._level.clear()  # a flood of made-up callers must not fill the memory
        taken = level >= 1
        self._level[caller] = (level - taken, now)
        return taken


class Guard:
    """ASGI middleware: refuse what no page of the studio sends, harden every reply.

    Not Starlette's ``BaseHTTPMiddleware``: that starts a task for each request, and a busy studio
    answers hundreds a second. With ``https`` browsers are told to stay there.
    """

    def __init__(self, app: ASGIApp, *, hosts: Hosts, https: bool = False) -> None:
        self.app, self.hosts = app, hosts
        self.fixed = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
        if https:
            self.fixed.append((b"strict-transport-security", b"max-age=31536000"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        status = 0

        async def hardened(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                if "cache-control" not in headers:
                    fixed = "/static/" in scope["path"]
                    headers["cache-control"] = "no-cache" if fixed else "no-store"
                message["headers"].extend(self.fixed)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, hardened)
        else:
            try:
                await self.app(scope, _limited(receive), hardened)
            except Exception as error:  # the reply is sent; a line for the operator
                LOG.error("pairlearn annotate: %s: %r", masked(scope["path"]), error)
            except asyncio.CancelledError:  # the server ends; the page keeps what it sent
                if not status:
                    await refused(503, "the studio is shutting down")(scope, receive, hardened)
        if ACCESS.isEnabledFor(logging.INFO):
            ACCESS.info("%s %s %s", scope["method"], masked(scope["path"]), status)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_LIMIT:
            return refused(431, f"the headers have more than {HEADER_LIMIT} bytes")
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.hosts.admits(hosts[0]):
            return refused(421, "this studio does not answer to that host name")
        if scope["method"] in ("GET", "HEAD"):
            return None
        if scope["method"] != "POST":
            return refused(405, "only GET and POST are used here")
        if not _same_origin(headers, hosts[0]):
            return refused(403, "changes are accepted from the studio's own pages only")
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return refused(415, "send JSON (Content-Type: application/json)")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:12]) > BODY_LIMIT:
            return refused(413, f"the body is larger than {BODY_LIMIT} bytes")
        return None


def refused(status: int, reason: str, *, retry: float | None = None) -> JSONResponse:
    """A refusal that says why."""
    headers = None if retry is None else {"Retry-After": str(max(1, round(retry)))}
    return JSONResponse({"error": reason}, status, headers)


def _limited(receive: Receive) -> Receive:
    """Count a body while it arrives: its declared length may be absent or a lie."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > BODY_LIMIT:
            raise HTTPException(413, "the body is too large")
        return message

    return counted


def _same_origin(headers: Headers, host: str) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    origins = headers.getlist("origin")
    if not origins:
        return True  # no browser: the form token of the session still has to be known
    return len(origins) == 1 and origins[0].partition("://")[2] == host


FORM_HEADER = "x-studio-form"
LASTS_SECONDS = 30 * 24 * 3600
LONGEST_TOKEN = 128


class Denied(HTTPException):
    """The request comes from nobody who may do this."""


@dataclass(frozen=True)
class Sessions:
    """Tell annotators and the supervisor by their cookies.

    The cookie holds the token of the link, out of reach of scripts and sent by the studio's own
    pages only. Every request looks it up, so that a revoked link ends at once. Its name holds a
    digest of the project: a browser sends the cookies of one port to all ports of the machine.
    """

    store: Store
    folder: Path
    https: bool = False
    guests: dict[bytes, tuple[str, Annotator, object]] = field(default_factory=dict)

    def invite(self) -> dict[str, str]:
        """Further links to all that take part, by name, which end with this server.

        Nothing is written to the store. They end, too, when a link given out is renewed or ended.
        """
        people = [("annotator", one) for one in self.store.annotators() if one.active]
        links = {}
        for role, who in [("supervisor", Annotator(0, "supervisor")), *people]:
            token = fresh_token()
            self.guests[token_hash(token)] = role, who, self.store.link_of(who.id)
            links[who.name if who.id else role] = f"/{role[0]}/{token}"
        return links

    @cached_property
    def digest(self) -> str:
        """Of the folder, and of when the project was made in it."""
        text = f"{self.folder.resolve()} {self.store.created_at()}"
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @cached_property
    def project(self) -> str:
        """A digest of how the project began, which stays when its folder is moved."""
        text = f"{self.store.created_at()} {self.store.pairs()[:1]}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def cookie(self, role: str) -> str:
        """Name of the cookie of a role."""
        return f"pairlearn_{role}_{self.digest}"

    def admit(self, reply: Response, role: str, token: str, path: str) -> Response:
        """Have a reply start the session of a token, for what lies under a path."""
        reply.set_cookie(
            self.cookie(role),
            token,
            max_age=LASTS_SECONDS,
            path=path,
            secure=self.https,
            httponly=True,
            samesite="strict",
        )
        return reply

    def known(self, role: str, token: str) -> Annotator | None:
        """Whose token this is in that role, if anybody's."""
        if not token or len(token) > LONGEST_TOKEN or not token.isascii():
            return None
        if role == "annotator" and (who := self.store.by_token(token)) is not None:
            return who
        if role == "supervisor" and self.store.is_supervisor(token):
            return Annotator(0, "supervisor")
        if (guest := self.guests.get(token_hash(token))) is None:
            return None
        invited, who, link = guest
        return who if invited == role and link == self.store.link_of(who.id) else None

    def identify(
        self, request: Request, role: str, *, changes: bool = False
    ) -> tuple[Annotator, str]:
        """Who asks, and their token, from the cookie or, for programs, from a header.

        With ``changes`` the page must know the form token of the session. Programs need none: no
        page elsewhere can have a browser send their header.
        """
        scheme, _, program = request.headers.get("authorization", "").partition(" ")
        program = program.strip() if scheme.lower() == "bearer" else ""
        token = program or request.cookies.get(self.cookie(role), "")
        who = self.known(role, token)
        if who is None or who.id != request.path_params.get("annotator", 0):
            if program:
                raise Denied(401, "this token does not open this: take the end of the right link")
            raise Denied(401, "this session has ended: open your link again")
        if changes and not program:
            given = [one.encode() for one in request.headers.getlist(FORM_HEADER)]
            # Compared in a time that does not tell where they differ.
            if len(given) != 1 or not hmac.compare_digest(given[0], csrf_token(token).encode()):
                raise Denied(403, "this page is of an earlier session: reload it")
        return who, token


RESERVED_FILES = 192
"""For the answers, which each of 40 threads opens, and images."""


class Connection(H11Protocol):
    """A connection that has to make progress, in both directions.

    A request takes no longer than ``REQUEST_SECONDS``, however its bytes trickle; a reply of which
    nothing is taken for ``REPLY_SECONDS`` ends the connection. With as many connections open as
    there may be, a new one takes the place of the one whose last reply was longest ago.
    """

    REQUEST_SECONDS = 10.0
    REPLY_SECONDS = 10.0
    MOST = 500
    """Connections at once, or fewer where the process may not open as many files."""

    _deadline: asyncio.TimerHandle | None = None
    _look: asyncio.TimerHandle | None = None
    _left = 0
    _replied = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection, if need be in place of another one."""
        super().connection_made(transport)
        self._replied = self.loop.time()
        self._look = self.loop.call_later(self.REPLY_SECONDS, self._look_at_reply)
        self._watch()
        others = [one for one in self.connections if isinstance(one, Connection) and one != self]
        if others and len(others) >= most_connections(self.MOST):
            last = min(others, key=lambda one: one._replied)
            self.connections.discard(last)
            last.transport.abort()

    def on_response_complete(self) -> None:
        """Note when; a client that does not read has no further reply completed."""
        self._replied = self.loop.time()
        super().on_response_complete()

    def resume_writing(self) -> None:
        """Send on: the client has taken most of what was waiting for it."""
        self._left = sys.maxsize
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Read on; the time that a request has does not begin anew."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines with the connection."""
        self._stop_watching()
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        arriving = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not arriving or self.timeout_keep_alive_task is not None:
            self._stop_watching()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.REQUEST_SECONDS, self.transport.abort)

    def _stop_watching(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _look_at_reply(self) -> None:
        """End the connection if the client has taken nothing since the last look."""
        left = self.transport.get_write_buffer_size()
        if 0 < self._left <= left:
            self.transport.abort()
            return
        self._left = left
        self._look = self.loop.call_later(self.REPLY_SECONDS, self._look_at_reply)


def most_connections(most: int) -> int:
    """How many connections there may be, so that files of the project can still be opened."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return most
    return min(most, files - min(RESERVED_FILES, files // 2))
