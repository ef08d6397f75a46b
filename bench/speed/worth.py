"""Which model few pairs need, and what N soft pairs are worth in labels.

    python bench/speed/worth.py [--sets wine,moons] [--seeds 10] [--first 600] [--lines FILE]
    python bench/speed/worth.py --lines FILE --table       # of what is in FILE alone
    python bench/speed/worth.py --private --others 0       # annotators who know more

Four sets of scikit-learn's with 40, 100 and 200 pairs of 70% of their items, tested on the others.
The annotator is a support vector machine with calibrated probabilities, fitted to the 70%, and so
neither of the models. An item is in a second pair only after all are in one. Fitted each time:

- `PairClassifier()` as it is, and with `model="linear"` and `"mlp-bn"`: the default should be
  within 0.005 of the better one, on average over the seeds;
- the model that the default chose, from what else the same effort could bring: the true class of N
  items, of 2N items (both of every pair), and the annotator's probability for N items.

Means of test accuracies, with standard errors over the seeds. About half an hour on a core.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pairlearn import PairClassifier, PairLabels
from pairlearn.judgements import Judgements

SIZES = (40, 100, 200)
MODELS = ("default", "linear", "mlp-bn")
OTHERS = ("N soft pairs", "N labels", "2N labels", "N soft answers")


def load(name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Features, and which items are positive."""
    if name == "moons":
        x, y = make_moons(1000, noise=0.3, random_state=0)
        return x, y == 1
    loaders = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}
    x, y = loaders[name](return_X_y=True)
    return x, {"breast cancer": y == 0, "wine": y == 1, "digits": y % 2 == 0}[name]


SETS = ("breast cancer", "wine", "moons", "digits")


def cell(
    name: str, n: int, seed: int, *, others: bool = True, private: bool = False
) -> dict[str, Any]:
    """Test accuracies of one seed; with `others`, also from answers other than pairs.

    An annotator with `private` knowledge has also seen a signal of each item, whose log-likelihood
    ratio is N(2, 4) for positive items and N(−2, 4) for others.
    """
    x, positive = load(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    known, test = order[: round(0.7 * len(x))], order[round(0.7 * len(x)) :]
    annotator = make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), ensemble=False))
    r = annotator.fit(x[known], positive[known]).predict_proba(x)[:, 1]
    if private:
        signal = np.random.default_rng([seed, 1]).normal(np.where(positive, 2, -2), 2)
        r = expit(logit(r) + signal)
    again = [rng.permutation(known) for _ in range(2 * n // len(known) + 1)]
    ends = np.concatenate(again)[: 2 * n].reshape(n, 2)
    pairs = Judgements.from_pairs(ends, PairLabels.from_posteriors(*r[ends].T))

    def accuracy(judgements: Judgements, model: str) -> float:
        options: dict[str, Any] = {"model": model, "random_state": seed}
        # Test items are among the unjudged ones and must not be learnt from.
        fitted = PairClassifier(unjudged="ignore", **options).fit(x, judgements)
        row["chose"] = fitted.model_ if model == "auto" else row["chose"]
        return float(((fitted.decision_function(x[test]) > 0) == positive[test]).mean())

    def about(kind: str, items: NDArray[np.int64], values: NDArray[Any]) -> float:
        return accuracy(Judgements.about_items(kind, items, values[items]), row["chose"])

    row: dict[str, Any] = {"set": name, "pairs": n, "seed": seed, "chose": ""}
    row["default"] = accuracy(pairs, "auto")
    for model in MODELS[1:]:
        same = model == row["chose"]  # the same training from the same seed
        row[model] = row["default"] if same else accuracy(pairs, model)
    row["larger class"] = float(max(positive[test].mean(), 1 - positive[test].mean()))
    row["N soft pairs"] = row["default"]
    if not others:
        return row
    row["N labels"] = about("label", ends[:, 0], positive)
    row["2N labels"] = about("label", ends.ravel(), positive)
    row["N soft answers"] = about("confidence", ends[:, 0], r)
    return row


def table(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Means over the seeds, cell by cell: the models, then what else could be asked."""
    cells = {(row["set"], row["pairs"]): [] for row in lines}
    for row in lines:
        cells[row["set"], row["pairs"]].append(row)
    for columns, last in ((MODELS, "chose linear, default − better"), (OTHERS, "larger class")):
        cells = {key: [row for row in group if columns[-1] in row] for key, group in cells.items()}
        cells = {key: group for key, group in cells.items() if group}
        if not cells:
            return
        yield "  ".join([f"{'set':<14}{'pairs':>5}", *(f"{c:>15}" for c in columns), f"  {last}"])
        for (name, n), group in sorted(cells.items(), key=lambda c: (SETS.index(c[0][0]), c[0][1])):
            values = {c: np.array([row[c] for row in group]) for c in (*columns, "larger class")}
            error = {c: v.std(ddof=1) / np.sqrt(len(v)) for c, v in values.items()}
            shown = [f"{values[c].mean():.3f} ± {error[c]:.3f}" for c in columns]
            if columns is MODELS:
                linear = sum(row["chose"] == "linear" for row in group)
                behind = values["default"].mean() - max(values[c].mean() for c in MODELS[1:])
                ending = f"{linear} of {len(group)}, {behind:+.4f}"
            else:
                ending = f"{values['larger class'].mean():.3f}"
            yield "  ".join([f"{name:<14}{n:>5}", *(f"{s:>15}" for s in shown), f"  {ending}"])
        if columns is OTHERS:
            means = [
                [np.mean([row[c] for row in group]) for c in columns] for group in cells.values()
            ]
            ahead = np.array(means)[:, :1] - np.array(means)[:, 1:]
            for c, gain in zip(columns[1:], ahead.T, strict=True):
                least = f"at least as good in {(gain >= 0).sum()} of {len(gain)} rows"
                yield f"{columns[0]} − {c}: {gain.mean():+.3f} on average, {least}"
        yield ""


def main() -> None:
    """Fit the cells that are missing in the file of lines, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS), help="with commas between")
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first", type=int, default=600, help="seed")
    parser.add_argument("--lines", type=Path, help="JSON lines to go on from and to add to")
    parser.add_argument("--table", action="store_true", help="print the tables only")
    parser.add_argument("--private", action="store_true", help="annotators know more")
    parser.add_argument("--others", type=int, default=10, help="seeds with other answers")
    args = parser.parse_args()
    torch.set_num_threads(1)
    done = []
    if args.lines is not None and args.lines.exists():
        done = [json.loads(line) for line in args.lines.read_text().splitlines()]
    fitted = {(row["set"], row["pairs"], row["seed"]) for row in done}
    for seed in range(args.first, args.first + (0 if args.table else args.seeds)):
        for name in args.sets.split(","):
            for n in SIZES:
                if (name, n, seed) not in fitted:
                    others = seed < args.first + args.others
                    done.append(cell(name, n, seed, others=others, private=args.private))
                    print(json.dumps(done[-1]), file=sys.stderr, flush=True)
                    if args.lines is not None:
                        with args.lines.open("a") as file:
                            file.write(json.dumps(done[-1]) + "\n")
    print("\n".join(table(done)).rstrip())


if __name__ == "__main__":
    main()
