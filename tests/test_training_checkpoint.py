"""A training that is killed and started again ends where an undisturbed one does."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pairlearn import PairLabels, make_risk
from pairlearn.judgements import Judgements
from pairlearn.training import Checkpoint, CheckpointError, Learner, Objective, Recipe, loop


def make_learner(seed: int = 0, model: str = "mlp-bn") -> Learner:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6)).astype(np.float32)
    pairs = np.arange(120).reshape(60, 2)
    r = 1 / (1 + np.exp(-3 * x[:, 0]))
    rows = Judgements.from_pairs(pairs, PairLabels.from_posteriors(*r[pairs].T).to_array())
    recipe = Recipe(8, 16, 1e-3, 1e-5, 1, "cpu", seed=seed)
    return Learner(x, rows, Objective(make_risk("likelihood-abs")), model, recipe)


def states_equal(learner: Learner, other: Learner) -> bool:
    a, b = learner.module.state_dict(), other.module.state_dict()
    return all(torch.equal(a[name], b[name]) for name in a)


def callbacks() -> list[loop.Callback]:
    """Averaged weights, early stopping and a changing rate, all of which a resumption needs."""
    rows = Judgements.from_pairs(np.arange(20).reshape(10, 2), np.full((10, 2), [0.7, 0.1]))
    return [loop.EarlyStopping(rows, 9, (0.5, 1.0, 2.0)), loop.Cosine()]


def fit(learner: Learner, path: Path | None = None, epochs: int = 4, *more: Any) -> loop.History:
    """Train, with a checkpoint after every step."""
    checkpoint = None if path is None else Checkpoint(path, 0.0)
    parts = [*callbacks(), *more]
    work = learner.fingerprint()
    return loop.run_epochs(learner, epochs, parts, checkpoint=checkpoint, work=work)


def stopped(path: Path, model: str = "mlp-bn", at: int = 2, epochs: int = 4) -> None:
    """Leave the checkpoints of a training that was stopped after an epoch."""

    def stop(_: int, row: dict[str, float]) -> None:
        if row["epoch"] == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(make_learner(model=model), path, epochs, loop.Report(stop))


@pytest.mark.parametrize("model", ["mlp-bn", "linear"])
def test_resuming_changes_nothing(tmp_path: Path, model: str) -> None:
    path = tmp_path / "learner.npz"
    straight, resumed = make_learner(model=model), make_learner(model=model)
    expected = fit(straight, None, 8)
    stopped(path, model, at=6, epochs=8)
    seen: list[float] = []
    report = loop.Report(lambda _, row: seen.append(row["epoch"]))
    history = fit(resumed, path, 8, report)
    assert seen == [*range(1, 9)]  # those before are reported again
    assert states_equal(straight, resumed)
    for row, other in zip(history, expected, strict=True):
        assert {**row, "seconds": 0} == {**other, "seconds": 0}


def test_callbacks_keep_what_they_name(tmp_path: Path) -> None:
    """Numbers and tensors of early stopping go through a checkpoint as they are."""
    checkpoint, first, resumed = Checkpoint(tmp_path / "one"), callbacks(), callbacks()
    loop.run_epochs(make_learner(), 3, first, checkpoint=checkpoint, work="mine")
    loop.run_epochs(make_learner(), 3, resumed, checkpoint=checkpoint, work="mine")
    for callback, other in zip(first, resumed, strict=True):
        for name in callback.kept:
            kept, loaded = getattr(callback, name), getattr(other, name)
            assert type(kept) is type(loaded)
            torch.testing.assert_close(loaded, kept, rtol=0, atol=0)


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    stopped(path)
    with pytest.raises(CheckpointError, match=r"learner belongs to another training: delete it"):
        fit(make_learner(seed=1), path)


def test_training_resumes_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    stopped(path)
    resumed = make_learner()
    resumed.load_state(Checkpoint(path).load(resumed.fingerprint()) or {})
    assert (resumed.epoch, resumed.steps_done) == (1, 3)  # of 4 steps: the last is an epoch's end
    again, straight = fit(make_learner(), path), fit(make_learner())
    # The risk is that of the whole epoch, not of its rest.
    assert [row["risk"] for row in again] == [row["risk"] for row in straight]


@pytest.mark.parametrize("torn", ["a byte changed", "empty", "gone"])
def test_a_torn_checkpoint_gives_way_to_the_one_before(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "learner"
    stopped(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    if torn != "gone":
        path.write_bytes(content if torn == "a byte changed" else b"")
    resumed, straight = make_learner(), make_learner()
    warned = pytest.warns(UserWarning, match=r"learner .*damaged.*; resuming from .*\.before")
    with nullcontext() if torn == "gone" else warned:
        fit(resumed, path)
    fit(straight)
    assert states_equal(straight, resumed)


def test_two_damaged_checkpoints_are_an_error_that_names_them(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    stopped(path)
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"learner is damaged; .*\.before is damaged.*del"):
        fit(make_learner(), path)
    assert len(list(tmp_path.iterdir())) == 2, "nothing is removed"


def test_every_cut_of_a_checkpoint_is_detected(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one")
    checkpoint.save({"weights": np.arange(9.0)}, "work")
    whole = checkpoint.path.read_bytes()
    for length in range(len(whole)):
        checkpoint.path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="damaged"):
            checkpoint.load("work")
    checkpoint.path.write_bytes(whole)
    loaded = checkpoint.load("work")
    assert loaded is not None
    np.testing.assert_array_equal(loaded["weights"], np.arange(9.0))


@pytest.mark.parametrize("moment", ["before the rename", "between the renames"])
def test_a_kill_while_saving_keeps_one_that_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    checkpoint = Checkpoint(tmp_path / "one")
    for number in range(2):
        checkpoint.save({"number": np.array(number)}, "work")
    replace, calls = Path.replace, 0

    def killed(self: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == (1 if moment == "before the rename" else 2):
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save({"number": np.array(2)}, "work")
    assert checkpoint.load("work") == {"number": np.array(1)}


def test_what_killed_writers_left_goes_with_the_rest(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one")
    checkpoint.save({"number": np.array(1)}, "work")
    checkpoint.after().save({"number": np.array(2)}, "work")
    for name in (".one.0123.part", ".one.after.4567.part", "other"):
        (tmp_path / name).write_bytes(b"x")
    checkpoint.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_the_first_one_is_due_after_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    checkpoint = Checkpoint(tmp_path / "one", seconds=60)
    assert not checkpoint.due()
    now[0] += 1
    assert checkpoint.due()
    checkpoint.save({"number": np.array(1)}, "work")
    now[0] += 59
    assert not checkpoint.due()
    now[0] += 1
    assert checkpoint.due()


def test_a_full_disk_leaves_no_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        Checkpoint(tmp_path / "model.checkpoint" / "fit").save({}, "work")
    assert not [*tmp_path.iterdir()]
