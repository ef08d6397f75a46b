"""``read_archive``: zip files of images, a folder a class."""

from __future__ import annotations

from typing import Any

from fuzz.small_set import GREY, data_set

WORDS = [b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x89PNG", b"GIF89a", b"BM", b"II*\0"]
WORDS += [b"0/a.png", b"a.zip", b"\xff\xd8\xff", b"IHDR", b"IDAT"]


def one_input(data: bytes) -> Any:
    return data_set(GREY, {"small.zip": data}, "small.zip")
