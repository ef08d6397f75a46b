"""Python functions as annotators.

A function that judges pairs is called as ``f(left, right)`` and returns ``(similarity,
difference)``; one that judges items is called as ``f(item)`` and returns P(y = +1 | x).
Either returns None where it cannot say. Arguments are `pairlearn.annotate.items.ItemView`: a
cell of a table is ``dict(item.rows)[name]``, a text ``item.text``, an image ``item.image_path``.
On the command line it is named ``module:function``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlearn.annotate.models.errors import ModelError
from pairlearn.annotate.models.judging import PairModel, PosteriorModel, Said, SaidOfItem

if TYPE_CHECKING:
    from pairlearn.annotate.items import ItemView

__all__ = ["find_function", "item_model", "pair_model"]


def find_function(name: str) -> Callable[..., Any]:
    """Import ``module:function``; the current folder is searched, too.

    Examples
    --------
    >>> find_function("math:hypot")(3, 4)
    5.0
    >>> find_function("math")
    Traceback (most recent call last):
    pairlearn.annotate.models.errors.ModelError: 'math' must be module:function, such as
    mymodel:judge
    """
    module_name, colon, path = name.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module_name.split("."), path)):
        raise ModelError(f"{name!r} must be module:function, such as mymodel:judge")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ModelError(f"{module_name!r} cannot be imported: {error}") from None
    function = getattr(module, path, None)
    if not callable(function):
        raise ModelError(f"{module_name!r} has no function {path!r}")
    return function  # type: ignore[no-any-return]  # callable() does not tell its type


def pair_model(function: Callable[[ItemView, ItemView], Any]) -> PairModel:
    """A function of two items, with its answers checked.

    Examples
    --------
    >>> pair_model(lambda left, right: (0.6, 0.2))("a", "b")
    Said(similarity=0.6, difference=0.2, mass=1.0)
    >>> pair_model(lambda left, right: (60, 20))("a", "b")
    Traceback (most recent call last):
    pairlearn.annotate.models.errors.ModelError: <lambda> returned (60, 20): similarity must
    lie in [0, 1]
    """

    def ask(first: ItemView, second: ItemView) -> Said:
        answer = _called(function, first, second)
        if answer is None:
            return Said(None, None, 0.0)
        try:
            similarity, difference = map(float, answer)
        except (TypeError, ValueError):
            raise _wrong(
                function, answer, "return (similarity, difference), or None for “can't say”"
            ) from None
        if not 0 <= similarity <= 1:  # the comparison refuses NaN
            raise _wrong(function, answer, "similarity must lie in [0, 1]")
        if not -1 <= difference <= 1:
            raise _wrong(function, answer, "difference must lie in [-1, 1]")
        return Said(similarity, difference)

    return ask


def item_model(function: Callable[[ItemView], Any]) -> PosteriorModel:
    """A function of one item, with its answers checked.

    Examples
    --------
    >>> item_model(lambda item: 0.8)("a")
    SaidOfItem(posterior=0.8, mass=1.0)
    """

    def ask(item: ItemView) -> SaidOfItem:
        answer = _called(function, item)
        if answer is None:
            return SaidOfItem(None, 0.0)
        try:
            posterior = float(answer)
        except (TypeError, ValueError):
            raise _wrong(function, answer, "return P(positive), or None for “can't say”") from None
        if not 0 <= posterior <= 1:
            raise _wrong(function, answer, "P(positive) must lie in [0, 1]")
        return SaidOfItem(posterior)

    return ask


def _called(function: Callable[..., Any], *items: ItemView) -> Any:
    """What the function returns; an item that was taken for a row or a dict is explained."""
    try:
        return function(*items)
    except (AttributeError, TypeError) as error:
        if "ItemView" not in str(error):
            raise
        raise ModelError(
            f"{_name(function)} failed with {type(error).__name__}: {error}. A cell of a table is "
            "dict(item.rows)[name], as text; a text is item.text, an image item.image_path"
        ) from error


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _wrong(function: Callable[..., Any], answer: Any, what: str) -> ModelError:
    return ModelError(f"{_name(function)} returned {repr(answer)[:80]}: {what}")
