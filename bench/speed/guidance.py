"""How often few pairs end in the mirror image, with the guidance of `PairClassifier` and without.

    python bench/speed/guidance.py --data DIR > bench/speed/guidance.txt

Optdigits at prior 0.1, 100 pairs, the paper's annotator and its network `mlp`, eight seeds: the
accuracy on a stratified test set at the same prior. Guidance draws the first epochs to the prior
that the similarities imply. Half a minute on a core.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from unittest import mock

import numpy as np
from practice import benchmark_task

from pairlearn import PairClassifier
from pairlearn.estimators import learning

PRIOR, PAIRS, SEEDS = 0.1, 100, range(8)


def accuracies(data: Path | None, seed: int) -> list[float]:
    """Test accuracy of one table with guidance, and without."""
    x, pairs, labels, test, positive = benchmark_task(
        "optdigits", data, seed, prior=PRIOR, pairs=PAIRS
    )
    found = []
    for guide in (learning.guiding_prior, lambda *_: None):
        with mock.patch.object(learning, "guiding_prior", guide):
            model = PairClassifier(
                model="mlp", preprocessor=x, unjudged="ignore", random_state=seed
            ).fit(pairs, labels)
        found.append(float(((model.predict(test) == 1) == positive).mean()))
    return found


def main() -> None:
    """Print the accuracies by seed, and how many are below one half."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path)
    data = parser.parse_args().data
    print("seed  guided  not guided")
    rows = []
    for seed in SEEDS:
        rows.append(accuracies(data, seed))
        print(f"{seed:4}   {rows[-1][0]:.3f}       {rows[-1][1]:.3f}", flush=True)
    for name, column in zip(("guided", "not guided"), np.transpose(rows), strict=True):
        low = column < 0.5
        print(f"{name}: {low.sum()} of {len(low)} below one half, the least {column.min():.3f}")


if __name__ == "__main__":
    main()
