"""``read_sheets``: contact sheets of colour pictures."""

from __future__ import annotations

from functools import cache
from typing import Any

from fuzz.fuzz_dataset_npz import WORDS as NPZ_WORDS
from fuzz.small_set import COLOUR, data_set, sheets

WORDS = [*NPZ_WORDS, b"sheets.npy", b"offsets.npy", b"RIFF", b"WEBPVP8L"]
sound = cache(sheets)


def one_input(data: bytes) -> Any:
    files = {
        "small-train-1.webp.npz": data,
        "small-train-2.webp.npz": sound(1),
        "small-test.webp.npz": sound(1),
    }
    return data_set(COLOUR, files, "small")
