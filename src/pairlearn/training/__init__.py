"""Training: the fleet, and a fleet of one as the ordinary trainer."""

from pairlearn.training.fleet import Fleet, Precision, choose_device
from pairlearn.training.groups import Group, Member, TestSet
from pairlearn.training.step import Objective

__all__ = ["Fleet", "Group", "Member", "Objective", "Precision", "TestSet", "choose_device"]
