"""One HTTP request: sent, timed, read up to a size.

``http.client`` and not ``urllib``, because it follows no redirects: a key must not travel
to an address that nobody named.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from pairlearn.annotate.models.address import Address
from pairlearn.annotate.models.errors import ModelError

__all__ = ["HttpReply", "post", "retry_after"]

LARGEST_REPLY = 4 * 2**20
"""Bytes; an answer of a few tokens has some thousand."""


@dataclass(frozen=True)
class HttpReply:
    """What came back.

    Attributes
    ----------
    status : int
    retry_after : str or None
        The header of that name.
    body : bytes

    Examples
    --------
    >>> HttpReply(200, None, b"{}").status
    200
    """

    status: int
    retry_after: str | None
    body: bytes


def post(address: Address, body: dict[str, Any], key: str | None, timeout: float) -> HttpReply:
    """Send JSON and read the reply.

    Raises
    ------
    OSError, http.client.HTTPException
        No connection, no reply in time, or none that is HTTP.
    ModelError
        The certificate is not trusted, or the reply is too large.

    Examples
    --------
    >>> post(Address.of("http://127.0.0.1:9/v1"), {}, None, 1.0)
    Traceback (most recent call last):
    ConnectionRefusedError: [Errno 111] Connection refused
    """
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    deadline = time.monotonic() + timeout
    connection = _connection(address, timeout)
    try:
        payload = json.dumps(body).encode("ascii")
        connection.request("POST", address.path, payload, headers)
        # The reply may own the socket by now, which closing the connection would leave open.
        with connection.getresponse() as reply:
            data = _read(reply, deadline)
            return HttpReply(reply.status, reply.getheader("Retry-After"), data)
    except ssl.SSLCertVerificationError as error:
        raise ModelError(
            f"the certificate of {address.host} is not trusted: {error.verify_message}"
        ) from None
    finally:
        connection.close()


def _connection(address: Address, timeout: float) -> http.client.HTTPConnection:
    if address.scheme == "https":
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=timeout, context=ssl.create_default_context()
        )
    return http.client.HTTPConnection(address.host, address.port, timeout=timeout)


def _read(reply: http.client.HTTPResponse, deadline: float) -> bytes:
    """The body, unless it is too large or drips in for too long."""
    data = b""
    while part := reply.read1(65536):
        data += part
        if len(data) > LARGEST_REPLY:
            raise ModelError(f"the reply has more than {LARGEST_REPLY:,} bytes: no chat endpoint")
        if time.monotonic() > deadline:
            raise TimeoutError("timed out")
    if reply.length:
        raise http.client.IncompleteRead(data, reply.length)
    return data


def retry_after(header: str | None) -> float | None:
    """Seconds that a ``Retry-After`` header asks for: a number, or a date.

    Examples
    --------
    >>> retry_after("2.5"), retry_after("Thu, 01 Jan 1970 00:00:00 GMT"), retry_after("soon")
    (2.5, 0.0, None)
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    # NaN compares false with everything, and is dropped here.
    return max(seconds, 0.0) if seconds < float("inf") else None
