"""What can end a run of a model annotator before its last pair."""

from __future__ import annotations

__all__ = ["LimitReached", "ModelError", "Stopped"]


class ModelError(ValueError):
    """The model or the endpoint cannot be used as asked; what was judged before is kept.

    Examples
    --------
    >>> raise ModelError("similarity must lie in [0, 1]; got 7")
    Traceback (most recent call last):
    pairlearn.annotate.models.errors.ModelError: similarity must lie in [0, 1]; got 7
    """


class LimitReached(Exception):
    """A limit on requests or on cost allows no further question; run again to go on.

    Examples
    --------
    >>> str(LimitReached("max-requests"))
    'max-requests'
    """


class Stopped(Exception):
    """Somebody asked for an end while a question waited for its turn.

    Examples
    --------
    >>> issubclass(Stopped, ModelError)
    False
    """
