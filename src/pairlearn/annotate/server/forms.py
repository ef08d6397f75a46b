"""Read what a page sent, and refuse everything that it could not have sent."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from pairlearn.annotate.records import Answer

__all__ = ["FormError", "read_answer", "read_form", "read_name", "read_number"]

LONGEST_SECONDS = 86_400.0
"""A pair left open over night took a day at most: more is a broken clock."""

_KEY = re.compile(r"[A-Za-z0-9_-]{8,64}", re.ASCII)
_ANSWER_FIELDS = {"pair", "similarity", "difference", "cant_say", "note", "seconds", "key"}
_ROW_LIMIT = 2**53


class FormError(ValueError):
    """A body that is not what the page sends.

    Examples
    --------
    >>> issubclass(FormError, ValueError)
    True
    """


def read_form(body: bytes) -> dict[str, Any]:
    """The object in a JSON body; no NaN, no infinity, no name twice.

    Examples
    --------
    >>> read_form(b'{"pair": 3}')
    {'pair': 3}
    >>> read_form(b'{"pair": NaN}')
    Traceback (most recent call last):
    pairlearn.annotate.server.forms.FormError: NaN is not a number that can be sent
    """
    try:
        form = json.loads(
            body.decode(), parse_constant=_no_constant, object_pairs_hook=_without_repeats
        )
    except FormError:
        raise
    except (ValueError, RecursionError):
        raise FormError("the body is not JSON in UTF-8") from None
    if not isinstance(form, dict):
        raise FormError("the body must be a JSON object")
    return form


def read_answer(form: dict[str, Any]) -> tuple[int, Answer]:
    """The pair and the answer of a form.

    Parameters
    ----------
    form : dict
        ``pair`` and ``key`` always; ``similarity`` in [0, 1] and ``difference`` in
        [−1, 1], either of them null or absent where it was left open, or ``cant_say``.

    Raises
    ------
    FormError, StoreError
        If a field is missing, unknown, of the wrong type or out of range.

    Examples
    --------
    >>> pair, answer = read_answer({"pair": 3, "similarity": 0.8, "key": "form-0001"})
    >>> pair, answer.similarity, answer.difference
    (3, 0.8, None)
    """
    _only(form, _ANSWER_FIELDS)
    key = form.get("key")
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise FormError("key must be 8 to 64 letters, digits, '-' or '_'")
    cant_say = form.get("cant_say", False)
    if not isinstance(cant_say, bool):
        raise FormError("cant_say must be true or false")
    note = form.get("note", "")
    if not isinstance(note, str):
        raise FormError("note must be text")
    seconds = _real(form, "seconds")
    answer = Answer(
        similarity=_real(form, "similarity"),
        difference=_real(form, "difference"),
        cant_say=cant_say,
        note=_printable(note),
        seconds=0.0 if seconds is None else min(seconds, LONGEST_SECONDS),
        key=key,
    )
    return read_number(form, "pair"), answer


def read_number(form: dict[str, Any], name: str) -> int:
    """A whole number that counts rows.

    Examples
    --------
    >>> read_number({"pair": 7}, "pair")
    7
    """
    value = form.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _ROW_LIMIT:
        raise FormError(f"{name} must be a whole number")
    return value


def read_name(form: dict[str, Any]) -> str:
    """The name of somebody new.

    Examples
    --------
    >>> read_name({"name": " Ann "})
    'Ann'
    """
    _only(form, {"name"})
    name = form.get("name")
    if not isinstance(name, str):
        raise FormError("name must be text")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise FormError("name must be text in Unicode, without surrogates") from None
    return name.strip()


def _only(form: dict[str, Any], names: set[str]) -> None:
    for name in form:
        if name not in names:
            raise FormError("the body has a field that is not known here")


def _real(form: dict[str, Any], name: str) -> float | None:
    value = form.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise FormError(f"{name} must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FormError(f"{name} must be a finite number")
    return number


def _printable(note: str) -> str:
    """Without control characters: they have no place in a note, and forge lines in a log."""
    return "".join(letter for letter in note if letter >= " " or letter in "\n\t").strip()


def _no_constant(word: str) -> NoReturn:
    raise FormError(f"{word} is not a number that can be sent")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    form = dict(pairs)
    if len(form) != len(pairs):
        raise FormError("the body names a field twice")
    return form
