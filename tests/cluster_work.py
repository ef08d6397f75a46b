"""Work for the workers of a cluster, in a module of its own so that they can import it."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import torch

from pairlearn.paper.benchmark import train_fleet
from pairlearn.training import Fleet


def train_and_die_once(inputs, task):
    """Train a fleet; the first to come to the one that is marked is killed in the middle."""
    fleet, mark = task
    if mark is not None and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return train_fleet(inputs, fleet)


def _leave_a_line(path):
    with Path(path).open("a") as file:
        file.write("tried\n")


def die(inputs, task):
    _leave_a_line(task)
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(inputs, fleet):
    """A training that raises."""
    _leave_a_line(os.environ["PAIRLEARN_TEST_TRACES"])
    raise ValueError("the weights are NaN")


def sleep(inputs, task):
    seconds, mark = task
    time.sleep(seconds)
    Path(mark).touch()


def where_the_features_lie(inputs, run):
    """The line of the memory map where the features of a worker's fleet are."""
    benchmark = inputs.benchmark
    group = benchmark._group([run], {(run.seed, None): np.full(len(benchmark.features), 0.5)})
    address = Fleet(benchmark.features, [group], "linear", device="cpu").features.data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(end, 16) for end in line.split()[0].split("-"))
        if low <= address < high:
            return line
    return None


def threads(inputs, task):
    return torch.get_num_threads()
