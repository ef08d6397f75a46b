"""What a risk costs beside plain binary cross-entropy and beside a training step.

    python bench/speed/risk_overhead.py

Prints, for a batch of 256 pairs on one CPU thread, the median time of forward +
backward of each risk, its ratio to binary cross-entropy on the concatenated logits,
and its share of a training step of the 784-300-300-300-1 network with Adam. All
timings of a row are interleaved in one run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from pairlearn import PairLabels, make_risk

PAIRS, REPEATS = 256, 400
NAMES = (
    "sconf-abs",
    "confdiff-abs",
    "convex-0.5-abs",
    "sconfconfdiff-none",
    "sconfconfdiff-abs",
    "nonnegative-none",
    "likelihood-abs",
    "supervised",
)


def seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def medians(works: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Median time of each, interleaved so that a slow moment hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(REPEATS):
        for name, work in works.items():
            times[name].append(seconds(work))
    return {name: statistics.median(values[REPEATS // 10 :]) for name, values in times.items()}


def training_step() -> Callable[[], None]:
    layers: list[nn.Module] = [nn.BatchNorm1d(784)]
    for inputs in (784, 300, 300):
        layers += [nn.Linear(inputs, 300), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(300, 1))
    optimiser = torch.optim.Adam(model.parameters(), weight_decay=1e-5, fused=True)
    x, y = torch.randn(2 * PAIRS, 784), torch.rand(2 * PAIRS).round()

    def step() -> None:
        optimiser.zero_grad()
        F.binary_cross_entropy_with_logits(model(x).squeeze(1), y).backward()
        optimiser.step()

    return step


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    logits = torch.randn(PAIRS, requires_grad=True)
    logits_prime = torch.randn(PAIRS, requires_grad=True)
    labels = PairLabels.from_posteriors(torch.rand(PAIRS), torch.rand(PAIRS))
    y, y_prime = torch.rand(PAIRS).round(), torch.rand(PAIRS).round()
    targets = torch.cat([y, y_prime])

    def cross_entropy() -> None:
        z = torch.cat([logits, logits_prime])
        F.binary_cross_entropy_with_logits(z, targets).backward()

    def cost_of(name: str) -> Callable[[], None]:
        risk = make_risk(name, prior=0.2)
        u, v = (y, y_prime) if name == "supervised" else (labels.similarity, labels.difference)
        return lambda: risk(logits, logits_prime, u, v).backward()

    step = medians({"step": training_step()})["step"]
    times = medians({"cross-entropy": cross_entropy} | {name: cost_of(name) for name in NAMES})
    base = times["cross-entropy"]
    print(f"{PAIRS} pairs, one thread, median of {REPEATS}; training step {1e6 * step:.0f} µs")
    print(f"{'risk':<20}{'µs':>8}{'× BCE':>8}{'% of step':>11}")
    for name, value in times.items():
        print(f"{name:<20}{1e6 * value:>8.0f}{value / base:>8.2f}{100 * value / step:>11.2f}")


if __name__ == "__main__":
    main()
