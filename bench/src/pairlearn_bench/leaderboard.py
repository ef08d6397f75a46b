"""Other people's methods: predictions for the fixed tasks, scored and ranked.

The file of tasks has the pairs of each (dataset, prior, seed) with the annotator's answers, and its
test items, which have no ``right``. A file of predictions has the columns dataset, prior, seed,
left and positive, the probability that the item is positive: above ½ it counts as positive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from pairlearn_bench.cells import dataset_title
from pairlearn_bench.runs import StoreError, grouped, is_number
from pairlearn_bench.statistics import paired, verdicts
from pairlearn_bench.tables import aligned

#: SHA-256 of the content of the tasks in bench/results/tasks.parquet.
DIGEST = "f9d711c25e32b5c557b3bc639371c114c4db64e568aa38fa9307f4bfc1eb0f4f"
KEY = ("dataset", "prior", "seed")
COLUMNS = (*KEY, "left", "right", "posterior", "posterior_right", "similarity", "difference")
#: The accuracy of each task.
Scores = dict[tuple[str, float, int], float]


def content_digest(table: Any) -> str:
    """SHA-256 of a table's values, whatever wrote the file."""
    digest = hashlib.sha256()
    for name in (*COLUMNS, "positive"):
        values = table[name].to_pylist()
        digest.update(repr([name, values]).encode())
    return digest.hexdigest()


def read_table(path: Path, columns: Iterable[str]) -> Any:
    """A Parquet or CSV file with these columns; StoreError names what is wrong."""
    import pyarrow
    from pyarrow import csv, parquet

    try:
        table = csv.read_csv(path) if path.suffix == ".csv" else parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise StoreError(f"{path} cannot be read as .parquet or .csv: {error}") from None
    if missing := [name for name in columns if name not in table.column_names]:
        raise StoreError(f"{path} lacks the columns {', '.join(missing)}")
    return table


def read_tasks(path: Path, digest: str = DIGEST) -> dict[tuple[Any, ...], dict[int, bool]]:
    """The class of each test item of each task, if the file has the content of this digest."""
    table = read_table(path, (*COLUMNS, "positive"))
    if (found := content_digest(table)) != digest:
        raise StoreError(f"{path} is not the fixed file of tasks: its content has SHA-256 {found}")
    tests = [row for row in table.to_pylist() if row["right"] is None]
    groups = grouped(tests, lambda row: tuple(row[name] for name in KEY))
    return {key: {row["left"]: row["positive"] for row in rows} for key, rows in groups.items()}


def score(path: Path, tasks: Mapping[tuple[Any, ...], Mapping[int, bool]]) -> Scores:
    """The accuracy of a file of predictions in each task; every test item needs one."""
    rows = read_table(path, (*KEY, "left", "positive")).to_pylist()
    groups = grouped(rows, lambda row: tuple(row[name] for name in KEY))
    if unknown := [key for key in groups if key not in tasks]:
        raise StoreError(f"{path}: there is no task with {', '.join(KEY)} = {unknown[0]}")
    if absent := [key for key in tasks if key not in groups]:
        raise StoreError(f"{path} has no predictions for {', '.join(KEY)} = {absent[0]}")
    scores = {}
    for key, truth in tasks.items():
        said = {row["left"]: row["positive"] for row in groups[key]}
        if len(groups[key]) != len(truth) or said.keys() != truth.keys():
            raise StoreError(f"{path}: {key} needs one prediction for each of its test items")
        if wrong := [v for v in said.values() if not is_number(v) or not 0 <= v <= 1]:
            raise StoreError(f"{path}: positive={wrong[0]!r} of {key} is not a probability")
        scores[key] = float(np.mean([(said[item] > 0.5) == truth[item] for item in truth]))
    return scores


def leaderboard(entries: Mapping[str, Scores]) -> str:
    """A table of methods, the best mean first, each tested against the best.

    The tests are paired over seeds in each data set and prior, with Holm's correction for these.
    """
    ranked = sorted(entries, key=lambda name: -fmean(entries[name].values()))
    sets = list(dict.fromkeys(key[0] for key in entries[ranked[0]]))
    rows = []
    for name in ranked:
        means = [fmean(v for k, v in entries[name].items() if k[0] == one) for one in sets]
        cells = [
            paired(
                {key[2]: entries[name][key] for key in keys},
                {key[2]: entries[ranked[0]][key] for key in keys},
            )
            for keys in grouped(entries[name], lambda key: key[:2]).values()
        ]
        words = verdicts([cell for cell in cells if cell is not None])
        counts = [str(words.count(word)) for word in ("ahead", "level", "behind")]
        numbers = [f"{mean:.4f}" for mean in (*means, fmean(entries[name].values()))]
        rows.append([name, *numbers, *(counts if name != ranked[0] else ["–"] * 3)])
    header = ["method", *map(dataset_title, sets), "all tasks", "ahead", "level", "behind"]
    return aligned(header, rows)
