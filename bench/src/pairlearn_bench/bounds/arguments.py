"""Rules for the arguments of the bounds, and the Rademacher complexity of linear classifiers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Form: TypeAlias = Literal["printed", "rederived"]
_P = ParamSpec("_P")
_T = TypeVar("_T")


_Rule: TypeAlias = tuple[Callable[[Any], bool], str, str]
_SHARE = "lie strictly between 0 and 1"
_PRIOR: _Rule = (lambda x: 0 < x < 1, _SHARE, "pass P(y = +1), such as 0.2")
_ADVICE = "bound the classifiers' outputs if it has no finite value"
_SIZE: _Rule = (lambda x: 0 <= x < math.inf, "be finite and not negative", _ADVICE)


def _is_count(x: Any) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool) and bool(x >= 1)


#: For each argument the condition on it, the same in words, and what to do if it fails.
_RULES: dict[str, _Rule] = {
    "n": (_is_count, "be an integer ≥ 1", "it is the number of pairs"),
    "delta": (lambda x: 0 < x < 1, _SHARE, "it is the failure probability, 0.05 for 95%"),
    "prior": _PRIOR,
    "noisy_prior": _PRIOR,
    "gamma": (lambda x: 0 <= x <= 1, "lie in [0, 1]", "1 is Sconf alone, 0 is ConfDiff alone"),
    "form": (
        lambda x: x in ("printed", "rederived"),
        "be 'printed' or 'rederived'",
        "'printed' is the published formula",
    ),
    **dict.fromkeys(("lipschitz", "loss_bound", "rademacher", "correction_lipschitz"), _SIZE),
    **dict.fromkeys(("negativity", "negativity_sconf", "negativity_confdiff"), _SIZE),
    **dict.fromkeys(("weight_norm", "feature_radius"), _SIZE),
}


def require(holds: bool, name: str, rule: str, value: object, advice: str) -> None:
    """Raise an error that names the argument, its value and what to do, unless ``holds``."""
    if not holds:
        raise ValueError(f"{name} must {rule}, got {value!r}; {advice}")


def checked(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a function to refuse arguments that break a rule."""
    names = list(signature(function).parameters)

    @wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        for name, value in (dict(zip(names, args, strict=False)) | kwargs).items():
            if name in _RULES:
                holds, rule, advice = _RULES[name]
                require(holds(value), name, rule, value, advice)
        return function(*args, **kwargs)

    return wrapper


def checked_floors(values: Sequence[float], count: int, loss_bound: float) -> list[float]:
    """Check the ``count`` lower bounds of partial risks, and divide them by C."""
    require(loss_bound > 0, "loss_bound", "be positive", loss_bound, "a loss of 0 has no risk")
    advice = "pass one per partial risk, 0 where no lower bound is known"
    require(len(values) == count, "floors", f"have {count} values", values, advice)
    for index, value in enumerate(values):
        require(_SIZE[0](value), f"floors[{index}]", _SIZE[1], value, _SIZE[2])
    return [value / loss_bound for value in values]


_LABELS = ("similarity", "noisy_similarity", "difference", "noisy_difference")
_RANGES = {"similarity": (0.0, 1.0), "difference": (-1.0, 1.0)}


def checked_labels(*values: ArrayLike) -> list[NDArray[np.float64]]:
    """Check the four label arrays; only the clean ones have a range."""
    arrays = [np.asarray(value, dtype=np.float64) for value in values]
    for name, array in zip(_LABELS, arrays, strict=True):
        fits = array.ndim == 1 and array.size > 0 and array.shape == arrays[0].shape
        rule = "be 1-d, non-empty and as long as similarity"
        require(fits, name, rule, array.shape, "pass one value per pair")
        low, high = _RANGES.get(name, (-math.inf, math.inf))
        bad = array[~(np.isfinite(array) & (array >= low) & (array <= high))]
        advice = "drop pairs without labels, and pass noisy values as noisy_ arguments"
        require(bad.size == 0, name, f"be finite and in [{low:g}, {high:g}]", bad[:3], advice)
    return arrays


@checked
def linear_rademacher(*, n: int, weight_norm: float, feature_radius: float) -> float:
    """Rademacher complexity of x ↦ ⟨w, x⟩ with ‖w‖ ≤ B and ‖x‖ ≤ X: at most B·X/√n.

    Standard (for example Mohri et al., Foundations of Machine Learning, Theorem 5.10).

    Examples
    --------
    >>> linear_rademacher(n=100, weight_norm=2.0, feature_radius=3.0)
    0.6
    """
    return weight_norm * feature_radius / math.sqrt(n)
