"""How much faster a fleet is than one model after another, and how far from the limit.

    python bench/speed/fleet.py --data DIR [--dataset mnist] [--device cuda] [--seconds 20]

Measures, in one run, on one device:
- the plain loop: a DataLoader over pairs, one model, one optimiser, one method;
- the fleet: on CUDA every row of the accuracy grid at three priors and five seeds, on a
  CPU one model in each of as many processes as there are cores, as `bench run` does it
  (the plain loop may use all cores, too);
and prints seconds per model-epoch of both, their ratio, and on CUDA the least time
that a step could take by its arithmetic and by the bytes it has to move.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import Queue, get_context
from multiprocessing.synchronize import Barrier

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from pairlearn import PairLabels, make_risk
from pairlearn.models import make_model
from pairlearn.training import choose_device
from pairlearn_bench.data import as_features, get_spec, load
from pairlearn_bench.data.sampling import sample_pairs
from pairlearn_bench.execute import MEMBERS_ON_CPU, plan_fleets
from pairlearn_bench.fleet import Fleet, Group, Member
from pairlearn_bench.runs import Run

METHODS = [
    f"{family}-{correction}"
    for family in ("sconfconfdiff", "confdiff", "likelihood")
    for correction in ("none", "relu", "abs")
] + ["nonnegative-none", "supervised"]
UNBALANCED = [
    f"{family}-{correction}"
    for family in ("convex-0.2", "convex-0.5", "convex-0.8", "sconf")
    for correction in ("none", "relu", "abs")
]


class Pairs(Dataset):
    """Pairs served one by one, as a plain training script does."""

    def __init__(self, x: torch.Tensor, pairs: np.ndarray, labels: np.ndarray) -> None:
        self.x, self.pairs, self.labels = x, pairs, torch.from_numpy(labels).float()

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, ...]:
        left, right = self.pairs[index]
        return self.x[left], self.x[right], self.labels[index, 0], self.labels[index, 1]


@dataclass
class Task:
    """A data set's features and classes."""

    x: np.ndarray
    positive: np.ndarray
    spec: object

    def group_data(self, prior: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs at a prior, their judgements and their classes."""
        spec = self.spec
        pairs = sample_pairs(self.positive[: spec.n_train], spec.n_pairs, prior, seed)
        r = np.where(self.positive, 0.97, 0.02)
        labels = PairLabels.from_posteriors(*r[pairs].T).to_array()
        return pairs, labels, self.positive[pairs]


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def plain_epochs(task: Task, device: torch.device, seconds: float) -> tuple[float, int]:
    """Seconds an epoch of the plain loop with one model."""
    spec = task.spec
    pairs, labels, _ = task.group_data(0.2, 0)
    loader = DataLoader(
        Pairs(torch.from_numpy(task.x), pairs, labels), spec.batch_size, shuffle=True
    )
    model = make_model("mlp", (task.x.shape[1],), 0).to(device)
    optimiser = torch.optim.Adam(
        model.parameters(), spec.learning_rate, weight_decay=spec.weight_decay
    )
    risk = make_risk("sconfconfdiff-abs", prior=0.2)

    def epoch() -> None:
        for x, x_prime, s, c in loader:
            x, x_prime, s, c = (t.to(device) for t in (x, x_prime, s, c))
            value = risk(model(x), model(x_prime), s, c)
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
        synchronise(device)

    epoch()
    return timed(epoch, seconds)


def timed(epoch, seconds: float) -> tuple[float, int]:
    start, count = time.perf_counter(), 0
    while count < 2 or time.perf_counter() - start < seconds:
        epoch()
        count += 1
    return (time.perf_counter() - start) / count, count


def grid_runs(spec: object, seeds: int) -> Iterator[Run]:
    for prior in (0.2, 0.5, 0.8):
        for seed in range(seeds):
            for method in METHODS + (UNBALANCED if prior != 0.5 else []):
                yield Run(
                    dataset=spec.name,
                    prior=prior,
                    seed=seed,
                    method=method,
                    pairs=spec.n_pairs,
                    epochs=1,
                )


def make_fleet(task: Task, args: argparse.Namespace) -> Fleet:
    groups = []
    for runs in plan_fleets(list(grid_runs(task.spec, args.seeds)), 4096)[0]:
        pairs, labels, classes = task.group_data(runs[0].prior, runs[0].seed)
        members = [
            Member(
                make_risk(run.method, run.prior),
                classes if run.method == "supervised" else labels,
                seed=run.seed,
            )
            for run in runs
        ]
        groups.append(Group(pairs, members, runs[0].seed))
    return Fleet(
        task.x,
        groups,
        batch_size=task.spec.batch_size,
        device=args.device,
        precision=args.precision,
    )


def cpu_worker(task: Task, args: argparse.Namespace, barrier: Barrier, results: Queue) -> None:
    torch.set_num_threads(1)
    pairs, labels, _ = task.group_data(0.2, 0)
    members = [Member(make_risk(name, 0.2), labels) for name in METHODS[:MEMBERS_ON_CPU]]
    group = Group(pairs, members)
    fleet = Fleet(
        task.x, [group], batch_size=task.spec.batch_size, device="cpu", precision=args.precision
    )
    fleet.fit(1)
    barrier.wait()
    seconds, _ = timed(lambda: fleet.fit(fleet.epoch + 1), args.seconds)
    barrier.wait()  # both stay busy until both have measured
    results.put(seconds / len(members))


def cpu_fleets(task: Task, args: argparse.Namespace) -> float:
    """Seconds per model-epoch with one process a core, all busy at once."""
    context = get_context("spawn")
    workers = os.cpu_count() or 1
    barrier, results = context.Barrier(workers), context.Queue()
    processes = [
        context.Process(target=cpu_worker, args=(task, args, barrier, results))
        for _ in range(workers)
    ]
    for process in processes:
        process.start()
    each = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return sum(each) / len(each) / workers


def roofline(fleet: Fleet) -> dict[str, float]:
    """Least milliseconds of a step: products at 790 TFLOP/s, memory at 4.3 TB/s (measured)."""
    network = fleet.network
    widths = [w.shape[-2] for w in network.weights]
    rows, models = 2 * fleet.batch_size, network.groups * network.members
    products = sum(a * b for a, b in pairwise(widths))
    backward = 3 * products - widths[0] * widths[1]  # no gradient with respect to the input
    flops = 2 * rows * models * backward
    parameters = models * sum(w[0, 0].numel() for w in network.weights)
    # Adam reads and writes w, m and v in float32; in bf16 the gradient is written and
    # read, the weights are written once and read twice.
    adam_bytes = parameters * (6 * 4 + 2 * 5)
    # Each hidden activation: written and read by the product, the ReLU, and both backward.
    activation_bytes = rows * models * sum(widths[1:]) * 2 * 8
    return {
        "arithmetic_ms": 1e3 * flops / 790e12,
        "optimiser_ms": 1e3 * adam_bytes / 4.3e12,
        "activations_ms": 1e3 * activation_bytes / 4.3e12,
    }


def profile(fleet: Fleet) -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    with record(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as result:
        fleet.fit(fleet.epoch + 1)
        torch.cuda.synchronize()
    print(
        result.key_averages().table(
            sort_by="self_cuda_time_total", row_limit=40, max_name_column_width=90
        )
    )


def print_report(report: dict[str, object], as_json: bool) -> None:
    if as_json:
        print(json.dumps(report, indent=1))
        return
    for name, value in report.items():
        print(f"{name:<36}{value:.6g}" if isinstance(value, float) else f"{name:<36}{value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", help="bf16 on CUDA and float32 on a CPU if not given")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    device = choose_device(args.device)
    args.precision = args.precision or ("bf16" if device.type == "cuda" else "float32")
    spec = get_spec(args.dataset)
    dataset = load(args.dataset, args.data)
    task = Task(as_features(dataset.x, spec), spec.is_positive(dataset.y), spec)

    loop, loop_epochs = plain_epochs(task, device, args.seconds)
    if device.type == "cpu":
        fleet_time = cpu_fleets(task, args)
        report = {
            "dataset": spec.name,
            "device": "cpu",
            "cores": os.cpu_count(),
            "torch": torch.__version__,
            "precision": args.precision,
            "loop_seconds_per_model_epoch": loop,
            "fleet_seconds_per_model_epoch": fleet_time,
            "times_faster_per_model_epoch": loop / fleet_time,
        }
        print_report(report, args.json)
        return
    start = time.perf_counter()
    fleet = make_fleet(task, args)
    built = time.perf_counter() - start
    start = time.perf_counter()
    fleet.fit(1)
    synchronise(device)
    first = time.perf_counter() - start

    at_once = 10

    def ten_epochs() -> None:
        fleet.fit(fleet.epoch + at_once)
        synchronise(device)

    seconds, rounds = timed(ten_epochs, args.seconds)
    fleet_seconds, epochs = seconds / at_once, rounds * at_once
    models = sum(fleet.sizes)
    steps = -(-fleet.pairs // fleet.batch_size)
    report = {
        "dataset": spec.name,
        "device": str(device),
        "torch": torch.__version__,
        "precision": args.precision,
        "models": models,
        "places": fleet.network.groups * fleet.network.members,
        "loop_seconds_per_model_epoch": loop,
        "loop_epochs": loop_epochs,
        "fleet_seconds_per_epoch": fleet_seconds,
        "fleet_epochs": epochs,
        "fleet_ms_per_step": 1e3 * fleet_seconds / steps,
        "times_faster_per_model_epoch": loop / (fleet_seconds / models),
        "build_seconds": built,
        "first_epoch_with_compiler_seconds": first,
    }
    report |= {f"roofline_{name}": value for name, value in roofline(fleet).items()}
    report["memory_gib"] = torch.cuda.max_memory_allocated() / 2**30
    if args.profile:
        profile(fleet)
    print_report(report, args.json)


if __name__ == "__main__":
    main()
