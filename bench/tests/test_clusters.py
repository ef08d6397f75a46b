"""A grid and a large table on a cluster, with real Ray where it is installed."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from pairlearn import PairClassifier, PairLabels
from pairlearn_bench import RunStore

PAGE = Path(__file__).parents[2] / "docs" / "research" / "clusters.md"

PLUGIN = """
import joblib
import ray
from ray.util.joblib import register_ray

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
register_ray()
joblib.parallel_config(backend="ray", n_jobs=2)
"""
GRID = "accuracy --datasets digits --priors 0.2 --seeds 2 --epochs 200 --device cpu"
METHODS = "likelihood-abs,supervised"


def command(folder: Path, store: str, *options: str) -> list[str]:
    run = ["bench", "run", *GRID.split(), "--methods", METHODS, "--store", str(folder / store)]
    return [sys.executable, "-m", "pairlearn", *options, *run]


def at_work(parent: int) -> list[int]:
    """Ray's processes below this one that are training."""
    table = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True)
    rows = [line.split(None, 2) for line in table.stdout.splitlines()[1:]]
    family = {parent}
    for _ in range(3):  # the command, Ray's daemon, its workers
        family |= {int(pid) for pid, above, _ in rows if int(above) in family}
    return [int(pid) for pid, _, args in rows if int(pid) in family and "run_batch" in args]


@pytest.mark.long
def test_ray_gives_the_results_of_one_process_though_a_worker_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    plugin = tmp_path / "cluster.py"
    plugin.write_text(PLUGIN, encoding="utf-8")
    on_ray = command(tmp_path, "ray.jsonl", "--plugin", str(plugin))
    store = RunStore(tmp_path / "ray.jsonl")
    with subprocess.Popen(on_ray, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as first:
        while first.poll() is None:
            if len(store) and (workers := at_work(first.pid)):
                os.kill(workers[0], signal.SIGKILL)
                break
            time.sleep(0.05)
        said, _ = first.communicate()
    assert first.returncode and 0 < len(store) < 4, said.decode()[-2000:]
    subprocess.run(on_ray, check=True, capture_output=True)
    subprocess.run([*command(tmp_path, "one.jsonl"), "--workers", "1"], check=True)
    assert store.rows() == RunStore(tmp_path / "one.jsonl").rows()
    assert len(store) == 4


@pytest.mark.long
def test_the_recipe_predicts_as_the_model_does(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    items = np.random.default_rng(0).normal(size=(120, 16))
    pairs = np.arange(120).reshape(-1, 2)
    labels = PairLabels.from_posteriors(*(1 / (1 + np.exp(-items[pairs, 0]))).T)
    model = PairClassifier(model="linear", epochs=5, random_state=0).fit(items[pairs], labels)
    model.save(tmp_path / "model")
    columns = {f"x{k}": items[:, k] for k in range(16)} | {"id": np.arange(len(items))}
    parquet.write_table(pyarrow.table(columns), tmp_path / "items.parquet")
    (recipe,) = re.findall(r"`predict.py`:\n\n```text\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    subprocess.run([sys.executable, "-c", recipe], cwd=tmp_path, check=True, capture_output=True)
    found = parquet.read_table(tmp_path / "predictions").sort_by("id")["probability"].to_numpy()
    assert np.allclose(found, model.predict_proba(items)[:, 1], atol=1e-6)
