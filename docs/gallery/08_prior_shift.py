"""
Where the classifier will be used
=================================

The likelihood learns the probabilities of the population that the annotator has in mind. Here
the annotator has a balanced one in mind, and the classifier is used where one instance in ten is
positive. `target_prior` and `annotator_prior` shift the log-odds by the difference of the log-odds
of the two priors.

Left: predicted probabilities against the share of true positives among 20,000 instances, in
ten bins. Right: the decision boundary moves.
"""

import matplotlib.pyplot as plt
import numpy as np

from pairlearn import PairClassifier, TrainingOptions
from pairlearn.simulation import simulate
from pairlearn.style import BLUE, GREY, ORANGE, STYLE, label_axes

plt.rcParams.update(STYLE)
made = simulate(
    "gaussians", pairs=600, items=20_000, prior=0.1, annotator_prior=0.5, overlap=0.12, seed=0
)
pairs, x = made.pairs.ends, made.items.features
fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2), layout="constrained")
right.scatter(*x[:1500].T, s=3, c=np.where(made.positive[:1500], "#444444", "#BBBBBB"))
left.plot([0, 1], [0, 1], color=GREY, lw=0.8)
for options, color, name in (
    ({}, ORANGE, "as the annotator sees it"),
    ({"target_prior": 0.1, "annotator_prior": 0.5}, BLUE, "shifted to π₊ = 0.1"),
):
    classifier = PairClassifier(
        model="linear", preprocessor=made.items, epochs=60, random_state=0,
        training=TrainingOptions(batch_size=200),
        **options,
    ).fit(pairs, made.pairs.answers())  # fmt: skip
    p = classifier.predict_proba(made.items.ids)[:, 1]
    bins = np.clip((p * 10).astype(int), 0, 9)
    share = [made.positive[bins == k].mean() for k in range(10)]
    accuracy = ((p > 0.5) == made.positive).mean()
    left.plot([p[bins == k].mean() for k in range(10)], share, "o-", color=color, ms=4, label=name)
    right.tricontour(*x[:5000].T, p[:5000], [0.5], colors=color)
    print(f"{name}: accuracy {accuracy:.3f}")
label_axes(left, "predicted probability", "true positives (share)").legend()
label_axes(right, "feature 1", "feature 2").set_aspect("equal")
