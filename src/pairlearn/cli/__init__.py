"""The `pairlearn` command: one file a command group, each imported when it is needed."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; an interrupt is handled even while it is imported."""
    try:
        from pairlearn.cli.root import app

        app(prog_name="pairlearn")
    except KeyboardInterrupt:
        sys.exit(130)
