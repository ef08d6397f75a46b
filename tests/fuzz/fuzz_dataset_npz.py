"""``read_npz``: a data set in one file, with the record of its checksum; two files in an input."""

from __future__ import annotations

from typing import Any

from fuzz.sandbox import attempt, folder, parts
from fuzz.small_set import GREY, data_set
from pairlearn.data import DatasetCorruptError
from pairlearn.data.loading import read_npz

WORDS = [b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"x.npy", b"y.npy", b"x_train.npy"]
WORDS += [b"\x93NUMPY\x01\x00", b"'descr': '|u1'", b"'<f8'", b"'|O'", b"(4, 4, 4)", b"x"]


def one_input(data: bytes) -> Any:
    arrays, record = parts(data, 2)
    path = folder("recorded") / "small.npz"
    path.write_bytes(arrays)
    path.with_name("small.npz.json").write_bytes(record)
    attempt(lambda: read_npz(path), path, DatasetCorruptError)
    return data_set(GREY, {"small.npz": arrays}, "small.npz")
