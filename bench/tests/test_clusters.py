"""A grid on a cluster: joblib's backends, with real Ray where it is installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, os, signal, sys
from pathlib import Path

import joblib
import ray
from ray.util.joblib import register_ray

from pairlearn_bench import GRIDS
from pairlearn_bench.execute import execute

runs = GRIDS["accuracy"].select(
    datasets=["digits"], priors=[0.2], seeds=[0, 1], epochs=2, model="linear",
    methods=["likelihood-abs", "supervised"],
).runs()


def rows(results):
    return sorted([run.key(), result] for run, result in results)


here = rows(execute(runs, device="cpu", workers=1))
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
register_ray()




with joblib.parallel_config(backend="ray", n_jobs=2):
    finished = execute(runs, device="cpu")
    first = [next(finished)]  # then the command ends with its workers, and starts again
    finished.close()
    done = {run for run, _ in first}
    rest = list(execute([run for run in runs if run not in done], among=runs, device="cpu"))
print(json.dumps([here, rows([*first, *rest])]))
"""


@pytest.mark.long
def test_ray_gives_the_results_of_one_process(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    script = tmp_path / "cluster.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    here, there = json.loads(done.stdout.splitlines()[-1])
    assert here == there and len(here) == 4
