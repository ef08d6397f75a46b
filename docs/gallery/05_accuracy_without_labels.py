"""
Estimated and true accuracy
===========================

Held-out judgements show how accurate a classifier is, although no class is known. The linear
classifiers here point in increasingly wrong directions. The figure shows the estimate from 500
judged pairs, with its 95% interval, against the accuracy by the true classes.

The annotator in this example is calibrated, and sees what the classifiers use. This is the
informed reading of the answers; see the last page of this gallery for annotators who see something
else.
"""

import matplotlib.pyplot as plt
import numpy as np

from pairlearn import estimate_accuracy
from pairlearn.simulation import simulate
from pairlearn.style import BLUE, GREY, STYLE, label_axes

plt.rcParams.update(STYLE)
made = simulate("gaussians", pairs=500, items=20_000, prior=0.3, seed=4)
x, labels = made.items.features, made.pairs.labels()
truth, estimates = [], []
for angle in np.linspace(0, 1.6, 9):
    z = (x - [0.2, 0]) @ [np.cos(angle), np.sin(angle)]
    truth.append(np.mean((z > 0) == made.positive))
    estimates.append(estimate_accuracy(z[made.pairs.left], z[made.pairs.right], labels).informed)

value, low, high = np.array([(e.value, e.low, e.high) for e in estimates]).T
fig, ax = plt.subplots(figsize=(4.2, 3.8), layout="constrained")
ax.plot([0.45, 1], [0.45, 1], color=GREY, lw=0.8, label="estimate = truth")
ax.errorbar(truth, value, [value - low, high - value], fmt="o", ms=5, color=BLUE, capsize=2,
            label="500 pairs, 95% interval")  # fmt: skip
ax.set_aspect("equal")
label_axes(ax, "accuracy by true classes (20,000)", "accuracy without labels").legend()
print(
    "intervals that contain the truth:", np.sum((low <= truth) & (truth <= high)), "of", len(truth)
)
