"""Annotators with known errors: how accurate `fit` is, and how well it estimates that.

For each crowd, set and number of pairs: the true accuracy of `PairClassifier` on new items,
with every answer taken as ideal and with annotators learnt (the default, "auto"); how often
the 95% interval of the accuracy without labels, from 500 further pairs that the same people
judged, holds it, and how wide it is; the same for the range over the annotators' possible
confidence, which `fit` prints first; the calibration error of the probabilities; the CPU
seconds of a fit; and the accuracy of the same network trained on the true classes of the same
items.

Two sets: "soft", drawn, 10 features, posteriors often near ½; and Letter, nearly certain.
Posteriors of Letter are those of a network that did not see the item, and true classes are
drawn from them, so that an ideal annotator is ideal.

    python bench/speed/annotators.py --data FOLDER --workers 16
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Answering = Callable[[Floats, Floats, np.random.Generator], Floats]
HELD_OUT = 500
HARD = np.array([[0.0, -1.0], [0.0, 1.0], [1.0, 0.0]])


def ideal(r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
    """Exact (s, c) of the posteriors."""
    return np.stack([r * q + (1 - r) * (1 - q), q - r], 1)


def confident(r: Floats, q: Floats, rng: np.random.Generator, *, times: float) -> Floats:
    """Log-odds multiplied by a factor."""
    odds = [np.log(p.clip(1e-6, 1 - 1e-6)) - np.log1p(-p.clip(1e-6, 1 - 1e-6)) for p in (r, q)]
    return ideal(*(1 / (1 + np.exp(-times * z)) for z in odds), rng)


def rounded(r: Floats, q: Floats, rng: np.random.Generator, *, levels: int) -> Floats:
    """Rounded to a scale of some levels."""
    steps = levels - 1
    s, c = ideal(r, q, rng).T
    return np.stack([np.round(s * steps) / steps, np.round((c + 1) / 2 * steps) / steps * 2 - 1], 1)


def drawn(r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
    """Yes or no, drawn from the outcomes."""
    return HARD[(rng.random(len(r))[:, None] > _outcomes(r, q).cumsum(1)).sum(1).clip(0, 2)]


def likeliest(r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
    """Yes or no, the likeliest outcome."""
    return HARD[_outcomes(r, q).argmax(1)]


def guessing(r: Floats, q: Floats, rng: np.random.Generator, *, share: float) -> Floats:
    """A share of the answers is uniformly random."""
    answers, guess = ideal(r, q, rng), rng.random(len(r)) < share
    answers[guess] = np.stack([rng.random(len(r)), rng.uniform(-1, 1, len(r))], 1)[guess]
    return answers


def mistaken(r: Floats, q: Floats, rng: np.random.Generator, *, share: float) -> Floats:
    """A share of the answers belongs to other pairs."""
    answers, at = ideal(r, q, rng), np.flatnonzero(rng.random(len(r)) < share)
    answers[at] = answers[rng.permutation(at)]
    return answers


def leaning(r: Floats, q: Floats, rng: np.random.Generator, *, by: tuple[float, float]) -> Floats:
    """A constant bias, clipped to the scales."""
    return np.clip(ideal(r, q, rng) + np.array(by), [0, -1], [1, 1])


def blurred(r: Floats, q: Floats, rng: np.random.Generator, *, times: float, sd: float) -> Floats:
    """Log-odds multiplied by a factor, plus noise."""
    answers = confident(r, q, rng, times=times)
    return np.clip(answers + rng.normal(0, sd, answers.shape), [0, -1], [1, 1])


def factors(r: Floats, q: Floats, rng: np.random.Generator, *, sigma: float) -> Floats:
    """The paper's noise: factors of mean one."""
    answers = ideal(r, q, rng)
    return np.asarray(answers * (1 + sigma * rng.normal(size=answers.shape)))


def constant(r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
    """Always "the same, 100%"."""
    return np.tile([1.0, 0.0], (len(r), 1))


def _outcomes(r: Floats, q: Floats) -> Floats:
    return np.stack([r * (1 - q), (1 - r) * q, r * q + (1 - r) * (1 - q)], 1)


at_random = partial(guessing, share=1.0)
CROWDS: dict[str, list[Answering]] = {
    "ideal": [ideal],
    "five levels": [partial(rounded, levels=5)],
    "three levels": [partial(rounded, levels=3)],
    "hard, drawn": [drawn],
    "hard, likeliest": [likeliest],
    "over-confident": [partial(confident, times=2)],
    "under-confident": [partial(confident, times=0.5)],
    "factors of mean one": [partial(factors, sigma=0.3)],
    "a fifth random": [partial(guessing, share=0.2)],
    "a fifth of other pairs": [partial(mistaken, share=0.2)],
    "leaning to same": [partial(leaning, by=(0.15, 0))],
    "leaning left": [partial(leaning, by=(0, -0.2))],
    "three, mixed": [ideal, partial(blurred, times=2, sd=0.15), partial(guessing, share=0.5)],
    "careful, constant, random": [ideal, constant, at_random],
    "two of four careful": [ideal, ideal, at_random, at_random],
}


def soft(count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Features and posteriors of the drawn set, with 40% positives."""
    x = rng.normal(size=(count, 10))
    z = 2.4 * x[:, 0] + 1.9 * np.sin(1.5 * x[:, 1]) + 1.6 * x[:, 2] * x[:, 3]
    return x, 1 / (1 + np.exp(-(z + 1.1 * (x[:, 4] ** 2 - 1) - 0.9)))


def letter_posteriors(data: str, cache: Path) -> None:
    """Posteriors of Letter by networks that did not see the item."""
    from sklearn.model_selection import cross_val_predict
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    from pairlearn_bench.data import as_features, load

    letter = load("letter", data=data)
    x = StandardScaler().fit_transform(as_features(letter.x, letter.spec))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = MLPClassifier((200, 100), max_iter=30, random_state=0)
        y = letter.spec.is_positive(letter.y)
        r = cross_val_predict(network, x, y, cv=3, method="predict_proba")[:, 1]
    np.savez(cache, x=x.astype(np.float32), r=r.astype(np.float64))


def world(name: str, pairs: int, seed: int, cache: Path) -> dict[str, Any]:
    """Items to train on, to hold out and to test, with posteriors and classes."""
    rng = np.random.default_rng(seed)
    sizes = {"train": 2 * pairs, "held": 2 * HELD_OUT, "test": 20_000}
    if name == "soft":
        parts = {part: soft(count, rng) for part, count in sizes.items()}
    else:
        with np.load(cache) as file:
            x, r = file["x"], file["r"]
        order, start, parts = rng.permutation(len(x)), 0, {}
        for part, count in sizes.items():
            chosen = order[start : start + count]
            parts[part], start = (x[chosen], r[chosen]), start + count
    return {"rng": rng} | {k: (x, r, rng.random(len(r)) < r) for k, (x, r) in parts.items()}


def run(crowd: str, name: str, pairs: int, seed: int, cache: Path) -> list[dict[str, Any]]:
    """Fit one table in both ways, and the supervised reference."""
    import torch

    from pairlearn import PairClassifier, PairLabels

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    made = world(name, pairs, seed, cache)
    x, r, y = made["train"]
    x_test, _, y_test = made["test"]

    def judged(r: Floats) -> tuple[Any, Any, Any]:
        answers = [answer(r[::2], r[1::2], made["rng"]) for answer in CROWDS[crowd]]
        ends = np.tile(np.arange(len(r)).reshape(-1, 2), (len(answers), 1))
        who = np.repeat([f"annotator {k}" for k in range(len(answers))], len(r) // 2)
        return ends, PairLabels(*np.concatenate(answers).T, noisy=True), who

    train, held = judged(r), judged(made["held"][1])
    rows = []
    for annotators in ("ideal", "auto"):
        started = time.process_time()  # other work may share the cores
        model = PairClassifier(preprocessor=x, random_state=seed, annotators=annotators)
        model.fit(train[0], train[1], annotator=train[2])
        seconds = time.process_time() - started
        accuracy = float((model.predict(x_test) == np.where(y_test, 1, -1)).mean())
        error = calibration_error(model.predict_proba(x_test)[:, 1], y_test)
        model.set_params(preprocessor=made["held"][0])
        # Items are numbered from 0 in both tables, but they are different items.
        model.training_items_ = np.empty((0, 2), np.int64)
        estimate = model.estimate_accuracy(held[0], held[1], annotator=held[2])
        words = "; ".join(
            f"{annotator.name}: {annotator.words()}" for annotator in model.annotators_
        )
        flagged = [k for k, annotator in enumerate(model.annotators_) if not annotator.useful]
        rows.append(
            _row(crowd, name, pairs, seed, annotators, accuracy, error, seconds)
            | {"value": estimate.value, "low": estimate.low, "high": estimate.high}
            | {"range_low": estimate.plausible.low, "range_high": estimate.plausible.high}
            | {"flagged": " ".join(map(str, flagged)), "annotators": words}
        )
    if crowd == "ideal":
        model = PairClassifier(preprocessor=x, random_state=seed, labelled_weight=0.999)
        model.fit(train[0][:2], train[1][:2], labelled=(np.arange(len(x)), np.where(y, 1, -1)))
        accuracy = float((model.predict(x_test) == np.where(y_test, 1, -1)).mean())
        error = calibration_error(model.predict_proba(x_test)[:, 1], y_test)
        rows.append(_row("supervised", name, pairs, seed, "ideal", accuracy, error, np.nan))
    return rows


NUMBERS = ("accuracy", "calibration", "seconds", "low", "high", "range_low", "range_high")
COLUMNS = {
    "accuracy": ("accuracy", ".3f"),
    "interval holds": ("holds", ".0%"),
    "its width": ("width", ".3f"),
    "range holds": ("range_holds", ".0%"),
    "its width ": ("range_width", ".3f"),
    "calibration": ("calibration", ".3f"),
    "seconds": ("seconds", ".1f"),
}


def _row(*values: Any) -> dict[str, Any]:
    names = ("crowd", "set", "pairs", "seed", "mode", "accuracy", "calibration", "seconds")
    return dict(zip(names, values, strict=True))


def calibration_error(p: Floats, y: NDArray[np.bool_]) -> float:
    """Expected calibration error, ten bins."""
    bins = np.minimum((10 * p).astype(int), 9)
    used = [bins == k for k in range(10) if (bins == k).any()]
    return float(sum(abs(p[m].mean() - y[m].mean()) * m.mean() for m in used))


def table(rows: list[dict[str, Any]]) -> str:
    """Means over the seeds."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["set"], int(row["pairs"]), row["crowd"], row["mode"]].append(row)
    lines = [
        f"{'':31}" + "".join(f"{name:>16}" for name in COLUMNS),
        f"{'':31}" + f"{'ideal':>9}{'auto':>7}" * len(COLUMNS),
    ]
    heading = None
    for name, pairs, crowd, _ in dict.fromkeys(key for key in groups if key[3] == "ideal"):
        if heading != (name, pairs):
            heading = name, pairs
            lines.append(
                f"{name}, {pairs:,} pairs, {len(groups[name, pairs, crowd, 'ideal'])} seeds"
            )
        cells: list[list[str]] = [[] for _ in COLUMNS]
        for mode in ("ideal", "auto"):
            group = groups.get((name, pairs, crowd, mode), [])
            number = {k: np.array([float(row.get(k) or np.nan) for row in group]) for k in NUMBERS}
            for ends in ("", "range_"):
                low, high = number[f"{ends}low"], number[f"{ends}high"]
                holds = (low <= number["accuracy"]) & (number["accuracy"] <= high)
                number |= {f"{ends}holds": holds + 0 * low, f"{ends}width": high - low}
            for cell, (key, style) in zip(cells, COLUMNS.values(), strict=True):
                value = number[key].mean() if group else np.nan
                cell.append("" if np.isnan(value) else format(value, style))
        lines.append(f"  {crowd:29}" + "".join(f"{a:>9}{b:>7}" for a, b in cells))
    return "\n".join(lines)


def main() -> None:
    """Run all, write the rows as CSV and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", default=None, help="folder with letter.npz; without: soft only")
    parser.add_argument("--pairs", default="300,2000")
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--crowds", default=",".join(CROWDS).replace(",", ";").replace("; ", ", "))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=np.inf, help="start nothing after this")
    parser.add_argument("--rows", type=Path, default=Path("annotators.csv"))
    args = parser.parse_args()
    began = time.monotonic()
    cache = args.rows.with_suffix(".letter.npz")
    if args.data and not cache.exists():
        letter_posteriors(args.data, cache)
    crowds = list(CROWDS) if parser.get_default("crowds") == args.crowds else args.crowds.split(";")
    jobs = [
        (crowd, name, int(pairs), seed, cache)
        for seed in range(args.first_seed, args.first_seed + args.seeds)
        for pairs in reversed(args.pairs.split(","))
        for crowd in crowds
        for name in (["soft", "letter"] if args.data else ["soft"])
    ]
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn")) as pool:
        for done in pool.map(partial(_until, began + args.seconds), jobs):
            rows += done
            print(f"{len(rows)} rows", end="\r", file=sys.stderr)
            if done:
                _write(args.rows, rows)
    rows.sort(key=lambda row: (row["set"], row["pairs"]))
    _write(args.rows, rows)
    print(table(rows))


def _until(end: float, job: tuple[Any, ...]) -> list[dict[str, Any]]:
    return run(*job) if time.monotonic() < end else []


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
