"""Time and memory of a training step of fleets from one model to two thousand.

    python bench/speed/scaling_fleets.py [--device cuda] [--models 1,20,100,300,1000,2000]
                                        [--model mlp] [--features 784] [--pairs 15000]
                                        [--precision bf16] [--out FILE.csv --name NAME]

By default the paper's network on instances of MNIST's size (784 features, random), 15,000 pairs
in batches of 256, twenty models a group. One process for each size, so that peak memory is its
own. `--held-out` is measured too, but left out of the line through the others:

    milliseconds = a + b · models

which says what a model costs (b) and from how many models on the device is full (a / b).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scaling import add_row, line

from pairlearn import PairLabels, make_risk
from pairlearn.training import choose_device
from pairlearn_bench.data.sampling import sample_pairs
from pairlearn_bench.fleet import Fleet, Group, Member

METHODS = [
    f"{family}-{correction}"
    for family in ("sconfconfdiff", "confdiff", "convex-0.2", "convex-0.5", "sconf", "likelihood")
    for correction in ("none", "relu", "abs")
] + ["nonnegative-none", "supervised"]
INSTANCES = 40_000
SHARED = ("device", "precision", "model", "features", "pairs")
"""Options that all points have in common."""


def make_fleet(models: int, args: argparse.Namespace) -> Fleet:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(INSTANCES, args.features)).astype(np.float32)
    positive = x[:, 0] > 0
    r = np.where(positive, 0.97, 0.02)
    groups = []
    for seed in range(-(-models // len(METHODS))):
        pairs = sample_pairs(positive, args.pairs, 0.4, seed)
        labels = PairLabels.from_posteriors(*r[pairs].T).to_array()
        count = min(len(METHODS), models - seed * len(METHODS))
        members = [
            Member(
                make_risk(name, prior=0.4),
                positive[pairs] if name == "supervised" else labels,
                seed=seed,
            )
            for name in METHODS[:count]
        ]
        groups.append(Group(pairs, members, seed))
    return Fleet(
        x, groups, args.model, batch_size=256, device=args.device, precision=args.precision
    )


def measure(models: int, args: argparse.Namespace) -> dict[str, float]:
    """Milliseconds a step, and the most memory that was in use."""
    import torch

    start = time.perf_counter()
    fleet = make_fleet(models, args)
    fleet.train_epoch()()
    first = time.perf_counter() - start
    epochs, start, cpu = 0, time.perf_counter(), time.process_time()
    while not epochs or time.perf_counter() - start < args.seconds:
        fleet.train_epoch(more=True)()
        epochs += 1
    steps = epochs * fleet.batches.steps
    step = (time.perf_counter() - start) / steps
    cpu_step = (time.process_time() - cpu) / steps
    on_cuda = fleet.device.type == "cuda"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "models": models,
        "ms_per_step": 1e3 * step,
        "cpu_ms_per_step": 1e3 * cpu_step,
        "us_per_model_step": 1e6 * step / models,
        "memory_gib": torch.cuda.max_memory_allocated() / 2**30 if on_cuda else peak,
        "first_epoch_seconds": first,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--pairs", type=int, default=15_000)
    parser.add_argument("--models", default="1,20,100,300,1000,2000")
    parser.add_argument("--held-out", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--out", type=Path, help="CSV file to add the points to")
    parser.add_argument("--name", default="", help="what the points are called in --out")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args)))
        return
    points = []
    shared = {name: getattr(args, name) for name in SHARED}
    sizes = [int(size) for size in args.models.split(",")]
    for size in [*sizes, args.held_out]:
        command = [sys.executable, __file__, f"--one={size}", f"--seconds={args.seconds}"]
        command += [f"--{name}={value}" for name, value in shared.items()]
        busy = round(os.getloadavg()[0], 2)
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        points.append(json.loads(done.stdout))
        if args.out:
            add_row(args.out, {"what": args.name} | shared | points[-1] | {"load": busy})
        else:
            print(json.dumps(points[-1]), flush=True)
    *fitted, held_out = points
    report = {"device": str(choose_device(args.device)), "precision": args.precision}
    for key in ("ms_per_step", "memory_gib"):
        a, b = line({point["models"]: point[key] for point in fitted})
        predicted = a + b * held_out["models"]
        report |= {f"{key}_fixed": a, f"{key}_per_model": b, f"{key}_held_out": held_out[key]}
        report |= {f"{key}_predicted": predicted, f"{key}_error": predicted / held_out[key] - 1}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
