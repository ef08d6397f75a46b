"""The benchmark as one page."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from pairlearn.cli.bench import report as command
from pairlearn.paper import GRIDS, Record, Run, RunStore, Selection, StoreError
from pairlearn.paper.cells import published_accuracy, published_robustness
from pairlearn.paper.headline import summarize_grid
from pairlearn.paper.page import Source, build_report, read_sources
from pairlearn.paper.store import read_records, write_parquet
from test_pages import HOSTILE, Reader

app = typer.Typer()
app.command()(command)


def fake_records(grid: str, seeds: tuple[int, ...] = (0, 1), **chosen: Any) -> list[Record]:
    def result(run: Run) -> dict[str, float]:
        draw = random.Random(run.key())
        keys = ("paper", "stratified", "annotator_paper", "annotator_stratified")
        return {key: 0.9 + 0.1 * draw.random() for key in keys}

    runs = Selection(seeds=seeds, **chosen).of(GRIDS[grid]).runs()
    notes = {"device": "cpu", "precision": "float32", "version": "0.1.0"}
    return [Record(run, result(run), notes | {"seconds": 2.0}) for run in runs]


def write_store(path: Path, records: list[Record]) -> Path:
    path.write_bytes(b"".join(record.line() for record in records))
    return path


def test_parquet_and_store_hold_the_same_runs(tmp_path: Path) -> None:
    records = fake_records("gamma", datasets=("letter",))
    store = write_store(tmp_path / "gamma.jsonl", records)
    export = write_parquet(RunStore(store), tmp_path / "gamma.parquet")
    assert read_records(store) == read_records(export) == records


def test_files_find_their_experiment(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "runs"
    folder.mkdir(parents=True)
    write_store(folder / "limited.jsonl", fake_records("limited", datasets=("letter",)))
    write_store(folder / "accuracy.jsonl", fake_records("accuracy", datasets=("letter",)))
    write_store(folder / "cifar.jsonl", fake_records("accuracy", (7,), datasets=("cifar10",)))
    write_store(folder / "curve.jsonl", fake_records("gamma", datasets=("mnist",)))
    write_store(folder / "empty.jsonl", [])
    (folder / "notes.txt").write_text("not a store")
    sources = read_sources([tmp_path / "results"])
    assert [(s.path.name, s.grid) for s in sources] == [
        ("accuracy.jsonl", "accuracy"),
        ("cifar.jsonl", "accuracy"),
        ("curve.jsonl", "gamma"),
        ("limited.jsonl", "limited"),
    ]


def test_runs_in_a_place_that_is_filled_are_left_out_but_not_further_seeds(tmp_path: Path) -> None:
    records = fake_records("accuracy", datasets=("letter",), priors=(0.5,))
    other = [Record(replace(r.run, model="mlp-bn", seed=9), r.results) for r in records[:3]]
    more = fake_records("accuracy", (1, 2), datasets=("letter",), priors=(0.5,))
    files = [
        write_store(tmp_path / "accuracy.jsonl", records),
        write_store(tmp_path / "b.jsonl", other),
        write_store(tmp_path / "c.jsonl", more),
    ]
    sources = read_sources(files)
    half = len(records) // 2
    assert [(len(s.records), s.repeated) for s in sources] == [(2 * half, 0), (0, 3), (half, half)]
    (summary,) = [summarize_grid("accuracy", [r for s in sources for r in s.records])]
    assert {len(line.cell.seeds) for line in summary.lines} == {3}


def test_published_images_do_not_take_the_place_of_proper_ones(tmp_path: Path) -> None:
    proper = fake_records("accuracy", datasets=("cifar10",), priors=(0.5,))
    mixed = fake_records("accuracy", datasets=("cifar10",), priors=(0.5,), images="published")
    write_store(tmp_path / "accuracy.jsonl", proper)
    write_store(tmp_path / "published.jsonl", mixed)
    sources = read_sources([tmp_path])
    assert [(len(s.records), s.repeated) for s in sources] == [(len(proper), 0), (len(mixed), 0)]
    page = build_report(sources).page
    assert page.count(">CIFAR-10<") - page.count(">CIFAR-10, published images<") == 3
    counts = summarize_grid("accuracy", [r for s in sources for r in s.records]).to_dict()
    assert (counts["cells"], counts["not_run"]) == (22, 360 - 7)


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
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"dataset": ["letter"]}), tmp_path / "x.parquet")
    with pytest.raises(StoreError, match=r"x\.parquet, row 1 is not a finished run"):
        read_sources([tmp_path / "x.parquet"])


def test_counts_are_those_of_the_comparison() -> None:
    """Ours are made up: the published mean, or a tenth less on one data set."""
    records = []
    for cell in published_accuracy():
        if cell.dataset in ("letter", "mnist"):
            run = Run(dataset=cell.dataset, prior=cell.prior, seed=0, method=cell.method.name,
                      pairs=9, epochs=1)  # fmt: skip
            value = cell.mean - (0.1 if cell.dataset == "letter" else 0)
            records.append(Record(run, {"paper": value, "stratified": value}))
    counts = summarize_grid("accuracy", records).to_dict()
    mnist = sum(cell.dataset == "mnist" for cell in published_accuracy())
    assert counts["cells"] == counts["compared"] == 2 * mnist
    assert counts["not_run"] == 360 - 2 * mnist
    letters = [c for c in published_accuracy() if c.dataset == "letter"]
    wide = sum(0.006 + 2 * c.std / 5**0.5 >= 0.1 for c in letters)
    assert counts["tallies"]["reproduced"]["holds"] == mnist + wide


def test_likelihood_beside_the_best_published() -> None:
    best = max(
        c.mean
        for c in published_accuracy()
        if (c.dataset, c.prior) == ("letter", 0.2) and c.method.is_weak
    )
    run = Run(dataset="letter", prior=0.2, seed=0, method="likelihood-abs", pairs=9, epochs=1)
    for value, beats in ((best, 1), (best - 0.001, 0)):
        counts = summarize_grid("accuracy", [Record(run, {"paper": value})]).to_dict()
        told = counts["tallies"]["published"]
        assert (told["cells"], told["holds"], len(told["losses"])) == (1, beats, 1 - beats)


def test_copies_are_shown_and_not_counted() -> None:
    records = [
        Record(
            Run(dataset="letter", prior=0.2, seed=0, method=c.method.name, pairs=9, epochs=1,
                prior_factor=c.prior_factor, label_noise=c.label_noise),
            {"paper": c.mean},
        )
        for c in published_robustness()
        if c.dataset == "letter"
    ]  # fmt: skip
    counts = summarize_grid("robustness", records).to_dict()
    assert (counts["cells"], counts["compared"], counts["copies"]) == (75, 45, 30)
    page = build_report([Source(Path("r.jsonl"), "robustness", tuple(records))]).page
    assert page.count("copy of σ = 0.05, not counted") == 15


def test_page_holds_every_cell_of_every_experiment() -> None:
    sources = [
        Source(Path(f"{g}.jsonl"), g, tuple(fake_records(g, datasets=("letter", "mnist"))))
        for g in GRIDS
    ]
    made = build_report(sources)
    read = Reader(made.page)
    rows = [a for name, a in read.elements if name == "tr" and "data-dataset" in a]
    assert len(rows) == sum(count["cells"] for count in made.grids.values())
    figures = [a for name, a in read.elements if name == "figure"]
    assert len(figures) == made.figures == 1 + 2 * (2 * 3 + 2 + 2 * 3 + 2 * 4)
    ids = [a["id"] for _, a in read.elements if "id" in a]
    assert len(ids) == len(set(ids)) and {"runs", *GRIDS, "plane", "reading"} <= set(ids)
    # Mean and spread of a cell, by hand.
    two = [
        r.results["paper"]
        for r in sources[0].records
        if (r.run.dataset, r.run.prior, r.run.method) == ("letter", 0.2, "likelihood-abs")
    ]
    mean, spread = sum(two) / 2, abs(two[0] - two[1]) / 2
    assert f"{mean:.3f} ± {spread:.3f}</td>" in made.page
    assert len(made.page) < 2_000_000


def test_page_is_the_same_every_time() -> None:
    source = Source(Path("g.jsonl"), "gamma", tuple(fake_records("gamma", datasets=("letter",))))
    assert build_report([source]).page == build_report([source]).page


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.isprintable()])
def test_hostile_names_are_text(text: str) -> None:
    run = Run(dataset=text, prior=0.2, seed=0, method="supervised", pairs=9, epochs=1)
    record = Record(run, {"paper": 0.9}, {"device": text, "version": text})
    read = Reader(build_report([Source(Path(text), "accuracy", (record,))]).page)
    names = [name for name, _ in read.elements]
    assert names.count("script") == 1 and "img" not in names
    assert not any(key.startswith("on") for _, a in read.elements for key in a)
    assert {a["data-dataset"] for name, a in read.elements if name == "tr" and a} == {text}


def test_one_run_and_extreme_accuracies() -> None:
    for value in (0.0, 1.0):
        run = Run(dataset="letter", prior=0.2, seed=0, method="likelihood-abs", pairs=9, epochs=1)
        for grid in GRIDS:
            record = Record(run, {"paper": value, "stratified": value})
            assert "nan" not in build_report([Source(Path("a"), grid, (record,))]).page


def test_command(tmp_path: Path) -> None:
    store = write_store(tmp_path / "gamma.jsonl", fake_records("gamma", datasets=("letter",)))
    out = tmp_path / "new" / "bench.html"
    line = [str(out), "--store", str(store), "--json"]
    ran = CliRunner().invoke(app, line)
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.output)
    assert told["bytes"] == out.stat().st_size and told["runs"] == 66
    assert told["grids"]["gamma"]["cells"] == 33
    assert [file.name for file in out.parent.iterdir()] == ["bench.html"]
    again = CliRunner().invoke(app, line)
    assert again.exit_code == 2 and "is there already" in again.output
    assert CliRunner().invoke(app, [*line, "--force"]).exit_code == 0
    plain = CliRunner().invoke(app, [*line[:-1], "--force"])
    assert "66 runs, 3 figures" in plain.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["bench.txt"], "reports are .html"),
        (["bench.html"], "runs does not exist"),
        (["bench.html", "--results", "nowhere"], "nowhere does not exist"),
        (["bench.html", "--store", "a.csv"], "a.csv does not exist"),
    ],
)
def test_refusals(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, options)
    assert ran.exit_code == 2 and message in ran.output
    assert list(tmp_path.iterdir()) == []
