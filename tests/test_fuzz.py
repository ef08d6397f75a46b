"""The readers of the library, whatever the bytes of a file are.

The harnesses in ``fuzz`` assert that a reader returns a valid object that round-trips, or raises
the documented error, and changes no file.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fuzz import READERS
from fuzz.odd_tables import odd_csv, odd_parquet
from fuzz.replay import *  # noqa: F403 - the tests of any set of readers
from fuzz.replay import Suite, quick
from fuzz.sandbox import MARK

SUITE = Suite(
    Path(__file__).parent / "fuzz" / "corpus",
    {
        "items_csv": "full", "items_npy": "f8", "items_parquet": "full", "known_classes": "words",
        "model_folder": "linear", "npy_ids": "text", "pairs_csv": "full", "pairs_parquet": "full",
    },
    frozenset({"items_npy", "items_parquet", "model_folder", "npy_ids", "pairs_parquet"}),
)  # fmt: skip


def feed(reader: str, data: bytes) -> Any:
    return READERS[reader].one_input(data)


@quick
@given(data=odd_parquet())
def test_odd_parquet(data: bytes) -> None:
    for reader in ("pairs_parquet", "items_parquet", "known_classes"):
        feed(reader, data)


@settings(quick, max_examples=50)
@given(data=odd_csv())
def test_odd_csv(data: bytes) -> None:
    for reader in ("pairs_csv", "items_csv", "known_classes"):
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
    st.sampled_from(["mean", "network.layers.0.bias", "odd", "", "__metadata__"]),
    entry,
    max_size=3,
)


@quick
@given(header=headers, body=st.binary(max_size=16), extra=st.sampled_from([0, 0, 0, 1, -1, 2**60]))
@example({"odd": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, bytes(4), 0)
def test_lies_about_tensors(header: dict[str, Any], body: bytes, extra: int) -> None:
    config = SUITE.case("model_folder").valid().split(MARK)[0]
    text = json.dumps(header).encode()
    length = max(len(text) + extra, 0)
    feed("model_folder", config + MARK + length.to_bytes(8, "little") + text + body)


def test_a_bom_stays_in_an_id() -> None:
    """pyarrow drops it from the start of every block of lines."""
    table = feed("pairs_csv", b"left,right,similarity\n\xef\xbb\xbfa,b,0.5\n")
    assert table.left.tolist() == ["\ufeffa"]
