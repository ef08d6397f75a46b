"""Check the addresses of endpoints, of webhooks, and of the studio itself."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit


def is_loopback(host: str) -> bool:
    """Whether a host name or address is that of this machine only.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "")]
    [True, True, True, False, False]
    """
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_url(text: str) -> SplitResult | None:
    """Parse an http or https address; None if it is not one.

    >>> http_url("https://studio.example/pumps").hostname, http_url("studio.example")
    ('studio.example', None)
    """
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return None
    plain = text.isascii() and all(character > " " for character in text)
    usable = plain and url.scheme in ("http", "https") and url.hostname and port != 0
    return url if usable else None
