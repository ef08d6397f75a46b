"""Valid files: contents, round trips and streams."""

from __future__ import annotations

import io
import math
import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from fuzz import READERS
from pairlearn.estimators.features import ColumnsWarning, FeatureStep
from pairlearn.io import (
    ItemTable,
    TableError,
    iter_items,
    read_items,
    read_pairs,
    write_items,
    write_pairs,
)
from pairlearn.io.cells import ColumnChoice
from pairlearn.io.item_files import join_batches
from pairlearn.judgements import Judgements, kinds
from pairlearn.judgements import table as judgements
from tables import contents, pair_table

NAN = math.nan


def read(data: bytes, reader: str = "pairs_csv") -> Any:
    """Read a table in all the ways of the fuzzer's harness, which must agree."""
    return READERS[reader].one_input(data)


# ---- contents ---------------------------------------------------------------------------------

PLAIN = pair_table([1, 2], [2, 3], [0.5, NAN], [NAN, -0.25])


@pytest.mark.parametrize(
    "data",
    [
        b"left,right,similarity,difference\n1,2,0.5,\n2,3,,-0.25\n",
        b"left,right,similarity,difference\n1,2,0.5,\n2,3,,-0.25",
        b"left,right,similarity,difference\r\n1,2,0.5,\r\n2,3,,-0.25\r\n",
        b"\xef\xbb\xbfleft,right,similarity,difference\n1,2,0.5,\n2,3,,-0.25\n",
        b"difference,similarity,right,left\n,.5,2,1\n-25e-2,,3,2\n",
        b'"left","right","similarity","difference"\n"1","2","0.5",""\n"2","3","","-0.25"\n',
        b" left , right,similarity ,difference\n1,2, 0.5 ,\n2,3, ,\t-0.25\n",
        b'left,right,similarity,difference,preference\n1,2,"0.5\n",NaN,NA\n2,3, n/a ,-0.25,?\n',
        b"\nleft,right,similarity,difference\n\n1,2,+0.5,\n\r\n2,3,,-.25\n\n",
        b",left,right,similarity,difference,note\n0,1,2,5e-1,,caf\xc3\xa9\n1,2,3,,-0.25,\n",
        b'left,right,similarity,difference,note\n1,2,0.5,,"a, ""b""\nc"\n2,3,,-0.25,5"\n',
        b"left;right;similarity;difference\n1;2;0.5;\n2;3;;-0.25\n",
        b"left\tright\tsimilarity\tdifference\n1\t2\t0.5\t\n2\t3\t\t-0.25\n",
    ],
)
def test_csv_pairs(data: bytes) -> None:
    assert read(data) == PLAIN


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        ("0 -5 9223372036854775807", [0, -5, 2**63 - 1]),
        ("1 2 9223372036854775808", ["1", "2", "9223372036854775808"]),
        ("1 2 x", ["1", "2", "x"]),
        ("1 2 007", ["1", "2", "007"]),
        ("1 2 3.0", ["1", "2", "3.0"]),
        ("1 2 1_0", ["1", "2", "1_0"]),
        ("1 2 ３", ["1", "2", "３"]),
        ("1 2 \u2028", ["1", "2", "\u2028"]),
    ],
)
def test_csv_ids(ids: str, kept: list[Any]) -> None:
    rows = "".join(f"{left},0,0.5\n" for left in ids.split(" "))
    assert read(f"left,right,similarity\n{rows}".encode()).left.tolist() == kept


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_csv(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"pairs.csv.{suffix}"
    with pyarrow.output_stream(str(path), compression="detect") as stream:
        stream.write(b"left,right,similarity,difference\n1,2,0.5,\n2,3,,-0.25\n")
    assert read_pairs(path) == PLAIN
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(TableError, match=str(path)):
        read_pairs(path)


def test_the_first_ten_bad_rows_are_listed(tmp_path: Path) -> None:
    rows = [f"{row},{row + 1},{1.5 if row % 2 else 0.5}" for row in range(40)]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["left,right,similarity", *rows]))
    with pytest.raises(TableError) as caught:
        read_pairs(path)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"{path}, row 2: similarity is 1.5")
    assert [line.split(":")[0] for line in lines[1:]] == [f"  row {k}" for k in range(4, 22, 2)]


def test_scales(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("left,right,similarity,difference\n1,2,5,-2\n2,3,1,\n")
    scales: dict[str, Any] = {"similarity_scale": (1, 5), "difference_scale": (-2, 2)}
    table = read_pairs(path, **scales)
    assert table.similarity.tolist() == [1, 0] and table.difference[0] == -1
    frame = pd.read_csv(path)
    assert read_pairs(frame, **scales) == table
    assert read_pairs(pyarrow.table(frame.to_dict("list")), **scales) == table
    with pytest.raises(TableError, match="row 1: similarity is 5, outside the scale 1,4"):
        read_pairs(path, similarity_scale=(1, 4), difference_scale=(-2, 2))
    with pytest.raises(ValueError, match=r"lowest and highest answer, as in 1,5; got 5"):
        read_pairs(path, similarity_scale=5)


def test_optional_columns() -> None:
    data = (
        b"left,right,similarity,preference,weight,annotator\n"
        b"1,2,,left,,ann\n1,1,0.5, right ,2,\n1,2,0.5,,1e3,7\n"
    )
    assert read(data) == pair_table(
        [1, 1, 1],
        [2, 1, 2],
        [NAN, 0.5, 0.5],
        None,
        preference=[-1, 1, NAN],
        weight=[1, 2, 1000],
        annotator=["ann", "", "7"],
    )


@pytest.mark.parametrize(("row", "text"), [(99, "x"), (50, '"50"'), (0, "0")])
def test_blocks_and_batches_end_in_between(row: int, text: str) -> None:
    """A text id far down makes all ids text; quotes make no difference."""
    names = [str(number) for number in range(100)]
    names[row] = text
    rows = [f"{name},{number + 1},0.{number}" for number, name in enumerate(names)]
    table = read("\n".join(["left,right,similarity", *rows]).encode())
    assert table.left.tolist() == (names if text == "x" else list(range(100)))
    assert table.right.dtype.kind == table.left.dtype.kind
    assert table.similarity.tolist() == [float(f"0.{number}") for number in range(100)]


def test_typed_parquet() -> None:
    columns = {
        " left": pyarrow.array(["a", "b"]).dictionary_encode(),
        "right": pyarrow.array(["a", "1"], pyarrow.large_string()),
        "similarity": pyarrow.array([True, None]),
        "difference": pyarrow.array([None, np.float16(0.25)], pyarrow.float16()),
        "weight": pyarrow.array([2, None], pyarrow.uint8()),
        "annotator": pyarrow.array([7, None], pyarrow.int32()),
        "preference": pyarrow.array([None, None], pyarrow.null()),
        "nested": [[1], [2]],
    }
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), stream)
    expected = pair_table(
        ["a", "b"], ["a", "1"], [1, NAN], [NAN, 0.25], weight=[2, 1], annotator=["7", ""]
    )
    assert read(stream.getvalue(), "pairs_parquet") == expected


def test_npy(tmp_path: Path) -> None:
    features = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "x.npy", features)
    np.save(tmp_path / "ids.npy", np.array(["a", "b", "c"]))
    assert contents(read_items(tmp_path / "x.npy")) == contents(ItemTable(None, features))
    named = read_items(tmp_path / "x.npy", tmp_path / "ids.npy")
    assert contents(named) == contents(ItemTable(["a", "b", "c"], features))
    batches = list(iter_items(tmp_path / "x.npy", 2, tmp_path / "ids.npy"))
    assert [len(batch) for batch in batches] == [2, 1]
    assert contents(join_batches(batches)) == contents(named)
    for dtype in (np.float16, np.int8, bool, ">f8", np.float32):
        np.save(tmp_path / "x.npy", np.asfortranarray((features % 2).astype(dtype)))
        items = read_items(tmp_path / "x.npy")
        assert items.features.dtype == np.float32
        assert contents(items) == contents(ItemTable(None, features % 2))
        items.features[:] = 9  # a copy: the file stays as it is
        again = read_items(tmp_path / "x.npy")
        assert contents(again) == contents(ItemTable(None, features % 2))


class Share(kinds.Kind):
    """How sure somebody is that an item is positive."""

    name = "share"
    columns = (kinds.Column("share", 0, 1),)
    single = True


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_about_one_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """Including a kind of statement that only this test has."""
    monkeypatch.setattr(kinds, "KINDS", [*kinds.KINDS, Share()])
    monkeypatch.setattr(judgements, "KINDS", kinds.KINDS)
    table = pair_table(
        [7, 7, 9, 8], [8, None, None, 7], [0.5, NAN, NAN, 1], None,
        weight=[1, 2, 1, 1], label=["", "positive", "", ""], share=[NAN, NAN, 0.25, NAN],
    )  # fmt: skip
    path = write_pairs(table, tmp_path / f"pairs{suffix}")
    assert read_pairs(path) == table
    statements = table.located([9, 8, 7])
    assert statements.kinds() == ("similarity", "label", "share")
    assert statements.ends.tolist() == [[2, 1], [2, -1], [0, -1], [1, 2]]
    assert statements.u.tolist() == [0.5, 1, 0.25, 1]
    assert statements.weight.tolist() == [1, 2, 1, 1]


def test_hard_answers_in_words() -> None:
    table = read(b"left,right,same\n1,2,same\n2,3,different\n3,4,no\n4,5,yes\n")
    assert table.similarity.tolist() == [1, 0, 0, 1]
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table({"left": [1], "right": [2], "same": [True]}), stream)
    assert read(stream.getvalue(), "pairs_parquet").similarity.tolist() == [1]


def test_whole_numbers_with_gaps_are_ids(tmp_path: Path) -> None:
    """A data frame has them as floating numbers."""
    columns = {"left": [1.0, 2.0], "right": [2.0, None], "similarity": [0.5, None]}
    parquet.write_table(
        pyarrow.table(columns | {"label": [None, "positive"]}), tmp_path / "p.parquet"
    )
    table = read_pairs(tmp_path / "p.parquet")
    assert table.left.tolist() == [1, 2] and table.right.tolist() == ["2", ""]
    frame = pd.read_parquet(tmp_path / "p.parquet")
    assert frame["right"].dtype == np.float64
    assert read_pairs(frame) == table


def test_annotators_may_be_whole_numbers_with_gaps(tmp_path: Path) -> None:
    frame = pd.DataFrame({"left": [1, 2], "right": [2, 3], "same": [1, 0], "annotator": [7, None]})
    frame.to_parquet(tmp_path / "p.parquet")
    assert read_pairs(tmp_path / "p.parquet").annotator.tolist() == ["7", ""]
    table = read_pairs(frame)
    assert table.annotator.tolist() == ["7", ""] and table.left.tolist() == [1, 2]


def test_labels_beside_pairs_are_ignored() -> None:
    """Whatever they contain; labels can be numbers."""
    data = b"left,right,similarity,difference,label\n1,2,0.5,,spam\n2,3,,-0.25,\n"
    assert read(data) == PLAIN
    table = read(data.replace(b"spam", b"").replace(b"2,3,,-0.25,", b"2,,,,0"))
    assert table.columns()["label"].tolist()[1] == 0 and table.left.tolist() == [1, 2]
    assert table.counts()["label"] == 1


def test_other_columns_are_not_taken_for_misspelt_where_every_row_states_something() -> None:
    table = read(b"left,right,similarity,confidence,shape\n1,2,0.5,,round\n2,,,0.25,flat\n")
    assert table.counts()["confidence"] == 1


def test_the_index_of_a_data_frame_is_no_feature(tmp_path: Path) -> None:
    """As pandas writes it, and as it reads that again."""
    frame = pd.DataFrame({"id": [5, 7, 6], "x": [1.0, 2.0, 4.0]}, index=[9, 4, 7])
    frame.to_csv(tmp_path / "a.csv")
    frame.to_parquet(tmp_path / "b.parquet")
    again = pd.read_csv(tmp_path / "a.csv")
    again.to_csv(tmp_path / "c.csv", index=False)
    for file, name in (("a.csv", ""), ("b.parquet", "__index_level_0__"), ("c.csv", "Unnamed: 0")):
        items = read_items(tmp_path / file)
        assert items.names == ("x",)
        assert items.notes == (f"column {name!r} has no name, and is left out",)
        (part,) = iter_items(tmp_path / file)
        assert contents(part) == contents(items)
    asked = read_items(tmp_path / "c.csv", columns=ColumnChoice(columns=["Unnamed: 0"]))
    assert asked.names == ("Unnamed: 0",) and not asked.notes
    step = FeatureStep()
    with pytest.warns(ColumnsWarning, match="'Unnamed: 0' has no name"):
        assert step.numbers(again).tolist() == [[1], [2], [4]]


# ---- round trips ------------------------------------------------------------------------------

words = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('",; #\ufeff'), max_size=6
)
integers = st.integers(-(2**63), 2**63 - 1)
numbers = st.floats(allow_infinity=False)


@st.composite
def pair_tables(draw: st.DrawFn) -> Judgements:
    ids = draw(st.sampled_from([integers, words.filter(bool)]))
    judgements = st.tuples(numbers, numbers).filter(lambda pair: not all(map(math.isnan, pair)))
    weights, sides = st.floats(1e-300, 1e300), st.sampled_from([-1, NAN, 1])
    rows = draw(
        st.lists(st.tuples(ids, ids, judgements, sides, weights, words), min_size=1, max_size=20)
    )
    left, right, judged, *columns = (list(column) for column in zip(*rows, strict=True))
    optional = zip(("preference", "weight", "annotator"), columns, strict=True)
    given = {name: column for name, column in optional if draw(st.booleans())}
    return pair_table(left, right, *np.array(judged).T, **given, noisy=True)


def as_csv_gives_it(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """CSV does not distinguish integers from text that looks like them."""
    try:
        integers = values.astype(np.int64)
    except (ValueError, OverflowError):
        return values
    return integers if np.array_equal(integers.astype(str), values.astype(str)) else values


@settings(max_examples=30)
@given(table=pair_tables(), suffix=st.sampled_from([".csv", ".parquet"]))
def test_pairs_round_trip(table: Judgements, suffix: str) -> None:
    if suffix == ".csv":
        table = replace(table, ids=as_csv_gives_it(table.ids))
    with tempfile.TemporaryDirectory() as folder:
        path = write_pairs(table, Path(folder, f"pairs{suffix}"))
        again = read_pairs(path, noisy=True)
    assert again == table


@settings(max_examples=30)
@given(
    names=st.lists(st.sampled_from(["a", "é", "x0", "a,b", '"', "id2"]), min_size=1, unique=True),
    some=st.lists(integers, min_size=1, max_size=20, unique=True)
    | st.lists(words.filter(bool), min_size=1, max_size=20, unique=True),
    seed=st.integers(0, 99),
    suffix=st.sampled_from([".csv", ".parquet"]),
    rows=st.integers(1, 7),
)
def test_items_round_trip(
    names: list[str], some: list[Any], seed: int, suffix: str, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-44, 38, size=(len(some), len(names)))
    features = (rng.normal(size=scale.shape) * scale).astype(np.float32)
    column = np.array(some)
    items = ItemTable(as_csv_gives_it(column) if suffix == ".csv" else column, features, names)
    with tempfile.TemporaryDirectory() as folder:
        path = write_items(items, Path(folder, f"items{suffix}"))
        again = read_items(path)
        streamed = list(iter_items(path, rows))
    assert contents(again) == contents(items)
    assert again.features.tobytes() == items.features.tobytes()
    assert all(len(part) == rows for part in streamed[:-1])
    assert contents(join_batches(streamed)) == contents(items)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_many_rows_round_trip(tmp_path: Path, suffix: str) -> None:
    """More than one batch of every reader and writer."""
    rng = np.random.default_rng(0)
    n = 70_000
    table = pair_table(
        rng.integers(500, size=n), rng.integers(500, size=n), rng.random(n), rng.random(n)
    )
    path = write_pairs(table, tmp_path / f"pairs{suffix}")
    assert read_pairs(path) == table


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """Parquet files are written with checksums, which are verified."""
    similarity = np.random.default_rng(0).random(50)
    table = pair_table(np.arange(50), np.arange(50), similarity, None)
    path = write_pairs(table, tmp_path / "pairs.parquet")
    data = bytearray(path.read_bytes())
    data[data.index(similarity[20].tobytes())] ^= 1
    path.write_bytes(data)
    with pytest.raises(TableError, match="CRC"):
        read_pairs(path)


def test_memory_of_pairs_with_names_of_annotators(tmp_path: Path) -> None:
    """A million of them take less than half a gigabyte."""
    n = 50_000
    rows = (f"{k},{k + 1},0.5,0.1,annotator {k % 7}\n" for k in range(n))
    path = tmp_path / "pairs.csv"
    path.write_text("left,right,similarity,difference,annotator\n" + "".join(rows))
    tracemalloc.start()
    table = read_pairs(path)
    peak = tracemalloc.get_traced_memory()[1] / n
    tracemalloc.stop()
    assert len(table) == n and peak < 500
