"""Half an hour of work in one process, and of answers in a studio: what grows.

    python bench/speed/soak.py [--minutes 30] [--json]

Two processes run side by side and are looked at from a third, every five seconds: memory
(resident set) and open files.

- *worker*: simulates a table, fits it with checkpoints, saves and loads the model, evaluates
  it, predicts a file, trains a small grid into a run store;
  again and again, in one process.
- *studio*: the server, with ten annotators who answer all the time, and whose pages are
  reopened every minute.

The first fifth is warm-up. The rest is cut into quarters: "growth" is the median of the last
quarter minus that of the first, beside the medians themselves.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from annotate_load import Annotator, make_project, run, start_studio

ANNOTATORS, RATE = 10, 5.0


@dataclass
class Watched:
    """A process and its samples."""

    name: str
    pid: int
    mib: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def look(self) -> None:
        """Take one sample."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        self.mib.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
        self.files.append(len(list(Path(f"/proc/{self.pid}/fd").iterdir())))

    def summary(self) -> dict[str, float | str]:
        """Medians of the first and the last quarter after the warm-up."""
        row: dict[str, float | str] = {"process": self.name, "samples": len(self.mib)}
        for quantity, samples in (("mib", self.mib), ("files", self.files)):
            kept = samples[len(samples) // 5 :]
            quarter = max(1, len(kept) // 4)
            first, last = (statistics.median(part) for part in (kept[:quarter], kept[-quarter:]))
            row |= {f"{quantity}_first": first, f"{quantity}_last": last}
            row |= {f"{quantity}_growth": last - first, f"{quantity}_most": max(kept)}
        return row


def work(folder: Path, seconds: float) -> int:
    """Repeat everything that a user does, in this process; return the number of rounds."""
    import numpy as np

    from pairlearn.estimators import PairClassifier, predict_file
    from pairlearn.io import read_pairs, write_items, write_pairs
    from pairlearn.simulation import simulate
    from pairlearn.training import Checkpoint
    from pairlearn_bench import GRIDS, RunStore
    from pairlearn_bench.execute import execute

    rounds, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        rounds += 1
        data = simulate(pairs=1000, seed=rounds % 7)
        items, pairs = folder / "items.npy", folder / "pairs.parquet"
        np.save(items, data.items.features)
        write_pairs(data.pairs, pairs)
        write_items(data.items, folder / "items.csv")
        checkpoint = Checkpoint(folder / "fit", seconds=0.2)
        classifier = PairClassifier(model="mlp", epochs=4, random_state=0)
        ends = data.items.features[data.pairs.positions(data.items)]
        classifier.set_params(callbacks=[checkpoint]).fit(ends, data.pairs.labels())
        checkpoint.remove()
        classifier.save(folder / "model", overwrite=True)
        loaded = PairClassifier.load(folder / "model")
        loaded.evaluate(ends, read_pairs(pairs).labels())
        predict_file(loaded, folder / "items.csv", folder / "predictions.csv")
        grid = GRIDS["accuracy"].select(
            datasets=["digits"], seeds=[0], priors=[0.2], epochs=2, model="linear",
            methods=["likelihood-abs", "supervised"],
        )  # fmt: skip
        store = RunStore(folder / "runs.jsonl")
        for spec, results in execute(grid.runs(), device="cpu", workers=1):
            store.append(spec, results)
        store.path.unlink()
    return rounds


async def answer(port: int, tokens: list[str], seconds: float) -> int:
    """Answer in the studio; all annotators reconnect every minute."""
    answers, end = 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        people = [Annotator(port, token) for token in tokens]
        await asyncio.gather(*(who.enter() for who in people))
        load = await run(f"{int(left):04}", people, min(60.0, left), RATE)
        await asyncio.gather(*(who.leave() for who in people))
        answers += load.answers
        if load.failures:
            raise SystemExit(f"{load.failures} answers failed")
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    seconds = 60 * args.minutes
    if args.work:
        print(work(args.work, seconds))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "studio").mkdir()
        tokens = make_project(folder / "studio", ANNOTATORS, int(2 * RATE * seconds) // ANNOTATORS)
        studio, port = start_studio(folder / "studio")
        worker = subprocess.Popen(
            [sys.executable, __file__, f"--work={folder}", f"--minutes={args.minutes}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        watched = [Watched("worker", worker.pid), Watched("studio", studio.pid)]
        answers: list[int] = []
        answering = threading.Thread(
            target=lambda: answers.append(asyncio.run(answer(port, tokens, seconds)))
        )
        answering.start()
        while worker.poll() is None:
            for process in watched:
                process.look()
            time.sleep(5)
        answering.join()
        studio.terminate()
        studio.wait()
        rounds, _ = worker.communicate()
    if worker.returncode:
        raise SystemExit("the worker failed")
    report = {"minutes": args.minutes, "rounds": int(rounds), "answers": answers[0]}
    report["processes"] = [process.summary() for process in watched]
    if args.json:
        print(json.dumps(report))
        return
    print(f"{report['minutes']:g} minutes, {rounds.strip()} rounds of work, {answers[0]} answers")
    for row in report["processes"]:
        print(
            f"{row['process']}: {row['mib_first']:.0f} → {row['mib_last']:.0f} MiB "
            f"({row['mib_growth']:+.1f}, at most {row['mib_most']:.0f}); files "
            f"{row['files_first']:.0f} → {row['files_last']:.0f}, at most {row['files_most']}"
        )


if __name__ == "__main__":
    main()
