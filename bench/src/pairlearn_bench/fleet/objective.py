"""The objective of a fleet: those of its members, stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from pairlearn.risks import Risk
from pairlearn.training import Objective
from pairlearn_bench.fleet.groups import Group, of_members

PRIORS = ("held_prior", "guiding_prior")
PARTIAL_RISKS = 6  # those of the convex combination, the most of any risk


class FleetObjective(Objective):
    """The objectives (G, M) of all members, as one contraction of their moments.

    ``members`` are objectives by place. Other places are idle, and their tables zero. Tables are
    zero, too, for kinds of rows that a member does not have.
    """

    def __init__(self, members: Mapping[tuple[int, int], Objective]) -> None:
        objectives = [*members.values()]
        if len({one.loss.name for one in objectives}) > 1:
            raise ValueError("the risks of a fleet must share one loss")
        self.loss, self.sign, self.classes = objectives[0].loss, 1, 0
        self.held_prior = self.guiding_prior = None
        self.guidance = torch.zeros((), dtype=torch.float64)
        self.kinds = tuple(dict.fromkeys(name for one in objectives for name in one.kinds))
        shape = tuple(1 + max(place[axis] for place in members) for axis in (0, 1))
        # As many partial risks as any risk has: a compiled step serves them all.
        width = max(PARTIAL_RISKS, *(one.tables.shape[1] for one in objectives))
        last = objectives[0].tables.shape[2:]
        self.tables = torch.zeros(len(self.kinds), *shape, width, *last, dtype=torch.float64)
        self.slopes = torch.zeros(*shape, 1, dtype=torch.float64)
        masks = torch.zeros(len(self.kinds), *shape, 1, dtype=torch.bool)
        for place, one in members.items():
            self.slopes[place] = one.slopes
            own = [*map(self.kinds.index, one.kinds)]
            self.tables[own, *place, : one.tables.shape[1]] = one.tables.to(self.tables)
            for k, mask in zip(own, one.completing, strict=bool(one.completing)):
                masks[k, *place] = mask is not None
        self.terms = max(one.terms for one in objectives)
        self.completing = [mask if mask.any() else None for mask in masks] * bool(masks.any())

    @classmethod
    def of_groups(cls, groups: Sequence[Group]) -> FleetObjective:
        """The objective of groups; priors are NaN where a member has none, None where none has."""
        whole = cls(
            {
                (g, m): Objective(_over_its_rows(group, m), group.kinds)
                for g, group in enumerate(groups)
                for m in range(len(group.members))
            }
        )
        for name in PRIORS:
            priors = of_members(groups, name)
            setattr(whole, name, None if bool(priors.isnan().all()) else priors)
        return whole


def _over_its_rows(group: Group, m: int) -> Risk:
    """A member's risk, bound to the values and weights of its rows."""
    member = group.members[m]
    u, v = member.values()
    return member.risk.over(u, v, sum(group.columns) if len(group.columns) else None)
