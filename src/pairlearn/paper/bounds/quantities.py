"""The quantities the bounds are made of: checked arguments, and the terms they share."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Form: TypeAlias = Literal["printed", "rederived"]


def mcdiarmid_term(n: int, delta: float, events: int) -> float:
    """McDiarmid's t(events) = √(log(events/δ) / 2n), for increments 1/n."""
    advice = "it is the failure probability, 0.05 for 95% confidence"
    require(0.0 < delta < 1.0, "delta", "lie strictly between 0 and 1", delta, advice)
    return math.sqrt(math.log(events / delta) / (2.0 * valid_pairs(n)))


def loss_complexity(lipschitz: float, rademacher: float) -> float:
    """The product LR that every contraction multiplies."""
    return non_negative("lipschitz", lipschitz) * non_negative("rademacher", rademacher)


def same_class(prior: float) -> float:
    """The chance q = π₊² + π₋² that a pair is of one class."""
    return valid_prior(prior) ** 2 + (1.0 - prior) ** 2


def require(holds: bool, name: str, rule: str, value: object, advice: str) -> None:
    """Raise an error that names the argument, its value and what to do, unless ``holds``."""
    if not holds:
        raise ValueError(f"{name} must {rule}, got {value!r}; {advice}")


def is_rederived(form: Form) -> bool:
    """Whether the rederived form is asked for; only the two forms are accepted."""
    advice = "'printed' is the published formula"
    require(form in ("printed", "rederived"), "form", "be 'printed' or 'rederived'", form, advice)
    return form == "rederived"


def valid_prior(value: float, name: str = "prior") -> float:
    """A class prior, strictly between 0 and 1."""
    rule = "lie strictly between 0 and 1"
    require(0.0 < value < 1.0, name, rule, value, "pass P(y = +1), such as 0.2")
    return value


def valid_pairs(value: int) -> int:
    """A number of pairs n ≥ 1."""
    return valid_integer("n", value, 1, "it is the number of pairs")


def valid_integer(name: str, value: int, least: int, advice: str) -> int:
    """An integer ≥ ``least``, of Python or NumPy; booleans are refused."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(whole and value >= least, name, f"be an integer ≥ {least}", value, advice)
    return operator.index(value)


def non_negative(name: str, value: float) -> float:
    """A finite number ≥ 0."""
    advice = "bound the classifiers' outputs if it has no finite value"
    require(0.0 <= value < math.inf, name, "be finite and not negative", value, advice)
    return value


def positive(name: str, value: float) -> float:
    """A finite number > 0."""
    require(non_negative(name, value) > 0, name, "be positive", value, "a loss of 0 has no risk")
    return value


def valid_floors(values: Sequence[float], count: int) -> list[float]:
    """One lower bound ≥ 0 for each of ``count`` partial risks."""
    advice = "pass one per partial risk, 0 where no lower bound is known"
    require(len(values) == count, "floors", f"have {count} values", values, advice)
    return [non_negative(f"floors[{i}]", float(value)) for i, value in enumerate(values)]


def label_arrays(
    similarity: ArrayLike, noisy_s: ArrayLike, difference: ArrayLike, noisy_c: ArrayLike
) -> list[NDArray[np.float64]]:
    """The four label arrays; only the clean ones have a range, since noise may leave it."""
    arrays = {
        "similarity": np.asarray(similarity, dtype=np.float64),
        "noisy_similarity": np.asarray(noisy_s, dtype=np.float64),
        "difference": np.asarray(difference, dtype=np.float64),
        "noisy_difference": np.asarray(noisy_c, dtype=np.float64),
    }
    lows = {"similarity": 0.0, "difference": -1.0}
    shape = arrays["similarity"].shape
    for name, array in arrays.items():
        fits = array.ndim == 1 and array.size > 0 and array.shape == shape
        rule = "be 1-d, non-empty and as long as similarity"
        require(fits, name, rule, array.shape, "pass one value per pair")
        low, high = (lows[name], 1.0) if name in lows else (-math.inf, math.inf)
        bad = array[~(np.isfinite(array) & (array >= low) & (array <= high))]
        advice = "drop pairs without labels, and pass noisy values as noisy_ arguments"
        require(bad.size == 0, name, f"be finite and in [{low:g}, {high:g}]", bad[:3], advice)
    return list(arrays.values())


def linear_rademacher(*, n: int, weight_norm: float, feature_radius: float) -> float:
    """Rademacher complexity of x ↦ ⟨w, x⟩ with ‖w‖ ≤ B and ‖x‖ ≤ X: at most B·X/√n.

    Standard (for example Mohri et al., Foundations of Machine Learning, Theorem 5.10).

    Examples
    --------
    >>> linear_rademacher(n=100, weight_norm=2.0, feature_radius=3.0)
    0.6
    """
    size = non_negative("weight_norm", weight_norm)
    return size * non_negative("feature_radius", feature_radius) / math.sqrt(valid_pairs(n))


@dataclass(frozen=True)
class RademacherEstimate:
    """A Monte Carlo estimate of a Rademacher complexity, with its standard error."""

    value: float
    standard_error: float


def empirical_rademacher(
    outputs: ArrayLike, draws: int = 1000, seed: int = 0
) -> RademacherEstimate:
    """Estimate E_σ[max over g of (1/n)·Σ σᵢ g(xᵢ)] for finitely many classifiers.

    Parameters
    ----------
    outputs : array_like of shape (functions, n)
        Row k holds the outputs of classifier k on the n instances.
    draws : int
        Number of random sign vectors, at least 2.
    seed : int

    Examples
    --------
    >>> estimate = empirical_rademacher([[1.0, 1.0], [-1.0, -1.0]], draws=4000)
    >>> abs(estimate.value - 0.5) < 4 * estimate.standard_error
    True
    """
    table = np.asarray(outputs, dtype=np.float64)
    rule, advice = "be a non-empty (functions, n) array", "for one classifier pass outputs[None, :]"
    require(table.ndim == 2 and table.size > 0, "outputs", rule, table.shape, advice)
    bad = table[~np.isfinite(table)]
    require(bad.size == 0, "outputs", "be finite", bad[:3], "drop classifiers that overflow")
    count = valid_integer("draws", draws, 2, "a standard error needs two sign vectors")
    rng = np.random.default_rng(seed)
    suprema = np.empty(count)
    block = max(1, 2**22 // max(table.shape))  # keeps the working memory near 100 MiB
    for start in range(0, count, block):
        size = min(block, count - start)
        signs = 2.0 * rng.integers(0, 2, size=(size, table.shape[1])) - 1.0
        suprema[start : start + size] = (signs @ table.T).max(axis=1) / table.shape[1]
    error = suprema.std(ddof=1) / math.sqrt(count)
    return RademacherEstimate(value=float(suprema.mean()), standard_error=float(error))
