"""Where fleets are trained: names, plans by measured memory, and what goes wrong."""

import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from pairlearn.cli import bench
from pairlearn.data import load
from pairlearn.paper import GRIDS, Run
from pairlearn.paper import execute as planning
from pairlearn.paper.benchmark import Benchmark, Inputs
from pairlearn.paper.execute import Memory, execute, models_that_fit, small_parts
from pairlearn.paper.on_ray import Ray
from pairlearn.paper.on_slurm import Slurm
from pairlearn.paper.workers import (
    ClusterError,
    Failure,
    Processes,
    attempt,
    checked,
    describe,
    open_cluster,
)

GIB = 2**30


def make(method="likelihood-abs", **fields):
    fields = {"prior": 0.2, "seed": 0, "pairs": 60, "epochs": 1, "batch_size": 32} | fields
    return Run(dataset="digits", method=method, model="linear", window=1, **fields)


METHODS = ("likelihood-abs", "confdiff-abs", "supervised", "sconf-abs")
GRID = [make(method, seed=seed) for seed in range(3) for method in METHODS]


# --- names, options and refusals ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "kind", "has"),
    [
        ("local", [], Processes, {"workers": None}),
        ("local", ["workers=3"], Processes, {"workers": 3}),
        ("ray", ["cpus=2", "gpus=0"], Ray, {"address": None, "cpus": 2, "gpus": 0}),
        ("ray:10.0.0.1:6379", [], Ray, {"address": "10.0.0.1:6379"}),
        ("ray:auto", [], Ray, {"address": "auto"}),
        ("slurm:local", ["jobs=7"], Slurm, {"where": "local", "jobs": 7}),
    ],
)
def test_names(name, options, kind, has):
    cluster = open_cluster(name, options)
    assert isinstance(cluster, kind)
    assert {key: getattr(cluster, key) for key in has} == has


def test_what_jobs_of_slurm_ask_for(tmp_path):
    slurm = open_cluster("slurm", ["time=90", "mem=16G", "gpus=2"], tmp_path)
    assert slurm.folder.parent == tmp_path
    assert slurm.parameters == {
        "timeout_min": 90, "cpus_per_task": 1, "slurm_mem": "16G", "gpus_per_node": 2
    }  # fmt: skip
    assert open_cluster("slurm", [f"folder={tmp_path}/own"]).folder.parent == tmp_path / "own"
    assert Slurm(tmp_path).device("auto") == "cpu"
    for options in ({"gpus": "1"}, {"gres": "gpu:a100:1"}):
        assert Slurm(tmp_path, options=options).device("auto") == "cuda"
        assert Slurm(tmp_path, options=options).device("cpu") == "cpu"
    with pytest.raises(ClusterError, match="--cluster-option gpus=1"):
        Slurm(tmp_path).device("cuda")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("mesos", [], "'mesos' is unknown; choose local, ray, ray:HOST:PORT"),
        ("local:2", [], "'local:2' is unknown"),
        ("ray:", [], "'ray:' is unknown"),
        ("slurm:far", [], "'slurm:far' is unknown"),
        ("slurm", ["partition"], "'partition' is not KEY=VALUE"),
        ("slurm", ["time="], "'time=' is not KEY=VALUE"),
        ("slurm", ["tme=60"], "'tme' is unknown to slurm; it knows account, constraint"),
        ("slurm", ["time=1:00"], "time=1:00 must be a whole number"),
        ("slurm", ["jobs=0"], "jobs must be 1 or more; got 0"),
        ("ray", ["workers=2"], "'workers' is unknown to ray"),
        ("ray", ["cpus=0"], "cpus must be 1 or more; got 0"),
        ("ray:auto", ["cpus=2"], "cpus=2 is for a cluster that is started, not joined"),
        ("local", ["workers=two"], "workers=two must be a whole number"),
        ("local", ["workers=0"], "workers must be 1 or more"),
    ],
)
def test_what_is_refused(name, options, words):
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        open_cluster(name, options)


def test_the_command_refuses_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options, words in (
        (("--cluster", "mesos"), "cluster 'mesos' is unknown; choose local"),
        (("--cluster-option", "x=1"), "cluster option 'x' is unknown to local"),
        (("--cluster", "ray:127.0.0.1:1"), "no Ray cluster answers at '127.0.0.1:1'"),
    ):
        line = ["run", "accuracy", "--datasets", "digits", "--seeds", "1", *options]
        done = CliRunner().invoke(bench.app, line)
        assert done.exit_code == 2
        assert done.stderr.startswith(f"pairlearn bench run: {words}")
    assert not list(tmp_path.rglob("*.jobs"))


@pytest.mark.parametrize(
    ("package", "cluster", "words"),
    [
        ("ray", Ray(), r'needs ray: .* pip install "\.\[ray\]"'),
        ("submitit", Slurm(Path("jobs")), r'needs submitit: .* pip install "\.\[slurm\]"'),
    ],
)
def test_a_missing_package_is_named(monkeypatch, package, cluster, words):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=words), cluster:
        pass


@pytest.mark.parametrize("address", ["here", "here:port", "ray://10.0.0.1:10001", "a:99999999"])
def test_an_address_that_is_none(address):
    words = r"is not HOST:PORT|no Ray cluster answers"
    with pytest.raises(ClusterError, match=words), Ray(address):
        pass


def test_clusters_that_are_not_there(tmp_path, monkeypatch):
    with socket.socket() as taken:  # bound, not listening: nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"answers at '{address}'"), Ray(address):
            pass
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="`sbatch` is not on this machine"), Slurm(tmp_path):
        pass


def test_a_failure_names_the_run_and_what_was_raised():
    def work(inputs, task):
        raise TimeoutError("NaN in row 3")

    fleet = [[make(seed=5)]]
    with pytest.raises(ClusterError) as caught:
        checked(attempt(work, None, fleet), fleet)
    for words in (make(seed=5).key(), "TimeoutError: NaN in row 3", "in work"):
        assert words in str(caught.value)
    assert "3 runs together" in describe([[make(), make("sconf-abs")], [make(seed=1)]])
    assert "annotators" in describe([(0, None)])
    # A lost worker is not a failure.
    with pytest.raises(TimeoutError):
        attempt(work, None, 0, (TimeoutError,))
    assert isinstance(attempt(work, None, 0), Failure)


# --- plans ----------------------------------------------------------------------------------


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
    with pytest.raises(ClusterError, match=r"takes 300 MiB and 80 MiB of the device may be used"):
        models_that_fit(Memory(100 * 2**20, 200 * 2**20, 100 * 2**20))


def test_small_parts_of_a_fleet():
    few, many = small_parts([GRID[:4], GRID[4:8], GRID[8:], GRID[8:]])
    assert (few, many) == ([GRID[:4]], [GRID[:4], GRID[4:8], GRID[8:]])
    few, many = small_parts([GRID[:2]])
    assert (few, many) == ([GRID[:1]], [GRID[:2]])
    few, many = small_parts([[make(seed=0, weight_decay=w) for w in range(100)]])
    assert (len(few[0]), len(many[0])) == (16, 48)


class AsIfCuda(Processes):
    """A machine that says it has CUDA, and trains on its CPU."""

    def __init__(self, *memories):
        super().__init__(workers=1)
        self.memories, self.measured, self.trained = memories, [], []

    def device(self, asked):
        return "cuda"

    def everywhere(self, work, inputs, task):
        assert work is planning.measure_memory
        self.measured.append(task)
        return list(self.memories)

    def run(self, work, inputs, tasks):
        self.trained.append(list(tasks))
        benchmark = replace(inputs.benchmark, device="cpu")
        return super().run(work, replace(inputs, benchmark=benchmark), tasks)


PLENTY, SOME, LITTLE = (Memory(1 * GIB, 1 * GIB, free * GIB) for free in (1000, 12, 4))


@pytest.mark.parametrize(
    ("memories", "sizes"),
    [
        ([PLENTY], [[4, 4, 4]]),
        ([SOME], [[4, 4], [4]]),  # (0.8 · 12 − 1) / 1 = 8.6 models, so 8
        ([PLENTY, LITTLE, PLENTY], [[2]] * 6),  # the smallest decides: (0.8 · 4 − 1) / 1 = 2.2
    ],
)
def test_measured_memory_cuts_the_fleets(memories, sizes):
    cluster = AsIfCuda(*memories)
    assert set(dict(execute(GRID, cluster=cluster))) == set(GRID)
    assert [[len(group) for group in fleet] for fleet in cluster.trained[-1]] == sizes
    assert len(cluster.measured) == 1, "once for a data set"


def test_the_plan_is_for_the_whole_experiment():
    """What is missing trains in the company it would have had."""
    cluster, seen = AsIfCuda(SOME), []
    options = {"cluster": cluster, "progress": lambda *report: seen.append(report)}
    part = dict(execute([GRID[5]], among=GRID, **options))
    assert set(part) == {GRID[5]}
    assert cluster.trained[-1] == [[GRID[:4], GRID[4:8]]]
    assert seen[-1][:2] == (8, 8), "eight models of one epoch"
    assert part[GRID[5]] == dict(execute(GRID, cluster=cluster))[GRID[5]]


def test_the_largest_runs_are_measured_and_those_that_train_alone_not(monkeypatch):
    cluster = AsIfCuda(PLENTY)
    runs = [make(m, fraction=f) for f in (0.5, 1.0) for m in ("supervised", "likelihood-abs")]
    dict(execute(runs, cluster=cluster))
    (fleet,) = cluster.measured
    assert {run.fraction for group in fleet for run in group} == {1.0}
    inputs = Inputs(Benchmark(load("digits"), "linear", "cuda", "float32"))
    assert planning.largest_fleet(cluster, inputs, GRID[:1]) == planning.MODELS_ON_CUDA
    assert len(cluster.measured) == 1
    if not torch.cuda.is_available():
        monkeypatch.setattr(Processes, "everywhere", None)
        assert len(dict(execute(GRID[:2], workers=1))) == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_measured_on_a_gpu():
    """The prediction for a larger fleet is not below what it takes."""
    runs = GRIDS["accuracy"].select(datasets=["digits"], priors=[0.2], epochs=1).runs()
    inputs = Inputs(Benchmark(load("digits"), "mlp", "cuda", "float32"))
    (fleet,) = planning.plan_fleets(runs, 1024)
    memory = planning.measure_memory(inputs, fleet)
    posteriors = inputs.benchmark.annotate([(seed, None) for seed in range(5)])
    taken = inputs.benchmark.peak_memory(fleet, posteriors)
    predicted = memory.fixed + memory.per_model * planning.places(fleet)
    assert 0.5 * predicted < taken < 1.1 * predicted
