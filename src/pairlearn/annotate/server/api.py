"""What the annotator's page asks for and sends: JSON in, JSON out.

Under ``/annotate/NUMBER``, each for the annotator of that number:

- ``GET api/task``: the pair to judge, and how far they are;
- ``POST api/answer``: one answer; replied to when it is on disk, with the next pair;
- ``POST api/undo``: take the last answer back;
- ``GET api/ahead``: the pair after this one, so that its pictures are there in time;
- ``GET image``: the picture of an item.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pairlearn.annotate.items import Items, ItemView
from pairlearn.annotate.project import Project, ProjectError
from pairlearn.annotate.records import Annotator, Task
from pairlearn.annotate.server.forms import FormError, read_answer, read_form, read_number
from pairlearn.annotate.server.pictures import Unshowable, read_picture
from pairlearn.annotate.server.security import Buckets, refused
from pairlearn.annotate.server.sessions import Denied, Sessions
from pairlearn.annotate.store import Store, StoreError
from pairlearn.annotate.store_file import StoreFileError

__all__ = ["Studio", "get_ahead", "get_image", "get_task", "post_answer", "post_undo", "studio_of"]


LOG = logging.getLogger("pairlearn.annotate")
FARTHEST = 500
"""Pairs that are looked through for the next one of an annotator."""


class Outage:
    """A store that cannot be written: the operator's terminal says so, once.

    Examples
    --------
    >>> outage = Outage()
    >>> outage.begins(OSError("disk full")), outage.began
    (None, True)
    """

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

    def annotator(self, request: Request, *, changes: bool = False) -> Annotator:
        """The annotator who asks, if they do not ask too often."""
        check = self.sessions.change if changes else self.sessions.read
        who, _ = check(request, "annotator")
        if not self.requests.take(f"annotator {who.id}"):
            raise Denied(429, "that was very fast: one moment, please")
        return who


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
    pair, answer = read_answer(read_form(await request.body()))
    try:
        receipt = await asyncio.wrap_future(studio.store.submit(who.id, pair, answer))
    except StoreFileError:
        raise
    except StoreError:
        if studio.store.task(who.id, pair) is None:
            return refused(404, "this pair is not yours to judge")
        raise
    studio.outage.ends()
    return JSONResponse({"receipt": vars(receipt)} | _state(studio, who))


async def post_undo(request: Request) -> Response:
    """Take back their last answer, or nothing if ``answer`` is not the last one's number."""
    studio = studio_of(request)
    who = studio.annotator(request, changes=True)
    form = read_form(await request.body())
    if set(form) - {"answer"}:
        raise FormError("the body has a field that is not known here")
    number = None if form.get("answer") is None else read_number(form, "answer")
    undone = await asyncio.wrap_future(studio.store.undo(who.id, answer_id=number))
    return JSONResponse({"undone": undone is not None} | _state(studio, who))


async def get_ahead(request: Request) -> Response:
    """What they will most likely judge after ``pair``."""
    studio = studio_of(request)
    who = studio.annotator(request)
    pair = request.query_params.get("pair", "")
    if not pair.isascii() or not pair.isdigit() or len(pair) > 15:
        raise FormError("pair must be a whole number")
    views = await run_in_threadpool(_ahead, studio, who, int(pair))
    return JSONResponse({"ahead": views})


async def get_image(request: Request) -> Response:
    """The picture of an item, by the item's id; no path is ever taken from a request."""
    studio = studio_of(request)
    studio.sessions.read(request, "annotator")
    asked = request.query_params.getlist("item")
    if len(asked) != 1 or asked[0] not in studio.items:
        return refused(404, "there is no such item")
    try:
        path = studio.items.view(asked[0]).image_path
        if path is None:
            return refused(404, "this item is no picture")
        picture = await run_in_threadpool(read_picture, path, studio.project.folder)
    except (ProjectError, Unshowable, OSError):
        return refused(415, "this file is no picture that can be shown")
    return Response(picture.content, media_type=picture.media_type)


def _state(studio: Studio, who: Annotator) -> dict[str, Any]:
    task = studio.store.next_task(who.id)
    return {
        "task": None if task is None else _shown(studio, task),
        "progress": vars(studio.store.progress(who.id)),
    }


def _shown(studio: Studio, task: Task) -> dict[str, Any]:
    return {
        "pair": task.pair,
        "number": task.number,
        "total": task.total,
        "left": _view(studio.items, task.left),
        "right": _view(studio.items, task.right),
    }


def _ahead(studio: Studio, who: Annotator, pair: int) -> list[dict[str, Any]]:
    """The items of the next pair of theirs that is open; pairs are judged in their order."""
    for number in range(pair + 1, pair + 1 + FARTHEST):
        task = studio.store.task(who.id, number)
        if task is not None and studio.store.current(who.id, number) is None:
            return [_view(studio.items, item) for item in (task.left, task.right)]
    return []


def _view(items: Items, item: str) -> dict[str, Any]:
    try:
        view = items.view(item)
    except (KeyError, ProjectError, OSError):
        # The others go on; whoever meets this one says that they can't say.
        view = ItemView("text", item, text="This item is not there any more.")
    shown: dict[str, Any] = {"kind": view.kind, "title": view.title}
    if view.kind == "image":
        shown["image"] = f"image?item={quote(item, safe='')}"  # beside the api of the page
    elif view.kind == "text":
        shown["text"] = view.text
    else:
        shown["rows"] = view.rows
    return shown
