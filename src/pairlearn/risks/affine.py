"""The affine family: weights affine in the judgements, each unbiased for its loss term.

Write π₊, π₋ for the class priors, δ = π₊ − π₋ and

    T = s + δ c − (π₊² + π₋²) = 2 (r − π₋)(r' − π₊),     E[T | x] = 0.

Since T vanishes on average for every classifier, the weight of ℓ(g(x), +1) may be
(π₊ − c) + β₊ T for any β₊; exchanging x with x', or the classes, gives the other three:

    ℓ(g(x),  +1): (π₊ − c) + β₊ T        ℓ(g(x'), +1): (π₊ + c) + β₊ T'
    ℓ(g(x),  −1): (π₋ + c) + β₋ T        ℓ(g(x'), −1): (π₋ − c) + β₋ T'

with T' = T at −c, each halved because x and x' both estimate the risk. The members of the
paper, and `NonNegative`, differ only in β (and in which weights they correct together):

    ConfDiff        β₊ = 0               β₋ = 0
    Sconf           β₊ = 1/δ             β₋ = −1/δ
    Convex(γ)       β₊ = γ/δ             β₋ = −γ/δ
    SconfConfDiff   β₊ = −1              β₋ = −1
    NonNegative     β₊ = −1/(2π₋)        β₋ = −1/(2π₊)

Which member has the least variance depends on the classifier and the data. The λ-form of
`SconfConfDiff` weights the two halves of the sum unequally; for λ ≠ ½ it is unbiased in the sum but
not term by term, and not a member.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pairlearn.columns import check_share
from pairlearn.risks.base import Risk, make_table


def affine_table(prior: float, beta_plus: float, beta_minus: float, lam: float = 0.5) -> Tensor:
    """Coefficients (4, 8, 3) of (β₊, β₋), one partial risk for each weight.

    ``lam`` is the share λ of ℓ(g(x), +1) and ℓ(g(x'), −1) against their mirror images. λ = ½ gives
    the member, with the least variance of all λ (paper, theorem on minimum variance).

    Examples
    --------
    >>> affine_table(0.5, 0.0, 0.0)[0, 0]  # ConfDiff: (π₊ − c)/2 on ℓ(g(x), +1)
    tensor([ 0.2500,  0.0000, -0.5000], dtype=torch.float64)
    """
    plus, minus = prior, 1 - prior
    agreement, gap = plus**2 + minus**2, plus - minus
    rows = (
        # term, share, constant, sign of c, β, sign of c in T
        ("positive", lam, plus, -1, beta_plus, +1),
        ("negative", 1 - lam, minus, +1, beta_minus, +1),
        ("positive_prime", 1 - lam, plus, +1, beta_plus, -1),
        ("negative_prime", lam, minus, -1, beta_minus, -1),
    )
    return make_table(
        *(
            {
                term: (
                    share * (constant - beta * agreement),
                    share * beta,
                    share * (sign + beta * gap * sign_in_t),
                )
            }
            for term, share, constant, sign, beta, sign_in_t in rows
        )
    )


class AffineRisk(Risk):
    """A member of the affine family; subclasses define β₊ and β₋.

    Parameters
    ----------
    prior : float
        The class prior π₊, in (0, 1).
    correction : {"none", "relu", "abs"} or float
        Applied to each partial risk of the batch.
    loss : str
        A margin loss of `pairlearn.losses`.
    """

    needs_prior = True

    def __init__(
        self, prior: float, *, correction: str | float = "none", loss: str = "logistic"
    ) -> None:
        check_share("prior", prior)
        self.prior = float(prior)
        super().__init__(self.make_table(), correction=correction, loss=loss)

    def betas(self) -> tuple[float, float]:
        """β₊ and β₋ at this prior."""
        raise TypeError(f"{type(self).__name__} does not define betas")

    def make_table(self) -> Tensor:
        """One partial risk for each weight; overridden where weights are corrected together."""
        return affine_table(self.prior, *self.betas())

    def extra_repr(self) -> str:
        """Name, prior and loss."""
        return f"{self.name!r}, prior={self.prior:g}, loss={self.loss.name!r}"


class ConfDiff(AffineRisk):
    """Differences alone, with weights (π₊ − c)/2 and so on.

    Wang et al., `Binary Classification with Confidence Difference
    <https://arxiv.org/abs/2310.05632>`__, NeurIPS 2023.

    Examples
    --------
    >>> zero = torch.zeros(1)
    >>> ConfDiff(0.5)(zero, zero, zero, zero)  # an undecided classifier costs log 2
    tensor(0.6931)
    """

    family = "confdiff"

    def betas(self) -> tuple[float, float]:
        """β = 0: neither T nor s is used."""
        return 0.0, 0.0


class Sconf(AffineRisk):
    """Similarities alone: (s − π₋)/(π₊ − π₋) on the + terms; undefined at π₊ = ½.

    It has two partial risks, one for the + terms of x and x', one for the − terms. Cao et al.,
    `Learning from Similarity-Confidence Data <https://arxiv.org/abs/2102.06879>`__, ICML 2021.

    Examples
    --------
    >>> risk = Sconf(0.2, correction="abs")
    >>> str(risk), tuple(risk.table.shape)
    ('sconf-abs', (2, 8, 3))
    """

    family = "sconf"

    def betas(self) -> tuple[float, float]:
        """β = ±1/(π₊ − π₋): c cancels."""
        gap = 2 * self.prior - 1
        if abs(gap) < 1e-6:
            raise ValueError(
                f"{self.family} is undefined at prior ½, where it divides by π₊ − π₋ = {gap:g}; "
                "confdiff, sconfconfdiff, nonnegative and likelihood are defined there"
            )
        return 1 / gap, -1 / gap

    def make_table(self) -> Tensor:
        """The + weights of x and x' in one partial risk, the − weights in the other."""
        table = super().make_table()
        return torch.stack([table[0] + table[2], table[1] + table[3]])


class Convex(Sconf):
    """γ·Sconf + (1 − γ)·ConfDiff (paper, theorem on the convex combination).

    The six partial risks of the two are corrected separately. See `SconfConfDiff` for the
    reference.

    Examples
    --------
    >>> str(Convex(0.2, 0.5, correction="relu"))
    'convex-0.5-relu'
    """

    family = "convex"

    def __init__(
        self,
        prior: float,
        gamma: float,
        *,
        correction: str | float = "none",
        loss: str = "logistic",
    ) -> None:
        check_share("gamma", gamma, ends="[]")
        self.gamma = self.parameter = float(gamma)
        super().__init__(prior, correction=correction, loss=loss)

    def make_table(self) -> Tensor:
        """Both tables, weighted and concatenated."""
        confdiff = affine_table(self.prior, 0.0, 0.0)
        return torch.cat([self.gamma * super().make_table(), (1 - self.gamma) * confdiff])


class SconfConfDiff(AffineRisk):
    """Similarities and differences in every weight (paper, theorem on SconfConfDiff).

    The weight of ℓ(g(x), +1) is 2π₊(π₊ − c) + π₋ − s. With `lam` = λ the two halves of the
    estimator have weights λ and 1 − λ; λ = ½ has the least variance. Tate, Sugiyama and Uchida,
    `Learning from Similarity-Confidence and Confidence-Difference
    <https://arxiv.org/abs/2508.05108>`__, 2025.

    Examples
    --------
    >>> str(SconfConfDiff(0.2, correction="abs"))
    'sconfconfdiff-abs'
    """

    family = "sconfconfdiff"

    def __init__(
        self,
        prior: float,
        lam: float = 0.5,
        *,
        correction: str | float = "none",
        loss: str = "logistic",
    ) -> None:
        check_share("lam", lam, ends="[]")
        self.lam = float(lam)
        self.parameter = None if self.lam == 0.5 else self.lam
        super().__init__(prior, correction=correction, loss=loss)

    def betas(self) -> tuple[float, float]:
        """β₊ = β₋ = −1 for every prior."""
        return -1.0, -1.0

    def make_table(self) -> Tensor:
        """The two halves of the estimator, weighted λ and 1 − λ."""
        return affine_table(self.prior, *self.betas(), lam=self.lam)


class NonNegative(AffineRisk):
    """The member with weights a/π₋, b/π₊, b/π₊, a/π₋ (halved), not negative on feasible labels.

    It reads the dissimilar outcomes only, and equals `SconfConfDiff` at π₊ = ½, where correcting
    the latter therefore changes nothing. It suits evaluation with rare errors; it is not a better
    training loss.

    Examples
    --------
    >>> risk = NonNegative(0.2)
    >>> s, c = torch.tensor([0.4]), torch.tensor([0.6])  # a = 0, b = 0.6
    >>> bool((risk.partial_risks(s, s, s, c) >= 0).all())
    True
    """

    family = "nonnegative"

    def betas(self) -> tuple[float, float]:
        """β₊ = −1/(2π₋) and β₋ = −1/(2π₊)."""
        return -1 / (2 * (1 - self.prior)), -1 / (2 * self.prior)
