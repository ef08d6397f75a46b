"""
Missing judgements cost little
==============================

An annotator may give the similarity, the difference, or both. The likelihood uses whatever is
given: a pair with one judgement still carries information about both of its items.

Accuracy on digits (even or odd) that are in no pair, after training on 300 pairs. A growing share
of the pairs lacks one judgement, which is compared with discarding those pairs.
"""

import matplotlib.pyplot as plt
import numpy as np

from pairlearn import PairClassifier, TrainingOptions
from pairlearn.models import MLP
from pairlearn.simulation import simulate
from pairlearn.style import BLUE, ORANGE, STYLE, label_axes

plt.rcParams.update(STYLE)
shares, accuracies = [0.0, 0.4, 0.8, 1.0], {"one judgement is missing": [], "discarded": []}
for share in shares:
    made = simulate("digits", pairs=300, items=1290, prior=0.3, missing=share, seed=0)
    pairs, judgements = made.pairs.ends, made.pairs.answers()
    other = np.setdiff1d(made.items.ids, pairs)
    whole = ~np.isnan(judgements).any(axis=1)
    for name, rows in zip(accuracies, (np.full(300, True), whole), strict=True):
        if rows.any():
            classifier = PairClassifier(
                model=lambda features: MLP(features, (50, 50)), preprocessor=made.items,
                epochs=30, random_state=0,
                training=TrainingOptions(learning_rate=0.003, batch_size=100),
            ).fit(pairs[rows], judgements[rows])  # fmt: skip
            right = (classifier.predict(other) > 0) == made.positive[other]
            accuracies[name].append(right.mean())

fig, ax = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
for (name, values), color, marker in zip(accuracies.items(), (BLUE, ORANGE), "os", strict=True):
    ax.plot(shares[: len(values)], values, color=color, marker=marker, label=name)
ax.set(ylim=(0.78, 0.96))
label_axes(ax, "pairs without both judgements (share)", "accuracy (share correct)")
ax.legend(loc="lower left")
