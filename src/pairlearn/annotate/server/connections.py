"""Sockets: where the studio listens, and how long and how many callers may keep it waiting."""

from __future__ import annotations

import asyncio
import errno
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection", "address_of", "listen"]


class Connection(H11Protocol):
    """A connection whose requests have to arrive in time.

    A request, from its first byte to the last of its body, takes no longer than
    ``REQUEST_SECONDS``, however its bytes trickle. With ``MOST`` connections open, a new one
    takes the place of the one that has kept the studio waiting longest.
    """

    REQUEST_SECONDS = 10.0
    MOST = 500
    """Few enough for the 1,024 files that a process may have open on most systems."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection, if need be in place of another one."""
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > self.MOST:
            ends = {
                one: timer.when()
                for one in self.connections
                if isinstance(one, Connection)
                and (timer := one._deadline or one.timeout_keep_alive_task) is not None
            }
            last = min(ends, key=ends.__getitem__)  # at worst this very one
            self.connections.discard(last)
            last.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on; the time that a request has does not begin anew."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline with the connection."""
        self._stop_watching()
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
    sockets: list[socket.socket] = []
    refusal: OSError | None = None
    for family, address in dict.fromkeys((one[0], one[4]) for one in found):
        try:
            sockets.append(socket.create_server(address, family=family, backlog=2048))
        except OSError as error:
            refusal = error
            if error.errno == errno.EADDRINUSE:
                break
    if refusal is None or (sockets and refusal.errno != errno.EADDRINUSE):
        return sockets  # a name may have an IPv6 address that the machine has not
    for one in sockets:
        one.close()
    if refusal.errno == errno.EADDRINUSE:
        raise OSError(f"port {port} of {host} is taken: choose another one with --port")
    raise OSError(f"cannot listen at port {port} of {host}: {refusal.strerror}")


def address_of(host: str, port: int) -> str:
    """The address that a browser on this machine opens.

    Examples
    --------
    >>> address_of("0.0.0.0", 80), address_of("::1", 8337)
    ('http://127.0.0.1:80', 'http://[::1]:8337')
    """
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
