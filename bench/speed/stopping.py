"""Whether the accuracy that the supervisor's page shows can be relied on.

    python bench/speed/stopping.py --data FOLDER [--replays 30]

Replays the collection of 1,000 pairs of 2,000 items of Optdigits, Pendigits and Letter. The
annotator's posteriors are those of a network that did not see the item, as it is, well
calibrated or not; it answers in the studio's ten words (graded), each the one whose numbers are
nearest, or by two sliders (exact). After 100, 200 and 400 pairs `pairlearn_studio.stopping` sees
what the page would show:

- *now*: the interval of the accuracy with the pairs so far, and whether it holds the accuracy of
  the same linear model, fitted to these pairs, by the true classes of all other items;
- *planned*: the interval of what all 1,000 pairs will give, and whether it holds the accuracy of
  the model fitted to all of them.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn import PairClassifier
from pairlearn.labels import PairLabels
from pairlearn_bench.data import as_features, load
from pairlearn_studio.records import CERTAIN, LEVELS
from pairlearn_studio.stopping import outlook

SETS = ("optdigits", "pendigits", "letter")
SIZES = (100, 200, 400)
PLANNED, ITEMS = 1000, 2000
Floats = NDArray[np.float64]


def read(name: str, data: str) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Features, the annotator's posteriors and true classes of a set."""
    from sklearn.model_selection import cross_val_predict
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    dataset = load(name, data=data)
    x = StandardScaler().fit_transform(as_features(dataset.x, dataset.spec))
    y = dataset.spec.is_positive(dataset.y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it stops before it has converged
        network = MLPClassifier((100,), max_iter=20, random_state=0)
        r = cross_val_predict(network, x, y, cv=3, method="predict_proba")[:, 1]
    return np.asarray(x, np.float64), np.asarray(r, np.float64), np.asarray(y)


def answers(r: Floats, q: Floats, mode: str) -> tuple[PairLabels, PairLabels]:
    """The annotator's answers, and the same with certainty at the ends of the scale."""
    exact = PairLabels.from_posteriors(r, q)
    if mode == "exact":
        return exact, exact
    names = list(LEVELS)
    levels = np.array([LEVELS[name] for name in names])
    certain = np.array([CERTAIN.get(name, LEVELS[name]) for name in names])
    gaps = exact.to_array()[:, None, :] - levels[None]
    nearest = np.square(gaps).sum(2).argmin(1)
    return PairLabels(*levels[nearest].T, noisy=True), PairLabels(*certain[nearest].T, noisy=True)


def replay(
    x: Floats, r: Floats, y: NDArray[np.bool_], mode: str, seed: int
) -> list[dict[str, Any]]:
    """One collection of pairs: a row for each size."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    pool, others = order[:ITEMS], order[ITEMS:]
    features = x[pool]
    ends = np.array([rng.choice(ITEMS, 2, replace=False) for _ in range(PLANNED)])
    labels, certain = answers(*r[pool][ends].T, mode)

    def accuracy(count: int) -> float:
        model = PairClassifier(model="linear", annotators="ideal", random_state=0)
        model.fit(features[ends[:count]], labels[:count])
        return float(((model.decision_function(x[others]) > 0) == y[others]).mean())

    final, rows = accuracy(PLANNED), []
    for count in SIZES:
        started = time.perf_counter()
        forecast = outlook(features, ends[:count], labels[:count], certain[:count], PLANNED)
        seconds = time.perf_counter() - started
        row: dict[str, Any] = {"pairs": count, "seconds": seconds}
        for name, truth in (("now", accuracy(count)), ("planned", final)):
            value, low, high = forecast.now if name == "now" else forecast.planned_accuracy
            row |= {name: truth, f"{name} value": value, f"{name} width": high - low}
            row[f"{name} holds"] = low <= truth <= high
        rows.append(row)
    return rows


def main() -> None:
    """Replay all, and print a table of means."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", required=True, help="folder with optdigits.npz and the others")
    parser.add_argument("--replays", type=int, default=30)
    parser.add_argument("--first", type=int, default=1000, help="seed; those below 30 chose it")
    args = parser.parse_args()
    print(
        f"{args.replays} replays each; true accuracy, mean estimate, mean width of the interval, "
        "and how often it holds the truth"
    )
    print(f"{'':24}{'now':^32}{'with all 1,000 pairs':^32}")
    print(f"{'':24}" + f"{'true':>8}{'shown':>8}{'width':>8}{'holds':>8}" * 2 + f"{'seconds':>9}")
    for name in SETS:
        x, r, y = read(name, args.data)
        for mode in ("graded", "exact"):
            rows = []
            for seed in range(args.first, args.first + args.replays):
                rows += replay(x, r, y, mode, seed)
                print(name, mode, seed, end="\r", file=sys.stderr)
            for count in SIZES:
                some = [row for row in rows if row["pairs"] == count]
                mean = {key: float(np.mean([row[key] for row in some])) for key in some[0]}
                cells = "".join(
                    f"{mean[key]:8.3f}{mean[f'{key} value']:8.3f}{mean[f'{key} width']:8.3f}"
                    f"{mean[f'{key} holds']:8.0%}"
                    for key in ("now", "planned")
                )
                print(f"{name:10} {mode:7}{count:5} {cells}{mean['seconds']:9.2f}", flush=True)


if __name__ == "__main__":
    main()
