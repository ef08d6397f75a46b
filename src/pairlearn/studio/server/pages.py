"""The pages of annotators and of the supervisor, their links, and what the latter sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.templating import Jinja2Templates

from pairlearn.annotators.manner import Phrase, in_words
from pairlearn.studio.exchange import answer_lines, exportable, settled
from pairlearn.studio.overview import AnswerColumns, format_number, group_by
from pairlearn.studio.project import translate, translations
from pairlearn.studio.records import Annotator, Answer, StoredAnswer, nearly_agree
from pairlearn.studio.server.api import FormError, Reply, Row, Studio, call, ends_of, studio_of
from pairlearn.studio.server.security import Denied, csrf_token

STATIC, PAGES = (Path(__file__).with_name(name) for name in ("static", "templates"))


def _shared(request: Request) -> dict[str, Any]:
    """What every page has: its project's language, and where the project is served."""
    studio: Studio | None = getattr(request.app.state, "studio", None)
    language = studio.project.language if studio else "en"
    return {
        "root": request.scope.get("root_path", ""),
        "language": language,
        "words": translations(language),
        "t": studio.project.words if studio else partial(translate, language),
    }


TEMPLATES = Jinja2Templates(PAGES, context_processors=[_shared])  # escapes HTML by itself


async def get_front(request: Request) -> Response:
    """Nothing is here without a link."""
    words = "Open your own link", "Whoever runs this studio has one for you."
    return message(request, 200, *words)


async def get_link(request: Request, role: str) -> Response:
    """Turn the token of a link into a cookie, and leave the address that holds it.

    A visit from elsewhere gets a page that goes on: no Strict cookie is sent with its redirect.
    """
    token = request.path_params["token"]
    studio = studio_of(request)
    who = studio.sessions.known(role, token)
    if who is None:
        raise Denied(404, "This link is not valid, or not any more: ask for a new one")
    root = request.scope.get("root_path", "")
    home = target = f"{root}/annotate/{who.id}"
    if role == "supervisor":
        home, target = f"{root}/", f"{root}/supervisor"
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
    who, token = studio.sessions.identify(request, "annotator")
    context = vars(studio.project) | {
        "csrf": csrf_token(token),
        "annotator": who,
        "tutorial": studio.project.answers == "exact" and not studio.project.known_for("practice"),
        "slot": f"{studio.sessions.project}-{who.id}",
        "examples": [
            (*ends_of(studio, one).values(), studio.project.level_words(one.answer), one.why)
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


MOST_DOTS = 2000
MOST_DISPUTED = 6
TEMPLATES.env.filters["figure"] = format_number


class Dot(NamedTuple):
    """One answer in the (c, s) plane, in units of a percent, s upwards from 0."""

    x: float
    y: float
    who: int
    fits: bool


async def get_supervisor(request: Request) -> Response:
    """The page."""
    studio = studio_of(request)
    _, token = studio.sessions.identify(request, "supervisor")
    context = await run_in_threadpool(_context, studio)
    return TEMPLATES.TemplateResponse(
        request, "supervisor.html", context | {"csrf": csrf_token(token)}
    )


@call("/api/status")
def get_status(studio: Studio, _: Annotator, __: Request) -> Reply:
    """How far the project is, how everybody works, and the forecast."""
    found = _context(studio)
    names = ("title", "answers_kept", "judged", "pairs", "forecast")
    people = [asdict(row) for row in found["rows"]]
    status = {name: found[name] for name in names} | {"annotators": people}
    status["forecast"] = status["forecast"] or {"needs": "not computed yet"}
    return Response(msgspec.json.encode(status), media_type="application/json")  # NaN is null


@call("/api/export", media="application/x-ndjson")
def get_export(studio: Studio, _: Annotator, __: Request) -> Reply:
    """Every answer as a line of JSON; those that the supervisor overruled are marked."""
    answers = exportable(studio.store)
    lines = answer_lines(answers, studio.project.answers, studio.store.adjudicator)
    return StreamingResponse(lines, media_type="application/x-ndjson")


class NameForm(msgspec.Struct, forbid_unknown_fields=True):
    """The name of somebody new."""

    name: str


class AnnotatorForm(msgspec.Struct, forbid_unknown_fields=True):
    """One of those who take part, by number."""

    annotator: Row


class SettleForm(msgspec.Struct, forbid_unknown_fields=True):
    """The supervisor's answer to a pair, in words."""

    pair: Row
    level: str


@call("/api/annotators", NameForm)
def post_link(studio: Studio, _: Annotator, form: NameForm) -> Reply:
    """Add an annotator; their link is told this once."""
    who, token = studio.store.add_annotator(form.name.strip())
    return {"name": who.name, "path": f"/a/{token}"}


@call("/api/annotators/renew", AnnotatorForm)
def post_renew(studio: Studio, _: Annotator, form: AnnotatorForm) -> Reply:
    """A new link for an annotator; the old one ends."""
    who = _chosen(studio, form)
    return {"name": who.name, "path": f"/a/{studio.store.renew_token(who.id)}"}


@call("/api/annotators/end", AnnotatorForm, completes=True)
def post_end(studio: Studio, _: Annotator, form: AnnotatorForm) -> Reply:
    """End an annotator's part; their answers stay."""
    who = _chosen(studio, form)
    studio.store.retire(who.id)
    return {"ended": who.id}


def _chosen(studio: Studio, form: AnnotatorForm) -> Annotator:
    """One who takes part, by the number that the supervisor sent."""
    for one in studio.store.annotators():
        if one.active and one.id == form.annotator:
            return one
    raise HTTPException(404)


@call("/api/settle", SettleForm, completes=True)
def post_settle(studio: Studio, _: Annotator, form: SettleForm) -> Reply:
    """Keep the supervisor's answer to a pair, which stands in exports in place of all others."""
    if form.level not in studio.project.levels:
        raise FormError("level must be one of the answers of the page")
    s, c = studio.project.levels[form.level]
    studio.store.adjudicate(form.pair, Answer(s, c, level=form.level))
    return {"settled": form.pair}


def dots(answers: list[StoredAnswer], numbers: dict[str, int]) -> list[Dot]:
    """The latest answers that gave both s and c, as points of the plane."""
    columns = AnswerColumns(answers)
    points = np.round(100 * np.stack([columns.difference, columns.similarity], 1), 1).tolist()
    found = zip(answers, points, columns.both, columns.infeasible_rows.tolist(), strict=True)
    return [
        Dot(x, y, numbers.get(one.annotator, 0), not misfit)
        for one, (x, y), both, misfit in found
        if both
    ][-MOST_DOTS:]


def disputes(answers: Sequence[StoredAnswer]) -> list[list[StoredAnswer]]:
    """The answers of each pair with two more than one degree apart, the worst pair first."""
    by_pair = group_by([one for one in answers if None not in one.numbers], "pair")

    def spread(said: Sequence[StoredAnswer]) -> Any:
        return np.ptp([one.numbers for one in said], axis=0).sum()  # type: ignore[arg-type]

    apart = [
        said
        for said in by_pair.values()
        if any(not nearly_agree(one.numbers, two.numbers) for one, two in combinations(said, 2))
    ]
    return sorted(apart, key=spread, reverse=True)


def _words(studio: Studio, one: StoredAnswer) -> str:
    """An answer as the supervisor reads it."""
    if one.level:
        return studio.project.level_words(one.level)
    return f"s = {one.similarity:.0%}, c = {one.difference:+.0%}".replace("-", "−")


def _sentence(studio: Studio, phrases: Sequence[Phrase]) -> str:
    """How somebody answers, in the language of the page."""
    words = studio.project.words
    return "; ".join(
        words(text, **(values | ({"share": words(values["share"])} if "share" in values else {})))
        for text, values in phrases
    )


def _context(studio: Studio) -> dict[str, Any]:
    """What the page shows; pages ask every few seconds, and mostly nothing has changed."""
    latest = studio.store.latest()
    forecast = dict(studio.forecast.refresh(latest))
    kept = studio.shown.get("page")
    if kept is None or kept[:2] != (latest, forecast):
        kept = studio.shown["page"] = latest, forecast, _shown(studio, forecast)
    return kept[2]


def _shown(studio: Studio, forecast: dict[str, Any]) -> dict[str, Any]:
    store, project = studio.store, studio.project
    answers = store.answers()
    manners = forecast.get("manners", {})
    rows = [
        replace(row, words=in_words(phrases) or "–", doubt=doubt)
        for row in store.overview(manners=False)
        for phrases, doubt in [manners.get(row.annotator.name, ([], False))]
    ]
    numbers = {row.annotator.name: row.annotator.id for row in rows}
    planned = {pair.id for pair in store.pairs() if pair.origin != "import"}
    drawn = [one for one in answers if one.right and one.pair not in store.mixed_in]
    heard = [one for one in drawn if one.annotator not in forecast.get("flagged", ())]
    open_disputes = disputes(settled(heard, store.adjudicator))
    return vars(project) | {
        "rows": rows,
        "quality": store.quality(),
        "dots": dots(answers, numbers),
        "answers_kept": len(answers),
        "judged": len(planned.intersection(one.pair for one in drawn)),
        "pairs": len(planned),
        "taking_part": sum(row.annotator.active for row in rows),
        "by_information": project.plan.mode == "information",
        "notes": [one for one in answers if one.note][-20:][::-1],
        "forecast": forecast,
        "manners": {name: _sentence(studio, phrases) for name, (phrases, _) in manners.items()},
        "disputed": len(open_disputes),
        "disputes": [
            {
                "pair": said[0].pair,
                "answers": [(one.annotator, _words(studio, one)) for one in said],
            }
            | ends_of(studio, said[0])
            for said in open_disputes[:MOST_DISPUTED]
        ],
        "level_words": [(level, project.level_words(level)) for level in project.levels],
    }
