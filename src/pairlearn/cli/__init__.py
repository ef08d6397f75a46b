"""The `pairlearn` command: one file a command group, each imported when it is needed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairlearn.cli.root import app as app

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    """Import the app on first use, so that `main` can handle an interrupt of the imports."""
    if name == "app":
        from pairlearn.cli.root import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Run the command line."""
    try:
        from pairlearn.cli.root import app

        app()
    except KeyboardInterrupt:
        sys.exit(130)
