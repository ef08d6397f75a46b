"""Grids on Slurm, by way of jobs on this machine: same rows, lost jobs, files that go."""

import os
import signal
import stat
from pathlib import Path

import pytest
import torch

import cluster_work
import pairlearn
from pairlearn.data import load
from pairlearn.paper import GRIDS, RunStore
from pairlearn.paper.benchmark import Benchmark, Inputs, train_fleet
from pairlearn.paper.execute import execute
from pairlearn.paper.on_slurm import Slurm, _Bundle
from pairlearn.paper.workers import LOSSES, ClusterError, open_cluster

pytest.importorskip("sklearn")
core = pytest.importorskip("submitit.core.core")


@pytest.fixture(autouse=True)
def jobs_on_this_machine(monkeypatch, tmp_path):
    """They can import the work of these tests, and nobody waits for slow disks."""
    path = [Path(pairlearn.__file__).parents[1], Path(__file__).parent]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, path)))
    monkeypatch.setenv("PAIRLEARN_TEST_TRACES", str(tmp_path / "traces"))
    monkeypatch.setattr(core.Job, "_results_timeout_s", 0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def inputs():
    benchmark = Benchmark(load("digits"), "linear", "cpu", "float32")
    return Inputs(benchmark, benchmark.annotate([(0, None)]))


def grid(methods):
    choice = {"seeds": [0], "priors": [0.2], "methods": methods, "epochs": 2, "model": "linear"}
    return GRIDS["accuracy"].select(datasets=["digits"], **choice).runs()


def test_the_rows_of_a_local_run(tmp_path, capfd):
    runs = grid(["likelihood-abs", "confdiff-none", "supervised"])
    stores = RunStore(tmp_path / "local.jsonl"), RunStore(tmp_path / "slurm.jsonl")
    for run, found in execute(runs, workers=1):
        stores[0].append(run, found)
    with open_cluster("slurm:local", ["jobs=1"], tmp_path / "jobs") as cluster:
        for run, found in execute(runs, cluster=cluster):
            stores[1].append(run, found)
        (folder,) = (tmp_path / "jobs").iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(stores[1]) == 3
    assert stores[1].same_rows(stores[0])
    assert not (tmp_path / "jobs").exists()
    assert capfd.readouterr().out == ""


def test_a_killed_job_is_tried_again(tmp_path, inputs):
    fleets = [[[run]] for run in grid(["likelihood-abs", "confdiff-none", "supervised"])]
    mark = tmp_path / "killed"
    tasks = [(fleets[0], None), (fleets[1], str(mark)), (fleets[2], None)]
    with Slurm(tmp_path / "jobs", "local", jobs=1) as cluster:
        found = list(cluster.run(cluster_work.train_and_die_once, inputs, tasks))
    assert mark.exists()
    expected = [train_fleet(inputs, fleet) for fleet in fleets]
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_an_exception_is_told_and_the_logs_are_kept(tmp_path, inputs):
    (run,) = grid(["supervised"])
    with (
        pytest.raises(ClusterError) as caught,
        Slurm(tmp_path / "jobs", "local") as cluster,
    ):
        list(cluster.run(cluster_work.refuse, inputs, [[[run]]]))
    assert run.key() in str(caught.value)
    assert "ValueError: the weights are NaN" in str(caught.value)
    assert Path(os.environ["PAIRLEARN_TEST_TRACES"]).read_text() == "tried\n"
    assert list((tmp_path / "jobs").rglob("*.out"))


@pytest.mark.long
def test_a_task_that_always_kills_its_job_is_given_up(tmp_path, inputs):
    traces = tmp_path / "all"
    with (
        pytest.raises(ClusterError, match=f"was lost {LOSSES + 1} times with its job; logs are in"),
        Slurm(tmp_path / "jobs", "local") as cluster,
    ):
        list(cluster.run(cluster_work.die, inputs, [str(traces)]))
    assert traces.read_text() == "tried\n" * (LOSSES + 1)


def test_lost_jobs_are_halved():
    """So that a job whose time was too short comes to an end some day."""
    assert _Bundle([1, 2, 3]).again() == [_Bundle([1, 2], 1), _Bundle([3], 1)]
    assert _Bundle([1], 2).again() == [_Bundle([1], 3)]


def test_this_machine_runs_a_job_a_core_and_slurm_queues_them_all(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    waiting = [_Bundle([k]) for k in range(10)]
    here, there = Slurm(tmp_path, "local"), Slurm(tmp_path)
    now, later = here._take(waiting, running=1)
    assert (len(now), len(later)) == (2, 8)
    assert here._take(waiting, running=3) == ([], waiting)
    assert there._take(waiting, running=50) == (waiting, [])


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.default_int_handler])
def test_what_is_under_way_is_cancelled(tmp_path, inputs, handler, request):
    before = signal.signal(signal.SIGINT, handler)  # ignored by what a shell has in the background
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    marks = [tmp_path / name for name in ("short", "long")]
    tasks = [(0.0, str(marks[0])), (600.0, str(marks[1]))]
    with Slurm(tmp_path / "jobs", "local") as cluster:
        under_way = cluster.run(cluster_work.sleep, inputs, tasks)
        next(under_way)
        running = [job for job, _ in under_way.gi_frame.f_locals["running"]]
        under_way.close()
    for job in running:
        job._process.wait(timeout=60)
    assert [mark.exists() for mark in marks] == [True, False]
