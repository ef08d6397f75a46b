"""Defences between the network and the studio.

Every request passes `Guard`. The Host header must name this server, so that no page can reach it
by rebinding a name to 127.0.0.1. A change must come from the studio's own pages and carry JSON of
a few kilobytes. Every reply has headers that forbid foreign scripts, frames, sniffing and
caching. Slow and idle connections are left to a proxy, which a public address needs.

`Sessions` identifies people by the links they were given and the cookies set by these. An
annotator's pages, requests and cookie are under ``/annotate/NUMBER``, so that two people can work
in two tabs of one browser.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pairlearn_studio.addresses import is_loopback
from pairlearn_studio.records import Annotator
from pairlearn_studio.store import Store

#: Bytes of the body of a request.
BODY_LIMIT = 16 * 1024

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

_LINK = re.compile(r"^((?:/[^/]+)*?/[as])/.*", re.DOTALL)
HEALTH = "/healthz"
_UNPRINTABLE = re.compile(r"[^\x21-\x7e]")


def csrf_token(session: str) -> str:
    """The CSRF token that a page of this session sends with every change.

    HMAC-SHA256 keyed by the session's own secret, so that it survives a restart of the server.
    """
    return hmac.new(session.encode(), b"pairlearn studio form", hashlib.sha256).hexdigest()


def masked(path: str) -> str:
    r"""A path for the log, without tokens and control characters.

    >>> masked("/pumps/a/6fQ2c"), masked("/pumps/api/task"), masked("/x\r\nfake line")
    ('/pumps/a/***', '/pumps/api/task', '/x??fake?line')
    """
    return _UNPRINTABLE.sub("?", _LINK.sub(r"\1/***", path))[:200]


@dataclass(frozen=True)
class Hosts:
    """Host names that the studio answers to: loopback, and ``names`` in lower case.

    ``origin`` is that of the public address, from which a proxy may pass on requests under
    another Host.

    A rebinding attack needs a *name* that its owner points at this machine, so a public studio can
    answer to plain IP addresses as well.
    """

    public: bool = False
    names: frozenset[str] = frozenset()
    origin: str = ""

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


class Guard:
    """ASGI middleware: refuse requests that no page of the studio sends, harden every reply.

    Not Starlette's ``BaseHTTPMiddleware``, which starts a task for each request: a busy studio
    answers hundreds per second. With ``https``, replies carry Strict-Transport-Security. ``base``
    is the path below which people reach the studio; a proxy may pass it on or leave it out.
    """

    def __init__(self, app: ASGIApp, *, hosts: Hosts, https: bool = False, base: str = "") -> None:
        self.app, self.hosts, self.base = app, hosts, base
        self.fixed = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
        if https:
            self.fixed.append((b"strict-transport-security", b"max-age=31536000"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":  # the start and the end; no web sockets are served
            await self.app(scope, receive, send)
            return
        if self.base:
            path = scope["path"]
            inside = path == self.base or path.startswith(f"{self.base}/")
            scope = {**scope, "root_path": self.base, "path": path if inside else self.base + path}
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
            except Exception as error:  # the reply is sent already
                LOG.error("pairlearn annotate: %s: %r", masked(scope["path"]), error)
            except asyncio.CancelledError:  # the server is stopping; the page will send again
                if not status:
                    await refused(503, "the studio is shutting down")(scope, receive, hardened)
        if ACCESS.isEnabledFor(logging.INFO):
            ACCESS.info("%s %s %s", scope["method"], masked(scope["path"]), status)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        health = scope["path"] == f"{self.base}{HEALTH}"  # probes may use any name
        if not health and (len(hosts) != 1 or not self.hosts.admits(hosts[0])):
            return refused(421, "this studio does not answer to that host name")
        if scope["method"] in ("GET", "HEAD"):
            return None
        if scope["method"] != "POST":
            return refused(405, "only GET and POST are used here")
        if not _same_origin(headers, hosts[0], self.hosts.origin):
            return refused(403, "changes are accepted from the studio's own pages only")
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return refused(415, "send JSON (Content-Type: application/json)")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:12]) > BODY_LIMIT:
            return refused(413, f"the body is larger than {BODY_LIMIT} bytes")
        return None


def refused(status: int, reason: str) -> JSONResponse:
    """A JSON response with the reason of a refusal."""
    return JSONResponse({"error": reason}, status, {"Retry-After": "2"} if status == 429 else None)


def _limited(receive: Receive) -> Receive:
    """Limit a body while it arrives: its declared length may be absent or wrong."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > BODY_LIMIT:
            raise HTTPException(413, "the body is too large")
        return message

    return counted


def _same_origin(headers: Headers, host: str, public: str) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    origins = headers.getlist("origin")
    if not origins:
        return True  # not a browser: the CSRF token is still required
    if len(origins) != 1:
        return False
    return origins[0].partition("://")[2] == host or (public != "" and origins[0] == public)


SUPERVISOR = Annotator(0, "supervisor")
FORM_HEADER = "x-studio-form"
LASTS_SECONDS = 30 * 24 * 3600
LONGEST_TOKEN = 128


@dataclass(frozen=True)
class Sessions:
    """Identify annotators and the supervisor by their cookies.

    The cookie holds the token of the link, hidden from scripts and sent by the studio's own pages
    only. Every request looks it up, so that a revoked link ends at once. The name of the cookie has
    a digest of the project, because browsers send cookies to all ports of a host.
    """

    store: Store
    https: bool = False

    @cached_property
    def digest(self) -> str:
        """A digest of the project's identity, which stays the same when its folder is moved."""
        text = self.store.project.id or str(self.store.project.folder.resolve())
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def cookie(self, role: str) -> str:
        """The name of a role's cookie."""
        return f"pairlearn_{role}_{self.digest}"

    def admit(self, reply: Response, role: str, token: str, path: str) -> Response:
        """Set the cookie of a token in a reply, for everything below a path."""
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
        """The owner of a token in a role; None if it is not valid."""
        if not token or len(token) > LONGEST_TOKEN or not token.isascii():
            return None
        if role == "annotator":
            return self.store.by_token(token)
        return SUPERVISOR if self.store.is_supervisor(token) else None

    def identify(
        self, request: Request, role: str, *, changes: bool = False
    ) -> tuple[Annotator, str]:
        """The sender of a request and their token, from a cookie or, for programs, a header.

        A page that ``changes`` something must send the CSRF token of its session. Programs need
        none: no foreign page can make a browser send their header.
        """
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        bearer = bearer.strip() if scheme.lower() == "bearer" else ""
        token = bearer or request.cookies.get(self.cookie(role), "")
        who = self.known(role, token)
        if who is None or who.id != request.path_params.get("annotator", 0):
            reason = "this session has ended: open your link again"
            if bearer:
                reason = "this token is wrong: use the last part of the right link"
            elif self.store.has_ended(token):
                reason = "your participation has ended; your answers are kept: ask for a new link"
            raise HTTPException(401, reason)
        if changes and not bearer:
            sent = [value.encode() for value in request.headers.getlist(FORM_HEADER)]
            if len(sent) != 1 or not hmac.compare_digest(sent[0], csrf_token(token).encode()):
                raise HTTPException(403, "this page belongs to an earlier session: reload it")
        return who, token
