"""What pairs lose against answers about single items: the baselines beside the likelihood.

    python bench/results/fair.py run DATA [--datasets ...] [--device cuda] [--store FILE]
    python bench/results/fair.py table
    python bench/results/fair.py calibrated STORE

Every method learns from the same items and the same annotator. On n pairs:

    likelihood-guided        a similarity and a difference of each pair (n soft answers of two)
    likelihood-confidences   the annotator's posterior of each of the 2n items
    likelihood-labels        a class of each of the 2n items, drawn from that posterior
    likelihood-confidence    the posterior of one item of each pair (n answers)
    likelihood-label         a class of one item of each pair, drawn from its posterior
    supervised               the true classes of all 2n items
    supervised, half         the true classes of n items: the same run with half of the pairs

``run`` trains them and adds to the store, which ``table`` keeps as runs/variants/fair.parquet.
``calibrated`` keeps and tabulates runs whose classes are drawn from the annotator's posteriors.
``table`` writes paper/fair.csv and paper/fair.md: means over seeds, and paired differences over
seeds with Student's t-tests, corrected for all cells of a comparison by Holm's method.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median

import numpy as np

from pairlearn_bench import RunStore, to_csv
from pairlearn_bench.data import get_spec
from pairlearn_bench.execute import execute
from pairlearn_bench.grids import GRIDS
from pairlearn_bench.runs import GUIDED, Run, grouped
from pairlearn_bench.statistics import LEVEL, interval_over_sets, paired, verdicts
from pairlearn_bench.store import read_records
from pairlearn_bench.tables import aligned

RESULTS = Path(__file__).parent
STORE = RESULTS / "runs" / "variants" / "fair.parquet"
DATASETS = ("optdigits", "pendigits", "letter", "mnist", "fashion-mnist", "kmnist")
PRIORS, SEEDS = (0.2, 0.5, 0.8), (0, 1, 2, 3, 4)
HALF = "supervised, half"
TITLES = {
    GUIDED: "n soft pairs",
    "likelihood-confidences": "2n soft labels",
    "likelihood-labels": "2n drawn labels",
    "likelihood-confidence": "n soft labels",
    "likelihood-label": "n drawn labels",
    "supervised": "2n true labels",
    HALF: "n true labels",
}
"""The methods, in the order of the columns."""
SUBSET = "stratified"


def main() -> None:
    """Run or tabulate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "table", "calibrated"))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--store", type=Path, default=Path("fair.jsonl"))
    args = parser.parse_args()
    if args.what == "table":
        table(args.store if args.store.exists() else None)
        return
    if args.what == "calibrated":
        calibrated(args.data)
        return
    store = RunStore(args.store)  # bf16 on one H200: 4.5 minutes for all six sets
    for dataset in args.datasets:
        runs = runs_of(dataset, range(args.seeds), args.epochs)
        options = {"data": args.data, "device": args.device, "precision": args.precision}
        for run, results in execute(store.missing(runs), among=runs, **options):
            store.append(run, results, device=args.device, precision=args.precision)
        print(dataset, "done", flush=True)


def runs_of(dataset: str, seeds: Sequence[int], epochs: int | None = None) -> list[Run]:
    """The runs of one data set; labels of half as many items are half of the pairs."""
    grid = GRIDS["accuracy"].select(datasets=[dataset], priors=PRIORS, seeds=tuple(seeds))
    if epochs is not None:
        grid = grid.select(epochs=epochs)
    whole = grid.select(methods=[name for name in TITLES if name != HALF]).runs()
    return [*whole, *grid.select(methods=["supervised"], fractions=[0.5]).runs()]


Accuracies = dict[tuple[str, float], dict[str, dict[int, float]]]


def read(records: Sequence) -> Accuracies:
    """Accuracy by data set and prior, method and seed; the annotator's own is a method too."""
    found: Accuracies = defaultdict(lambda: defaultdict(dict))
    for record in records:
        run = record.run
        method = HALF if run.fraction == 0.5 else run.method
        place = found[run.dataset, run.prior]
        place[method][run.seed] = record.results[SUBSET]
        place["annotator"][run.seed] = record.results[f"annotator_{SUBSET}"]
    return found


def differences(found: Accuracies, rival: str) -> list[dict[str, float | str | None]]:
    """Pairs less a rival, paired over seeds, for every data set and prior."""
    contrasts = [paired(methods[GUIDED], methods[rival]) for methods in found.values()]
    rows = zip(found, contrasts, verdicts(contrasts), strict=True)
    return [
        {"dataset": dataset, "prior": prior, "rival": rival, **contrast._asdict(), "verdict": word}
        for (dataset, prior), contrast, word in rows
    ]


def calibrated(store: Path | None) -> None:
    """Write the mean accuracies of runs with drawn classes, after moving a new store."""
    kept = STORE.with_name("calibrated.parquet")
    if store is not None:
        RunStore(store).to_parquet(kept)
    records = read_records(kept)
    places = grouped(records, lambda r: (r.run.dataset, f"{r.run.prior:g}"))
    methods = list(dict.fromkeys(r.run.method for r in records))
    rows = []
    for (dataset, prior), here in places.items():
        by_method = grouped(here, lambda r: r.run.method)
        means = [
            f"{fmean(r.results[SUBSET] for r in by_method[m]):.4f}" if m in by_method else "–"
            for m in methods
        ]
        annotator = fmean(r.results[f"annotator_{SUBSET}"] for r in here)
        rows.append([get_spec(dataset).title, prior, *means, f"{annotator:.4f}"])
    text = aligned(["data set", "prior", *methods, "the annotator"], rows)
    (RESULTS / "paper" / "calibrated.md").write_text(f"{text}\n", encoding="utf-8")
    print(text)


def follows(found: Accuracies, method: str) -> float:
    """How closely a method follows the annotator where it is better or worse than true labels."""
    sets = grouped(found.items(), lambda item: item[0][0]).values()
    gaps = [
        [
            np.mean([fmean(m[who].values()) - fmean(m["supervised"].values()) for _, m in places])
            for who in (method, "annotator")
        ]
        for places in sets
    ]
    return float(np.corrcoef(np.array(gaps).T)[0, 1])


def table(store: Path | None) -> None:
    """Write the tables, after moving a new store to its place."""
    if store is not None:
        RunStore(store).to_parquet(STORE)
    found = read(read_records(STORE))
    columns = [*TITLES, "annotator"]
    rows = [
        [
            get_spec(dataset).title,
            f"{prior:g}",
            *(f"{np.mean(list(methods[m].values())):.4f}" for m in columns),
        ]
        for (dataset, prior), methods in found.items()
    ]
    header = ["data set", "prior", *TITLES.values(), "the annotator"]
    parts = ["Mean accuracy over seeds (stratified test sets).", aligned(header, rows)]
    everything, summary = [], []
    for rival in columns[1:]:
        compared = differences(found, rival)
        everything += compared
        sets = grouped(compared, lambda row: row["dataset"])
        low, high = interval_over_sets({k: [r["difference"] for r in v] for k, v in sets.items()})
        mean = f"{fmean(row['difference'] for row in compared):+.4f}"
        effect = f"{median(row['effect'] for row in compared):+.1f}"
        words = [row["verdict"] for row in compared]
        counts = [str(words.count(word)) for word in ("ahead", "level", "behind")]
        name = TITLES.get(rival, "the annotator")
        summary.append([name, mean, f"{low:+.4f} to {high:+.4f}", effect, *counts])
    titles = ["n soft pairs less", "mean", "95% over data sets", "effect size"]
    titles += ["ahead", "level", "behind"]
    note = (
        "Paired differences over seeds. Ahead and behind: Student's t-test over seeds, "
        f"p below {LEVEL} after Holm's correction over all data sets and priors. Effect size: the "
        "mean difference in standard deviations over seeds, the median cell."
    )
    whole = read(read_records(RESULTS / "runs" / "accuracy.parquet"))
    parts += [note, aligned(titles, summary)]
    parts.append(
        "What pairs gain on the true labels of their items follows what the annotator gains: over "
        f"data sets the two correlate at {follows(found, GUIDED):.2f}, and in the accuracy grid, "
        f"with ten seeds and without guidance, at {follows(whole, 'likelihood-abs'):.2f}."
    )
    (RESULTS / "paper" / "fair.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    (RESULTS / "paper" / "fair.csv").write_text(to_csv(everything), encoding="utf-8")
    print("\n\n".join(parts))


if __name__ == "__main__":
    main()
