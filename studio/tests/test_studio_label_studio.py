"""Label Studio: its config and tasks for a project, and its exports read back.

The files here have the layout of Label Studio's own: exports as JSON (its documented task
format).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pairlearn_studio import Plan, Project, Store
from pairlearn_studio.creating import create_project
from pairlearn_studio.label_studio import (
    LabelStudioError,
    labelling_config,
    read_label_studio,
    tasks,
)


def result(name: str, kind: str, **value: object) -> dict[str, Any]:
    about = {"id": "Dx_aB91ISN", "origin": "manual", "to_name": "left"}
    return about | {"type": kind, "value": value, "from_name": name}


def number(name: str, value: object) -> dict[str, Any]:
    return result(name, "number", number=value)


TIMES = {
    "created_at": "2024-03-29T05:39:54.721157Z", "updated_at": "2024-03-29T05:52:32.001770Z",
    "lead_time": 37.426,
}  # fmt: skip


def annotation(who: object, *results: Any, **rest: Any) -> dict[str, Any]:
    about = {"id": 1001, "completed_by": who, "was_cancelled": False, "ground_truth": False}
    about |= {"draft_created_at": None, "prediction": {}, "result_count": 0, "task": 1}
    return about | TIMES | {"result": list(results)} | rest


def task(*annotations: dict[str, Any], left: object = "a", right: object = "b") -> dict[str, Any]:
    data = {"pair": 7, "left_id": left, "right_id": right, "left": "x: 1", "right": "x: 2"}
    about = {"id": 1, "file_upload": "0a1b-tasks.json", "drafts": [], "predictions": [], "meta": {}}
    return about | TIMES | {"data": data, "annotations": list(annotations), "project": 83}


def write(folder: Path, values: object) -> Path:
    path = folder / "export.json"
    path.write_text(values if isinstance(values, str) else json.dumps(values), "utf-8")
    return path


CHECKED = result("cannot_say", "choices", choices=["Can't say"])
NOTE = result("note", "textarea", text=["too dark"])
SIDE = result("preference", "pairwise", selected="right")


def read(folder: Path, *tasks: object) -> list[tuple[Any, ...]]:
    """Annotator, pair, s, c, preference and "can't say" of each judgement."""
    statements, counts = read_label_studio(write(folder, tasks))
    assert counts == {"cancelled": 0, "empty": 0, "superseded": 0}
    rows = [(statement, statement.answer) for statement in statements]
    assert rows[0][1].seconds == 37.426
    assert {answer.note for _, answer in rows} == {"", "too dark"}
    return [
        (
            row.annotator,
            row.left + row.right,
            *answer.numbers,
            answer.others.get("preference", 0),
            answer.cant_say,
        )
        for row, answer in rows
    ]


def test_json_with_several_annotations_a_task(tmp_path: Path) -> None:
    assert read(
        tmp_path,
        task(
            annotation(4, number("similarity", 80), number("difference", -10), NOTE),
            annotation({"id": 5, "email": "bob@example.com"}, number("difference", 25)),
            annotation(6, CHECKED, NOTE, number("similarity", 3)),
            annotation(7, SIDE),
        ),
        task(annotation(4, number("similarity", 0)), left="b", right="c"),
    ) == [
        ("label-studio-4", "ab", 0.8, -0.1, 0, False),
        ("bob@example.com", "ab", None, 0.25, 0, False),
        ("label-studio-6", "ab", None, None, 0, True),
        ("label-studio-7", "ab", None, None, 1, False),
        ("label-studio-4", "bc", 0.0, None, 0, False),
    ]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    def counts(*tasks: object) -> tuple[int, int, int]:
        statements, counts = read_label_studio(write(tmp_path, list(tasks)))
        assert statements == [] or statements[0].answer.similarity == 0.8
        return counts["empty"], counts["cancelled"], counts["superseded"]

    slider = number("similarity", 80)
    # A tie leaves no result, and is not a zero.
    assert counts(task(annotation(4), annotation(5, slider))) == (1, 0, 0)
    assert counts(task(annotation(4, slider, was_cancelled=True)), task()) == (0, 1, 0)
    late = annotation(4, slider, updated_at="2024-05-01T00:00:00Z")
    early = annotation(4, number("similarity", 20), updated_at="2024-04-01T00:00:00Z")
    assert counts(task(late, early)) == counts(task(early, late)) == (0, 0, 1)
    undated = annotation(4, number("similarity", 20), updated_at=None, created_at=None)
    assert counts(task(late, undated)) == counts(task(undated, late)) == (0, 0, 1)
    # Only results are answers, whatever else an annotation has.
    assert counts(task(annotation(4, slider, note={}), annotation(5, similarity=5))) == (1, 0, 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("\ufeff[]", "not JSON"),
        ({"tasks": []}, "Expected `array`, got `object`"),
        (["x"], "task 1: Expected `object`, got `str`"),
        ([{}], "task 1: Object missing required field `data`"),
        ([{"annotations": 5, "data": {}}], "task 1: Expected `array`, got `int`"),
        ([{"annotations": [], "data": []}], "task 1: Expected `object`, got `array`"),
        ([task({"id": 1})], "task 1, annotation 1: Expected `array`, got `null`"),
        ([task(annotation(4, "x"))], "Expected `object`, got `str` - at `$[0]`"),
        ([task(annotation(4, number("similarity", 101)))], "Expected `float` <= 100.0"),
        ([task(annotation(4, number("similarity", -1)))], "Expected `float` >= 0.0"),
        ([task(annotation(4, number("difference", -101)))], "Expected `float` >= -100.0"),
        ([task(annotation(4, number("similarity", "80")))], "at `$.similarity`"),
        ([task(annotation(4, number("similarity", True)))], "at `$.similarity`"),
        ([task(annotation(4, number("similarity", math.nan)))], "at `$.similarity`"),
        ([task(annotation(4, number("similarity", math.inf)))], "at `$.similarity`"),
        ([task(annotation(4, number("similarity", 8) | {"value": {}}))], "has no value"),
        ([task(annotation(4, number("similarity", 8) | {"value": 8}))], "Expected `object`"),
        ([task(annotation([4], number("similarity", 8)))], "at `$.completed_by`"),
        ([task(annotation(4, number("similarity", 8)), left=None)], "at `$.left_id`"),
        ([task(annotation(4, number("similarity", 8)), right="")], "at `$.right_id`"),
        ([task(annotation(4, SIDE | {"value": {"selected": "up"}}))], "at `$.preference`"),
    ],
)  # fmt: skip
def test_malformed_files(tmp_path: Path, values: object, message: str) -> None:
    with pytest.raises(LabelStudioError) as caught:
        read_label_studio(write(tmp_path, values))
    assert message in str(caught.value)
    assert "export.json" in str(caught.value)


@pytest.mark.parametrize("kind", ["table", "text", "image"])
def test_the_config(kind: Any) -> None:
    project = Project(
        Path("p"), kind, "items", Plan(1), title="A & B <c>", question_similarity='$x "same"?'
    )
    root = ElementTree.fromstring(labelling_config(project))
    (cannot_say,) = root.iterfind("./Choices[@name='cannot_say']/Choice")
    assert cannot_say.get("value") == "Can't say"
    sliders = {control.get("name"): control.attrib for control in root.iter("Number")}
    assert set(sliders) == {"similarity", "difference"}
    for name, low in (("similarity", "0"), ("difference", "-100")):
        slider = sliders[name]
        assert slider["toName"] == "left"  # one object: with two, nothing is saved
        assert (slider["min"], slider["max"], slider["step"]) == (low, "100", "1")
        assert slider["slider"] == "true" and not {"defaultValue", "required"} & {*slider}
    variables = [tag for tag in root.iter() if tag.get("value", "").startswith("$")]
    assert {tag.get("name"): tag.get("value") for tag in variables} == {
        "left": "$left",
        "right": "$right",
    }
    assert {tag.tag for tag in variables} == {"Image" if kind == "image" else "Text"}
    values = [header.get("value") for header in root.iter("Header")]
    assert "A & B <c>" in values
    assert '“$x "same"?”' in values  # not the name of a variable
    for control in root.iter():
        assert "," not in control.get("toName", "")


def test_addresses_of_images(tmp_path: Path) -> None:
    (tmp_path / "f" / "sub").mkdir(parents=True)
    for name in ("a b.png", "sub/ö&c.png"):
        (tmp_path / "f" / name).write_bytes(b"\x89PNG\r\n\x1a\n")
    project, _ = create_project(tmp_path / "p", tmp_path / "f")
    with Store.open(project) as store:
        (pair,) = tasks(store, "https://x.example/")
    assert {pair["data"]["left"], pair["data"]["right"]} == {
        "https://x.example/a%20b.png",
        "https://x.example/sub/%C3%B6%26c.png",
    }
