"""The objective of a fleet: those of its members, stacked."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pairlearn.risks import Risk
from pairlearn.training import Objective
from pairlearn_bench.fleet.groups import Group, of_members

PRIORS = ("held_prior", "guiding_prior")
PARTIAL_RISKS = 6  # those of the convex combination, the most of any risk


class FleetObjective(Objective):
    """The objectives (G, M) of all members, as one contraction of their moments.

    Groups with fewer members are padded with idle ones, whose tables are zero. Priors are NaN
    where a member has none, and None where no member has one.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        risks = [member.risk for group in groups for member in group.members]
        if len({risk.loss.name for risk in risks}) > 1:
            raise ValueError("the risks of a fleet must share one loss")
        super().__init__(risks[0], groups[0].kinds)
        members = {
            (g, m): Objective(_over_its_rows(group, m), group.kinds)
            for g, group in enumerate(groups)
            for m in range(len(group.members))
        }
        shape = len(groups), max(len(group.members) for group in groups)
        # As many partial risks as any risk has: a compiled step serves them all.
        width = max(PARTIAL_RISKS, *(one.tables.shape[1] for one in members.values()))
        self.tables = torch.zeros(
            len(self.kinds), *shape, width, *self.tables.shape[2:], dtype=torch.float64
        )
        self.slopes = torch.zeros(*shape, 1, dtype=torch.float64)
        masks = torch.zeros(len(self.kinds), *shape, 1, dtype=torch.bool)
        for place, one in members.items():
            self.tables[:, *place, : one.tables.shape[1]] = one.tables
            self.slopes[place] = one.slopes
            for k, mask in enumerate(one.completing):
                masks[k, *place] = mask is not None
        self.terms = max(one.terms for one in members.values())
        self.completing = [mask if mask.any() else None for mask in masks] * bool(masks.any())
        for name in PRIORS:
            setattr(self, name, _priors(groups, name))


def _over_its_rows(group: Group, m: int) -> Risk:
    """A member's risk, bound to the values and weights of its rows."""
    member = group.members[m]
    u, v = member.values()
    return member.risk.over(u, v, sum(group.columns) if len(group.columns) else None)


def _priors(groups: Sequence[Group], name: str) -> Tensor | None:
    """A prior of all members (G, M); None if no member has one."""
    priors = of_members(groups, lambda member: getattr(member, name))
    return None if bool(priors.isnan().all()) else priors
