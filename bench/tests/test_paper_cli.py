import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

import pairlearn
from pairlearn_bench import GRIDS, Method, Run, RunStore, published_accuracy
from pairlearn_bench import cli as bench
from pairlearn_bench.data import DatasetNotFoundError
from paper_results import call

PUBLISHED = {(c.dataset, c.prior, c.method): c.mean for c in published_accuracy()}


def accuracy(run: Run) -> float:
    """The published accuracy, a little above or below; for our own methods a high one."""
    published = PUBLISHED.get((run.dataset, run.prior, Method.parse(run.method)), 0.999)
    return published + (1e-4 if run.seed % 2 else -1e-4)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """An empty working folder, and a training that only looks like one."""
    seen: list[dict[str, Any]] = []

    def execute(
        runs: Sequence[Run], *, among: Sequence[Run], checkpoints: Any, **options: Any
    ) -> Iterator[tuple[Run, dict[str, float]]]:
        assert set(runs) <= set(among)
        seen.append({"runs": list(runs), "checkpoints": checkpoints.folder, **options})
        for run in reversed(runs):
            value = accuracy(run)
            yield run, {"paper": value, "stratified": value - 0.01, "annotator_paper": 0.99}

    monkeypatch.setattr("pairlearn_bench.execute.execute", execute)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PAIRLEARN_DATA", raising=False)
    return seen


MNIST = ("accuracy", "--datasets", "mnist")


def test_run_keeps_every_run_and_goes_on_where_it_stopped(calls: list[dict[str, Any]]) -> None:
    done = call("run", *MNIST, "--seeds", "1")
    assert done.exit_code == 0, done.output
    assert done.output == "57 runs finished, 0 of 57 were there before: runs/accuracy.jsonl\n"
    assert len(RunStore("runs/accuracy.jsonl")) == 57
    done = call("run", *MNIST, "--seeds", "2", "--json")
    report = json.loads(done.output)
    assert (report["wanted"], report["found"], report["finished"]) == (114, 57, 57)
    assert {run.seed for run in calls[1]["runs"]} == {1}
    assert call("run", *MNIST, "--seeds", "2").exit_code == 0
    assert len(calls) == 2, "nothing to do, nothing called"


def test_run_passes_its_options_on(
    calls: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "own.jsonl"
    options = ("--device", "cpu", "--precision", "bf16", "--data", str(tmp_path))
    choice = ("--priors", "0.2", "--seeds", "3-4", "--methods", "sconf,confdiff-abs")
    recipe = ("--epochs", "7", "--model", "mlp-bn", "--annotator", "calibrated")
    done = call("run", *MNIST, "--store", str(store), *options, *choice, *recipe)
    assert done.exit_code == 0, done.output
    (seen,) = calls
    assert (seen["device"], seen["precision"], seen["data"]) == ("cpu", "bf16", tmp_path)
    assert {(r.seed, r.method, r.epochs, r.model, r.annotator) for r in seen["runs"]} == {
        (seed, method, 7, "mlp-bn", "calibrated")
        for seed in (3, 4)
        for method in ("sconf-none", "confdiff-abs")
    }
    assert seen["checkpoints"] == store.with_suffix(".checkpoints")
    (record, *_) = RunStore(store)
    assert record.notes == {"device": "cpu", "precision": "bf16", "version": pairlearn.__version__}
    monkeypatch.setenv("PAIRLEARN_DATA", "elsewhere")
    call("run", *MNIST, "--seeds", "1")
    assert calls[1]["data"] == Path("elsewhere")


def test_run_keeps_what_was_finished_before_a_failure_and_refuses_a_store_in_use(
    calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(runs: Sequence[Run], **_: Any) -> Iterator[tuple[Run, dict[str, float]]]:
        yield runs[0], {"paper": 0.5}
        raise DatasetNotFoundError("put letter.npz into the data folder")

    monkeypatch.setattr("pairlearn_bench.execute.execute", execute)
    done = call("run", *MNIST)
    assert done.exit_code == 2
    assert "bench run: put letter.npz into the data folder" in done.stderr
    store = RunStore("runs/accuracy.jsonl")
    assert len(store) == 1
    with store:
        done = call("run", *MNIST)
    assert done.exit_code == 2
    assert "is being written to by another process" in done.stderr


def test_a_folder_of_parts_is_read_as_one(calls: list[dict[str, Any]]) -> None:
    for seed in ("0", "1"):
        part = f"parts/accuracy-{seed}.jsonl"
        assert call("run", *MNIST, "--seeds", f"{seed}-{seed}", "--store", part).exit_code == 0
    counts = json.loads(call("status", *MNIST, "--store", "parts", "--json").output)
    assert counts == {"mnist": {"finished": 114, "wanted": 285}}
    rows = json.loads(call("table", *MNIST, "--store", "parts", "--json").output)
    assert {row["seeds"] for row in rows} == {2}
    RunStore("parts/accuracy-1.jsonl").to_parquet("one.parquet")
    rows = json.loads(call("table", *MNIST, "--store", "one.parquet", "--json").output)
    assert {row["seeds"] for row in rows} == {1}


def test_stores_are_written_with_the_ending_that_they_are_read_with(
    calls: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    for store, message in [
        ("out.parquet", "--store out.parquet must end in .jsonl"),
        ("out", "--store out must end in .jsonl"),
        ("folder", "--store folder is a folder; give a file, such as folder/accuracy.jsonl"),
    ]:
        done = call("run", *MNIST, "--store", store)
        assert (done.exit_code, done.stderr) == (2, f"pairlearn bench run: {message}\n")
    (tmp_path / "out.txt").write_text("")
    for store, message in [("out.txt", "must end in .jsonl or .parquet"), ("out", "not exist")]:
        done = call("table", *MNIST, "--store", store)
        assert done.exit_code == 2 and message in done.stderr
    assert calls == [] and {path.name for path in tmp_path.iterdir()} == {"folder", "out.txt"}


def test_status_counts(calls: list[dict[str, Any]]) -> None:
    call("run", *MNIST, "--seeds", "1")
    done = call("status", "accuracy", "--datasets", "mnist,letter")
    assert done.output == (
        "| data set | finished | wanted |\n"
        "| -------- | -------- | ------ |\n"
        "| MNIST    | 57       | 285    |\n"
        "| Letter   | 0        | 285    |\n"
    )


def test_status_tells_of_runs_with_other_options(calls: list[dict[str, Any]]) -> None:
    few = ("--seeds", "1", "--priors", "0.2", "--methods", "confdiff")
    cifar10 = ("--model", "resnet32", "--images", "published", "--epochs", "40")
    call("run", "accuracy", "--datasets", "cifar10", *few, *cifar10)
    call("run", "accuracy", "--datasets", "letter", *few)

    def last(*options: object) -> str:
        *_, line = call("status", "accuracy", *options).output.splitlines()
        return str(line)

    also = "the store also has 1 other run: "
    assert last() == also + "epochs 40; images published; model resnet32"
    assert last("--epochs", 40) == also + "images published; model resnet32"
    assert last("--datasets", "cifar10", *cifar10).startswith("| CIFAR-10 | 1        | 285 ")
    assert last("--priors", "0.2", *few[:2], "--datasets", "letter").startswith("| Letter   | 1 ")


def test_runs_with_other_shares_of_the_pairs_are_found(calls: list[dict[str, Any]]) -> None:
    few = ("--datasets", "letter", "--seeds", "1", "--priors", "0.2", "--methods", "confdiff-abs")
    for grid in ("limited", "accuracy"):
        call("run", grid, *few, "--fractions", "0.25,0.5", "--epochs", "5")
    table = call("table", "limited").output
    assert "| 1000 " in table and "| 2000 " in table
    assert "Trained in another way than in the paper: Letter (epochs 5 instead of 200)" in table
    others = "2 other runs: epochs 5; fraction 0.25, 0.5"
    assert others in call("status", "accuracy", *few).output
    assert others in call("table", "accuracy").output, "they are not of this experiment"
    assert "| 1000 " in call("table", "limited", "--fractions", "0.25").output


def test_table_in_every_format(calls: list[dict[str, Any]], tmp_path: Path) -> None:
    call("run", *MNIST, "--seeds", "2")
    assert "2 seeds), stratified test subset" in call("table", "accuracy").output
    both = call("table", "accuracy", "--test-subset", "both", "--json", "--priors", "0.5")
    assert [row["test_subset"] for row in json.loads(both.output)] == [
        *["paper"] * 11,
        *["stratified"] * 11,
    ]
    file = tmp_path / "results" / "accuracy.csv"
    done = call("table", "accuracy", "--format", "csv", "--out", str(file))
    assert (done.exit_code, done.output) == (0, "")
    assert len(file.read_text().splitlines()) == 58


def test_figure_writes_files(calls: list[dict[str, Any]]) -> None:
    call("run", "gamma", "--datasets", "letter", "--seeds", "1")
    done = call("figure", "gamma", "--out", "figures", "--formats", "png", "--json")
    assert json.loads(done.output) == ["figures/gamma-0.2.png"]
    assert Path("figures/gamma-0.2.png").stat().st_size > 5_000
    assert call("figure", "gamma", "--test-subset", "both").exit_code == 2
    for formats in ("bmp3", "pdf,bmp3", ","):
        done = call("figure", "gamma", "--out", "none", "--formats", formats)
        assert done.exit_code == 2 and formats.removeprefix("pdf,") in done.stderr
    assert not Path("none").exists()


def test_compare_passes_on_the_published_numbers_and_fails_with_exit_code_one(
    calls: list[dict[str, Any]],
) -> None:
    call("run", *MNIST)
    done = call("compare", "accuracy")
    assert done.exit_code == 0, done.output
    assert "Within tolerance, ABS and supervised: 17 of 17 cells" in done.output
    assert "Published cells without runs of ours: 315" in done.output
    data = json.loads(call("compare", "accuracy", "--json").output)
    assert (data["ok"], len(data["cells"])) == (True, 45)
    # On the other test subset everything is 0.01 lower here, which is more than is allowed.
    done = call("compare", "accuracy", "--test-subset", "stratified", "--json")
    assert (done.exit_code, json.loads(done.output)["ok"]) == (1, False)


def test_compare_names_runs_with_another_recipe_and_its_help_the_exit_code(
    calls: list[dict[str, Any]],
) -> None:
    call("run", *MNIST, "--seeds", "1", "--epochs", "8", "--annotator", "calibrated")
    call("run", "accuracy", "--datasets", "letter", "--seeds", "1")
    done = call("compare", "accuracy")
    words = "MNIST (epochs 8 instead of 200, annotator calibrated instead of paper)"
    assert f"\nTrained in another way than in the paper: {words}\n" in done.output
    text = " ".join(call("compare", "--help").output.split())
    assert "1 some are not" in text


def test_runs_of_two_recipes_in_one_store(calls: list[dict[str, Any]]) -> None:
    few = (*MNIST, "--priors", "0.2", "--seeds", "1", "--epochs")
    for epochs, store in ((200, "both"), (8, "both"), (8, "one")):
        call("run", *few, epochs, "--store", f"{store}.jsonl")
    for command in (("headline", "--json"), ("report", "page.html", "--force", "--json")):
        done = call(*command, "--store", "both.jsonl")
        assert done.exit_code == 2 and "with epochs 200 and 8: choose one" in done.stderr
        chosen = call(*command, "--store", "both.jsonl", "--epochs", 8)
        alone = call(*command, "--store", "one.jsonl")
        # The page names its file, so its size differs.
        ours, theirs = (json.loads(done.output) | {"bytes": 0} for done in (chosen, alone))
        assert ours == theirs
    done = call("headline", "--store", "both.jsonl", "--model", "linear")
    assert done.exit_code == 2 and "both.jsonl: no such finished runs" in done.stderr


def test_compare_of_robustness_and_of_nothing(calls: list[dict[str, Any]]) -> None:
    call("run", "robustness", "--datasets", "mnist", "--seeds", "1")
    done = call("compare", "robustness")
    assert "copied from a smaller noise: 30 cells" in done.output
    call("run", "accuracy", "--datasets", "digits", "--seeds", "1")
    done = call("compare", "accuracy")
    assert done.exit_code == 2
    assert "none of the runs has a counterpart" in done.stderr
    assert "bench headline" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "speed"), "speed"),
        (("run", "accuracy", "--datasets", "mnits"), "did you mean 'mnist'?"),
        (("run", "accuracy", "--methods", "best"), "'best' is unknown"),
        (("run", "accuracy", "--priors", "half"), "'half'"),
        *(
            ((name, "accuracy", "--priors", "1.5"), "priors=1.5 must be a number in (0, 1)")
            for name in ("run", "status", "table")
        ),
        *(
            ((name, "accuracy", *data, "--images", "foo"), "images='foo' must be one of proper")
            for name in ("run", "status", "table")
            for data in ((), ("--datasets", "optdigits"), ("--datasets", "cifar10"))
        ),
        *(
            ((*words, "--images", "published"), "images='published' is for colour images")
            for words in (
                ("run", "accuracy", "--datasets", "digits,letter"),
                ("table", "accuracy", "--datasets", "optdigits"),
                ("run", "gamma"),
                ("status", "gamma"),
            )
        ),
        (("run", "accuracy", "--seeds", "none"), "'none'"),
        (("run", "accuracy", "--seeds", "5-3"), "'5-3'"),
        (("run", "accuracy", "--seeds", "0"), "'0'"),
        (("run", "accuracy", "--epochs", "0"), "epochs=0 must be a whole number of 1 or more"),
        (("run", "accuracy", "--model", "cnn"), "cnn"),
        *(
            ((*words, "--model", "resnet34"), "for any data set are mlp, mlp-bn, mlp-small, linear")
            for words in (("run", "accuracy", "--datasets", "mnist,digits"), ("run", "accuracy"))
        ),
        (("run", "accuracy", "--device", "tpu"), "tpu"),
        (("run", "accuracy", "--priors", "0.5", "--methods", "sconf-abs"), "no runs are selected"),
        (("table", "accuracy"), "pairlearn bench run accuracy"),
        (("figure", "gamma"), "pairlearn bench run gamma"),
        (("figure", "siblings"), "siblings has no figures, only a table"),
        (("compare", "accuracy"), "pairlearn bench run accuracy"),
        (("compare", "gamma"), "accuracy and robustness"),
    ],
)
def test_bad_requests_have_a_clear_message_and_exit_code_two(
    calls: list[dict[str, Any]], arguments: tuple[str, ...], message: str
) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.output
    assert calls == []


def test_names_are_those_of_the_grids() -> None:
    assert get_args(bench.GridName) == tuple(GRIDS)
