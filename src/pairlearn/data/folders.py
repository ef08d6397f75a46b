"""Where data files lie: a folder of the user's, and the cache of downloads."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder(data: str | os.PathLike[str] | None = None) -> Path | None:
    """The user's own data folder, if there is one.

    Parameters
    ----------
    data : path-like or None
        The folder; None takes the environment variable ``PAIRLEARN_DATA``.

    Returns
    -------
    Path or None

    Raises
    ------
    NotADirectoryError
        If a folder is named that does not exist.

    Examples
    --------
    >>> data_folder(".") == Path(".")
    True
    """
    named = ("data", data) if data is not None else ("PAIRLEARN_DATA", _variable("PAIRLEARN_DATA"))
    if named[1] is None:
        return None
    folder = Path(named[1]).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{named[0]}={os.fspath(named[1])!r} is not a folder; "
            "name an existing one, or none to use the cache alone"
        )
    return folder


def cache_folder() -> Path:
    """The folder of downloaded data; it need not exist yet.

    ``PAIRLEARN_CACHE`` if set, else ``pairlearn`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

    Returns
    -------
    Path

    Examples
    --------
    >>> isinstance(cache_folder(), Path)
    True
    """
    own = _variable("PAIRLEARN_CACHE")
    if own is not None:
        return Path(own).expanduser()
    return Path(_variable("XDG_CACHE_HOME") or "~/.cache").expanduser() / "pairlearn"


def _variable(name: str) -> str | None:
    # An empty variable is an unset one, as the XDG specification has it.
    return os.environ.get(name) or None
