"""Getting a data set from where it is published."""

from __future__ import annotations

from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
from numpy.typing import NDArray

from pairlearn.atomic import replacing
from pairlearn.data.errors import DatasetCorruptError, DownloadFailedError
from pairlearn.data.progress import Progress
from pairlearn.data.registry import DatasetSpec, OpenML, ScikitLearn
from pairlearn.extras import missing_extra

_TIMEOUT_SECONDS = 60
_CHUNK_BYTES = 1 << 18


def fetch_file(url: str, path: Path, progress: Progress) -> None:
    """Stream a file to disk; ``path`` appears only once it is whole.

    Parameters
    ----------
    url : str
        What to fetch.
    path : Path
        Where to put it.
    progress : callable
        Called with the bytes done and the bytes in all (None if the server does not say).

    Raises
    ------
    DownloadFailedError
        If the server cannot be reached or the stream ends early.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     copy = Path(folder, "copy.py")
    ...     fetch_file(Path(__file__).as_uri(), copy, lambda done, total: None)
    ...     copy.read_bytes() == Path(__file__).read_bytes()
    True
    """
    try:
        with (
            urlopen(url, timeout=_TIMEOUT_SECONDS) as response,
            replacing(path) as part,
            part.open("wb") as file,
        ):
            length = response.headers.get("Content-Length")
            done, total = 0, int(length) if length else None
            progress(done, total)
            while chunk := response.read(_CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                progress(done, total)
            if total is not None and done != total:
                raise DownloadFailedError(f"{url} ended after {done} of {total} bytes")
    except DownloadFailedError:
        raise
    except (OSError, HTTPException) as error:
        raise DownloadFailedError(f"{url} could not be fetched: {error}") from error


def fetch_openml_arrays(spec: DatasetSpec, source: OpenML) -> dict[str, NDArray[np.generic]]:
    """Download a data set from OpenML through scikit-learn, as the arrays of our files.

    Parameters
    ----------
    spec : DatasetSpec
        Which data set.
    source : OpenML
        Where it is there.

    Returns
    -------
    dict of str to ndarray
        As described by :func:`pairlearn.data.layout.from_arrays`.

    Raises
    ------
    DownloadFailedError
        If OpenML cannot be reached.
    DatasetCorruptError
        If what it has is of another shape or has other labels.

    Examples
    --------
    >>> from pairlearn.data import get_spec
    >>> spec = get_spec("letter")
    >>> fetch_openml_arrays(spec, spec.source)["x"].shape  # doctest: +SKIP
    (20000, 16)
    """
    sklearn_datasets = _sklearn_datasets(f"downloading {spec.title}")
    try:
        # Our cache keeps the result, so a second copy in scikit-learn's would be waste;
        # liac-arff is the parser that needs no pandas.
        bunch = sklearn_datasets.fetch_openml(
            data_id=source.id, as_frame=False, parser="liac-arff", cache=False
        )
    except (OSError, HTTPException, ValueError) as error:
        raise DownloadFailedError(f"{source} could not be fetched: {error}") from error
    x = np.asarray(bunch.data)
    if x.ndim != 2 or x.shape[1] != spec.n_features:
        raise DatasetCorruptError(
            f"{source} has the shape {x.shape}; {spec.name} has {spec.n_features} features"
        )
    if len(spec.shape) == 3:
        # OpenML keeps CIFAR's own order: the whole red plane, then green, then blue.
        height, width, channels = spec.shape
        x = x.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
    else:
        x = x.reshape(-1, *spec.shape)
    y, n = _encode_labels(spec, source, bunch.target), spec.n_train
    if spec.official_split:
        return {"x_train": x[:n], "y_train": y[:n], "x_test": x[n:], "y_test": y[n:]}
    return {"x": x, "y": y}


def bundled_arrays(source: ScikitLearn) -> dict[str, NDArray[np.generic]]:
    """The arrays of a data set that comes with scikit-learn.

    Parameters
    ----------
    source : ScikitLearn
        Which one.

    Returns
    -------
    dict of str to ndarray
        ``x`` and ``y``.

    Examples
    --------
    >>> bundled_arrays(ScikitLearn("load_digits"))["x"].shape
    (1797, 64)
    """
    x, y = getattr(_sklearn_datasets(str(source)), source.function)(return_X_y=True)
    return {"x": x, "y": y}


def _encode_labels(spec: DatasetSpec, source: OpenML, target: Any) -> NDArray[np.uint8]:
    """Labels as OpenML writes them, "7" or "A", as numbers of our classes."""
    codes = {name: code for code, name in enumerate(spec.class_names)}
    codes |= {str(code): code for code in range(spec.n_classes)}
    names, rows = np.unique(np.asarray(target).astype(str), return_inverse=True)
    unknown = [str(name) for name in names if name not in codes]
    if unknown:
        raise DatasetCorruptError(f"{source} has labels unknown to {spec.name}: {unknown[:5]}")
    return np.array([codes[name] for name in names], dtype=np.uint8)[rows]


def _sklearn_datasets(purpose: str) -> Any:
    try:
        import sklearn.datasets
    except ImportError as error:
        raise missing_extra("data", "scikit-learn", purpose) from error
    return sklearn.datasets
