"""Kept inputs; valid files cut off, overwritten or changed; valid files with odd content.

``fuzz/corpus/READER/NAME`` are the kept inputs, ``found-…`` those that failed once, many of them
found by `bench/speed/fuzz.py`. The harnesses in ``fuzz`` assert that a reader returns a valid
object that round-trips, or raises the documented error, and changes no file. A file whose format
has a length is never accepted if it was cut off.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from fuzz import READERS
from fuzz.sandbox import MARK, limits
from pairlearn_bench.data import sources

CORPUS = Path(__file__).parent / "fuzz" / "corpus"
KEPT = sorted(CORPUS.glob("*/*"))
VALID = {
    "answer_cache": "two", "answers": "whole", "dataset_npz": "whole", "dataset_zip": "stored",
    "items_csv": "full", "items_npy": "f8", "items_parquet": "full", "known_classes": "words",
    "label_studio": "mixed", "model_folder": "linear", "model_reply": "reply", "npy_ids": "text",
    "pairs_csv": "full", "pairs_parquet": "full", "preferences": "full", "project_file": "table",
    "run_store": "three", "studio_items": "table",
}  # fmt: skip
WITH_A_LENGTH = {
    *("answers", "dataset_npz", "dataset_zip", "items_npy", "items_parquet"),
    *("label_studio", "model_folder", "model_reply", "npy_ids", "pairs_parquet"),
}
JSON = sorted(name for name, reader in READERS.items() if reader.mutate is not None)
# Far more in `make test-long`, which draws new examples.
quick = settings(max_examples=30 if settings().derandomize else 3000)


def valid(reader: str) -> bytes:
    return (CORPUS / reader / VALID[reader]).read_bytes()


def feed(reader: str, data: bytes) -> Any:
    return READERS[reader].one_input(data)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_kept_input(path: Path) -> None:
    with limits():
        feed(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("reader", READERS)
def test_some_are_read_and_some_refused(reader: str) -> None:
    """A harness that refuses everything, or nothing, would test nothing."""
    kept = [path.read_bytes() for path in KEPT if path.parent.name == reader]
    refused = [isinstance(result, str) for data in kept for result in flat(feed(reader, data))]
    assert any(refused) and not all(refused)


def flat(outcome: Any) -> Iterator[Any]:
    """The outcomes of a harness, which returns one, or a list with one for each way of reading."""
    mixed = isinstance(outcome, list) and any(isinstance(result, str) for result in outcome)
    yield from outcome if mixed else [outcome]


def test_the_corpus_is_small_and_of_every_reader() -> None:
    assert sum(path.stat().st_size for path in KEPT) < 1_000_000
    assert {path.parent.name for path in KEPT} == VALID.keys() == READERS.keys()


# ---- torn files -------------------------------------------------------------------------------


def cut(reader: str, sizes: range) -> None:
    whole = valid(reader)
    for size in sizes:
        outcome = feed(reader, whole[:size])
        if reader == "model_folder":
            outcome = outcome[0]  # the second one has its checksums corrected
        if reader in WITH_A_LENGTH:
            assert isinstance(outcome, str), f"{size} of {len(whole)} bytes are accepted"


@pytest.mark.parametrize("reader", VALID)
@pytest.mark.parametrize("places", [40, pytest.param(10**9, marks=pytest.mark.long)])
def test_cut_off(reader: str, places: int) -> None:
    size = len(valid(reader))
    cut(reader, range(0, size, size // places + 1))
    cut(reader, range(size - 12, size))


@pytest.mark.parametrize("reader", sorted(WITH_A_LENGTH))
def test_zeros_where_the_end_was(reader: str) -> None:
    """As some file systems leave files after a crash."""
    whole = valid(reader)
    for size in range(len(whole) - 200, len(whole) - 1, 7):
        feed(reader, whole[:size] + bytes(len(whole) - size))


# ---- damaged files ----------------------------------------------------------------------------


@st.composite
def damaged(draw: st.DrawFn, data: bytes, words: list[bytes]) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(start + 40, len(data))))
        here = data[start:stop]
        there = draw(st.integers(0, len(data)))
        middle = draw(
            st.binary(max_size=4)
            | st.sampled_from(words)
            | st.sampled_from([here * 2, here[::-1], bytes(len(here)), data[there : there + 40]])
        )
        data = data[:start] + middle + data[stop:]
    return data


@pytest.mark.parametrize("reader", VALID)
@quick
@given(data=st.data())
def test_damaged(reader: str, data: st.DataObject) -> None:
    with limits():
        feed(reader, data.draw(damaged(valid(reader), READERS[reader].words)))


@pytest.mark.parametrize("reader", JSON)
@quick
@given(seed=st.integers(0, 2**32))
def test_changed_json(reader: str, seed: int) -> None:
    changed = READERS[reader].mutate(valid(reader), seed)
    if changed is not None:
        feed(reader, changed)


@pytest.mark.parametrize("reader", JSON)
def test_every_depth_of_nesting(reader: str) -> None:
    """JSON is parsed up to some depth, and then processed a little deeper."""
    for depth in [10, 300, *range(930, 1000, 3), 100_000]:
        nested = b"[" * depth + b"]" * depth
        data = valid(reader)
        at = data.index(b": ") + 2
        end = min(data.index(mark, at) for mark in (b",", b"}") if mark in data[at:])
        feed(reader, data[:at] + nested + data[end:])


# ---- valid files with odd content -------------------------------------------------------------

TYPES = [
    pyarrow.int8(), pyarrow.uint64(), pyarrow.float16(), pyarrow.float32(), pyarrow.float64(),
    pyarrow.string(), pyarrow.large_string(), pyarrow.binary(), pyarrow.bool_(), pyarrow.null(),
    pyarrow.date32(), pyarrow.timestamp("us", "UTC"), pyarrow.time64("ns"), pyarrow.duration("s"),
    pyarrow.decimal128(5, 2), pyarrow.list_(pyarrow.int8()),
    pyarrow.struct([("a", pyarrow.int8())]), pyarrow.binary(3),
    pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
]  # fmt: skip
NAMES = ["left", "right", "similarity", "difference", "preference", "weight", "annotator"]
NAMES += ["id", "x", "a.b", "a", " id", "", "p", "class", "é\0"]
ODD_VALUES = [0, 1, -1, 0.5, 7, 2**31, 2**63, -(2**63), 1e300, float("nan"), float("inf")]
ODD_VALUES += ["", "a", "left", "1", "é", "a\0b", "x" * 300, "\u2028", b"\xff", True, None]


@st.composite
def odd_parquet(draw: st.DrawFn) -> bytes:
    names = draw(
        st.sampled_from([NAMES[:3], NAMES[:7], ["id", "x", "a.b"], ["left", "right", "p"]])
        | st.lists(st.sampled_from(NAMES), min_size=1, max_size=5)
    )
    rows = draw(st.integers(0, 4))
    columns = []
    for _ in names:
        type_ = draw(st.sampled_from(TYPES) | st.sampled_from([TYPES[4], TYPES[5]]))
        values = []
        for value in draw(st.lists(st.sampled_from(ODD_VALUES), min_size=rows, max_size=rows)):
            try:
                pyarrow.array([value], type_)
                values.append(value)
            except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
                values.append(None)
        columns.append(pyarrow.array(values, type_))
    stream = io.BytesIO()
    parquet.write_table(
        pyarrow.Table.from_arrays(columns, names),
        stream,
        compression=draw(st.sampled_from(["none", "snappy", "gzip", "zstd"])),
        use_dictionary=draw(st.booleans()),
        store_schema=draw(st.booleans()),
    )
    return stream.getvalue()


@quick
@given(data=odd_parquet())
def test_odd_parquet(data: bytes) -> None:
    for reader in ("pairs_parquet", "items_parquet", "known_classes", "preferences"):
        feed(reader, data)
    feed("studio_items", data)


@st.composite
def odd_csv(draw: st.DrawFn) -> bytes:
    header = draw(
        st.sampled_from([["id", "class"], ["id", "", "x"], ["left", "right", "p", "similarity"]])
        | st.lists(st.sampled_from(NAMES), max_size=5)
    )
    cells = st.sampled_from([str(value) for value in ODD_VALUES if value is not None])
    cells |= st.sampled_from(['"a"', '"', "\ufeff1", "1_0", "٣", " 1", "\r", "spam", "ham", "-1"])
    rows = draw(st.lists(st.lists(cells, min_size=len(header), max_size=len(header)), max_size=4))
    end = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
    text = end.join(",".join(row) for row in [header, *rows])
    mark = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xff\xfe"]))
    return mark + text.encode(
        draw(st.sampled_from(["utf-8", "utf-8", "utf-16", "latin-1"])), "replace"
    )


@settings(quick, max_examples=50)
@given(data=odd_csv())
def test_odd_csv(data: bytes) -> None:
    for reader in ("pairs_csv", "items_csv", "known_classes", "preferences", "studio_items"):
        feed(reader, data)


NPY_TYPES = ["f2", "f4", ">f8", "g", "i1", ">i8", "u1", ">u8", "?", "c8", "S3", "U2", ">U2"]
NPY_TYPES += ["U0", "M8[s]", "V4"]


@st.composite
def odd_npy(draw: st.DrawFn) -> bytes:
    shape = draw(st.sampled_from([(3,), (3, 1), (2, 2), (0, 2), (3, 0), (), (1, 1, 1)]))
    type_ = draw(st.sampled_from(NPY_TYPES))
    size = int(np.prod(shape)) * np.dtype(type_).itemsize
    content = draw(st.binary(min_size=size, max_size=size) | st.just(bytes(size)))
    array = np.frombuffer(content, type_).reshape(shape) if size else np.zeros(shape, type_)
    stream = io.BytesIO()
    version = draw(st.sampled_from([(1, 0), (2, 0), (3, 0)]))
    order = np.asfortranarray if draw(st.booleans()) else np.ascontiguousarray
    np.lib.format.write_array(stream, order(array).reshape(shape), version=version)
    header = draw(st.sampled_from([(b"(2, 2)", b"(2,2L)"), (b"False", b"0"), (b"'descr'", b"'d'")]))
    return stream.getvalue().replace(*header) if draw(st.booleans()) else stream.getvalue()


@quick
@given(data=odd_npy())
def test_odd_npy(data: bytes) -> None:
    feed("items_npy", data)
    feed("npy_ids", data)


numbers = st.sampled_from([-1, 0, 1, 2, 4, 8, 2**31, 2**40, 2**63, 2**64])
entry = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "BF16", "I64", "BOOL", "F8_E4M3", "F4", "C64", "U8", "X"]),
        "shape": st.lists(numbers, max_size=3),
        "data_offsets": st.lists(numbers, min_size=2, max_size=2),
    }
)
headers = st.dictionaries(
    st.sampled_from(["fitted.mean_", "module_.layers.0.bias", "fitted.odd_", "", "__metadata__"]),
    entry,
    max_size=3,
)


@quick
@given(header=headers, body=st.binary(max_size=16), extra=st.sampled_from([0, 0, 0, 1, -1, 2**60]))
@example({"fitted.odd_": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, bytes(4), 0)
def test_lies_about_tensors(header: dict[str, Any], body: bytes, extra: int) -> None:
    config = valid("model_folder").split(MARK)[0]
    text = json.dumps(header).encode()
    length = max(len(text) + extra, 0)
    feed("model_folder", config + MARK + length.to_bytes(8, "little") + text + body)


# ---- bounds -----------------------------------------------------------------------------------


def test_members_of_an_archive_are_bounded() -> None:
    data = (CORPUS / "dataset_zip" / "whole").read_bytes()
    with mock.patch.object(sources, "_LARGEST_IMAGE", 10):
        assert "at most 10 are read" in feed("dataset_zip", data)
    assert not isinstance(feed("dataset_zip", data), str)


def test_a_bom_stays_in_an_id() -> None:
    """pyarrow drops it from the start of every block of lines."""
    table = feed("pairs_csv", b"left,right,similarity\n\xef\xbb\xbfa,b,0.5\n")
    assert table.left.tolist() == ["\ufeffa"]


def test_a_result_of_unknown_type_is_no_answer() -> None:
    kept = CORPUS / "label_studio" / "found-value-without-type"
    assert "no value of its type" in feed("label_studio", kept.read_bytes())
