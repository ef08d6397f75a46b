"""Training: the fleet, of which the ordinary trainer is a fleet of one."""

from pairlearn.training.checkpoint import Checkpoint as Checkpoint
from pairlearn.training.checkpoint import CheckpointError as CheckpointError
from pairlearn.training.fleet import Fleet as Fleet
from pairlearn.training.fleet import Precision as Precision
from pairlearn.training.fleet import choose_device as choose_device
from pairlearn.training.groups import Group as Group
from pairlearn.training.groups import Member as Member
from pairlearn.training.groups import PairStream as PairStream
from pairlearn.training.groups import TestSet as TestSet
from pairlearn.training.loop import Callback as Callback
from pairlearn.training.objective import Objective as Objective
from pairlearn.training.objective import Total as Total
from pairlearn.training.ranks import Ranks as Ranks
from pairlearn.training.ranks import current_ranks as current_ranks
from pairlearn.training.ranks import risk_over_ranks as risk_over_ranks
from pairlearn.training.ranks import sum_over_ranks as sum_over_ranks
from pairlearn.training.trainer import Recipe as Recipe
from pairlearn.training.trainer import Trained as Trained
from pairlearn.training.trainer import train as train
