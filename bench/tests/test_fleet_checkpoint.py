"""A fleet that is killed and started again ends where an undisturbed one does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pairlearn import make_risk
from pairlearn.training import CheckpointError
from pairlearn_bench.fleet import Fleet, Group, Member, TestSet


def make_fleet(seed: int = 0, kind: str = "both") -> Fleet:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6)).astype(np.float32)
    labels = np.stack([rng.random(60), np.arange(60) // 15], 1)
    risks = [make_risk("likelihood-abs"), make_risk("likelihood-none")]
    members = [Member(risk, labels, 1e-3, 1e-5, seed) for risk in risks]
    test, pairs = TestSet(np.arange(120), x[:, 0] > 0), np.arange(120).reshape(60, 2)
    group = Group(pairs, members, seed, test, kinds=(kind,), columns=[np.ones(60)])
    return Fleet(x, [group], "mlp-bn", batch_size=16, device="cpu")


def stopped_fleet(path: Path, kind: str) -> None:
    """Leave the checkpoint of a training that was stopped within its last epoch but one."""

    def stop(epoch: int, risk: float) -> None:
        if epoch == 7:
            raise KeyboardInterrupt

    fleet = make_fleet(kind=kind)
    with pytest.raises(KeyboardInterrupt):
        fleet.fit(8, window=5, progress=stop, checkpoint=path, checkpoint_seconds=0.0)


@pytest.mark.parametrize("kind", ["both", "group"])
def test_resuming_changes_nothing(tmp_path: Path, kind: str) -> None:
    """Also where statements about groups are completed from the model before each epoch."""
    path = tmp_path / "fleet"
    straight, resumed = make_fleet(kind=kind), make_fleet(kind=kind)
    expected = straight.fit(8, window=5)
    stopped_fleet(path, kind)
    seen: list[int] = []
    got = resumed.fit(8, window=5, progress=lambda epoch, _: seen.append(epoch), checkpoint=path)
    assert seen == [*range(1, 9)]
    for ours, theirs in zip(
        resumed.network.parameters(), straight.network.parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)
    np.testing.assert_array_equal(got["all"], expected["all"])
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_another_fleet_is_refused(tmp_path: Path) -> None:
    stopped_fleet(tmp_path / "fleet", "both")
    with pytest.raises(CheckpointError, match=r"fleet belongs to another training: delete it"):
        make_fleet(seed=1).fit(8, checkpoint=tmp_path / "fleet")
