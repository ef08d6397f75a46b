"""What a column of a file holds: numbers, categories, dates, text, or nothing of use."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from pairlearn.cli.root import app
from pairlearn.io import TableError, iter_items, read_items
from pairlearn.io.cells import ColumnChoice


def run(*words: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def kinds(text: str, tmp_path: Path, **choice: Any) -> dict[str, str]:
    path = tmp_path / "items.csv"
    path.write_text(text)
    items = read_items(path, columns=ColumnChoice(**choice))
    columns = () if items.encoder is None else items.encoder.columns
    return {column.name: column.kind for column in columns}


def table(**columns: Any) -> str:
    rows = enumerate(zip(*columns.values(), strict=True))
    cells = [[str(k), *(f'"{cell}"' for cell in row)] for k, row in rows]
    return "\n".join(map(",".join, [["id", *columns], *cells]))


TEN = range(10)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["1", "", "3"] * 4, "number"),
        (["1", "NA", "3"] * 4, "number"),
        (["f", "m", "f"] * 4, "category"),
        (["yes", "No", "n/a"] * 4, "boolean"),
        (["2024-02-29", "2024-03-01T12:30:00Z", ""] * 4, "date"),
        (["7", "8", "a7"] * 4, "row 3: column is 'a7', not a number"),
        (["01067", "10115", "80331"] * 4, "category"),
        (
            ["$3.20", "$4", "$7"] * 4,
            "'column' holds numbers such as '$3.20': write numbers like 1.5",
        ),
        (["1,5", "2,5"] * 4, "'column' holds numbers such as '1,5'"),
        (["31.12.2024", "1.1.2025"] * 4, "'column' holds dates such as '31.12.2024': write dates"),
        ([f"word{k} of many words" for k in TEN], "text"),
        ([f"New York {k % 3}" for k in TEN], "category"),
        ([f"phrase {k % 60}" for k in range(200)], "text"),
    ],
)
def test_kinds_are_found(tmp_path: Path, column: list[str], kind: str) -> None:
    text = table(column=column)
    if " " in kind:
        with pytest.raises(TableError) as caught:
            kinds(text, tmp_path)
        assert kind in str(caught.value) and "column:number" not in str(caught.value)
        with pytest.raises(TableError, match="not a number"):  # so this is no advice
            kinds(text, tmp_path, kinds={"column": "number"})
        assert kinds(text, tmp_path, kinds={"column": "category"}) == {"column": "category"}
        return
    assert kinds(text, tmp_path) == {"column": kind}


def test_numbers_in_text_are_numbers_where_columns_have_types_too(tmp_path: Path) -> None:
    columns = {"id": [*TEN], "size": [f"{k}.5" for k in TEN], "zip": ["01", "70"] * 5}
    parquet.write_table(pyarrow.table(columns), tmp_path / "items.parquet")
    items = read_items(tmp_path / "items.parquet")
    assert items.names == ("size", "zip=01", "zip=70")
    assert items.features[:, 0].tolist() == [k + 0.5 for k in TEN]


def test_every_unusable_column_is_in_one_message(tmp_path: Path) -> None:
    text = table(x=TEN, key=[f"k{k}" for k in TEN], customer_id=TEN, face=[f"{k}.JPG" for k in TEN])
    with pytest.raises(TableError) as caught:
        kinds(text, tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'items.csv'}: cannot be learnt from: 'key' has a different value in every "
        "row, as an id does; 'customer_id' has a different value in every row, as an id does; "
        "'face' has a different value in every row, as an id does. Correct this, leave the "
        "columns out (ignore=, --ignore; drop them from a data frame), or say what they hold "
        "(kinds=, --kinds)"
    )
    assert kinds(text, tmp_path, ignore=["key", "customer_id", "face"]) == {}
    path = tmp_path / "items.parquet"
    lists = {"id": range(6), "x": [1.0, 2, 3, 4, 5, 7], "list": [[number] for number in range(6)]}
    lists["clock"] = [datetime.time(number) for number in range(6)]
    parquet.write_table(pyarrow.table(lists), path)
    types = r"'list' has the type list.*'clock' has the type time64.*--ignore"
    with pytest.raises(TableError, match=types):
        read_items(path)
    run("check", tmp_path / "none.csv", "--items", path, "--kinds", "x", code=2)


def test_columns_that_say_nothing_are_left_out_with_a_note(tmp_path: Path) -> None:
    text = table(x=range(30), empty=[""] * 30, same=["a"] * 30, five=[5] * 30)
    assert kinds(text, tmp_path) == {}
    items = read_items(tmp_path / "items.csv")
    assert items.names == ("x",) and len(items.notes) == 3
    assert "'empty' is empty, and left out" in items.notes[0]
    assert "'five' has one value, and is left out" in items.notes[2]
    (tmp_path / "items.csv").write_text(table(empty=[""] * 3))
    with pytest.raises(TableError, match="no features: column 'empty' is empty"):
        read_items(tmp_path / "items.csv")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"columns": ["z"]}, "columns=z: no such column; the columns are 'x'"),
        ({"ignore": ["x"]}, "no column is left to learn from"),
        ({"kinds": {"x": "colour"}}, "kinds=x:colour: a column is one of number, boolean"),
    ],
)
def test_choices_that_cannot_be(tmp_path: Path, choice: Any, message: str) -> None:
    assert kinds(table(a=TEN, b=TEN), tmp_path) == {}  # numbers without gaps need no encoder
    assert read_items(tmp_path / "items.csv", columns=ColumnChoice(columns=["b"])).names == ("b",)
    with pytest.raises(TableError, match=message):
        kinds(table(x=TEN), tmp_path, **choice)


def test_a_stream_of_items_takes_plain_numbers_or_an_encoder(tmp_path: Path) -> None:
    kinds(table(x=["1", "", "3"] * 2, colour=["a", "b", "b"] * 2), tmp_path)
    path = tmp_path / "items.csv"
    whole = read_items(path)
    parts = [*iter_items(path, 4, columns=whole.encoder)]
    assert np.array_equal(np.concatenate([part.features for part in parts]), whole.features)
    with pytest.raises(TableError, match="row 1: colour is 'a', not a number"):
        [*iter_items(path)]


def test_folders_that_are_no_items(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in "abc":
        (photos / f"{name}.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(TableError, match=r"a\.png cannot be read as an image"):
        read_items(photos)
