"""A small data set of the layout of the benchmarks, for the harnesses of their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fuzz.sandbox import Broken, attempt, folder, same
from pairlearn.data import Dataset, DatasetCorruptError, DatasetSpec, get_spec, write_npz_atomically
from pairlearn.data.loading import read_folder, to_arrays

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
        write_npz_atomically(copy, to_arrays(found), source="a test")
        again: Any = read_folder(spec, place.parent)
        same(again.x.tolist(), found.x.tolist(), "written and read")
        same(again.y.tolist(), found.y.tolist(), "written and read")
    return found
