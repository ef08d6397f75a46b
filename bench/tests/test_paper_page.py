"""The benchmark as one page."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from pairlearn_bench import GRIDS, Record, Run, Source, StoreError, headline_counts, read_sources
from pairlearn_bench.cells import published_robustness
from pairlearn_bench.headline import summarize_grid
from pairlearn_bench.page import build_report, difference_cell
from paper_results import accurate, call, made_up, write_store
from test_pages import HOSTILE, Reader


def test_files_find_their_experiment(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "runs"
    folder.mkdir(parents=True)
    write_store(folder / "limited.jsonl", made_up("limited", datasets=("letter",)))
    write_store(folder / "accuracy.jsonl", made_up("accuracy", datasets=("letter",)))
    write_store(folder / "cifar.jsonl", made_up("accuracy", (7,), datasets=("cifar10",)))
    write_store(folder / "curve.jsonl", made_up("gamma", datasets=("mnist",)))
    write_store(folder / "empty.jsonl", [])
    (folder / "notes.txt").write_text("not a store")
    sources = read_sources([tmp_path / "results"])
    assert [(s.path.name, s.grid) for s in sources] == [
        ("accuracy.jsonl", "accuracy"),
        ("cifar.jsonl", "accuracy"),
        ("curve.jsonl", "gamma"),
        ("limited.jsonl", "limited"),
    ]


def test_files_add_seeds_and_a_run_counts_once(tmp_path: Path) -> None:
    records = made_up("accuracy", datasets=("letter",), priors=(0.5,))
    more = made_up("accuracy", (1, 2), datasets=("letter",), priors=(0.5,))
    for name, part in (("accuracy", records), ("c", more)):
        write_store(tmp_path / f"{name}.jsonl", part)
    sources = read_sources([tmp_path])
    half = len(records) // 2
    assert [(len(s.records), s.repeated) for s in sources] == [(2 * half, 0), (half, half)]
    (summary,) = [summarize_grid("accuracy", [r for s in sources for r in s.records])]
    assert {len(line.cell.seeds) for line in summary.lines} == {3}


@pytest.mark.parametrize("name", ["a.jsonl", "c.jsonl"])
def test_no_file_takes_the_place_of_other_epochs(tmp_path: Path, name: str) -> None:
    records = made_up("accuracy", (0,), datasets=("letter",), priors=(0.5,))
    short = [Record(replace(r.run, epochs=8), {"paper": 0.5}) for r in records]
    write_store(tmp_path / "b.jsonl", records)
    write_store(tmp_path / name, short)
    table = "table", "accuracy", "--store", tmp_path, "--test-subset", "paper"
    assert call(*table, "--epochs", 8).output.count("0.500") == len(short)
    for command in (table, ("figure", *table[1:], "--out", tmp_path / "figures")):
        refused = call(*command)
        assert (refused.exit_code, "choose one" in refused.output) == (2, True)


def test_published_images_do_not_take_the_place_of_proper_ones(tmp_path: Path) -> None:
    proper = made_up("accuracy", datasets=("cifar10",), priors=(0.5,))
    mixed = made_up("accuracy", datasets=("cifar10",), priors=(0.5,), images="published")
    write_store(tmp_path / "accuracy.jsonl", proper)
    write_store(tmp_path / "published.jsonl", mixed)
    sources = read_sources([tmp_path])
    assert [(len(s.records), s.repeated) for s in sources] == [(len(proper), 0), (len(mixed), 0)]
    page = build_report(sources).page
    in_the_filter = 1
    apart = page.count(">CIFAR-10<") - page.count(">CIFAR-10, published images, ResNet-34<")
    assert apart == in_the_filter
    summary = summarize_grid("accuracy", [r for s in sources for r in s.records])
    assert (len(summary.lines), summary.comparison.absent) == (22, 360 - 7)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.jsonl", None, "gone.jsonl does not exist"),
        ("runs.txt", b"x", "must end in .jsonl or .parquet"),
        ("bad.jsonl", b"{}\n", "line 1 is not a finished run"),
        ("bad.parquet", b"PAR1 nothing", "is not a Parquet file"),
        ("empty.jsonl", b"", "no finished runs; `pairlearn bench run GRID` makes them"),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(StoreError, match=message):
        read_sources([tmp_path / name])


def test_parquet_of_something_else(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"dataset": ["letter"]}), tmp_path / "x.parquet")
    with pytest.raises(StoreError, match=r"x\.parquet, row 1 is not a finished run"):
        read_sources([tmp_path / "x.parquet"])


def test_copies_are_shown_and_not_counted() -> None:
    records = [
        record
        for c in published_robustness()
        if c.dataset == "letter"
        for record in accurate(
            c.method.name, c.mean, dataset="letter",
            prior_factor=c.prior_factor, label_noise=c.label_noise,
        )
    ]  # fmt: skip
    summary = summarize_grid("robustness", records)
    assert (len(summary.lines), len(summary.comparison.evidence)) == (75, 45)
    page = build_report([Source(Path("r.jsonl"), "robustness", tuple(records))]).page
    assert page.count(">copy<") == 30


def test_page_holds_every_cell_and_count_and_is_the_same_every_time() -> None:
    chosen: dict[str, Any] = {"datasets": ("letter",), "priors": (0.2,)}
    parts = {grid: tuple(made_up(grid, **chosen)) for grid in GRIDS if grid != "classes"}
    parts["classes"] = tuple(made_up("classes", datasets=("letter",)))
    sources = [Source(Path(f"{grid}.jsonl"), grid, records) for grid, records in parts.items()]
    report = build_report(sources)
    read = Reader(report.page)
    rows = [a for name, a in read.elements if name == "tr" and "data-dataset" in a]
    assert len(rows) == sum(len(summarize_grid(*part).lines) for part in parts.items())
    figures = [a for name, a in read.elements if name == "figure"]
    assert len(figures) == report.figures == 2 * (1 + 1 + 1 + 4)
    ids = [a["id"] for _, a in read.elements if "id" in a]
    assert len(ids) == len(set(ids)) and {"runs", *GRIDS, "reading"} <= set(ids)
    # Mean and spread of a cell, by hand.
    two = [r.results["paper"] for r in parts["accuracy"] if r.run.method == "likelihood-abs"]
    mean, spread = sum(two) / 2, abs(two[0] - two[1]) / 2
    assert f"{mean:.3f} ± {spread:.3f}</td>" in report.page
    assert len(report.page) < 1_000_000
    assert build_report(sources[1:2]).page == build_report(sources[1:2]).page
    # The counts are those of the headline.
    counts = {grid: headline_counts(grid, records) for grid, records in parts.items()}
    for tallies in counts.values():
        for tally in tallies.values():
            assert f"<dd>{tally.holds:,} of {tally.cells:,}</dd>" in report.page
            assert tally.spread in report.page
    for name in ("reproduced", "published", "own"):
        both = [tallies[name] for tallies in counts.values() if name in tallies]
        holds, cells = sum(t.holds for t in both), sum(t.cells for t in both)
        assert f"{holds:,} of {cells:,} cells" in report.page


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.isprintable()])
def test_hostile_names_are_text(text: str) -> None:
    run = Run(dataset=text, prior=0.2, seed=0, method="supervised", pairs=9, epochs=1)
    record = Record(run, {"paper": 0.9}, {"device": text, "version": text})
    read = Reader(build_report([Source(Path(text), "accuracy", (record,))]).page)
    names = [name for name, _ in read.elements]
    assert names.count("script") == 1 and "img" not in names
    assert not any(key.startswith("on") for _, a in read.elements for key in a)
    assert {a["data-dataset"] for name, a in read.elements if name == "tr" and a} == {text}


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_one_run_and_extreme_accuracies(value: float) -> None:
    records = tuple(accurate("likelihood-abs", value, dataset="letter"))
    sources = [Source(Path("a"), grid, records) for grid in GRIDS]
    assert "nan" not in build_report(sources).page


def test_command(tmp_path: Path) -> None:
    store = write_store(tmp_path / "gamma.jsonl", made_up("gamma", datasets=("letter",)))
    out = tmp_path / "new" / "bench.html"
    line = ["report", out, "--store", store, "--json"]
    ran = call(*line)
    assert ran.exit_code == 0, ran.output
    data = json.loads(ran.output)
    assert data["bytes"] == out.stat().st_size and data["runs"] == 66
    assert [file.name for file in out.parent.iterdir()] == ["bench.html"]
    again = call(*line)
    assert again.exit_code == 2 and "already exists" in again.output
    assert call(*line, "--force").exit_code == 0
    plain = call(*line[:-1], "--force")
    assert "66 runs, 2 figures" in plain.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["bench.txt"], "reports are .html"),
        (["bench.html"], "runs does not exist"),
        (["bench.html", "--results", "nowhere"], "nowhere does not exist"),
    ],
)
def test_refusals(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = call("report", *options)
    assert ran.exit_code == 2 and message in ran.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("difference", "text", "classes"),
    [
        (None, "–", ""),
        (0.0, "0.000", "diff"),
        (-0.0004, "0.000", "diff"),
        (0.0014, "+0.001", "diff"),
        (0.0019, "+0.002 ▲", "diff above-1"),
        (-0.0016, "−0.002 ▼", "diff below-1"),
        (0.002, "+0.002 ▲", "diff above-1"),
        (-0.006, "−0.006 ▼", "diff below-2"),
        (0.5, "+0.500 ▲", "diff above-3"),
    ],
)
def test_differences_are_told_by_sign_and_arrow(
    difference: float | None, text: str, classes: str
) -> None:
    cell = difference_cell(difference)
    assert (cell.text, cell.classes, cell.value) == (text, classes, difference)
