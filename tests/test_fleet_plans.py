"""Which runs train together: fleets cut by the memory that is measured."""

import pytest
import torch

from pairlearn.data import load
from pairlearn.paper import GRIDS, Run
from pairlearn.paper import execute as planning
from pairlearn.paper.benchmark import Benchmark
from pairlearn.paper.execute import Memory, execute, models_that_fit, small_parts

GIB = 2**30


def make(method="likelihood-abs", **fields):
    fields = {"prior": 0.2, "seed": 0, "pairs": 60, "epochs": 1, "batch_size": 32} | fields
    return Run(dataset="digits", method=method, model="linear", window=1, **fields)


METHODS = ("likelihood-abs", "confdiff-abs", "supervised", "sconf-abs")
GRID = [make(method, seed=seed) for seed in range(3) for method in METHODS]


@pytest.mark.parametrize(
    ("fixed", "per_model", "free", "models"),
    [
        (0.0, 1.0, 10.0, 8),
        (0.0, 1.0, 9.9, 4),  # 0.8 · 9.9 = 7.92
        (4.0, 1.0, 10.0, 4),
        (7.0, 1.0, 10.0, 1),
        (0.2 * GIB, 40 * 2**20, 8 * GIB, 128),  # (6.4 − 0.2) GiB / 40 MiB = 158.7
        (0.2 * GIB, 40 * 2**20, 139 * GIB, 1024),  # never more
    ],
)
def test_models_that_fit(fixed, per_model, free, models):
    assert models_that_fit(Memory(fixed, per_model, free)) == models


def test_a_device_that_is_too_small_is_refused():
    with pytest.raises(ValueError, match=r"takes 300 MiB and 80 MiB of the device may be used"):
        models_that_fit(Memory(100 * 2**20, 200 * 2**20, 100 * 2**20))


def test_small_parts_of_a_fleet():
    few, many = small_parts([GRID[:4], GRID[4:8], GRID[8:], GRID[8:]])
    assert (few, many) == ([GRID[:4]], [GRID[:4], GRID[4:8], GRID[8:]])
    few, many = small_parts([GRID[:2]])
    assert (few, many) == ([GRID[:1]], [GRID[:2]])
    few, many = small_parts([[make(seed=0, weight_decay=w) for w in range(100)]])
    assert (len(few[0]), len(many[0])) == (16, 48)


@pytest.fixture
def as_if_cuda(monkeypatch):
    """A machine that says it has CUDA with this memory, and trains on its CPU."""

    class OnCpu(Benchmark):
        annotator_batches = lambda self, runs: self.here().annotator_batches(runs)  # noqa: E731
        annotate = lambda self, batch: self.here().annotate(batch)  # noqa: E731

        def here(self):
            return Benchmark(self.dataset, self.model, "cpu", self.precision)

        def train(self, fleet, *rest):
            trained.append(fleet)
            return self.here().train(fleet, *rest)

    def start(memory):
        def measure(benchmark, fleet):
            measured.append(fleet)
            return memory

        monkeypatch.setattr(planning, "choose_device", torch.device)
        monkeypatch.setattr(planning, "Benchmark", OnCpu)
        monkeypatch.setattr(planning, "measure_memory", measure)
        return trained, measured

    trained, measured = [], []
    return start


PLENTY, SOME, LITTLE = (Memory(1 * GIB, 1 * GIB, free * GIB) for free in (1000, 12, 4))


@pytest.mark.parametrize(
    ("memory", "sizes"),
    [
        (PLENTY, [[4, 4, 4]]),
        (SOME, [[4, 4], [4]]),  # (0.8 · 12 − 1) / 1 = 8.6 models, so 8
        (LITTLE, [[2]] * 6),  # (0.8 · 4 − 1) / 1 = 2.2
    ],
)
def test_measured_memory_cuts_the_fleets(as_if_cuda, memory, sizes):
    trained, measured = as_if_cuda(memory)
    assert set(dict(execute(GRID, device="cuda"))) == set(GRID)
    assert [[len(group) for group in fleet] for fleet in trained] == sizes
    assert len(measured) == 1, "once for a data set"


def test_the_plan_is_for_the_whole_experiment(as_if_cuda):
    """What is missing trains in the company it would have had."""
    (trained, _), seen = as_if_cuda(SOME), []
    part = dict(
        execute([GRID[5]], among=GRID, device="cuda", progress=lambda *report: seen.append(report))
    )
    assert set(part) == {GRID[5]}
    assert trained == [[GRID[:4], GRID[4:8]]]
    assert seen[-1][:2] == (8, 8), "eight models of one epoch"
    assert part[GRID[5]] == dict(execute(GRID, device="cuda"))[GRID[5]]


def test_the_largest_runs_are_measured_and_those_that_train_alone_not(as_if_cuda):
    _, measured = as_if_cuda(PLENTY)
    runs = [make(m, fraction=f) for f in (0.5, 1.0) for m in ("supervised", "likelihood-abs")]
    dict(execute(runs, device="cuda"))
    (fleet,) = measured
    assert {run.fraction for group in fleet for run in group} == {1.0}
    benchmark = Benchmark(load("digits"), "linear", "cuda", "float32")
    assert planning.largest_fleet(benchmark, GRID[:1]) == planning.MODELS_ON_CUDA
    assert len(measured) == 1
    assert len(dict(execute(GRID[:2], device="cpu", workers=1))) == 2
    assert len(measured) == 1, "on a CPU nothing is"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_measured_on_a_gpu():
    """The prediction for a larger fleet is not below what it takes."""
    runs = GRIDS["accuracy"].select(datasets=["digits"], priors=[0.2], epochs=1).runs()
    benchmark = Benchmark(load("digits"), "mlp", "cuda", "float32")
    (fleet,) = planning.plan_fleets(runs, 1024)
    memory = planning.measure_memory(benchmark, fleet)
    posteriors = benchmark.annotate([(seed, None) for seed in range(5)])
    taken = benchmark.peak_memory(fleet, posteriors)
    predicted = memory.fixed + memory.per_model * planning.places(fleet)
    assert 0.5 * predicted < taken < 1.1 * predicted
