"""A fleet that is killed and started again ends where an undisturbed one does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from pairlearn import PairLabels, make_risk
from pairlearn.training import Fleet, Group, Member, TestSet

SCRIPT = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_training_checkpoint import make_fleet
fleet = make_fleet()
slow = lambda epoch, risk: (print(epoch, flush=True), time.sleep(0.02))
fleet.fit(12, window=3, progress=slow, checkpoint=Path({path!r}), checkpoint_seconds=0.0)
"""


def make_fleet(seed: int = 0, model: str = "mlp-bn") -> Fleet:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6)).astype(np.float32)
    pairs = np.arange(120).reshape(60, 2)
    r = 1 / (1 + np.exp(-3 * x[:, 0]))
    labels = PairLabels.from_posteriors(*r[pairs].T).to_array()
    risks = [make_risk("likelihood-abs"), make_risk("sconfconfdiff-abs", prior=0.4)]
    members = [Member(risk, labels, 1e-3, 1e-5, seed) for risk in risks]
    test = TestSet(np.arange(120), x[:, 0] > 0)
    return Fleet(x, [Group(pairs, members, seed, test)], model, batch_size=16, device="cpu")


def states_equal(one: Fleet, two: Fleet) -> bool:
    a, b = one.network.state_dict(), two.network.state_dict()
    return all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("model", ["mlp", "mlp-bn", "linear"])
def test_going_on_from_a_checkpoint_changes_nothing(tmp_path: Path, model: str) -> None:
    path = tmp_path / "fleet.npz"
    straight = make_fleet(model=model)
    expected = straight.fit(8, window=5)

    class Killed(Exception):
        pass

    def kill(epoch: int, risk: float) -> None:
        if epoch == 6:
            raise Killed

    with pytest.raises(Killed):
        make_fleet(model=model).fit(
            8, window=5, progress=kill, checkpoint=path, checkpoint_seconds=0.0
        )
    again = make_fleet(model=model)
    seen: list[int] = []
    got = again.fit(8, window=5, progress=lambda epoch, _: seen.append(epoch), checkpoint=path)
    assert seen == [6, 7, 8]  # epoch 6 was not saved yet when it was killed
    assert states_equal(straight, again)
    np.testing.assert_array_equal(got["all"], expected["all"])
    assert not path.exists()


def test_sigkill(tmp_path: Path) -> None:
    path = tmp_path / "fleet.npz"
    script = SCRIPT.format(tests=str(Path(__file__).parent), path=str(path))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 4:
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 5
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    again, straight = make_fleet(), make_fleet()
    seen: list[int] = []
    got = again.fit(12, window=3, progress=lambda epoch, _: seen.append(epoch), checkpoint=path)
    expected = straight.fit(12, window=3)
    assert 3 <= seen[0] <= 12
    assert states_equal(straight, again)
    np.testing.assert_array_equal(got["all"], expected["all"])


def test_a_checkpoint_of_another_fleet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet.npz"

    def stop(epoch: int, risk: float) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_fleet().fit(4, progress=stop, checkpoint=path, checkpoint_seconds=0.0)
    with pytest.raises(ValueError, match=r"fleet\.npz belongs to another fleet: delete it"):
        make_fleet(seed=1).fit(4, checkpoint=path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"fleet\.npz is damaged, delete it"):
        make_fleet().fit(4, checkpoint=path)
