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

**Two forms.** ``form="printed"``, the default, is the formula as published. Where it does not
follow from its own proof, ``form="rederived"`` is what the same argument gives with that step
redone; the docstring says which. A printed constant that is valid and only loose stays in both
forms. Functions without ``form`` have nothing to redo.
"""

from __future__ import annotations

from pairlearn.paper.bounds.convex import (
    convex_corrected_estimation_error,
    convex_estimation_error,
    convex_robust_estimation_error,
    convex_uniform_deviation,
    delta_confdiff,
    delta_sconf,
)
from pairlearn.paper.bounds.quantities import Form as Form
from pairlearn.paper.bounds.quantities import (
    RademacherEstimate,
    empirical_rademacher,
    linear_rademacher,
)
from pairlearn.paper.bounds.sconfconfdiff import (
    contraction,
    corrected_deviation,
    corrected_estimation_error,
    correction_bias,
    delta_scd,
    estimation_error,
    robust_estimation_error,
    uniform_corrected_estimation_error,
    uniform_deviation,
)

__all__ = [
    "Form",
    "RademacherEstimate",
    "contraction",
    "convex_corrected_estimation_error",
    "convex_estimation_error",
    "convex_robust_estimation_error",
    "convex_uniform_deviation",
    "corrected_deviation",
    "corrected_estimation_error",
    "correction_bias",
    "delta_confdiff",
    "delta_scd",
    "delta_sconf",
    "empirical_rademacher",
    "estimation_error",
    "linear_rademacher",
    "robust_estimation_error",
    "uniform_corrected_estimation_error",
    "uniform_deviation",
]
