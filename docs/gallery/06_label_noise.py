"""
Noisy judgements need a correction
==================================

Every judgement is multiplied by a draw from N(1, σ²) and not clipped, so many are infeasible. The
risks are linear in the judgements and so remain unbiased, but without a correction they fall
without bound, and the network learns the noise.

Accuracy on digits (even or odd) that are in no pair, after training on 300 pairs. Small points are
single seeds, lines their means. In this small example the likelihood is ahead on clean judgements
and SconfConfDiff on noisy ones. With 1,200 to 15,000 pairs at prior 0.2 the likelihood was ahead at
all five levels of noise, on six data sets (:doc:`../results/robustness`).
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from pairlearn import make_risk
from pairlearn.models import MLP
from pairlearn.simulation import simulate
from pairlearn.style import STYLE, label_axes, method_style
from pairlearn_bench.simulated import add_noise

plt.rcParams.update(STYLE)


def accuracy(name: str, sigma: float, seed: int) -> float:
    """Train a small network with this risk on noisy judgements, and test it."""
    made = simulate("digits", pairs=300, items=1290, prior=0.3, seed=seed)
    x, y = torch.from_numpy(made.items.features), torch.from_numpy(made.positive)
    ends, labels = torch.from_numpy(made.pairs.ends.T), made.pairs.labels()
    judgements = torch.from_numpy(add_noise(labels, sigma, seed).to_array().T)
    torch.manual_seed(seed)
    model, risk = MLP(64, (50, 50)), make_risk(name, prior=0.3)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(100):
        optimiser.zero_grad()
        risk(*model(x[ends].flatten(0, 1)).split(300), *judgements).backward()
        optimiser.step()
    test = torch.ones(len(x), dtype=torch.bool).index_fill_(0, ends.flatten(), False)
    return float(((model.eval()(x[test]) > 0) == y[test]).float().mean())


fig, ax = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
noise = np.array([0.0, 0.25, 0.5])
for name in ("likelihood-abs", "likelihood-none", "sconfconfdiff-abs", "sconfconfdiff-none"):
    accuracies = np.array([[accuracy(name, sigma, seed) for sigma in noise] for seed in range(2)])
    ax.plot(noise, accuracies.mean(0), label=name, **method_style(name).line())
    ax.plot(noise, accuracies.T, ls="", ms=2, alpha=0.5, **method_style(name).points())
label_axes(ax, "noise σ of the judgements", "accuracy (share correct)")
ax.legend(loc="lower left")
