"""``read_items`` and ``iter_items`` on .npy files."""

from __future__ import annotations

from typing import Any

from fuzz import table_property

WORDS = [b"'descr'", b"'shape'", b"'fortran_order'", b"True", b"'<f8'", b"'>i2'", b"'<U3'"]
WORDS += [b"'|O'", b"'|b1'", b"'<U0'", b"('<f4', (2,))", b"[('a', '<f4')]", b"(1, 2)", b"(0, 9)"]
WORDS += [b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00", b"\x93NUMPY\x03\x00", b"-1", b"9" * 20]


def one_input(data: bytes) -> Any:
    return table_property.table("items", ".npy", data)
