"""Several processes with parts of each batch train as one process with all of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pairlearn.training.groups import MemoryBatches
from torch import distributed, multiprocessing, nn

from pairlearn import PairLabels, make_risk
from pairlearn.training import Fleet, Group, Member, risk_over_ranks, sum_over_ranks
from pairlearn.training.ranks import ALONE, Ranks, batch_norms

FAMILIES = ("sconf", "confdiff", "convex-0.3", "sconfconfdiff", "nonnegative", "likelihood")
METHODS = [f"{family}-{fix}" for family in FAMILIES for fix in ("none", "relu", "abs", "slope=0.5")]
METHODS += ["supervised"]
PAIRS, BATCH = 41, 16  # 16, 16 and 9: no number of ranks divides all of them


def make_fleet(model: Any = "mlp-bn", methods: list[str] = METHODS, **options: Any) -> Fleet:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * PAIRS, 5))
    pairs = np.arange(2 * PAIRS).reshape(PAIRS, 2)
    r = 1 / (1 + np.exp(-3 * x[:, 0]))
    exact = PairLabels.from_posteriors(*r[pairs].T).to_array()
    noisy = exact + rng.normal(0.7, 0.5, exact.shape)  # so that partial risks are negative
    classes = np.where(r[pairs] > 0.5, 1.0, -1.0)
    members = [
        Member(make_risk(name, prior=0.3), classes if name == "supervised" else noisy, 1e-3)
        for name in methods
    ]
    options = {"batch_size": BATCH, "device": "cpu", "precision": "float64"} | options
    return Fleet(x, [Group(pairs, members)], model, **options)


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


def trained(model: Any, epochs: int = 3, **options: Any) -> dict[str, torch.Tensor]:
    methods = METHODS if isinstance(model, str) else ["convex-0.3-relu"]
    fleet = make_fleet(model, methods, **options)
    risks: list[float] = []
    fleet.fit(epochs, progress=lambda _, risk: risks.append(risk))
    modules = [fleet.module(0, m) for m in range(len(methods))]
    assert all("forward" not in vars(norm) for norm in batch_norms(modules[0]))
    states = {
        f"{m}/{k}": v for m, module in enumerate(modules) for k, v in module.state_dict().items()
    }
    return states | {"risks": torch.tensor(risks, dtype=torch.float64)}


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
    return {
        "mlp": trained("mlp"),
        "mlp-bn": trained("mlp-bn"),
        "few pairs": trained("mlp-bn", batch_size=20),  # a last batch of one pair
        "own module": trained(own_module()),
        "own module, few pairs": trained(own_module(), batch_size=20),
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
        fixes = [METHODS.index(f"{family}-{fix}") for fix in ("none", "relu", "abs")]
        ends = {tuple(alone["mlp"][f"{m}/layers.3.weight"].flatten().tolist()) for m in fixes}
        assert len(ends) == 3


@pytest.mark.parametrize("pads", [True, False])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_parts_of_batches_are_the_batches(size: int, *, pads: bool) -> None:
    tensors = [torch.zeros(1, PAIRS, dtype=torch.int64)] * 2 + [torch.zeros(1, 1, PAIRS)] * 2
    whole = list(MemoryBatches(tensors, [0], 20, ALONE, pads=pads).epoch(0))
    parts = [
        list(MemoryBatches(tensors, [0], 20, Ranks(rank, size), pads=pads).epoch(0))
        for rank in range(size)
    ]
    for step, (chosen, weight) in enumerate(whole):
        mine = [(part[step][0][0], part[step][1]) for part in parts]
        together = torch.cat([positions[w > 0] for positions, w in mine])
        assert together.tolist() == chosen[0, weight > 0].tolist()
        assert all(len(w) for _, w in mine)
        if pads:
            assert len({len(w) for _, w in mine}) == 1
