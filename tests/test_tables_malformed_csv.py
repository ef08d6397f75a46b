"""Malformed CSV files, each with the exact message, read with and without pyarrow.

``{path}`` stands for the file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pairlearn.tables import TableError, csv_arrow, iter_items, iter_pairs, read_items, read_pairs

HINT = "(noisy=True admits labels with noise)"
PERCENT = f"looks like percent: divide by 100 {HINT}"
HEAD = b"left,right,similarity,difference\n"

PAIR_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "{path} is empty"),
    "blank lines only": (b"\n\r\n\n", "{path} is empty"),
    "BOM only": (b"\xef\xbb\xbf", "{path} is empty"),
    "header only": (HEAD, "{path} has a header but no rows"),
    "no left": (
        b"right,similarity\n1,0.5\n",
        "{path}, line 1: no column 'left'; the columns are 'right', 'similarity'",
    ),
    "no right": (
        b"left,similarity\n1,0.5\n",
        "{path}, line 1: no column 'right'; the columns are 'left', 'similarity'",
    ),
    "no judgements": (
        b"left,right,weight\n1,2,1\n",
        "{path}, line 1: no column of judgements ('similarity', 'difference', 'preference'); "
        "the columns are 'left', 'right', 'weight'",
    ),
    "many columns, none right": (
        b"a,b,c,d,e,f,g,h,i\n1,2,3,4,5,6,7,8,9\n",
        "{path}, line 1: no column 'left'; "
        "the columns are 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', …",
    ),
    "misspelt": (
        b"left,right,similarty\n1,2,0.5\n",
        "{path}, line 1: column 'similarty' looks like 'similarity'; rename it so, or otherwise",
    ),
    "capitals": (
        b"left,right,Similarity\n1,2,0.5\n",
        "{path}, line 1: column 'Similarity' looks like 'similarity'; rename it so, or otherwise",
    ),
    "misspelt optional": (
        b"left,right,similarity,weights\n1,2,0.5,1\n",
        "{path}, line 1: column 'weights' looks like 'weight'; rename it so, or otherwise",
    ),
    "column twice": (
        b"left,right,similarity,left\n1,2,0.5,1\n",
        "{path}, line 1: columns 1 and 4 are both named 'left'",
    ),
    "column twice, spaces": (
        b"left,right, similarity,similarity\n1,2,0.5,1\n",
        "{path}, line 1: columns 3 and 4 are both named 'similarity'",
    ),
    "semicolons": (
        b"left;right;similarity\n1;2;0,5\n",
        "{path}, line 1: separate the columns by commas, not semicolons",
    ),
    "tabs": (
        b"left\tright\tsimilarity\n1\t2\t0.5\n",
        "{path}, line 1: separate the columns by commas, not tabs",
    ),
    "word": (
        HEAD + b"1,2,0.5,0\n1,2,high,0\n",
        "{path}, line 3: similarity is 'high', not a number",
    ),
    "word after blank lines": (
        HEAD + b"\n1,2,0.5,0\n\r\n\n1,2,0.5,low\n",
        "{path}, line 6: difference is 'low', not a number",
    ),
    "word after a quoted newline": (
        b'left,right,similarity,note\n1,2,0.5,"two\nlines"\n1,2,high,\n',
        "{path}, line 4: similarity is 'high', not a number",
    ),
    "header of two lines": (
        b'left,right,similarity,"a\nb"\n1,2,high,\n',
        "{path}, line 3: similarity is 'high', not a number",
    ),
    "decimal comma": (HEAD + b'1,2,"0,5",0\n', "{path}, line 2: similarity is '0,5', not a number"),
    "hexadecimal": (HEAD + b"1,2,0x1,0\n", "{path}, line 2: similarity is '0x1', not a number"),
    "underscore": (HEAD + b"1,2,0_1,0\n", "{path}, line 2: similarity is '0_1', not a number"),
    "separator as a space": (
        HEAD + b"1,2,\x1c0.5,0\n",
        "{path}, line 2: similarity is '\\x1c0.5', not a number",
    ),
    "newline in a number": (
        HEAD + b'1,2,"0.5\n",0\n',
        "{path}, line 2: similarity is '0.5\\n', not a number",
    ),
    "digits of another script": (
        HEAD + "1,2,٠,0\n".encode(),
        "{path}, line 2: similarity is '٠', not a number",
    ),
    "long word": (
        HEAD + b"1,2," + b"x" * 50 + b",0\n",
        "{path}, line 2: similarity is '" + "x" * 30 + "…', not a number",
    ),
    "NaN": (
        HEAD + b"1,2,NaN,0\n",
        "{path}, line 2: similarity is 'NaN'; leave the cell empty where it is not given",
    ),
    "NA": (
        HEAD + b"1,2,0.5,NA\n",
        "{path}, line 2: difference is 'NA'; leave the cell empty where it is not given",
    ),
    "inf": (HEAD + b"1,2,inf,0\n", "{path}, line 2: similarity is 'inf', not a finite number"),
    "-Infinity": (
        HEAD + b"1,2,0.5,-Infinity\n",
        "{path}, line 2: difference is '-Infinity', not a finite number",
    ),
    "overflow": (
        HEAD + b"1,2,1e999,0\n",
        "{path}, line 2: similarity is '1e999', not a finite number",
    ),
    "percent": (
        HEAD + b"1,2,85,0\n",
        "{path}, line 2: similarity is 85, outside [0, 1]; " + PERCENT,
    ),
    "percent difference": (
        HEAD + b"1,2,0.85,-40\n",
        "{path}, line 2: difference is -40, outside [-1, 1]; " + PERCENT,
    ),
    "large similarity": (
        HEAD + b"1,2,850,0\n",
        "{path}, line 2: similarity is 850, outside [0, 1] " + HINT,
    ),
    "negative similarity": (
        HEAD + b"1,2,-0.5,0\n",
        "{path}, line 2: similarity is -0.5, outside [0, 1] " + HINT,
    ),
    "two errors": (
        HEAD + b"1,2,0.5,0\n1,2,0.5,-3000\n1,2,-1,0\n",
        "{path}, line 3: difference is -3000, outside [-1, 1] " + HINT,
    ),
    "no judgement": (
        HEAD + b"1,2,0.5,\n1,2,,\n",
        "{path}, line 3: no judgement; give similarity, difference or preference, or drop the row",
    ),
    "no judgement, preference empty": (
        b"left,right,preference\n1,2,left\n1,2,\n",
        "{path}, line 3: no judgement; give similarity, difference or preference, or drop the row",
    ),
    "preference": (
        b"left,right,preference\n1,2,Left\n",
        "{path}, line 2: preference is 'Left'; give left, right or nothing",
    ),
    "weight zero": (
        b"left,right,similarity,weight\n1,2,0.5,0\n",
        "{path}, line 2: weight is 0; weights are positive",
    ),
    "weight negative": (
        b"left,right,similarity,weight\n1,2,0.5,-2.5\n",
        "{path}, line 2: weight is -2.5; weights are positive",
    ),
    "left empty": (HEAD + b",2,0.5,0\n", "{path}, line 2: left is empty; every row needs it"),
    "right empty": (HEAD + b"1,,0.5,0\n", "{path}, line 2: right is empty; every row needs it"),
    "id too long": (
        HEAD + b"1," + b"x" * 257 + b",0.5,0\n",
        "{path}, line 2: right has 257 characters; at most 256 are allowed",
    ),
    "tab in an id": (
        HEAD + b"1,a\tb,0.5,0\n",
        "{path}, line 2: right is 'a\\tb', with a control character; remove it",
    ),
    "newline in an annotator": (
        b'left,right,similarity,annotator\n1,2,0.5,"a\nb"\n',
        "{path}, line 2: annotator is 'a\\nb', with a control character; remove it",
    ),
    "too few cells": (HEAD + b"1,2,0.5\n", "{path}, line 2: 3 cells, but the header has 4"),
    "too many cells": (
        HEAD + b"1,2,0.5,0\n1,2,0.5,0,\n",
        "{path}, line 3: 5 cells, but the header has 4",
    ),
    "truncated": (HEAD + b"1,2,0.5,0\n1,2", "{path}, line 3: 2 cells, but the header has 4"),
    "quote not closed": (
        HEAD + b'1,2,0.5,0\n1,"2,0.5,0\n',
        "{path}, line 3: a quoted cell is never closed",
    ),
    "quote not closed, long": (
        HEAD + b'1,"2,0.5,0\n' + b"1,2,0.5,0\n" * 20000,
        "{path}, line 2: a cell has more than 131072 characters; is a quoted cell never closed?",
    ),
    "text after a quote": (
        HEAD + b'1,"2"3,0.5,0\n',
        "{path}, line 2: text after the closing quote of a cell; double the quotes inside it",
    ),
    "carriage returns": (
        HEAD + b"1,2,0.5,0\r1,2,0.5,0\r",
        "{path}, line 2: a carriage return inside a line; end lines with LF or CRLF",
    ),
    "NUL": (
        HEAD + b"1,2,0.5,0\n1,\0,0.5,0\n",
        "{path}, line 3: byte 45 is NUL; this is not a text file",
    ),
    "Latin-1": (
        HEAD + b"1,caf\xe9,0.5,0\n",
        "{path}, line 2: byte 38 is 0xe9, not UTF-8; save the file as UTF-8",
    ),
    "Latin-1 in an ignored column": (
        b"left,right,similarity,place\n1,2,0.5,caf\xe9\n",
        "{path}, line 2: byte 39 is 0xe9, not UTF-8; save the file as UTF-8",
    ),
    "UTF-16": (
        "left,right".encode("utf-16"),
        "{path}, line 1: byte 0 is 0xff, not UTF-8; save the file as UTF-8",
    ),
    "endless line": (b"x" * (1 << 24), "{path}, line 1: longer than 16777216 bytes"),
}

ITEM_FILES: dict[str, tuple[bytes, str]] = {
    "no id": (b"name,x\na,1\n", "{path}, line 1: no column 'id'; the columns are 'name', 'x'"),
    "id in capitals": (
        b"ID,x\na,1\n",
        "{path}, line 1: no column 'id'; rename 'ID'; the columns are 'ID', 'x'",
    ),
    "no features": (b"id\n1\n", "{path}, line 1: no features; an item has at least one"),
    "feature without a name": (
        b"id,,x\n1,2,3\n",
        "{path}, line 1: feature 1 is named ''; "
        "give it a name of printable text, without spaces around it",
    ),
    "feature twice": (b"x,id,x\n1,2,3\n", "{path}, line 1: columns 1 and 3 are both named 'x'"),
    "text feature": (b"id,x\n1,2\n2,red\n", "{path}, line 3: x is 'red', not a number"),
    "missing feature": (
        b"id,x,y\n1,2,3\n2,3,\n",
        "{path}, line 3: feature 'y' is missing; fill it in or drop the row",
    ),
    "infinite feature": (b"id,x\n1,-inf\n", "{path}, line 2: x is '-inf', not a finite number"),
    "beyond float32": (
        b"id,x\n1,1e39\n",
        "{path}, line 2: feature 'x' is 1e+39, too large for float32; rescale",
    ),
    "id twice": (
        b"id,x\n7,1\n8,2\n\n7,3\n",
        "{path}, line 5: id 7 is in line 2 already; ids are unique",
    ),
    "text id twice": (
        b"id,x\na,1\nb,2\nb,2\na,3\n",
        "{path}, line 4: id 'b' is in line 3 already; ids are unique",
    ),
    "empty id": (b"id,x\n7,1\n,2\n", "{path}, line 3: id is empty; every row needs it"),
}


@pytest.fixture(params=["pyarrow", "csv module"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of reading CSV."""
    if request.param == "csv module":
        monkeypatch.setattr(csv_arrow, "import_pyarrow", lambda: None)


def refused(read: Callable[[Any], Any], path: Path, message: str) -> None:
    with pytest.raises(TableError) as caught:
        read(path)
    assert str(caught.value) == message.replace("{path}", str(path))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", PAIR_FILES)
def test_pairs_csv(tmp_path: Path, name: str) -> None:
    data, message = PAIR_FILES[name]
    path = tmp_path / "pairs.csv"
    path.write_bytes(data)
    refused(read_pairs, path, message)
    refused(lambda path: list(iter_pairs(path)), path, message)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", ITEM_FILES)
def test_items_csv(tmp_path: Path, name: str) -> None:
    data, message = ITEM_FILES[name]
    path = tmp_path / "items.csv"
    path.write_bytes(data)
    refused(read_items, path, message)
    if "twice" not in name or "feature" in name:
        refused(lambda path: list(iter_items(path)), path, message)


@pytest.mark.usefixtures("way")
def test_an_error_far_down_has_its_line(tmp_path: Path) -> None:
    """Rows of several batches lie before it, and a worse value in a later column after it."""
    lines = [b"%d,%d,0.5,0.1" % (row, row + 1) for row in range(30_000)]
    lines[20_000] = b"1,2,0.5,-2000"
    lines[20_001] = b"1,2,2000,0"
    path = tmp_path / "pairs.csv"
    path.write_bytes(HEAD + b"\n".join(lines))
    message = "{path}, line 20002: difference is -2000, outside [-1, 1] " + HINT
    refused(read_pairs, path, message)
    refused(lambda path: list(iter_pairs(path, 100)), path, message)
