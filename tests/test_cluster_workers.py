"""Grids on Ray and on Slurm's stand-in: the rows of a local run, whatever happens to workers."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import cluster_work
import pairlearn
from pairlearn.cli import bench
from pairlearn.data import load
from pairlearn.paper import GRIDS, RunStore
from pairlearn.paper.benchmark import Benchmark, Inputs, train_fleet
from pairlearn.paper.execute import execute
from pairlearn.paper.on_ray import Ray
from pairlearn.paper.on_slurm import Slurm, _Bundle
from pairlearn.paper.workers import LOSSES, ClusterError

METHODS = ["likelihood-abs", "sconfconfdiff-abs", "confdiff-none", "supervised"]
SOURCE = str(Path(pairlearn.__file__).parents[1])


@pytest.fixture(scope="module", autouse=True)
def surroundings(tmp_path_factory):
    """Workers have one thread and can import the work of these tests."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, str(Path(__file__).parent)]))
        patch.setenv("PAIRLEARN_TEST_TRACES", str(tmp_path_factory.mktemp("work") / "traces"))
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def ray():
    if find_spec("ray") is None:  # imported by the cluster, which has its say before
        pytest.skip("needs ray")
    with Ray(cpus=2) as cluster:
        yield cluster


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    core = pytest.importorskip("submitit.core.core")
    monkeypatch.setattr(core.Job, "_results_timeout_s", 0)  # nobody waits for slow disks
    return Slurm(tmp_path / "jobs", "local", jobs=1)


@pytest.fixture(params=["ray", "slurm"])
def cluster(request):
    """Either; that of Ray is entered once for all tests."""
    found = request.getfixturevalue(request.param)
    if request.param == "ray":
        yield found
        return
    with found:
        yield found
    assert not found.folder.parent.exists()


@pytest.fixture(scope="module")
def inputs():
    benchmark = Benchmark(load("digits"), "linear", "cpu", "float32")
    return Inputs(benchmark, benchmark.annotate([(0, None)]))


def grid(methods=METHODS, epochs=2):
    choice = {"seeds": [0], "priors": [0.2], "methods": methods, "epochs": epochs}
    return GRIDS["accuracy"].select(datasets=["digits"], model="linear", **choice).runs()


def stored(path, runs, **options) -> RunStore:
    store = RunStore(path)
    for run, found in execute(runs, **options):
        store.append(run, found)
    return store


# --- both ---------------------------------------------------------------------------------------


def test_the_rows_of_a_local_run(cluster, tmp_path, capfd):
    seen = []
    here = stored(tmp_path / "local.jsonl", grid(), workers=1)
    options = {"cluster": cluster, "progress": lambda *report: seen.append(report)}
    there = stored(tmp_path / "there.jsonl", grid(), **options)
    assert len(there) == 4
    assert there.same_rows(here)
    assert [report[0] for report in seen] == [0, 2, 4, 6, 8], "epochs, one fleet at a time"
    assert capfd.readouterr().out == ""


def test_what_is_lost_with_its_worker_is_done_again(cluster, inputs, tmp_path):
    fleets = [[[run]] for run in grid(METHODS[1:])]
    mark = tmp_path / "killed"
    tasks = [(fleets[0], None), (fleets[1], str(mark)), (fleets[2], None)]
    found = list(cluster.run(cluster_work.train_and_die_once, inputs, tasks))
    assert mark.exists()
    assert sorted(map(str, found)) == sorted(str(train_fleet(inputs, fleet)) for fleet in fleets)


def test_an_exception_is_told_and_not_tried_again(cluster, inputs):
    traces = Path(os.environ["PAIRLEARN_TEST_TRACES"])
    traces.unlink(missing_ok=True)
    (run,) = grid(["supervised"])
    with pytest.raises(ClusterError) as caught:
        list(cluster.run(cluster_work.refuse, inputs, [[[run]]]))
    for words in (run.key(), "ValueError: the weights are NaN", "in refuse"):
        assert words in str(caught.value)
    assert traces.read_text() == "tried\n"


@pytest.mark.long
def test_a_task_that_always_kills_its_worker_is_given_up(cluster, inputs, tmp_path):
    traces = tmp_path / "traces"
    with pytest.raises(ClusterError, match=f"was lost {LOSSES + 1} times with its"):
        list(cluster.run(cluster_work.die, inputs, [str(traces)]))
    assert traces.read_text() == "tried\n" * (LOSSES + 1)


# --- Slurm --------------------------------------------------------------------------------------


def test_files_of_jobs_are_private_and_go_unless_a_training_failed(slurm):
    with slurm:
        assert stat.S_IMODE(slurm.folder.stat().st_mode) == 0o700
    assert not slurm.folder.parent.exists()
    with pytest.raises(ClusterError), slurm:
        raise ClusterError("the logs are wanted")
    assert slurm.folder.exists()


def test_lost_jobs_are_halved():
    """So that a job whose time was too short comes to an end some day."""
    assert _Bundle([1, 2, 3]).again() == [_Bundle([1, 2], 1), _Bundle([3], 1)]
    assert _Bundle([1], 2).again() == [_Bundle([1], 3)]


def test_this_machine_runs_a_job_a_core_and_slurm_queues_them_all(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    waiting = [_Bundle([k]) for k in range(10)]
    here, there = Slurm(tmp_path, "local"), Slurm(tmp_path)
    assert here._take(waiting, running=1) == (waiting[:2], waiting[2:])
    assert here._take(waiting, running=3) == ([], waiting)
    assert there._take(waiting, running=50) == (waiting, [])


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.default_int_handler])
def test_jobs_under_way_are_cancelled(slurm, tmp_path, inputs, handler, request):
    before = signal.signal(signal.SIGINT, handler)  # ignored by what a shell has in the background
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    slurm.jobs = 2
    marks = [tmp_path / name for name in ("short", "long")]
    with slurm:
        tasks = [(0.0, str(marks[0])), (600.0, str(marks[1]))]
        under_way = slurm.run(cluster_work.sleep, inputs, tasks)
        next(under_way)
        running = [job for job, _ in under_way.gi_frame.f_locals["running"]]
        under_way.close()
    for job in running:
        job._process.wait(timeout=60)
    assert [mark.exists() for mark in marks] == [True, False]


# --- Ray ----------------------------------------------------------------------------------------


def test_tasks_under_way_are_cancelled(ray, inputs, tmp_path):
    long = [(600.0, str(tmp_path / f"long-{k}")) for k in range(6)]
    under_way = ray.run(cluster_work.sleep, inputs, [(0.0, str(tmp_path / "short")), *long])
    next(under_way)
    under_way.close()
    # Two workers are free for this only if none of them sleeps.
    marks = [str(tmp_path / f"after-{k}") for k in range(2)]
    assert len(list(ray.run(cluster_work.sleep, inputs, [(0.0, m) for m in marks]))) == 2
    assert not list(tmp_path.glob("long-*"))


def test_workers_have_one_thread_one_copy_of_the_data_and_this_version(ray, inputs, monkeypatch):
    assert list(ray.run(cluster_work.threads, inputs, [0])) == [1]
    assert ray.everywhere(cluster_work.threads, inputs, 0) == [1], "this is one machine"
    (place,) = ray.run(cluster_work.where_the_features_lie, inputs, grid(["supervised"]))
    assert "plasma" in place, "in the object store, not copied"
    first = ray._shared(inputs.benchmark, {})
    again = ray._shared(inputs.benchmark, inputs.posteriors)
    assert first[0] == again[0] and first[1] != again[1]
    monkeypatch.setattr("pairlearn.paper.on_ray.__version__", "99.0")
    with pytest.raises(ClusterError, match=f"has pairlearn {pairlearn.__version__}, the .* 99.0"):
        list(ray.run(cluster_work.threads, inputs, [0]))


def test_no_gpu_for_those_who_ask_for_one(ray):
    assert ray.device("auto") == "cpu"
    with pytest.raises(ClusterError, match="the Ray cluster has none"):
        ray.device("cuda")


def processes() -> dict[int, tuple[int, str]]:
    """Parent and title of every process that is not dead."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if state != "Z":
            found[int(folder.name)] = int(parent), title.strip()
    return found


def descendants(pid: int) -> dict[int, str]:
    tree, wanted = processes(), {pid}
    while more := {child for child, (parent, _) in tree.items() if parent in wanted} - wanted:
        wanted |= more
    return {child: tree[child][1] for child in wanted - {pid} if child in tree}


def wait_until(happens, what: str, seconds: float = 120.0):
    deadline = time.monotonic() + seconds
    while not (found := happens()):
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.005)
    return found


def listeners(pids) -> set[str]:
    """Addresses that these processes listen on."""
    sockets = set()
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                sockets.add(str(file.readlink()))
            except OSError:
                continue
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = row.split()
            if state == "0A" and f"socket:[{rest[5]}]" in sockets:
                raw = bytes.fromhex(local.split(":")[0])
                words = b"".join(raw[k : k + 4][::-1] for k in range(0, len(raw), 4))
                found.add(socket.inet_ntop(family, words))
    return found


def test_only_this_machine_can_reach_it(ray):
    found = listeners(descendants(os.getpid()))
    assert found, "Ray's servers talk by TCP"
    assert found <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


COMMAND = (
    *("bench", "run", "accuracy", "--datasets", "digits", "--seeds", "1", "--priors", "0.2"),
    *("--model", "linear", "--methods", ",".join(METHODS), "--cluster", "ray"),
)


def test_a_killed_command_leaves_no_workers_and_goes_on(ray, tmp_path):
    store = RunStore(tmp_path / "runs.jsonl")
    command = [*COMMAND, "--epochs", "60", "--store", str(store.path)]
    # A temporary folder whose path is short enough for sockets in it.
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as short:
        driver = subprocess.Popen(
            [sys.executable, "-m", "pairlearn", *command, "--cluster-option", "cpus=1"],
            env=os.environ | {"PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1", "TMPDIR": short},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: len(store) or driver.poll() is not None, "a run is finished")
            family = descendants(driver.pid)
            assert driver.poll() is None, "it was over before it was killed"
        finally:
            driver.kill()
            driver.wait()
        # Ray's two agents take up to a minute to see that they are alone; they do no work.
        workers = {p for p, title in family.items() if not title.endswith("Agent")}
        assert any(title.startswith("ray::") for title in family.values())
        wait_until(lambda: workers.isdisjoint(processes()), "the workers are gone")
    assert 0 < len(store) < 4
    done = CliRunner().invoke(bench.app, [*command[1:], "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["finished"] == 4 - json.loads(done.stdout)["found"]
    assert store.same_rows(stored(tmp_path / "local.jsonl", grid(epochs=60), workers=1))
    assert {record.notes["device"] for record in store} == {"cpu"}
