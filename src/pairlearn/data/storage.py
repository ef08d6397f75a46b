"""Files that are either whole or absent: atomic writes, recorded checksums, checked reads."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pairlearn.atomic import replacing
from pairlearn.data.digests import file_digest
from pairlearn.data.errors import DatasetCorruptError

Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]


def checksum_path(path: Path) -> Path:
    """The small JSON file beside ``path`` that records its checksum.

    Parameters
    ----------
    path : Path
        A data file.

    Returns
    -------
    Path

    Examples
    --------
    >>> checksum_path(Path("mnist.npz")).name
    'mnist.npz.json'
    """
    return path.with_name(f"{path.name}.json")


def write_npz_atomically(path: Path, arrays: Arrays, *, source: str) -> None:
    """Write arrays as a compressed npz file with its checksum beside it.

    Parameters
    ----------
    path : Path
        The file to write.
    arrays : mapping of str to ndarray
        What to write; arrays of Python objects are refused.
    source : str
        Where the arrays came from, for the record.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.npz")
    ...     write_npz_atomically(path, {"x": np.arange(3)}, source="example")
    ...     read_npz(path)["x"]
    array([0, 1, 2])
    """
    with replacing(path) as part:
        # Not np.savez_compressed: before numpy 2.1 it cannot be told to refuse pickles.
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        record = {"sha256": file_digest(part), "source": source}
        # The record goes first: a crash between the two leaves a record without a file,
        # which is ignored, and never a file whose record belongs to an older one.
        with replacing(checksum_path(path)) as part_of_record:
            part_of_record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_npz(path: Path) -> dict[str, NDArray[np.generic]]:
    """Read every array of an npz file, after comparing it with its recorded checksum.

    A file with no record beside it, such as one put there by hand, is read without.

    Parameters
    ----------
    path : Path
        The file to read.

    Returns
    -------
    dict of str to ndarray

    Raises
    ------
    DatasetCorruptError
        If the file is not what was recorded, or cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.npz")
    ...     np.savez(path, y=np.arange(2))
    ...     read_npz(path)
    {'y': array([0, 1])}
    """
    record = checksum_path(path)
    if record.exists() and file_digest(path) != _recorded_sha256(record):
        raise DatasetCorruptError(
            f"{path} does not have the checksum recorded in {record}; "
            f"delete {path} and load the data set again"
        )
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
                f"{path} cannot be read as an npz file ({reason}); "
                f"delete {path} and load the data set again"
            ) from error


def _recorded_sha256(record: Path) -> str:
    try:
        return str(json.loads(record.read_text(encoding="utf-8"))["sha256"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DatasetCorruptError(
            f"{record} is not a checksum record; delete it and its data file and load again"
        ) from None
