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

from pairlearn.paper.bounds.quantities import Form as Form
from pairlearn.paper.bounds.quantities import RademacherEstimate as RademacherEstimate
from pairlearn.paper.bounds.quantities import empirical_rademacher as empirical_rademacher
from pairlearn.paper.bounds.quantities import linear_rademacher as linear_rademacher
from pairlearn.paper.bounds.theorems import contraction as contraction
from pairlearn.paper.bounds.theorems import (
    convex_corrected_estimation_error as convex_corrected_estimation_error,
)
from pairlearn.paper.bounds.theorems import convex_estimation_error as convex_estimation_error
from pairlearn.paper.bounds.theorems import (
    convex_robust_estimation_error as convex_robust_estimation_error,
)
from pairlearn.paper.bounds.theorems import convex_uniform_deviation as convex_uniform_deviation
from pairlearn.paper.bounds.theorems import corrected_deviation as corrected_deviation
from pairlearn.paper.bounds.theorems import corrected_estimation_error as corrected_estimation_error
from pairlearn.paper.bounds.theorems import correction_bias as correction_bias
from pairlearn.paper.bounds.theorems import delta_confdiff as delta_confdiff
from pairlearn.paper.bounds.theorems import delta_scd as delta_scd
from pairlearn.paper.bounds.theorems import delta_sconf as delta_sconf
from pairlearn.paper.bounds.theorems import estimation_error as estimation_error
from pairlearn.paper.bounds.theorems import robust_estimation_error as robust_estimation_error
from pairlearn.paper.bounds.theorems import (
    uniform_corrected_estimation_error as uniform_corrected_estimation_error,
)
from pairlearn.paper.bounds.theorems import uniform_deviation as uniform_deviation
