"""The pages, and the links that lead to them.

The supervisor's page: how everybody works, what they say, and links for more of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.templating import Jinja2Templates

from pairlearn.labels import PairLabels
from pairlearn.studio.agreement import AnnotatorOverview
from pairlearn.studio.records import StoredAnswer
from pairlearn.studio.server.api import (
    FormError,
    Studio,
    read_form,
    read_name,
    read_number,
    studio_of,
)
from pairlearn.studio.server.security import Denied, csrf_token, refused

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


MOST_DOTS = 2000
DOUBTFUL_SHARE = 0.2
DOUBTFUL_Z = 3.0


@dataclass(frozen=True)
class Dot:
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
        request, "supervisor.html", context | {"csrf": csrf_token(token)}
    )


async def post_link(request: Request) -> Response:
    """Add an annotator; their link is told this once."""
    studio = studio_of(request)
    studio.sessions.change(request, "supervisor")
    name = read_name(read_form(await request.body()))
    who, token = await run_in_threadpool(studio.store.add_annotator, name)
    return JSONResponse({"name": who.name, "path": f"/a/{token}"})


async def post_renew(request: Request) -> Response:
    """A new link for an annotator; the old one ends."""
    studio = studio_of(request)
    studio.sessions.change(request, "supervisor")
    number = _annotator(read_form(await request.body()))
    known = {one.id: one for one in studio.store.annotators() if one.active}
    if number not in known:
        return refused(404, "no such annotator takes part")
    token = await run_in_threadpool(studio.store.renew_token, number)
    return JSONResponse({"name": known[number].name, "path": f"/a/{token}"})


async def post_end(request: Request) -> Response:
    """End an annotator's part; their answers stay."""
    studio = studio_of(request)
    studio.sessions.change(request, "supervisor")
    number = _annotator(read_form(await request.body()))
    if number not in {one.id for one in studio.store.annotators() if one.active}:
        return refused(404, "no such annotator takes part")
    await run_in_threadpool(studio.store.retire, number)
    return JSONResponse({"ended": number})


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


def _annotator(form: dict[str, Any]) -> int:
    if set(form) != {"annotator"}:
        raise FormError("the body must name an annotator and nothing else")
    return read_number(form, "annotator")


def _context(studio: Studio) -> dict[str, Any]:
    rows = studio.store.overview()
    answers = studio.store.answers()
    numbers = {row.annotator.name: row.annotator.id for row in rows}
    project = studio.project
    return {
        "title": project.title,
        "rows": [_row(row) for row in rows],
        "dots": dots(answers, numbers),
        "answers": len(answers),
        "judged": len({one.pair for one in answers}),
        "pairs": sum(pair.origin != "import" for pair in studio.store.pairs()),
        "taking_part": sum(row.annotator.active for row in rows),
        "overlap": project.overlap,
        "by_information": project.plan.mode == "information",
        "notes": [one for one in answers if one.note][-20:][::-1],
        "positive_name": project.positive_name,
    }


def _row(row: AnnotatorOverview) -> dict[str, Any]:
    agreement, drift = row.agreement, row.drift
    return {
        "id": row.annotator.id,
        "name": row.annotator.name,
        "active": row.annotator.active,
        "note": row.annotator.note.replace("retired", "ended"),  # the button says End
        "done": row.done,
        "total": row.total,
        "share": round(100 * row.done / row.total) if row.total else 0,
        "pace": _number(row.per_hour, 0),
        "seconds": _number(row.median_seconds, 1),
        "cant_say": row.cant_say,
        "infeasible": _percent(row.infeasible),
        "infeasible_doubt": row.infeasible > DOUBTFUL_SHARE,
        "leaning": _number(100 * row.leaning, 0, signed=True),
        "leaning_doubt": abs(row.leaning_z) > DOUBTFUL_Z,
        "comparisons": agreement.comparisons,
        "similarity_gap": _number(100 * agreement.similarity_gap, 0),
        "difference_gap": _number(100 * agreement.difference_gap, 0),
        "correlation": _number(agreement.similarity_correlation, 2),
        "same_sign": _percent(agreement.same_sign),
        "drift": _number(100 * drift.similarity, 0, signed=True),
        "drift_doubt": max(abs(drift.similarity_z), abs(drift.strength_z)) > DOUBTFUL_Z,
        "slower": _number(drift.seconds, 2),
    }


def _number(value: float, digits: int, *, signed: bool = False) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:{'+' if signed else ''}.{digits}f}".replace("-", "−")


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.0f}%"
