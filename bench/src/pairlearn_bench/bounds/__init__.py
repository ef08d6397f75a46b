"""The theorems of SconfConfDiff classification as functions that return numbers.

Each function is the right-hand side of one theorem or lemma of the SconfConfDiff paper (Tate,
Sugiyama and Uchida, arXiv:2508.05108). They compose as the proofs do: an estimation error is twice
a uniform deviation, which is twice a contraction plus a McDiarmid term. The symbols:

================================  =========  ======================================================
argument                          symbol     meaning
================================  =========  ======================================================
``n``                             n          number of pairs
``delta``                         δ          the bound may fail with this probability
``prior``                         π₊         class prior P(y = +1); π₋ = 1 − π₊
``lipschitz``                     L          Lipschitz constant of the loss ℓ(z, y) in z
``loss_bound``                    C          upper bound of the loss; the lower one is 0
``rademacher``                    R          Rademacher complexity of the classifiers on n instances
``correction_lipschitz``          L_f        of the correction f; 1 for ReLU and ABS
``negativity``                    Δ          bounds P(some partial risk ≤ 0): :func:`delta_scd`
``floors``                        a, b, …    lower bounds of the expected partial risks
``gamma``                         γ          weight of Sconf in the convex estimator
================================  =========  ======================================================

Also, q = π₊² + π₋², m = max(π₊, π₋), d = |π₊ − π₋| and t(k) = √(log(k/δ) / 2n).

``form="printed"``, the default, is the formula as published. Where it does not follow from its own
proof, ``form="rederived"`` is what the same argument gives with that step redone. A printed
constant that is valid and only loose stays in both forms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pairlearn_bench.bounds.arguments import Form as Form
from pairlearn_bench.bounds.arguments import checked, checked_floors, checked_labels, require
from pairlearn_bench.bounds.arguments import linear_rademacher as linear_rademacher


def _t(n: int, delta: float, events: int) -> float:
    """McDiarmid's t(events), for increments 1/n."""
    return math.sqrt(math.log(events / delta) / (2.0 * n))


def _same_class(prior: float) -> float:
    """The probability q that both items of a pair are of one class."""
    return prior**2 + (1.0 - prior) ** 2


@checked
def contraction(
    *, prior: float, lipschitz: float, rademacher: float, form: Form = "printed"
) -> float:
    """Rademacher complexity of the SconfConfDiff loss: 3LR (Lemma A.5).

    The printed 3 bounds the ℓ₁ norm of the four weights, whose exact supremum is (2q + 3 + d)/2.
    Talagrand's lemma is for functions of one number, but a pair's loss depends on both g(x) and
    g(x'). Splitting it by argument, then contracting each part, gives (1 + 4m²)LR, ``"rederived"``:
    2 at π₊ = ½, below 3 while m < 1/√2, and 5 in the limit m → 1. Splitting into all four loss
    terms gives (2q + 3)LR, which is never smaller.

    Examples
    --------
    >>> round(contraction(prior=0.2, lipschitz=1.0, rademacher=0.1, form="rederived"), 6)
    0.356
    """
    factor = 3.0 if form == "printed" else 1.0 + 4.0 * max(prior, 1.0 - prior) ** 2
    return factor * lipschitz * rademacher


@checked
def uniform_deviation(
    *, n: int, delta: float, prior: float, lipschitz: float, loss_bound: float, rademacher: float,
    form: Form = "printed",
) -> float:  # fmt: skip
    """Largest gap between true and empirical SconfConfDiff risk: 6LR + (q + 5/2)·C·t(2).

    With probability 1 − δ it holds for every classifier at once (Lemma A.6). ``"rederived"`` puts
    the rederived :func:`contraction` instead of 3LR. The proof gets q + 5/2 as the range of one
    pair's loss, from (2q + 1)C down to (q − 3/2)C. The upper end drops negative weights: the true
    one is higher by d(1 − d)C/4, at most C/16. On feasible labels the lower end is only
    −(1 − m)dC, so the true range is (2 + 3d/4 + d²/4)C, at least C/2 below the printed one.

    Examples
    --------
    >>> setting = dict(n=5000, delta=0.05, prior=0.2, lipschitz=1, loss_bound=1, rademacher=0.01)
    >>> round(uniform_deviation(**setting), 4)
    0.1211
    """
    complexity = contraction(prior=prior, lipschitz=lipschitz, rademacher=rademacher, form=form)
    return 2.0 * complexity + (_same_class(prior) + 2.5) * loss_bound * _t(n, delta, 2)


def estimation_error(
    *, n: int, delta: float, prior: float, lipschitz: float, loss_bound: float, rademacher: float,
    form: Form = "printed",
) -> float:  # fmt: skip
    """Excess risk of the SconfConfDiff minimiser: 12LR + (2q + 5)·C·t(2) (Theorem 3.5).

    Twice :func:`uniform_deviation`, with the same arguments, in either form.

    Examples
    --------
    >>> setting = dict(n=5000, delta=0.05, prior=0.2, lipschitz=1, loss_bound=1, rademacher=0.01)
    >>> round(estimation_error(**setting), 4)
    0.2422
    """
    return 2.0 * uniform_deviation(
        n=n, delta=delta, prior=prior, lipschitz=lipschitz, loss_bound=loss_bound,
        rademacher=rademacher, form=form,
    )  # fmt: skip


@checked
def robust_estimation_error(
    *, similarity: ArrayLike, noisy_similarity: ArrayLike, difference: ArrayLike,
    noisy_difference: ArrayLike, prior: float, noisy_prior: float, delta: float, lipschitz: float,
    loss_bound: float, rademacher: float, form: Form = "printed",
) -> float:  # fmt: skip
    """Excess risk when labels s̄, c̄ and prior π̄ are noisy (Theorem 3.7).

    ``24LR + (4q + 10)·C·t(2) + 4C·mean(|π̄₊c̄ − π₊c| + |π̄₋c̄ − π₋c| + |s̄ − s|)
    + 4C(|π̄₊² − π₊²| + |π̄₋² − π₋²| + |π̄₊ − π₊|)``. n is the length of the four arrays.

    Valid, and loose: comparing with g* directly, not by way of the clean minimiser, needs 2, not
    4, uniform deviations; and the terms in c could have half their factor, since they multiply a
    difference of two losses. ``"rederived"`` changes the contraction only.

    Examples
    --------
    >>> labels = dict(similarity=[0.9, 0.3], difference=[0.1, -0.6])
    >>> noisy = dict(noisy_similarity=[0.8, 0.3], noisy_difference=[0.1, -0.5])
    >>> round(robust_estimation_error(**labels, **noisy, prior=0.2, noisy_prior=0.2, delta=0.05,
    ...                               lipschitz=1, loss_bound=1, rademacher=0.0), 4)
    12.6153
    """
    s, s_bar, c, c_bar = checked_labels(similarity, noisy_similarity, difference, noisy_difference)
    error = estimation_error(
        n=s.size, delta=delta, prior=prior, lipschitz=lipschitz, loss_bound=loss_bound,
        rademacher=rademacher, form=form,
    )  # fmt: skip
    plus, plus_bar = prior, noisy_prior
    minus, minus_bar = 1.0 - plus, 1.0 - plus_bar
    in_difference = np.abs(plus_bar * c_bar - plus * c) + np.abs(minus_bar * c_bar - minus * c)
    in_labels = float(np.mean(in_difference + np.abs(s_bar - s)))
    in_prior = abs(plus_bar**2 - plus**2) + abs(minus_bar**2 - minus**2) + abs(plus_bar - plus)
    return 2.0 * error + 4.0 * loss_bound * (in_labels + in_prior)


@checked
def delta_scd(
    *, n: int, prior: float, loss_bound: float, floors: Sequence[float], form: Form = "printed"
) -> float:
    """Δ of Theorem 3.8: bounds P(one of the four partial risks is not positive) (Lemma A.7).

    Σ exp(−4φ²n / ((4π + 1)²C²)) over the floors φ = a, b, c, d of E[Â], E[B̂], E[Ĉ], E[D̂], with
    π = π₊ for a and c, π₋ for b and d. One pair moves Â by at most w/n with w = (4π₊ + 1)C/2, and
    McDiarmid's exponent is then 2φ²n/w²: 8, ``"rederived"``, instead of the printed 4.

    Examples
    --------
    >>> round(delta_scd(n=5000, prior=0.2, loss_bound=1, floors=[0.05, 0.1, 0.05, 0.1]), 7)
    2.42e-05
    """
    widths = [4.0 * prior + 1.0, 4.0 * (1.0 - prior) + 1.0] * 2
    scale = (4.0 if form == "printed" else 8.0) * n
    places = zip(checked_floors(floors, 4, loss_bound), widths, strict=True)
    return sum(math.exp(-scale * (phi / width) ** 2) for phi, width in places)


@checked
def correction_bias(*, loss_bound: float, correction_lipschitz: float, negativity: float) -> float:
    """Bias of the corrected risk, E[R̃(g)] − R(g) ≤ 3(L_f + 1)CΔ (Theorem 3.8).

    Examples
    --------
    >>> round(correction_bias(loss_bound=1, correction_lipschitz=1, negativity=0.01), 6)
    0.06
    """
    return 3.0 * (correction_lipschitz + 1.0) * loss_bound * negativity


@checked
def corrected_deviation(
    *, n: int, delta: float, loss_bound: float, correction_lipschitz: float, negativity: float
) -> float:
    """Gap between corrected and true risk of one fixed classifier (Theorem 3.8).

    ``|R̃(g) − R(g)| ≤ 6L_f·C·t(2) + 3(L_f + 1)CΔ`` with probability 1 − δ.

    Examples
    --------
    >>> round(corrected_deviation(n=5000, delta=0.05, loss_bound=1, correction_lipschitz=1,
    ...                           negativity=0.0), 4)
    0.1152
    """
    slope = correction_lipschitz
    bias = correction_bias(loss_bound=loss_bound, correction_lipschitz=slope, negativity=negativity)
    return 6.0 * slope * loss_bound * _t(n, delta, 2) + bias


@checked
def corrected_estimation_error(
    *, n: int, delta: float, prior: float, lipschitz: float, loss_bound: float,
    correction_lipschitz: float, rademacher: float, negativity: float, form: Form = "printed",
) -> float:  # fmt: skip
    """Excess risk of the corrected minimiser (Theorem 3.9).

    6(L_f + 1)CΔ + 12LR + (12L_f + 2q + 5)·C·t(4): :func:`corrected_deviation` twice and
    :func:`estimation_error` once, both at δ/2. ``"rederived"`` changes the
    contraction only. In either form one gap stays: :func:`corrected_deviation` holds for a
    classifier fixed in advance, and the proof uses it for two that were chosen on the same pairs.
    :func:`uniform_corrected_estimation_error` has no such gap.

    Examples
    --------
    >>> setting = dict(n=5000, delta=0.05, prior=0.2, lipschitz=1, loss_bound=1, rademacher=0.01)
    >>> round(corrected_estimation_error(correction_lipschitz=1, negativity=0.0, **setting), 4)
    0.5043
    """
    corrected = corrected_deviation(
        n=n, delta=delta / 2.0, loss_bound=loss_bound, correction_lipschitz=correction_lipschitz,
        negativity=negativity,
    )  # fmt: skip
    return 2.0 * corrected + estimation_error(
        n=n, delta=delta / 2.0, prior=prior, lipschitz=lipschitz, loss_bound=loss_bound,
        rademacher=rademacher, form=form,
    )  # fmt: skip


@checked
def uniform_corrected_estimation_error(
    *, n: int, delta: float, prior: float, lipschitz: float, loss_bound: float,
    correction_lipschitz: float, rademacher: float,
) -> float:  # fmt: skip
    """Excess risk of the corrected minimiser without Δ: L_f·(4(2q + 3)LR + 12·C·t(8)); ours.

    It needs f(z) = z for z ≥ 0, true of every correction max(z, −τz). The expected partial risks
    are not negative, so f leaves them alone and ``|R̃(g) − R(g)| ≤ L_f·Σ|Â − E[Â]|`` over the
    four. Bounding each uniformly (contraction term by term, 2q + 3 in all; increments adding to
    6C/n; eight one-sided events) covers the minimiser on the data too, and
    R(g̃) − R(g*) is at most twice that. The same route serves the convex estimator.

    Examples
    --------
    >>> setting = dict(n=5000, delta=0.05, prior=0.2, lipschitz=1, loss_bound=1, rademacher=0.01)
    >>> round(uniform_corrected_estimation_error(correction_lipschitz=1, **setting), 4)
    0.4447
    """
    complexity = 4.0 * (2.0 * _same_class(prior) + 3.0) * lipschitz * rademacher
    return correction_lipschitz * (complexity + 12.0 * loss_bound * _t(n, delta, 8))


@checked
def convex_uniform_deviation(
    *, n: int, delta: float, prior: float, gamma: float, lipschitz: float, loss_bound: float,
    rademacher: float, form: Form = "printed",
) -> float:  # fmt: skip
    """Largest gap for the convex estimator: (2γ/d + 4(1 − γ))LR + (γ/d + 2(1 − γ))·C·t(4).

    Lemma B.2. Not defined at π₊ = ½, except for γ = 0, which is ConfDiff. The Sconf part holds
    argument by argument. The ConfDiff part has the slip of :func:`contraction`: by argument it is
    2(1 + 2m) = 4 + 2d, ``"rederived"``, where 4 is printed.

    Examples
    --------
    >>> setting = dict(n=5000, delta=0.05, prior=0.2, lipschitz=1, loss_bound=1, rademacher=0.01)
    >>> round(convex_uniform_deviation(gamma=0.5, **setting), 4)
    0.075
    """
    confdiff = 4.0 if form == "printed" else 4.0 + 2.0 * _gap(prior, gamma)
    complexity = _mix(prior, gamma, 2.0, confdiff) * lipschitz * rademacher
    return complexity + _mix(prior, gamma, 1.0, 2.0) * loss_bound * _t(n, delta, 4)


def convex_estimation_error(
    *, n: int, delta: float, prior: float, gamma: float, lipschitz: float, loss_bound: float,
    rademacher: float, form: Form = "printed",
) -> float:  # fmt: skip
    """Excess risk of the convex minimiser: twice :func:`convex_uniform_deviation`.

    Theorem B.1: (4γ/d + 8(1 − γ))LR + (2γ/d + 4(1 − γ))·C·t(4).

    Examples
    --------
    >>> setting = dict(n=5000, delta=0.05, prior=0.5, lipschitz=1, loss_bound=1, rademacher=0.01)
    >>> round(convex_estimation_error(gamma=0, **setting), 4)
    0.1637
    """
    return 2.0 * convex_uniform_deviation(
        n=n, delta=delta, prior=prior, gamma=gamma, lipschitz=lipschitz, loss_bound=loss_bound,
        rademacher=rademacher, form=form,
    )  # fmt: skip


@checked
def convex_robust_estimation_error(
    *, similarity: ArrayLike, noisy_similarity: ArrayLike, difference: ArrayLike,
    noisy_difference: ArrayLike, prior: float, delta: float, gamma: float, lipschitz: float,
    loss_bound: float, rademacher: float, form: Form = "printed",
) -> float:  # fmt: skip
    """Excess risk of the convex minimiser on noisy labels (Theorem B.3).

    ``(8γ/d + 16(1 − γ))LR + (4γ/d + 8(1 − γ))·C·t(4) + 2C·(γ/d)·mean|s̄ − s|
    + 4C(1 − γ)·mean|c̄ − c|``. The prior is taken as exact. Loose in the two places named in
    :func:`robust_estimation_error`, and valid.

    Examples
    --------
    >>> round(convex_robust_estimation_error(similarity=[0.9], noisy_similarity=[0.8],
    ...     difference=[0.1], noisy_difference=[0.1], prior=0.25, delta=0.05, gamma=1, lipschitz=1,
    ...     loss_bound=1, rademacher=0.0), 4)
    12.2417
    """
    s, s_bar, c, c_bar = checked_labels(similarity, noisy_similarity, difference, noisy_difference)
    error = convex_estimation_error(
        n=s.size, delta=delta, prior=prior, gamma=gamma, lipschitz=lipschitz, loss_bound=loss_bound,
        rademacher=rademacher, form=form,
    )  # fmt: skip
    in_similarity, in_difference = np.abs([s_bar - s, c_bar - c]).mean(axis=1).tolist()
    noise = _mix(prior, gamma, in_similarity, 2.0 * in_difference)
    return 2.0 * (error + loss_bound * noise)


@checked
def convex_corrected_estimation_error(
    *, n: int, delta: float, prior: float, gamma: float, lipschitz: float, loss_bound: float,
    correction_lipschitz: float, rademacher: float, negativity_sconf: float,
    negativity_confdiff: float, form: Form = "printed",
) -> float:  # fmt: skip
    """Excess risk of the corrected convex minimiser (Theorem B.4).

    (2γ/d + 4(1 − γ))(L_f + 1)·C·t(8) + (2γΔ_Sconf/d + 4(1 − γ)Δ_CD)(L_f + 1)C
    + (4γ/d + 8(1 − γ))LR, with :func:`delta_sconf` and :func:`delta_confdiff`.

    The inequality before it divides the ConfDiff term by d as well; the theorem does not, rightly.
    One pair moves the corrected Sconf risk by up to 2L_f·C/(nd), two partial risks by C/(nd) each,
    and the corrected ConfDiff risk by 4L_f·C/n, four by C/n each; half of both is printed.
    ``"rederived"`` doubles the part of the first term in L_f and redoes the contraction. The gap
    named in :func:`corrected_estimation_error` is here too.

    Examples
    --------
    >>> setting = dict(n=5000, delta=0.05, prior=0.2, lipschitz=1, loss_bound=1, rademacher=0.01)
    >>> round(convex_corrected_estimation_error(gamma=0.5, correction_lipschitz=1,
    ...     negativity_sconf=0.0, negativity_confdiff=0.0, **setting), 4)
    0.2385
    """
    slope = correction_lipschitz
    factor = slope if form == "printed" else 2.0 * slope
    increments = factor * _mix(prior, gamma, 1.0, 2.0) * _t(n, delta, 8)
    bias = (slope + 1.0) * _mix(prior, gamma, negativity_sconf, 2.0 * negativity_confdiff)
    return 2.0 * loss_bound * (increments + bias) + convex_estimation_error(
        n=n, delta=delta / 2.0, prior=prior, gamma=gamma, lipschitz=lipschitz,
        loss_bound=loss_bound, rademacher=rademacher, form=form,
    )  # fmt: skip


@checked
def delta_sconf(
    *, n: int, prior: float, loss_bound: float, floors: Sequence[float], form: Form = "printed"
) -> float:
    """Δ_Sconf = exp(−d²n/(2C²))·(exp(α²) + exp(β²)) (Theorem B.4).

    ``floors`` are α and β, lower bounds of the expected positive and negative Sconf partial risk.

    The printed form cannot be right: it grows with the floors, and at α = β = 0 it claims that
    both partial risks become positive whatever the classifier. α² and β² belong inside the
    exponent. One pair moves a partial risk by at most C/(nd), (s − π₋) having range 1 and the two
    losses summing to 2C at most, so McDiarmid gives exp(−2α²d²n/C²) + exp(−2β²d²n/C²),
    ``"rederived"``. Moving the squares alone would keep the ½ instead of 2: valid, and loose.

    Examples
    --------
    >>> delta_sconf(n=100, prior=0.2, loss_bound=1, floors=[0, 0], form="rederived")
    2.0
    """
    scale = n * _gap(prior, 1.0) ** 2
    squares = np.square(checked_floors(floors, 2, loss_bound))
    exponents = -2.0 * scale * squares
    if form == "printed":
        exponents = squares * loss_bound**2 - scale / loss_bound**2 / 2.0
    with np.errstate(over="ignore"):  # the printed form grows without limit; inf says so
        return float(np.exp(exponents).sum())


@checked
def delta_confdiff(*, n: int, loss_bound: float, floors: Sequence[float]) -> float:
    """Δ_CD = Σ exp(−2φ²n/C²) over the four floors of the ConfDiff partial risks (Theorem B.4).

    Each partial risk moves by at most C/n with one pair, so this follows from McDiarmid as printed.

    Examples
    --------
    >>> delta_confdiff(n=100, loss_bound=1, floors=[0, 0, 1, 1])
    2.0
    """
    return sum(math.exp(-2.0 * n * floor**2) for floor in checked_floors(floors, 4, loss_bound))


def _mix(prior: float, gamma: float, sconf: float, confdiff: float) -> float:
    """The weighted sum γ·sconf/d + (1 − γ)·confdiff, without the first term at γ = 0."""
    gap = _gap(prior, gamma)
    return (gamma * sconf / gap if gamma > 0.0 else 0.0) + (1.0 - gamma) * confdiff


def _gap(prior: float, gamma: float) -> float:
    """The distance d = |π₊ − π₋|; an error if it is 0 and Sconf has weight."""
    gap = abs(2.0 * prior - 1.0)
    advice = (
        "the Sconf bounds divide by |2·prior − 1|. Defined at 0.5 are gamma=0 (ConfDiff alone), "
        "delta_confdiff, and the SconfConfDiff bounds, such as estimation_error"
    )
    require(gap > 0.0 or gamma == 0.0, "prior", "differ from 0.5", prior, advice)
    return gap
