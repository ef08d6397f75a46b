"""Annotators with known errors: how accurate `fit` is, and how well it estimates that.

For each crowd, set and number of pairs: the true accuracy of `PairClassifier` on new items,
with every answer taken as ideal and with annotators learnt (the default, "auto"); how often
the 95% interval of the informed reading, from 500 further pairs that the same people judged,
holds it, and how wide it is; the same for the range that spans both readings, which `fit` prints;
the calibration error of the probabilities; the CPU seconds of a fit; the accuracy of the same
network trained on the true classes of the same items; and below each row of "auto" what `fit` said
about the annotators.

Two sets: "soft", drawn, 10 features, posteriors often near ½; and Letter, nearly certain.
Posteriors of Letter are those of a network that did not see the item, and true classes are
drawn from them, so that an ideal annotator is ideal.

A crowd is a `Crowd`: who answers (`Answering` functions of posteriors), which pairs they answer,
and how the world differs from the standard one. Rows that fail stay in the table. With --honest it
counts instead how often crowds of honest people get a finding that accuses somebody.

    python bench/speed/annotators.py --data FOLDER --jobs 16 --out annotators.csv
    python bench/speed/annotators.py --honest 300 --jobs 16

It resumes: rows that the file has are not run again.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from operator import itemgetter
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


def exchanged(r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
    """Left and right exchanged."""
    return ideal(r, q, rng) * [1, -1]


def blurring(r: Floats, q: Floats, rng: np.random.Generator, *, sd: float) -> Floats:
    """A spread around the honest answer, as people have one."""
    return blurred(r, q, rng, times=1, sd=sd)


def consistent(r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
    """Answers of one unrelated world, the same for everybody who guesses like that."""
    other = np.random.default_rng(len(r)).beta(0.5, 0.5, (2, len(r)))
    return blurring(other[0], other[1], rng, sd=0.05)


def knowing_less(r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
    """Calibrated answers of people who see a part of what the class depends on."""
    return some(0.4 + 0.5 * (r - 0.4), 0.4 + 0.5 * (q - 0.4), rng)


def private(r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
    """Calibrated answers of people who know more than the features, each something else.

    Everybody has a noisy look of their own at the classes, which are the same for all.
    """
    r, q = np.clip((r, q), 1e-9, 1 - 1e-9)
    classes = np.random.default_rng(len(r)).random((2, len(r))) < (r, q)
    odds = np.log([r, q]) - np.log1p(-np.array([r, q]))
    known = odds + 2 * (2 * classes - 1) + 2 * rng.normal(size=odds.shape)
    return ideal(*(1 / (1 + np.exp(-known))), rng)


def judge(r: Floats, q: Floats, rng: np.random.Generator, *, bias: float) -> Floats:
    """A language model: five levels, over-confident, with a bias to one position."""
    s, c = confident(r, q, rng, times=2).T
    s, c = np.clip(s, 0, 1), np.clip(c + bias + rng.normal(0, 0.1, len(c)), -1, 1)
    return np.stack([np.round(4 * s) / 4, np.round(2 * c) / 2], 1)


@dataclass(frozen=True)
class Crowd:
    """Who answers; ``alone`` tells that each pair is answered by one of them.

    ``regions`` gives everybody a region of their own, by the first feature, and ``shift`` is added
    to the log-odds of the world. ``copies`` (later, first) repeat answers.
    """

    people: tuple[Answering, ...]
    alone: bool = False
    regions: bool = False
    shift: float = 0.0
    copies: tuple[tuple[int, int], ...] = ()

    def answers(self, x: Floats, r: Floats, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """Ends, answers and annotators of all pairs of neighbouring items."""
        from pairlearn import PairLabels

        pairs, count = len(r) // 2, len(self.people)
        whole = [answer(r[::2], r[1::2], rng) for answer in self.people]
        for later, first in self.copies:
            whole[later] = whole[first].copy()
        mine = [np.arange(pairs)] * count
        if self.alone:
            mine = np.array_split(rng.permutation(pairs), count)
        if self.regions:
            mine = np.array_split(np.argsort(x[::2, 0] + x[1::2, 0]), count)
        ends = np.arange(len(r)).reshape(-1, 2)
        values = np.concatenate([a[rows] for a, rows in zip(whole, mine, strict=True)])
        who = np.repeat([f"annotator {k:02}" for k in range(count)], [len(rows) for rows in mine])
        return ends[np.concatenate(mine)], PairLabels(*values.T, noisy=True), who


at_random = partial(guessing, share=1.0)
some = partial(blurring, sd=0.08)
_PLAIN: dict[str, list[Answering]] = {
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
CROWDS = {name: Crowd(tuple(people)) for name, people in _PLAIN.items()} | {
    "3% positives": Crowd((some, some, partial(guessing, share=0.3)), shift=-5.5),
    "one of three exchanged": Crowd((some, some, exchanged)),
    "two who copy": Crowd((some, at_random, at_random), copies=((2, 1),)),
    "one careful, two consistent": Crowd((some, consistent, consistent)),
    "a region each": Crowd((some, partial(leaning, by=(0.15, 0)), at_random), regions=True),
    "knowing less": Crowd((knowing_less, knowing_less)),
    "private knowledge": Crowd((private, private)),
    "20 with 15 answers each": Crowd((*[some] * 14, *[at_random] * 6), alone=True),
    "model judges": Crowd((partial(judge, bias=0.2), partial(judge, bias=-0.1), some)),
}
REFERENCE = (
    "ideal", "a fifth random", "leaning to same", "leaning left", "three, mixed",
    "careful, constant, random", "two of four careful",
)  # fmt: skip
"""Crowds that every change of the model is measured with."""
HONEST = {
    "honest, three": Crowd((some,) * 3),
    "honest, two": Crowd((some,) * 2),
    "honest, alone": Crowd((some,) * 4, alone=True),
    "honest, levels": Crowd((partial(rounded, levels=5),) * 3),
    "honest, hard": Crowd((drawn,) * 3),
    "honest, rare": Crowd((some,) * 3, shift=-5.5),
    "honest, one": Crowd((ideal,)),
}
"""Crowds of people who answer as asked."""


def honest_crowd(job: tuple[str, int, int]) -> list[str]:
    """Codes of findings about an honest crowd, and whether somebody is taken to guess or lean."""
    from pairlearn.annotators import Annotators, findings
    from pairlearn.judgements import Judgements

    name, pairs, seed = job
    crowd, rng = HONEST[name], np.random.default_rng(seed)
    x, r = soft(2 * pairs, rng, crowd.shift)
    ends, labels, who = crowd.answers(x, r, rng)
    judged = Judgements.from_pairs(ends, labels, annotator=who)
    z = np.log(r / (1 - r)) + rng.normal(0, 1, len(r))
    codes = {finding.code for finding in findings(judged, z[ends])}
    for person in Annotators.learn(judged, z[ends]).people if len(crowd.people) > 1 else ():
        codes |= {"outlying-annotator"} if person.outlying else set()
        codes |= {"leaning-annotator"} if person.leaning else set()
    return sorted(codes)


def count_honest(count: int, jobs: int) -> str:
    """Shares of honest crowds with each finding."""
    names = list(HONEST)
    made = [(names[k % len(names)], (60, 120, 300)[k // len(names) % 3], k) for k in range(count)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(honest_crowd, made, chunksize=4))
    lines = [f"{count} honest crowds, {sum(map(bool, found))} with a finding"]
    for code in sorted({code for codes in found for code in codes}):
        where = [f"{job[0]}, {job[1]}" for job, codes in zip(made, found, strict=True)
                 if code in codes]  # fmt: skip
        lines.append(f"  {code}: {len(where) / count:.1%} ({'; '.join(where[:6])})")
    return "\n".join(lines)


def soft(count: int, rng: np.random.Generator, shift: float = 0.0) -> tuple[Floats, Floats]:
    """Features and posteriors of the drawn set, with 40% positives unless shifted."""
    x = rng.normal(size=(count, 10))
    z = 2.4 * x[:, 0] + 1.9 * np.sin(1.5 * x[:, 1]) + 1.6 * x[:, 2] * x[:, 3]
    return x, 1 / (1 + np.exp(-(z + 1.1 * (x[:, 4] ** 2 - 1) - 0.9 + shift)))


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


def world(name: str, pairs: int, seed: int, cache: Path, shift: float) -> dict[str, Any]:
    """Items to train on, to hold out and to test, with posteriors and classes."""
    rng = np.random.default_rng(seed)
    sizes = {"train": 2 * pairs, "held": 2 * HELD_OUT, "test": 20_000}
    if name == "soft":
        parts = {part: soft(count, rng, shift) for part, count in sizes.items()}
    else:
        with np.load(cache) as file:
            x, r = file["x"], file["r"]
        r = 1 / (1 + np.exp(-shift) * (1 - r) / r.clip(1e-9))
        order, start, parts = rng.permutation(len(x)), 0, {}
        for part, count in sizes.items():
            chosen = order[start : start + count]
            parts[part], start = (x[chosen], r[chosen]), start + count
    return {"rng": rng} | {k: (x, r, rng.random(len(r)) < r) for k, (x, r) in parts.items()}


def run(crowd: str, name: str, pairs: int, seed: int, mode: str, cache: Path) -> dict[str, Any]:
    """Fit one table with a mode of `PairClassifier`, or, as "supervised", the true classes."""
    import torch

    from pairlearn import PairClassifier

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    people = CROWDS["ideal" if crowd == "supervised" else crowd]
    made = world(name, pairs, seed, cache, people.shift)
    x, r, y = made["train"]
    x_test, _, y_test = made["test"]
    train = people.answers(x, r, made["rng"])
    held = people.answers(made["held"][0], made["held"][1], made["rng"])
    model = PairClassifier(preprocessor=x, random_state=seed, annotators=mode)
    started = time.process_time()  # other work may share the cores
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if crowd == "supervised":
            model.set_params(annotators="auto", training__labelled_weight=0.999)
            model.fit(train[0][:2], train[1][:2], labelled=(np.arange(len(x)), np.where(y, 1, -1)))
        else:
            model.fit(train[0], train[1], annotator=train[2])
    seconds = time.process_time() - started
    row = {
        "crowd": crowd, "set": name, "pairs": pairs, "seed": seed, "mode": mode,
        "accuracy": float((model.predict(x_test) == np.where(y_test, 1, -1)).mean()),
        "calibration": calibration_error(model.predict_proba(x_test)[:, 1], y_test),
        "seconds": seconds,
    }  # fmt: skip
    if crowd == "supervised":
        return row
    codes = [w.message.finding.code for w in caught if hasattr(w.message, "finding")]
    model.set_params(preprocessor=made["held"][0])
    # Items are numbered from 0 in both tables, but they are different items.
    model.fitted_ = replace(model.fitted_, training_items=np.empty((0, 2), np.int64))
    estimate = model.estimate_accuracy(held[0], held[1], annotator=held[2])
    learnt = model.annotators_.people
    return row | {
        "value": estimate.value,
        "low": estimate.informed.low,
        "high": estimate.informed.high,
        "range_low": estimate.low,
        "range_high": estimate.high,
        "flagged": " ".join(str(k) for k, one in enumerate(learnt) if not one.informative),
        "findings": " ".join(codes),
        "annotators": "; ".join(f"{one.name}: {one.sentence()}" for one in learnt),
    }


NUMBERS = ("accuracy", "calibration", "seconds", "low", "high", "range_low", "range_high")
COLUMNS = {
    "accuracy": ("accuracy", ".3f"),
    "interval holds": ("holds", ".0%"),
    "its width": ("width", ".3f"),
    "range holds": ("range_holds", ".0%"),
    "its width ": ("range_width", ".3f"),
    "calibration": ("calibration", ".3f"),
    "seconds": ("seconds", ".1f"),
    "seeds": ("seeds", ".0f"),
}


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
    for name, pairs, crowd in dict.fromkeys(key[:3] for key in groups):
        if heading != (name, pairs):
            heading = name, pairs
            lines.append(f"{name}, {pairs:,} pairs")
        cells: list[list[str]] = [[] for _ in COLUMNS]
        for mode in ("ideal", "auto"):
            group = groups.get((name, pairs, crowd, mode), [])
            number = {k: np.array([float(row.get(k) or np.nan) for row in group]) for k in NUMBERS}
            number["seeds"] = np.array([len(group)])
            for ends in ("", "range_"):
                low, high = number[f"{ends}low"], number[f"{ends}high"]
                holds = (low <= number["accuracy"]) & (number["accuracy"] <= high)
                number |= {f"{ends}holds": holds + 0 * low, f"{ends}width": high - low}
            for cell, (key, style) in zip(cells, COLUMNS.values(), strict=True):
                value = number[key].mean() if group else np.nan
                cell.append("" if np.isnan(value) else format(value, style))
        lines.append(f"  {crowd:29}" + "".join(f"{a:>9}{b:>7}" for a, b in cells))
        if crowd not in REFERENCE:
            lines += said(groups.get((name, pairs, crowd, "auto"), []))
    return "\n".join(lines)


def said(rows: list[dict[str, Any]]) -> list[str]:
    """Findings of all seeds, and the sentences about up to four people of the first one."""
    codes = Counter(code for row in rows for code in set((row["findings"] or "").split()))
    parts = [f"{code} in {count} of {len(rows)}" for code, count in sorted(codes.items())]
    words = rows[0]["annotators"].split("; annotator")[:4] if rows and rows[0]["annotators"] else []
    parts += [f"annotator {word.removeprefix('annotator').strip()}" for word in words]
    return [f"      {part}" for part in parts]


def pooled(rows: list[dict[str, Any]]) -> str:
    """Over the reference crowds: how often intervals hold, and how long a learnt fit takes."""
    rows = [row for row in rows if row["crowd"] in REFERENCE]
    learnt = [row for row in rows if row["mode"] == "auto"]
    held = {
        ends: sum(
            float(row[f"{ends}low"]) <= float(row["accuracy"]) <= float(row[f"{ends}high"])
            for row in learnt
        )
        for ends in ("", "range_")
    }
    lines = [
        f"Reference crowds, {len(learnt)} learnt runs: the interval holds in {held['']}, "
        f"the range in {held['range_']}."
    ]
    world = itemgetter("set", "pairs", "seed")
    # An ideal annotator is not learnt: that is a plain fit.
    plain = {world(row): float(row["seconds"]) for row in learnt if row["crowd"] == "ideal"}
    for pairs in sorted({row["pairs"] for row in learnt}):
        ratios = [
            float(row["seconds"]) / plain[world(row)]
            for row in learnt
            if row["pairs"] == pairs and row["crowd"] != "ideal" and world(row) in plain
        ]
        if ratios:
            lines.append(
                f"{pairs:,} pairs: a learnt fit takes {np.median(ratios):.1f} times as long as a "
                f"plain one (median of {len(ratios)} runs; {np.max(ratios):.1f} at most)."
            )
    return "\n".join(lines)


def main() -> None:
    """Run all, write the rows as CSV and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", default=None, help="folder with letter.npz; without: soft only")
    parser.add_argument("--pairs", default="300,2000")
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--crowds", default=";".join([*CROWDS, "supervised"]))
    parser.add_argument("--modes", default="ideal,auto")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--honest", type=int, default=0, help="count findings in honest crowds")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start nothing after this")
    parser.add_argument("--out", type=Path, default=Path("annotators.csv"))
    args = parser.parse_args()
    if args.honest:
        print(count_honest(args.honest, args.jobs))
        return
    began = time.monotonic()
    cache = args.out.with_suffix(".letter.npz")
    if args.data and not cache.exists():
        letter_posteriors(args.data, cache)
    crowds = args.crowds.split(";")
    jobs = [
        (crowd, name, int(pairs), seed, mode)
        for seed in range(args.first_seed, args.first_seed + args.seeds)
        for pairs in reversed(args.pairs.split(","))
        for crowd in crowds
        for name in (["soft", "letter"] if args.data else ["soft"])
        for mode in args.modes.split(",")
        if crowd != "supervised" or mode == "ideal"
    ]
    rows: list[dict[str, Any]] = []
    if args.out.exists():
        with args.out.open(newline="") as file:
            rows = [row | {"pairs": int(row["pairs"])} for row in csv.DictReader(file)]
    keys = ("crowd", "set", "pairs", "seed", "mode")
    done = {tuple(str(row[key]) for key in keys) for row in rows}
    jobs = [job for job in jobs if tuple(map(str, job)) not in done]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for row in pool.map(partial(_until, began + args.seconds, cache), jobs):
            if row:
                rows.append(row)
                _write(args.out, rows)
                print(f"{len(rows)} rows", end="\r", file=sys.stderr)
    order = [*CROWDS, "supervised"]
    rows.sort(key=lambda row: (row["set"], row["pairs"], order.index(row["crowd"])))
    _write(args.out, rows)
    print(table(rows), pooled(rows), sep="\n\n")


def _until(end: float, cache: Path, job: tuple[Any, ...]) -> dict[str, Any]:
    return run(*job, cache) if time.monotonic() < end else {}


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
