"""What pairs lose against answers about single items: the baselines beside the likelihood.

    python bench/results/fair.py run all DATA --stores STORES [--datasets ...] [--device cuda]
    python bench/results/fair.py table [STORES]

Every method learns from the same items and the same annotator. On n pairs:

    likelihood-guided        a similarity and a difference of each pair (n soft answers of two)
    likelihood-confidences   the annotator's posterior of each of the 2n items
    likelihood-labels        a class of each of the 2n items, drawn from that posterior
    likelihood-confidence    the posterior of one item of each pair (n answers)
    likelihood-label         a class of one item of each pair, drawn from its posterior
    supervised               the true classes of all 2n items
    supervised, half         the true classes of n items: the same run with half of the pairs

The parts are `fair` (all pairs), `fair-limited` (10% and 30% of the pairs), `fair-noise` (answers
multiplied by N(1, 0.5²), prior 0.2), `fair-rivals` (MCL, GLWS and nnPU) and `calibrated`
(true classes drawn anew from the annotator's posteriors, so that every assumption holds, with two
risks of the paper beside it).

``run`` trains what is missing of a part, or of all of them, in STORES/PART.jsonl. ``table`` first
moves such stores to runs/variants, and then writes paper/PART.md and paper/PART.csv: means over
seeds, and paired differences over seeds with Student's t-tests, corrected for all cells of a
comparison by Holm's method.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from pairlearn import __version__
from pairlearn_bench import Record, RunStore, to_csv
from pairlearn_bench.data import get_spec
from pairlearn_bench.execute import execute
from pairlearn_bench.grids import GRIDS
from pairlearn_bench.rivals import RIVALS
from pairlearn_bench.runs import GUIDED, Method, Run, grouped
from pairlearn_bench.statistics import LEVEL, interval_over_sets, paired, verdicts
from pairlearn_bench.store import read_records
from pairlearn_bench.tables import aligned

RESULTS = Path(__file__).parent
DATASETS = ("optdigits", "pendigits", "letter", "mnist", "fashion-mnist", "kmnist")
PRIORS, SEEDS = (0.2, 0.5, 0.8), (0, 1, 2, 3, 4)
HALF = "supervised, half"
ANNOTATOR = "annotator"
TITLES = {
    GUIDED: "n soft pairs",
    "likelihood-confidences": "2n soft labels",
    "likelihood-labels": "2n drawn labels",
    "likelihood-confidence": "n soft labels",
    "likelihood-label": "n drawn labels",
    "supervised": "2n true labels",
    HALF: "n true labels",
    ANNOTATOR: "the annotator",
}
"""The methods, in the order of the columns."""
SOFT = [GUIDED, "likelihood-confidences"]
PAPER = ["sconfconfdiff-abs", "confdiff-abs"]
PARTS: dict[str, dict[str, Any]] = {
    "fair": {},
    "fair-limited": {"fractions": (0.1, 0.3)},
    "fair-noise": {"priors": (0.2,), "label_noises": (0.5,), "methods": SOFT},
    "fair-rivals": {"methods": [GUIDED, *RIVALS, "nnpu-ascent"]},
    "calibrated": {"annotator": "drawn", "methods": [*SOFT, *PAPER, "supervised"]},
}
"""What each part changes in the grid of the accuracy."""
SUBSET = "stratified"


def main() -> None:
    """Run or tabulate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("part", choices=["all", *PARTS])
    run.add_argument("data", type=Path)
    run.add_argument("--datasets", nargs="+", default=DATASETS)
    run.add_argument("--seeds", type=int, default=len(SEEDS))
    run.add_argument("--epochs", type=int)
    run.add_argument("--device", default="auto")
    run.add_argument("--precision", default="float32")
    run.add_argument("--workers", type=int)
    run.add_argument("--stores", type=Path, required=True)
    commands.add_parser("table").add_argument("stores", type=Path, nargs="?")
    args = parser.parse_args()
    if args.command == "table":
        write_tables(args.stores)
        return
    options = {name: getattr(args, name) for name in ("data", "device", "precision", "workers")}
    notes = {"device": args.device, "precision": args.precision, "version": __version__}
    for part in PARTS if args.part == "all" else [args.part]:
        with RunStore(args.stores / f"{part}.jsonl") as store:
            for dataset in args.datasets:  # all of `fair` in bf16 on one H200: 4.5 minutes
                runs = runs_of(part, dataset, range(args.seeds), args.epochs)
                for one, results in execute(store.missing(runs), among=runs, **options):
                    store.append(one, results, **notes)
                print(part, dataset, "done", flush=True)


def runs_of(part: str, dataset: str, seeds: Sequence[int], epochs: int | None = None) -> list[Run]:
    """The runs of one data set; labels of half as many items are half of the pairs."""
    chosen = {"methods": [name for name in TITLES if name not in (HALF, ANNOTATOR)]} | PARTS[part]
    grid = GRIDS["accuracy"].select(datasets=[dataset], priors=PRIORS, seeds=tuple(seeds))
    grid = grid.select(epochs=epochs, **chosen)
    if "methods" in PARTS[part]:
        return grid.runs()
    halves = [fraction / 2 for fraction in grid.fractions]
    return [*grid.runs(), *grid.select(methods=["supervised"], fractions=halves).runs()]


PLACE = ("dataset", "prior", "fraction", "label_noise", "epochs")
Place = tuple[str, float, float, float, int]
Accuracies = dict[Place, dict[str, dict[int, float]]]


def read(records: Iterable[Record]) -> Accuracies:
    """Accuracy by place, method and seed, where pairs were judged; the annotator is a method."""
    found: Accuracies = defaultdict(lambda: defaultdict(dict))
    for record in records:
        run = record.run
        methods = {run.fraction: run.method}
        if run.method == "supervised":
            methods[2 * run.fraction] = HALF
        for fraction, method in methods.items():
            place = found[run.dataset, run.prior, fraction, run.label_noise, run.epochs]
            place[method][run.seed] = record.results[SUBSET]
            place[ANNOTATOR][run.seed] = record.results[f"annotator_{SUBSET}"]
    ours = {GUIDED, "likelihood-abs"}
    return {place: methods for place, methods in found.items() if ours.intersection(methods)}


def differences(found: Accuracies, rival: str) -> list[dict[str, Any]]:
    """Pairs less a rival, paired over seeds, in every place that has both."""
    contrasts = {p: paired(m[GUIDED], m[rival]) for p, m in found.items() if rival in m}
    rows = zip(*zip(*contrasts.items(), strict=True), verdicts(contrasts.values()), strict=True)
    return [
        {
            **dict(zip(PLACE, place, strict=True)),
            "rival": rival,
            **contrast._asdict(),
            "verdict": word,
        }
        for place, contrast, word in rows
    ]


def follows(found: Accuracies, method: str) -> float:
    """How closely a method follows the annotator where it is better or worse than true labels."""
    sets = grouped(found.items(), lambda item: item[0][0]).values()
    gaps = [
        [
            np.mean([fmean(m[who].values()) - fmean(m["supervised"].values()) for _, m in places])
            for who in (method, ANNOTATOR)
        ]
        for places in sets
    ]
    return float(np.corrcoef(np.array(gaps).T)[0, 1])


def write_tables(stores: Path | None = None) -> None:
    """Write the tables of all parts that have been run, after moving new stores to their place."""
    for part in PARTS:
        kept = RESULTS / "runs" / "variants" / f"{part}.parquet"
        if stores is not None and (stores / f"{part}.jsonl").exists():
            RunStore(stores / f"{part}.jsonl").to_parquet(kept)
        if kept.exists():
            write_table(part, read(read_records(kept)))


def title_of(method: str) -> str:
    """What a method learns from, or its name in the paper."""
    return TITLES.get(method) or Method.parse(method).title


def write_table(part: str, found: Accuracies) -> None:
    """Write the means over seeds, and the differences of the pairs from each rival."""
    order = [*TITLES, *PAPER, *PARTS["fair-rivals"]["methods"][1:]]
    columns = sorted(set().union(*found.values()), key=order.index)
    heads = ["data set", "prior", "pairs", "σ", "epochs"]
    shown = [k for k in range(len(heads)) if k == 0 or len({place[k] for place in found}) > 1]
    rows = []
    found = dict(sorted(found.items(), key=lambda item: (DATASETS.index(item[0][0]), item[0][2:])))
    for place, methods in found.items():
        dataset, prior, fraction, noise, epochs = place
        texts = [
            get_spec(dataset).title,
            f"{prior:g}",
            f"{fraction:.0%}",
            f"{noise:g}",
            str(epochs),
        ]
        means = [f"{fmean(methods[m].values()):.4f}" if m in methods else "–" for m in columns]
        rows.append([*(texts[k] for k in shown), *means])
    header = [*(heads[k] for k in shown), *map(title_of, columns)]
    seeds = sorted({len(values) for methods in found.values() for values in methods.values()})
    over = "–".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
    parts = [f"Mean accuracy over {over} seeds (stratified test sets).", aligned(header, rows)]
    everything, summary = [], []
    for rival in (name for name in columns if name != GUIDED):
        compared = differences(found, rival)
        everything += compared
        sets = grouped(compared, lambda row: row["dataset"])
        ends = interval_over_sets({k: [r["difference"] for r in v] for k, v in sets.items()})
        interval = "{:+.4f} to {:+.4f}".format(*ends) if ends else "–"
        mean = f"{fmean(row['difference'] for row in compared):+.4f}"
        effects = [row["effect"] for row in compared if row["effect"] is not None]
        effect = f"{median(effects):+.1f}" if effects else "–"
        words = [row["verdict"] for row in compared]
        counts = [str(words.count(word)) for word in ("ahead", "level", "behind")]
        summary.append([title_of(rival), mean, interval, effect, *counts])
    titles = ["n soft pairs less", "mean", "95% over data sets", "effect size"]
    titles += ["ahead", "level", "behind"]
    parts.append(
        "Paired differences over seeds. Ahead and behind: Student's t-test over seeds, "
        f"p below {LEVEL} after Holm's correction over all rows of the table above. Effect size: "
        "the mean difference in standard deviations over seeds, the median cell."
    )
    parts.append(aligned(titles, summary))
    if part == "fair":
        whole = read(read_records(RESULTS / "runs" / "accuracy.parquet"))
        parts.append(
            "What pairs gain on the true labels of their items follows what the annotator gains: "
            f"over data sets the two correlate at {follows(found, GUIDED):.2f}, and in the "
            "accuracy grid, with ten seeds and without guidance, at "
            f"{follows(whole, 'likelihood-abs'):.2f}."
        )
    text = "\n\n".join(parts)
    (RESULTS / "paper" / f"{part}.md").write_text(f"{text}\n", encoding="utf-8")
    (RESULTS / "paper" / f"{part}.csv").write_text(to_csv(everything), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
