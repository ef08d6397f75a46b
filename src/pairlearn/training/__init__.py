"""Training: the fleet, and a fleet of one as the ordinary trainer."""

from pairlearn.training.checkpoint import Checkpoint, CheckpointError
from pairlearn.training.fleet import Fleet, Precision, choose_device
from pairlearn.training.groups import Group, Member, PairStream, TestSet
from pairlearn.training.objective import Objective, Total
from pairlearn.training.ranks import Ranks, current_ranks, risk_over_ranks, sum_over_ranks
from pairlearn.training.trainer import Recipe, Trained, train

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Fleet",
    "Group",
    "Member",
    "Objective",
    "PairStream",
    "Precision",
    "Ranks",
    "Recipe",
    "TestSet",
    "Total",
    "Trained",
    "choose_device",
    "current_ranks",
    "risk_over_ranks",
    "sum_over_ranks",
    "train",
]
