"""The JSON API of the annotator's page, and the machinery of all API calls.

Everything is under ``/annotate/NUMBER``, where NUMBER identifies the annotator. Requests that no
page would send are refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import inspect
import json
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar
from urllib.parse import quote

import httpx2
import msgspec
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pairlearn_studio.changes import AnsweredError
from pairlearn_studio.items import Items, ItemView, read_image
from pairlearn_studio.project import Project, ProjectError
from pairlearn_studio.reader import THEIRS
from pairlearn_studio.records import (
    CERTAIN,
    Annotator,
    Answer,
    Known,
    StoredAnswer,
    Task,
    answer_of,
    levels_for,
)
from pairlearn_studio.server.security import LOG, Sessions
from pairlearn_studio.stopping import Forecast
from pairlearn_studio.store import Store
from pairlearn_studio.store_file import StoreError, StoreFileError

#: A pair left open overnight takes less than a day: more is a broken clock.
LONGEST_SECONDS = 86_400.0
#: Answers of their own that annotators are shown at a time.
MOST_OWN = 100
ASKED = (
    "SELECT p.about FROM assignment a JOIN pair p ON p.id = a.pair "
    "WHERE a.annotator = ? AND a.pair = ?"
)
STANDING_OF = "SELECT x.* FROM assignment a JOIN answer x ON x.id = a.answer WHERE a.annotator = ?"

Form = TypeVar("Form", bound=msgspec.Struct)
Row = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class JudgementForm(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A judgement of a pair: the name of a level in a graded project, numbers in others.

    Numbers are null or absent where a slider was left open.
    """

    similarity: float | None = None
    difference: float | None = None
    level: str = ""
    classes: list[str] = []
    cant_say: bool = False

    def answer(self, project: Project, about: str | None, **more: Any) -> Answer:
        """The answer that the form holds to a question about a set of classes."""
        numbers, level, names = (self.similarity, self.difference), self.level, tuple(self.classes)
        if names:
            if not project.labels or len(names) != 2 or not project.classes.keys() >= {*names}:
                raise FormError("classes must be those of both items, if the project asks")
            level = answer_of(about, *names)
            numbers = CERTAIN[level]
        elif project.answers == "graded" and not self.cant_say:
            levels = levels_for(about)
            if level not in levels or numbers != (None, None):
                raise FormError(
                    "this project asks for answers in words: level must be one of "
                    f"{', '.join(levels)}, without similarity and difference"
                )
            numbers = levels[level]
        elif level:
            raise FormError("level is for graded projects, without cant_say: leave one of them out")
        return Answer(*numbers, cant_say=self.cant_say, level=level, classes=names, **more)


class AnswerForm(JudgementForm):
    """An answer to a pair; ``replaces`` is the number of the answer that it revises, if any."""

    pair: Row
    key: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_-]{8,64}\Z")]
    note: str = ""
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None
    replaces: Row | None = None


class UndoForm(msgspec.Struct, forbid_unknown_fields=True):
    """The answer to withdraw, if it is still the last one."""

    answer: Row | None = None


class FormError(HTTPException):
    """A body that the page would not send."""

    def __init__(self, reason: str) -> None:
        super().__init__(400, reason)


def read_form(body: bytes, form: type[Form]) -> Form:
    """Read a form from a JSON body."""
    try:
        return msgspec.json.decode(body, type=form)
    except msgspec.ValidationError as error:
        raise FormError(str(error).encode("ascii", "replace").decode()) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise FormError("the body is not JSON in UTF-8") from None


class Studio:
    """State that the handlers of a project share.

    ``ready`` has the ids of annotators who have finished the start page, ``webhook`` is the URL to
    notify when all pairs are answered, and ``page`` caches what the supervisor's page shows.
    """

    def __init__(
        self,
        project: Project,
        https: bool,
        webhook: str | None,
        webhook_key: str = "",
    ) -> None:
        items = Items.open(project)
        self.project, self.store = project, Store.open(project)
        self.store.items = items  # read once, before the first request
        self.sessions = Sessions(self.store, https)
        self.forecast = Forecast(self.store)
        self.webhook, self.webhook_key, self.outage = webhook, webhook_key.encode(), False
        self.ready = set[int]()
        self.page: tuple[Any, dict[str, Any]] | None = None

    def is_working(self) -> bool:
        """Whether answers can be read and stored now."""
        try:
            self.store.check_writable()
        except (StoreError, OSError):
            return False
        return self.store.latest() > 0

    def close(self) -> None:
        """Stop the forecast and close the store."""
        self.forecast.close()
        self.store.close()

    def log_outage(self, error: Exception | None) -> None:
        """Log once that answers are not being stored, and once that they are again."""
        if error is not None and not self.outage:
            LOG.error(
                "pairlearn annotate: answers are not being stored: %s; the pages keep them and "
                "try again",
                error,
            )
        if error is None and self.outage:
            LOG.error("pairlearn annotate: answers are being stored again")
        self.outage = error is not None


def studio_of(request: Request) -> Studio:
    """The studio that a request addresses."""
    studio: Studio = request.app.state.studio
    return studio


ANNOTATOR = "/annotate/{annotator:int}"
Reply: TypeAlias = Response | dict[str, Any]
Handler: TypeAlias = Callable[[Studio, Annotator, Any], Reply | Awaitable[Reply]]


@dataclass(frozen=True)
class Call:
    """A path of the API, and the function of studio, sender and form or request that serves it.

    Calls with a ``form`` change the project; those that may complete it (``completes``) notify the
    webhook afterwards. A ``path`` in a reply is prefixed with the root of the project. Handlers
    that are not asynchronous run in a thread.
    """

    path: str
    handler: Handler
    form: type[msgspec.Struct] | None
    completes: bool

    async def endpoint(self, request: Request) -> Response:
        """Check the sender and the form of a request, and reply to it."""
        studio = studio_of(request)
        role = "annotator" if self.path.startswith(ANNOTATOR) else "supervisor"
        who, _ = studio.sessions.identify(request, role, changes=self.form is not None)
        content = request if self.form is None else read_form(await request.body(), self.form)
        if inspect.iscoroutinefunction(self.handler):
            reply = await self.handler(studio, who, content)
        else:
            reply = await run_in_threadpool(self.handler, studio, who, content)
        if isinstance(reply, Response):
            return reply
        if "path" in reply:
            reply["path"] = request.scope.get("root_path", "") + reply["path"]
        after = BackgroundTask(notify_completion, studio) if self.completes else None
        return JSONResponse(reply, background=after)


CALLS: list[Call] = []


def call(
    path: str,
    form: type[msgspec.Struct] | None = None,
    completes: bool = False,
) -> Callable[[Handler], Handler]:
    """Serve a path by the decorated function."""

    def register(handler: Handler) -> Handler:
        CALLS.append(Call(path, handler, form, completes))
        return handler

    return register


@call(f"{ANNOTATOR}/api/task")
async def get_task(studio: Studio, who: Annotator, request: Request) -> Reply:
    """The pair to judge now, or one of the sender's pairs, with the standing answer to it."""
    state = _state(studio, who)
    if "pair" in request.query_params:
        pair = _whole_number(request, "pair")
        standing = studio.store.find_answers(THEIRS, who.id, pair)
        task = studio.store.task(who.id, pair)
        if task is None or not standing:
            raise HTTPException(404, "this pair is not yours to judge")
        answer = msgspec.to_builtins(vars(standing[0]))
        names = ("id", "level", "similarity", "difference", "cant_say", "note", "classes")
        state["task"] = vars(task) | ends_of(studio, task)
        state["task"]["answer"] = {name: answer[name] for name in names}
    return state


@call(f"{ANNOTATOR}/api/answers")
async def get_own_answers(studio: Studio, who: Annotator, request: Request) -> Reply:
    """The sender's standing answers, the latest first, a page at a time."""
    first = MOST_OWN * _whole_number(request, "page", "0")
    answers = studio.store.find_answers(f"({STANDING_OF}) x", who.id)[::-1][first:]
    return {
        "more": len(answers) > MOST_OWN,
        "answers": [
            {
                "pair": answer.pair,
                "answer": answer_words(studio.project, answer),
                "at": answer.at,
                "note": answer.note,
            }
            | ends_of(studio, answer, longest=200)
            for answer in answers[:MOST_OWN]
        ],
    }


def answer_words(project: Project, answer: StoredAnswer) -> str:
    """An answer in words, as the page has them."""
    if answer.cant_say:
        return project.words("Skipped")
    if answer.classes:
        return " · ".join(project.words("“{name}”", name=name) for name in answer.classes)
    if answer.level:
        return project.level_words(answer.level, answer.about)
    s, c = (math.nan if number is None else number for number in answer.numbers)
    return f"s = {s:.0%}, c = {c:+.0%}".replace("-", "−").replace("+nan%", "–").replace("nan%", "–")


def _whole_number(request: Request, name: str, default: str = "") -> int:
    text = request.query_params.get(name, default)
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise FormError(f"{name} must be a whole number")
    return int(text)


@call(f"{ANNOTATOR}/api/answer", AnswerForm, completes=True)
async def post_answer(studio: Studio, who: Annotator, form: AnswerForm) -> Reply:
    """Store an answer; the reply is its receipt, sent when the answer is on disk."""
    if studio.project.qualify and get_start(studio, who) is not None:
        raise HTTPException(403, "the practice comes first: load the page again")
    # Control characters do not belong in a note, and could forge lines in a log.
    note = "".join(char for char in form.note if char >= " " or char in "\n\t")
    seconds = min(form.seconds or 0.0, LONGEST_SECONDS)
    if (asked := studio.store.first(ASKED, who.id, form.pair)) is None:
        raise HTTPException(404, "this pair is not yours to judge")
    answer = form.answer(studio.project, asked[0], note=note.strip(), seconds=seconds, key=form.key)
    try:
        stored = studio.store.submit(who.id, form.pair, answer, form.replaces)
        receipt = await asyncio.wrap_future(stored)
    except StoreFileError:
        raise
    except AnsweredError as error:
        raise HTTPException(409, str(error)) from None
    studio.log_outage(None)
    return {"receipt": vars(receipt)} | _state(studio, who)


def notify_completion(studio: Studio) -> None:
    """Notify the webhook once if all pairs of the project are answered; retry a failure.

    Redirects are not followed: they count as failures.
    """
    if studio.webhook is None or not studio.store.complete() or not studio.store.mark_sent(True):
        return
    body = {
        "event": "completed",
        "project": studio.project.folder.resolve().name,
        "title": studio.project.title,
        "answers": len(studio.store.answers()),
    }
    content, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    if studio.webhook_key:
        digest = hmac.new(studio.webhook_key, content, hashlib.sha256).hexdigest()
        headers["X-Pairlearn-Signature"] = f"sha256={digest}"
    sent: dict[str, Any] = {"content": content, "headers": headers, "timeout": 10}
    for wait in (1.0, 5.0, None):
        try:
            # The body of the reply is not read: it could be of any length.
            with httpx2.stream("POST", studio.webhook, **sent) as reply:
                reply.raise_for_status()
            return
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            if wait is None:
                studio.store.mark_sent(False)
                LOG.error(
                    "pairlearn annotate: the webhook could not be notified: %s", _reason(error)
                )
            else:
                time.sleep(wait)


def _reason(error: Exception) -> str:
    """Why the webhook failed, in one line without its URL, which may be secret."""
    if isinstance(error, httpx2.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    return ": ".join([type(error).__name__, *str(error).splitlines()[:1]])


@call(f"{ANNOTATOR}/api/undo", UndoForm)
async def post_undo(studio: Studio, who: Annotator, form: UndoForm) -> Reply:
    """Withdraw the last answer, unless ``answer`` is given and is not its number."""
    undone = await asyncio.wrap_future(studio.store.undo(who.id, answer_id=form.answer))
    return {"undone": undone is not None} | _state(studio, who)


@call(f"{ANNOTATOR}/api/ahead")
async def get_ahead(studio: Studio, who: Annotator, request: Request) -> Reply:
    """The items most likely shown after ``pair``, so that the page can preload their pictures."""
    pair = _whole_number(request, "pair")
    task = studio.store.next_task(who.id, after=pair)
    ends = ends_of(studio, task) if task is not None else {}
    return {"ahead": [ends[side] for side in ("left", "right") if ends]}


@call("/image")
@call(f"{ANNOTATOR}/image")
def get_image(studio: Studio, _: Annotator, request: Request) -> Reply:
    """The picture of an item, by the item's id; no path is ever taken from a request."""
    names = request.query_params.getlist("item")
    if len(names) != 1 or names[0] not in studio.store.items:
        raise HTTPException(404, "there is no such item")
    try:
        path = studio.store.items.view(names[0]).image_path
        if path is None:
            raise HTTPException(404, "this item is not a picture")
        content, media_type = read_image(path)
    except (ProjectError, OSError):
        raise HTTPException(415, "this file is not a picture that can be shown") from None
    return Response(content, media_type=media_type)


@call(f"{ANNOTATOR}/api/practice", JudgementForm)
async def post_practice(studio: Studio, who: Annotator, form: JudgementForm) -> Reply:
    """Compare an answer with the known one, or record that the start page was read."""
    start, reply = get_start(studio, who), dict[str, Any]()
    if start is not None:
        results = []
        if start["pair"] is not None:
            known = studio.project.known_for("practice")[start["position"]]
            about = known.about if studio.project.classes else None
            right = known.agrees(form.answer(studio.project, about))
            results.append("right" if right else "wrong")
            words = studio.project.level_words(known.answer, about)
            reply = {"right": right, "level": known.answer, "answer": words, "why": known.why}
            start["position"] += 1
            start["right"] += right
        if start["position"] == start["total"] and start["right"] >= start["needed"]:
            results.append("done")
        await asyncio.wrap_future(studio.store.practise(who.id, *results))
    return reply | _state(studio, who)


def get_start(studio: Studio, who: Annotator) -> dict[str, Any] | None:
    """What the page shows before the first pair; None for annotators who have begun.

    Practice repeats in rounds of all its pairs until enough of one round are right.
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
    pair = practice[position] if practice else None
    return {
        "position": position,
        "total": len(practice),
        "right": results[len(results) - position :].count("right"),
        "needed": math.ceil(studio.project.qualify * len(practice) - 1e-9),
        "before": results[-len(practice) :].count("right") if results and not position else None,
        "pair": pair and ends_of(studio, pair),
    }


def _state(studio: Studio, who: Annotator) -> dict[str, Any]:
    """What the page shows next: the pair to judge, the progress, and the steps before."""
    start = get_start(studio, who)
    must_qualify = start is not None and studio.project.qualify
    paused = studio.store.paused
    task = None if must_qualify or paused else studio.store.next_task(who.id)
    return {
        "paused": paused,
        "task": task and vars(task) | ends_of(studio, task),
        "progress": vars(studio.store.progress(who.id)),
        "start": start,
    }


def ends_of(
    studio: Studio, pair: Task | Known | StoredAnswer, longest: int | None = None
) -> dict[str, Any]:
    """What a page shows of a pair: its two items, texts up to a length, and what is asked."""
    project = studio.project
    return {
        "left": view_of(studio, pair.left, longest),
        "right": view_of(studio, pair.right, longest),
        "asked": project.asked(pair.about) if project.classes else None,
        "levels": [*levels_for(pair.about)] if project.classes else None,
    }


def view_of(studio: Studio, item: str, longest: int | None = None) -> dict[str, Any]:
    """What the page shows of an item."""
    try:
        view = studio.store.items.view(item)
    except (KeyError, ProjectError, OSError):
        # Other pairs are not affected; annotators skip this one.
        view = ItemView("text", item, text=studio.project.words("This item no longer exists."))
    title = "" if studio.project.hide_ids else view.title
    content: dict[str, dict[str, Any]] = {
        "image": {"image": f"image?item={quote(item, safe='')}"},  # beside the api of the page
        "text": {"text": view.text[:longest]},
        "table": {"rows": view.rows},
    }
    return {"kind": view.kind, "title": title} | content[view.kind]
