"""Work for the workers of a cluster, in a module of its own so that they can import it."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from pairlearn.paper.benchmark import train_fleet
from pairlearn.training import Fleet


def key(fleet):
    return fleet[0][0].key()


def train_and_die_once(inputs, task):
    """Train a fleet; the first to come to the one that is marked is killed in the middle."""
    fleet, mark = task
    if mark is not None and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return train_fleet(inputs, fleet)


def die(inputs, task):
    with Path(task).open("a") as file:
        file.write("tried\n")
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(inputs, fleet):
    """A training that raises, and leaves a line where its run says."""
    with Path(os.environ["PAIRLEARN_TEST_TRACES"]).open("a") as file:
        file.write("tried\n")
    raise ValueError("the weights are NaN")


def sleep(inputs, task):
    seconds, mark = task
    time.sleep(seconds)
    Path(mark).touch()
    return os.getpid()


def where_the_features_lie(inputs, run):
    """The line of the memory map where the features of a worker's fleet are."""
    benchmark = inputs.benchmark
    group = benchmark._group([run], {(run.seed, None): np.full(len(benchmark.features), 0.5)})
    fleet = Fleet(benchmark.features, [group], "linear", device="cpu")
    address = fleet.features.data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(end, 16) for end in line.split()[0].split("-"))
        if low <= address < high:
            return line
    return None


def threads(inputs, task):
    import torch

    return torch.get_num_threads()
