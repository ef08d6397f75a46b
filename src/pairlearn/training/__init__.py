"""Training: the fleet, and a fleet of one as the ordinary trainer."""

from pairlearn.training.fleet import Fleet, Precision, choose_device
from pairlearn.training.groups import Group, Member, TestSet

__all__ = ["Fleet", "Group", "Member", "Precision", "TestSet", "choose_device"]
