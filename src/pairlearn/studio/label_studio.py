"""Label Studio: its config and tasks for the two questions of a project, and what it exports.

Its templates for pairs bind one control to both objects (``toName="left,right"``), and then save
nothing of a slider. Here every control has one object. The sliders run in whole percent. They have
no default and are not required, since either would make an answer that nobody gave: what has no
result was not given, and is never taken for 0.

It exports JSON, a list of tasks with ``data`` and a list of ``annotations``, several where several
people judged it, and JSON-MIN, a list of annotations with the data beside the results by name.
Cancelled (skipped) annotations are left out; JSON-MIN has none of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import msgspec

from pairlearn.atomic import replacing
from pairlearn.studio.exchange import Statement
from pairlearn.studio.items import Items
from pairlearn.studio.project import Project, read_json
from pairlearn.studio.records import MAX_NOTE, Answer, Pair, describe_error
from pairlearn.studio.store_file import StoreError

LOCAL_FILES = "/data/local-files/?d="
"""How Label Studio names the files of its local storage."""


def labelling_config(project: Project) -> str:
    """The labelling config of a project, in Label Studio's XML."""
    # Not HyperText: items are untrusted, and Text shows markup as it is written.
    shown = '<Text name="{0}" value="${0}" valueType="text" />'
    if project.kind == "image":
        shown = '<Image name="{0}" value="${0}" />'
    words = {}
    for name in ("title", "question_similarity", "question_difference"):
        text = getattr(project, name)
        # Not taken for the name of a variable.
        words[name] = quoteattr(f"“{text}”" if text.startswith("$") else text)
    template = Path(__file__).with_name("label_studio.xml").read_text("utf-8")
    return template.format(left=shown.format("left"), right=shown.format("right"), **words)


def tasks(
    project: Project, items: Items, pairs: Sequence[Pair], prefix: str = LOCAL_FILES
) -> list[dict[str, Any]]:
    """The pairs of a project as Label Studio's tasks; images are served at ``prefix``.

    By ``left_id`` and ``right_id`` `import` recognises the pair.
    """
    return [
        {
            "data": {
                "pair": pair.id,
                "left_id": pair.left,
                "right_id": pair.right,
                "left": _shown(items, pair.left, prefix),
                "right": _shown(items, pair.right, prefix),
            }
        }
        for pair in pairs
    ]


def write_label_studio(
    folder: Path, project: Project, items: Items, pairs: Sequence[Pair], prefix: str = LOCAL_FILES
) -> tuple[Path, Path]:
    """Write ``config.xml`` and ``tasks.json`` to a folder; the two files."""
    config, listed = folder / "config.xml", folder / "tasks.json"
    with replacing(config) as part:
        part.write_text(labelling_config(project), "utf-8")
    with replacing(listed) as part:
        text = json.dumps(tasks(project, items, pairs, prefix), ensure_ascii=False, indent=1)
        part.write_text(text + "\n", "utf-8")
    return config, listed


def _shown(items: Items, item: str, prefix: str) -> str:
    view = items.view(item)
    if view.kind == "image":
        return prefix + quote(item)
    if view.kind == "text":
        return view.text
    return "\n".join(f"{name}: {value}" for name, value in view.rows)


T = TypeVar("T")
MAX_BYTES = 1 << 28
KEYS = ("number", "selected", "choices", "text")
"""The keys of the values of the types of result that are read."""
CONTROLS = ("similarity", "difference", "preference", "cannot_say", "note")
SIDES: dict[str | None, Literal[-1, 0, 1]] = {None: 0, "left": -1, "right": 1}
# JSON can spell half of a pair of surrogates.
Item: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, pattern="^[^\ud800-\udfff]*$")] | int


class LabelStudioError(ValueError):
    """A file is not what Label Studio exports for a project of ours."""


@dataclass(frozen=True)
class LabelStudioExport:
    """Judgements, and how many annotations were left out.

    These were skipped (``cancelled``), without any result (``empty``), or ``superseded`` by a
    later one of the same annotator.
    """

    judgements: list[Statement]
    cancelled: int
    empty: int
    superseded: int


class _Account(msgspec.Struct):
    email: str | None = None
    id: int | str | None = None


class _Result(msgspec.Struct):
    from_name: Any = None
    value: Any = None


class _Minimal(msgspec.Struct):
    """An annotation of JSON-MIN, with the values of its results."""

    left_id: Item
    right_id: Item
    annotation_id: Any
    annotator: _Account | int | str | None = None
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
        """Who made it: an e-mail address, or the number of an account."""
        who = self.annotator
        if isinstance(who, _Account):
            who = who.email or who.id
        if isinstance(who, str) and not who.isdecimal() and who.strip():
            return who.strip()
        return f"label-studio-{who}" if who not in (None, "") else "label-studio"

    @property
    def order(self) -> tuple[str, int]:
        """What grows from one annotation to the next."""
        number = self.annotation_id if isinstance(self.annotation_id, int) else 0
        return str(self.updated_at or self.created_at or ""), number

    def statement(self, place: str) -> Statement | None:
        """What was said; None if nothing was."""
        silent = bool(self.cannot_say)
        s, c = (
            None if silent or x is None else x / 100 for x in (self.similarity, self.difference)
        )
        side = SIDES[None if silent else self.preference]
        if (s, c, side, silent) == (None, None, 0, False):
            return None
        note = "\n".join(self.note) if isinstance(self.note, list) else self.note or ""
        note, took = note.replace("\0", "")[:MAX_NOTE], self.lead_time
        took = float(took) if isinstance(took, int | float) and 0 <= took < 1e9 else 0.0
        answer = Answer(s, c, side, silent, note, took)
        return Statement(self.name, str(self.left_id), str(self.right_id), answer, place)


def read_label_studio(path: Path) -> LabelStudioExport:
    """Read an export of Label Studio, JSON or JSON-MIN; LabelStudioError names a bad task."""
    counts: Counter[str] = Counter()
    latest: dict[tuple[str, str, str], tuple[tuple[str, int], Statement]] = {}
    try:
        tasks = _read("the file", read_json(path, MAX_BYTES, LabelStudioError), list[Any])
        for place, one in _annotations(tasks):
            if one is None or (found := one.statement(place)) is None:
                counts["cancelled" if one is None else "empty"] += 1
                continue
            key = (found.annotator, found.left, found.right)
            counts["superseded"] += key in latest
            if key not in latest or one.order >= latest[key][0]:
                latest[key] = (one.order, found)
    except (LabelStudioError, StoreError) as error:
        raise LabelStudioError(f"{path}: {error}") from None
    names = ("cancelled", "empty", "superseded")
    return LabelStudioExport([found for _, found in latest.values()], *(counts[n] for n in names))


def _annotations(tasks: list[Any]) -> Iterator[tuple[str, _Minimal | None]]:
    """Places, and annotations as JSON-MIN has them; None for one that was cancelled."""
    for count, given in enumerate(tasks, 1):
        place, task = f"task {count}", _read(f"task {count}", given, dict[str, Any])
        if "annotations" not in task:
            yield place, _minimal(place, task, [(n, task[n]) for n in CONTROLS if n in task])
            continue
        data = _read(place, task.get("data"), dict[str, Any])
        listed = _read(place, task["annotations"], list[dict[str, Any]])
        for number, one in enumerate(listed, 1):
            here = f"{place}, annotation {number}"
            results = [
                (result.from_name, [result.value])
                for result in _read(here, one.get("result"), list[_Result])
                if result.from_name in CONTROLS
            ]
            about = {"annotator": one.get("completed_by"), "annotation_id": one.get("id")}
            about |= {name: data[name] for name in ("left_id", "right_id") if name in data}
            about |= {name: one.get(name) for name in ("lead_time", "created_at", "updated_at")}
            skipped = one.get("was_cancelled") or one.get("skipped")
            yield here, None if skipped else _minimal(here, about, results)


def _minimal(place: str, about: dict[str, Any], results: list[tuple[str, Any]]) -> _Minimal:
    values = {name: _value(place, name, value) for name, value in results}
    if len(values) < len(results):
        raise LabelStudioError(f"{place} has two results of one name")
    return _read(place, about | values, _Minimal)


def _read(place: str, value: Any, form: type[T]) -> T:
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise LabelStudioError(
            f"{place}: {describe_error(error, value)}; give a JSON or JSON-MIN export of "
            "pairlearn's tasks"
        ) from None


def _value(place: str, name: str, value: Any) -> Any:
    """A result: a list of one object, or, as JSON-MIN has choices and texts, a bare value."""
    if isinstance(value, list):
        if len(value) != 1:
            raise LabelStudioError(f"{place}: {len(value)} results of {name!r}")
        value = value[0] if isinstance(value[0], (dict, str)) else {}
    if not isinstance(value, dict):
        return value
    found = [value[key] for key in KEYS if key in value]
    if not found:
        raise LabelStudioError(f"{place}: the result of {name!r} has no value of its type")
    return found[0][0] if isinstance(found[0], list) and len(found[0]) == 1 else found[0]
