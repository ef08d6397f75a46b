"""Read what Label Studio exports, as JSON or as JSON-MIN.

JSON is a list of tasks, each with its ``data`` and a list of ``annotations``, several
where several people judged it::

    {"id": 1, "data": {"left_id": "a", "right_id": "b", ...}, "annotations": [
      {"id": 7, "completed_by": 4, "was_cancelled": false, "lead_time": 4.2, "result": [
        {"from_name": "similarity", "to_name": "left", "type": "number",
         "value": {"number": 80}}, ...]}]}

JSON-MIN is a list of annotations, with the data beside the results by name::

    {"left_id": "a", "right_id": "b", ..., "id": 1, "similarity": [{"number": 80}],
     "cannot_say": "Can't say", "annotator": 4, "annotation_id": 7, "lead_time": 4.2}

A slider that was not moved leaves no result, and so does one that was left at a tie: what
has no result was not given, and is never taken for 0. Cancelled (skipped) annotations are
left out; JSON-MIN has none of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pairlearn.annotate.importing import Judgement, fresh_key
from pairlearn.annotate.label_studio_config import CANT_SAY
from pairlearn.annotate.records import MAX_NOTE, Answer
from pairlearn.annotate.store_file import StoreError

__all__ = ["LabelStudioError", "LabelStudioExport", "read_label_studio"]

MAX_BYTES = 1 << 28
KEYS = {"number": "number", "pairwise": "selected", "choices": "choices", "textarea": "text"}
"""The key of the value of each type of result that is read."""
CONTROLS = ("similarity", "difference", "preference", "cannot_say", "note")


class LabelStudioError(ValueError):
    """A file is not what Label Studio exports for a project of ours.

    Examples
    --------
    >>> issubclass(LabelStudioError, ValueError)
    True
    """


@dataclass(frozen=True)
class LabelStudioExport:
    """Judgements, and what was left out.

    Parameters
    ----------
    judgements : list of Judgement
    cancelled : int
        Annotations that were skipped.
    empty : int
        Annotations without any result: a tie that left no record, or no answer.
    superseded : int
        Annotations of a pair of which the same annotator made a later one.

    Examples
    --------
    >>> LabelStudioExport([], cancelled=1, empty=0, superseded=0).cancelled
    1
    """

    judgements: list[Judgement]
    cancelled: int
    empty: int
    superseded: int


@dataclass(frozen=True)
class _Annotation:
    """One annotation of either format; ``results`` has the value of each control."""

    place: str
    data: dict[str, Any]
    results: dict[str, Any]
    annotator: str
    seconds: float
    time: str
    number: int


def read_label_studio(path: Path) -> LabelStudioExport:
    r"""Read an export of Label Studio, JSON or JSON-MIN.

    Parameters
    ----------
    path : Path
        The file, made with the config and the tasks of `label_studio_config`.

    Raises
    ------
    LabelStudioError
        If it is not such a file; the message names the task.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "export.json")
    ...     _ = path.write_text('''[{"left_id": "a", "right_id": "b", "id": 1,
    ...         "similarity": [{"number": 80}], "annotator": 4, "annotation_id": 7,
    ...         "created_at": "2024-03-29T05:39:54Z", "lead_time": 4.2}]''')
    ...     one, = read_label_studio(path).judgements
    >>> one.annotator, one.left, one.answer.similarity, one.answer.difference
    ('label-studio-4', 'a', 0.8, None)
    """
    tasks = _load(path)
    cancelled = empty = 0
    latest: dict[tuple[str, str, str], tuple[tuple[str, int], Judgement]] = {}
    count = 0
    try:
        for annotation in _annotations(tasks):
            if annotation is None:
                cancelled += 1
                continue
            judgement = _judgement(annotation)
            if judgement is None:
                empty += 1
                continue
            count += 1
            key = (judgement.annotator, judgement.left, judgement.right)
            order = (annotation.time, annotation.number)
            if key not in latest or order >= latest[key][0]:
                latest[key] = (order, judgement)
    except (LabelStudioError, StoreError) as error:
        raise LabelStudioError(f"{path}: {error}") from None
    except RecursionError:
        raise LabelStudioError(f"{path}: a value is nested too deeply") from None
    found = [judgement for _, judgement in latest.values()]
    return LabelStudioExport(found, cancelled, empty, count - len(found))


def _load(path: Path) -> list[Any]:
    if path.stat().st_size > MAX_BYTES:
        raise LabelStudioError(f"{path} has more than {MAX_BYTES} bytes: export it in parts")
    try:
        tasks = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise LabelStudioError(f"{path} is not JSON in UTF-8 ({error})") from None
    if not isinstance(tasks, list):
        raise LabelStudioError(f"{path} is not a list of tasks: export it as JSON or JSON-MIN")
    return tasks


def _annotations(tasks: list[Any]) -> Iterator[_Annotation | None]:
    """All annotations in order; None for one that was cancelled."""
    for number, task in enumerate(tasks, 1):
        place = f"task {number}"
        if not isinstance(task, dict):
            raise LabelStudioError(f"{place} is not an object")
        if "annotations" in task:
            yield from _of_task(place, task)
        elif "annotation_id" in task:
            yield _of_minimal(place, task)
        else:
            raise LabelStudioError(
                f"{place} has neither 'annotations' (JSON) nor 'annotation_id' (JSON-MIN)"
            )


def _of_task(place: str, task: dict[str, Any]) -> Iterator[_Annotation | None]:
    data, annotations = task.get("data"), task["annotations"]
    if not isinstance(data, dict) or not isinstance(annotations, list):
        raise LabelStudioError(f"{place} must have an object 'data' and a list 'annotations'")
    for count, one in enumerate(annotations, 1):
        here = f"{place}, annotation {count}"
        if not isinstance(one, dict) or not isinstance(one.get("result"), list):
            raise LabelStudioError(f"{here} has no list 'result'")
        if one.get("was_cancelled") or one.get("skipped"):
            yield None
            continue
        results: dict[str, Any] = {}
        for result in one["result"]:
            if not isinstance(result, dict):
                raise LabelStudioError(f"{here}: a result is not an object")
            name, kind = result.get("from_name"), result.get("type")
            if name not in CONTROLS:
                continue
            if name in results:
                raise LabelStudioError(f"{here}: two results of {name!r}")
            results[name] = _value(here, name, result.get("value"), KEYS.get(str(kind)))
        yield _annotation(here, data, results, one.get("completed_by"), one, one.get("id"))


def _of_minimal(place: str, task: dict[str, Any]) -> _Annotation:
    results: dict[str, Any] = {}
    for name in CONTROLS:
        if name not in task:
            continue
        value = task[name]
        if isinstance(value, list):
            # Numbers and sides come as a list of one object, choices and texts bare.
            if len(value) != 1:
                raise LabelStudioError(f"{place}: {len(value)} results of {name!r}")
            value = value[0]
        if isinstance(value, dict):
            value = _value(place, name, value, next((k for k in KEYS.values() if k in value), None))
        results[name] = value
    return _annotation(place, task, results, task.get("annotator"), task, task.get("annotation_id"))


def _value(place: str, name: str, value: Any, key: str | None) -> Any:
    if not isinstance(value, dict) or key is None or key not in value:
        raise LabelStudioError(f"{place}: the result of {name!r} has no value of its type")
    found = value[key]
    return found[0] if isinstance(found, list) and len(found) == 1 else found


def _annotation(
    place: str,
    data: dict[str, Any],
    results: dict[str, Any],
    who: Any,
    times: dict[str, Any],
    number: Any,
) -> _Annotation:
    time = times.get("updated_at") or times.get("created_at") or ""
    seconds = times.get("lead_time")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        seconds = 0
    return _Annotation(
        place=place,
        data=data,
        results=results,
        annotator=_name(place, who),
        seconds=float(seconds) if 0 <= seconds < 1e9 else 0.0,
        time=str(time),
        number=number if isinstance(number, int) else 0,
    )


def _name(place: str, who: Any) -> str:
    """Who made an annotation: an e-mail address, or the number of an account."""
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    if isinstance(who, bool) or (who is not None and not isinstance(who, (int, str))):
        raise LabelStudioError(f"{place}: cannot tell who made it ({who!r:.80})")
    if isinstance(who, str) and not who.isdecimal() and who.strip():
        return who.strip()
    return f"label-studio-{who}" if who not in (None, "") else "label-studio"


def _judgement(annotation: _Annotation) -> Judgement | None:
    """What was said; None if nothing was."""
    place, results = annotation.place, annotation.results
    ends = []
    for name in ("left_id", "right_id"):
        value = annotation.data.get(name)
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            raise LabelStudioError(
                f"{place} has no {name!r}: use the tasks that pairlearn made for the project"
            )
        if not _is_unicode(str(value)):
            raise LabelStudioError(f"{place}: {name!r} is {value!r:.80}, which is not Unicode")
        ends.append(str(value))
    cant_say = _is_checked(place, results.get("cannot_say"))
    note = results.get("note") or ""
    if isinstance(note, list):
        note = "\n".join(map(str, note))
    if not isinstance(note, str):
        raise LabelStudioError(f"{place}: the note is not text")
    note = note.replace("\0", "")[:MAX_NOTE]
    similarity = None if cant_say else _percent(place, "similarity", results, 0)
    difference = None if cant_say else _percent(place, "difference", results, -100)
    preference = 0 if cant_say else _side(place, results.get("preference"))
    if not cant_say and similarity is None and difference is None and not preference:
        return None
    answer = Answer(
        similarity, difference, preference, cant_say, note, annotation.seconds, fresh_key()
    )
    return Judgement(annotation.annotator, ends[0], ends[1], answer, place)


def _is_unicode(text: str) -> bool:
    """Whether a text can be kept: JSON can spell half of a pair of surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _percent(place: str, name: str, results: dict[str, Any], low: int) -> float | None:
    value = results.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= 100:
        raise LabelStudioError(
            f"{place}: {name} is {value!r:.80}, not a percentage from {low} to 100"
        )
    return value / 100


def _side(place: str, value: Any) -> Literal[-1, 0, 1]:
    if value is None:
        return 0
    if value == "left":
        return -1
    if value == "right":
        return 1
    raise LabelStudioError(f"{place}: preference is {value!r:.80}, neither 'left' nor 'right'")


def _is_checked(place: str, value: Any) -> bool:
    if value in (None, []):
        return False
    if value == CANT_SAY:
        return True
    raise LabelStudioError(f"{place}: cannot_say is {value!r:.80}; it can only be {CANT_SAY!r}")
