"""Which runs train together: fleets cut by the memory that they take."""

import pytest
import torch

from pairlearn_bench import GRIDS, Run
from pairlearn_bench import execute as planning
from pairlearn_bench.benchmark import Benchmark
from pairlearn_bench.data import load
from pairlearn_bench.execute import execute


def make(method="likelihood-abs", **fields):
    defaults = {"prior": 0.2, "seed": 0, "pairs": 60, "epochs": 1, "batch_size": 32}
    fields = defaults | {"model": "linear"} | fields
    return Run(dataset="digits", method=method, window=1, **fields)


METHODS = ("likelihood-abs", "confdiff-abs", "supervised", "sconf-abs")
GRID = [make(method, seed=seed) for seed in range(3) for method in METHODS]


def digits(device="cuda"):
    return Benchmark(load("digits"), "linear", device, "float32")


def test_fleets_are_a_power_of_two_that_fits_the_largest_runs():
    def fits(free, runs=GRID, device="cuda"):
        return planning.largest_fleet(digits(device), runs, free)

    sizes = [fits(free * 2**20) for free in (2, 20, 200, 2000, 200_000)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1] == 1024
    assert all(size.bit_count() == 1 for size in sizes)
    assert fits(20 * 2**20, [*GRID, make(pairs=60_000)]) < fits(20 * 2**20)
    assert fits(20 * 2**20, [make(batch_size=512)]) < fits(20 * 2**20)
    assert fits(2**40, device="cpu") == 1
    sizes = [fits(2**40, [make(model=name)]) for name in ("resnet34", "resnet32")]
    assert sizes == [1, 20], "one ResNet-34 fills a GPU"
    with pytest.raises(ValueError, match=r"takes [\d,]+ MiB and 0 MiB of the device may be used"):
        fits(100)


@pytest.fixture
def as_if_cuda(monkeypatch):
    """A machine that says it has CUDA, and trains on its CPU."""
    trained = []

    class OnCpu(Benchmark):
        posteriors = lambda self, runs: digits("cpu").posteriors(runs)  # noqa: E731

        def train(self, fleet, **options):
            trained.append(fleet)
            return digits("cpu").train(fleet, **options)

    monkeypatch.setattr(planning, "choose_device", torch.device)
    monkeypatch.setattr(planning, "Benchmark", OnCpu)
    return trained


@pytest.mark.parametrize(
    ("most", "sizes"), [(1024, [[4, 4, 4]]), (8, [[4, 4], [4]]), (2, [[2]] * 6)]
)
def test_memory_cuts_the_fleets(as_if_cuda, monkeypatch, most, sizes):
    monkeypatch.setattr(planning, "largest_fleet", lambda *_: most)
    assert set(dict(execute(GRID, device="cuda"))) == set(GRID)
    assert [[len(group) for group in fleet] for fleet in as_if_cuda] == sizes


def test_the_plan_is_for_the_whole_experiment(as_if_cuda, monkeypatch):
    """What is missing trains in the company it would have had."""
    monkeypatch.setattr(planning, "largest_fleet", lambda *_: 8)
    seen = []
    options = {"device": "cuda", "progress": lambda *report: seen.append(report)}
    part = dict(execute([GRID[5]], among=GRID, **options))
    assert set(part) == {GRID[5]}
    assert as_if_cuda == [[GRID[:4], GRID[4:8]]]
    assert seen[-1][:2] == (8, 8), "eight models of one epoch"
    assert part[GRID[5]] == dict(execute(GRID, device="cuda"))[GRID[5]]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_a_fleet_takes_less_than_it_is_planned_with():
    runs = GRIDS["accuracy"].select(datasets=["digits"], priors=[0.2], epochs=1).runs()
    benchmark = Benchmark(load("digits"), "mlp", "cuda", "float32")
    (fleet,) = planning.plan_fleets(runs, 1024)
    posteriors = benchmark.annotate([(seed, None) for seed in range(5)])
    before = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    benchmark.train(fleet, posteriors)
    taken = torch.cuda.max_memory_reserved() - before
    assert taken < len(runs) * planning._bytes_of_a_model(benchmark, runs[0])
