"""
Three classes, one question per pair
====================================

Each pair is asked about one class only: how likely is each item to be of that class? The left
figure shows the posteriors of 400 items as points in a triangle. The right one shows the decision
regions that a linear model learns from 200 such pairs, and the items in the colours of their true
classes. No answer names the class of an item.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

from pairlearn import Judgements, PairClassifier, PairLabels
from pairlearn.style import BLUE, GREEN, ORANGE, STYLE, label_axes

plt.rcParams.update(STYLE)
colours = np.array([BLUE, ORANGE, GREEN])
rng = np.random.default_rng(0)
corners = np.array([[0.0, 1.4], [-1.2, -0.7], [1.2, -0.7]])
y = rng.integers(3, size=400)
x = corners[y] + 0.8 * rng.normal(size=(400, 2))
r = softmax(-((x[:, None] - corners) ** 2).sum(-1) / (2 * 0.8**2), 1)

# %%
# The questions: each of 200 pairs about a class drawn at random.
ends, k = np.arange(400).reshape(-1, 2), rng.integers(3, size=200)
labels = PairLabels.from_posteriors(r[ends[:, 0], k], r[ends[:, 1], k])
judged = Judgements.from_pairs(ends, labels, about=k)
model = PairClassifier(model="linear", random_state=0).fit(x, judged)

# %%
# Posteriors are points of a triangle, and the model's decisions regions of the plane.
fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
triangle = np.array([[0.5, 3**0.5 / 2], [0, 0], [1, 0]])
left.plot(*triangle[[0, 1, 2, 0]].T, color="black", lw=0.8)
left.scatter(*(r @ triangle).T, c=colours[y], s=8)
for name, (across, up) in enumerate(triangle):
    left.annotate(f"class {name}", (across, up), (0, 6 if up else -14), textcoords="offset points")
left.axis("off")
grid = np.stack(np.meshgrid(*[np.linspace(-3.5, 3.5, 141)] * 2), -1)
decided = model.predict_proba(grid.reshape(-1, 2)).argmax(1).reshape(141, 141)
right.contourf(*grid.transpose(2, 0, 1), decided, [-0.5, 0.5, 1.5, 2.5], colors=colours, alpha=0.25)
right.scatter(*x.T, c=colours[y], s=8)
found = (model.predict_proba(x).argmax(1) == y).mean()
label_axes(right, "first feature", "second feature")
right.set_title(f"right on {found:.0%}, the annotator on {(r.argmax(1) == y).mean():.0%}")
plt.show()
