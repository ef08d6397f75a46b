"""The sibling settings: items from populations with known shares of positives.

Similar and dissimilar pairs, comparisons, known positives, unlabelled items and groups have one
thing in common: a statement places an item in a population of which a known share u is positive,
p_u = u p₊ + (1 − u) p₋. With the mean m and the variance σ² of the shares over all items of a
table, the weights

    ℓ(g(x), +1): π₊ [1 + (1 − m)(u − m)/σ²]        ℓ(g(x), −1): π₋ [1 − m (u − m)/σ²]

average to π₊ over the positives and 0 over the negatives, and vice versa, so that their mean over
the table is unbiased. For two populations this is the estimator of Lu et al. (2019), and each paper
below is the case of its own two shares:

    sd       similar: π₊²/(π₊² + π₋²)    dissimilar: ½            Shimada et al., 2021
    su       similar: the same           unlabelled: π₊           Bao et al., 2018
    pcomp    more positive: π₊/(1 − π₊π₋)    less: π₊²/(1 − π₊π₋)     Feng et al., 2021
    nnpu     positive: 1                 unlabelled: π₊           Kiryo et al., 2017
    uu       as stated                   as stated                Lu et al., 2019, 2020
    sdpcomp  similar as above; of dissimilar pairs the more positive item: 1, the other: 0

Each kind of statement defines its shares (`Kind.reading`). There is one partial risk for each
class, which is what the papers correct.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from pairlearn.risks.affine import AffineRisk
from pairlearn.risks.base import Risk, make_table


class SharesRisk(AffineRisk):
    """Items from populations with known shares of positives, two to a row.

    Called as risk(logits, logits_prime, share, share_prime). The mean and the variance of the
    shares are those of the batch, or of the whole table after :meth:`over`. Parameters are as in
    `AffineRisk`.

    Examples
    --------
    >>> from pairlearn import make_risk
    >>> risk = make_risk("nnpu-relu", prior=0.3)  # two known positives, two unlabelled items
    >>> risk(torch.zeros(2), torch.zeros(2), torch.ones(2), torch.full((2,), 0.3))
    tensor(0.6931)
    """

    judgements = ("share", "share_prime")
    defined_at_half: ClassVar[bool] = True

    def make_table(self) -> Tensor:
        """NaN, until the shares are known."""
        if not self.defined_at_half and abs(2 * self.prior - 1) < 1e-6:
            raise ValueError(
                f"{self.family} is undefined at prior ½, where half of its items are positive "
                "for every answer; pcomp, sdpcomp, nnpu and likelihood are defined there"
            )
        return torch.full((2, 8, 3), torch.nan)

    def over(self, u: Any, v: Any, weight: Any = None) -> Self:
        """The risk for a table with these shares (n,) of both items and row weights."""
        shares = torch.stack([torch.as_tensor(u), torch.as_tensor(v)]).double()
        weights = torch.ones_like(shares[0]) if weight is None else torch.as_tensor(weight).double()
        weights = (weights / weights.sum() / 2).expand_as(shares)
        mean = float((weights * shares).sum())
        variance = float((weights * (shares - mean).square()).sum())
        if variance < 1e-12:
            raise ValueError(
                f"risk {str(self)!r} needs items from two populations at least, and all of these "
                f"have a share of positives of {mean:g}; for small batches call risk.over(u, v) "
                "with the shares of the whole table"
            )
        bound = type(self)(self.prior, correction=self.slope, loss=self.loss.name)
        parts = []
        for name, prior, slope in (
            ("positive", self.prior, (1 - mean) / variance),
            ("negative", 1 - self.prior, -mean / variance),
        ):
            # Halved, because x and x' both estimate the risk.
            constant, slope = prior * (1 - slope * mean) / 2, prior * slope / 2
            parts.append({name: (constant, slope, 0.0), f"{name}_prime": (constant, 0.0, slope)})
        bound.table = make_table(*parts)
        return bound

    def _for_batch(self, u: Tensor, v: Tensor) -> Self:
        return self.over(u.flatten(), v.flatten()) if bool(self.table.isnan().any()) else self


class Pconf(Risk):
    """Positive items, each with the probability r that it is positive (Ishida et al., 2018).

    The risk is π₊ E₊[ℓ(g(x), +1) + (1 − r)/r · ℓ(g(x), −1)]; without the factor π₊ it needs no
    prior. Called as risk(logits, logits_prime, odds, odds_prime) with the odds
    (1 − r)/r of the negative class.

    Examples
    --------
    >>> zero, odds = torch.zeros(1), torch.tensor([1.0])  # r = ½
    >>> Pconf()(zero, zero, odds, odds)  # 2 log 2
    tensor(1.3863)
    """

    family = "pconf"
    judgements = ("odds", "odds_prime")
    kinds = ("confidence",)

    def __init__(self, *, correction: str | float = "none", loss: str = "logistic") -> None:
        table = make_table(
            {"positive": (0.5, 0.0, 0.0), "positive_prime": (0.5, 0.0, 0.0)},
            {"negative": (0.0, 0.5, 0.0), "negative_prime": (0.0, 0.0, 0.5)},
        )
        super().__init__(table, correction=correction, loss=loss)


def _sibling(family: str, title: str, *kinds: str, **more: Any) -> type[SharesRisk]:
    """Make the risk of a family that reads these kinds of statement."""
    named = {"family": family, "title": title, "kinds": kinds, "__doc__": f"{title}: shares."}
    return type(title.replace("-", ""), (SharesRisk,), named | more)


#: The risks of the sibling papers by family.
SIBLINGS: dict[str, type[Risk]] = {
    risk.family: risk
    for risk in (
        _sibling("sd", "SD", "similarity", "same", defined_at_half=False),
        _sibling("su", "SU", "similarity", "same", "unlabelled", defined_at_half=False),
        _sibling("pcomp", "Pcomp", "preference"),
        _sibling("sdpcomp", "SD-Pcomp", "both", "similarity", "same", "preference"),
        _sibling("nnpu", "nnPU", "positive", "unlabelled", usual_correction="relu"),
        _sibling("uu", "UU", "group"),
        Pconf,
    )
}
