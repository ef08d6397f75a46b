"""Make the fixed tasks that other people's methods are scored on.

    python bench/results/tasks.py DATA

writes tasks.parquet: for Optdigits and Pendigits, three priors and five seeds, the pairs of the
paper's protocol with an annotator's posteriors and answers, and the test items (stratified) with
their classes. The printed digest is that of `pairlearn_bench.leaderboard`; annotators trained on
another machine may differ in the last digits, which is why the file is kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow
from pyarrow import parquet

from pairlearn_bench.benchmark import Benchmark
from pairlearn_bench.data import load
from pairlearn_bench.grids import GRIDS
from pairlearn_bench.leaderboard import COLUMNS, DIGEST, content_digest

FILE = Path(__file__).parent / "tasks.parquet"
DATASETS = ("optdigits", "pendigits")
DIGITS = 6  # of posteriors, so that the file stays small


def main() -> None:
    """Make or verify the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    rows = [row for dataset in DATASETS for row in tasks(dataset, data)]
    types = [pyarrow.string(), pyarrow.float64(), *[pyarrow.int64()] * 3]
    types += [pyarrow.float64()] * 4 + [pyarrow.bool_()]
    schema = pyarrow.schema(list(zip((*COLUMNS, "positive"), types, strict=True)))
    table = pyarrow.Table.from_pylist(rows, schema)
    parquet.write_table(table, FILE, compression="zstd")
    digest = content_digest(parquet.read_table(FILE))
    print(digest, "as recorded" if digest == DIGEST else "differs from the recorded one")


def tasks(dataset: str, data: Path) -> list[dict]:
    """The pairs and test items of one data set."""
    grid = GRIDS["accuracy"].select(datasets=[dataset], methods=["sconfconfdiff-none"])
    benchmark = Benchmark(load(dataset, data), "mlp", "cpu", "float32")
    posteriors = benchmark.posteriors(grid.runs())
    rows = []
    for run in grid.runs():
        group = benchmark._group([run], posteriors)
        (r,) = (values for (seed, _), values in posteriors.items() if seed == run.seed)
        key = {"dataset": dataset, "prior": run.prior, "seed": run.seed}
        for left, right in group.pairs.tolist():
            p, q = (round(float(r[item]), DIGITS) for item in (left, right))
            same, more = round(p * q + (1 - p) * (1 - q), DIGITS), round(q - p, DIGITS)
            answers = {"posterior": p, "posterior_right": q, "similarity": same, "difference": more}
            rows.append(key | {"left": left, "right": right} | answers)
        subset = group.test.subsets["stratified"]
        for item, positive in zip(
            group.test.rows[subset], group.test.positive[subset], strict=True
        ):
            rows.append(key | {"left": int(item), "positive": bool(positive)})
    return rows


if __name__ == "__main__":
    main()
