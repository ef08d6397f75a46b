"""The pages, and the links that lead to them."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.templating import Jinja2Templates

from pairlearn.annotate.server.api import studio_of
from pairlearn.annotate.server.security import csrf_token
from pairlearn.annotate.server.sessions import Denied

__all__ = [
    "STATIC",
    "TEMPLATES",
    "get_annotate",
    "get_annotator_link",
    "get_front",
    "get_supervisor_link",
    "message",
]

STATIC = Path(__file__).parent / "static"
TEMPLATES = Jinja2Templates(Path(__file__).parent / "templates")  # escapes HTML by itself


async def get_front(request: Request) -> Response:
    """Nothing is here without a link."""
    return message(request, 200, "Open your own link", "Whoever runs this studio has one for you.")


async def get_annotator_link(request: Request) -> Response:
    """An annotator opens their link."""
    return _enter(request, "annotator")


async def get_supervisor_link(request: Request) -> Response:
    """The supervisor opens theirs."""
    return _enter(request, "supervisor")


def _enter(request: Request, role: str) -> Response:
    """Turn the token of a link into a cookie, and leave the address that holds it.

    A visit from elsewhere gets a page that goes on by itself: browsers send a Strict
    cookie with no redirect that began on another site.
    """
    token = request.path_params["token"]
    studio = studio_of(request)
    who = studio.sessions.known(role, token)
    if who is None:
        raise Denied(404, "This link is not valid, or not any more: ask for a new one")
    home = f"/annotate/{who.id}" if role == "annotator" else "/"
    target = home if role == "annotator" else "/supervisor"
    here = request.headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    reply: Response
    if here:
        reply = RedirectResponse(target, 303)
    else:
        context = {"title": studio.project.title, "target": target}
        reply = TEMPLATES.TemplateResponse(request, "enter.html", context)
    return studio.sessions.admit(reply, role, token, home)


async def get_annotate(request: Request) -> Response:
    """The annotator's page."""
    studio = studio_of(request)
    who, token = studio.sessions.read(request, "annotator")
    project = studio.project
    context = {
        "csrf": csrf_token(token),
        "annotator": who,
        "slot": f"{studio.sessions.digest}-{who.id}",
        "title": project.title,
        "positive_name": project.positive_name,
        "negative_name": project.negative_name,
        "question_similarity": project.question_similarity,
        "question_difference": project.question_difference,
        "help": project.help,
    }
    return TEMPLATES.TemplateResponse(request, "annotate.html", context)


def message(request: Request, status: int, heading: str, text: str) -> Response:
    """A page that says one thing."""
    context = {"title": heading, "heading": heading, "text": text}
    return TEMPLATES.TemplateResponse(request, "message.html", context, status)
