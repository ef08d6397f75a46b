import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyarrow import parquet

from pairlearn_bench import DuplicateRunError, Record, Run, RunStore, StoreError, StoreLockedError
from pairlearn_bench.store import read_records

PATIENCE = 120


def make_run(seed: int = 0) -> Run:
    return Run(dataset="digits", prior=0.2, seed=seed, method="likelihood-abs", pairs=9, epochs=1)


def work(path: Path, runs: int, pause: float = 0.0) -> None:
    """Run what is missing with a deterministic fake training."""
    with RunStore(path) as store:
        for run in store.missing([make_run(seed) for seed in range(runs)]):
            time.sleep(pause)
            accuracy = random.Random(run.key()).random()
            store.append(run, {"paper": accuracy, "stratified": accuracy / 2}, seconds=time.time())


@pytest.mark.parametrize(
    ("kills", "runs"), [(2, 150), pytest.param(40, 4000, marks=pytest.mark.long)]
)
def test_killed_and_restarted_ends_in_the_same_rows(tmp_path: Path, kills: int, runs: int) -> None:
    chance, context = random.Random(0), multiprocessing.get_context("forkserver")
    undisturbed, killed = RunStore(tmp_path / "whole.jsonl"), RunStore(tmp_path / "killed.jsonl")
    work(undisturbed.path, runs)
    assert len(undisturbed) == runs
    hit = 0
    for _ in range(kills):
        size = killed.path.stat().st_size if killed.path.exists() else 0
        worker = context.Process(target=work, args=(killed.path, runs, 0.02))
        worker.start()
        # From its first byte on it is appending: kill it at a random moment after that.
        deadline = time.monotonic() + PATIENCE
        while not (killed.path.exists() and killed.path.stat().st_size > size):
            assert time.monotonic() < deadline and worker.is_alive()
            time.sleep(0.0005)
        time.sleep(chance.random() * 0.2)
        worker.kill()
        worker.join()
        hit += worker.exitcode == -signal.SIGKILL
        assert len(killed) <= runs
        if len(killed) == runs:
            break
    assert hit > 0, "every worker was done before it could be killed"
    work(killed.path, runs)
    assert killed.rows() == undisturbed.rows()
    assert len(killed.path.read_bytes().splitlines()) == runs


def test_unfinished_last_line_is_ignored_and_cut_off(tmp_path: Path) -> None:
    first, second = make_run(0), make_run(1)
    first_line = Record(first, {"paper": 0.5}).line()
    second_line = Record(second, {"paper": 0.25}, {"device": "größer"}).line()
    path = tmp_path / "runs.jsonl"
    for cut in range(len(second_line)):
        path.write_bytes(first_line + second_line[:cut])
        store = RunStore(path)
        assert store.missing([first, second]) == [second], cut
        assert [record.run for record in store] == [first]
        assert path.read_bytes() == first_line + second_line[:cut], "reading changes nothing"
        store.append(second, {"paper": 0.25}, device="größer")
        assert path.read_bytes() == first_line + second_line
    assert RunStore(path).missing([second, first]) == []


def test_a_file_that_is_not_a_store_is_never_cut(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my only copy")
    with pytest.raises(StoreError, match="is not a run store"):
        RunStore(path).append(make_run(), {"paper": 0.5})
    assert path.read_text() == "my only copy"


@pytest.mark.parametrize(
    "line",
    [
        b"{broken\n",
        b"[]\n",
        b'{"dataset": "digits"}\n',
        b"\n",
        b"\x00\x00\n",
        b'{"dataset": "digits", "results": {"paper": NaN}}\n',
    ],
)
def test_damage_before_the_end_is_an_error_that_names_the_line(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "runs.jsonl"
    good = Record(make_run(), {"paper": 0.5}).line()
    path.write_bytes(good + line + Record(make_run(1), {"paper": 0.5}).line())
    with pytest.raises(StoreError, match=r"runs\.jsonl, line 2 is not a finished run"):
        len(RunStore(path))


@pytest.mark.parametrize(
    ("text", "shown"), [("7.5", "7.5"), ("-0.1", "-0.1"), ("NaN", "nan"), ('"0.5"', "'0.5'")]
)
def test_an_accuracy_outside_of_0_to_1_is_named_with_its_file_and_line(
    tmp_path: Path, text: str, shown: str
) -> None:
    path = tmp_path / "runs.jsonl"
    lines = [Record(make_run(seed), {"paper": 0.5}).line() for seed in (0, 1)]
    path.write_bytes(lines[0] + lines[1].replace(b"0.5", text.encode()))
    words = rf"runs\.jsonl, line 2 .*'paper' must be a number in \[0, 1\]; got {shown}$"
    with pytest.raises(StoreError, match=words):
        len(RunStore(path))


def test_duplicates_are_refused(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.jsonl")
    store.append(make_run(), {"paper": 0.5})
    with pytest.raises(DuplicateRunError, match="has this run already"):
        store.append(make_run(), {"paper": 0.6})
    with pytest.raises(DuplicateRunError):
        RunStore(store.path).append(make_run(), {"paper": 0.5})
    store.path.write_bytes(store.path.read_bytes() * 2)
    with pytest.raises(StoreError, match="line 2 repeats an earlier run"):
        len(RunStore(store.path))


@pytest.mark.parametrize(
    ("results", "notes", "words"),
    [
        *(({"paper": value}, {}, "result") for value in (float("nan"), "0.5", True, 10**400)),
        ({}, {}, "results are empty"),
        ({"paper": 0.5}, {"colour": "red"}, "'colour'"),
        ({"paper": 0.5}, {"device": "\x00"}, "note 'device'"),
    ],
)
def test_bad_results_and_notes_are_refused(
    tmp_path: Path, results: dict[str, float], notes: dict[str, str], words: str
) -> None:
    store = RunStore(tmp_path / "runs.jsonl")
    with pytest.raises(StoreError, match=words):
        store.append(make_run(), results, **notes)
    assert len(store) == 0


def test_two_writers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with RunStore(path) as store:
        with pytest.raises(StoreLockedError, match="by another process"):
            RunStore(path).append(make_run(), {"paper": 0.5})
        store.append(make_run(), {"paper": 0.5})
        assert len(RunStore(path)) == 1, "readers need no lock"
        with pytest.raises(StoreError, match="this very store"), store:
            pass
    RunStore(path).append(make_run(1), {"paper": 0.5})


def test_a_forked_worker_does_not_keep_the_lock(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, time\n"
        "from pairlearn_bench import RunStore\n"
        "with RunStore(sys.argv[1]):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        time.sleep(600); os._exit(0)\n"
        "    print(child, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "runs.jsonl"
    # The child shares the pipe, so read its one line and do not wait for the end.
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            assert parent.wait(PATIENCE) == -signal.SIGKILL
            deadline = time.monotonic() + PATIENCE
            while True:
                try:
                    RunStore(path).append(make_run(), {"paper": 0.5})
                    break
                except StoreLockedError:  # the child may not have got around to it yet
                    assert time.monotonic() < deadline
        finally:
            os.kill(child, signal.SIGKILL)
    assert len(RunStore(path)) == 1


def test_full_disk_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path / "runs.jsonl")
    store.append(make_run(), {"paper": 0.5})
    before = store.path.read_bytes()
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, line: write(file, line[:10]))
        with pytest.raises(OSError, match="disk is full"):
            store.append(make_run(1), {"paper": 0.5})
    assert store.path.read_bytes() == before
    store.append(make_run(1), {"paper": 0.5})
    assert len(RunStore(store.path)) == 2


def test_missing_keeps_the_order(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "deep" / "runs.jsonl")
    runs = [make_run(seed) for seed in (4, 1, 3, 0, 2)]
    assert store.missing(runs) == runs
    assert store.finished() == set()
    assert not store.path.exists(), "looking does not create"
    store.append(runs[1], {"paper": 0.5})
    store.append(runs[4], {"paper": 0.5})
    assert store.missing(runs) == [runs[0], runs[2], runs[3]]
    assert store.finished() == {runs[1].key(), runs[4].key()}


def test_a_reader_sees_what_a_writer_adds_and_a_file_that_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    reader, writer = RunStore(path), RunStore(path)
    writer.append(make_run(), {"paper": 0.5})
    assert len(reader) == 1
    writer.append(make_run(1), {"paper": 0.5})
    assert len(reader) == 2
    path.write_bytes(Record(make_run(7), {"paper": 0.1}).line())
    assert [record.run.seed for record in reader] == [7]
    path.unlink()
    assert len(reader) == 0


def test_rows_ignore_order_and_notes_but_not_results(tmp_path: Path) -> None:
    a, b, c = (RunStore(tmp_path / f"{name}.jsonl") for name in "abc")
    for seed in (0, 1):
        a.append(make_run(seed), {"paper": 0.5, "stratified": 0.4}, seconds=1.5, device="cpu")
    for seed in (1, 0):
        b.append(make_run(seed), {"stratified": 0.4, "paper": 0.5}, version="0.1")
        c.append(make_run(seed), {"stratified": 0.4, "paper": 0.5 + 1e-16 + seed * 1e-15})
    assert a.rows() == b.rows()
    assert a.rows() != c.rows()
    # One line is one object with the fields of the run.
    line = json.loads(a.path.read_text().splitlines()[1])
    outcome = {"results": {"paper": 0.5, "stratified": 0.4}, "seconds": 1.5, "device": "cpu"}
    assert line == {**make_run(1).fields(), **outcome}


def test_export(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.jsonl")
    store.append(make_run(), {"paper": 0.5, "annotator_paper": 0.75})
    store.append(make_run(1), {"paper": 0.25}, seconds=3.0)
    export = store.to_parquet(tmp_path / "out" / "runs.parquet")
    table = parquet.read_table(export)
    assert table.column("accuracy_paper").to_pylist() == [0.5, 0.25]
    assert table.column("accuracy_annotator_paper").to_pylist() == [0.75, None]
    assert table.column("seconds").to_pylist() == [None, 3.0]
    assert read_records(export) == list(store)
    assert [file.name for file in export.parent.iterdir()] == ["runs.parquet"]
