"""Training: the fleet, and a fleet of one as the ordinary trainer."""

from pairlearn.training.fleet import Fleet, Group, Member, Precision, TestSet, choose_device

__all__ = ["Fleet", "Group", "Member", "Precision", "TestSet", "choose_device"]
