"""Where an endpoint is, and whether it may be spoken to."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from pairlearn.annotate.models.errors import ModelError

__all__ = ["Address"]


@dataclass(frozen=True)
class Address:
    """Scheme, host, port and path of an endpoint.

    Examples
    --------
    >>> Address.of("https://api.example.com/v1/").url
    'https://api.example.com/v1/chat/completions'
    >>> Address.of("http://127.0.0.1:8000/v1").port
    8000
    >>> Address.of("http://models.example.com/v1")
    Traceback (most recent call last):
    pairlearn.annotate.models.errors.ModelError: http://models.example.com/v1 is plain http
    beyond this machine, where items and the key can be read on the way: use https, or
    --plain-http if the network is yours
    """

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, base_url: str, *, plain_http: bool = False) -> Address:
        """Read a base URL, to which ``/chat/completions`` is added.

        Parameters
        ----------
        base_url : str
            https, or http to this machine.
        plain_http : bool
            Admit http to other machines.
        """
        try:
            parts = urlsplit(base_url)
            port = parts.port
        except ValueError as error:
            raise ModelError(f"{base_url!r} is no URL: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ModelError(
                f"{base_url!r} must be an http or https URL such as http://127.0.0.1:8000/v1"
            )
        if parts.username is not None or parts.password is not None:
            raise ModelError("the URL holds a user or a password: name a variable by --key-env")
        if parts.query or parts.fragment:
            raise ModelError(f"{base_url!r} must end with its path, without ? and #")
        if not base_url.isascii() or any(character <= " " for character in base_url):
            raise ModelError(f"{base_url!r} must be plain ASCII without spaces")
        if parts.scheme == "http" and not plain_http and not _is_this_machine(parts.hostname):
            raise ModelError(
                f"{base_url} is plain http beyond this machine, where items and the key can be "
                "read on the way: use https, or --plain-http if the network is yours"
            )
        path = parts.path.rstrip("/") + "/chat/completions"
        number = port if port is not None else 443 if parts.scheme == "https" else 80
        return cls(parts.scheme, parts.hostname, number, path)

    @property
    def url(self) -> str:
        """The whole of it, without a port that goes without saying."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return f"{self.scheme}://{host}{'' if usual else f':{self.port}'}{self.path}"


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
