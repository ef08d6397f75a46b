"""Sockets to listen at, and connections that have to make progress."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import sys

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def listen(host: str, port: int) -> list[socket.socket]:
    """Listen at a port, on every address that a name has.

    Raises OSError if the port is taken or the host is not of this machine.
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
    """How many connections there may be, so that files of the project can still be opened."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return most
    return min(most, files - min(RESERVED_FILES, files // 2))
