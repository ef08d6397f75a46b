"""The bounds of the convex combination of Sconf and ConfDiff."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pairlearn.paper.bounds.quantities import (
    Form,
    is_rederived,
    label_arrays,
    loss_complexity,
    mcdiarmid_term,
    non_negative,
    positive,
    require,
    valid_floors,
    valid_pairs,
    valid_prior,
)


def convex_uniform_deviation(
    *, n: int, delta: float, prior: float, gamma: float, lipschitz: float, loss_bound: float,
    rademacher: float, form: Form = "printed",
) -> float:  # fmt: skip
    """Largest gap for the convex estimator: (2γ/d + 4(1 − γ))LR + (γ/d + 2(1 − γ))·C·t(4).

    Lemma B.2. Not defined at π₊ = ½, except for γ = 0, which is ConfDiff.

    Notes
    -----
    The Sconf part holds argument by argument. The ConfDiff part has the slip of
    :func:`contraction`: by argument it is 2(1 + 2m) = 4 + 2d, ``"rederived"``, where 4 is printed.

    Examples
    --------
    >>> round(convex_uniform_deviation(n=5000, delta=0.05, prior=0.2, gamma=0.5, lipschitz=1,
    ...                                loss_bound=1, rademacher=0.01), 4)
    0.075
    """
    return _convex_gap(n, delta, 4, prior, gamma, lipschitz, loss_bound, rademacher, form)


def convex_estimation_error(
    *, n: int, delta: float, prior: float, gamma: float, lipschitz: float, loss_bound: float,
    rademacher: float, form: Form = "printed",
) -> float:  # fmt: skip
    """Excess risk of the convex minimiser: twice :func:`convex_uniform_deviation`.

    Theorem B.1: (4γ/d + 8(1 − γ))LR + (2γ/d + 4(1 − γ))·C·t(4).

    Examples
    --------
    >>> round(convex_estimation_error(n=5000, delta=0.05, prior=0.5, gamma=0, lipschitz=1,
    ...                               loss_bound=1, rademacher=0.01), 4)
    0.1637
    """
    return 2.0 * _convex_gap(n, delta, 4, prior, gamma, lipschitz, loss_bound, rademacher, form)


def convex_robust_estimation_error(
    *, similarity: ArrayLike, noisy_similarity: ArrayLike, difference: ArrayLike,
    noisy_difference: ArrayLike, prior: float, delta: float, gamma: float, lipschitz: float,
    loss_bound: float, rademacher: float, form: Form = "printed",
) -> float:  # fmt: skip
    """Excess risk of the convex minimiser on noisy labels (Theorem B.3).

    ``(8γ/d + 16(1 − γ))LR + (4γ/d + 8(1 − γ))·C·t(4) + 2C·(γ/d)·mean|s̄ − s|
    + 4C(1 − γ)·mean|c̄ − c|``. The prior is taken as exact, n is the length of the arrays.

    Notes
    -----
    Loose in the two places named in :func:`robust_estimation_error`, and valid.

    Examples
    --------
    >>> round(convex_robust_estimation_error(similarity=[0.9], noisy_similarity=[0.8],
    ...     difference=[0.1], noisy_difference=[0.1], prior=0.25, delta=0.05, gamma=1, lipschitz=1,
    ...     loss_bound=1, rademacher=0.0), 4)
    12.2417
    """
    s, s_bar, c, c_bar = label_arrays(similarity, noisy_similarity, difference, noisy_difference)
    in_similarity = float(np.mean(np.abs(s_bar - s)))
    in_difference = float(np.mean(np.abs(c_bar - c)))
    noise = _mix(prior, gamma, in_similarity, 2.0 * in_difference)
    gap = _convex_gap(s.size, delta, 4, prior, gamma, lipschitz, loss_bound, rademacher, form)
    return 4.0 * gap + 2.0 * loss_bound * noise


def convex_corrected_estimation_error(
    *, n: int, delta: float, prior: float, gamma: float, lipschitz: float, loss_bound: float,
    correction_lipschitz: float, rademacher: float, negativity_sconf: float,
    negativity_confdiff: float, form: Form = "printed",
) -> float:  # fmt: skip
    """Excess risk of the corrected convex minimiser (Theorem B.4).

    (2γ/d + 4(1 − γ))(L_f + 1)·C·t(8) + (2γΔ_Sconf/d + 4(1 − γ)Δ_CD)(L_f + 1)C
    + (4γ/d + 8(1 − γ))LR, with :func:`delta_sconf` and :func:`delta_confdiff`.

    Notes
    -----
    The inequality before it divides the ConfDiff term by d as well; the theorem does not, rightly.
    One pair moves the corrected Sconf risk by up to 2L_f·C/(nd), two partial risks by C/(nd) each,
    and the corrected ConfDiff risk by 4L_f·C/n, four by C/n each; half of both is printed.
    ``"rederived"`` doubles the part of the first term in L_f and redoes the contraction. The gap
    named in :func:`corrected_estimation_error` is here too.

    Examples
    --------
    >>> round(convex_corrected_estimation_error(n=5000, delta=0.05, prior=0.2, gamma=0.5,
    ...     lipschitz=1, loss_bound=1, correction_lipschitz=1, rademacher=0.01,
    ...     negativity_sconf=0.0, negativity_confdiff=0.0), 4)
    0.2385
    """
    slope = non_negative("correction_lipschitz", correction_lipschitz)
    sconf = non_negative("negativity_sconf", negativity_sconf)
    confdiff = non_negative("negativity_confdiff", negativity_confdiff)
    increments = (2.0 if is_rederived(form) else 1.0) * slope * _mix(prior, gamma, 1.0, 2.0)
    bias = (slope + 1.0) * _mix(prior, gamma, sconf, 2.0 * confdiff)
    unbiased = _convex_gap(n, delta, 8, prior, gamma, lipschitz, loss_bound, rademacher, form)
    return 2.0 * (loss_bound * (increments * mcdiarmid_term(n, delta, 8) + bias) + unbiased)


def delta_sconf(
    *, n: int, prior: float, loss_bound: float, floors: Sequence[float], form: Form = "printed"
) -> float:
    """Δ_Sconf = exp(−d²n/(2C²))·(exp(α²) + exp(β²)) (Theorem B.4).

    ``floors`` are α and β, lower bounds of the expected positive and negative Sconf partial risk.

    Notes
    -----
    The printed form cannot be right: it grows with the floors, and at α = β = 0 it claims that
    both partial risks become positive whatever the classifier. α² and β² belong inside the
    exponent. One pair moves a partial risk by at most C/(nd), (s − π₋) having range 1 and the two
    losses summing to 2C at most, so McDiarmid gives exp(−2α²d²n/C²) + exp(−2β²d²n/C²),
    ``"rederived"``. Moving the squares alone would keep the ½ in place of 2: valid, and loose.

    Examples
    --------
    >>> delta_sconf(n=100, prior=0.2, loss_bound=1, floors=[0, 0], form="rederived")
    2.0
    """
    scale = valid_pairs(n) * (_gap(prior, 1.0) / positive("loss_bound", loss_bound)) ** 2
    squares = [floor**2 for floor in valid_floors(floors, 2)]
    if is_rederived(form):
        return sum(math.exp(-2.0 * scale * square) for square in squares)
    with np.errstate(over="ignore"):  # the printed form grows without limit; inf says so
        return float(np.exp(np.array(squares) - scale / 2.0).sum())


def delta_confdiff(*, n: int, loss_bound: float, floors: Sequence[float]) -> float:
    """Δ_CD = Σ exp(−2φ²n/C²) over the four floors of the ConfDiff partial risks (Theorem B.4).

    Each partial risk moves by at most C/n with one pair, so this follows from McDiarmid as printed.

    Examples
    --------
    >>> delta_confdiff(n=100, loss_bound=1, floors=[0, 0, 1, 1])
    2.0
    """
    scale = 2.0 * valid_pairs(n) / positive("loss_bound", loss_bound) ** 2
    return sum(math.exp(-scale * floor**2) for floor in valid_floors(floors, 4))


def _convex_gap(
    n: int, delta: float, events: int, prior: float, gamma: float, lip: float, bound: float,
    rad: float, form: Form,
) -> float:  # fmt: skip
    """The convex estimator's uniform deviation, with δ shared among ``events``."""
    confdiff = 4.0 + 2.0 * _gap(prior, gamma) if is_rederived(form) else 4.0
    spread = _mix(prior, gamma, 1.0, 2.0) * non_negative("loss_bound", bound)
    complexity = _mix(prior, gamma, 2.0, confdiff) * loss_complexity(lip, rad)
    return complexity + spread * mcdiarmid_term(n, delta, events)


def _mix(prior: float, gamma: float, sconf: float, confdiff: float) -> float:
    """The weighted sum γ·sconf/d + (1 − γ)·confdiff; γ = 0 divides by nothing."""
    gap = _gap(prior, gamma)
    return (gamma * sconf / gap if gamma > 0.0 else 0.0) + (1.0 - gamma) * confdiff


def _gap(prior: float, gamma: float) -> float:
    """The distance d = |π₊ − π₋|, refused at 0 where Sconf has weight."""
    gap = abs(2.0 * valid_prior(prior) - 1.0)
    advice = "1 is Sconf alone, 0 is ConfDiff alone"
    require(0.0 <= gamma <= 1.0, "gamma", "lie in [0, 1]", gamma, advice)
    advice = (
        "the Sconf bounds divide by |2·prior − 1|. Defined at 0.5 are gamma=0 (ConfDiff alone), "
        "delta_confdiff, and the SconfConfDiff bounds, such as estimation_error"
    )
    require(gap > 0.0 or gamma == 0.0, "prior", "differ from 0.5", prior, advice)
    return gap
