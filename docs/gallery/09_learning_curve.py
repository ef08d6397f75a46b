"""
How accuracy grows with the number of pairs
===========================================

Two methods that learn from judgements, compared with supervised training on the true classes of the
same pairs. Soft judgements carry more information than classes, so the likelihood is ahead when
pairs are few.

Accuracy on other instances of two moons. Small points are single seeds, lines their means.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from pairlearn import make_risk
from pairlearn.models import MLP
from pairlearn.simulation import simulate
from pairlearn.style import STYLE, label_axes, method_style

plt.rcParams.update(STYLE)


def accuracy(name: str, n: int, seed: int) -> float:
    """Train a small network on n pairs, and test it on instances of no pair."""
    made = simulate("moons", pairs=n, items=2 * n + 1500, prior=0.3, seed=seed)
    x, y = torch.from_numpy(made.items.features), torch.from_numpy(made.positive)
    ends, answers = torch.from_numpy(made.pairs.ends.T), torch.from_numpy(made.pairs.answers().T)
    targets = y[ends].float() if name == "supervised" else answers
    torch.manual_seed(seed)
    model, risk = MLP(2, (30, 30)), make_risk(name, prior=0.3)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(80):
        optimiser.zero_grad()
        risk(*model(x[ends].flatten(0, 1)).split(n), *targets).backward()
        optimiser.step()
    test = torch.ones(len(x), dtype=torch.bool).index_fill_(0, ends.flatten(), False)
    return float(((model.eval()(x[test]) > 0) == y[test]).float().mean())


fig, ax = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
sizes = [25, 50, 100, 200]
for name in ("likelihood-abs", "sconfconfdiff-abs", "supervised"):
    accuracies = np.array([[accuracy(name, n, seed) for n in sizes] for seed in range(4)])
    ax.plot(sizes, accuracies.mean(0), label=name, **method_style(name).line())
    ax.plot(sizes, accuracies.T, ls="", ms=2, alpha=0.5, **method_style(name).points())
ax.set_xscale("log", base=2)
ax.set_xticks(sizes, sizes)
label_axes(ax, "pairs", "accuracy (share correct)").legend()
