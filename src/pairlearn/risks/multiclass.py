"""Unbiased risks of K classes, from statements about each class.

About class k a pair has the similarity s_k and the difference c_k of two classes, k and the others,
at the log-odds λ_k of a model with K outputs. With ℓ_k = −log p_k, the logistic loss of λ_k, and
the weights of an affine risk at the prior π_k,

    R = Σ_k E[w_k ℓ_k] ,   w_k = (π_k − c_k) + β_k T_k ,

averaged over both ends, is the cross-entropy. Its partial risks, one for each class and end, are
corrected like others. Where one class is asked about, drawn with probability q, its terms have the
weight 1/q, which makes the risk vary: the pair likelihood needs no such weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pairlearn.losses import log_odds
from pairlearn.risks.base import Risk, contract, correct, pair_moments
from pairlearn.risks.catalogue import make_risk

#: Places of the positive terms of x and of x' among `TERMS`.
ENDS = (0, 2)


class ClassRisk(Risk):
    """The affine risk of a name for K classes.

    Calling it gives a scalar to minimise:

        risk(outputs, outputs_prime, similarity, difference, weight)

    of outputs (n, K) and judgements (n, K) about each class. ``weight`` (n, K) is 1/q where a class
    was asked about, and 0 elsewhere; 1 by default.

    Parameters
    ----------
    name : str
        As in `make_risk`, for example "sconfconfdiff-abs".
    priors : sequence of float
        Priors π_k of the classes.
    correction : str or float, optional
        The correction of a name without one.

    Examples
    --------
    >>> import torch
    >>> risk = ClassRisk("confdiff", [0.2, 0.3, 0.5])
    >>> zero = torch.zeros(4, 3)
    >>> risk(zero, zero, zero, zero)  # log 3
    tensor(1.0986)
    """

    needs_prior = True

    def __init__(
        self, name: str, priors: Sequence[float], *, correction: str | float | None = None
    ) -> None:
        risks = [make_risk(name, prior=prior, correction=correction) for prior in priors]
        first = risks[0]
        if not first.needs_prior or first.kinds:
            raise ValueError(f"risk {name!r} is not affine: choose confdiff or sconfconfdiff")
        super().__init__(torch.cat([_ends(risk.table) for risk in risks]), correction=first.slope)
        self.risks, self.priors = risks, tuple(priors)

    def partial_risks(
        self,
        logits: Tensor,
        logits_prime: Tensor,
        u: Tensor,
        v: Tensor,
        weight: Tensor | None = None,
    ) -> Tensor:
        """The partial risks before correction, shape (2K,): x and x' of each class."""
        each = torch.eye(len(self.risks), dtype=torch.bool, device=logits.device)
        left, right = (log_odds(z.unsqueeze(1), each).T for z in (logits, logits_prime))
        share = (torch.ones_like(u) if weight is None else weight).T / len(u)
        asked = share > 0
        u, v = (torch.where(asked, values.T, 0.0) for values in (u, v))
        moments = pair_moments(left, right, u, v, self.loss, terms=4, share=share)
        tables = self._table_like(moments).reshape(len(self.risks), 2, -1, 3)
        return contract(tables, moments).flatten()

    def forward(self, *batch: Tensor) -> Tensor:
        """The corrected risk of the batch, a scalar."""
        return correct(self.partial_risks(*batch), self.slope).sum()

    def tables_of(self, kind: Any) -> list[Tensor]:
        """Tables (2, 8, 3) of a kind of statement about each class."""
        if "similarity" not in (*kind.named, *kind.means) and "difference" not in kind.named:
            raise ValueError(
                f"risk {self.name!r} of {len(self.risks)} classes reads similarities and "
                f"differences, not {kind}: use risk='likelihood', which reads every kind"
            )
        return [_ends(kind.table(risk)) for risk in self.risks]

    @property
    def name(self) -> str:
        """The name from which `make_risk` makes the risk of one class."""
        return self.risks[0].name


def _ends(table: Tensor) -> Tensor:
    """Partial risks (2, 8, 3) of the positive terms of x and of x'."""
    ends = torch.zeros(2, *table.shape[1:], dtype=torch.float64)
    for row, term in enumerate(ENDS):
        ends[row, term] = table[:, term].sum(0)
    return ends
