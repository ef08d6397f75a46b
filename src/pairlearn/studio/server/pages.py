"""The page of annotators, and the links that lead to it and to the supervisor's."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.templating import Jinja2Templates

from pairlearn.studio.server.api import Studio, studio_of, view_of
from pairlearn.studio.server.security import Denied, csrf_token
from pairlearn.studio.words import translate, words_of

STATIC = Path(__file__).parent / "static"


def _shared(request: Request) -> dict[str, Any]:
    """What every page has: its project's language, and where the project is served."""
    studio: Studio | None = getattr(request.app.state, "studio", None)
    language = studio.project.language if studio else "en"
    return {
        "root": request.scope.get("root_path", ""),
        "language": language,
        "words": words_of(language),
        "t": studio.project.words if studio else partial(translate, language),
    }


TEMPLATES = Jinja2Templates(
    Path(__file__).parent / "templates", context_processors=[_shared]
)  # escapes HTML by itself


async def get_front(request: Request) -> Response:
    """Nothing is here without a link."""
    words = "Open your own link", "Whoever runs this studio has one for you."
    return message(request, 200, *words)


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
    root = request.scope.get("root_path", "")
    home = f"{root}/annotate/{who.id}" if role == "annotator" else f"{root}/"
    target = home if role == "annotator" else f"{root}/supervisor"
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
    context = vars(studio.project) | {
        "csrf": csrf_token(token),
        "annotator": who,
        "tutorial": studio.project.answers == "exact" and not studio.project.known_for("practice"),
        "slot": f"{studio.sessions.project}-{who.id}",
        "examples": [
            (
                view_of(studio, one.left),
                view_of(studio, one.right),
                studio.project.level_words(one.answer),
                one.why,
            )
            for one in studio.project.known_for("example")
        ],
    }
    return TEMPLATES.TemplateResponse(request, "annotate.html", context)


def message(request: Request, status: int, heading: str, text: str) -> Response:
    """A page that says one thing."""
    words = _shared(request)["words"]
    heading = words.get(heading, heading)
    context = {"title": heading, "heading": heading, "text": words.get(text, text)}
    return TEMPLATES.TemplateResponse(request, "message.html", context, status)
