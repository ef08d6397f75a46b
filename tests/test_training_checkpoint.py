"""A fleet that is killed and started again ends where an undisturbed one does."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from pairlearn import PairLabels, make_risk
from pairlearn.judgements import Judgements
from pairlearn.training import (
    Callback,
    Checkpoint,
    CheckpointError,
    Fleet,
    Group,
    Member,
    TestSet,
    loop,
)


def make_fleet(seed: int = 0, model: str = "mlp-bn") -> Fleet:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6)).astype(np.float32)
    pairs = np.arange(120).reshape(60, 2)
    r = 1 / (1 + np.exp(-3 * x[:, 0]))
    labels = PairLabels.from_posteriors(*r[pairs].T).to_array()
    risks = [make_risk("likelihood-abs"), make_risk("sconfconfdiff-abs", prior=0.4)]
    members = [Member(risk, labels, 1e-3, 1e-5, seed) for risk in risks]
    test = TestSet(np.arange(120), x[:, 0] > 0)
    return Fleet(x, [Group(pairs, members, seed, test)], model, batch_size=16, device="cpu")


def states_equal(fleet: Fleet, other: Fleet) -> bool:
    a, b = fleet.network.state_dict(), other.network.state_dict()
    return all(torch.equal(a[name], b[name]) for name in a)


def stopped_fleet(path: Path, model: str = "mlp-bn", at: int = 2, **options: int) -> None:
    """Leave the checkpoints of a training that was stopped after an epoch."""

    def stop(epoch: int, risk: float) -> None:
        if epoch == at:
            raise KeyboardInterrupt

    options = {"epochs": 4} | options
    with pytest.raises(KeyboardInterrupt):
        make_fleet(model=model).fit(
            progress=stop, checkpoint=path, checkpoint_seconds=0.0, **options
        )


@pytest.mark.parametrize("model", ["mlp-bn", "linear"])
def test_going_on_from_a_checkpoint_changes_nothing(tmp_path: Path, model: str) -> None:
    path = tmp_path / "fleet.npz"
    straight, resumed = make_fleet(model=model), make_fleet(model=model)
    expected = straight.fit(8, window=5)
    stopped_fleet(path, model, at=6, epochs=8, window=5)
    seen: list[int] = []
    got = resumed.fit(8, window=5, progress=lambda epoch, _: seen.append(epoch), checkpoint=path)
    assert seen == [*range(1, 9)]  # those before are told again
    assert states_equal(straight, resumed)
    np.testing.assert_array_equal(got["all"], expected["all"])
    assert not path.exists()


def test_callbacks_keep_what_they_name(tmp_path: Path) -> None:
    """Numbers and tensors of early stopping go through a checkpoint as they are."""

    def stopping() -> list[loop.Callback]:
        rows = Judgements.from_pairs(np.arange(20).reshape(10, 2), np.full((10, 2), [0.7, 0.1]))
        return [loop.EarlyStopping(rows, 9, (0.5, 1.0, 2.0))]

    checkpoint, first, resumed = Checkpoint(tmp_path / "one"), stopping(), stopping()
    loop.run_epochs(make_fleet(), 3, first, checkpoint=checkpoint, work="mine")
    loop.run_epochs(make_fleet(), 3, resumed, checkpoint=checkpoint, work="mine")
    for callback, other in zip(first, resumed, strict=True):
        for name in callback.kept:
            kept, loaded = getattr(callback, name), getattr(other, name)
            assert type(kept) is type(loaded)
            torch.testing.assert_close(loaded, kept, rtol=0, atol=0)


def test_callbacks_that_would_not_be_kept_are_refused(tmp_path: Path) -> None:
    class Counting(Callback):
        def load_state(self, *given: object) -> None: ...

    assert len(loop.run_epochs(make_fleet(), 1, [Counting()])) == 1
    with pytest.raises(TypeError, match="name them there in place of `state` and `load_state`"):
        loop.run_epochs(make_fleet(), 1, [Counting()], checkpoint=Checkpoint(tmp_path / "one"))


def test_a_checkpoint_of_another_fleet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet"
    stopped_fleet(path)
    with pytest.raises(CheckpointError, match=r"fleet belongs to another training: delete it"):
        make_fleet(seed=1).fit(4, checkpoint=path)


def test_training_goes_on_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    path = tmp_path / "fleet"
    stopped_fleet(path)
    resumed = make_fleet()
    resumed.load_state(Checkpoint(path).load(resumed.fingerprint()) or {})
    assert (resumed.epoch, resumed.steps_done) == (1, 3)  # of 4 steps: the last is an epoch's end
    straight = make_fleet()
    risks: dict[str, list[float]] = {"again": [], "straight": []}
    resumed.fit(4, progress=lambda _, risk: risks["again"].append(risk))
    straight.fit(4, progress=lambda _, risk: risks["straight"].append(risk))
    assert states_equal(straight, resumed)
    assert risks["again"] == risks["straight"][1:]  # that of the whole epoch, not of its rest


@pytest.mark.parametrize("torn", ["a byte changed", "empty", "gone"])
def test_a_torn_checkpoint_gives_way_to_the_one_before(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "fleet"
    stopped_fleet(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    if torn != "gone":
        path.write_bytes(content if torn == "a byte changed" else b"")
    resumed, straight = make_fleet(), make_fleet()
    warned = pytest.warns(UserWarning, match=r"fleet .*damaged.*; resuming from .*fleet\.before")
    with nullcontext() if torn == "gone" else warned:
        resumed.fit(4, checkpoint=path)
    straight.fit(4)
    assert states_equal(straight, resumed)
    assert not list(tmp_path.iterdir())


def test_two_damaged_checkpoints_are_an_error_that_names_them(tmp_path: Path) -> None:
    path = tmp_path / "fleet"
    stopped_fleet(path)
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"fleet is damaged; .*fleet\.before is damaged.*del"):
        make_fleet().fit(4, checkpoint=path)
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
