"""Label Studio: its config and tasks for the two questions of a project, and what it exports.

Its templates for pairs bind one control to both objects (``toName="left,right"``), and then save
nothing of a slider or a rating. Here every control has one object. The sliders run in whole
percent, without a default, which would count as an answer that nobody gave. They are not required
either: a slider that was never moved, or left at its middle, leaves no result, and a required one
would be filled in. What has no result was not given, and is never taken for 0.

It exports JSON and JSON-MIN. JSON is a list of tasks, each with its ``data`` and a list of
``annotations``, several where several people judged it::

    {"id": 1, "data": {"left_id": "a", "right_id": "b", ...}, "annotations": [
      {"id": 7, "completed_by": 4, "was_cancelled": false, "lead_time": 4.2, "result": [
        {"from_name": "similarity", "to_name": "left", "type": "number",
         "value": {"number": 80}}, ...]}]}

JSON-MIN is a list of annotations, with the data beside the results by name::

    {"left_id": "a", "right_id": "b", ..., "id": 1, "similarity": [{"number": 80}],
     "cannot_say": "Can't say", "annotator": 4, "annotation_id": 7, "lead_time": 4.2}

Cancelled (skipped) annotations are left out; JSON-MIN has none of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from pairlearn.atomic import replacing
from pairlearn.studio.exchange import Statement, fresh_key
from pairlearn.studio.items import Items
from pairlearn.studio.project import Project, read_json
from pairlearn.studio.records import MAX_NOTE, Answer, Pair
from pairlearn.studio.store_file import StoreError

CANT_SAY = "Can't say"
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
    """The pairs of a project as Label Studio's tasks.

    ``prefix`` is the address that images are served at. Each task has ``data``: the ids
    ``left_id`` and ``right_id``, by which `import` recognises the pair, and what ``left`` and
    ``right`` show.
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


MAX_BYTES = 1 << 28
KEYS = ("number", "selected", "choices", "text")
"""The keys of the values of the types of result that are read."""
SIDES: dict[Any, Literal[-1, 0, 1]] = {None: 0, "left": -1, "right": 1}
CONTROLS = ("similarity", "difference", "preference", "cannot_say", "note")


class LabelStudioError(ValueError):
    """A file is not what Label Studio exports for a project of ours."""


@dataclass(frozen=True)
class LabelStudioExport:
    """Judgements, and how many annotations were left out.

    These were skipped (``cancelled``), without any result (``empty``: a tie that left no record,
    or no answer), or ``superseded`` by a later one of the same annotator.
    """

    judgements: list[Statement]
    cancelled: int
    empty: int
    superseded: int


def read_label_studio(path: Path) -> LabelStudioExport:
    """Read an export of Label Studio, JSON or JSON-MIN, of tasks by `write_label_studio`.

    Raises LabelStudioError, which names the task, if it is not such a file.
    """
    cancelled = empty = count = 0
    latest: dict[tuple[str, str, str], tuple[tuple[str, int], Statement]] = {}
    try:
        for place, data, results, who, about, number in _annotations(_load(path)):
            if results is None:
                cancelled += 1
                continue
            judgement = _judgement(place, data, results, who, about)
            if judgement is None:
                empty += 1
                continue
            count += 1
            key = (judgement.annotator, judgement.left, judgement.right)
            time = str(about.get("updated_at") or about.get("created_at") or "")
            order = (time, number if isinstance(number, int) else 0)
            if key not in latest or order >= latest[key][0]:
                latest[key] = (order, judgement)
    except (LabelStudioError, StoreError) as error:
        raise LabelStudioError(f"{path}: {error}") from None
    except RecursionError:
        raise LabelStudioError(f"{path}: a value is nested too deeply") from None
    found = [judgement for _, judgement in latest.values()]
    return LabelStudioExport(found, cancelled, empty, count - len(found))


def _load(path: Path) -> list[Any]:
    tasks = read_json(path, MAX_BYTES, LabelStudioError)
    if not isinstance(tasks, list):
        raise LabelStudioError("it is not a list of tasks: export it as JSON or JSON-MIN")
    return tasks


def _annotations(
    tasks: list[Any],
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any] | None, Any, dict[str, Any], Any]]:
    """Place, data, results, annotator, times and number; no results of one that was cancelled."""
    for count, task in enumerate(tasks, 1):
        place = f"task {count}"
        if not isinstance(task, dict):
            raise LabelStudioError(f"{place} is not an object")
        if "annotations" not in task:
            if "annotation_id" not in task:
                raise LabelStudioError(
                    f"{place} has neither 'annotations' (JSON) nor 'annotation_id' (JSON-MIN)"
                )
            results = {name: _value(place, name, task[name]) for name in CONTROLS if name in task}
            yield place, task, results, task.get("annotator"), task, task["annotation_id"]
            continue
        data, annotations = task.get("data"), task["annotations"]
        if not isinstance(data, dict) or not isinstance(annotations, list):
            raise LabelStudioError(f"{place} must have an object 'data' and a list 'annotations'")
        for number, one in enumerate(annotations, 1):
            here = f"{place}, annotation {number}"
            if not isinstance(one, dict) or not isinstance(one.get("result"), list):
                raise LabelStudioError(f"{here} has no list 'result'")
            skipped = one.get("was_cancelled") or one.get("skipped")
            found = None if skipped else _results(here, one["result"])
            yield here, data, found, one.get("completed_by"), one, one.get("id")


def _results(place: str, listed: list[Any]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for result in listed:
        if not isinstance(result, dict):
            raise LabelStudioError(f"{place}: a result is not an object")
        name = result.get("from_name")
        if name not in CONTROLS:
            continue
        if name in results:
            raise LabelStudioError(f"{place}: two results of {name!r}")
        results[name] = _value(place, name, [result.get("value")])
    return results


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


def _judgement(
    place: str, data: dict[str, Any], results: dict[str, Any], who: Any, about: dict[str, Any]
) -> Statement | None:
    """What was said; None if nothing was."""
    left, right = _item(place, data, "left_id"), _item(place, data, "right_id")
    cant_say = results.get("cannot_say") or None
    if cant_say not in (None, CANT_SAY):
        raise LabelStudioError(
            f"{place}: cannot_say is {cant_say!r:.80}; it can only be {CANT_SAY!r}"
        )
    note = results.get("note") or ""
    note = "\n".join(map(str, note)) if isinstance(note, list) else note
    if not isinstance(note, str):
        raise LabelStudioError(f"{place}: the note is not text")
    side = results.get("preference")
    if side not in SIDES:
        raise LabelStudioError(f"{place}: preference is {side!r:.80}, neither 'left' nor 'right'")
    said = (
        _percent(place, "similarity", results, 0),
        _percent(place, "difference", results, -100),
        SIDES[side],
    )
    if cant_say is not None:
        said = (None, None, 0)
    elif said == (None, None, 0):
        return None
    seconds: Any = about.get("lead_time")
    took = float(seconds) if _is_number(seconds) and 0 <= seconds < 1e9 else 0.0
    note = note.replace("\0", "")[:MAX_NOTE]
    answer = Answer(*said, cant_say is not None, note, took, fresh_key())
    return Statement(_name(place, who), left, right, answer, place)


def _item(place: str, data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise LabelStudioError(
            f"{place} has no {name!r}: use the tasks that pairlearn made for the project"
        )
    # JSON can spell half of a pair of surrogates.
    if any("\ud800" <= letter <= "\udfff" for letter in str(value)):
        raise LabelStudioError(f"{place}: {name!r} is {value!r:.80}, which is not Unicode")
    return str(value)


def _name(place: str, who: Any) -> str:
    """Who made an annotation: an e-mail address, or the number of an account."""
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    if isinstance(who, bool) or (who is not None and not isinstance(who, (int, str))):
        raise LabelStudioError(f"{place}: cannot tell who made it ({who!r:.80})")
    if isinstance(who, str) and not who.isdecimal() and who.strip():
        return who.strip()
    return f"label-studio-{who}" if who not in (None, "") else "label-studio"


def _percent(place: str, name: str, results: dict[str, Any], low: int) -> float | None:
    value = results.get(name)
    if value is not None and not (_is_number(value) and low <= value <= 100):
        raise LabelStudioError(
            f"{place}: {name} is {value!r:.80}, not a percentage from {low} to 100"
        )
    return None if value is None else value / 100


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
