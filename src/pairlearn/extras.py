"""Packages that pairlearn does without until they are needed."""

from __future__ import annotations

__all__ = ["missing_extra"]


def missing_extra(extra: str, package: str, purpose: str) -> ImportError:
    """The error for a package that only an extra installs.

    pairlearn is in no package registry, so what to do instead is said for a clone.

    Parameters
    ----------
    extra : str
        The extra of pairlearn that brings the package.
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
    >>> print(missing_extra("data", "Pillow", "reading images"))
    reading images needs Pillow: in a clone of pairlearn, pip install ".[data]"
    """
    return ImportError(
        f'{purpose} needs {package}: in a clone of pairlearn, pip install ".[{extra}]"'
    )
