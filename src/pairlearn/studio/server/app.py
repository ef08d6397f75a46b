"""Put the studio together, and serve it: routes, projects, what errors become."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from pairlearn.studio.backups import announce, hold
from pairlearn.studio.creating import check_features
from pairlearn.studio.endpoint import is_loopback
from pairlearn.studio.forecast import Forecast, choosing
from pairlearn.studio.items import Items
from pairlearn.studio.project import Project, words_of
from pairlearn.studio.server import api, pages
from pairlearn.studio.server.api import FormError
from pairlearn.studio.server.connections import Connection, address_of, listen
from pairlearn.studio.server.security import (
    Buckets,
    Denied,
    Guard,
    Hosts,
    Sessions,
    TooLarge,
    refused,
)
from pairlearn.studio.store import Store
from pairlearn.studio.store_file import StoreError

REQUESTS_PER_SECOND = 20.0
"""Of one annotator; a person needs about one."""


class GuardedApp(Starlette):
    """An application with the guard outside of everything, its error pages too."""

    def __init__(self, hosts: Hosts, https: bool, **options: object) -> None:
        self._hosts, self._https = hosts, https
        super().__init__(**options)  # type: ignore[arg-type]

    def build_middleware_stack(self) -> ASGIApp:
        """The stack of Starlette, guarded."""
        return Guard(super().build_middleware_stack(), hosts=self._hosts, https=self._https)


Folders: TypeAlias = str | Path | Sequence[str | Path]


def make_app(
    folder: Folders,
    *,
    public: bool = False,
    url: str | None = None,
    requests_per_second: float = REQUESTS_PER_SECOND,
    webhook: str | None = None,
) -> Starlette:
    r"""The studio of a project, or of several, as an ASGI application.

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

    Raises
    ------
    ProjectError, StoreError
        If the folder holds no project, or its store cannot be opened.
    ValueError
        If ``url`` or ``webhook`` is no address, or two folders have one name.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.studio import Plan, Store
    >>> from starlette.testclient import TestClient
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "items.csv").write_text("id,size\na,1\nb,2\n")
    ...     project = Project(Path(folder), "table", "items.csv", Plan(pairs=1))
    ...     _ = project.save()
    ...     with Store.create(project) as store:
    ...         _, token = store.add_annotator("ann")
    ...     with TestClient(make_app(folder), "http://127.0.0.1") as client:
    ...         page = client.get(f"/a/{token}").url.path
    ...         page, client.get(f"{page}/api/task").json()["task"]["pair"]
    ('/annotate/1', 1)
    """
    https, names = _address("url", url)
    _address("webhook", webhook)
    folders = _listed(folder)
    prefixes = _prefixes([Project.load(one).folder for one in folders])
    with ExitStack() as opened:
        studios = []
        for one in folders:
            studios.append(_open(one, https, requests_per_second, webhook))
            opened.callback(studios[-1].store.close)
            opened.callback(studios[-1].forecast.close)
        closing = opened.pop_all()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with closing:
            yield

    hosts, handlers = Hosts(public=public, names=names), dict.fromkeys(_ERRORS, _failed)
    options: dict[str, Any] = {"lifespan": lifespan, "exception_handlers": handlers}
    if len(studios) == 1:
        app = GuardedApp(hosts, https, routes=routes(), **options)
        app.state.studio = studios[0]
    else:
        parts: list[Route | Mount] = [Route("/", pages.get_front), *_static()]
        for prefix, studio in zip(prefixes, studios, strict=True):
            part = Starlette(routes=routes(), exception_handlers=handlers)
            part.state.studio = studio
            parts.append(Mount(prefix, part))
        app = GuardedApp(hosts, https, routes=parts, **options)
    app.state.studios = dict(zip(prefixes, studios, strict=True))
    return app


def _open(
    folder: str | Path, https: bool, requests_per_second: float, webhook: str | None
) -> api.Studio:
    project = Project.load(folder)
    items = Items.open(project)
    store = Store.open(project)
    return api.Studio(
        project=project,
        store=store,
        items=items,
        sessions=Sessions(store, project.folder, https),
        requests=Buckets(requests_per_second, 3 * requests_per_second),
        failures=Buckets(per_second=1, burst=20),
        outage=api.Outage(),
        ready=set(),
        forecast=Forecast(project.folder),
        webhook=webhook,
    )


def _listed(folder: Folders) -> list[str | Path]:
    return [folder] if isinstance(folder, str | Path) else list(folder)


def _prefixes(folders: Sequence[Path]) -> list[str]:
    """What the paths of each project begin with: nothing, or the names of several folders."""
    if len(folders) == 1:
        return [""]
    names = [one.resolve().name for one in folders]
    for name in names:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII) or name == "static":
            raise ValueError(
                f"the folder {name!r} cannot be part of an address: use letters, digits, - and _"
            )
        if names.count(name) > 1:
            raise ValueError(f"two folders are called {name!r}: rename one of them")
    return [f"/{name}" for name in names]


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

    In mode "information" it also keeps the project supplied with chosen pairs.

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

    Raises
    ------
    ValueError
        If ``host`` is not loopback and ``public`` was not said, the project is being served
        already, or its mode is "information" and no model can learn from its items.
    OSError
        If the port is taken.
    """
    if not public and not is_loopback(host):
        raise ValueError(
            f"host is {host!r}, which other machines can reach: say public=True if that is meant"
        )
    with ExitStack() as stack:
        locks = [stack.enter_context(hold(Project.load(one).folder)) for one in _listed(folder)]
        app = make_app(
            folder, public=public, url=url, requests_per_second=requests_per_second,
            webhook=webhook,
        )  # fmt: skip
        studios: dict[str, api.Studio] = app.state.studios
        for studio in studios.values():
            stack.callback(studio.store.close)
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
        Route("/a/{token}", pages.get_annotator_link),
        Route("/s/{token}", pages.get_supervisor_link),
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
    forms = list(dict.fromkeys(one.form for one in api.CALLS if one.form))
    found, schemas = msgspec.json.schema_components(
        forms, ref_template="#/components/schemas/{name}"
    )
    schema = dict(zip(forms, found, strict=True))
    paths: dict[str, Any] = {}
    for one in api.CALLS:
        path = one.path.replace(":int", "")
        method = "post" if one.form else "get"
        summary = (inspect.getdoc(one.handler) or "").partition("\n\n")[0].replace("\n", " ")
        operation: dict[str, Any] = {
            "summary": summary,
            "operationId": f"{method} {path}",
            "parameters": [
                {"name": name, "in": place, "required": True, "schema": {"type": kind}}
                for name, place, kind in (
                    ("annotator", "path", "integer"),
                    (one.query, "query", "string"),
                )
                if name and (place == "query" or "{annotator}" in path)
            ],
            "responses": {
                "200": {"description": "done", "content": {one.media: {}}},
                "default": {
                    "description": "refused, with the reason",
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}
                    },
                },
            },
        }
        if one.form:
            body = {"application/json": {"schema": schema[one.form]}}
            operation["requestBody"] = {"required": True, "content": body}
        paths[path] = {method: operation}
    refusal = {"type": "object", "properties": {"error": {"type": "string"}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pairlearn annotation studio",
            "version": "1",
            "description": "The token is the last part of a link: an annotator's for their own "
            "number, the supervisor's for all other paths. Of several projects on one server each "
            "has the name of its folder before these paths.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas | {"Refusal": refusal},
        },
    }


def _address(name: str, url: str | None) -> tuple[bool, frozenset[str]]:
    """Whether an address is https, and its name."""
    if url is None:
        return False, frozenset()
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{name} is {url!r}: give an address such as https://studio.example")
    return parts.scheme == "https", frozenset({parts.hostname})


_ERRORS = (Denied, FormError, StoreError, TooLarge, HTTPException, OSError, Exception)


async def _failed(request: Request, error: Exception) -> Response:
    """What an error becomes: JSON for the scripts of a page, a page for people."""
    studio: api.Studio | None = getattr(request.app.state, "studio", None)
    status, reason = 500, "something went wrong in the studio"
    if isinstance(error, Denied):
        status, reason = error.status, str(error)
        # Nobody guesses 32 random bytes; whoever tries is at least slow. Those with a valid
        # link never get here, whatever others do from the same address.
        caller = request.client.host if request.client else "?"
        tried = request.cookies or "authorization" in request.headers
        guessed = status == 404 or (status == 401 and tried)
        if guessed and studio is not None and not studio.failures.take(caller):
            status, reason = 429, "too many attempts: wait a minute"
    elif isinstance(error, OSError):  # of the store, too
        if studio is not None:
            studio.outage.begins(error)
        # 503 makes the page keep the answer and send it again.
        status, reason = 503, "the studio cannot write to its disk"
    elif isinstance(error, (FormError, StoreError)):
        status, reason = 400, str(error)
    elif isinstance(error, TooLarge):
        status, reason = 413, "the body is too large"
    elif isinstance(error, HTTPException):
        told = error.detail != HTTPStatus(error.status_code).phrase
        status, reason = error.status_code, error.detail if told else "there is nothing here"
    if studio is not None:
        reason = words_of(studio.project.language).get(reason, reason)
    if "/api/" in request.url.path or request.url.path.endswith("/image"):
        return refused(status, reason, retry=2 if status == 429 else None)
    return pages.message(request, status, "Not here", reason[:1].upper() + reason[1:] + ".")
