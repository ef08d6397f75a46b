"""What a command says when it cannot do what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["REFUSED", "refusing"]

REFUSED = 2
"""Exit code of a wrong request."""


@contextmanager
def refusing(command: str) -> Iterator[None]:
    """Turn an error in the request into one line and exit code 2.

    Parameters
    ----------
    command : str
        Its name, which starts the line.

    Examples
    --------
    >>> with refusing("check"):
    ...     print("all is well")
    all is well
    """
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        typer.echo(f"pairlearn {command}: {error}", err=True)
        raise typer.Exit(REFUSED) from None
