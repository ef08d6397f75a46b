"""From two CSV files to predictions in Python: the page README.md without the shell.

Run it in a folder of its own: python story.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pairlearn import PairClassifier, TrainingOptions, estimate_prior
from pairlearn.check import check
from pairlearn.io import read_items, read_pairs
from pairlearn.simulation import simulate


def main(folder: Path) -> None:
    """Run the example, with its files in a folder."""
    # What the clinic has: measurements of 510 biopsies, and 200 pairs that were compared.
    simulate("breast-cancer", pairs=200, items=510, annotators=3, missing=0.2).write(folder)
    items, table = read_items(folder / "items.csv"), read_pairs(folder / "pairs.csv")

    # Are the judgements usable?
    report = check(table, items=items)
    summary = report.summary
    print(f"{summary.rows} judgements by {summary.annotators} annotators; usable: {report.ok}")
    prior = estimate_prior(table.similarity, majority="negative")
    print(f"share of malignant ones: {prior.value:.2f} ({prior.low:.2f} to {prior.high:.2f})")

    # Learn from 150 pairs; the other 50 are for measuring.
    pairs, labels = np.stack([table.left, table.right], axis=1), table.answers()
    classifier = PairClassifier(
        model="linear",
        epochs=50,
        preprocessor=items,
        random_state=0,
        training=TrainingOptions(learning_rate=0.01),
    )
    classifier.fit(pairs[:150], labels[:150])

    # How good is it? No label has been seen so far, and none is needed for this.
    estimate = classifier.estimate_accuracy(pairs[150:], labels[150:])
    print(
        f"accuracy without labels: {estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
    )
    more = classifier.evaluate(pairs[150:], labels[150:])
    print(f"malignant ones found: {more.true_positive_rate}")
    print(f"false alarms:         {more.false_positive_rate}")

    # Save it, load it, and predict the biopsies that are in no pair.
    classifier.save(folder / "model", overwrite=True)
    loaded = PairClassifier.load(folder / "model")
    new = items[~np.isin(items.ids, pairs)]
    probability = loaded.predict_proba(new)[:, 1]
    for which in np.argsort(-probability)[:3]:
        print(f"biopsy {new.ids[which]}: malignant with probability {probability[which]:.2f}")

    # Now the classes, which only a simulation has. Was the figure right?
    truth = np.loadtxt(folder / "truth.csv", delimiter=",", skiprows=1)[:, 1]
    held_out = np.unique(pairs[150:])
    for name, ids in (("the 50 pairs held out", held_out), ("biopsies in no pair", new.ids)):
        right = loaded.predict(items[ids]) == truth[ids]
        print(f"true accuracy, {name}: {right.mean():.3f} ({right.sum()} of {len(right)})")


if __name__ == "__main__":
    main(Path("clinic"))
