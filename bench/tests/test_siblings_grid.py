"""The grid of statements other than soft pairs, and what an answer of each is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pairlearn_bench import GRIDS, Record, headline_counts, summarize
from pairlearn_bench.benchmark import Benchmark, annotator_of
from pairlearn_bench.data import load
from pairlearn_bench.execute import plan_fleets
from pairlearn_bench.statements import OF_BOTH_ITEMS, STATEMENTS, make_statements, positive_share
from pairlearn_bench.tables import siblings_table
from paper_results import accurate


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_has_a_row_for_each_pair(name: str) -> None:
    pairs, posterior = np.arange(400).reshape(-1, 2), np.linspace(0, 1, 400)
    rows = make_statements(name, pairs, posterior, seed=0)
    assert len(rows) == 200 and np.isin(rows.ends, pairs).all()
    assert (rows.values == make_statements(name, pairs, posterior, seed=0).values).all()
    share = positive_share(rows, 0.5)
    assert share is None or 0.3 < share < 0.8


def test_the_grid_trains_as_one_fleet_and_says_what_an_answer_is_worth() -> None:
    runs = GRIDS["siblings"].select(datasets=["digits"], priors=[0.2], seeds=[0], epochs=1).runs()
    runs = [replace(run, pairs=64, batch_size=32) for run in runs if run.fraction == 1]
    benchmark = Benchmark(load("digits"), "mlp", "cpu", "float32")
    posteriors = {annotator_of(runs[0]): benchmark.positive.astype(np.float32) * 0.9 + 0.05}
    (fleet,) = plan_fleets(runs, limit=1024)
    results = benchmark.train(fleet, posteriors)
    assert {run for run, _ in results} == set(runs)
    # A run on its own comes to the same.
    chosen = [run for run in runs if run.method in ("pcomp-abs", "likelihood-mixed")]
    for run in chosen:
        ((_, alone),) = benchmark.train([[run]], posteriors)
        assert dict(results)[run]["paper"] == pytest.approx(alone["paper"], abs=0.02)
    table = siblings_table(summarize([Record(*result) for result in results], "stratified"))
    assert {row[0] for row in table.rows} == {
        statement.question
        for name, statement in STATEMENTS.items()
        if f"likelihood-{name}" not in OF_BOTH_ITEMS
    }


def test_worth_is_measured_in_labels() -> None:
    """Labels reach 0.8, 0.9 and 1; what reaches 0.95 with 30% is between 1 and 10/3 labels."""
    curves = {"likelihood-label": (0.8, 0.9, 1.0), "likelihood-soft": (0.85, 0.95, 0.99)}
    curves |= {"pcomp-none": (0.6, 0.7, 0.8), "sd-none": (0.7, 0.9, 0.95)}
    records = [
        record
        for method, means in curves.items()
        for fraction, mean in zip((0.1, 0.3, 1.0), means, strict=True)
        for record in accurate(method, mean, dataset="letter", fraction=fraction)
    ]
    cells = summarize(records, "stratified")
    worth = {row[1]: row[2] for row in siblings_table(cells).rows}
    assert worth["Likelihood-label"] == "1.00" and worth["Pcomp-Unbiased"] == "< 0.33"
    assert worth["Likelihood-soft"] == f"{(10 / 3) ** 0.5:.2f}"
    records += accurate("likelihood-comparison", 0.75, dataset="letter", fraction=0.3)
    tally = headline_counts("siblings", records)["siblings"]
    assert (tally.cells, tally.most) == (1, pytest.approx(0.05))
