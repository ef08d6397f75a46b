"""Grids on Ray: the rows of a local run, whatever happens to the workers."""

import json
import os
import signal
import socket
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
from pairlearn.paper.benchmark import Benchmark, Inputs
from pairlearn.paper.execute import execute
from pairlearn.paper.on_ray import Ray
from pairlearn.paper.workers import LOSSES, ClusterError

pytest.importorskip("sklearn")
METHODS = ["likelihood-abs", "sconfconfdiff-abs", "confdiff-none", "supervised"]
SOURCE = str(Path(pairlearn.__file__).parents[1])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers, which can import the work of these tests."""
    if find_spec("ray") is None:  # imported by the cluster, which has its say before
        pytest.skip("needs ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, str(Path(__file__).parent)]))
        patch.setenv("PAIRLEARN_TEST_TRACES", str(tmp_path_factory.mktemp("ray") / "traces"))
        with Ray(cpus=2) as cluster:
            yield cluster


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def inputs():
    benchmark = Benchmark(load("digits"), "linear", "cpu", "float32")
    return Inputs(benchmark, benchmark.annotate([(0, None)]))


def grid(**choice):
    choice = {"seeds": [0], "priors": [0.2], "methods": METHODS, "epochs": 2} | choice
    return GRIDS["accuracy"].select(datasets=["digits"], model="linear", **choice).runs()


def stored(path, runs, **options) -> RunStore:
    store = RunStore(path)
    for run, found in execute(runs, **options):
        store.append(run, found)
    return store


# --- the tree of processes --------------------------------------------------------------------


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


def kill_a_worker_that_trains() -> None:
    def training():
        return [p for p, title in descendants(os.getpid()).items() if title == "ray::train_fleet"]

    os.kill(wait_until(training, "a worker trains")[0], signal.SIGKILL)


# --- same rows ----------------------------------------------------------------------------------


def test_the_rows_of_a_local_run(cluster, tmp_path):
    runs = grid(seeds=[0, 1])
    seen = []
    here = stored(tmp_path / "local.jsonl", runs, workers=1)
    there = stored(
        tmp_path / "ray.jsonl", runs, cluster=cluster, progress=lambda *report: seen.append(report)
    )
    assert len(there) == 8
    assert there.same_rows(here)
    assert [report[0] for report in seen] == [2 * k for k in range(9)], "epochs, one fleet a time"
    assert {report[1] for report in seen} == {16}


def killed_and_finished(cluster, tmp_path, runs, kills):
    """The rows when a worker is killed after so many results."""
    store = RunStore(tmp_path / "ray.jsonl")
    for count, (run, found) in enumerate(execute(runs, cluster=cluster)):
        store.append(run, found)
        if count in kills:
            kill_a_worker_that_trains()
    assert len(store) == len(runs)
    assert store.same_rows(stored(tmp_path / "local.jsonl", runs, workers=1))


def test_a_worker_is_killed(cluster, tmp_path):
    killed_and_finished(cluster, tmp_path, grid(seeds=range(3), epochs=10), kills={2})


@pytest.mark.long
def test_sixty_fleets_and_two_kills(cluster, tmp_path):
    runs = grid(seeds=range(5), priors=[0.2, 0.5, 0.8], epochs=10)
    assert len(runs) == 60
    killed_and_finished(cluster, tmp_path, runs, kills={9, 33})


# --- failures -----------------------------------------------------------------------------------


def test_an_exception_is_told_and_not_tried_again(cluster, inputs):
    traces = Path(os.environ["PAIRLEARN_TEST_TRACES"])
    (run,) = grid(methods=["supervised"])
    with pytest.raises(ClusterError) as caught:
        list(cluster.run(cluster_work.refuse, inputs, [[[run]]]))
    assert run.key() in str(caught.value)
    assert "ValueError: the weights are NaN" in str(caught.value)
    assert "in refuse" in str(caught.value)
    assert traces.read_text() == "tried\n"


@pytest.mark.long
def test_a_task_that_always_kills_its_worker_is_given_up(cluster, inputs, tmp_path):
    traces = tmp_path / "traces"
    with pytest.raises(ClusterError, match=f"was lost {LOSSES + 1} times with its worker"):
        list(cluster.run(cluster_work.die, inputs, [str(traces)]))
    assert traces.read_text() == "tried\n" * (LOSSES + 1)


def test_what_is_under_way_is_cancelled(cluster, inputs, tmp_path):
    long = [(600.0, str(tmp_path / f"long-{k}")) for k in range(6)]
    under_way = cluster.run(cluster_work.sleep, inputs, [(0.0, str(tmp_path / "short")), *long])
    next(under_way)
    under_way.close()
    # Two workers are free for this only if none of them sleeps.
    marks = [str(tmp_path / f"after-{k}") for k in range(2)]
    assert len(list(cluster.run(cluster_work.sleep, inputs, [(0.0, m) for m in marks]))) == 2
    assert not list(tmp_path.glob("long-*"))


def test_no_gpu_for_those_who_ask_for_one(cluster):
    assert cluster.device("auto") == "cpu"
    with pytest.raises(ClusterError, match="the Ray cluster has none"):
        cluster.device("cuda")


# --- how it is done -------------------------------------------------------------------------------


def test_features_lie_in_the_object_store_and_are_not_copied(cluster, inputs):
    (run,) = grid(methods=["supervised"])
    (place,) = cluster.run(cluster_work.where_the_features_lie, inputs, [run])
    assert "plasma" in place


def test_the_data_set_is_put_there_once(cluster, inputs):
    first = cluster._shared(inputs.benchmark, {})
    again = cluster._shared(inputs.benchmark, inputs.posteriors)
    assert first[0] == again[0]
    assert first[1] != again[1]


def test_a_worker_has_one_thread(cluster, inputs):
    assert list(cluster.run(cluster_work.threads, inputs, [0])) == [1]
    assert cluster.everywhere(cluster_work.threads, inputs, 0) == [1], "this is one machine"


def test_another_version_on_a_worker_is_refused(cluster, inputs, monkeypatch):
    monkeypatch.setattr("pairlearn.paper.on_ray.__version__", "99.0")
    with pytest.raises(ClusterError, match=f"has pairlearn {pairlearn.__version__}, the .* 99.0"):
        list(cluster.run(cluster_work.threads, inputs, [0]))


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


def test_only_this_machine_can_reach_it(cluster):
    found = listeners(descendants(os.getpid()))
    assert found, "Ray's servers talk by TCP"
    assert found <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


# --- the command ----------------------------------------------------------------------------------

COMMAND = (
    *("bench", "run", "accuracy", "--datasets", "digits", "--seeds", "1", "--priors", "0.2"),
    *("--model", "linear", "--methods", ",".join(METHODS), "--cluster", "ray"),
)


@pytest.fixture
def short_folder():
    """A temporary folder whose path is short enough for sockets in it."""
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        yield folder


def test_a_killed_command_leaves_no_workers_and_goes_on(cluster, tmp_path, short_folder):
    store = RunStore(tmp_path / "runs.jsonl")
    command = [*COMMAND, "--epochs", "60", "--store", str(store.path)]
    driver = subprocess.Popen(
        [sys.executable, "-m", "pairlearn", *command, "--cluster-option", "cpus=1"],
        env=os.environ | {"PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1", "TMPDIR": short_folder},
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
