"""Put the studio together, and serve it: sockets, connections, routes, what errors become."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pairlearn.studio.backups import announce, hold
from pairlearn.studio.endpoint import is_loopback
from pairlearn.studio.items import Items
from pairlearn.studio.project import Project
from pairlearn.studio.server import api, pages
from pairlearn.studio.server.api import FormError
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


def listen(host: str, port: int) -> list[socket.socket]:
    """Listen at a port, on every address that a name has.

    Raises
    ------
    OSError
        If the port is taken, or the host is not of this machine.

    Examples
    --------
    >>> with listen("127.0.0.1", 0)[0] as one:
    ...     listen("127.0.0.1", one.getsockname()[1])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    OSError: port ... of 127.0.0.1 is taken: choose another one with --port
    """
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

    Examples
    --------
    >>> address_of("0.0.0.0", 80), address_of("::1", 8337)
    ('http://127.0.0.1:80', 'http://[::1]:8337')
    """
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


RESERVED_FILES = 192
"""For the answers, which each of 40 threads opens, and images."""


class Connection(H11Protocol):
    """A connection that has to make progress, in both directions.

    A request, from its first byte to the last of its body, takes no longer than
    ``REQUEST_SECONDS``, however its bytes trickle; a reply of which nothing is taken for
    ``REPLY_SECONDS`` ends the connection. With as many connections open as there may be, a new
    one takes the place of the one whose last reply was longest ago, whatever it is doing.
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
    """How many connections there may be, so that files of the project can still be opened.

    Examples
    --------
    >>> most_connections(10)
    10
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return most
    return min(most, files - min(RESERVED_FILES, files // 2))


ANNOTATOR = "/annotate/{annotator:int}"
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


def make_app(
    folder: str | Path,
    *,
    public: bool = False,
    url: str | None = None,
    requests_per_second: float = REQUESTS_PER_SECOND,
) -> Starlette:
    r"""The studio of a project as an ASGI application.

    Parameters
    ----------
    folder : path
        Of the project; its store must be there.
    public : bool, default False
        Whether it is reached from other machines: then it also answers to plain
        addresses and to the name in ``url``, and else to loopback names alone.
    url : str, optional
        The address under which people reach it, such as ``"https://studio.example"``.
        With https, cookies are sent over https only.
    requests_per_second : float
        How often one annotator may ask.

    Raises
    ------
    ProjectError, StoreError
        If the folder holds no project, or its store cannot be opened.
    ValueError
        If ``url`` is no address.

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
    project = Project.load(folder)
    https, names = _address(url)
    items = Items.open(project)
    store = Store.open(project)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            store.close()

    app = GuardedApp(
        Hosts(public=public, names=names), https, routes=_routes(), lifespan=lifespan,
        exception_handlers=dict.fromkeys(_ERRORS, _failed),
    )  # fmt: skip
    app.state.studio = api.Studio(
        project=project,
        store=store,
        items=items,
        sessions=Sessions(store, project.folder, https),
        requests=Buckets(requests_per_second, 3 * requests_per_second),
        failures=Buckets(per_second=1, burst=20),
        outage=api.Outage(),
        ready=set(),
    )
    return app


def serve(
    folder: str | Path,
    host: str = "127.0.0.1",
    port: int = 8337,
    *,
    public: bool = False,
    url: str | None = None,
    log_level: str = "warning",
    requests_per_second: float = REQUESTS_PER_SECOND,
    ready: Callable[[str], object] = lambda address: None,
    invite: Callable[[dict[str, str]], object] | None = None,
) -> None:
    """Serve the studio of a project until it is interrupted.

    In mode "information" it also keeps the project supplied with chosen pairs.

    Parameters
    ----------
    folder : path
        Of the project.
    host, port : str, int
        Where to listen.
    public : bool, default False
        Must be said in order to listen beyond loopback.
    url, requests_per_second
        See `make_app`.
    log_level : str
        Of uvicorn. Requests are logged by ``pairlearn.annotate.access``, without tokens.
    ready : callable
        Called with the address when the port is open.
    invite : callable, optional
        Called then with links for the supervisor and all annotators, by name, that hold as
        long as this server runs, beside those that were given out.

    Raises
    ------
    ValueError
        If ``host`` is not loopback and ``public`` was not said, or the project is being
        served already.
    OSError
        If the port is taken.

    Examples
    --------
    >>> serve("project", host="0.0.0.0")
    Traceback (most recent call last):
    ValueError: host is '0.0.0.0', which other machines can reach: say public=True if that is
    meant
    """
    if not public and not is_loopback(host):
        raise ValueError(
            f"host is {host!r}, which other machines can reach: say public=True if that is meant"
        )
    with ExitStack() as stack:
        lock = stack.enter_context(hold(Project.load(folder).folder))
        app = make_app(folder, public=public, url=url, requests_per_second=requests_per_second)
        studio: api.Studio = app.state.studio
        stack.callback(studio.store.close)
        # A file that cannot be written is told now, and not with the first answer.
        studio.store.carry_out(lambda changes: changes.rows("DELETE FROM setting WHERE 0"))
        sockets = [stack.enter_context(one) for one in listen(host, port)]
        address = (url or address_of(host, port)).rstrip("/")
        announce(lock, address)
        if studio.project.plan.mode == "information":
            from pairlearn.studio.chooser import choosing

            stack.enter_context(choosing(stack.enter_context(Store.open(studio.project))))
        ready(address)
        if invite is not None:
            links = studio.sessions.invite()
            invite({name: f"{address}{path}" for name, path in links.items()})
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


def _routes() -> list[Route | Mount]:
    return [
        Route("/", pages.get_front),
        Route("/a/{token}", pages.get_annotator_link),
        Route("/s/{token}", pages.get_supervisor_link),
        Route(ANNOTATOR, pages.get_annotate),
        Route(f"{ANNOTATOR}/image", api.get_image),
        Route(f"{ANNOTATOR}/api/task", api.get_task),
        Route(f"{ANNOTATOR}/api/ahead", api.get_ahead),
        Route(f"{ANNOTATOR}/api/answer", api.post_answer, methods=["POST"]),
        Route(f"{ANNOTATOR}/api/undo", api.post_undo, methods=["POST"]),
        Route(f"{ANNOTATOR}/api/practice", api.post_practice, methods=["POST"]),
        Route("/supervisor", pages.get_supervisor),
        Route("/api/annotators", pages.post_link, methods=["POST"]),
        Route("/api/annotators/renew", pages.post_renew, methods=["POST"]),
        Route("/api/annotators/end", pages.post_end, methods=["POST"]),
        Mount("/static", StaticFiles(directory=pages.STATIC)),
    ]


def _address(url: str | None) -> tuple[bool, frozenset[str]]:
    """Whether an address is https, and its name."""
    if url is None:
        return False, frozenset()
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"url is {url!r}: give an address such as https://studio.example")
    return parts.scheme == "https", frozenset({parts.hostname})


_ERRORS = (Denied, FormError, StoreError, TooLarge, HTTPException, OSError, Exception)


async def _failed(request: Request, error: Exception) -> Response:
    """What an error becomes: JSON for the scripts of a page, a page for people."""
    studio = api.studio_of(request)
    status, reason = 500, "something went wrong in the studio"
    if isinstance(error, Denied):
        status, reason = error.status, str(error)
        # Nobody guesses 32 random bytes; whoever tries is at least slow. Those with a valid
        # link never get here, whatever others do from the same address.
        caller = request.client.host if request.client else "?"
        guessed = status == 404 or (status == 401 and request.cookies)
        if guessed and not studio.failures.take(caller):
            status, reason = 429, "too many attempts: wait a minute"
    elif isinstance(error, OSError):  # of the store, too
        studio.outage.begins(error)
        # 503 makes the page keep the answer and send it again.
        status, reason = 503, "the studio cannot write to its disk"
    elif isinstance(error, (FormError, StoreError)):
        status, reason = 400, str(error)
    elif isinstance(error, TooLarge):
        status, reason = 413, "the body is too large"
    elif isinstance(error, HTTPException):
        status, reason = error.status_code, "there is nothing here"
    if "/api/" in request.url.path or request.url.path.endswith("/image"):
        return refused(status, reason, retry=2 if status == 429 else None)
    return pages.message(request, status, "Not here", reason[:1].upper() + reason[1:] + ".")
