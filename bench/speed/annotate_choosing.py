"""What choosing pairs by expected information saves, and what the weights cost.

Digits, even against odd, judged by a simulated annotator. All runs start from the
same random pairs; further pairs are drawn at random or by information, and the model is refitted
after every batch. Prints, for every number of pairs, the mean over seeds of the test accuracy
and of the share of test items decided as the annotator would, for random pairs, chosen pairs
fitted with weights, and chosen pairs fitted without.

    python bench/speed/annotate_choosing.py --seeds 5
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from pairlearn import PairLabels
from pairlearn.estimators import PairClassifier
from pairlearn.simulation import simulate
from pairlearn_studio.choosing import choose_pairs


def fitted(features, posterior, ends, weight, seed, model):
    labels = PairLabels.from_posteriors(posterior[ends[:, 0]], posterior[ends[:, 1]])
    classifier = PairClassifier(model=model, preprocessor=features, random_state=seed)
    return classifier.fit(ends, labels, sample_weight=weight)


def run(seed, *, start, step, most, weighted, informed, model, epsilon, source, prior):
    made = simulate(source, pairs=10_000, prior=prior, seed=seed)
    features, posterior = made.items.features, made.posterior
    half = len(features) // 2
    rng = np.random.default_rng([seed, 1])
    chosen = choose_pairs(np.full(half, 0.5), start, rng)
    accuracies = []
    while True:
        ends = np.array([pair[:2] for pair in chosen])
        weight = np.array([pair.weight for pair in chosen]) if weighted else None
        classifier = fitted(features[:half], posterior, ends, weight, seed, model)
        predicted = classifier.predict(features[half:]) > 0
        truths = made.positive[half:], posterior[half:] > 0.5
        accuracies.append([float((predicted == truth).mean()) for truth in truths])
        if len(chosen) >= most:
            return accuracies
        r = classifier.predict_proba(features[:half])[:, 1] if informed else np.full(half, 0.5)
        taken = [pair[:2] for pair in chosen]
        chosen += choose_pairs(r, step, rng, taken=taken, epsilon=epsilon)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--start", type=int, default=40)
    parser.add_argument("--step", type=int, default=40)
    parser.add_argument("--most", type=int, default=200)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--model", default="linear")
    parser.add_argument("--from", dest="source", default="digits")
    parser.add_argument("--prior", type=float, default=0.5)
    asked = parser.parse_args()
    kinds = {
        "random": {"informed": False, "weighted": False},
        "information, weighted": {"informed": True, "weighted": True},
        "information, unweighted": {"informed": True, "weighted": False},
    }
    for name, kind in kinds.items():
        rows = [
            run(
                seed,
                start=asked.start,
                step=asked.step,
                most=asked.most,
                model=asked.model,
                epsilon=asked.epsilon,
                source=asked.source,
                prior=asked.prior,
                **kind,
            )
            for seed in range(asked.seeds)
        ]
        mean, error = np.mean(rows, 0), np.std(rows, 0) / np.sqrt(max(asked.seeds - 1, 1))
        for step, (m, e) in enumerate(zip(mean, error, strict=True)):
            row = {"pairs": name, "n": asked.start + step * asked.step}
            row |= {"accuracy": round(m[0], 4), "as_annotator": round(m[1], 4)}
            print(json.dumps(row | {"error": e.round(4).tolist()}), flush=True)


if __name__ == "__main__":
    main()
