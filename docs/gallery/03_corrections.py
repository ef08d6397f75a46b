"""
What a correction does to training
==================================

A risk estimated from pairs has negative weights. A flexible model can exploit them and push the
estimate below zero, where no true risk can be. The correction acts on a partial risk as soon as it
turns negative.

One network, 200 judged pairs of digits (even or odd), three corrections of SconfConfDiff.
Left: the estimated risk before correction. Right: the accuracy on digits that are in no pair.
"""

import matplotlib.pyplot as plt
import torch

from pairlearn import make_risk
from pairlearn.models import MLP
from pairlearn.simulation import simulate
from pairlearn.style import GREY, STYLE, label_axes, method_style

plt.rcParams.update(STYLE)
made = simulate("digits", pairs=200, items=1290, prior=0.3, seed=0)
x, y = torch.from_numpy(made.items.features), torch.from_numpy(made.positive)
ends, judgements = torch.from_numpy(made.pairs.ends.T), torch.from_numpy(made.pairs.answers().T)
test = torch.ones(len(x), dtype=torch.bool).index_fill_(0, ends.flatten(), False)

fig, (risks, accuracies) = plt.subplots(1, 2, figsize=(7.6, 3), layout="constrained")
for correction in ("none", "relu", "abs"):
    torch.manual_seed(0)
    name, seen = f"sconfconfdiff-{correction}", []
    model, risk = MLP(64, (50, 50)), make_risk(name, prior=0.3)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(150):
        z = model(x[ends].flatten(0, 1)).split(200)
        optimiser.zero_grad()
        risk(*z, *judgements).backward()
        optimiser.step()
        with torch.no_grad():
            accuracy = ((model.eval()(x[test]) > 0) == y[test]).float().mean()
            seen.append((risk.partial_risks(*z, *judgements).sum(), accuracy))
            model.train()
    look = {"color": method_style(name).color, "linestyle": method_style(name).dash}
    for ax, values in zip((risks, accuracies), zip(*seen, strict=True), strict=True):
        ax.plot(values, label=correction, **look)
risks.axhline(0, color=GREY, lw=0.7)
risks.set(ylim=(-2, 1))
label_axes(risks, "training step", "estimated risk (nats)").legend(title="correction")
label_axes(accuracies, "training step", "accuracy (share correct)")
