"""Optional packages."""

from __future__ import annotations

__all__ = ["missing_extra"]


def missing_extra(extra: str, package: str, purpose: str) -> ImportError:
    """The error for a missing package of an extra, with the command that installs it."""
    return ImportError(
        f'{purpose} needs {package}: in a clone of pairlearn, pip install ".[{extra}]"'
    )
