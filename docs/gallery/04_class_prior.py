"""
The class prior from similarities
=================================

Two independent instances agree with probability π₊² + π₋², which the mean similarity
estimates, once you say which class is larger. The error falls like n^−½, and more slowly near
π₊ = ½.

Points and bars: the estimate and its 95% interval as more and more pairs of one table are
used. Dashed: the true prior of the pairs.
"""

import matplotlib.pyplot as plt
import numpy as np

from pairlearn import estimate_prior
from pairlearn.simulation import simulate
from pairlearn.style import BLUE, GREEN, ORANGE, STYLE, label_axes

plt.rcParams.update(STYLE)
sizes = np.array([30, 60, 125, 250, 500, 1000, 2000, 4000])
fig, ax = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
for number, (prior, color) in enumerate(((0.1, BLUE), (0.3, ORANGE), (0.5, GREEN))):
    s = simulate(pairs=4000, prior=prior, seed=number).pairs.similarity
    estimates = [estimate_prior(s[:n], majority="negative") for n in sizes]
    value, low, high = np.array([(e.value, e.low, e.high) for e in estimates]).T
    nudged = sizes * 1.06 ** (number - 1)  # so that bars do not hide each other
    ax.errorbar(nudged, value, [value - low, high - value], fmt="o", ms=4, color=color,
                capsize=2, label=f"π₊ = {prior}")  # fmt: skip
    ax.axhline(prior, color=color, ls="dashed", lw=0.8)
ax.set(xscale="log", ylim=(0, 0.56))
label_axes(ax, "pairs", "estimated class prior (share positive)")
ax.legend(loc="lower right", ncols=3)
