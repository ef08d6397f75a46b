"""Valid Parquet and CSV files with odd content."""

from __future__ import annotations

import io

import pyarrow
from hypothesis import strategies as st
from pyarrow import parquet

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
