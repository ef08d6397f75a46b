"""Finished runs with invented results, the same ones every time."""

import random
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from pairlearn.cli.root import app
from pairlearn_bench import GRIDS, Record, Run, Selection

NOTES = {"device": "cpu", "precision": "float32", "version": "0.1.0", "seconds": 2.0}


def made_up(grid: str, seeds: tuple[int, ...] = (0, 1), **chosen: Any) -> list[Record]:
    """The selected runs of an experiment, with random accuracies between 0.9 and 1."""
    keys = ("paper", "stratified", "annotator_paper", "annotator_stratified")

    def result(run: Run) -> dict[str, float]:
        draw = random.Random(run.key())
        return {key: 0.9 + 0.1 * draw.random() for key in keys}

    runs = Selection(seeds=seeds, **chosen).of(GRIDS[grid]).runs()
    return [Record(run, result(run), NOTES) for run in runs]


def write_store(path: Path, records: list[Record]) -> Path:
    path.write_bytes(b"".join(record.line() for record in records))
    return path


def accurate(method: str, *values: float, **fields: Any) -> list[Record]:
    """Runs of a method, one for each accuracy, which is the same on both test subsets."""
    fields = {"dataset": "mnist", "prior": 0.2, "pairs": 15000, "epochs": 200} | fields
    annotator = {"annotator_paper": 0.98, "annotator_stratified": 0.98}
    runs = [Run(seed=seed, method=method, **fields) for seed in range(len(values))]
    return [
        Record(run, {"paper": value, "stratified": value} | annotator)
        for run, value in zip(runs, values, strict=True)
    ]


def call(*words: object) -> Any:
    """Call a command of `pairlearn bench`."""
    return CliRunner().invoke(app, ["bench", *map(str, words)])
