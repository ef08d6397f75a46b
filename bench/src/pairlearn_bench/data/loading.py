"""Load a benchmark from a folder, the cache, or the internet.

In a folder a data set is the file ``NAME.npz``.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from pairlearn.atomic import replacing
from pairlearn_bench.data.dataset import Dataset, DatasetSpec, Images, content_digest, get_spec
from pairlearn_bench.data.sources import Arrays, DatasetCorruptError

CIFAR10H = "cifar10h.npz"
_PARTS = ("x_train", "y_train", "x_test", "y_test")


class DatasetNotFoundError(FileNotFoundError):
    """The data are in none of the folders and cannot be downloaded."""


def load(
    dataset: str | DatasetSpec,
    data: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    images: Images = "proper",
) -> Dataset:
    """Load a benchmark from the first place that has it.

    The places are the folder ``data``, the cache of earlier downloads, and the internet. Data are
    compared with the published content if that is known; a file that differs is an error and is
    never used.

    Parameters
    ----------
    dataset : str or DatasetSpec
        Name of a benchmark, or the description of a set of your own in the same layout.
    data : path-like or None
        Folder with data files; None takes ``PAIRLEARN_DATA``, if set.
    download : bool
        Whether to download the data if no folder has them.
    images : {"proper", "published"}
        How colour images (CIFAR-10) are prepared for a model. "published" does what the
        public code of the field did: the 32×32×3 values of an image are *reshaped* to
        3×32×32, which scrambles colours and positions, and not scaled. Use it only to
        reproduce published numbers.

    Raises
    ------
    DatasetNotFoundError
        If no place has the data; the message says which file to put where.
    DatasetCorruptError
        If a file is damaged or holds something else; the message names it.

    Examples
    --------
    >>> load("digits").x.shape
    (1797, 64)
    """
    spec = dataset if isinstance(dataset, DatasetSpec) else get_spec(dataset)
    if images not in get_args(Images):
        raise ValueError(f"images must be 'proper' or 'published'; got {images!r}")
    if images == "published":
        if len(spec.shape) != 3:
            raise ValueError(f"images='published' is for colour images; leave it for {spec.name}")
        spec = replace(spec, images=images)
    cache, own = cache_folder(), data_folder(data)
    folders = [cache] if own is None else [own, cache]
    for folder in folders:
        if (local := read_folder(spec, folder)) is not None:
            return local
    source = spec.source
    if callable(source):  # which need not be known to the worker processes
        return _from_arrays(replace(spec, source=None), source(), f"the source of {spec.name}")
    if source is None or not download:
        reason = "there is nowhere to download it from" if download else "download=False"
        raise DatasetNotFoundError(_what_to_do(spec, folders, reason))
    try:
        arrays = source.fetch(spec)
    except DatasetCorruptError:
        raise
    except (OSError, HTTPException, ValueError) as error:
        reason = f"{source} could not be fetched: {error}"
        raise DatasetNotFoundError(_what_to_do(spec, folders, reason)) from error
    # Cached only once it has been verified.
    fetched = _from_arrays(spec, arrays, f"the download from {source}")
    write_npz_atomically(cache / f"{spec.name}.npz", to_arrays(fetched))
    return fetched


def load_cifar10h(data: str | os.PathLike[str] | None = None) -> NDArray[np.uint8]:
    """CIFAR-10H: how many people chose each class (10000, 10) for each test image of CIFAR-10.

    Peterson et al. (ICCV 2019) showed every image to about 51 people. Their counts are licensed CC
    BY-NC-SA 4.0 (non-commercial), so this package neither contains nor downloads them. The folder
    ``data``, by default ``PAIRLEARN_DATA``, must have ``cifar10h.npz`` with the authors' table as
    the array ``counts``; DatasetNotFoundError explains how to make it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> counts = np.full((10_000, 10), 5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "cifar10h.npz"), counts=counts)
    ...     load_cifar10h(folder).sum(1)[:3]
    array([50, 50, 50], dtype=uint64)
    """
    folder = data_folder(data)
    if folder is None or not (folder / CIFAR10H).exists():
        raise DatasetNotFoundError(
            f"{CIFAR10H} is not in {folder or 'a data folder'}: get cifar10h-counts.npy from "
            "https://github.com/jcpeterson/cifar-10h (CC BY-NC-SA 4.0), write it with "
            f"np.savez('{CIFAR10H}', counts=np.load(...)) into a folder, and name that with "
            "--data, data=... or PAIRLEARN_DATA"
        )
    path, spec = folder / CIFAR10H, get_spec("cifar10")
    shape = (spec.n_test, spec.n_classes)
    arrays = read_npz(path)
    try:
        counts = as_uint8("counts", arrays["counts"])
        if counts.shape != shape:
            raise ValueError(f"counts has the shape {counts.shape}; expected {shape}")
        if not counts.any(1).all():
            raise ValueError(f"image {int(counts.any(1).argmin())} has no answer")
    except (KeyError, ValueError) as error:
        raise DatasetCorruptError(f"{path} does not hold CIFAR-10H: {error}") from error
    return counts


# ---- folders ----------------------------------------------------------------------------------


def data_folder(data: str | os.PathLike[str] | None = None) -> Path | None:
    """The user's data folder, ``data`` or ``PAIRLEARN_DATA``; None if neither is set.

    Raises NotADirectoryError if it does not exist.
    """
    name, value = "data", data
    if data is None:
        # As in the XDG specification, an empty variable counts as unset.
        name, value = "PAIRLEARN_DATA", os.environ.get("PAIRLEARN_DATA") or None
    if value is None:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{name}={os.fspath(value)!r} is not a folder; "
            "name an existing one, or none to use the cache alone"
        )
    return folder


def cache_folder() -> Path:
    """The folder of downloaded data; it need not exist yet.

    ``PAIRLEARN_CACHE`` if set, else ``pairlearn`` in ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    if own := os.environ.get("PAIRLEARN_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "pairlearn"


def read_folder(spec: DatasetSpec, folder: Path) -> Dataset | None:
    """Read a data set from a folder; None if it has no such file."""
    file = folder / f"{spec.name}.npz"
    return _from_arrays(spec, read_npz(file), str(file)) if file.exists() else None


def _layout(spec: DatasetSpec) -> str:
    """Describe the file that holds a data set."""
    sizes = {"": spec.n_instances}
    if spec.official_split:
        sizes = {"_train": spec.n_train, "_test": spec.n_test}
    arrays = [f"x{part} {(n, *spec.shape)}, y{part} {(n,)}" for part, n in sizes.items()]
    return f"{spec.name}.npz with the uint8 arrays {', '.join(arrays)}"


def _what_to_do(spec: DatasetSpec, folders: Sequence[Path], reason: str) -> str:
    places = " and not in ".join(str(folder) for folder in folders)
    origin = f", published at {spec.source}," if spec.source is not None else ""
    return (
        f"{spec.name} is not in {places}, and was not downloaded: {reason}. "
        f"Put {_layout(spec)}{origin} into {folders[0]}, or into a folder "
        "that you name with --data, data=... or PAIRLEARN_DATA"
    )


# ---- files ------------------------------------------------------------------------------------


def write_npz_atomically(path: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays to a compressed npz file; arrays of Python objects are refused."""
    # Not np.savez_compressed: before numpy 2.1 it cannot be told to refuse pickles.
    with replacing(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_npz(path: Path) -> Arrays:
    """Read every array of an npz file, whose members have checksums of their own."""
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            for name, array in arrays.items():
                # numpy hands out the bytes of a member that is no array.
                if not isinstance(array, np.ndarray):
                    raise ValueError(f"{name!r:.80} is not an array")
            return arrays
        # The readers of zip, deflate and npy headers raise a dozen types on damaged bytes.
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error)[:300]}"
            raise DatasetCorruptError(
                f"{path} cannot be read as an npz file ({reason}); delete {path} and load the "
                "data set again"
            ) from error


# ---- arrays -----------------------------------------------------------------------------------


def to_arrays(dataset: Dataset) -> dict[str, NDArray[np.uint8]]:
    """The arrays of a data set's npz file."""
    x, y, n = dataset.x, dataset.y, dataset.spec.n_train
    if dataset.spec.official_split:
        return dict(zip(_PARTS, (x[:n], y[:n], x[n:], y[n:]), strict=True))
    return {"x": x, "y": y}


def _from_arrays(spec: DatasetSpec, arrays: Arrays, origin: str) -> Dataset:
    """Make a data set from the arrays of a file and compare it with the published content."""
    try:
        dataset = Dataset(spec, *_rows(spec, arrays))
    except ValueError as error:
        raise DatasetCorruptError(
            f"{origin} does not hold {spec.name}: {error}. Expected: {_layout(spec)}"
        ) from error
    if spec.digest is not None:
        digest = content_digest(dataset.x, dataset.y, pooled=not spec.official_split)
        if digest != spec.digest:
            raise DatasetCorruptError(
                f"{origin} has the layout of {spec.name} but not its published content "
                f"(sha256 {digest}, expected {spec.digest}); "
                "delete it and load the data set again, or get it from another source"
            )
    return dataset


def _rows(spec: DatasetSpec, arrays: Arrays) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Instances and labels, the training part first."""
    if {"x", "y"} <= arrays.keys():
        return as_uint8("x", arrays["x"]), as_uint8("y", arrays["y"])
    missing = [name for name in _PARTS if name not in arrays]
    if missing:
        raise ValueError(f"it has the arrays {sorted(arrays)} but not {', '.join(missing)}")
    x_train, y_train, x_test, y_test = (as_uint8(name, arrays[name]) for name in _PARTS)
    if spec.official_split and len(y_train) != spec.n_train:
        raise ValueError(f"y_train has {len(y_train)} labels instead of {spec.n_train}")
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        if len(x) != len(y):
            raise ValueError(f"x_{part} has {len(x)} rows and y_{part} has {len(y)}")
    return np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test])


def as_uint8(name: str, array: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Convert numbers to uint8, which must not change any."""
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise ValueError(f"{name} is a {array.dtype} array of shape {array.shape}, not of numbers")
    if array.dtype == np.uint8:
        return array.view(np.uint8)
    with np.errstate(invalid="ignore"):  # a NaN has no uint8; the comparison finds it
        whole = array.astype(np.uint8)
    if not np.array_equal(whole, array):
        raise ValueError(f"{name} has values that are not whole numbers from 0 to 255")
    return whole
