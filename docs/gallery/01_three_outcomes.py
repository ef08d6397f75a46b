"""
Three outcomes, one plane
=========================

A similarity and a difference determine a distribution over three outcomes: left positive and right
negative, left negative and right positive, or both of one class. The classes of a pair are
independent given its items, so only the shaded part of the triangle can occur.

On the left, each pair is a point in the triangle of outcomes. On the right are the same pairs
as an annotator judges them. The map between the two is linear. On the curved edge, the
posteriors of both items sum to one.
"""

import matplotlib.pyplot as plt
import numpy as np

from pairlearn import PairLabels
from pairlearn.check import plot_plane
from pairlearn.style import BLUE, GREY, STYLE

plt.rcParams.update(STYLE)
r, r_prime = np.random.default_rng(0).beta(0.6, 0.6, size=(2, 300))
labels = PairLabels.from_posteriors(r, r_prime)

corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 3**0.5 / 2]])  # (+, −), (−, +), same
u = np.linspace(0, 1, 100)
edge = PairLabels.from_posteriors(u, 1 - u).outcomes() @ corners

fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4), layout="constrained")
left.fill([*edge[:, 0], 0.5], [*edge[:, 1], 3**0.5 / 2], color="#ECECEC")
left.fill(*corners.T, facecolor="none", edgecolor=GREY, lw=0.8)
left.scatter(*(labels.outcomes() @ corners).T, s=6, color=BLUE, alpha=0.6, linewidths=0)
for (x, y), name, rise in zip(corners, ["+ −", "− +", "same"], [-13, -13, 4], strict=True):
    left.annotate(name, (x, y), (0, rise), ha="center", textcoords="offset points")
left.set(aspect="equal", ylim=(-0.1, 1.0))
left.axis("off")
plot_plane(labels, right)
