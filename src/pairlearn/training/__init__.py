"""Training: one model in a plain loop."""

from pairlearn.training.checkpoint import Checkpoint as Checkpoint
from pairlearn.training.checkpoint import CheckpointError as CheckpointError
from pairlearn.training.devices import Precision as Precision
from pairlearn.training.devices import choose_device as choose_device
from pairlearn.training.learner import Learner as Learner
from pairlearn.training.learner import Recipe as Recipe
from pairlearn.training.loop import Callback as Callback
from pairlearn.training.objective import Objective as Objective
from pairlearn.training.objective import Total as Total
from pairlearn.training.ranks import Ranks as Ranks
from pairlearn.training.ranks import current_ranks as current_ranks
from pairlearn.training.ranks import risk_over_ranks as risk_over_ranks
from pairlearn.training.ranks import sum_over_ranks as sum_over_ranks
from pairlearn.training.trainer import Trained as Trained
from pairlearn.training.trainer import train as train
