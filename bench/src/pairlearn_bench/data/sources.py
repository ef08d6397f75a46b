"""Sources of data sets: OpenML, scikit-learn, and zip archives of images.

Images may be at any depth of an archive, also inside zip files in it. The class of an image is the
one number below the number of classes in the name of its innermost folder that has such a number
(``PMU-UD/4/629.jpg`` is a four), or else in its file name.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from tempfile import TemporaryFile
from types import ModuleType
from typing import IO, TYPE_CHECKING, TypeAlias
from urllib.request import urlopen

import numpy as np
from numpy.typing import NDArray

from pairlearn.extras import missing_extra

if TYPE_CHECKING:
    from pairlearn_bench.data.dataset import DatasetSpec

Arrays: TypeAlias = dict[str, NDArray[np.generic]]
Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes done and the total, None while that is unknown."""

_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".gif"})
_LARGEST_IMAGE = 1 << 26
_LARGEST_ARCHIVE = 1 << 31
_DEEPEST = 4  # levels of nested zip files: there are archives that contain themselves


class DatasetCorruptError(ValueError):
    """A file or a download is damaged or holds other data than it should."""


@dataclass(frozen=True)
class OpenML:
    """A data set on openml.org, by its id there."""

    id: int

    def __str__(self) -> str:
        return f"https://www.openml.org/d/{self.id}"

    def fetch(self, spec: DatasetSpec, progress: Progress) -> Arrays:
        """Download the data set with scikit-learn, which reports no progress."""
        from sklearn.datasets import fetch_openml

        progress(0, None)
        # Our cache keeps the result, so a second copy in scikit-learn's would be waste;
        # liac-arff is the parser that needs no pandas.
        bunch = fetch_openml(data_id=self.id, as_frame=False, parser="liac-arff", cache=False)
        x = np.asarray(bunch.data)
        if x.ndim != 2 or x.shape[1] != spec.n_features:
            raise DatasetCorruptError(
                f"{self} has the shape {x.shape}; {spec.name} has {spec.n_features} features"
            )
        x = x.reshape(-1, *spec.shape)
        if len(spec.shape) == 3:
            # OpenML keeps CIFAR's own order: the whole red plane, then green, then blue.
            height, width, channels = spec.shape
            x = x.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
        # Labels are written as "7" or as "A".
        codes = {name: code for code, name in enumerate(spec.class_names)}
        codes |= {str(code): code for code in range(spec.n_classes)}
        names, rows = np.unique(np.asarray(bunch.target).astype(str), return_inverse=True)
        unknown = [str(name) for name in names if name not in codes]
        if unknown:
            raise DatasetCorruptError(f"{self} has labels unknown to {spec.name}: {unknown[:5]}")
        return {"x": x, "y": np.array([codes[name] for name in names], dtype=np.uint8)[rows]}


@dataclass(frozen=True)
class ImageArchive:
    """A zip file of images with one folder per class."""

    url: str

    def __str__(self) -> str:
        return self.url

    def fetch(self, spec: DatasetSpec, progress: Progress) -> Arrays:
        """Download the archive and read its images."""
        _image_module()  # an error before the download if it is missing
        with urlopen(self.url, timeout=60) as response, TemporaryFile() as file:
            length = response.headers.get("Content-Length")
            total = int(length) if length else None
            progress(0, total)
            while chunk := response.read(1 << 18):
                file.write(chunk)
                progress(file.tell(), total)
            if total not in (None, file.tell()):
                raise OSError(f"it ended after {file.tell()} of {total} bytes")
            return read_archive(spec, file, f"the download from {self}")


@dataclass(frozen=True)
class ScikitLearn:
    """A data set bundled with scikit-learn, by the function that loads it."""

    function: str

    def __str__(self) -> str:
        return f"sklearn.datasets.{self.function}"

    def arrays(self) -> Arrays:
        """The data, which need no download."""
        from sklearn import datasets

        x, y = getattr(datasets, self.function)(return_X_y=True)
        return {"x": x, "y": y}


def _image_module() -> ModuleType:
    try:
        import PIL.Image
    except ImportError as error:
        raise missing_extra("images", "Pillow", "reading images") from error
    return PIL.Image


def read_archive(spec: DatasetSpec, file: IO[bytes], origin: str) -> Arrays:
    """Read the images of a zip file in greyscale, resized to the shape of the data set.

    Resizing is bilinear, as in the usual image loaders. Rows are ordered by class, then by name.
    ``origin`` names the file in errors.
    """
    image_module = _image_module()
    height, width = spec.shape
    rows: list[tuple[int, tuple[str, ...], NDArray[np.uint8]]] = []
    others: list[str] = []
    try:
        for member, content in _members(file, PurePosixPath()):
            if member.suffix.lower() not in _SUFFIXES:
                others.append(member.name)
                continue
            label = _class_of(member, spec.n_classes)
            with image_module.open(io.BytesIO(content)) as picture:
                bilinear = image_module.Resampling.BILINEAR
                small = picture.convert("L").resize((width, height), bilinear)
                rows.append((label, member.parts, np.asarray(small, dtype=np.uint8)))
    # The readers of zip files and of images raise a dozen types on damaged bytes.
    except Exception as error:
        reason = str(error)[:300] or type(error).__name__
        raise DatasetCorruptError(
            f"{origin} cannot be read as images of {spec.title} ({reason}); "
            "delete it and load the data set again, or get it from another source"
        ) from error
    absent = sorted(set(range(spec.n_classes)) - {label for label, _, _ in rows})
    if absent:
        seen = f" (but {', '.join(others[:3])})" if others else ""
        raise DatasetCorruptError(
            f"{origin} has {len(rows)} images and none of the classes {absent}{seen}; "
            "make a zip file with one folder of images per class"
        )
    rows.sort(key=lambda row: row[:2])
    y = np.array([label for label, _, _ in rows], dtype=np.uint8)
    return {"x": np.stack([small for _, _, small in rows]), "y": y}


def _members(
    file: IO[bytes], inside: PurePosixPath, depth: int = 0
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Iterate over the files of a zip archive and of archives inside it, with images' content."""
    if depth > _DEEPEST:
        raise ValueError(f"{inside} lies in more than {_DEEPEST} zip files, one in another")
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            member = inside / info.filename
            # Finder leaves a shadow file of each image in __MACOSX and files named ._NAME.
            if info.is_dir() or "__MACOSX" in member.parts or member.name.startswith("."):
                continue
            suffix = member.suffix.lower()
            if suffix != ".zip" and suffix not in _SUFFIXES:
                yield member, b""
                continue
            # zipfile reads no more of a member than its header declares.
            largest = _LARGEST_ARCHIVE if suffix == ".zip" else _LARGEST_IMAGE
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
