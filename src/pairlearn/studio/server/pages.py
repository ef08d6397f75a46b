"""The pages of annotators and of the supervisor, and the links that lead to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.templating import Jinja2Templates

from pairlearn.labels import PairLabels
from pairlearn.studio.overview import figure
from pairlearn.studio.quality import quality_of
from pairlearn.studio.records import Annotator, StoredAnswer
from pairlearn.studio.server.api import Form, Row, Studio, read_form, studio_of, view_of
from pairlearn.studio.server.security import Denied, csrf_token
from pairlearn.studio.words import words_of

STATIC = Path(__file__).parent / "static"
TEMPLATES = Jinja2Templates(Path(__file__).parent / "templates")  # escapes HTML by itself
TEMPLATES.env.filters["figure"] = figure


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
    context = vars(studio.project) | {
        "csrf": csrf_token(token),
        "annotator": who,
        "t": studio.project.words,
        "words": words_of(studio.project.language),
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
    context = {"title": heading, "heading": heading, "text": text}
    return TEMPLATES.TemplateResponse(request, "message.html", context, status)


MOST_DOTS = 2000


class Dot(NamedTuple):
    """One answer in the (c, s) plane, in units of a percent, s upwards from 0."""

    x: float
    y: float
    who: int
    fits: bool


async def get_supervisor(request: Request) -> Response:
    """The page."""
    studio = studio_of(request)
    _, token = studio.sessions.read(request, "supervisor")
    context = await run_in_threadpool(_context, studio)
    return TEMPLATES.TemplateResponse(
        request, "supervisor.html", context | {"csrf": csrf_token(token), "language": "en"}
    )


class NameForm(msgspec.Struct, forbid_unknown_fields=True):
    """The name of somebody new."""

    name: str


class AnnotatorForm(msgspec.Struct, forbid_unknown_fields=True):
    """One of those who take part, by number."""

    annotator: Row


async def _sent(request: Request, form: type[Form]) -> tuple[Studio, Form]:
    """What the supervisor sent."""
    studio = studio_of(request)
    studio.sessions.change(request, "supervisor")
    return studio, read_form(await request.body(), form)


async def post_link(request: Request) -> Response:
    """Add an annotator; their link is told this once."""
    studio, form = await _sent(request, NameForm)
    who, token = await run_in_threadpool(studio.store.add_annotator, form.name.strip())
    return JSONResponse({"name": who.name, "path": f"/a/{token}"})


async def post_renew(request: Request) -> Response:
    """A new link for an annotator; the old one ends."""
    studio, who = await _chosen(request)
    token = await run_in_threadpool(studio.store.renew_token, who.id)
    return JSONResponse({"name": who.name, "path": f"/a/{token}"})


async def post_end(request: Request) -> Response:
    """End an annotator's part; their answers stay."""
    studio, who = await _chosen(request)
    await run_in_threadpool(studio.store.retire, who.id)
    return JSONResponse({"ended": who.id})


async def _chosen(request: Request) -> tuple[Studio, Annotator]:
    """One who takes part, by the number that the supervisor sent."""
    studio, form = await _sent(request, AnnotatorForm)
    for one in studio.store.annotators():
        if one.active and one.id == form.annotator:
            return studio, one
    raise HTTPException(404)


def dots(answers: list[StoredAnswer], numbers: dict[str, int]) -> list[Dot]:
    """The latest answers that gave both s and c, as points of the plane.

    Parameters
    ----------
    answers : list of StoredAnswer
        In the order of being given.
    numbers : dict of str to int
        The number of each annotator, by name.

    Examples
    --------
    >>> row = StoredAnswer(1, "ann", 7, "a", "b", 0.9, 0.5, 0, False, "", 4.0, "", 1)
    >>> dots([row], {"ann": 3})
    [Dot(x=50.0, y=90.0, who=3, fits=False)]
    """
    given = [
        (one.annotator, one.similarity, one.difference)
        for one in answers
        if one.similarity is not None and one.difference is not None
    ][-MOST_DOTS:]
    if not given:
        return []
    names, s, c = zip(*given, strict=True)
    fits = PairLabels(list(s), list(c)).feasible().tolist()
    return [
        Dot(round(100 * x, 1), round(100 * y, 1), numbers.get(name, 0), fit)
        for name, y, x, fit in zip(names, s, c, fits, strict=True)
    ]


def _context(studio: Studio) -> dict[str, Any]:
    rows = studio.store.overview()
    answers = studio.store.answers()
    quality = quality_of(answers, studio.store.known, studio.project.levels, studio.store.repeats)
    numbers = {row.annotator.name: row.annotator.id for row in rows}
    project = studio.project
    return vars(project) | {
        "rows": rows,
        "quality": quality,
        "dots": dots(answers, numbers),
        "answers": len(answers),
        "judged": len({one.pair for one in answers if one.right} - studio.store.mixed_in),
        "pairs": sum(pair.origin != "import" for pair in studio.store.pairs()),
        "taking_part": sum(row.annotator.active for row in rows),
        "by_information": project.plan.mode == "information",
        "notes": [one for one in answers if one.note][-20:][::-1],
    }
