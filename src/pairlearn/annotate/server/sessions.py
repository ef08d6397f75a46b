"""Who is asking: the links that people get, and the cookies that these turn into.

An annotator's pages and requests lie under ``/annotate/NUMBER``, and so does their cookie:
two people may work in two tabs of one browser, and each tab keeps its person.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from pairlearn.annotate.records import Annotator
from pairlearn.annotate.server.security import csrf_token, same_secret
from pairlearn.annotate.store import Store

__all__ = ["FORM_HEADER", "Denied", "Sessions"]

FORM_HEADER = "x-studio-form"
LASTS_SECONDS = 30 * 24 * 3600
LONGEST_TOKEN = 128


class Denied(Exception):
    """The request comes from nobody who may do this.

    Examples
    --------
    >>> Denied(401, "open your link").status
    401
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Sessions:
    """Tell annotators and the supervisor by their cookies.

    The cookie holds the token of the link, out of reach of scripts and sent by the
    studio's own pages only. Every request looks it up, so that a link which was taken
    back ends at once. The cookie's name holds a digest of the project, because a browser
    sends the cookies of one port to all ports of the machine.

    Parameters
    ----------
    store : Store
    folder : Path
        Of the project.
    https : bool
        Whether people reach the studio over https.
    """

    store: Store
    folder: Path
    https: bool = False

    @cached_property
    def digest(self) -> str:
        """Of the folder, and of when the project was made in it."""
        text = f"{self.folder.resolve()} {self.store.created_at()}"
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def cookie(self, role: str) -> str:
        """Name of the cookie of a role."""
        return f"pairlearn_{role}_{self.digest}"

    def admit(self, reply: Response, role: str, token: str, path: str) -> Response:
        """Have a reply start the session of a token, for what lies under a path."""
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
        """Whose token this is in that role, if anybody's."""
        if not token or len(token) > LONGEST_TOKEN or not token.isascii():
            return None
        if role == "annotator":
            return self.store.by_token(token)
        return Annotator(0, "supervisor") if self.store.is_supervisor(token) else None

    def read(self, request: Request, role: str) -> tuple[Annotator, str]:
        """Who reads, and their token."""
        token = request.cookies.get(self.cookie(role), "")
        who = self.known(role, token)
        if who is None or who.id != request.path_params.get("annotator", 0):
            raise Denied(401, "this session has ended: open your link again")
        return who, token

    def change(self, request: Request, role: str) -> tuple[Annotator, str]:
        """Who changes something; their page knows the form token of the session."""
        who, token = self.read(request, role)
        given = request.headers.getlist(FORM_HEADER)
        if len(given) != 1 or not same_secret(given[0], csrf_token(token)):
            raise Denied(403, "this page is of an earlier session: reload it")
        return who, token
