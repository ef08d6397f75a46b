"""A project to try the studio with: handwritten threes and eights that come with scikit-learn."""

from __future__ import annotations

import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairlearn.studio.creating import create_project
from pairlearn.studio.known import Known
from pairlearn.studio.project import Project

ITEMS, PAIRS, ENLARGED = 60, 60, 12
USES: tuple[Literal["example", "practice", "check"], ...] = (
    *("example",) * 3, *("practice",) * 3, *("check",) * 6,
)  # fmt: skip
WHY = {
    "left surely": "The left one is closed on both sides; the right one is open to the left.",
    "right surely": "The right one is closed on both sides; the left one is open to the left.",
    "both positive": "Both have two closed loops.",
    "both negative": "Both are open to the left.",
}


def make_demo(folder: Path) -> Project:
    """Make a graded project of images, with definitions, examples, practice and checks."""
    from sklearn.datasets import load_digits

    digits: Any = load_digits()
    rows = np.flatnonzero(np.isin(digits.target, (3, 8)))[:ITEMS]
    eight = digits.target[rows] == 8
    names = [f"digit-{number:02}.png" for number in range(len(rows))]
    ends = np.arange(2 * len(USES)).reshape(-1, 2)
    known = [
        Known(
            names[left],
            names[right],
            answer := _answer(eight[left], eight[right]),
            use,
            WHY[answer],
        )
        for use, (left, right) in zip(USES, ends.tolist(), strict=True)
    ]
    with tempfile.TemporaryDirectory() as images:
        for name, row in zip(names, rows, strict=True):
            grey = 255 - 255 * np.pad(digits.images[row], 2) / 16
            Path(images, name).write_bytes(png(grey))
        project, _ = create_project(
            folder, images, pairs=PAIRS, title="Threes and eights", hide_ids=True,
            positive_name="an eight", negative_name="a three",
            positive_means="Whoever wrote it meant 8: two loops, both closed.",
            negative_means="Whoever wrote it meant 3: two bows, open to the left.",
            help="Go by what was meant, not by how well it is written.",
            known=known, known_share=0.1,
        )  # fmt: skip
    return project


def _answer(left: bool, right: bool) -> str:
    if left == right:
        return "both positive" if left else "both negative"
    return "left surely" if left else "right surely"


def png(image: NDArray[np.float64]) -> bytes:
    """A grey picture, enlarged with soft edges, as a PNG file."""
    for _ in ("across", "down"):
        size = len(image)
        fine = np.linspace(0, size - 1, ENLARGED * size)
        image = np.array([np.interp(fine, np.arange(size), line) for line in image.T])
    pixels = image.astype(np.uint8)
    height, width = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)),
        (b"IEND", b""),
    )
    chunks = [
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
