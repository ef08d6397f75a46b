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
    Cluster,
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


GRID = [
    make(method, seed=seed)
    for seed in range(3)
    for method in ("likelihood-abs", "confdiff-abs", "supervised", "sconf-abs")
]


# --- names and options ----------------------------------------------------------------------


def test_names(tmp_path):
    assert isinstance(open_cluster(), Processes)
    assert open_cluster("local", ["workers=3"]).workers == 3
    assert open_cluster("ray").address is None
    assert open_cluster("ray:10.0.0.1:6379").address == "10.0.0.1:6379"
    assert open_cluster("ray:auto").address == "auto"
    ray = open_cluster("ray", ["cpus=2", "gpus=0"])
    assert (ray.cpus, ray.gpus) == (2, 0)
    slurm = open_cluster("slurm", ["jobs=7", "time=90", "mem=16G", "gpus=2"], tmp_path)
    assert (slurm.where, slurm.jobs, slurm.folder.parent) == ("slurm", 7, tmp_path)
    assert slurm.parameters == {
        "timeout_min": 90, "cpus_per_task": 1, "slurm_mem": "16G", "gpus_per_node": 2
    }  # fmt: skip
    elsewhere = open_cluster("slurm:local", [f"folder={tmp_path}/own"])
    assert (elsewhere.where, elsewhere.folder.parent) == ("local", tmp_path / "own")


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
    base = ["run", "accuracy", "--datasets", "digits", "--seeds", "1"]
    done = CliRunner().invoke(bench.app, [*base, "--cluster", "mesos"])
    assert done.exit_code == 2
    assert done.stderr.startswith("pairlearn bench run: cluster 'mesos' is unknown; choose local")
    done = CliRunner().invoke(bench.app, [*base, "--cluster-option", "x=1"])
    assert "cluster option 'x' is unknown to local" in done.stderr
    done = CliRunner().invoke(bench.app, [*base, "--cluster", "ray:127.0.0.1:1"])
    assert done.exit_code == 2
    assert done.stderr.startswith("pairlearn bench run: no Ray cluster answers at '127.0.0.1:1'")
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
    with (
        pytest.raises(ClusterError, match=r"is not HOST:PORT|no Ray cluster answers"),
        Ray(address),
    ):
        pass


def test_an_address_where_nothing_listens():
    with socket.socket() as taken:  # bound, not listening: nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"answers at '{address}'"), Ray(address):
            pass


def test_slurm_where_there_is_none(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="`sbatch` is not on this machine"), Slurm(tmp_path):
        pass


def test_devices_follow_what_jobs_ask_for(tmp_path):
    assert Slurm(tmp_path).device("auto") == "cpu"
    for options in ({"gpus": "1"}, {"gres": "gpu:a100:1"}):
        assert Slurm(tmp_path, options=options).device("auto") == "cuda"
        assert Slurm(tmp_path, options=options).device("cpu") == "cpu"
    with pytest.raises(ClusterError, match="--cluster-option gpus=1"):
        Slurm(tmp_path).device("cuda")


# --- failures -------------------------------------------------------------------------------


def test_a_failure_names_the_run_and_what_was_raised():
    def work(inputs, task):
        raise ValueError("NaN in row 3")

    fleet = [[make(seed=5)]]
    with pytest.raises(ClusterError) as caught:
        checked(attempt(work, None, fleet), fleet)
    words = str(caught.value)
    assert make(seed=5).key() in words
    assert "ValueError: NaN in row 3" in words
    assert "in work" in words, "where it was raised"
    assert "3 runs together" in describe([[make(), make("sconf-abs")], [make(seed=1)]])
    assert "annotators" in describe([(0, None)])


def test_a_lost_worker_is_not_a_failure():
    def work(inputs, task):
        raise TimeoutError

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


def fleet_sizes(cluster: Cluster, runs=GRID, **options):
    found = dict(execute(runs, cluster=cluster, **options))
    assert set(found) == set(runs)
    *_, fleets = cluster.trained
    return [[len(group) for group in fleet] for fleet in fleets]


def test_measured_memory_cuts_the_fleets():
    plenty = Memory(1 * GIB, 1 * GIB, 1000 * GIB)
    cluster = AsIfCuda(plenty)
    assert fleet_sizes(cluster) == [[4, 4, 4]]
    assert len(cluster.measured) == 1, "once for a data set"
    # (0.8 · 12 − 1) / 1 = 8.6 models, so 8.
    assert fleet_sizes(AsIfCuda(Memory(1 * GIB, 1 * GIB, 12 * GIB))) == [[4, 4], [4]]
    # The smallest device of a cluster decides: (0.8 · 4 − 1) / 1 = 2.2.
    small = Memory(1 * GIB, 1 * GIB, 4 * GIB)
    assert fleet_sizes(AsIfCuda(plenty, small, plenty)) == [[2]] * 6


def test_the_plan_is_for_the_whole_experiment():
    """What is missing trains in the company it would have had."""
    cluster = AsIfCuda(Memory(1 * GIB, 1 * GIB, 12 * GIB))
    part = dict(execute([GRID[5]], among=GRID, cluster=cluster))
    assert set(part) == {GRID[5]}
    assert cluster.trained[-1] == [[GRID[:4], GRID[4:8]]]
    assert part[GRID[5]] == dict(execute(GRID, cluster=cluster))[GRID[5]]


def test_the_largest_runs_are_measured():
    cluster = AsIfCuda(Memory(1 * GIB, 1 * GIB, 100 * GIB))
    runs = [make(m, fraction=f) for f in (0.5, 1.0) for m in ("supervised", "likelihood-abs")]
    dict(execute(runs, cluster=cluster))
    (fleet,) = cluster.measured
    assert {run.fraction for group in fleet for run in group} == {1.0}


def test_progress_counts_what_trains_again():
    seen = []
    cluster = AsIfCuda(Memory(1 * GIB, 1 * GIB, 12 * GIB))
    list(execute(GRID[:1], among=GRID, cluster=cluster, progress=lambda *r: seen.append(r)))
    assert seen[-1][:2] == (8, 8), "eight models of one epoch"


@pytest.mark.skipif(torch.cuda.is_available(), reason="of a machine without a GPU")
def test_without_a_gpu_nothing_is_measured(monkeypatch):
    def never(*_):
        pytest.fail("measured")

    monkeypatch.setattr(planning, "measure_memory", never)
    monkeypatch.setattr(Benchmark, "peak_memory", never)
    monkeypatch.setattr(Processes, "everywhere", never)
    assert len(dict(execute(GRID[:2], workers=1))) == 2


def test_runs_that_train_alone_are_not_measured():
    cluster = AsIfCuda()
    inputs = Inputs(Benchmark(load("digits"), "linear", "cuda", "float32"))
    assert planning.largest_fleet(cluster, inputs, GRID[:1]) == planning.MODELS_ON_CUDA
    assert not cluster.measured


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
