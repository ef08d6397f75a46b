"""The pages of annotators and the supervisor, their links, and the supervisor's API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.templating import Jinja2Templates

from pairlearn.annotators import Phrase
from pairlearn_studio.changes import now
from pairlearn_studio.exchange import answer_lines, export_table, settled
from pairlearn_studio.judges import order_effects
from pairlearn_studio.overview import format_number, group_by, infeasible_rows
from pairlearn_studio.project import Project, translate, translations
from pairlearn_studio.records import (
    LEVELS,
    OPPOSITE,
    WHETHER_SAME,
    Annotator,
    Answer,
    StoredAnswer,
    answers_agree,
    levels_for,
)
from pairlearn_studio.server.api import (
    FormError,
    Reply,
    Row,
    Studio,
    answer_words,
    call,
    ends_of,
    studio_of,
)
from pairlearn_studio.server.security import csrf_token
from pairlearn_studio.store import Store

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
    text = "The people who run this studio have one for you."
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
        raise HTTPException(404, "This link is not valid, or no longer valid: ask for a new one")
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
        "degrees": _degrees(studio.project),
        "whether_same": WHETHER_SAME if studio.project.same_share else {},
        "tutorial": studio.project.answers == "exact" and not studio.project.known_for("practice"),
        "slot": f"{studio.sessions.digest}-{who.id}",
        "examples": [
            (ends_of(studio, pair), studio.project.level_words(pair.answer, pair.about), pair.why)
            for pair in studio.project.known_for("example")
        ],
    }
    return TEMPLATES.TemplateResponse(request, "annotate.html", context)


def _degrees(project: Project) -> list[tuple[str, int, int]]:
    """How often, of 100 pairs, only the chosen or only the other item is positive, by degree."""
    if project.answers != "graded":
        return []
    numbers = {name: LEVELS[f"left {name}"] for name in ("surely", "probably", "slightly")}
    return [
        (name, round(50 * (1 - s - (c or 0))), round(50 * (1 - s + (c or 0))))
        for name, (s, c) in numbers.items()
    ]


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
    """Equal answers in the (c, s) plane, in percent, and how many there are.

    They are those of one annotator, or of ``who`` 0, all together. ``always`` marks those that are
    also shown where no annotator is chosen.
    """

    x: float
    y: float
    fits: bool
    who: int
    times: int
    always: bool

    @property
    def radius(self) -> float:
        """Grows with the number of answers, which stands inside unless it is 1."""
        return 1.6 if self.times == 1 else round(min(max(1.2 * self.times**0.5, 3), 6), 2)


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
    studio.forecast.refresh(studio.store.latest())
    status = studio.store.status(studio.store.answers())
    return Response(msgspec.json.encode(status), media_type="application/json")  # NaN becomes null


@call("/api/export")
def get_export(studio: Studio, _: Annotator, request: Request) -> Reply:
    """The judgements as a file: csv or parquet for `pairlearn fit`, or every answer as jsonl.

    Answers that the supervisor overruled are marked in jsonl, and left out otherwise. They can be
    filtered as on the page of all answers.
    """
    kind, store = request.query_params.get("format", "jsonl"), studio.store
    name = f"{studio.project.folder.resolve().name}.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    answers = store.drawn(_find_answers(studio, **_filters(request))[::-1])
    standing = settled(store.drawn(store.answers()), store.adjudicator)
    if kind == "jsonl":
        lines = answer_lines(answers, standing)
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)
    if kind not in ("csv", "parquet"):
        raise FormError("format must be csv, parquet or jsonl")
    try:
        wanted = {answer.id for answer in answers}
        exported = export_table([answer for answer in standing if answer.id in wanted])
    except ValueError as error:  # nothing to export yet
        raise HTTPException(404, str(error)) from None
    with TemporaryDirectory() as folder:
        exported.write(Path(folder, name))
        content = Path(folder, name).read_bytes()
    return Response(content, media_type="application/octet-stream", headers=headers)


class NameForm(msgspec.Struct, forbid_unknown_fields=True):
    """Name of a new annotator, the most pairs to give them, and the days that their link lasts."""

    name: str
    quota: Annotated[int, msgspec.Meta(ge=1, le=10**6)] | None = None
    days: Annotated[float, msgspec.Meta(gt=0, le=10**4)] | None = None


class AnnotatorForm(msgspec.Struct, forbid_unknown_fields=True):
    """The number of an annotator who takes part."""

    annotator: Row


class SettleForm(msgspec.Struct, forbid_unknown_fields=True):
    """The supervisor's answer to a pair, in words."""

    pair: Row
    level: str


class ExtendForm(msgspec.Struct, forbid_unknown_fields=True):
    """How many pairs to add."""

    pairs: Annotated[int, msgspec.Meta(ge=1, le=10**6)]


class PauseForm(msgspec.Struct, forbid_unknown_fields=True):
    """Whether annotators get no further pairs for now."""

    paused: bool


@call("/api/extend", ExtendForm)
def post_extend(studio: Studio, _: Annotator, form: ExtendForm) -> Reply:
    """Draw more pairs, and assign them; nothing that was assigned before moves."""
    return {"pairs": studio.store.extend(form.pairs)}


@call("/api/pause", PauseForm)
def post_pause(studio: Studio, _: Annotator, form: PauseForm) -> Reply:
    """Pause the project, or resume it; answers under way are stored in any case."""
    studio.store.pause(form.paused)
    return {"paused": form.paused}


@call("/api/annotators", NameForm)
def post_link(studio: Studio, _: Annotator, form: NameForm) -> Reply:
    """Add an annotator; their link is shown only once."""
    until = None if form.days is None else now(timedelta(days=form.days))
    ((who, token),) = studio.store.add_annotators(
        [form.name.strip()], expires_at=until, quota=form.quota
    )
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
    about = next((pair.about for pair in studio.store.pairs() if pair.id == form.pair), None)
    if (numbers := levels_for(about).get(form.level)) is None:
        raise FormError("level must be one of the answers of the page")
    studio.store.adjudicate(form.pair, Answer(*numbers, level=form.level))
    return {"settled": form.pair}


def dots(answers: list[StoredAnswer], numbers: dict[str, int]) -> list[Dot]:
    """The answers with both s and c as points of the plane, equal ones together."""
    places: dict[tuple[float, float, bool], Counter[int]] = {}
    for answer, misfit in zip(answers, infeasible_rows(answers).tolist(), strict=True):
        s, c = answer.numbers
        if s is not None and c is not None:
            place = (round(100 * c, 1), round(100 * s, 1), not misfit)
            places.setdefault(place, Counter())[numbers[answer.annotator]] += 1
    found = []
    for place, counts in places.items():
        if len(counts) > 1:
            found.append(Dot(*place, 0, counts.total(), True))
        found += [Dot(*place, who, times, len(counts) == 1) for who, times in counts.items()]
    return sorted(found, key=lambda dot: dot.times)[-MOST_DOTS:]  # large ones above the others


def disputes(answers: Sequence[StoredAnswer]) -> list[list[StoredAnswer]]:
    """Groups of answers to one pair of which two are more than one degree apart, worst first."""
    by_pair = group_by([answer for answer in answers if answer.similarity is not None], "pair")

    def spread(group: Sequence[StoredAnswer]) -> float:
        numbers = np.array([answer.numbers for answer in group], np.float64)  # None becomes NaN
        return float(np.nansum(np.ptp(numbers, 0))) + (
            {one.level for one in group} >= OPPOSITE.keys()
        )

    disputed = [
        group
        for group in by_pair.values()
        if any(not answers_agree(first, second) for first, second in combinations(group, 2))
    ]
    return sorted(disputed, key=spread, reverse=True)


def _sentence(studio: Studio, phrases: Sequence[Phrase]) -> str:
    """How an annotator answers, in the language of the page."""
    return "; ".join(studio.project.words(text, **values) for text, values in phrases)


def _judges(store: Store, answers: list[StoredAnswer]) -> dict[str, Any]:
    """Of each model: the effect of the order of the items, and the number of pairs skipped."""
    models = [who.name for who in store.annotators() if who.origin == "model"]
    theirs = group_by((one for one in answers if one.annotator in models), "annotator")
    skipped = Counter(name for name, _ in store.skipped_pairs())
    return {
        name: (order_effects(one.orders for one in theirs.get(name, [])), skipped[name])
        for name in models
    }


#: Answers on a page of the list.
PAGE = 100


async def get_answers(request: Request) -> Response:
    """The supervisor's list of answers, by annotator, answer and text, a page at a time."""
    studio = studio_of(request)
    studio.sessions.identify(request, "supervisor")
    query = _filters(request)
    page = request.query_params.get("page", "0")
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 9 else 0
    found = await run_in_threadpool(_find_answers, studio, **query)
    rows = found[number * PAGE :][:PAGE]
    context = {
        "title": studio.project.title,
        "query": query,
        "page": number,
        "more": len(found) > (number + 1) * PAGE,
        "found": len(found),
        "rows": [(answer, answer_words(studio.project, answer)) for answer in rows],
        "classes": studio.project.classes,
        "names": [who.name for who in studio.store.annotators()],
        "level_words": _level_words(studio.project),
    }
    return TEMPLATES.TemplateResponse(request, "answers.html", context)


def _filters(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "") for name in ("who", "answer", "text")}


def _find_answers(studio: Studio, who: str, answer: str, text: str) -> list[StoredAnswer]:
    """Standing answers, the latest first: by annotator, level, item or note."""

    def wanted(one: StoredAnswer) -> bool:
        level = "skipped" if one.cant_say else one.level
        texts = (one.left, one.right, one.note, str(one.pair))
        return (
            who in ("", one.annotator)
            and answer in ("", level)
            and any(text.casefold() in part.casefold() for part in texts)
        )

    return [one for one in reversed(studio.store.answers()) if wanted(one)]


def _level_words(project: Project) -> list[tuple[str, str]]:
    """All answers, to filter by, with the set of classes left open."""
    about = "…" if project.classes else None
    levels = [*LEVELS, *(WHETHER_SAME if project.classes else ())]
    return [(level, project.level_words(level, about)) for level in levels]


def _context(studio: Studio) -> dict[str, Any]:
    """Context of the supervisor's page, cached: it is asked for every few seconds."""
    latest = studio.store.latest()
    studio.forecast.refresh(latest)
    forecast = studio.store.forecast()
    page = studio.page
    if page is None or page[0] != (latest, forecast):
        page = studio.page = (latest, forecast), _make_context(studio, forecast)
    return page[1]


def _make_context(studio: Studio, forecast: dict[str, Any]) -> dict[str, Any]:
    store, project = studio.store, studio.project
    answers = store.answers()
    status = store.status(answers)
    numbers = {row.annotator.name: row.annotator.id for row in status["annotators"]}
    trusted = [one for one in store.drawn(answers) if one.annotator not in status["flagged"]]
    open_disputes = disputes(settled(trusted, store.adjudicator))
    manners = forecast.get("manners", {})
    return (
        vars(project)
        | status
        | {
            "dots": dots(answers, numbers),
            "taking_part": sum(row.annotator.active for row in status["annotators"]),
            "judges": _judges(store, answers),
            "notes": [answer for answer in answers if answer.note][-20:][::-1],
            "manners": {name: _sentence(studio, phrases) for name, (phrases, _) in manners.items()},
            "disputed": len(open_disputes),
            "disputes": [
                {
                    "pair": group[0].pair,
                    "ids": (group[0].left, group[0].right),
                    "answers": [
                        (answer.annotator, answer_words(project, answer)) for answer in group
                    ],
                    "level_words": [
                        (level, project.level_words(level, group[0].about))
                        for level in levels_for(group[0].about)
                    ],
                }
                | ends_of(studio, group[0])
                for group in open_disputes[:MOST_DISPUTED]
            ],
        }
    )
