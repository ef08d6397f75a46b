"""Assemble and serve the studio: projects, routes, error pages."""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias
from urllib.parse import SplitResult

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pairlearn_studio.addresses import http_url, is_loopback
from pairlearn_studio.project import Project, translations
from pairlearn_studio.server import api, pages
from pairlearn_studio.server.security import HEALTH, Guard, Hosts, refused
from pairlearn_studio.store_file import StoreError
from pairlearn_studio.writer import announce, lock_server

Folders: TypeAlias = str | Path | Sequence[str | Path]


def make_app(
    folder: Folders,
    *,
    public: bool = False,
    url: str | None = None,
    webhook: str | None = None,
    webhook_key: str = "",
) -> Starlette:
    """The studio of one project or several as an ASGI application.

    Raises ProjectError or StoreError if a folder holds no project or its store cannot be opened,
    and ValueError if ``url`` or ``webhook`` is not a URL, or two folders have the same name.

    Parameters
    ----------
    folder : path or sequence of paths
        Projects with their stores. Each is served below the name of its folder.
    public : bool, default False
        Accept requests not only for loopback names, but also for plain IP addresses and the name
        in ``url``.
    url : str, optional
        The address under which people reach the studio, such as ``"https://studio.example"``, with
        a path if a proxy serves it below one. With https, cookies are sent over https only.
    webhook : str, optional
        URL that receives a JSON object when all pairs of a project are answered.
    webhook_key : str
        Key of the signature in the header ``X-Pairlearn-Signature``: ``sha256=`` and the
        HMAC-SHA256 of the body in hexadecimal digits.
    """
    public_url, _ = _check_url("url", url), _check_url("webhook", webhook)
    https, base = False, ""
    hosts = Hosts(public)
    if public_url is not None:
        https, base = public_url.scheme == "https", public_url.path.rstrip("/")
        origin = f"{public_url.scheme}://{public_url.netloc}"
        hosts = Hosts(public, frozenset({str(public_url.hostname)}), origin)
    handlers = dict.fromkeys((HTTPException, StoreError, OSError, Exception), _error_response)
    parts: list[Route | Mount] = []
    studios: dict[str, api.Studio] = {}
    with ExitStack() as opened:
        for prefix, project in _projects(folder).items():
            studio = studios[prefix] = api.Studio(project, https, webhook, webhook_key)
            opened.callback(studio.close)
            part = Starlette(routes=routes(), exception_handlers=handlers)
            part.state.studio = studio
            parts.append(Mount(prefix, part))
        closing = opened.pop_all()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with closing:
            yield

    def get_health(_: Request) -> Response:
        """Whether every project can be read and written."""
        working = all(studio.is_working() for studio in studios.values())
        state = {"status": "ok" if working else "failing", "projects": len(studios)}
        return JSONResponse(state, 200 if working else 503)

    front = [Route("/", pages.get_front), Route(HEALTH, get_health), *_static()]
    parts = [*front, *parts]
    app = Starlette(routes=parts, lifespan=lifespan, exception_handlers=handlers)
    # The guard is outermost: it also protects the error pages.
    stack = app.build_middleware_stack()
    app.middleware_stack = Guard(stack, hosts=hosts, https=https, base=base)
    app.state.studios = studios
    return app


def _projects(folder: Folders) -> dict[str, Project]:
    """Projects by the prefix of their paths, the names of their folders."""
    folders = [folder] if isinstance(folder, str | Path) else folder
    projects = [Project.load(path) for path in folders]
    names = [project.folder.resolve().name for project in projects]
    for name in names:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII) or name in ("static", HEALTH[1:]):
            raise ValueError(
                f"the folder {name!r} cannot be part of an address: use letters, digits, - and _"
            )
        if names.count(name) > 1:
            raise ValueError(f"two folders are called {name!r}: rename one of them")
    return {f"/{name}": project for name, project in zip(names, projects, strict=True)}


def serve(
    folder: Folders,
    host: str = "127.0.0.1",
    port: int = 8337,
    *,
    public: bool = False,
    url: str | None = None,
    log_level: str = "warning",
    log_json: bool = False,
    webhook: str | None = None,
    webhook_key: str = "",
    trusted_proxies: Sequence[str] = (),
    ready: Callable[[str], object] = lambda address: None,
) -> None:
    """Serve the studio of one project or several until interrupted.

    Raises OSError if the port is taken, and ValueError if ``host`` is not loopback without
    ``public``, or the project is already being served.

    Parameters
    ----------
    folder, url, webhook, webhook_key
        See `make_app`.
    host, port : str, int
        Address to listen on.
    public : bool, default False
        Required to listen beyond loopback.
    log_level : str
        Least level that is logged. Requests are logged at "info", without tokens.
    log_json : bool
        Log lines of JSON.
    trusted_proxies : sequence of str
        Addresses of proxies whose X-Forwarded-For is believed.
    ready : callable
        Called with the URL when the port is open.
    """
    if not public and not is_loopback(host):
        raise ValueError(
            f"host {host!r} can be reached from other machines: add public=True (--public)"
        )
    with ExitStack() as stack:
        projects = _projects(folder).values()
        locks = [stack.enter_context(lock_server(project.folder)) for project in projects]
        app = make_app(folder, public=public, url=url, webhook=webhook, webhook_key=webhook_key)
        set_up_logs(log_level, log_json)
        studios: dict[str, api.Studio] = app.state.studios
        for studio in studios.values():
            stack.callback(studio.close)
            studio.store.check_writable()  # now, and not with the first answer
        sock = stack.enter_context(listen(host, port))
        address = (url or address_of(host, port)).rstrip("/")
        for lock, prefix in zip(locks, studios, strict=True):
            announce(lock, address + prefix)
        ready(address)
        server = uvicorn.Server(server_config(app, log_level, trusted_proxies))
        with suppress(KeyboardInterrupt):  # raised again by uvicorn when it has ended
            server.run([sock])


def listen(host: str, port: int) -> socket.socket:
    """Listen on a port of a host; OSError if that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = f"port {port} of {host} cannot be used ({error.strerror})"
        raise OSError(f"{reason}: choose another with --port") from None


def address_of(host: str, port: int) -> str:
    """The URL for a browser on this machine.

    >>> address_of("0.0.0.0", 80), address_of("::1", 8337)
    ('http://127.0.0.1:80', 'http://[::1]:8337')
    """
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def server_config(
    app: Starlette, log_level: str = "warning", trusted_proxies: Sequence[str] = ()
) -> uvicorn.Config:
    """Settings of uvicorn."""
    return uvicorn.Config(
        app,
        http="h11",  # the strictest of its parsers
        log_config=None,
        log_level=log_level,
        access_log=False,  # it would log the tokens of links
        server_header=False,
        proxy_headers=bool(trusted_proxies),  # any client can send X-Forwarded-For
        forwarded_allow_ips=list(trusted_proxies),
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )


class _JsonLines(logging.Formatter):
    """A record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        return json.dumps(line)


def set_up_logs(level: str, as_json: bool) -> None:
    """Log to standard error: this package, its requests, and uvicorn."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(_JsonLines() if as_json else plain)
    for name in ("pairlearn.annotate", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())


def routes() -> list[Route | Mount]:
    """The routes of one project."""
    return [
        Route("/", pages.get_front),
        Route("/a/{token}", partial(pages.get_link, role="annotator")),
        Route("/s/{token}", partial(pages.get_link, role="supervisor")),
        Route(api.ANNOTATOR, pages.get_annotate),
        Route("/supervisor", pages.get_supervisor),
        Route("/answers", pages.get_answers),
        *(Route(c.path, c.endpoint, methods=["POST"] if c.form else None) for c in api.CALLS),
        *_static(),
    ]


def _static() -> list[Route | Mount]:
    return [Mount("/static", StaticFiles(directory=pages.STATIC))]


def _check_url(name: str, url: str | None) -> SplitResult | None:
    """Parse a URL; ValueError if it is not one."""
    if url is None:
        return None
    if (parsed := http_url(url)) is None:
        raise ValueError(f"{name} is {url!r}: give an address such as https://studio.example")
    return parsed


async def _error_response(request: Request, error: Exception) -> Response:
    """Turn an error into JSON for the scripts of a page, or into a page for people."""
    studio: api.Studio | None = getattr(request.app.state, "studio", None)
    status, reason = 500, "something went wrong in the studio"
    if isinstance(error, HTTPException):
        status, reason = error.status_code, error.detail
        if reason == HTTPStatus(status).phrase:
            reason = "there is nothing here"
    elif isinstance(error, OSError):  # of the store, too
        if studio is not None:
            studio.log_outage(error)
        # At 503 the page keeps the answer and sends it again.
        status, reason = 503, "the studio cannot write to its disk"
    elif isinstance(error, StoreError):
        status, reason = 400, str(error)
    if studio is not None:
        reason = translations(studio.project.language).get(reason, reason)
    if "/api/" in request.url.path or request.url.path.endswith("/image"):
        return refused(status, reason)
    return pages.message(request, status, "Not here", reason[:1].upper() + reason[1:] + ".")
