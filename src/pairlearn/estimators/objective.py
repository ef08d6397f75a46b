"""What a table of mixed judgements costs: one corrected risk for each kind of row.

Every kind is a table of numbers contracted with moments, as every risk is
(`pairlearn.risks.base`); two more loss terms are needed,

    log P(different) = log[p(1 − p') + (1 − p)p'],     log P(not +,−) = log[(1 − p) + pp'].

By the pair likelihood (p = σ(g(x)), p' = σ(g(x'))):

    both         the three outcomes
    similarity   −[s log P(same) + (1 − s) log P(different)]/2
    difference   the sum t = p + p' is completed from the model, held between |c| and
                 2 − |c|; then the cross-entropies to r = (t − c)/2 and r' = (t + c)/2
    preference   −log P(not +,−)/2: "the right one is more positive"
    labelled     the ordinary cross-entropy, ½ for each instance

All are halved, as in `PairLikelihood`: then each judged pair and each labelled instance
counts as one observation. The affine risks put `Sconf` where similarity stands alone and
`ConfDiff` where difference does. A batch costs

    Σ_kinds f(Σ_i w_i L_i / B),    with weights w of mean one over the whole table,

which is what the kind's corrected risk is, times its expected share of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pairlearn.estimators.rows import Rows
from pairlearn.losses import in_full_precision, make_loss
from pairlearn.risks import BASIS, TERMS, AffineRisk, ConfDiff, Risk, Sconf, Supervised, correct
from pairlearn.training import Total
from pairlearn.training.ranks import ALONE

__all__ = ["PairObjective", "kind_tables", "log_different", "log_not_reversed"]

MORE_TERMS = (*TERMS, "log_different", "log_not_reversed")


def log_different(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """log[p(1 − p') + (1 − p)p'], with no difference of large numbers.

    Examples
    --------
    >>> log_different(torch.tensor([0.0, 1e4]), torch.tensor([0.0, 1e4]))  # log ½, log 2e^−10⁴
    tensor([-6.9315e-01, -9.9993e+03])
    """
    z, z_prime = in_full_precision(logits), in_full_precision(logits_prime)
    return torch.logaddexp(
        F.logsigmoid(z) + F.logsigmoid(-z_prime), F.logsigmoid(-z) + F.logsigmoid(z_prime)
    )


def log_not_reversed(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """log[1 − p(1 − p')] = log[(1 − p) + pp'].

    Examples
    --------
    >>> log_not_reversed(torch.tensor([0.0, 1e4]), torch.tensor([0.0, -1e4]))  # log ¾, as above
    tensor([-2.8768e-01, -9.9993e+03])
    """
    z, z_prime = in_full_precision(logits), in_full_precision(logits_prime)
    return torch.logaddexp(F.logsigmoid(-z), F.logsigmoid(z) + F.logsigmoid(z_prime))


def kind_tables(risk: Risk, kinds: Sequence[str]) -> dict[str, Tensor]:
    """Coefficients (k, 7, 3) of each kind of row under this risk.

    Examples
    --------
    >>> from pairlearn.risks import PairLikelihood
    >>> tables = kind_tables(PairLikelihood(), ["both", "similarity"])
    >>> [tuple(table.shape) for table in tables.values()]
    [(3, 7, 3), (2, 7, 3)]
    """
    tables: dict[str, Tensor] = {}
    for kind in kinds:
        if kind == "both":
            table = risk.table
        elif kind == "preference":
            table = _table({"log_not_reversed": (-0.5, 0.0, 0.0)})
        elif kind == "labelled":
            table = Supervised().table
        elif isinstance(risk, AffineRisk):
            table = _alone(kind, risk)
        elif kind == "similarity":
            table = _table({"log_same": (0.0, -0.5, 0.0)}, {"log_different": (-0.5, 0.5, 0.0)})
        else:
            table = Supervised().table  # of the completed posteriors
        tables[kind] = F.pad(table, (0, 0, 0, len(MORE_TERMS) - table.shape[1]))
    return tables


def _alone(kind: str, risk: AffineRisk) -> Tensor:
    if kind == "difference":
        return ConfDiff(risk.prior).table
    try:
        return Sconf(risk.prior).table
    except ValueError:
        raise ValueError(
            f"some rows have a similarity and no difference, for which {risk.family} uses Sconf, "
            "and that is undefined at prior ½: use risk='likelihood', which needs no prior, or "
            "leave those rows out"
        ) from None


def _table(*partial_risks: dict[str, tuple[float, float, float]]) -> Tensor:
    table = torch.zeros(len(partial_risks), len(MORE_TERMS), len(BASIS), dtype=torch.float64)
    for k, weights in enumerate(partial_risks):
        for term, weight in weights.items():
            table[k, MORE_TERMS.index(term)] = torch.tensor(weight, dtype=torch.float64)
    return table


@dataclass(frozen=True)
class _Kind:
    """One kind of row: its table, and whether its posteriors are completed."""

    table: Tensor
    completed: bool


class PairObjective:
    """The objective of a table of rows, as `Fleet` takes it.

    Parameters
    ----------
    risk : Risk
        The risk of rows with both judgements; its family, prior, loss and correction
        decide about the other rows.
    rows : Rows
        The table to train on.
    held_prior : float, optional
        Class prior π that mean(p) is held to, by KL(π ‖ mean p) of every batch. Without
        any similarity or class the posteriors are known only up to an added constant.
    guiding_prior : float, optional
        Class prior that mean(p) is drawn to likewise, with the weight `guidance`, which
        is no part of what `of` says (`pairlearn.estimators.guidance`).

    Attributes
    ----------
    guidance : Tensor
        A number, from one at the start of training down to zero.
    sign : int
        −1 to read outputs as log-odds of the negative class.
    """

    sign = 1

    def __init__(
        self,
        risk: Risk,
        rows: Rows,
        *,
        held_prior: float | None = None,
        guiding_prior: float | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.names = rows.kinds()
        self.columns: Sequence[Tensor] = self._weights(rows)
        self.loss, self.slope, self.held_prior = risk.loss, risk.slope, held_prior
        self.guiding_prior = guiding_prior
        self.guidance = torch.zeros((), device=device, dtype=dtype)
        likelihood = not isinstance(risk, AffineRisk)
        self.kinds = [
            _Kind(table.to(device, dtype), likelihood and name == "difference")
            for name, table in kind_tables(risk, self.names).items()
        ]
        self._logistic = make_loss("logistic")
        self._extended = any(bool(kind.table[:, len(TERMS) :].any()) for kind in self.kinds)

    def _weights(self, rows: Rows) -> list[Tensor]:
        return [torch.from_numpy(column) for column in rows.weight_columns(self.names)]

    def __call__(
        self,
        left: Tensor,
        right: Tensor,
        u: Tensor,
        v: Tensor,
        share: Tensor,
        *columns: Tensor,
        total: Total,
    ) -> Tensor:
        """The sum over a batch's kinds of row of their corrected risks."""
        left, right = self.sign * left, self.sign * right
        terms = self._terms(left, right)
        risk = torch.zeros((), dtype=terms.dtype, device=terms.device)
        for kind, column in zip(self.kinds, columns, strict=True):
            first, second = _completed(left, right, v) if kind.completed else (u, v)
            basis = torch.stack([torch.ones_like(u), first, second], -2)
            basis = (basis * (column * share).unsqueeze(-2)).to(terms.dtype)
            moments = total((terms.unsqueeze(-2) * basis.unsqueeze(-3)).sum(-1))
            table = kind.table[:, : terms.shape[-2]]
            partial_risks = (table * moments.unsqueeze(-3)).sum((-1, -2))
            risk = risk + correct(partial_risks, self.slope).sum()
        if self.held_prior is not None or self.guiding_prior is not None:
            posterior = (torch.sigmoid(left) + torch.sigmoid(right)) / 2
            counts = torch.stack(columns).sum(0) * share
            mean = total((posterior * counts).sum(-1))
            if self.held_prior is not None:
                risk = risk + _divergence(self.held_prior, mean).sum()
            if self.guiding_prior is not None:
                risk = risk + self.guidance * _divergence(self.guiding_prior, mean).sum()
        return risk

    def of(self, rows: Rows, logits: Tensor, logits_prime: Tensor) -> float:
        """The objective of other rows, at the classifier's outputs for their ends."""
        unknown = set(rows.kinds()) - set(self.names)
        if unknown:
            raise ValueError(f"the objective was made for no rows of kind {sorted(unknown)}")
        told = torch.from_numpy(np.stack([rows.u, rows.v])).to(logits)
        columns = [column.to(logits) for column in self._weights(rows)]
        share = torch.full_like(told[0], 1 / len(rows))
        guidance = self.guidance.item()
        self.guidance.zero_()
        value = float(self(logits, logits_prime, *told, share, *columns, total=ALONE.sum))
        self.guidance.fill_(guidance)
        return value

    def _terms(self, left: Tensor, right: Tensor) -> Tensor:
        """Loss terms (..., 5 or 7, B) in the order of `MORE_TERMS`."""
        z = torch.stack([in_full_precision(left), in_full_precision(right)], -2)
        both = self.loss.both(z)
        logistic = both if self.loss.name == "logistic" else self._logistic.both(z)
        # −ℓ(z, ±1) of the logistic loss is log σ(±z), so that sums over the ends are log P(±,±).
        terms = [both.flatten(-3, -2), torch.logsumexp(-logistic.sum(-3), -2, keepdim=True)]
        if self._extended:
            more = log_different(left, right), log_not_reversed(left, right)
            terms.append(torch.stack(more, -2))
        return torch.cat(terms, -2)


def _completed(left: Tensor, right: Tensor, difference: Tensor) -> tuple[Tensor, Tensor]:
    """Posteriors with the difference told and the model's sum, as far as both can be."""
    c = difference.clamp(-1, 1)
    total = (torch.sigmoid(left) + torch.sigmoid(right)).detach()
    total = torch.minimum(torch.maximum(total, c.abs()), 2 - c.abs())
    return (total - c) / 2, (total + c) / 2


def _divergence(prior: float, mean: Tensor) -> Tensor:
    """KL(π ‖ mean) of two Bernoulli distributions."""
    mean = mean.clamp(1e-6, 1 - 1e-6)
    return prior * torch.log(prior / mean) + (1 - prior) * torch.log((1 - prior) / (1 - mean))
