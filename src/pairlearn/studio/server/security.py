"""What stands between the network and the studio.

Every request passes `Guard` first: the Host header must name this server (a page elsewhere cannot
reach it by rebinding a name to 127.0.0.1), a change must come from the studio's own pages and
carry JSON of a few kilobytes, and every reply has headers that forbid scripts from elsewhere,
frames, sniffing and caching.

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
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pairlearn.studio.changes import fresh_token, token_hash
from pairlearn.studio.endpoint import is_loopback
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


def same_secret(given: str, expected: str) -> bool:
    """Compare two secrets in a time that does not tell where they differ."""
    return hmac.compare_digest(given.encode(), expected.encode())


def csrf_token(session: str) -> str:
    """The header value that a page of this session sends with every change.

    HMAC-SHA256 keyed by the session's own secret: nobody without the cookie can know it, and it
    stays the same when the server restarts.
    """
    return hmac.new(session.encode(), b"pairlearn studio form", hashlib.sha256).hexdigest()


def masked(path: str) -> str:
    r"""A path as it may stand in a log: without tokens and control characters.

    Examples
    --------
    >>> masked("/a/6fQ2c"), masked("/api/task"), masked("/x\r\nfake line")
    ('/a/***', '/api/task', '/x??fake?line')
    """
    return _UNPRINTABLE.sub("?", _LINK.sub(r"\1/***", path))[:200]


@dataclass(frozen=True)
class Hosts:
    """Names under which the studio answers.

    A rebinding attack needs a *name* that its owner points at this machine, so a public studio
    also answers to plain addresses, and a loopback one to loopback only. ``names`` are further
    ones in lower case, such as that of the public address.
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
        if not self.public:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


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

    ``https`` says that people reach the studio over https, so that browsers may be told to stay
    there. Not Starlette's ``BaseHTTPMiddleware``: that starts a task for each request, and a busy
    studio answers hundreds a second.
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


class TooLarge(Exception):
    """A body without a declared length that grew past the limit."""


def _limited(receive: Receive) -> Receive:
    """Count a body while it arrives: its declared length may be absent or a lie."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > BODY_LIMIT:
            raise TooLarge
        return message

    return counted


def _same_origin(headers: Headers, host: str) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    origins = headers.getlist("origin")
    if not origins:
        return True  # no browser: the form token of the session still has to be known
    parts: Iterable[str] = origins if len(origins) == 1 else ("null",)
    return all(urlsplit(origin).netloc == host for origin in parts)


FORM_HEADER = "x-studio-form"
LASTS_SECONDS = 30 * 24 * 3600
LONGEST_TOKEN = 128


class Denied(Exception):
    """The request comes from nobody who may do this."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def bearer(request: Request) -> str:
    """The token that a program sends with its request, or ""."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


@dataclass(frozen=True)
class Sessions:
    """Tell annotators and the supervisor by their cookies.

    The cookie holds the token of the link, out of reach of scripts and sent by the studio's own
    pages only. Every request looks it up, so that a revoked link ends at once. The cookie's name
    holds a digest of the project, because a browser sends the cookies of one port to all ports of
    the machine.
    """

    store: Store
    folder: Path
    https: bool = False
    guests: dict[bytes, tuple[str, Annotator, object]] = field(default_factory=dict)

    def invite(self) -> dict[str, str]:
        """Further links to all that take part, by name, which end with this server.

        Those that were given out stay valid: nothing is written to the store. With them, when
        they are renewed or ended, end those made here.
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

    def read(self, request: Request, role: str) -> tuple[Annotator, str]:
        """Who reads, and their token, from the cookie or, for programs, from a header."""
        program = bearer(request)
        token = program or request.cookies.get(self.cookie(role), "")
        who = self.known(role, token)
        if who is None or who.id != request.path_params.get("annotator", 0):
            if program:
                raise Denied(401, "this token does not open this: take the end of the right link")
            raise Denied(401, "this session has ended: open your link again")
        return who, token

    def change(self, request: Request, role: str) -> tuple[Annotator, str]:
        """Who changes something; their page knows the form token of the session.

        No page elsewhere can have a browser send the header of a program.
        """
        who, token = self.read(request, role)
        if bearer(request):
            return who, token
        given = request.headers.getlist(FORM_HEADER)
        if len(given) != 1 or not same_secret(given[0], csrf_token(token)):
            raise Denied(403, "this page is of an earlier session: reload it")
        return who, token
