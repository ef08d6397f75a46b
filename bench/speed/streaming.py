"""Training on pairs that stay in their file, beside training on pairs in memory.

    python bench/speed/streaming.py [--pairs 10000000] [--items 200000] [--features 16]
                                   [--model linear] [--epochs 2] [--rounds 2] [--json]

Makes items (.npy) and judged pairs (.parquet) in a temporary folder. Then, in processes of
their own and in turns, fits a model in memory and from the file. Prints pairs a second in
the epochs; the processor's time of an epoch, which other work on the machine changes less;
peak resident memory; and the time before the first epoch and after the last, which for the
streamed fit is mostly a pass over the file. Last come `evaluate --stream` and `predict`,
whose memory is measured at a tenth of the size too.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

CHUNK = 500_000
"""Pairs of a row group."""
PEAK_MIB, RATIO = 1536, 0.8
"""Limit on the memory of a streamed fit, and on its share of the speed in memory."""


def peak_mib(whose: int = resource.RUSAGE_SELF) -> int:
    """Largest resident size of this process so far, or of those below it."""
    peak = resource.getrusage(whose).ru_maxrss
    return round((peak if sys.platform == "darwin" else 1024 * peak) / 2**20)


def own_mib(pid: int) -> int:
    """Resident size of a process without mapped files; 0 where the system does not report it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines.get("RssAnon", "0 kB").split()[0]) // 1024


def write_tables(folder: Path, pairs: int, items: int, features: int) -> None:
    """Items and others to measure with, and pairs judged by a known posterior, some at a time."""
    from pairlearn import PairLabels
    from pairlearn.io import open_rows

    rng = np.random.default_rng(0)
    for name, count in (("pairs", pairs), ("all", pairs), ("tenth", pairs // 10)):
        if name != "tenth":
            x = rng.normal(size=(items, features)).astype(np.float32)
            np.save(folder / ("items.npy" if name == "pairs" else "others.npy"), x)
            r = 1 / (1 + np.exp(-2 * x[:, 0] - 1))
        columns = ["left", "right", "similarity", "difference"]
        with open_rows(folder / f"{name}.parquet", columns) as rows:
            for start in range(0, count, CHUNK):
                left = rng.integers(0, items, min(CHUNK, count - start))
                # Any other item: no item is paired with itself.
                right = (left + rng.integers(1, items, len(left))) % items
                ends = np.stack([left, right], 1)
                labels = PairLabels.from_posteriors(*r[ends].T).to_array()
                rows.write(dict(zip(columns, (*ends.T, *labels.T), strict=True)))


def classifier_of(args: argparse.Namespace) -> Any:
    from pairlearn.estimators import PairClassifier

    return PairClassifier(model=args.model, epochs=args.epochs, random_state=0, device="cpu")


def in_memory(folder: Path, args: argparse.Namespace, watch: Any) -> Any:
    """Fit to tables in memory."""
    from pairlearn.io import read_items, read_pairs

    table = read_pairs(folder / "pairs.parquet")
    classifier = classifier_of(args).set_params(preprocessor=read_items(folder / "items.npy"))
    return classifier.set_params(callbacks=[watch]).fit(table.ids(), table)


def streamed(folder: Path, args: argparse.Namespace, watch: Any) -> Any:
    """Fit to the file."""
    from pairlearn.estimators.streams import fit_file

    classifier = classifier_of(args)
    files = folder / "items.npy", folder / "pairs.parquet"
    return fit_file(classifier, *files, progress=watch, scratch=folder)


def fitted(task: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Fit in this process, and report speed, memory and accuracy."""
    from pairlearn.io import read_items

    before = peak_mib()
    start, spent = time.perf_counter(), []
    classifier = {"memory": in_memory, "stream": streamed}[task](
        folder, args, lambda *_: spent.append(time.process_time())
    )
    total = time.perf_counter() - start
    peak = peak_mib()
    if task == "stream":
        classifier.save(folder / "model")
    in_epochs = sum(row["seconds"] for row in classifier.history_)
    items = read_items(folder / "items.npy")
    right = (classifier.decision_function(items) > 0) == (2 * items.features[:, 0] + 1 > 0)
    return {
        "pairs_per_second": round(args.pairs * args.epochs / in_epochs),
        "cpu_seconds_of_an_epoch": round((spent[-1] - spent[0]) / (len(spent) - 1), 6),
        "seconds_in_epochs": round(in_epochs, 2),
        "seconds_before_and_after": round(total - in_epochs, 2),
        "peak_MiB": peak,
        "peak_MiB_of_imports": before,
        "accuracy": round(float(right.mean()), 4),
    }


def commanded(task: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Run a command in a child process, and report its time and memory."""
    command, size = task.split("-")
    count = args.pairs if size == "all" else args.pairs // 10
    words = [command, str(folder / "model")]
    if command == "evaluate":
        words += [str(folder / "others.npy"), str(folder / f"{size}.parquet")]
        words += ["--stream", "--quiet"]
    else:  # as many items as there are pairs
        few = np.load(folder / "items.npy")
        shape = count, few.shape[1]
        many = np.lib.format.open_memmap(folder / "many.npy", "w+", np.float32, shape)
        for start in range(0, count, len(few)):
            many[start : start + len(few)] = few[: count - start]
        del many, few
        out = str(folder / "predictions.parquet")
        words += [str(folder / "many.npy"), "--out", out, "--force", "--quiet"]
    start_time, own = time.perf_counter(), 0
    with subprocess.Popen(
        [sys.executable, "-m", "pairlearn", *words], stdout=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            own = max(own, own_mib(process.pid))
            time.sleep(0.05)
    if process.returncode:
        raise RuntimeError(f"pairlearn {command} ended with {process.returncode}")
    return {
        "rows": count,
        "seconds": round(time.perf_counter() - start_time, 2),
        "peak_MiB": peak_mib(resource.RUSAGE_CHILDREN),
        "peak_MiB_without_mapped_files": own,
    }


def worked(task: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """The work of a separate process."""
    if task == "make":
        write_tables(folder, args.pairs, args.items, args.features)
        sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
        return {"MiB_of_pairs": round(sizes["pairs.parquet"] / 2**20)}
    return (fitted if task in ("memory", "stream") else commanded)(task, folder, args)


def apart(task: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Run `worked` in a separate process, and return its result."""
    words = [sys.executable, __file__, "--work", task, "--folder", str(folder)]
    for name in ("pairs", "items", "features", "model", "epochs"):
        words += [f"--{name}", str(getattr(args, name))]
    output = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    if not args.json:
        print(f"{task:>14}  " + ", ".join(f"{k} {v:,}" for k, v in result.items()), flush=True)
    return result


def measured(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """All measurements, one after the other."""
    report: dict[str, Any] = apart("make", folder, args)
    report |= {"memory": [], "stream": []}
    for _ in range(args.rounds):
        for task in ("memory", "stream"):
            report[task].append(apart(task, folder, args))
    speeds = {
        task: [row["pairs_per_second"] for row in report[task]] for task in ("memory", "stream")
    }
    report["ratios"] = [
        round(stream / memory, 3)
        for memory, stream in zip(speeds["memory"], speeds["stream"], strict=True)
    ]
    report["ratio"] = round(sum(speeds["stream"]) / sum(speeds["memory"]), 3)
    report["cpu_ratios"] = [
        round(memory["cpu_seconds_of_an_epoch"] / stream["cpu_seconds_of_an_epoch"], 3)
        for memory, stream in zip(report["memory"], report["stream"], strict=True)
    ]
    report["peak_MiB"] = max(row["peak_MiB"] for row in report["stream"])
    for task in ("evaluate-tenth", "evaluate-all", "predict-tenth", "predict-all"):
        report[task] = apart(task, folder, args)
    report["met"] = report["peak_MiB"] < PEAK_MIB and report["ratio"] >= RATIO
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--model", default="linear")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.epochs < 2:
        parser.error("--epochs must be at least 2: the first is not timed on the processor")
    if args.work:
        print(json.dumps(worked(args.work, args.folder, args)))
        return
    with tempfile.TemporaryDirectory() as name:
        report = measured(Path(name), args)
    if args.json:
        print(json.dumps(report))
    else:
        verdict = "met" if report["met"] else "missed"
        print(
            f"streamed: {report['ratio']:.0%} of the speed in memory (goal {RATIO:.0%}) in "
            f"{report['peak_MiB']:,} MiB (goal {PEAK_MIB:,}): {verdict}"
        )


if __name__ == "__main__":
    main()
