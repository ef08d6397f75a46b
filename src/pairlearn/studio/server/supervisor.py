"""The supervisor's page: who works how, when to stop, and which pairs are disputed."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import msgspec
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from pairlearn.annotators import scale_of
from pairlearn.annotators.manner import Phrase, in_words
from pairlearn.studio.export import answer_lines, exportable, settled
from pairlearn.studio.known import near
from pairlearn.studio.overview import figure
from pairlearn.studio.records import Annotator, Answer, AnswerColumns, StoredAnswer
from pairlearn.studio.server.api import (
    Form,
    FormError,
    Row,
    Studio,
    read_form,
    studio_of,
    tell_completion,
    view_of,
)
from pairlearn.studio.server.pages import TEMPLATES
from pairlearn.studio.server.security import csrf_token

MOST_DOTS = 2000
MOST_DISPUTED = 6
TEMPLATES.env.filters["figure"] = figure


class Dot(NamedTuple):
    """One answer in the (c, s) plane, in units of a percent, s upwards from 0."""

    x: float
    y: float
    who: int
    fits: bool


class Dispute(NamedTuple):
    """A pair that people answered differently."""

    pair: int
    left: dict[str, Any]
    right: dict[str, Any]
    answers: list[tuple[str, str]]


async def get_supervisor(request: Request) -> Response:
    """The page."""
    studio = studio_of(request)
    _, token = studio.sessions.read(request, "supervisor")
    context = await run_in_threadpool(_context, studio)
    return TEMPLATES.TemplateResponse(
        request, "supervisor.html", context | {"csrf": csrf_token(token)}
    )


async def get_status(request: Request) -> Response:
    """How far the project is, how everybody works, and the forecast."""
    studio = studio_of(request)
    studio.sessions.read(request, "supervisor")
    found = await run_in_threadpool(_context, studio)
    names = ("title", "answers_kept", "judged", "pairs", "forecast")
    people = [asdict(row) for row in found["rows"]]
    status = {name: found[name] for name in names} | {"annotators": people}
    return Response(msgspec.json.encode(status), media_type="application/json")  # NaN is null


async def get_export(request: Request) -> Response:
    """Every answer as a line of JSON; those that the supervisor overruled are marked."""
    studio = studio_of(request)
    studio.sessions.read(request, "supervisor")
    answers = await run_in_threadpool(exportable, studio.store)
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


async def _sent(request: Request, form: type[Form]) -> tuple[Studio, Form]:
    """What the supervisor sent."""
    studio = studio_of(request)
    studio.sessions.change(request, "supervisor")
    return studio, read_form(await request.body(), form)


async def post_link(request: Request) -> Response:
    """Add an annotator; their link is told this once."""
    studio, form = await _sent(request, NameForm)
    who, token = await run_in_threadpool(studio.store.add_annotator, form.name.strip())
    return _link(request, who, token)


async def post_renew(request: Request) -> Response:
    """A new link for an annotator; the old one ends."""
    studio, who = await _chosen(request)
    return _link(request, who, await run_in_threadpool(studio.store.renew_token, who.id))


def _link(request: Request, who: Annotator, token: str) -> Response:
    root = request.scope.get("root_path", "")
    return JSONResponse({"name": who.name, "path": f"{root}/a/{token}"})


async def post_end(request: Request) -> Response:
    """End an annotator's part; their answers stay."""
    studio, who = await _chosen(request)
    await run_in_threadpool(studio.store.retire, who.id)
    return JSONResponse({"ended": who.id}, background=BackgroundTask(tell_completion, studio))


async def _chosen(request: Request) -> tuple[Studio, Annotator]:
    """One who takes part, by the number that the supervisor sent."""
    studio, form = await _sent(request, AnnotatorForm)
    for one in studio.store.annotators():
        if one.active and one.id == form.annotator:
            return studio, one
    raise HTTPException(404)


async def post_settle(request: Request) -> Response:
    """Keep the supervisor's answer to a pair, which stands in exports in place of all others."""
    studio, form = await _sent(request, SettleForm)
    if form.level not in studio.project.levels:
        raise FormError("level must be one of the answers of the page")
    s, c = studio.project.levels[form.level]
    answer = Answer(s, c, key=secrets.token_hex(8), level=form.level)
    await run_in_threadpool(studio.store.adjudicate, form.pair, answer)
    return JSONResponse({"settled": form.pair}, background=BackgroundTask(tell_completion, studio))


def dots(answers: list[StoredAnswer], numbers: dict[str, int]) -> list[Dot]:
    """The latest answers that gave both s and c, as points of the plane."""
    columns = AnswerColumns(answers)
    s, c = columns.similarity, columns.difference
    fits = s + c == s + c  # both are given
    for name in set(columns.annotator.tolist()):
        theirs = columns.annotator == name
        fits[theirs] = scale_of(s[theirs], c[theirs]).admits(s[theirs], c[theirs])
    found = zip(columns.annotator.tolist(), s.tolist(), c.tolist(), fits.tolist(), strict=True)
    return [
        Dot(round(100 * x, 1), round(100 * y, 1), numbers.get(name, 0), fit)
        for name, y, x, fit in found
        if x == x and y == y
    ][-MOST_DOTS:]


def disputes(answers: Sequence[StoredAnswer]) -> list[list[StoredAnswer]]:
    """The answers of each pair with two more than one degree apart, the worst pair first."""
    by_pair: dict[int, list[StoredAnswer]] = {}
    for one in answers:
        if one.similarity is not None and one.difference is not None:
            by_pair.setdefault(one.pair, []).append(one)

    def spread(said: Sequence[StoredAnswer]) -> float:
        numbers = AnswerColumns(said)
        return float(sum(max(x) - min(x) for x in (numbers.similarity, numbers.difference)))

    apart = [
        said
        for said in by_pair.values()
        if any(
            not near((one.similarity, one.difference), (two.similarity, two.difference))
            for one in said
            for two in said
        )
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
    drawn = [one for one in answers if one.right and one.pair not in store.mixed_in]
    heard = [one for one in drawn if one.annotator not in forecast.get("flagged", ())]
    open_disputes = disputes(settled(heard, store.adjudicator))
    return vars(project) | {
        "rows": rows,
        "quality": store.quality(),
        "dots": dots(answers, numbers),
        "answers_kept": len(answers),
        "judged": len({one.pair for one in drawn}),
        "pairs": sum(pair.origin != "import" for pair in store.pairs()),
        "taking_part": sum(row.annotator.active for row in rows),
        "by_information": project.plan.mode == "information",
        "notes": [one for one in answers if one.note][-20:][::-1],
        "forecast": forecast,
        "manners": {name: _sentence(studio, phrases) for name, (phrases, _) in manners.items()},
        "disputed": len(open_disputes),
        "disputes": [
            Dispute(
                said[0].pair,
                view_of(studio, said[0].left),
                view_of(studio, said[0].right),
                [(one.annotator, _words(studio, one)) for one in said],
            )
            for said in open_disputes[:MOST_DISPUTED]
        ],
        "level_words": [(level, project.level_words(level)) for level in project.levels],
    }
