"""Zip archives of images in a folder per class, as PMU-UD is published.

The layout is read tolerantly: images may lie at any depth and inside zip files of the
archive; the class of an image is the one number below the number of classes in the name of
its innermost folder that has one (``PMU-UD/4/629.jpg`` is a four), or else in its own name.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np
from numpy.typing import NDArray

from pairlearn.data.errors import DatasetCorruptError
from pairlearn.data.registry import DatasetSpec
from pairlearn.extras import missing_extra

_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".gif"})
_LARGEST_IMAGE = 1 << 26
_LARGEST_ARCHIVE = 1 << 31
_DEEPEST = 4
"""Zip files in one another: there are files that contain themselves."""


def read_archive(spec: DatasetSpec, path: Path) -> dict[str, NDArray[np.generic]]:
    """Read the images of an archive as grey pictures of one size (needs Pillow).

    They are resized by bilinear interpolation, what the usual image loaders do.

    Parameters
    ----------
    spec : DatasetSpec
        Which data set; its instances have the shape (height, width).
    path : Path
        The zip file.

    Returns
    -------
    dict of str to ndarray
        ``x`` and ``y``, rows in the order of their classes, then of their names.

    Raises
    ------
    DatasetCorruptError
        If it is not a zip file, has a damaged image, one of unknown class, or no image of
        some class.

    Examples
    --------
    >>> from pairlearn.data import get_spec
    >>> read_archive(get_spec("pmu-ud"), Path("no such file.zip"))
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    rows: list[tuple[int, tuple[str, ...], NDArray[np.uint8]]] = []
    others: list[str] = []
    with path.open("rb") as file:
        try:
            for member, content in _members(file, PurePosixPath()):
                if member.suffix.lower() in _SUFFIXES:
                    label = _class_of(member, spec.n_classes)
                    rows.append((label, member.parts, _grey(content, spec.shape)))
                else:
                    others.append(member.name)
        except ImportError:
            raise
        # The readers of zip files and of images raise a dozen types on damaged bytes.
        except Exception as error:
            reason = str(error)[:300] or type(error).__name__
            raise DatasetCorruptError(
                f"{path} cannot be read as images of {spec.title} ({reason}); "
                "delete or mend it and load the data set again"
            ) from error
    absent = sorted(set(range(spec.n_classes)) - {label for label, _, _ in rows})
    if absent:
        raise DatasetCorruptError(
            f"{path} has {len(rows)} images and none of the classes {absent}"
            f"{_seen(others)}; make a zip file with one folder of images per class"
        )
    rows.sort(key=lambda row: row[:2])
    return {
        "x": np.stack([image for _, _, image in rows]),
        "y": np.array([label for label, _, _ in rows], dtype=np.uint8),
    }


def _members(
    file: IO[bytes], inside: PurePosixPath, depth: int = 0
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Every file of a zip archive and of the archives in it; of images, the content."""
    if depth > _DEEPEST:
        raise ValueError(f"{inside} lies in more than {_DEEPEST} zip files, one in another")
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            member = inside / info.filename
            # Finder leaves a shadow file of each image in __MACOSX and files named ._NAME.
            if info.is_dir() or "__MACOSX" in member.parts or member.name.startswith("."):
                continue
            suffix = member.suffix.lower()
            largest = _LARGEST_ARCHIVE if suffix == ".zip" else _LARGEST_IMAGE
            if suffix != ".zip" and suffix not in _SUFFIXES:
                yield member, b""
                continue
            # What a member says of its size is an upper bound of what is read of it.
            if info.file_size > largest:
                raise ValueError(f"{member} has {info.file_size} bytes; at most {largest} are read")
            content = archive.read(info)
            if suffix == ".zip":
                yield from _members(io.BytesIO(content), member.with_suffix(""), depth + 1)
            else:
                yield member, content


def _class_of(member: PurePosixPath, n_classes: int) -> int:
    for name in (*reversed(member.parts[:-1]), member.stem):
        numbers = {int(digits) for digits in re.findall(r"\d+", name)}
        labels = [number for number in numbers if number < n_classes]
        if len(labels) == 1:
            return labels[0]
    raise ValueError(
        f"the class of {member} is unknown: name its folder after the class, 0 to {n_classes - 1}"
    )


def _grey(content: bytes, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("data", "Pillow", "reading images") from error
    height, width = shape
    with Image.open(io.BytesIO(content)) as picture:
        small = picture.convert("L").resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(small, dtype=np.uint8)


def _seen(others: list[str]) -> str:
    return f" (but {', '.join(others[:3])})" if others else ""
