"""The training objective: one corrected risk for each kind of statement.

The loss of a member on a batch of B rows is Σ_kinds f(Σ_i w_i L_i / B), with weights w of mean one
over the whole table: each kind's corrected risk, times its expected share of the batch. Under
every risk a kind is a table of coefficients (`kinds`), so that all kinds and all members
are one contraction of the moments of `pairlearn.risks.base`. Two priors may add KL(π ‖ mean p) of
the batch: `held_prior` where no statement fixes the level, and `guiding_prior` in the first epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import kind
from pairlearn.risks import BASIS, TERMS, Risk, contract, correct, pair_moments
from pairlearn.risks.base import terms_used
from pairlearn.training.groups import Group, Member, of_members
from pairlearn.training.ranks import ALONE

Total = Callable[[Tensor], Tensor]
"""A sum over ranks, through which gradients flow."""
PRIORS = ("held_prior", "guiding_prior")
PARTIAL_RISKS = 6  # those of the convex combination, the most of any risk


class Objective:
    """The sum over members of the corrected risks of their rows.

    Groups with fewer members are padded with idle ones, whose tables are zero. ``kinds`` are those
    of the rows; ``guidance`` is the weight of the guiding priors, from one at the start of training
    down to zero (a CPU skips them at zero); ``signs`` (G, M, 1), if any, are −1 for members whose
    outputs are the log-odds of the negative class.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        *,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.groups, self.device, self.dtype = list(groups), device, dtype
        self.kinds = groups[0].kinds
        losses = {member.risk.loss.name: member.risk.loss for g in groups for member in g.members}
        if len(losses) > 1:
            raise ValueError("the risks of a fleet must share one loss")
        (self.loss,) = losses.values()
        self.tables, self.slopes = (part.to(device) for part in self._risks(groups))
        self.terms = terms_used(self.tables.cpu())
        self.completing = self._completing()
        # NaN where a member has none; None where no member has one.
        self.held_prior, self.guiding_prior = (
            None if bool(priors.isnan().all()) else priors for priors in map(self._priors, PRIORS)
        )
        self.guidance = torch.zeros((), device=device, dtype=dtype)
        self.signs: Tensor | None = None

    def restart(self, groups: Sequence[Group]) -> None:
        """Replace the risks by others of the same number, and the priors of members with one."""
        tables, slopes = self._risks(groups)
        self.groups = list(groups)
        self.tables.copy_(tables)
        self.slopes.copy_(slopes)
        for name in PRIORS:
            if (prior := getattr(self, name)) is not None:
                prior.copy_(self._priors(name))

    def __call__(self, *batch: Tensor, total: Total) -> Tensor:
        """The loss that a step minimises: the sum of `per_member` over the members."""
        idle = self.guiding_prior is None or (
            self.guidance.device.type == "cpu" and not self.guidance
        )
        guidance = None if idle else self.guidance
        return self.per_member(*batch, total=total, guidance=guidance).sum()

    def per_member(
        self,
        left: Tensor,
        right: Tensor,
        u: Tensor,
        v: Tensor,
        share: Tensor,
        *kind_weights: Tensor,
        total: Total,
        guidance: Tensor | None = None,
    ) -> Tensor:
        """The corrected risk (G, M) of every member on a batch.

        ``left`` and ``right`` (G, M, B) are the log-odds of both items, ``u`` and ``v`` the values
        of the rows, ``share`` (B,) their shares, which sum to one and are 0 for padding.
        ``kind_weights`` (G, M, B) are the weights of the rows for each kind, none where all rows
        have one kind and weight. ``total`` sums over the ranks that have parts of the batch, and
        ``guidance`` is the weight of the guiding priors.
        """
        if self.signs is not None:
            left, right = self.signs * left, self.signs * right
        shares = torch.stack(kind_weights) * share if kind_weights else share
        first, second = u, v
        if self.completing:
            first, second = self._completed(left, right, u, v)
        moments = total(
            pair_moments(left, right, first, second, self.loss, terms=self.terms, share=shares)
        )
        if moments.ndim == left.ndim + 1:
            moments = moments.unsqueeze(0)
        risks = correct(contract(self.tables, moments), self.slopes).sum((0, -1))
        if self.held_prior is not None or guidance is not None:
            posterior = (torch.sigmoid(left) + torch.sigmoid(right)) / 2
            weight = shares.sum(0) if kind_weights else share
            mean = total((posterior * weight).sum(-1))
            if self.held_prior is not None:
                risks = risks + _divergence(self.held_prior, mean)
            if guidance is not None and self.guiding_prior is not None:
                risks = risks + guidance * _divergence(self.guiding_prior, mean)
        return risks

    @torch.no_grad()
    def of(self, rows: Judgements, logits: Tensor, logits_prime: Tensor) -> Tensor:
        """The objective (M,) of other rows, at one group's outputs (M, n) for their ends.

        It is without guidance.
        """
        unknown = set(rows.kinds()) - set(self.kinds)
        if unknown:
            raise ValueError(f"the objective was made without rows of kind {sorted(unknown)}")
        u, v = torch.from_numpy(np.ascontiguousarray(rows.values.T)).to(logits)[:, None, None]
        kind_weights = [
            torch.from_numpy(column).to(logits)[None, None]
            for column in rows.weight_columns(self.kinds)
        ]
        share = torch.full_like(u[0, 0], 1 / len(rows))
        return self.per_member(
            logits[None], logits_prime[None], u, v, share, *kind_weights, total=ALONE.sum
        )[0]

    def _completed(
        self, left: Tensor, right: Tensor, u: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The values (K, G, M, B) for each kind, completed from the model where a kind does so."""
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

    def _risks(self, groups: Sequence[Group]) -> tuple[Tensor, Tensor]:
        """Tables (K, G, M, k, 8, 3) and slopes (G, M, 1) of all kinds and members."""
        width = max(len(group.members) for group in groups)
        tables = {
            (k, g, m): kind(name).table(_over_its_rows(member, group))
            for k, name in enumerate(self.kinds)
            for g, group in enumerate(groups)
            for m, member in enumerate(group.members)
        }
        # As many rows as any risk has, so that a fleet may restart with other risks.
        rows = max(PARTIAL_RISKS, *(len(table) for table in tables.values()))
        shape = len(self.kinds), len(groups), width, rows, len(TERMS), len(BASIS)
        whole = torch.zeros(shape, dtype=self.dtype)
        for place, table in tables.items():
            whole[place][: len(table)] = table
        slopes = of_members(groups, lambda member: member.risk.slope).nan_to_num(0.0)
        return whole, slopes.to(self.dtype).unsqueeze(-1)

    def _completing(self) -> list[Tensor | None]:
        """For each kind, which members (G, M, 1) complete its values; [] if none does."""
        masks: list[Tensor | None] = []
        for name in self.kinds:
            completes = kind(name).completes
            mask = of_members(self.groups, lambda member: completes(member.risk)) == 1  # noqa: B023
            masks.append(mask.unsqueeze(-1).to(self.device) if mask.any() else None)
        return masks if any(mask is not None for mask in masks) else []

    def _priors(self, name: str) -> Tensor:
        """A prior of all members (G, M), NaN where a member has none."""
        values = of_members(self.groups, lambda member: getattr(member, name))
        return values.to(self.device, self.dtype)


def _over_its_rows(member: Member, group: Group) -> Risk:
    """A member's risk, bound to the values and weights of its rows unless they are streamed."""
    if member.labels is None:
        return member.risk
    u, v = member.values()
    return member.risk.over(u, v, sum(group.columns) if len(group.columns) else None)


def _divergence(prior: Tensor, mean: Tensor) -> Tensor:
    """KL(π ‖ mean) of two Bernoulli distributions, 0 for members without a prior."""
    stated = prior.nan_to_num(0.5)
    mean = mean.clamp(1e-6, 1 - 1e-6)
    value = stated * torch.log(stated / mean) + (1 - stated) * torch.log((1 - stated) / (1 - mean))
    return torch.where(prior.isnan(), torch.zeros_like(value), value)
