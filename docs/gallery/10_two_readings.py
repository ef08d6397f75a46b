"""
Two readings of the same answers
================================

An accuracy without labels can be wrong even if the annotators are calibrated. What matters is
whether they knew what the classifier uses. Two counterexamples, and how two readings of the same
answers bracket the truth:

- **Private knowledge**: annotators are right on 93% of the items, from evidence that is not in the
  features. The classifier is right on 95%, and its mistakes are unrelated to theirs.
- **They see less**: the classifier uses two features, and annotators see the weaker one.

Each line is one table of 500 judged pairs, with the 95% intervals of both readings and the interval
that is printed. The last interval uses 100 labelled items as well. All of these assume calibrated
annotators, except for the last one, which assumes a random sample of labelled items.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from pairlearn import PairLabels, estimate_accuracy
from pairlearn.style import BLUE, GREEN, GREY, STYLE, label_axes

plt.rcParams.update(STYLE)


def private(size, rng):
    """Classes, log-odds of the model, and probabilities of the annotators."""
    y = rng.random(size) < 0.5
    x = rng.normal(np.where(y, 1.645, -1.645), 1)
    seen = rng.normal(np.where(y, 1.5, -1.5), 1)
    return y, 3.29 * x, expit(3 * seen)


def less(size, rng):
    """The same for annotators who see the first feature only."""
    x = rng.normal(size=(2, size))
    z = 1.2 * x[0] + 2.4 * x[1]
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    seen = expit(1.2 * x[0][:, None] + 2.4 * nodes) @ weights / weights.sum()
    return rng.random(size) < expit(z), z, seen


fig, axes = plt.subplots(1, 2, figsize=(8.4, 2.6), layout="constrained", sharey=True)
names = ("informed", "independent", "printed", "with 100 labels")
for ax, draw in zip(axes, (private, less), strict=True):
    rng = np.random.default_rng(1)
    y, z, _ = draw(200_000, rng)
    truth = np.mean((z > 0) == y)
    _, z, r = draw(1000, rng)
    pairs = z[:500], z[500:], PairLabels.from_posteriors(r[:500], r[500:])
    estimate = estimate_accuracy(*pairs)
    known_y, known_z, _ = draw(100, rng)
    labelled = estimate_accuracy(*pairs, labelled=(known_z, known_y))
    parts = (estimate.informed, estimate.independent, estimate, labelled)
    ax.axvline(truth, color=GREY, lw=0.8)
    for place, (part, color) in enumerate(zip(parts, (BLUE, BLUE, GREEN, GREEN), strict=True)):
        ax.plot([part.low, part.high], [-place, -place], color=color, lw=3)
    ax.set_yticks([0, -1, -2, -3], names)
    ax.set_title(draw.__name__)
    label_axes(ax, "accuracy (the line is the truth)", "")
    print(f"truth {truth:.3f}. {estimate.sentence()}")
    print(labelled.sentence())
