"""Ordinary labels: the risk of known classes, alone or mixed with a pair risk."""

from __future__ import annotations

from torch import Tensor, nn

from pairlearn.columns import check_share
from pairlearn.risks.base import Risk, make_table


class Supervised(Risk):
    """The ordinary risk of pairs whose classes are known, ½(ℓ(g(x), y) + ℓ(g(x'), y')).

    Called as risk(logits, logits_prime, y, y_prime) with classes −1 and +1 or 0 and
    1: a class above zero is positive.

    Examples
    --------
    >>> import torch
    >>> risk = Supervised()
    >>> str(risk), risk(torch.zeros(2), torch.zeros(2), torch.tensor([1, -1]), torch.ones(2))
    ('supervised', tensor(0.6931))
    """

    family = "supervised"
    judgements = ("y", "y_prime")

    def __init__(self, *, correction: str | float = "none", loss: str = "logistic") -> None:
        # u and v are 1 for the positive class and 0 for the negative one.
        table = make_table(
            {
                "positive": (0.0, 0.5, 0.0),
                "negative": (0.5, -0.5, 0.0),
                "positive_prime": (0.0, 0.0, 0.5),
                "negative_prime": (0.5, 0.0, -0.5),
            }
        )
        super().__init__(table, correction=correction, loss=loss)

    def _checked(self, *batch: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        logits, logits_prime, y, y_prime = super()._checked(*batch)
        return logits, logits_prime, (y > 0).to(logits.dtype), (y_prime > 0).to(logits.dtype)

    @property
    def name(self) -> str:
        """The family without "-none": its partial risk is never negative."""
        return self.family if self.correction == "none" else super().name


class Mixed(nn.Module):
    """weight · pair risk + (1 − weight) · ordinary risk (paper, on ordinary labels).

    Unbiased for every weight in [0, 1] if the pair risk is; uses the loss of the pair risk.

    Examples
    --------
    >>> import torch
    >>> from pairlearn.risks import ConfDiff
    >>> risk, zero = Mixed(ConfDiff(0.5), weight=0.25), torch.zeros(3)
    >>> risk(zero, zero, zero, zero, torch.zeros(5), torch.ones(5))
    tensor(0.6931)
    """

    def __init__(self, pair_risk: Risk, weight: float) -> None:
        super().__init__()
        self.pair_risk = pair_risk
        check_share("weight", weight, ends="[]")
        self.weight = float(weight)

    def forward(
        self,
        logits: Tensor,
        logits_prime: Tensor,
        similarity: Tensor,
        difference: Tensor,
        labelled_logits: Tensor,
        y: Tensor,
    ) -> Tensor:
        """The risk of a batch of pairs and a batch of labelled instances, a scalar."""
        pairs = self.pair_risk(logits, logits_prime, similarity, difference)
        if labelled_logits.squeeze(-1).shape != y.squeeze(-1).shape:
            raise ValueError(
                f"labelled_logits and y must match; got {tuple(labelled_logits.shape)} "
                f"and {tuple(y.shape)}"
            )
        ordinary = self.pair_risk.loss(labelled_logits, y.reshape(labelled_logits.shape)).mean()
        mixed: Tensor = self.weight * pairs + (1 - self.weight) * ordinary
        return mixed

    def __str__(self) -> str:
        return f"mixed({self.pair_risk}, weight={self.weight:g})"
