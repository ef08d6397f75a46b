"""Packages that pairlearn does without until they are needed."""

from __future__ import annotations

__all__ = ["missing_extra"]


def missing_extra(extra: str, package: str, purpose: str) -> ImportError:
    """The error for a package that only an extra installs, with the command for a clone."""
    return ImportError(
        f'{purpose} needs {package}: in a clone of pairlearn, pip install ".[{extra}]"'
    )
