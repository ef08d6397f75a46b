"""The layout of data files: which arrays they hold, and how they become a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pairlearn.data.archive import read_archive
from pairlearn.data.dataset import Dataset
from pairlearn.data.digests import content_digest
from pairlearn.data.errors import DatasetCorruptError, DatasetNotFoundError
from pairlearn.data.registry import DatasetSpec, ImageArchive
from pairlearn.data.sheets import read_sheets, sheet_paths
from pairlearn.data.storage import read_npz

_PARTS = ("x_train", "y_train", "x_test", "y_test")


def describe_layout(spec: DatasetSpec) -> str:
    """In words, the file that holds a data set: its name and its arrays.

    Parameters
    ----------
    spec : DatasetSpec
        Which data set.

    Returns
    -------
    str

    Examples
    --------
    >>> from pairlearn.data import get_spec
    >>> print(describe_layout(get_spec("letter")))
    letter.npz with the uint8 arrays x (20000, 16), y (20000,)
    """
    if spec.official_split:
        sizes = {"train": spec.n_train, "test": spec.n_test}
        arrays = [f"x_{part} {(n, *spec.shape)}, y_{part} {(n,)}" for part, n in sizes.items()]
    else:
        arrays = [f"x {(spec.n_instances, *spec.shape)}, y {(spec.n_instances,)}"]
    return f"{spec.name}.npz with the uint8 arrays {', '.join(arrays)}"


def to_arrays(dataset: Dataset) -> dict[str, NDArray[np.uint8]]:
    """The arrays of a data set's npz file; :func:`from_arrays` is the way back.

    Parameters
    ----------
    dataset : Dataset
        What to lay out.

    Returns
    -------
    dict of str to ndarray
        ``x_train``, ``y_train``, ``x_test`` and ``y_test`` where the split is official,
        else ``x`` and ``y``.

    Examples
    --------
    >>> from pairlearn.data import load
    >>> list(to_arrays(load("digits")))
    ['x', 'y']
    """
    x, y, n = dataset.x, dataset.y, dataset.spec.n_train
    if dataset.spec.official_split:
        return {"x_train": x[:n], "y_train": y[:n], "x_test": x[n:], "y_test": y[n:]}
    return {"x": x, "y": y}


def from_arrays(
    spec: DatasetSpec, arrays: Mapping[str, NDArray[np.generic]], *, origin: str
) -> Dataset:
    """The data set that the arrays of a file make up, compared with the published content.

    Parameters
    ----------
    spec : DatasetSpec
        What they should be.
    arrays : mapping of str to ndarray
        Either ``x_train``, ``y_train``, ``x_test`` and ``y_test``, or, where there is no
        official split, ``x`` and ``y``.
    origin : str
        Where they came from, for messages.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetCorruptError
        If arrays are missing, have other shapes or values, or are not the published ones.

    Examples
    --------
    >>> from pairlearn.data import get_spec, load
    >>> arrays = to_arrays(load("digits"))
    >>> from_arrays(get_spec("digits"), arrays, origin="memory").x.shape
    (1797, 64)
    """
    try:
        dataset = Dataset(spec, *_rows(spec, arrays))
    except ValueError as error:
        raise DatasetCorruptError(
            f"{origin} does not hold {spec.name}: {error}. Expected: {describe_layout(spec)}"
        ) from error
    if spec.digest is None:
        return dataset
    digest = content_digest(dataset.x, dataset.y, pooled=not spec.official_split)
    if digest != spec.digest:
        raise DatasetCorruptError(
            f"{origin} has the layout of {spec.name} but not its published content "
            f"(sha256 {digest}, expected {spec.digest}); "
            "delete it and load the data set again, or get it from another source"
        )
    return dataset


def read_folder(spec: DatasetSpec, folder: Path) -> Dataset | None:
    """Read a data set from a folder, in whichever form it lies there.

    The forms are ``NAME.npz``; WebP sheets (see :mod:`pairlearn.data.sheets`); and,
    where the data are published as an archive of images, that archive as ``NAME.zip``.

    Parameters
    ----------
    spec : DatasetSpec
        Which data set.
    folder : Path
        Where to look; it need not exist.

    Returns
    -------
    Dataset or None
        None if the folder has no such file.

    Examples
    --------
    >>> from pairlearn.data import get_spec
    >>> read_folder(get_spec("mnist"), Path("no such folder")) is None
    True
    """
    whole = folder / f"{spec.name}.npz"
    if whole.exists():
        return from_arrays(spec, read_npz(whole), origin=str(whole))
    sheets = sheet_paths(spec, folder)
    missing = [path.name for path in sheets if not path.exists()]
    if not missing:
        return from_arrays(spec, read_sheets(spec, folder), origin=f"{folder}/{sheets[0].name} ...")
    if len(missing) < len(sheets):
        raise DatasetNotFoundError(
            f"{folder} has only some of the sheets of {spec.name}: add {', '.join(missing)}"
        )
    archive = folder / f"{spec.name}.zip"
    if isinstance(spec.source, ImageArchive) and archive.exists():
        return from_arrays(spec, read_archive(spec, archive), origin=str(archive))
    return None


def _rows(
    spec: DatasetSpec, arrays: Mapping[str, NDArray[np.generic]]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Instances and labels, those of the training part first."""
    if not spec.official_split and {"x", "y"} <= arrays.keys():
        return _as_uint8("x", arrays["x"]), _as_uint8("y", arrays["y"])
    missing = [name for name in _PARTS if name not in arrays]
    if missing:
        raise ValueError(f"it has the arrays {sorted(arrays)} but not {', '.join(missing)}")
    x_train, y_train, x_test, y_test = (_as_uint8(name, arrays[name]) for name in _PARTS)
    if spec.official_split and len(y_train) != spec.n_train:
        raise ValueError(f"y_train has {len(y_train)} labels in place of {spec.n_train}")
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        if len(x) != len(y):
            raise ValueError(f"x_{part} has {len(x)} rows and y_{part} has {len(y)}")
    return np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test])


def _as_uint8(name: str, array: NDArray[np.generic]) -> NDArray[np.uint8]:
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise ValueError(f"{name} is a {array.dtype} array of shape {array.shape}, not of numbers")
    if array.dtype == np.uint8:
        return array.view(np.uint8)
    with np.errstate(invalid="ignore"):  # a NaN has no uint8; the comparison finds it
        whole = array.astype(np.uint8)
    if not np.array_equal(whole, array):
        raise ValueError(f"{name} has values that are not whole numbers from 0 to 255")
    return whole
