"""What the annotator's page asks for and sends: JSON in, JSON out.

Under ``/annotate/NUMBER``, each for the annotator of that number:

- ``GET api/task``: the pair to judge, and how far they are;
- ``POST api/answer``: one answer; replied to when it is on disk, with the next pair;
- ``POST api/undo``: take the last answer back;
- ``POST api/practice``: one answer to the practice pair at hand, or that they have read what
  there is to know; replied to with the known answer and why;
- ``GET api/ahead``: the pair after this one, so that its pictures are there in time;
- ``GET image``: the picture of an item, served by what it is, never by what it is called.

Everything that a page could not have sent is refused.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import time
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar
from urllib.parse import quote

import msgspec
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pairlearn.studio.items import Items, ItemView, read_image
from pairlearn.studio.project import Project, ProjectError
from pairlearn.studio.records import Annotator, Answer, Task
from pairlearn.studio.server.security import LOG, Buckets, Denied, Sessions, refused
from pairlearn.studio.store import Store
from pairlearn.studio.store_file import StoreError, StoreFileError
from pairlearn.studio.words import words_of

if TYPE_CHECKING:
    from pairlearn.studio.forecast import Forecast

LONGEST_SECONDS = 86_400.0
"""A pair left open over night took a day at most: more is a broken clock."""
LARGEST_BYTES = 32 * 1024 * 1024

Form = TypeVar("Form", bound=msgspec.Struct)
Row = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class AnswerForm(msgspec.Struct, forbid_unknown_fields=True):
    """An answer as the page of the project sends it.

    Of a graded project that is a level by its name, of others numbers, which are null or absent
    where a slider was left open. So an export can say how a project asked.
    """

    pair: Row
    key: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_-]{8,64}\Z")]
    similarity: float | None = None
    difference: float | None = None
    cant_say: bool = False
    note: str = ""
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None
    level: str = ""

    def answer(self, project: Project) -> Answer:
        """The answer in it.

        Control characters have no place in a note, and forge lines in a log.
        """
        said = (self.similarity, self.difference)
        if project.answers == "graded" and not self.cant_say:
            if self.level not in project.levels or said != (None, None):
                raise FormError(
                    "this project asks for answers in words: level must be one of "
                    f"{', '.join(project.levels)}, without similarity and difference"
                )
            said = project.levels[self.level]
        elif self.level:
            raise FormError("level is for graded projects, and goes with no cant_say: leave it out")
        note = "".join(letter for letter in self.note if letter >= " " or letter in "\n\t")
        seconds = min(self.seconds or 0.0, LONGEST_SECONDS)
        return Answer(*said, 0, self.cant_say, note.strip(), seconds, self.key, level=self.level)


class PracticeForm(msgspec.Struct, forbid_unknown_fields=True):
    """An answer to a practice pair, or nothing."""

    similarity: float | None = None
    difference: float | None = None
    level: str = ""
    cant_say: bool = False


class UndoForm(msgspec.Struct, forbid_unknown_fields=True):
    """Which answer to take back, if it is still the last one."""

    answer: Row | None = None


class FormError(ValueError):
    """A body that is not what the page sends."""


def read_form(body: bytes, form: type[Form]) -> Form:
    """The form in a JSON body; no NaN, no infinity, no name twice."""
    try:
        values = json.loads(
            body.decode(), parse_constant=_no_constant, object_pairs_hook=_without_repeats
        )
        return msgspec.convert(values, form)
    except FormError:
        raise
    except (msgspec.ValidationError, OverflowError) as error:
        raise FormError(str(error).encode("ascii", "replace").decode()) from None
    except (ValueError, RecursionError):
        raise FormError("the body is not JSON in UTF-8") from None


def _no_constant(word: str) -> NoReturn:
    raise FormError(f"{word} is not a number that can be sent")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    form = dict(pairs)
    if len(form) != len(pairs):
        raise FormError("the body names a field twice")
    return form


class Outage:
    """A store that cannot be written: the operator's terminal says so, once."""

    def __init__(self) -> None:
        self.began = False

    def begins(self, error: Exception) -> None:
        """An answer could not be stored."""
        if not self.began:
            LOG.error(
                "pairlearn annotate: answers are not being stored: %s; the pages keep them and "
                "try again",
                error,
            )
        self.began = True

    def ends(self) -> None:
        """An answer was stored."""
        if self.began:
            LOG.error("pairlearn annotate: answers are being stored again")
        self.began = False


@dataclass(frozen=True)
class Studio:
    """What the handlers share."""

    project: Project
    store: Store
    items: Items
    sessions: Sessions
    requests: Buckets
    failures: Buckets
    outage: Outage
    ready: set[int]
    """Annotators who are known to be past the start."""
    forecast: Forecast
    webhook: str | None
    """Address that is told when all pairs are answered."""
    shown: dict[str, Any] = field(default_factory=dict)
    """What the supervisor's page showed last, and for which changes."""

    def annotator(self, request: Request, *, changes: bool = False) -> Annotator:
        """The annotator who asks, if they do not ask too often."""
        check = self.sessions.change if changes else self.sessions.read
        who, _ = check(request, "annotator")
        if not self.requests.take(f"annotator {who.id}"):
            raise Denied(429, "that was very fast: one moment, please")
        return who

    def refused(self, status: int, reason: str, *, retry: float | None = None) -> Response:
        """A refusal that says why, in the language of the project."""
        return refused(status, words_of(self.project.language).get(reason, reason), retry=retry)


def studio_of(request: Request) -> Studio:
    """The studio that a request came to."""
    studio: Studio = request.app.state.studio
    return studio


async def get_task(request: Request) -> Response:
    """The pair to judge now."""
    studio = studio_of(request)
    return JSONResponse(_state(studio, studio.annotator(request)))


async def post_answer(request: Request) -> Response:
    """Keep one answer; the reply is its receipt, sent when it is on disk."""
    studio = studio_of(request)
    who = studio.annotator(request, changes=True)
    form = read_form(await request.body(), AnswerForm)
    if studio.project.qualify and get_start(studio, who) is not None:
        raise Denied(403, "the practice comes first: load the page again")
    answer = form.answer(studio.project)
    try:
        receipt = await asyncio.wrap_future(studio.store.submit(who.id, form.pair, answer))
    except StoreFileError:
        raise
    except StoreError:
        if studio.store.task(who.id, form.pair) is None:
            return studio.refused(404, "this pair is not yours to judge")
        raise
    studio.outage.ends()
    state = _state(studio, who)
    after = BackgroundTask(tell_completion, studio)
    return JSONResponse({"receipt": vars(receipt)} | state, background=after)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What is told goes to the address that was given, or nowhere."""

    def redirect_request(self, *_: Any) -> None:
        """Leave it an error."""


def tell_completion(studio: Studio) -> None:
    """Tell the webhook once, if all pairs of the project are answered; retry a failure."""
    if studio.webhook is None or not studio.store.complete() or not studio.store.mark_told(True):
        return
    body = {
        "event": "completed",
        "project": studio.project.folder.resolve().name,
        "title": studio.project.title,
        "answers": len(studio.store.answers()),
    }
    request = urllib.request.Request(
        studio.webhook, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    for wait in (1.0, 5.0, None):
        try:
            urllib.request.build_opener(_NoRedirect).open(request, timeout=10).close()
            return
        except (OSError, http.client.HTTPException) as error:
            if wait is None:
                studio.store.mark_told(False)
                LOG.error("pairlearn annotate: the webhook was not told: %s", error)
            else:
                time.sleep(wait)


async def post_undo(request: Request) -> Response:
    """Take back their last answer, or nothing if ``answer`` is not the last one's number."""
    studio = studio_of(request)
    who = studio.annotator(request, changes=True)
    form = read_form(await request.body(), UndoForm)
    undone = await asyncio.wrap_future(studio.store.undo(who.id, answer_id=form.answer))
    return JSONResponse({"undone": undone is not None} | _state(studio, who))


async def get_ahead(request: Request) -> Response:
    """What they will most likely judge after ``pair``."""
    studio = studio_of(request)
    who = studio.annotator(request)
    pair = request.query_params.get("pair", "")
    if not pair.isascii() or not pair.isdigit() or len(pair) > 15:
        raise FormError("pair must be a whole number")
    task = studio.store.next_task(who.id, after=int(pair))
    ends = [] if task is None else [task.left, task.right]
    return JSONResponse({"ahead": [view_of(studio, item) for item in ends]})


async def get_image(request: Request) -> Response:
    """The picture of an item, by the item's id; no path is ever taken from a request."""
    studio = studio_of(request)
    role = "annotator" if "annotator" in request.path_params else "supervisor"
    studio.sessions.read(request, role)
    asked = request.query_params.getlist("item")
    if len(asked) != 1 or asked[0] not in studio.items:
        return studio.refused(404, "there is no such item")
    try:
        path = studio.items.view(asked[0]).image_path
        if path is None:
            return studio.refused(404, "this item is no picture")
        content, found = await run_in_threadpool(read_image, path, LARGEST_BYTES)
    except (ProjectError, OSError):
        return studio.refused(415, "this file is no picture that can be shown")
    return Response(content, media_type=found)


async def post_practice(request: Request) -> Response:
    """Compare an answer with the known one; keep that they practised."""
    studio = studio_of(request)
    who = studio.annotator(request, changes=True)
    form = read_form(await request.body(), PracticeForm)
    start, reply = get_start(studio, who), dict[str, Any]()
    if start is not None:
        results = []
        if start["pair"] is not None:
            known = studio.project.known_for("practice")[start["position"]]
            said = msgspec.to_builtins(form) | {"pair": 0, "key": "practice"}
            answer = msgspec.convert(said, AnswerForm).answer(studio.project)
            right = known.agrees(answer, studio.project.levels)
            results.append("right" if right else "wrong")
            words = studio.project.level_words(known.answer)
            reply = {"right": right, "level": known.answer, "answer": words, "why": known.why}
            start["position"] += 1
            start["right"] += right
        if start["position"] == start["total"] and start["right"] >= start["needed"]:
            results.append("done")
        await asyncio.wrap_future(studio.store.practise(who.id, *results))
    return JSONResponse(reply | _state(studio, who))


def get_start(studio: Studio, who: Annotator) -> dict[str, Any] | None:
    """What comes before the first pair; None for those who are past it.

    The practice goes in rounds of all its pairs, until enough of one round are right.
    """
    practice = studio.project.known_for("practice")
    if who.id in studio.ready:
        return None
    results = studio.store.practised(who.id)
    begun = not studio.project.qualify and studio.store.progress(who.id).done
    if begun or "done" in results:
        studio.ready.add(who.id)
        return None
    position = len(results) % len(practice) if practice else 0
    now = practice[position] if practice else None
    return {
        "position": position,
        "total": len(practice),
        "right": results[len(results) - position :].count("right"),
        "needed": math.ceil(studio.project.qualify * len(practice) - 1e-9),
        "before": results[-len(practice) :].count("right") if results and not position else None,
        "pair": now and {"left": view_of(studio, now.left), "right": view_of(studio, now.right)},
    }


def _state(studio: Studio, who: Annotator) -> dict[str, Any]:
    start = get_start(studio, who)
    barred = start is not None and studio.project.qualify
    task = None if barred else studio.store.next_task(who.id)
    return {
        "task": None if task is None else _shown(studio, task),
        "progress": vars(studio.store.progress(who.id)),
        "start": start,
    }


def _shown(studio: Studio, task: Task) -> dict[str, Any]:
    return {
        "pair": task.pair,
        "number": task.number,
        "total": task.total,
        "left": view_of(studio, task.left),
        "right": view_of(studio, task.right),
    }


def view_of(studio: Studio, item: str) -> dict[str, Any]:
    """What the page shows of an item."""
    try:
        view = studio.items.view(item)
    except (KeyError, ProjectError, OSError):
        # The others go on; whoever meets this one says that they can't say.
        view = ItemView("text", item, text="This item is not there any more.")
    title = "" if studio.project.hide_ids else view.title
    shown: dict[str, Any] = {"kind": view.kind, "title": title}
    if view.kind == "image":
        shown["image"] = f"image?item={quote(item, safe='')}"  # beside the api of the page
    elif view.kind == "text":
        shown["text"] = view.text
    else:
        shown["rows"] = view.rows
    return shown
