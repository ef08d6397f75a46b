"""Readers against random and mutated files: a table or a `TableError`, nothing else.

CSV is read both with and without pyarrow, and the two must agree to the last word of the
message. Corner cases, and whatever such a run finds, are kept in ``fuzz_seeds/tables``.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlearn.tables import (
    TableError,
    iter_items,
    iter_pairs,
    read_items,
    read_pairs,
    sources,
)

SEEDS = Path(__file__).parent / "fuzz_seeds" / "tables"
READERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "pairs": (read_pairs, iter_pairs),
    "items": (read_items, iter_items),
}
fuzz = settings(max_examples=100, deadline=None)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """One folder for all examples: hypothesis runs many in one call of a test."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def outcome(read: Callable[[], Any]) -> Any:
    """The table, or the message of the only error that may come."""
    try:
        return read()
    except TableError as error:
        return str(error)


def check(folder: Path, what: str, suffix: str, data: bytes) -> Any:
    """Read a file whole and as a stream, in every way there is; they have to agree."""
    path = folder / f"{what}{suffix}"
    path.write_bytes(data)
    read, stream = READERS[what]
    table = outcome(lambda: read(path))
    if suffix == ".csv":
        with mock.patch.object(sources, "_plain_columns", lambda *_: None):
            assert outcome(lambda: read(path)) == table
        with mock.patch.object(sources, "BLOCK", 64):
            assert outcome(lambda: read(path)) == table
    parts = outcome(lambda: list(stream(path, 3)))
    if not isinstance(table, str):
        assert type(table).concatenate(parts) == table
    elif "ids are unique" not in table:
        assert isinstance(parts, str)
    return table


# ---- anything ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy"])
@fuzz
@given(data=st.binary(max_size=200))
def test_random_bytes(folder: Path, suffix: str, data: bytes) -> None:
    magic = {".csv": b"id,x\n", ".parquet": b"PAR1", ".npy": b"\x93NUMPY\x01\x00"}[suffix]
    for start in (b"", magic):
        check(folder, "items", suffix, start + data)
    if suffix != ".npy":
        check(folder, "pairs", suffix, data)


# ---- nearly CSV -------------------------------------------------------------------------------

GOOD = ["1", "2", "0.5", "1", "0", ""]
ODD = ["-3", " ", "1e-3", "+1", ".5", "5.", "007", "1_0", "nan", "inf", "1e400", "-", "0x1", "85"]
ODD += ["9223372036854775808", "-9223372036854775808", "1e", "a", "é", "left", "right", "٣"]
ODD += ['"', '"a"', '"a""b"', '"a\nb"', "\0", "\r", "\t", "\ufeff", "\u2003", "\x1c", "x" * 257]
NAMES = ["left", "right", "similarity", "difference", "preference", "weight", "annotator"]
NAMES += ["id", "x", "y", "", " left", "Left", "similarty", '"x"', "é"]


@st.composite
def nearly_csv(draw: st.DrawFn) -> bytes:
    header = draw(st.just(NAMES[:4]) | st.just(["id", "x"]) | st.lists(st.sampled_from(NAMES)))
    cells = st.sampled_from(GOOD if draw(st.booleans()) else GOOD + ODD)
    width = st.just(len(header)) if draw(st.booleans()) else st.integers(0, 6)
    rows = draw(st.lists(width.flatmap(lambda k: st.lists(cells, min_size=k, max_size=k))))
    end = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
    text = end.join(",".join(row) for row in [header, *rows])
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


@settings(fuzz, max_examples=250)
@given(data=nearly_csv())
def test_nearly_csv(folder: Path, data: bytes) -> None:
    for what in READERS:
        check(folder, what, ".csv", data)


# ---- valid files, damaged ---------------------------------------------------------------------


@cache
def valid(what: str, suffix: str) -> bytes:
    n = 12
    if suffix == ".npy":
        stream = io.BytesIO()
        np.save(stream, np.arange(2.0 * n).reshape(n, 2))
        return stream.getvalue()
    columns: dict[str, list[Any]] = {
        "pairs": {
            "left": [f"item {row}" for row in range(n)],
            "right": [f"{row}" for row in range(n)],
            "similarity": [row / n for row in range(n)],
            "difference": [0.5 - row / n for row in range(n)],
            "preference": ["left", "right", ""] * (n // 3),
            "weight": [1.0 + row for row in range(n)],
            "annotator": ["ann", "bob", "é"] * (n // 3),
        },
        "items": {"id": list(range(n)), "x": [row / 3 for row in range(n)], "y": [1.0] * n},
    }[what]
    if suffix == ".csv":
        rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        return "\n".join([",".join(columns), *rows]).encode()
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


def damaged(data: bytes, draw: Callable[..., Any]) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(start + 40, len(data))))
        middle = draw(
            st.binary(min_size=1, max_size=4) | st.just(b"") | st.just(data[start:stop] * 2)
        )
        data = data[:start] + middle + data[stop:]
        if draw(st.integers(0, 9)) == 0:
            data = data[: draw(st.integers(0, len(data)))]
    return data


@pytest.mark.parametrize(
    ("what", "suffix"),
    [
        ("pairs", ".csv"),
        ("items", ".csv"),
        ("pairs", ".parquet"),
        ("items", ".parquet"),
        ("items", ".npy"),
    ],
)
@fuzz
@given(data=st.data())
def test_damaged_files(folder: Path, what: str, suffix: str, data: st.DataObject) -> None:
    content = valid(what, suffix)
    assert not isinstance(check(folder, what, suffix, content), str)
    check(folder, what, suffix, damaged(content, data.draw))


@pytest.mark.long
@settings(max_examples=20_000, deadline=None)
@given(
    data=st.data(),
    kind=st.sampled_from(
        [("pairs", ".parquet"), ("items", ".parquet"), ("items", ".npy"), ("pairs", ".csv")]
    ),
)
def test_soak(folder: Path, data: st.DataObject, kind: tuple[str, str]) -> None:
    check(folder, *kind, damaged(valid(*kind), data.draw))


@fuzz
@given(data=st.data())
def test_damaged_ids(folder: Path, data: st.DataObject) -> None:
    np.save(folder / "x.npy", np.zeros((3, 1)))
    np.save(folder / "ids.npy", np.array(["a", "bc", "d"]))
    path = folder / "ids.npy"
    path.write_bytes(damaged(path.read_bytes(), data.draw))
    outcome(lambda: read_items(folder / "x.npy", path))


# ---- what was found ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.name for path in SEEDS.glob("*.*")))
def test_seeds(folder: Path, name: str) -> None:
    seed = SEEDS / name
    what = seed.stem.split("-")[0]
    check(folder, what, seed.suffix, seed.read_bytes())
