"""CIFAR-10H: what people said about the test images of CIFAR-10.

Peterson et al. (ICCV 2019) showed every test image to about 51 people, who chose one of the ten
classes. The counts are licensed CC BY-NC-SA 4.0 (non-commercial), so they are neither part of
this package nor downloaded by it.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from pairlearn.data.loading import DatasetNotFoundError, as_uint8, data_folder, read_npz
from pairlearn.data.registry import get_spec
from pairlearn.data.sources import DatasetCorruptError

__all__ = ["load_cifar10h"]

FILE = "cifar10h.npz"
SOURCE = "https://github.com/jcpeterson/cifar-10h"


def load_cifar10h(data: str | os.PathLike[str] | None = None) -> NDArray[np.uint8]:
    """How many people chose each class for each test image of CIFAR-10.

    Parameters
    ----------
    data : path-like or None
        Folder with ``cifar10h.npz``, which has the authors' table as its array ``counts``;
        None takes ``PAIRLEARN_DATA``.

    Returns
    -------
    ndarray of uint8, shape (10000, 10)
        Rows in the order of the test set, columns in the order of the classes.

    Raises
    ------
    DatasetNotFoundError
        If there is no such file; the message says how to make it.
    DatasetCorruptError
        If the file holds something else.
    """
    folder = data_folder(data)
    if folder is None or not (folder / FILE).exists():
        raise DatasetNotFoundError(
            f"{FILE} is not in {folder or 'a data folder'}: get cifar10h-counts.npy from {SOURCE} "
            f"(CC BY-NC-SA 4.0), write it with np.savez('{FILE}', counts=np.load(...)) into a "
            "folder, and name that with --data, data=... or PAIRLEARN_DATA"
        )
    path, spec = folder / FILE, get_spec("cifar10")
    shape = (spec.n_test, spec.n_classes)
    try:
        counts = as_uint8("counts", read_npz(path)["counts"])
        if counts.shape != shape:
            raise ValueError(f"counts has the shape {counts.shape}; expected {shape}")
        if not counts.any(1).all():
            raise ValueError(f"image {int(counts.any(1).argmin())} has no answer")
    except (KeyError, ValueError) as error:
        if isinstance(error, DatasetCorruptError):
            raise
        raise DatasetCorruptError(f"{path} does not hold CIFAR-10H: {error}") from error
    return counts
