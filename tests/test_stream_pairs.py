"""Pairs from a file: every row once an epoch, in an order that can be taken up anywhere."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from pair_files import make_pair_file, write_groups
from pairlearn import make_risk
from pairlearn.estimators.files import ItemIndex, PairFile, rewrite_pairs
from pairlearn.estimators.instances import standardise
from pairlearn.estimators.splits import Connected, Split, hold_out_items
from pairlearn.estimators.streams import ParquetPairStream, read_ahead, survey_pairs
from pairlearn.estimators.table import Table
from pairlearn.io import ItemTable, TableError, read_items, read_pairs
from pairlearn.io.sources import ParquetSource
from pairlearn.judgements import Judgements
from pairlearn.training import Fleet, Group, Member, PairStream

KINDS = ("both", "similarity", "difference", "preference")
GROUPS = [1, 7, 1000]  # rows of a row group: 60 groups, straddling ones, a single one


def stream_of(file: PairFile, batch: int = 4, block: int = 12, **options: Any) -> ParquetPairStream:
    survey = survey_pairs(file, options.pop("split", None))
    seed = options.pop("seed", 0)
    return ParquetPairStream(replace(survey, block_pairs=block), batch, seed)


def rows_of(blocks: Iterator[Judgements] | list[Judgements]) -> list[tuple[Any, ...]]:
    """Everything that is known of each row, in order."""
    rows: list[tuple[Any, ...]] = []
    for block in blocks:
        weights = [np.where(block.of(kind), block.weight, 0) for kind in KINDS]
        columns = [*block.ends.T, block.u, block.v, *weights]
        rows += zip(*(column.tolist() for column in columns), strict=True)
    return rows


def in_memory(file: PairFile) -> Table:
    """The same as a table, which has been checked elsewhere."""
    return Table.of_items(file.items, read_pairs(file.path).judgements(file.items))


# ---- the order of an epoch --------------------------------------------------------------------


@pytest.mark.parametrize("rows", GROUPS)
@pytest.mark.parametrize("block", [4, 12, 1000])
def test_every_row_comes_once_an_epoch(tmp_path: Path, rows: int, block: int) -> None:
    stream = stream_of(make_pair_file(tmp_path, rows=rows), block=block)
    assert isinstance(stream, PairStream)
    table = in_memory(stream.table.file)
    expected = sorted(rows_of([table.rows("auto")]))
    assert stream.table.kinds == table.kinds == KINDS
    assert stream.pairs == len(expected)
    for epoch in (0, 1, 5):
        blocks = list(stream.blocks(epoch, 0))
        np.testing.assert_allclose(sorted(rows_of(blocks)), expected, atol=1e-12)
        assert [len(one.u) for one in blocks[:-1]] == [stream.block_pairs] * (len(blocks) - 1)


def test_epochs_and_seeds_have_orders_of_their_own(tmp_path: Path) -> None:
    file = make_pair_file(tmp_path)
    stream = stream_of(file)
    first, second = (rows_of(stream.blocks(epoch, 0)) for epoch in (0, 1))
    assert first != second
    assert first == rows_of(stream_of(file).blocks(0, 0))
    assert first != rows_of(stream_of(file, seed=1).blocks(0, 0))
    # Row groups change places too, not only rows within a block.
    head, other = (set(rows_of(list(stream.blocks(epoch, 0))[:1])) for epoch in (0, 1))
    assert head != other


@pytest.mark.parametrize("rows", GROUPS)
def test_an_epoch_is_taken_up_at_any_block(tmp_path: Path, rows: int) -> None:
    stream = stream_of(make_pair_file(tmp_path, rows=rows), block=8)
    whole = [rows_of([block]) for block in stream.blocks(3, 0)]
    for start in range(len(whole) + 1):
        assert [rows_of([block]) for block in stream.blocks(3, start)] == whole[start:]


def test_each_row_group_is_decoded_once(tmp_path: Path, monkeypatch: Any) -> None:
    stream = stream_of(make_pair_file(tmp_path, rows=7), block=8)
    decoded: list[int] = []
    read = ParquetSource.group_batches

    def counted(self: ParquetSource, *args: Any) -> Iterator[Any]:
        for group, columns in read(self, *args):
            decoded.append(group)
            yield group, columns

    monkeypatch.setattr(ParquetSource, "group_batches", counted)
    list(stream.blocks(0, 0))
    assert sorted(decoded) == list(range(9))
    decoded.clear()
    list(stream.blocks(0, 6))  # of 8 or so
    assert len(decoded) < 5


def peaks(folder: Path, n: int) -> tuple[int, int]:
    """Most bytes of numpy and of Arrow in an epoch of n pairs in a single row group."""
    rng = np.random.default_rng(0)
    left = rng.integers(0, 100, n)
    columns = {"left": left, "right": (left + 1) % 100, "similarity": rng.random(n)}
    path = write_groups(folder / "pairs.parquet", columns, n)
    survey = survey_pairs(PairFile(path, read_items(folder / "items.npy", mapped=True)), sample=100)
    stream = ParquetPairStream(replace(survey, block_pairs=1 << 14), 256, 0)
    del left, columns
    tracemalloc.start()
    before, most = pyarrow.total_allocated_bytes(), 0
    for _ in stream.blocks(0, 0):
        most = max(most, pyarrow.total_allocated_bytes() - before)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, most


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "items.npy", np.zeros((100, 1), np.float32))
    small, large = peaks(tmp_path, 300_000), peaks(tmp_path, 900_000)
    assert large[0] < 1.2 * small[0]
    assert large[1] < 1.2 * small[1] + 1e6


# ---- the thread -------------------------------------------------------------------------------


def alive() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("pairlearn-read-ahead")]


def test_errors_of_the_thread_come_up() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    items = read_ahead(broken())
    assert next(items) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(items)
    assert not alive()


def test_the_thread_ends_with_its_consumer_and_is_one_item_ahead() -> None:
    made_so_far: list[int] = []

    def endless() -> Iterator[int]:
        while True:
            made_so_far.append(len(made_so_far))
            yield made_so_far[-1]

    items = read_ahead(endless())
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    items.close()  # type: ignore[attr-defined]
    assert not alive()
    assert len(made_so_far) <= 4


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    stream = stream_of(make_pair_file(tmp_path))
    make_pair_file(tmp_path, seed=1)
    with pytest.raises(TableError, match=r"pairs\.parquet was changed while it was being read"):
        list(stream.blocks(0, 0))


# ---- the survey -------------------------------------------------------------------------------


def assert_counted(file: PairFile) -> None:
    """A survey tells what the table in memory does."""
    survey, table = survey_pairs(file), in_memory(file)
    pairs = ~table.statements.single
    others = {"self_pairs": 0, "pairs": pairs.sum(), "soft": table.statements.soft.sum()}
    assert survey.counts == table.statements.counts() | others
    assert survey.training == len(table.statements)
    np.testing.assert_array_equal(survey.used, table.used)
    np.testing.assert_array_equal(survey.mentioned, np.isin(np.arange(len(file.items)), table.used))
    expected = np.where(np.isin(np.arange(len(file.items)), table.spare), 0, table.item_weight())
    np.testing.assert_allclose(survey.item_weight(), expected)
    if table.statements.has("similarity").any():
        expected = table.prior(table.statements, "negative")
        assert survey.prior(survey.judged, "negative") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rows", GROUPS)
def test_the_survey_counts_what_there_is(tmp_path: Path, rows: int) -> None:
    assert_counted(make_pair_file(tmp_path, rows=rows))


@pytest.mark.parametrize("rows", GROUPS)
@pytest.mark.parametrize("pairs", [4, 0])
def test_items_that_stand_alone_count_as_in_memory(tmp_path: Path, rows: int, pairs: int) -> None:
    nothing = [None] * 5
    columns: dict[str, Any] = {"left": [*"aabbcdefg"], "right": [*"bccd", *nothing]}
    columns |= {"similarity": [0.5, 0.7, 0.2, 0.1, *nothing], "weight": [1, 2, 3, 4, 1, 2, 1, 2, 3]}
    columns["label"] = [*nothing[1:], "positive", "negative", "positive", "negative", "positive"]
    columns = {name: values[4 - pairs :] for name, values in columns.items()}
    path = write_groups(tmp_path / "pairs.parquet", columns, rows)
    assert_counted(PairFile(path, ItemTable([*"abcdefgh"], np.arange(8.0)[:, None])))


def test_a_sample_is_uniform_and_has_every_kind(tmp_path: Path) -> None:
    survey = survey_pairs(
        make_pair_file(tmp_path, pairs=4000, items=3000, rows=500), Split(seed=3), sample=400
    )
    ends = Judgements.concatenate(survey.sampled).ends.tolist()
    assert 320 < len(ends) < 480  # four standard deviations
    row = {tuple(pair): i for i, pair in enumerate(read_pairs(survey.file.path).ids().tolist())}
    mean = np.mean([row[tuple(pair)] for pair in ends])
    assert abs(mean - 2000) < 4 * 4000 / np.sqrt(12 * 400)
    tiny = survey_pairs(make_pair_file(tmp_path), sample=1)
    assert set(tiny.judged.kinds()) == {"both", "similarity", "difference", "preference"}


def test_held_out_rows_are_not_trained_on(tmp_path: Path) -> None:
    file = make_pair_file(tmp_path, pairs=400, items=40, rows=50)
    held = survey_pairs(file).connected.held_out(0.2, 1000, seed=1)
    split = Split(held, validation=0.3, seed=2)
    survey = survey_pairs(file, split)
    table = read_pairs(file.path)
    assert table.preference is not None
    inside = held[table.ids().astype(int)].sum(1)
    statements = table.judged.astype(int) + (table.preference != 0)
    assert len(Judgements.concatenate(survey.measuring)) == statements[inside == 2].sum()
    stopping = Judgements.concatenate(survey.validating).ends
    assert len(stopping) + survey.training == statements[inside == 0].sum()
    trained = rows_of(ParquetPairStream(replace(survey, block_pairs=64), 8, 0).blocks(0, 0))
    seen = {tuple(sorted(map(int, row[:2]))) for row in trained}
    assert not seen & {tuple(sorted(pair)) for pair in stopping.tolist()}
    assert not held[[item for pair in seen for item in pair]].any()
    # Items weigh as in memory, where those to stop by are a part of the table.
    expected = survey_pairs(file, Split(held)).item_weight()
    np.testing.assert_allclose(survey.item_weight(), expected)


@pytest.mark.parametrize("together", [2, 3, 30])
def test_about_the_pairs_that_are_held_out_in_memory(together: int) -> None:
    """As many where pairs connect few items, and about as many where they connect many."""
    rng = np.random.default_rng(0)
    items = rng.permutation(600).reshape(-1, together)
    ends = np.concatenate([items[:, [k, k + 1]] for k in range(together - 1)])
    if together == 30:
        ends = np.concatenate([rng.choice(row, (200, 2)) for row in items])
    training, held = hold_out_items(ends, 0.2, seed=1)
    connected = Connected(700)  # a hundred in no pair
    for part in np.array_split(ends, 7):
        connected.add(part)
    apart = connected.held_out(0.2, 10**6, seed=1)
    inside = apart[ends].sum(1)
    assert not apart[600:].any()
    counts, wanted = [(inside == k).sum() for k in (0, 2)], [training.sum(), held.sum()]
    assert counts == wanted if together < 30 else counts == pytest.approx(wanted, rel=0.1)
    assert (connected.held_out(0.2, 50, seed=1)[ends].sum(1) == 2).sum() <= 60


# ---- what is refused --------------------------------------------------------------------------


def refused(folder: Path, columns: dict[str, Any], **options: Any) -> str:
    np.save(folder / "items.npy", np.zeros((5, 2), np.float32))
    path = write_groups(folder / "bad.parquet", columns, 2)
    with pytest.raises(TableError) as caught:
        survey_pairs(PairFile(path, read_items(folder / "items.npy", mapped=True), **options))
    return str(caught.value).replace(f"{folder}/", "")


def test_bad_rows_are_named(tmp_path: Path) -> None:
    good = {"left": [0, 1, 2, 3, 4], "right": [1, 2, 3, 4, 0], "similarity": [0.5] * 5}
    assert refused(tmp_path, good | {"left": [0, 1, 2, 7, 4]}) == (
        "bad.parquet, row 4: left 7 is not among the items in items.npy"
    )
    assert refused(tmp_path, good | {"right": [1, 2, 3, 4, -1]}) == (
        "bad.parquet, row 5: right -1 is not among the items in items.npy"
    )
    bad = good | {"similarity": [0.5, 0.5, 0.5, 0.5, 1.5]}
    assert "bad.parquet, row 5: similarity is 1.5, outside [0, 1]" in refused(tmp_path, bad)
    assert "similarity is inf" in refused(
        tmp_path, good | {"similarity": [0.5] * 4 + [np.inf]}, noisy=True
    )
    for name, last, message in [
        ("lable", None, ": column 'lable' looks like 'label'; rename it so, or otherwise"),
        ("lable", 0.5, ", row 5: right is empty; every row needs it"),
        ("confidence", 0.5, ", row 5: right is empty; every row needs it"),
    ]:
        bad = good | {"right": [1, 2, 3, 4, None], "similarity": [0.5] * 4 + [last]}
        assert refused(tmp_path, bad | {name: [1] * 5}) == "bad.parquet" + message
    held = {"left": [0], "right": [1], "similarity": [0.5]}
    write_groups(tmp_path / "one.parquet", held, 1)
    file = PairFile(tmp_path / "one.parquet", read_items(tmp_path / "items.npy", mapped=True))
    with pytest.raises(TableError, match="no row that is left for training"):
        survey_pairs(file, Split(np.ones(5, bool)))


def test_csv_is_refused_and_can_be_rewritten(tmp_path: Path) -> None:
    np.save(tmp_path / "items.npy", np.zeros((5, 2), np.float32))
    csv = tmp_path / "pairs.csv"
    csv.write_text(
        "left,right,similarity,difference,preference,label\n"
        "0,1,.5,,,\n1,2,,.25,left,\n2,3,,,right,\n4,,,,,positive\n"
    )
    with pytest.raises(TableError, match=r"rewrite_pairs\('.*pairs\.csv', 'pairs\.parquet'\)"):
        PairFile(csv, read_items(tmp_path / "items.npy", mapped=True))
    out = tmp_path / "pairs.parquet"
    assert rewrite_pairs(csv, out, rows=2) == 4
    assert read_pairs(out) == read_pairs(csv)
    file = PairFile(out, read_items(tmp_path / "items.npy", mapped=True))
    assert file.group_rows == [2, 2] and len(survey_pairs(file).judged) == 5
    assert read_pairs(out).ignored == file.ignored() == {}
    assert parquet.read_table(out)["label"].null_count == 3
    old = pyarrow.table({**parquet.read_table(out).to_pydict(), "label": ["", "", "", "positive"]})
    parquet.write_table(old, out)  # as a version before wrote it
    assert read_pairs(out).ignored == {}
    with pytest.raises(TableError, match="what is read here"):
        rewrite_pairs(out, out)


# ---- items ------------------------------------------------------------------------------------

IDS = {
    "rows": (np.arange(25), lambda ids: ids),
    "dense": (np.arange(25)[::-1] * 3 - 7, lambda ids: ids),
    "far apart": (np.arange(25)[::-1] * 10**12, lambda ids: ids),
    "text": (np.array([f"id {i:02}" for i in range(25)][::-1]), lambda ids: ids),
    "encoded": (
        np.array([f"id {i:02}" for i in range(25)]),
        lambda ids: pyarrow.array(ids).dictionary_encode(),
    ),
    "text in the pairs": (np.arange(25)[::-1] + 5, lambda ids: ids.astype(str)),
    "text in the items": (np.array([str(i) for i in range(25)]), lambda ids: ids.astype(int)),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_of_any_kind(tmp_path: Path, name: str) -> None:
    known, stored = IDS[name]
    file = make_pair_file(tmp_path)
    table = read_pairs(file.path)
    expected = rows_of(stream_of(file).blocks(0, 0))
    np.save(tmp_path / "ids.npy", known)
    columns: dict[str, Any] = {
        side: stored(known[getattr(table, side)]) for side in ("left", "right")
    }
    for name in ("similarity", "difference", "weight"):
        columns[name] = pyarrow.array(getattr(table, name), from_pandas=True)
    assert table.preference is not None
    columns["preference"] = np.array(["left", "", "right"])[table.preference + 1].tolist()
    path = write_groups(tmp_path / "other.parquet", columns, 7)
    items = read_items(tmp_path / "items.npy", tmp_path / "ids.npy", mapped=True)
    assert rows_of(stream_of(PairFile(path, items)).blocks(0, 0)) == expected
    absent: Any = pyarrow.array(["nobody"] if known.dtype.kind == "U" else [-(10**9)])
    assert ItemIndex(items.ids).rows(absent).tolist() == [-1]


def test_ids_are_unique_and_features_checked(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[1.0], [np.nan]]))
    with pytest.raises(TableError, match=r"x\.npy, row 2: feature 'x0' is missing"):
        read_items(tmp_path / "x.npy", mapped=True)
    np.save(tmp_path / "x.npy", np.zeros((2, 1)))
    np.save(tmp_path / "ids.npy", np.array([4, 4]))
    with pytest.raises(TableError, match=r"ids\.npy, row 2: id 4 is in row 1 already"):
        read_items(tmp_path / "x.npy", tmp_path / "ids.npy", mapped=True)
    assert ItemIndex(np.arange(3)).rows(pyarrow.array([2, 3], pyarrow.uint64())).tolist() == [2, -1]


def test_mapped_features_reach_the_fleet_without_a_copy(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(3, 2, (50, 4))
    np.save(tmp_path / "x.npy", x)
    items = read_items(tmp_path / "x.npy", mapped=True)
    stream = stream_of(make_pair_file(tmp_path))
    features = standardise(items.features, x.mean(0), x.std(0), tmp_path)
    assert isinstance(features, np.memmap)
    np.testing.assert_allclose(features, (x - x.mean(0)) / x.std(0), rtol=1e-6, atol=1e-7)
    member = Member(make_risk("likelihood-abs"), None)
    group = Group(stream, [member], kinds=stream.table.kinds)
    fleet = Fleet(features, [group], "linear", batch_size=4, device="cpu")
    assert fleet.features.data_ptr() == features.ctypes.data
    assert {path.name for path in tmp_path.iterdir()} == {"x.npy", "items.npy", "pairs.parquet"}
