"""Write a labelling config and tasks for Label Studio, and read its exports.

Label Studio's own templates for pairs bind one control to both objects (``toName="left,right"``),
and then do not save the value of a slider. Here every control has one object. The sliders run in
whole percent. They have no default and are not required, since either would produce answers that
were not given: a missing result means "not given", never 0.

An export (JSON) is a list of tasks, each with ``data`` and a list of ``annotations``, one for each
person. Annotations that were cancelled (skipped) are not imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import msgspec

from pairlearn.atomic import replacing
from pairlearn_studio.exchange import Statement
from pairlearn_studio.items import Items
from pairlearn_studio.project import Project, read_json
from pairlearn_studio.records import MAX_NOTE, Answer
from pairlearn_studio.store import Store
from pairlearn_studio.store_file import StoreError


def labelling_config(project: Project) -> str:
    """The labelling config of a project, in Label Studio's XML."""
    if project.classes:
        raise ValueError("Label Studio's files ask one question: this project has several classes")
    # Not HyperText: items are untrusted, and Text does not interpret markup.
    tag = '<Text name="{0}" value="${0}" valueType="text" />'
    if project.kind == "image":
        tag = '<Image name="{0}" value="${0}" />'
    words = {}
    for name in ("title", "question_similarity", "question_difference"):
        text = getattr(project, name)
        # In quotation marks it is not read as a variable.
        words[name] = quoteattr(f"“{text}”" if text.startswith("$") else text)
    template = Path(__file__).with_name("label_studio.xml").read_text("utf-8")
    return template.format(left=tag.format("left"), right=tag.format("right"), **words)


def tasks(store: Store, prefix: str) -> list[dict[str, Any]]:
    """The pairs of a project as tasks; URLs of images begin with ``prefix``.

    `import` recognises a pair by its ``left_id`` and ``right_id``.
    """
    return [
        {
            "data": {
                "pair": pair.id,
                "left_id": pair.left,
                "right_id": pair.right,
                "left": _item_text(store.items, pair.left, prefix),
                "right": _item_text(store.items, pair.right, prefix),
            }
        }
        for pair in store.pairs()
    ]


def write_label_studio(folder: Path, store: Store, prefix: str) -> tuple[Path, Path]:
    """Write ``config.xml`` and ``tasks.json`` to a folder; return their paths."""
    config, task_list = folder / "config.xml", folder / "tasks.json"
    with replacing(config) as part:
        part.write_text(labelling_config(store.project), "utf-8")
    with replacing(task_list) as part:
        text = json.dumps(tasks(store, prefix), ensure_ascii=False, indent=1)
        part.write_text(text + "\n", "utf-8")
    return config, task_list


def _item_text(items: Items, item: str, prefix: str) -> str:
    view = items.view(item)
    if view.kind == "image":
        return prefix + quote(item)
    if view.kind == "text":
        return view.text
    return "\n".join(f"{name}: {value}" for name, value in view.rows)


T = TypeVar("T")
MAX_BYTES = 1 << 28
#: Keys that hold the value of a result, by its type.
KEYS = ("number", "selected", "choices", "text")
TIMES = ("lead_time", "updated_at", "created_at")
CONTROLS = ("similarity", "difference", "preference", "cannot_say", "note")
SIDES = {None: {}, "left": {"preference": -1.0}, "right": {"preference": 1.0}}
# JSON can encode lone surrogates.
Item: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, pattern="^[^\ud800-\udfff]*$")] | int


class LabelStudioError(ValueError):
    """A file is not a Label Studio export of pairlearn's tasks."""


class _Account(msgspec.Struct):
    email: str | None = None
    id: int | str | None = None


class _Result(msgspec.Struct):
    from_name: Any = None
    value: dict[str, Any] = {}


class _Task(msgspec.Struct):
    data: dict[str, Any]
    annotations: list[dict[str, Any]]


class _Annotation(msgspec.Struct):
    """An annotation, with the ids of its task and the values of its results."""

    left_id: Item
    right_id: Item
    id: Any = None
    completed_by: _Account | int | str | None = None
    similarity: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    difference: Annotated[float, msgspec.Meta(ge=-100, le=100)] | None = None
    preference: Literal["left", "right"] | None = None
    cannot_say: Literal["Can't say", ""] | None = None
    note: str | list[str] | None = None
    lead_time: Any = None
    updated_at: Any = None
    created_at: Any = None

    @property
    def name(self) -> str:
        """The annotator's name: an e-mail address, or an account number."""
        who = self.completed_by
        if isinstance(who, _Account):
            who = who.email or who.id
        if isinstance(who, str) and not who.isdecimal() and who.strip():
            return who.strip()
        return f"label-studio-{who}" if who not in (None, "") else "label-studio"

    @property
    def order(self) -> tuple[str, int]:
        """Sort key of annotations by time."""
        number = self.id if isinstance(self.id, int) else 0
        return str(self.updated_at or self.created_at or ""), number

    def statement(self, place: str) -> Statement | None:
        """The judgement; None if it has no result."""
        note = "\n".join(self.note) if isinstance(self.note, list) else self.note or ""
        seconds = self.lead_time
        if not isinstance(seconds, int | float) or not 0 <= seconds < 1e9:
            seconds = 0.0
        s, c, side = self.similarity, self.difference, SIDES[self.preference]
        cant_say = bool(self.cannot_say)
        if cant_say:
            s, c, side = None, None, {}
        elif (s, c, side) == (None, None, {}):
            return None
        s, c = (None if percent is None else percent / 100 for percent in (s, c))
        note = note.replace("\0", "")[:MAX_NOTE]
        answer = Answer(s, c, cant_say, note, float(seconds), others=side)
        return Statement(self.name, str(self.left_id), str(self.right_id), answer, place)


def read_label_studio(path: Path) -> tuple[list[Statement], dict[str, int]]:
    """Read the judgements of a JSON export; LabelStudioError names a bad task.

    The counts are of annotations left out: they were skipped ("cancelled"), had no result
    ("empty"), or were "superseded" by a later one of the same annotator.
    """
    counts = dict.fromkeys(("cancelled", "empty", "superseded"), 0)
    latest: dict[tuple[str, str, str], tuple[tuple[str, int], Statement]] = {}
    try:
        tasks = _read("the file", read_json(path, MAX_BYTES, LabelStudioError), list[Any])
        for place, annotation in _annotations(tasks):
            if annotation is None:
                counts["cancelled"] += 1
            elif (statement := annotation.statement(place)) is None:
                counts["empty"] += 1
            else:
                key = (statement.annotator, statement.left, statement.right)
                counts["superseded"] += key in latest
                if key not in latest or annotation.order >= latest[key][0]:
                    latest[key] = (annotation.order, statement)
    except (LabelStudioError, StoreError) as error:
        raise LabelStudioError(f"{path}: {error}") from None
    return [statement for _, statement in latest.values()], counts


def _annotations(tasks: list[Any]) -> Iterator[tuple[str, _Annotation | None]]:
    """Places and annotations; None for one that was cancelled."""
    for count, entry in enumerate(tasks, 1):
        place = f"task {count}"
        task = _read(place, entry, _Task)
        for number, fields in enumerate(task.annotations, 1):
            here = f"{place}, annotation {number}"
            results = _read(here, fields.get("result"), list[_Result])
            values = {
                result.from_name: _value(here, result)
                for result in results
                if result.from_name in CONTROLS
            }
            skipped = fields.get("was_cancelled") or fields.get("skipped")
            about = {name: fields.get(name) for name in ("id", "completed_by", *TIMES)}
            about |= {name: task.data.get(name) for name in ("left_id", "right_id")}
            yield here, None if skipped else _read(here, about | values, _Annotation)


def _read(place: str, value: Any, form: type[T]) -> T:
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise LabelStudioError(f"{place}: {error}; give a JSON export of our tasks") from None


def _value(place: str, result: _Result) -> Any:
    """The value of a result, whose key depends on its type."""
    content = next((result.value[key] for key in KEYS if key in result.value), None)
    if content is None:
        raise LabelStudioError(f"{place}: the result of {result.from_name!r} has no value")
    return content[0] if isinstance(content, list) and len(content) == 1 else content
