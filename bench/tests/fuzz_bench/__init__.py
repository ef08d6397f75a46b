"""Data sets and stores of runs, whatever their bytes are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fuzz.mutation import line_mutation
from fuzz.sandbox import Broken, attempt, folder, harness, parts, same
from pairlearn_bench.data import (
    Dataset,
    DatasetCorruptError,
    DatasetSpec,
    get_spec,
    write_npz_atomically,
)
from pairlearn_bench.data.loading import read_folder, to_arrays
from pairlearn_bench.runs import Record, StoreError
from pairlearn_bench.store import RunStore

# ---- data sets --------------------------------------------------------------------------------

GREY = replace(
    get_spec("pmu-ud"), name="small", shape=(4, 4), class_names=("0", "1"), positive=(1,),
    n_train=3, n_test=1, digest=None,
)  # fmt: skip


def data_set(spec: DatasetSpec, files: Mapping[str, bytes], named: str) -> Dataset | str | None:
    """Read the set from a folder with these files; the message names one of them."""
    place = folder(f"small-{named}")
    for name, data in files.items():
        (place / name).write_bytes(data)
    found = attempt(lambda: read_folder(spec, place), place / named, DatasetCorruptError)
    if found is None:
        raise Broken("nothing was found")
    if isinstance(found, Dataset):
        copy = place.parent / "small.npz"
        write_npz_atomically(copy, to_arrays(found))
        again: Any = read_folder(spec, place.parent)
        same(again.x.tolist(), found.x.tolist(), "written and read")
        same(again.y.tolist(), found.y.tolist(), "written and read")
    return found


NPZ = [b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"x.npy", b"y.npy", b"x_train.npy"]
NPZ += [b"\x93NUMPY\x01\x00", b"'descr': '|u1'", b"'<f8'", b"'|O'", b"(4, 4, 4)", b"x"]


@harness(NPZ)
def dataset_npz(data: bytes) -> Any:
    """A set in one file."""
    arrays, _ = parts(data, 2)
    return data_set(GREY, {"small.npz": arrays}, "small.npz")


# ---- runs -------------------------------------------------------------------------------------

RUNS = [f'"{name}": '.encode() for name in ("dataset", "prior", "seed", "method", "results")]
RUNS += [b'{"dataset": ', b"\n", b"NaN", b"1e999", b'"supervised"', b'"convex-0.5-relu"']


@harness(RUNS, line_mutation)
def run_store(data: bytes) -> list[Record] | str:
    place = folder("run_store")
    path = place / "runs.jsonl"
    path.write_bytes(data)
    found = attempt(lambda: list(RunStore(path)), path, StoreError)
    try:
        with RunStore(path):
            pass
        kept = path.read_bytes()
        if isinstance(found, str):
            raise Broken(f"not readable, yet opened for writing: {found}")
        # A writer cuts off one unfinished line at the end, and nothing else.
        same(kept, data[: data.rfind(b"\n") + 1], "opened for writing")
    except StoreError as error:
        if not isinstance(found, str):
            raise Broken(f"readable, yet not opened for writing: {error}") from error
        same(path.read_bytes(), data, "refused, and")
    if isinstance(found, str):
        return found
    copy = place.parent / "copy.jsonl"
    copy.write_bytes(b"".join(record.line() for record in found))
    same(list(RunStore(copy)), found, "written and read")
    for record in found:
        same(Record.from_line(record.line()), record, "as a line")
    if len({record.run.key() for record in found}) != len(found):
        raise Broken("a run is there twice")
    return found
