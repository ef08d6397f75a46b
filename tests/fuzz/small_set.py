"""A small data set of the layout of the benchmarks, for the harnesses of their files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.sandbox import Broken, attempt, folder, same
from pairlearn.data import get_spec
from pairlearn.data.dataset import Dataset
from pairlearn.data.errors import DatasetCorruptError
from pairlearn.data.layout import read_folder, to_arrays
from pairlearn.data.registry import DatasetSpec
from pairlearn.data.storage import write_npz_atomically

GREY = replace(
    get_spec("pmu-ud"), name="small", shape=(4, 4), class_names=("0", "1"), positive=(1,),
    n_train=3, n_test=1, digest=None,
)  # fmt: skip
COLOUR = replace(
    get_spec("cifar10"), name="small", shape=(2, 2, 3), class_names=("0", "1"), positive=(1,),
    n_train=200, n_test=100, digest=None,
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


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def sheet() -> bytes:
    """One contact sheet of 100 pictures, as WebP."""
    from PIL import Image

    stream = io.BytesIO()
    pixels = np.arange(20 * 20 * 3, dtype=np.uint8).reshape(20, 20, 3)
    Image.fromarray(pixels).save(stream, "WEBP", lossless=True)
    return stream.getvalue()


def sheets(count: int) -> bytes:
    """A valid file of contact sheets."""
    one = sheet()
    offsets = np.arange(count + 1) * len(one)
    data = np.frombuffer(one * count, np.uint8)
    return npz(sheets=data, offsets=offsets, y=np.arange(100 * count, dtype=np.uint8) % 2)
