"""The pages of annotators and the supervisor, their links, and the supervisor's API."""

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

from pairlearn.annotators.annotator import Phrase, in_words
from pairlearn_studio.exchange import answer_lines, exportable, settled
from pairlearn_studio.overview import AnswerColumns, format_number, group_by
from pairlearn_studio.project import translate, translations
from pairlearn_studio.records import Annotator, Answer, StoredAnswer, nearly_agree
from pairlearn_studio.server.api import FormError, Reply, Row, Studio, call, ends_of, studio_of
from pairlearn_studio.server.security import Denied, csrf_token

STATIC, PAGES = (Path(__file__).with_name(name) for name in ("static", "templates"))


def _shared(request: Request) -> dict[str, Any]:
    """Context of every page: the language of its project, and the project's root path."""
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
    """The page for visitors without a link."""
    text = "Whoever runs this studio has one for you."
    return message(request, 200, "Open your own link", text)


async def get_link(request: Request, role: str) -> Response:
    """Turn the token of a link into a cookie, and redirect to a URL without it.

    A visit from another site gets a page that refreshes instead: browsers send no Strict cookie
    along a redirect from there.
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
    reply: Response
    if request.headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
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
            (*ends_of(studio, pair).values(), studio.project.level_words(pair.answer), pair.why)
            for pair in studio.project.known_for("example")
        ],
    }
    return TEMPLATES.TemplateResponse(request, "annotate.html", context)


def message(request: Request, status: int, heading: str, text: str) -> Response:
    """A page with a heading and a sentence."""
    words = _shared(request)["words"]
    heading = words.get(heading, heading)
    context = {"title": heading, "heading": heading, "text": words.get(text, text)}
    return TEMPLATES.TemplateResponse(request, "message.html", context, status)


MOST_DOTS = 2000
MOST_DISPUTED = 6
TEMPLATES.env.filters["figure"] = format_number


class Dot(NamedTuple):
    """An answer in the (c, s) plane, in percent."""

    x: float
    y: float
    who: int
    fits: bool


async def get_supervisor(request: Request) -> Response:
    """The supervisor's page."""
    studio = studio_of(request)
    _, token = studio.sessions.identify(request, "supervisor")
    context = await run_in_threadpool(_context, studio)
    return TEMPLATES.TemplateResponse(
        request, "supervisor.html", context | {"csrf": csrf_token(token)}
    )


@call("/api/status")
def get_status(studio: Studio, _: Annotator, __: Request) -> Reply:
    """Progress of the project, how each annotator works, and the forecast."""
    context = _context(studio)
    names = ("title", "answers_kept", "judged", "pairs", "forecast")
    status = {name: context[name] for name in names}
    status["annotators"] = [asdict(row) for row in context["rows"]]
    status["forecast"] = status["forecast"] or {"needs": "not computed yet"}
    return Response(msgspec.json.encode(status), media_type="application/json")  # NaN becomes null


@call("/api/export", media="application/x-ndjson")
def get_export(studio: Studio, _: Annotator, __: Request) -> Reply:
    """Every answer as a line of JSON; answers that the supervisor overruled are marked."""
    answers = exportable(studio.store)
    lines = answer_lines(answers, studio.project.answers, studio.store.adjudicator)
    return StreamingResponse(lines, media_type="application/x-ndjson")


class NameForm(msgspec.Struct, forbid_unknown_fields=True):
    """The name of a new annotator."""

    name: str


class AnnotatorForm(msgspec.Struct, forbid_unknown_fields=True):
    """The number of an annotator who takes part."""

    annotator: Row


class SettleForm(msgspec.Struct, forbid_unknown_fields=True):
    """The supervisor's answer to a pair, in words."""

    pair: Row
    level: str


@call("/api/annotators", NameForm)
def post_link(studio: Studio, _: Annotator, form: NameForm) -> Reply:
    """Add an annotator; their link is shown only once."""
    who, token = studio.store.add_annotator(form.name.strip())
    return {"name": who.name, "path": f"/a/{token}"}


@call("/api/annotators/renew", AnnotatorForm)
def post_renew(studio: Studio, _: Annotator, form: AnnotatorForm) -> Reply:
    """A new link for an annotator; the old one ends."""
    who = _chosen(studio, form)
    return {"name": who.name, "path": f"/a/{studio.store.renew_token(who.id)}"}


@call("/api/annotators/end", AnnotatorForm, completes=True)
def post_end(studio: Studio, _: Annotator, form: AnnotatorForm) -> Reply:
    """Retire an annotator; their answers stay."""
    who = _chosen(studio, form)
    studio.store.retire(who.id)
    return {"ended": who.id}


def _chosen(studio: Studio, form: AnnotatorForm) -> Annotator:
    """The active annotator of a form."""
    for annotator in studio.store.annotators():
        if annotator.active and annotator.id == form.annotator:
            return annotator
    raise HTTPException(404)


@call("/api/settle", SettleForm, completes=True)
def post_settle(studio: Studio, _: Annotator, form: SettleForm) -> Reply:
    """Keep the supervisor's answer to a pair, which replaces all others in exports."""
    if form.level not in studio.project.levels:
        raise FormError("level must be one of the answers of the page")
    s, c = studio.project.levels[form.level]
    studio.store.adjudicate(form.pair, Answer(s, c, level=form.level))
    return {"settled": form.pair}


def dots(answers: list[StoredAnswer], numbers: dict[str, int]) -> list[Dot]:
    """The latest answers with both s and c as points of the plane."""
    columns = AnswerColumns(answers)
    points = np.round(100 * np.stack([columns.difference, columns.similarity], 1), 1).tolist()
    rows = zip(answers, points, columns.both, columns.infeasible_rows.tolist(), strict=True)
    return [
        Dot(x, y, numbers.get(answer.annotator, 0), not misfit)
        for answer, (x, y), both, misfit in rows
        if both
    ][-MOST_DOTS:]


def disputes(answers: Sequence[StoredAnswer]) -> list[list[StoredAnswer]]:
    """Groups of answers to one pair of which two are more than one degree apart, worst first."""
    by_pair = group_by([answer for answer in answers if None not in answer.numbers], "pair")

    def spread(group: Sequence[StoredAnswer]) -> Any:
        return np.ptp([answer.numbers for answer in group], axis=0).sum()  # type: ignore[arg-type]

    disputed = [
        group
        for group in by_pair.values()
        if any(
            not nearly_agree(first.numbers, second.numbers)
            for first, second in combinations(group, 2)
        )
    ]
    return sorted(disputed, key=spread, reverse=True)


def _words(studio: Studio, answer: StoredAnswer) -> str:
    """An answer with both numbers, as the supervisor reads it."""
    if answer.level:
        return studio.project.level_words(answer.level)
    return f"s = {answer.similarity:.0%}, c = {answer.difference:+.0%}".replace("-", "−")


def _sentence(studio: Studio, phrases: Sequence[Phrase]) -> str:
    """How an annotator answers, in the language of the page."""
    words, parts = studio.project.words, []
    for text, values in phrases:
        if "share" in values:
            values = values | {"share": words(values["share"])}
        parts.append(words(text, **values))
    return "; ".join(parts)


def _context(studio: Studio) -> dict[str, Any]:
    """Context of the supervisor's page, cached: it is asked for every few seconds."""
    latest = studio.store.latest()
    forecast = dict(studio.forecast.refresh(latest))
    page = studio.page
    if page is None or page[0] != (latest, forecast):
        page = studio.page = (latest, forecast), _make_context(studio, forecast)
    return page[1]


def _make_context(studio: Studio, forecast: dict[str, Any]) -> dict[str, Any]:
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
    drawn = [answer for answer in answers if answer.right and answer.pair not in store.mixed_in]
    trusted = [answer for answer in drawn if answer.annotator not in forecast.get("flagged", ())]
    open_disputes = disputes(settled(trusted, store.adjudicator))
    return vars(project) | {
        "rows": rows,
        "quality": store.quality(),
        "dots": dots(answers, numbers),
        "answers_kept": len(answers),
        "judged": len(planned.intersection(answer.pair for answer in drawn)),
        "pairs": len(planned),
        "taking_part": sum(row.annotator.active for row in rows),
        "by_information": project.plan.mode == "information",
        "notes": [answer for answer in answers if answer.note][-20:][::-1],
        "forecast": forecast,
        "manners": {name: _sentence(studio, phrases) for name, (phrases, _) in manners.items()},
        "disputed": len(open_disputes),
        "disputes": [
            {
                "pair": group[0].pair,
                "answers": [(answer.annotator, _words(studio, answer)) for answer in group],
            }
            | ends_of(studio, group[0])
            for group in open_disputes[:MOST_DISPUTED]
        ],
        "level_words": [(level, project.level_words(level)) for level in project.levels],
    }
