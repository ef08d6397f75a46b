"""The training objective: one corrected risk for each kind of statement.

The loss of a model on a batch of B rows is Σ_kinds f(Σ_i w_i L_i / B), with weights w of mean one
over the whole table: each kind's corrected risk, times its expected share of the batch. Under
every risk a kind is a table of coefficients (`pairlearn.judgements.kinds`), so that all kinds are
one contraction of the moments of `pairlearn.risks.base`. Two priors may add KL(π ‖ mean p) of the
batch: `held_prior` where no statement fixes the level, and `guiding_prior` in the first epochs.

With K classes a model has K outputs z, and a statement about a set S of them is one of two classes
at the log-odds λ_S(z) (`pairlearn.losses.log_odds`); "the same class at all" is P = Σ_k p_k p'_k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from pairlearn.columns import Floats, first_rows
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import kind
from pairlearn.losses import log_odds, log_same
from pairlearn.risks import BASIS, TERMS, ClassRisk, Risk, contract, correct, pair_moments
from pairlearn.risks.base import terms_used
from pairlearn.training.ranks import ALONE

#: A sum over ranks, through which gradients flow.
Total = Callable[[Tensor], Tensor]


class Objective:
    """The sum of the corrected risks of a model's rows.

    All tensors may have leading dimensions, one entry for each of several models that train
    together; then so has the objective.

    Parameters
    ----------
    risk : Risk
        Bound to the table by `Risk.over`.
    kinds : sequence of str
        Kinds of the rows.
    held_prior, guiding_prior : float, optional
        Class prior that mean(p) is held to where no statement fixes the level, and that it is
        drawn to in the first epochs. With K classes the first one has K numbers.

    Attributes
    ----------
    tables : Tensor of shape (K, ..., k, 8, 3)
        Coefficients of each kind; of each kind and class for a `ClassRisk`.
    slopes : Tensor of shape (..., 1)
        Slopes of the corrections.
    completing : list of Tensor or None
        For each kind, which models complete its values from their outputs; empty if none does.
    guidance : Tensor
        Weight of the guiding prior, from one at the start of training down to zero.
    sign : int
        −1 if the outputs are the log-odds of the negative class.
    """

    def __init__(
        self,
        risk: Risk,
        kinds: Sequence[str] = ("both",),
        *,
        held_prior: float | Sequence[float] | None = None,
        guiding_prior: float | None = None,
    ) -> None:
        self.kinds, self.loss, self.sign = tuple(kinds), risk.loss, 1
        self.classes = len(risk.risks) if isinstance(risk, ClassRisk) else 0
        tables = [
            table
            for name in self.kinds
            for table in (
                risk.tables_of(kind(name))
                if isinstance(risk, ClassRisk)
                else [kind(name).table(risk)]
            )
        ]
        shape = len(tables), max(map(len, tables)), len(TERMS), len(BASIS)
        self.tables = torch.zeros(shape, dtype=torch.float64)
        for whole, table in zip(self.tables, tables, strict=True):
            whole[: len(table)] = table
        self.terms = terms_used(self.tables)
        self.slopes = torch.tensor([risk.slope], dtype=torch.float64)
        completes = [kind(name).completes(risk) for name in self.kinds]
        self.completing: list[Tensor | None] = [
            torch.ones(1, dtype=torch.bool) if known else None for known in completes
        ] * any(completes)
        self.held_prior, self.guiding_prior = (
            None if prior is None else torch.tensor(prior, dtype=torch.float64)
            for prior in (held_prior, guiding_prior)
        )
        self.guidance = torch.zeros((), dtype=torch.float64)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Move all tensors to a device, those of numbers with this type; returns itself."""
        for name in ("tables", "slopes", "held_prior", "guiding_prior", "guidance"):
            tensor = getattr(self, name)
            setattr(self, name, None if tensor is None else tensor.to(device, dtype))
        self.completing = [mask if mask is None else mask.to(device) for mask in self.completing]
        return self

    def weight_columns(self, rows: Judgements) -> Floats:
        """Weights (K, n) of rows in the risk of each kind; of each kind and class, divided by q."""
        if not self.classes:
            return np.stack(rows.weight_columns(self.kinds))
        members = rows.members().T
        for row in first_rows(members.sum(0) != 1):
            raise ValueError(
                f"row {row} is about {rows.sets[row] or 'all classes'}, and an affine risk reads "
                "statements about one class each: use risk='likelihood', which reads all"
            )
        columns = replace(rows, weight=rows.inverse_q).weight_columns(self.kinds)
        return np.concatenate([column * members for column in columns])

    def __call__(
        self,
        left: Tensor,
        right: Tensor,
        u: Tensor,
        v: Tensor,
        share: Tensor,
        *,
        total: Total,
        members: Tensor | None = None,
        guided: bool = True,
    ) -> Tensor:
        """The loss that a step minimises; without guidance where it is not `guided`.

        Parameters
        ----------
        left, right : Tensor of shape (..., B)
            Log-odds of both items of each row; with K classes outputs (..., B, K).
        u, v : Tensor of shape (..., B)
            Values of the rows.
        share : Tensor of shape (B,), or (K, ..., B) for each kind
            Shares of the rows in the batch; they sum to one over rows, kinds and ranks.
        total : callable
            Sum over the ranks that have parts of the batch.
        members : Tensor of bool, shape (K, ..., B), optional
            The set of classes that each row is about, empty for "the same class at all".
        """
        outputs, same = (left, right), None
        if members is not None:
            left, right, same = at_sets(left, right, members, terms=self.terms)
        if self.sign < 0:
            left, right = -left, -right
        first, second = self._completed(left, right, u, v) if self.completing else (u, v)
        moments = total(
            pair_moments(
                left, right, first, second, self.loss, terms=self.terms, share=share, same=same
            )
        )
        if moments.ndim == left.ndim + 1:  # all rows are of one kind and weight
            moments = moments.unsqueeze(0)
        risks = correct(contract(self.tables, moments), self.slopes).sum((0, -1))
        # The value of a tensor on another device is not known here without waiting for it.
        idle = self.guidance.device.type == "cpu" and not self.guidance
        guiding = self.guiding_prior if guided and not idle else None
        if self.held_prior is None and guiding is None:
            return risks
        weight = share.sum(0) if share.ndim > left.ndim else share
        if members is not None:
            p = (outputs[0].softmax(-1) + outputs[1].softmax(-1)) / 2
            means = total(weight @ p).clamp_min(1e-6)
            assert self.held_prior is not None
            return risks + (self.held_prior * torch.log(self.held_prior / means)).sum()
        posterior = (torch.sigmoid(left) + torch.sigmoid(right)) / 2
        mean = total((posterior * weight).sum(-1))
        if self.held_prior is not None:
            risks = risks + prior_divergence(self.held_prior, mean)
        if guiding is not None:
            risks = risks + self.guidance * prior_divergence(guiding, mean)
        return risks

    @torch.no_grad()
    def of(self, rows: Judgements, left: Tensor, right: Tensor) -> Tensor:
        """The objective of other rows, without guidance, at log-odds (n,), or outputs (n, K)."""
        unknown = set(rows.kinds()) - set(self.kinds)
        if unknown:
            raise ValueError(f"the objective was made without rows of kind {sorted(unknown)}")
        u, v = torch.from_numpy(np.ascontiguousarray(rows.values.T)).to(left)
        share = self.weight_columns(rows) / len(rows)
        shares = torch.from_numpy(share).to(left)
        members = member_tensor(rows, left.device)
        return self(left, right, u, v, shares, total=ALONE.sum, members=members, guided=False)

    def _completed(
        self, left: Tensor, right: Tensor, u: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The values (K, ..., B) for each kind, completed from the model where a kind does so."""
        first, second = [], []
        for name, mask in zip(self.kinds, self.completing, strict=True):
            u_of_kind, v_of_kind = u, v
            if mask is not None:
                targets = kind(name).targets(left, right, u, v)
                u_of_kind = torch.where(mask, targets[0], u)
                v_of_kind = torch.where(mask, targets[1], v)
            first.append(u_of_kind.expand_as(left))
            second.append(v_of_kind.expand_as(left))
        return torch.stack(first), torch.stack(second)


def member_tensor(rows: Judgements, device: torch.device) -> Tensor | None:
    """The sets (K, n) of classes that rows are about; None with two classes."""
    if rows.classes is None:
        return None
    return torch.from_numpy(np.ascontiguousarray(rows.members().T)).to(device)


def at_sets(
    left: Tensor, right: Tensor, members: Tensor, *, terms: int = len(TERMS)
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Log-odds (..., B) of sets (K, ..., B) at outputs (..., B, K) of both ends, and `log_same`.

    The latter (..., 2, B) are NaN for rows about a set, and None where there are no other rows or
    no terms for them. Rows without a set have the log-odds of the first class, which nothing reads.
    """
    members = members.movedim(0, -1)
    whole = ~members.any(-1)
    first = torch.arange(members.shape[-1], device=members.device) == 0
    members = members | (whole[..., None] & first)
    ends = log_odds(left, members), log_odds(right, members)
    on_cpu = whole.device.type == "cpu"  # elsewhere it would take waiting to know which rows
    if terms <= 4 or (on_cpu and not bool(whole.any())):
        return *ends, None
    if on_cpu:
        same = torch.full((2, *whole.shape), torch.nan, dtype=ends[0].dtype)
        same[:, whole] = log_same(left[whole], right[whole])
    else:
        same = log_same(left, right).masked_fill(~whole, torch.nan)
    return *ends, same[: terms - 4].movedim(0, -2)


def prior_divergence(prior: Tensor, mean: Tensor) -> Tensor:
    """KL(π ‖ mean) of two Bernoulli distributions, 0 where the prior is NaN."""
    stated = prior.nan_to_num(0.5)
    mean = mean.clamp(1e-6, 1 - 1e-6)
    value = stated * torch.log(stated / mean) + (1 - stated) * torch.log((1 - stated) / (1 - mean))
    return torch.where(prior.isnan(), torch.zeros_like(value), value)
