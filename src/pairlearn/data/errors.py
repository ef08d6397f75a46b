"""What can go wrong when a data set is loaded."""

from __future__ import annotations


class DatasetNotFoundError(FileNotFoundError):
    """The data are neither in a folder at hand nor to be had by download.

    Examples
    --------
    >>> issubclass(DatasetNotFoundError, FileNotFoundError)
    True
    """


class DatasetCorruptError(ValueError):
    """A file or a download is damaged or is not the data that it should be.

    Examples
    --------
    >>> issubclass(DatasetCorruptError, ValueError)
    True
    """


class DownloadFailedError(OSError):
    """A download did not come, or did not come whole.

    Examples
    --------
    >>> issubclass(DownloadFailedError, OSError)
    True
    """


def missing_extra(package: str, purpose: str) -> ImportError:
    """The error for a package that only the ``data`` extra installs.

    Parameters
    ----------
    package : str
        What could not be imported.
    purpose : str
        What needs it.

    Returns
    -------
    ImportError
        To raise.

    Examples
    --------
    >>> print(missing_extra("Pillow", "reading images"))
    reading images needs Pillow: pip install "pairlearn[data]"
    """
    return ImportError(f'{purpose} needs {package}: pip install "pairlearn[data]"')
