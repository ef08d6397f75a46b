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
