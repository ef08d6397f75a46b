"""Colour images packed as contact sheets: 100 of them in one lossless WebP picture.

A third of the size of the plain arrays, in three files that can travel one at a time:
``NAME-train-1.webp.npz``, ``NAME-train-2.webp.npz`` and ``NAME-test.webp.npz``. Each holds
``sheets`` (the WebP files end to end), ``offsets`` (where each begins, and the end) and ``y``.
"""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pairlearn.data.errors import DatasetCorruptError
from pairlearn.data.registry import DatasetSpec
from pairlearn.data.storage import read_npz
from pairlearn.extras import missing_extra

_SIDE = 10
_KEYS = ("sheets", "offsets", "y")


def sheet_paths(spec: DatasetSpec, folder: Path) -> tuple[Path, Path, Path]:
    """The three files of a data set's sheets: two training parts and the test part.

    Parameters
    ----------
    spec : DatasetSpec
        Which data set.
    folder : Path
        Where they lie.

    Returns
    -------
    tuple of Path

    Examples
    --------
    >>> from pairlearn.data import get_spec
    >>> [path.name for path in sheet_paths(get_spec("cifar10"), Path("."))]
    ['cifar10-train-1.webp.npz', 'cifar10-train-2.webp.npz', 'cifar10-test.webp.npz']
    """
    first, second, test = (
        folder / f"{spec.name}-{part}.webp.npz" for part in ("train-1", "train-2", "test")
    )
    return first, second, test


def read_sheets(spec: DatasetSpec, folder: Path) -> dict[str, NDArray[np.generic]]:
    """Unpack the sheets of a data set (needs Pillow).

    Parameters
    ----------
    spec : DatasetSpec
        Which data set; its instances have the shape (height, width, 3).
    folder : Path
        Where the three files lie.

    Returns
    -------
    dict of str to ndarray
        ``x_train``, ``y_train``, ``x_test`` and ``y_test``.

    Raises
    ------
    DatasetCorruptError
        If a file is damaged.

    Examples
    --------
    >>> from pairlearn.data import get_spec
    >>> read_sheets(get_spec("cifar10"), Path("no such folder"))
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    (x_1, y_1), (x_2, y_2), (x_test, y_test) = (
        _unpack(path, spec) for path in sheet_paths(spec, folder)
    )
    return {
        "x_train": np.concatenate([x_1, x_2]),
        "y_train": np.concatenate([y_1, y_2]),
        "x_test": x_test,
        "y_test": y_test,
    }


def _unpack(path: Path, spec: DatasetSpec) -> tuple[NDArray[np.uint8], NDArray[np.generic]]:
    arrays = read_npz(path)
    missing = [key for key in _KEYS if key not in arrays]
    if missing:
        raise DatasetCorruptError(
            f"{path} has the arrays {sorted(arrays)} but not {', '.join(missing)}; replace the file"
        )
    encoded, offsets, y = (arrays[key] for key in _KEYS)
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu" or y.ndim != 1:
        raise DatasetCorruptError(
            f"{path} has {offsets.dtype} offsets of shape {offsets.shape} and labels of shape "
            f"{y.shape}, where both are lists, the first one of integers; replace the file"
        )
    if len(y) > spec.n_instances:
        raise DatasetCorruptError(
            f"{path} has {len(y)} labels, more than the {spec.n_instances} of {spec.name}; "
            "replace the file"
        )
    data, bounds = memoryview(encoded.tobytes()), [int(offset) for offset in offsets]
    pieces = [data[start:stop] for start, stop in pairwise(bounds)]
    if len(pieces) * _SIDE**2 != len(y):
        raise DatasetCorruptError(
            f"{path} has {len(pieces)} sheets of {_SIDE**2} images for {len(y)} labels; "
            "replace the file"
        )
    shape = spec.shape
    images = np.empty((len(pieces), _SIDE, _SIDE, *shape), dtype=np.uint8)

    def decode(index: int) -> None:
        images[index] = _decode_sheet(pieces[index], shape, path)

    # Pillow lets go of the interpreter lock while it decodes.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(decode, range(len(pieces))))
    return images.reshape(-1, *shape), y


def _decode_sheet(piece: memoryview, shape: tuple[int, ...], path: Path) -> NDArray[np.uint8]:
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("data", "Pillow", f"unpacking {path.name}") from error
    height, width, channels = shape
    try:
        with Image.open(io.BytesIO(piece), formats=["WEBP"]) as picture:
            sheet = np.asarray(picture.convert("RGB"))
        grid = sheet.reshape(_SIDE, height, _SIDE, width, channels)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise DatasetCorruptError(
            f"{path} has a sheet that cannot be decoded ({str(error)[:300]}); replace the file"
        ) from error
    return grid.swapaxes(1, 2)
