"""Several processes with parts of each batch train as one process with all of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed, multiprocessing, nn

from pairlearn import PairLabels, make_risk
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import code
from pairlearn.training import Learner, Objective, Recipe, risk_over_ranks, sum_over_ranks
from pairlearn.training.loop import run_epochs
from pairlearn.training.ranks import ALONE, Ranks

FAMILIES = ("sconf", "confdiff", "convex-0.3", "sconfconfdiff", "nonnegative", "likelihood")
METHODS = [f"{family}-{fix}" for family in FAMILIES for fix in ("none", "relu", "abs", "slope=0.5")]
PAIRS, BATCH = 41, 16  # 16, 16 and 9: no number of ranks divides all of them


def make_learner(model: Any, method: str, batch: int) -> Learner:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * PAIRS, 5))
    pairs = np.arange(2 * PAIRS).reshape(PAIRS, 2)
    r = 1 / (1 + np.exp(-3 * x[:, 0]))
    exact = PairLabels.from_posteriors(*r[pairs].T).to_array()
    noisy = exact + rng.normal(0.7, 0.5, exact.shape)  # so that partial risks are negative
    rows = Judgements(pairs, np.full(PAIRS, code("both"), np.int8), noisy)
    objective = Objective(make_risk(method, prior=0.3), held_prior=0.4)
    recipe = Recipe(3, batch, 1e-3, 1e-5, 1, "cpu", "float64")
    return Learner(x, rows, objective, model, recipe)


class Convolution(nn.Module):
    """Batch norms of both kinds, with and without a momentum."""

    def __init__(self) -> None:
        super().__init__()
        self.expand, self.first = nn.Conv1d(1, 3, 2), nn.BatchNorm1d(3, momentum=None)
        self.second, self.out = nn.BatchNorm1d(12), nn.Linear(12, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.first(self.expand(x[:, None])))
        return self.out(self.second(h.flatten(1)))


def own_module() -> nn.Module:
    torch.manual_seed(0)
    return Convolution().double()


def trained(model: Any, method: str, batch: int = BATCH) -> dict[str, torch.Tensor]:
    learner = make_learner(model, method, batch)
    history = run_epochs(learner, 3)
    assert all("forward" not in vars(part) for part in learner.module.modules())
    risks = torch.tensor([row["risk"] for row in history], dtype=torch.float64)
    return learner.module.state_dict() | {"risks": risks}


def own_loop(*, parallel: bool) -> dict[str, torch.Tensor]:
    """A step of a training loop of one's own, with DistributedDataParallel."""
    torch.manual_seed(0)
    plain = nn.Linear(3, 1).double()
    model = nn.parallel.DistributedDataParallel(plain) if parallel else plain
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.normal(size=(2, 11, 3)))
    s, c = torch.from_numpy(rng.normal(0.5, 1.0, (2, 11)))
    ranks = Ranks(distributed.get_rank(), distributed.get_world_size()) if parallel else ALONE
    mine = ranks.part(11)
    risk = make_risk("sconfconfdiff-abs", prior=0.3)
    left, right = (model(half[mine]).squeeze(-1) for half in x)
    value = risk_over_ranks(risk, left, right, s[mine], c[mine])
    value.backward()
    assert plain.weight.grad is not None
    return {"value": value.detach(), "gradient": plain.weight.grad}


def summed(*, parallel: bool) -> dict[str, torch.Tensor]:
    """A sum over ranks and its slope: the sum is its own adjoint."""
    rank, size = (distributed.get_rank(), distributed.get_world_size()) if parallel else (0, 1)
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    total = sum_over_ranks(x * (1 + rank))
    slope = torch.autograd.grad(total.sum(), x)[0]
    expected = sum(range(1, size + 1)), size * (1 + rank)
    return {"total": total.detach() / expected[0], "slope": slope / expected[1]}


def everything() -> dict[str, dict[str, torch.Tensor]]:
    parallel = distributed.is_initialized()
    methods = {method: trained("linear", method) for method in METHODS}
    return methods | {
        "mlp": trained("mlp", "likelihood-abs"),
        "mlp-bn": trained("mlp-bn", "sconfconfdiff-abs"),
        "few pairs": trained("mlp", "sconf-relu", 20),  # a last batch of one pair
        "own module": trained(own_module(), "convex-0.3-relu"),
        "own module, few pairs": trained(own_module(), "convex-0.3-relu", 20),
        "own loop": own_loop(parallel=parallel),
        "sum": summed(parallel=parallel),
    }


def work(rank: int, size: int, folder: str, task: Callable[[], Any]) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size
    )
    torch.save(task(), Path(folder, f"{rank}.pt"))
    distributed.destroy_process_group()


def on_ranks(size: int, folder: Path, task: Callable[[], Any]) -> list[Any]:
    options = {"nprocs": size, "start_method": "forkserver"}
    multiprocessing.start_processes(work, (size, str(folder), task), **options)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(size)]


@pytest.mark.long
def test_ranks_equal_one_process(tmp_path: Path) -> None:
    alone = everything()
    for results in on_ranks(3, tmp_path, everything):
        for case, expected in alone.items():
            assert results[case].keys() == expected.keys()
            for name, value in expected.items():
                message = f"{case}, {name}"
                torch.testing.assert_close(
                    results[case][name], value, atol=1e-9, rtol=1e-9, msg=message
                )
    # Some partial risks are negative, so that corrections matter.
    for family in FAMILIES:
        ends = {
            tuple(alone[f"{family}-{fix}"]["layers.0.weight"].flatten().tolist())
            for fix in ("none", "relu", "abs")
        }
        assert len(ends) == 3
