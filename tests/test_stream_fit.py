"""A classifier fitted to pairs that stay in their file."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model_folders import answer, run
from pair_files import make_pair_file, write_groups
from pairlearn.estimators import PairClassifier, measuring, streams
from pairlearn.estimators.streams import fit_file
from pairlearn.io import read_items, read_pairs
from pairlearn.training import Checkpoint
from test_training_ranks import on_ranks


def classifier_of(**options: Any) -> PairClassifier:
    usual = {"model": "linear", "epochs": 4, "batch_size": 8, "random_state": 0, "device": "cpu"}
    return PairClassifier(**(usual | options))


def streamed(folder: Path, classifier: PairClassifier, **options: Any) -> PairClassifier:
    usual: dict[str, Any] = {"scratch": folder, "block_pairs": 16}
    items, pairs = folder / "items.npy", folder / "pairs.parquet"
    return fit_file(classifier, items, pairs, **(usual | options))


def in_memory(folder: Path, classifier: PairClassifier) -> PairClassifier:
    table = read_pairs(folder / "pairs.parquet")
    classifier.set_params(preprocessor=read_items(folder / "items.npy"))
    return classifier.fit(table.ids(), table)


def state(classifier: PairClassifier) -> dict[str, np.ndarray]:
    tensors = classifier.module_.state_dict().items()
    return {name: value.numpy() for name, value in tensors} | {
        name: np.asarray(getattr(classifier, name))
        for name in ("prior_", "shift_", "sign_", "mean_", "scale_", "n_iter_")
    }


def assert_same(one: PairClassifier, two: PairClassifier, tolerance: float = 0.0) -> None:
    first, second = state(one), state(two)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_allclose(value, second[name], tolerance, tolerance, err_msg=name)
    risks = [[row["risk"] for row in model.history_] for model in (one, two)]
    np.testing.assert_allclose(*risks, rtol=max(tolerance, 1e-7))


# ---- beside the fit in memory -----------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"model": "mlp-bn"},
        {"risk": "sconfconfdiff-relu"},  # which finds the prior and the majority by itself
        {"standardize": False, "target_prior": 0.2},
        {"prior": 0.7, "risk": "convex-0.3"},
    ],
)
def test_with_one_batch_an_epoch_it_is_the_fit_in_memory(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    # The order of rows does not matter then, and everything else is the same.
    make_pair_file(tmp_path, pairs=300, items=80, rows=70)
    options = {"batch_size": 1000, "precision": "float64", "epochs": 5} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a prior that does not fit
        one = streamed(tmp_path, classifier_of(**options), block_pairs=1000)
        two = in_memory(tmp_path, classifier_of(**options))
    assert_same(one, two, 1e-8)
    assert one.classes_.tolist() == two.classes_.tolist() == [-1, 1]
    assert one.feature_names_in_.tolist() == two.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    x = read_items(tmp_path / "items.npy")
    np.testing.assert_allclose(one.decision_function(x), two.decision_function(x), atol=1e-6)


def test_early_stopping(tmp_path: Path) -> None:
    make_pair_file(tmp_path, pairs=400, items=60, rows=50)
    classifier = classifier_of(early_stopping=True, epochs=60, patience=2, learning_rate=0.3)
    streamed(tmp_path, classifier)
    risks = [row["validation_risk"] for row in classifier.history_]
    assert classifier.n_iter_ == int(np.argmin(risks)) + 1
    assert len(risks) == min(60, classifier.n_iter_ + 2)


def test_what_a_stream_cannot_do_is_refused(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    make_pair_file(tmp_path)
    with pytest.raises(ValueError, match="LogisticRegression is a scikit-learn classifier"):
        streamed(tmp_path, classifier_of(model=LogisticRegression()))
    with pytest.raises(ValueError, match="prior=, the share of the positive class"):
        columns = {"left": range(12), "right": range(1, 13), "difference": [0.1] * 12}
        write_groups(tmp_path / "pairs.parquet", columns, 1)
        streamed(tmp_path, classifier_of())


# ---- interrupted ------------------------------------------------------------------------------


class Stopped(Exception):
    pass


class StoppingCheckpoint(Checkpoint):
    """Is due after every step, and stops the training when so many were saved."""

    def __init__(self, path: Path, saves: int) -> None:
        super().__init__(path, 0.0)
        self.saves = saves

    def save(self, *args: Any) -> None:
        super().save(*args)
        self.saves -= 1
        if not self.saves:
            raise Stopped


@pytest.mark.parametrize("options", [{"model": "mlp-bn"}, {"early_stopping": True}])
def test_stopped_after_any_step_it_ends_the_same(tmp_path: Path, options: dict[str, Any]) -> None:
    make_pair_file(tmp_path)
    straight = streamed(tmp_path, classifier_of(**options, epochs=2))
    for saves in (4, 9):  # some 9 steps an epoch, two in a block
        path = tmp_path / f"after {saves}"
        with pytest.raises(Stopped):
            streamed(
                tmp_path,
                classifier_of(**options, epochs=2),
                checkpoint=StoppingCheckpoint(path, saves),
            )
        again = streamed(
            tmp_path, classifier_of(**options, epochs=2), checkpoint=Checkpoint(path, 1e9)
        )
        assert_same(again, straight)


def test_a_checkpoint_of_other_pairs_is_refused(tmp_path: Path) -> None:
    make_pair_file(tmp_path)
    kept = Checkpoint(tmp_path / "kept", 0.0)
    streamed(tmp_path, classifier_of(), checkpoint=kept)
    make_pair_file(tmp_path, seed=1)
    with pytest.raises(ValueError, match="belongs to another training"):
        streamed(tmp_path, classifier_of(), checkpoint=kept)


def test_the_same_command_goes_on_in_the_middle_of_an_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_pair_file(tmp_path, pairs=600, items=300, rows=40)
    files = tmp_path / "items.npy", tmp_path / "pairs.parquet"
    words = ("fit", *files, "--stream", "--model", "linear", "--epochs", 3, "--batch-size", 32)
    assert run(*words, "--out", tmp_path / "straight").exit_code == 0
    again = (*words, "--out", tmp_path / "again", "--checkpoint-seconds", 0)
    save, begun = Checkpoint.save, []

    def stopping(self: Checkpoint, state: Any, work: Any) -> None:
        save(self, state, work)
        begun.append((int(state["epoch"]), int(state["steps"])))
        if self.path.name == "fit" and begun[-1] == (1, 5):
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", stopping)
    assert run(*again).exit_code != 0
    assert not (tmp_path / "again").exists()
    assert (tmp_path / "again.checkpoint" / "fit").exists()
    begun.clear()
    assert run(*again).exit_code == 0
    assert begun[0] == (1, 6), "neither the model that measures nor the epochs before begin again"
    assert not (tmp_path / "again.checkpoint").exists()
    one, two = (PairClassifier.load(tmp_path / name) for name in ("straight", "again"))
    assert_same(one, two)


# ---- several processes ------------------------------------------------------------------------


def on_a_rank(folder: Path) -> dict[str, torch.Tensor]:
    classifier = streamed(folder, classifier_of(model="mlp-bn", precision="float64"))
    return dict(classifier.module_.state_dict())


def test_two_ranks_are_one(tmp_path: Path) -> None:
    from functools import partial

    make_pair_file(tmp_path)
    expected = on_a_rank(tmp_path)
    for state in on_ranks(2, tmp_path, partial(on_a_rank, tmp_path)):
        for name, value in expected.items():
            torch.testing.assert_close(state[name], value, rtol=1e-9, atol=1e-9)


# ---- the commands -----------------------------------------------------------------------------

QUICK = ("--model", "linear", "--epochs", 5, "--learning-rate", 0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    make_pair_file(path, pairs=900, items=200, rows=100)
    return path


def test_fit_says_the_same_as_in_memory(folder: Path, tmp_path: Path) -> None:
    files = folder / "items.npy", folder / "pairs.parquet"
    one = answer("fit", *files, "--out", tmp_path / "one", "--stream", *QUICK)
    two = answer("fit", *files, "--out", tmp_path / "two", *QUICK)
    assert one.keys() == two.keys()
    counted = ("judgements", "features", "items", "statements", "labelled", "classes", "epochs")
    for name in counted:
        assert one[name] == two[name], name
    messages = [
        [re.split(r" \(|; `", text)[0] for text in summary["warnings"]] for summary in (one, two)
    ]
    assert (
        messages[0] == messages[1]
    )  # but for the rows: those of a sample are not those of the file
    intervals = [[summary["accuracy"][end] for end in ("low", "high")] for summary in (one, two)]
    assert max(low for low, _ in intervals) < min(high for _, high in intervals)
    parts = [one["accuracy"][name] for name in ("training", "held_out", "dropped")]
    statements = sum(count for name, count in one["statements"].items() if name != "preference")
    preferences = sum(parts) - statements  # counted but for those that are held out
    assert 0 < preferences < 240
    assert 90 < parts[1] < 270
    assert not (tmp_path / "one.checkpoint").exists()


def test_the_pairs_to_measure_with_are_bounded(
    folder: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(streams, "MEASURED_PAIRS", 40)
    files = folder / "items.npy", folder / "pairs.parquet"
    accuracy = answer("fit", *files, "--out", tmp_path / "model", "--stream", *QUICK)["accuracy"]
    assert accuracy["capped"]
    assert 5 < accuracy["held_out"] < 90
    assert accuracy["training"] > 450


def test_fit_without_measuring_and_with_too_few_to_hold_out(folder: Path, tmp_path: Path) -> None:
    files = folder / "items.npy", folder / "pairs.parquet"
    options = ("--stream", *QUICK, "--out", tmp_path / "model")
    assert answer("fit", *files, *options, "--holdout", 0)["accuracy"] is None
    few = {"left": [0, 1], "right": [2, 3], "similarity": [0.2, 0.7], "difference": [0.1, 0.0]}
    few |= {"label": ["positive", None], "annotator": ["ann", "bob"]}
    write_groups(tmp_path / "few.parquet", few, 1)
    summary = answer("fit", files[0], tmp_path / "few.parquet", *options, "--force")
    assert "too few pairs" in summary["not_measured"]
    warned = "\n".join(summary["warnings"])
    assert "ignored-column: The column label is about one item, and 1 rows about pairs" in warned
    assert "the column annotator is not read from a stream" in warned


def test_fit_refuses(folder: Path, tmp_path: Path) -> None:
    options = ("--stream", "--out", tmp_path / "model")
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("left,right,similarity\n0,1,.5\n")
    same = {"left": [0, 1], "right": [1, 1], "similarity": [0.5, 0.5], "difference": [0.0, 0.0]}
    alone = {"left": [0, 1, 2], "right": [1, 2, 3], "similarity": [0.5, 0.2, 0.3]}
    for path, message in (
        (pairs, "pairs are streamed from Parquet files"),
        (write_groups(tmp_path / "same.parquet", same, 1), "1 rows pair an item with itself"),
        (write_groups(tmp_path / "alone.parquet", alone, 1), "needs-majority"),
    ):
        result = run("fit", folder / "items.npy", path, *options)
        assert result.exit_code == 2
        assert message in result.output


def forget_items(model: Path) -> None:
    """Let a model be measured on the items of its training, whose figures are compared only."""
    loaded = PairClassifier.load(model)
    assert len(loaded.training_items_)
    del loaded.training_items_
    loaded.save(model, overwrite=True)


def test_evaluate_all_or_a_sample(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    files = folder / "items.npy", folder / "pairs.parquet"
    model = tmp_path / "model"
    assert run("fit", *files, "--out", model, "--holdout", 0, *QUICK).exit_code == 0
    refused = run("evaluate", model, *files, "--stream")
    assert refused.exit_code == 2 and "measures no accuracy" in refused.output
    forget_items(model)
    options = ("--choose-threshold", "--calibration", "--sensitivity")
    whole = answer("evaluate", model, *files, *options)
    assert answer("evaluate", model, *files, *options, "--stream") == whole
    assert whole["sampled_from"] is None
    monkeypatch.setattr(measuring, "EVALUATED_PAIRS", 400)
    sampled = answer("evaluate", model, *files, *options, "--stream")
    assert sampled["sampled_from"] == 900
    assert 250 < sampled["n"] < 450
    assert abs(sampled["accuracy"]["value"] - whole["accuracy"]["value"]) < 0.05
    shown = run("evaluate", model, *files, "--stream").output
    assert "drawn at random from the 900" in " ".join(shown.split())
