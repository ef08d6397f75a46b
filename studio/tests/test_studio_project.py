"""Project files, items, and how a project is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from pairlearn_studio import Items, Plan, Project, ProjectError, Store
from pairlearn_studio.creating import create_project

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def described(**changes: Any) -> dict[str, Any]:
    return {
        "format": "pairlearn-project",
        "version": 1,
        "kind": "table",
        "items": "items.csv",
        "plan": {"pairs": 3},
    } | changes


def write(folder: Path, values: object) -> None:
    (folder / "project.json").write_text(
        values if isinstance(values, str) else json.dumps(values), "utf-8"
    )


def test_a_project_survives_its_file(tmp_path: Path) -> None:
    project = Project(
        tmp_path, "table", "items.csv", Plan(7, 3), title="Größe", overlap=3,
        positive_name="fällt aus", columns=("a", "b"), help="two\nlines",
    )  # fmt: skip
    project.save()
    assert Project.load(tmp_path) == project
    assert "Größe" in (tmp_path / "project.json").read_text("utf-8")
    write(tmp_path, described())  # the least that a person has to write
    least = Project.load(tmp_path)
    assert (least.overlap, least.plan.seed) == (1, 0)
    assert "“positive”" in least.question_difference and least.answers == "exact"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a project file"),
        ({"format": "other"}, "not a project file"),
        (described(version=2), "version is 2; this pairlearn reads 1"),
        (described(version="1"), "version is '1'; this pairlearn reads 1"),
        (described(kind="video"), "kind is 'video': Invalid enum value 'video'"),
        (described(tilte="x"), "tilte is not a field; do you mean 'title'?"),
        (described(overlap=0), "overlap is 0: Expected `float` >= 1"),
        (described(overlap=True), "overlap is True: Expected `float`"),
        (described(plan=5), "plan is 5: expected `object`"),
        (described(plan={}), "plan.pairs is missing"),
        (described(plan={"pairs": 1, "sed": 2}), "plan.sed is not a field; do you mean 'seed'?"),
        (described(plan={"pairs": 1.5}), "plan.pairs is 1.5: Expected `int`"),
        (described(items="../secret.csv"), "outside the project folder"),
        (described(items="/etc/passwd"), "outside the project folder"),
        (described(title=5), "title is 5: Expected `str`"),
        (described(title="a\x00b"), "title is 'a\\x00b': Expected `str` matching"),
        (described(help="x" * 5000), "Expected `str` of length <= 4000"),
        (described(columns="a"), "columns is 'a': Expected `array`"),
        (described(answers="soft"), "answers is 'soft': Invalid enum value"),
        (described(hide_ids=1), "hide_ids is 1: Expected `bool`"),
        ({"format": "pairlearn-project", "version": 1}, "kind is missing"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, values: object, message: str) -> None:
    write(tmp_path, values)
    with pytest.raises(ProjectError) as caught:
        Project.load(tmp_path)
    assert message in str(caught.value)
    assert str(tmp_path / "project.json") in str(caught.value)


def table(folder: Path, text: str = "id,age,name\n1,30,Ann\n2,40,Bob\n3,50,Cy\n") -> Path:
    path = folder / "source.csv"
    path.write_text(text, "utf-8")
    return path


def test_rows_of_a_table(tmp_path: Path) -> None:
    made, token = create_project(tmp_path / "p", table(tmp_path), columns=("name",))
    items = Items.open(made)
    assert items.ids == ["1", "2", "3"]
    assert items.view("2").rows == (("name", "Bob"),)
    assert made.plan.pairs == 3  # all that there are
    with Store.open(made) as store:
        assert store.is_supervisor(token)
        assert not store.is_supervisor(token + "x")
        assert store.supervisor_token is None


def test_cells_of_every_sort(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    path, long = tmp_path / "rows.parquet", "word " * 1000
    columns = {"id": [7, 8], "text": ["two\nlines", None], "x": [0.5, 1.5]}
    columns["__index_level_0__"] = [1, 0]
    parquet.write_table(pyarrow.table(columns), path)
    items = Items.open(create_project(tmp_path / "p", path)[0])
    assert items.view("7").rows == (("text", "two\nlines"), ("x", "0.5"))
    assert items.view("8").rows == (("text", ""), ("x", "1.5"))
    made, _ = create_project(tmp_path / "q", table(tmp_path, f'id,text\na,"x\ny"\nb,{long}\n'))
    assert Items.open(made).view("b").rows == (("text", long),)


def test_folders_of_images_and_of_texts(tmp_path: Path) -> None:
    source = folder_of(
        tmp_path, **{"b.png": PNG, "a.PNG": PNG, "sub/c.png": PNG, ".hidden.png": PNG, "r.pdf": b""}
    )
    (source / "link.png").symlink_to("/etc/passwd")
    made, _ = create_project(tmp_path / "p", source)
    items = Items.open(made)
    assert (made.kind, items.ids) == ("image", ["a.PNG", "b.png", "sub/c.png"])
    path = items.view("sub/c.png").image_path
    assert path is not None and path.read_bytes() == PNG
    assert path.is_relative_to(made.folder.resolve())
    with pytest.raises(KeyError):
        items.view("../project.json")
    (tmp_path / "texts").mkdir()
    texts = {"a.txt": b"<script>alert(1)</script>", "b.md": "schön".encode()}
    made, _ = create_project(tmp_path / "q", folder_of(tmp_path / "texts", **texts), pairs=1)
    assert made.kind == "text"
    for name, content in texts.items():
        assert Items.open(made).view(name).text == content.decode()


def folder_of(folder: Path, **files: bytes) -> Path:
    (folder / "f" / "sub").mkdir(parents=True)
    for name, content in files.items():
        (folder / "f" / name).write_bytes(content)
    return folder / "f"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "none.csv", "does not exist"),
        (lambda folder: table(folder, "id,x\n1,2\n"), "has 1 item: a pair needs two"),
        (lambda folder: table(folder, "name,x\n1,2\n"), "no column 'id'"),
        (lambda folder: table(folder, "id,x\n1,2\n1,3\n"), "id '1' is in row 1 already"),
        (lambda folder: table(folder, "id,x\n,2\n1,3\n"), "id is empty"),
        (lambda folder: table(folder, "id,x\n1,2,3\n"), "3 cells, but the header has 2"),
        (lambda folder: table(folder, "id,x,x\n1,2,3\n"), "columns 2 and 3 are both named 'x'"),
        (lambda folder: table(folder, 'id,x\n1,"2\n'), "a quoted cell is never closed"),
        (lambda folder: table(folder, "id,x\n"), "has no items"),
        (lambda folder: folder_of(folder, **{"a.png": b"<html>"}), "is not a PNG image"),
        (lambda folder: folder_of(folder, **{"a.png": PNG, "b.txt": b"b"}), "images and texts"),
        (lambda folder: folder_of(folder, **{"a.txt": b"sch\xf6n"}), "is not UTF-8 (byte 3)"),
        (folder_of, "has no images"),
    ],
)
def test_items_that_cannot_be_used(
    tmp_path: Path, make: Callable[[Path], Path], message: str
) -> None:
    source = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ProjectError) as caught:
        create_project(tmp_path / "p", source)
    assert message in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before  # nothing is left behind


def test_plans_and_columns_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="3 items make 3 different pairs"):
        create_project(tmp_path / "p", table(tmp_path), pairs=4)
    with pytest.raises(ProjectError, match=r"columns has 'nam', which items\.csv has not"):
        create_project(tmp_path / "p", table(tmp_path), columns=("nam",))
    assert not (tmp_path / "p").exists()


def test_nothing_is_ever_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "precious").write_text("x")
    with pytest.raises(ProjectError, match="already exists and is not empty"):
        create_project(tmp_path / "p", table(tmp_path))
    assert [file.name for file in (tmp_path / "p").iterdir()] == ["precious"]
    made, _ = create_project(tmp_path / "q", table(tmp_path))
    with monkeypatch.context() as patch, pytest.raises(ProjectError, match="r already exists"):
        patch.setattr(Project, "save", lambda _: copytree(made.folder, tmp_path / "r"))  # just then
        create_project(tmp_path / "r", table(tmp_path))
    with pytest.raises(ValueError, match="answers are never replaced"):
        Store.create(made)
    assert made.store_path.stat().st_mode & 0o777 == 0o600
