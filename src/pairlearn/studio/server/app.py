"""Put the studio together, and serve it: routes, projects, what errors become."""

from __future__ import annotations

import errno
import inspect
import re
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pairlearn.studio.choosing import choosing
from pairlearn.studio.creating import check_features
from pairlearn.studio.endpoint import http_url, is_loopback
from pairlearn.studio.project import Project, translations
from pairlearn.studio.server import api, pages
from pairlearn.studio.server.security import Connection, Denied, Guard, Hosts, refused
from pairlearn.studio.store import Store
from pairlearn.studio.store_file import StoreError
from pairlearn.studio.writer import announce, lock_server

REQUESTS_PER_SECOND = 20.0
"""Of one annotator; a person needs about one."""


Folders: TypeAlias = str | Path | Sequence[str | Path]


def make_app(
    folder: Folders,
    *,
    public: bool = False,
    url: str | None = None,
    requests_per_second: float = REQUESTS_PER_SECOND,
    webhook: str | None = None,
) -> Starlette:
    """The studio of a project, or of several, as an ASGI application.

    Raises ProjectError or StoreError if a folder holds no project or its store cannot be opened,
    and ValueError if ``url`` or ``webhook`` is no address, or two folders have one name.

    Parameters
    ----------
    folder : path or sequence of paths
        Of the project; its store must be there. Each of several is served beneath the name of
        its folder.
    public : bool, default False
        Answer not to loopback names only, but also to plain addresses and the name in ``url``.
    url : str, optional
        The address under which people reach it, such as ``"https://studio.example"``.
        With https, cookies are sent over https only.
    requests_per_second : float
        How often one annotator may ask.
    webhook : str, optional
        Address that is sent a JSON object when all pairs of a project are answered.
    """
    https, names = _address("url", url)
    _address("webhook", webhook)
    handlers = dict.fromkeys(_ERRORS, _failed)
    parts: list[Route | Mount] = []
    studios: dict[str, api.Studio] = {}
    with ExitStack() as opened:
        for prefix, one in _prefixes(folder).items():
            part = Starlette(routes=routes(), exception_handlers=handlers)
            part.state.studio = studios[prefix] = api.Studio(
                one, https, requests_per_second, webhook
            )
            opened.callback(studios[prefix].close)
            parts.append(Mount(prefix, part))
        closing = opened.pop_all()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with closing:
            yield

    if len(parts) > 1:
        parts = [Route("/", pages.get_front), *_static(), *parts]
    app = Starlette(routes=parts, lifespan=lifespan, exception_handlers=handlers)
    # The guard is outside of everything, the error pages too.
    stack, hosts = app.build_middleware_stack(), Hosts(public=public, names=names)
    app.middleware_stack = Guard(stack, hosts=hosts, https=https)
    app.state.studios = studios
    return app


def _prefixes(folder: Folders) -> dict[str, Path]:
    """The projects by what their paths begin with: nothing, or the names of several folders."""
    listed = [folder] if isinstance(folder, str | Path) else folder
    folders = [Project.load(one).folder for one in listed]
    if len(folders) == 1:
        return {"": folders[0]}
    names = [one.resolve().name for one in folders]
    for name in names:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII) or name == "static":
            raise ValueError(
                f"the folder {name!r} cannot be part of an address: use letters, digits, - and _"
            )
        if names.count(name) > 1:
            raise ValueError(f"two folders are called {name!r}: rename one of them")
    return {f"/{name}": one for name, one in zip(names, folders, strict=True)}


def serve(
    folder: Folders,
    host: str = "127.0.0.1",
    port: int = 8337,
    *,
    public: bool = False,
    url: str | None = None,
    log_level: str = "warning",
    requests_per_second: float = REQUESTS_PER_SECOND,
    webhook: str | None = None,
    ready: Callable[[str], object] = lambda address: None,
    invite: Callable[[dict[str, str]], object] | None = None,
) -> None:
    """Serve the studio of a project, or of several, until it is interrupted.

    In mode "information" it also keeps the project supplied with chosen pairs. Raises OSError if
    the port is taken, and ValueError if ``host`` is not loopback without ``public``, the project
    is being served already, or its mode is "information" and no model can learn from its items.

    Parameters
    ----------
    folder, url, requests_per_second, webhook
        See `make_app`.
    host, port : str, int
        Where to listen.
    public : bool, default False
        Required to listen beyond loopback.
    log_level : str
        Of uvicorn. Requests are logged by ``pairlearn.annotate.access``, without tokens.
    ready : callable
        Called with the address when the port is open.
    invite : callable, optional
        Called then with links for the supervisor and all annotators, by name, that are valid while
        this server runs, beside those that were given out.
    """
    if not public and not is_loopback(host):
        raise ValueError(
            f"host {host!r} can be reached from other machines: add public=True (--public)"
        )
    with ExitStack() as stack:
        locks = [stack.enter_context(lock_server(one)) for one in _prefixes(folder).values()]
        app = make_app(
            folder, public=public, url=url, requests_per_second=requests_per_second,
            webhook=webhook,
        )  # fmt: skip
        studios: dict[str, api.Studio] = app.state.studios
        for studio in studios.values():
            stack.callback(studio.close)
            if studio.project.plan.mode == "information":
                check_features(studio.project)
            # A file that cannot be written is told now, and not with the first answer.
            studio.store.carry_out(lambda changes: changes.rows("DELETE FROM setting WHERE 0"))
        sockets = [stack.enter_context(one) for one in listen(host, port)]
        address = (url or address_of(host, port)).rstrip("/")
        for lock, (prefix, studio) in zip(locks, studios.items(), strict=True):
            announce(lock, address + prefix)
            if studio.project.plan.mode == "information":
                beside = stack.enter_context(Store.open(studio.project))
                stack.enter_context(choosing(beside, studio.forecast))
        ready(address)
        if invite is not None:
            links = {
                f"{prefix[1:]} {name}".strip(): f"{address}{prefix}{path}"
                for prefix, studio in studios.items()
                for name, path in studio.sessions.invite().items()
            }
            invite(links)
        server = uvicorn.Server(server_config(app, log_level=log_level))
        with suppress(KeyboardInterrupt):  # raised again by uvicorn when it has ended
            server.run(sockets)


def listen(host: str, port: int) -> list[socket.socket]:
    """Listen at a port, on every address that a name has; OSError if that cannot be."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise OSError(f"host {host} is not known: {error.strerror}") from None
    sockets, refusals = list[socket.socket](), list[OSError]()
    for family, address in dict.fromkeys((one[0], one[4]) for one in found):
        try:
            sockets.append(socket.create_server(address, family=family, backlog=2048))
        except OSError as error:
            refusals.append(error)
    taken = any(one.errno == errno.EADDRINUSE for one in refusals)
    if sockets and not taken:
        return sockets  # a name may have an IPv6 address that the machine has not
    for one in sockets:
        one.close()
    if taken:
        raise OSError(f"port {port} of {host} is taken: choose another one with --port")
    raise OSError(f"cannot listen at port {port} of {host}: {refusals[0].strerror}")


def address_of(host: str, port: int) -> str:
    """The address that a browser on this machine opens.

    >>> address_of("0.0.0.0", 80), address_of("::1", 8337)
    ('http://127.0.0.1:80', 'http://[::1]:8337')
    """
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def server_config(app: Starlette, *, log_level: str = "warning") -> uvicorn.Config:
    """How uvicorn runs the studio."""
    return uvicorn.Config(
        app,
        http=Connection,
        log_level=log_level,
        access_log=False,  # its lines would hold the tokens of links
        server_header=False,
        proxy_headers=False,  # anybody can send X-Forwarded-For
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )


def routes() -> list[Route | Mount]:
    """Of one project."""
    return [
        Route("/", pages.get_front),
        Route("/a/{token}", partial(pages.get_link, role="annotator")),
        Route("/s/{token}", partial(pages.get_link, role="supervisor")),
        Route(api.ANNOTATOR, pages.get_annotate),
        Route("/supervisor", pages.get_supervisor),
        *(Route(c.path, c.endpoint, methods=["POST"] if c.form else None) for c in api.CALLS),
        *_static(),
    ]


def _static() -> list[Route | Mount]:
    async def described(_: Request) -> Response:
        return JSONResponse(describe())

    files = StaticFiles(directory=pages.STATIC)
    return [Route("/static/openapi.json", described), Mount("/static", files)]


@cache
def describe() -> dict[str, Any]:
    """The API as an OpenAPI 3.1 document, which is served as ``/static/openapi.json``."""
    told: dict[str, Any] = msgspec.json.decode((pages.PAGES / "openapi.json").read_bytes())
    forms = list(dict.fromkeys(one.form for one in api.CALLS if one.form))
    template = "#/components/schemas/{name}"
    found, schemas = msgspec.json.schema_components(forms, ref_template=template)
    schema, told["components"]["schemas"] = dict(zip(forms, found, strict=True)), schemas
    for one in api.CALLS:
        path, method = one.path.replace(":int", ""), "post" if one.form else "get"
        summary = (inspect.getdoc(one.handler) or "").partition("\n\n")[0].replace("\n", " ")
        parameters = [("annotator", "path", "integer")] * ("{annotator}" in path)
        parameters += [(one.query, "query", "string")] * bool(one.query)
        operation: dict[str, Any] = {
            "summary": summary,
            "operationId": f"{method} {path}",
            "parameters": [
                {"name": name, "in": place, "required": True, "schema": {"type": kind}}
                for name, place, kind in parameters
            ],
            "responses": {
                "200": {"description": "done", "content": {one.media: {}}},
                "default": {"$ref": "#/components/responses/Refusal"},
            },
        }
        if one.form:
            content = {"application/json": {"schema": schema[one.form]}}
            operation["requestBody"] = {"required": True, "content": content}
        told["paths"][path] = {method: operation}
    return told


def _address(name: str, url: str | None) -> tuple[bool, frozenset[str]]:
    """Whether an address is https, and its name."""
    if url is None:
        return False, frozenset()
    if (found := http_url(url)) is None:
        raise ValueError(f"{name} is {url!r}: give an address such as https://studio.example")
    return found.scheme == "https", frozenset({found.raw_host.decode()})


_ERRORS = (HTTPException, StoreError, OSError, Exception)


async def _failed(request: Request, error: Exception) -> Response:
    """What an error becomes: JSON for the scripts of a page, a page for people."""
    studio: api.Studio | None = getattr(request.app.state, "studio", None)
    status, reason = 500, "something went wrong in the studio"
    if isinstance(error, HTTPException):
        told = error.detail != HTTPStatus(error.status_code).phrase
        status, reason = error.status_code, error.detail if told else "there is nothing here"
    elif isinstance(error, OSError):  # of the store, too
        if studio is not None:
            studio.tell_outage(error)
        # 503 makes the page keep the answer and send it again.
        status, reason = 503, "the studio cannot write to its disk"
    elif isinstance(error, StoreError):
        status, reason = 400, str(error)
    if isinstance(error, Denied):
        # Nobody guesses 32 random bytes; whoever tries is at least slow. Those with a valid
        # link never get here, whatever others do from the same address.
        caller = request.client.host if request.client else "?"
        tried = request.cookies or "authorization" in request.headers
        guessed = status == 404 or (status == 401 and tried)
        if guessed and studio is not None and not studio.failures.take(caller):
            status, reason = 429, "too many attempts: wait a minute"
    if studio is not None:
        reason = translations(studio.project.language).get(reason, reason)
    if "/api/" in request.url.path or request.url.path.endswith("/image"):
        return refused(status, reason, retry=2 if status == 429 else None)
    return pages.message(request, status, "Not here", reason[:1].upper() + reason[1:] + ".")
