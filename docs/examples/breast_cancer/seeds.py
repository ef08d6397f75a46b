"""The story again with other seeds, to see the accuracy without labels beside the truth.

Other seeds draw other pairs of the same biopsies. Run it: python seeds.py 20
"""

from __future__ import annotations

import sys

import numpy as np

from pairlearn import PairClassifier, TrainingOptions
from pairlearn.simulation import simulate


def main(seeds: int) -> None:
    """Print the mean figures of the informed reading, and how often its interval held the truth."""
    figures = []
    for seed in range(seeds):
        made = simulate("breast-cancer", pairs=200, items=510, annotators=3, missing=0.2, seed=seed)
        pairs = np.stack([made.pairs.left, made.pairs.right], axis=1)
        labels, positive = made.pairs.answers(), made.positive
        classifier = PairClassifier(
            model="linear",
            epochs=50,
            preprocessor=made.items,
            random_state=0,
            training=TrainingOptions(learning_rate=0.01),
        )
        classifier.fit(pairs[:150], labels[:150])
        estimate = classifier.estimate_accuracy(pairs[150:], labels[150:]).informed
        new = np.setdiff1d(made.items.ids, pairs[:150])
        truth = np.mean((classifier.predict(new) == 1) == positive[new])
        doctors = np.mean((made.posterior > 0.5) == positive)
        modest = np.mean(np.maximum(made.posterior, 1 - made.posterior))
        figures.append(
            (estimate.value, truth, estimate.low <= truth <= estimate.high, doctors, modest)
        )
    value, truth, covered, doctors, modest = np.mean(figures, axis=0)
    print(f"{seeds} seeds: accuracy without labels {value:.3f}, in truth {truth:.3f}")
    print(f"its interval held the truth in {covered:.0%}")
    print(f"the doctors are right in {doctors:.3f} and think {modest:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
