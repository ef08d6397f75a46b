"""Loading a benchmark from wherever it is: a folder, the cache, or the net."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pairlearn.data.archive import read_archive
from pairlearn.data.dataset import Dataset
from pairlearn.data.download import bundled_arrays, fetch_file, fetch_openml_arrays
from pairlearn.data.errors import DatasetNotFoundError, DownloadFailedError
from pairlearn.data.folders import cache_folder, data_folder
from pairlearn.data.layout import describe_layout, from_arrays, read_folder, to_arrays
from pairlearn.data.progress import Progress, reporting
from pairlearn.data.registry import DatasetSpec, ImageArchive, OpenML, ScikitLearn, get_spec
from pairlearn.data.storage import write_npz_atomically


def load(
    dataset: str | DatasetSpec,
    data: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """Load a benchmark, from the first place that has it.

    The places are the folder ``data``, the cache of earlier downloads, and the net. What
    is found is compared with the published content where that is known, and with the
    checksum recorded at download; a file that differs is an error and is never used.

    Parameters
    ----------
    dataset : str or DatasetSpec
        Name of a benchmark, or the description of a set of your own in the same layout.
    data : path-like or None
        Folder with data files; None takes ``PAIRLEARN_DATA``, if set.
    download : bool
        Whether to go to the net when no folder has the data.
    progress : callable or None
        Called during a download with the bytes done and the bytes in all, None while those
        are unknown (OpenML tells neither until it is done). By default there is a bar on a
        terminal and nothing elsewhere.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetNotFoundError
        If no place has the data; the message says which file to put where.
    DatasetCorruptError
        If a file is damaged or holds something else; the message names it.

    Examples
    --------
    >>> digits = load("digits")
    >>> digits.x.shape, digits.y[:5]
    ((1797, 64), array([0, 1, 2, 3, 4], dtype=uint8))
    """
    spec = dataset if isinstance(dataset, DatasetSpec) else get_spec(dataset)
    cache = cache_folder()
    own = data_folder(data)
    folders = [cache] if own is None else [own, cache]
    for folder in folders:
        found = read_folder(spec, folder)
        if found is not None:
            return found
    if isinstance(spec.source, ScikitLearn):
        return from_arrays(spec, bundled_arrays(spec.source), origin=str(spec.source))
    if not download or spec.source is None:
        reason = "there is nowhere to download it from" if download else "download=False"
        raise DatasetNotFoundError(_what_to_do(spec, folders, reason))
    try:
        with reporting(progress, f"Downloading {spec.title}") as report:
            return _download(spec, spec.source, cache, report)
    except DownloadFailedError as error:
        raise DatasetNotFoundError(_what_to_do(spec, folders, str(error))) from error


def _download(
    spec: DatasetSpec, source: OpenML | ImageArchive, cache: Path, progress: Progress
) -> Dataset:
    """Fetch, verify, and only then keep."""
    archive = cache / f"{spec.name}.zip"
    if isinstance(source, OpenML):
        progress(0, None)
        arrays = fetch_openml_arrays(spec, source)
        size = sum(array.nbytes for array in arrays.values())
        progress(size, size)
    else:
        fetch_file(source.url, archive, progress)
        arrays = read_archive(spec, archive)
    dataset = from_arrays(spec, arrays, origin=f"the download from {source}")
    write_npz_atomically(cache / f"{spec.name}.npz", to_arrays(dataset), source=str(source))
    archive.unlink(missing_ok=True)
    return dataset


def _what_to_do(spec: DatasetSpec, folders: Sequence[Path], reason: str) -> str:
    places = " and not in ".join(str(folder) for folder in folders)
    archive = f" or {spec.name}.zip" if isinstance(spec.source, ImageArchive) else ""
    origin = f", published at {spec.source}," if spec.source is not None else ""
    return (
        f"{spec.name} is not in {places}, and was not downloaded: {reason}. "
        f"Put {describe_layout(spec)}{archive}{origin} into {folders[0]}, or into a folder "
        "that you name with --data, data=... or PAIRLEARN_DATA"
    )
