"""Many annotators at once: answers a second, and how long each waits for its receipt.

    python bench/speed/annotate_load.py [--annotators 200] [--rate 600] [--seconds 10] [--json]
    python bench/speed/annotate_load.py --status 50000

Starts a studio (uvicorn, one process) on a project of its own and answers over HTTP from
this process, each annotator on a connection of its own. Two runs:

- *paced*: everybody thinks for a random time after each receipt, so that all together send
  about RATE answers a second (at 600 a second each of 200 people answers three times a
  second, which nobody can);
- *flat out*: nobody thinks, which finds the most that the studio can do; the waits are then
  the number of annotators over the throughput, whatever the server.

A wait is the time from sending an answer to having read its receipt: the answer is on disk,
flushed, and the next pair is in the reply. The goal is 500 answers a second with a 99th
percentile under 10 ms in the paced run, on a machine that does nothing else.

With ``--status`` a project gets so many answers of four people to graded pairs, and
`pairlearn annotate status` is timed as a command of its own; the goal is 1.5 s at 50,000.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pairlearn_studio import Answer, Plan, Project, Store
from pairlearn_studio.records import LEVELS

ITEMS = 600
"""Of the project; they make 179,700 pairs."""


@dataclass(frozen=True)
class Load:
    """Measurements of one run."""

    run: str
    annotators: int
    seconds: float
    answers: int
    per_second: float
    median_ms: float
    p99_ms: float
    worst_ms: float
    failures: int


class Annotator:
    """A client that answers as a page does, with as little work as possible."""

    def __init__(self, port: int, token: str, project: str) -> None:
        self.port, self.token, self.project = port, token, project
        self.similarity, self.difference = 0.62, 0.18
        self.writer: asyncio.StreamWriter | None = None

    async def enter(self) -> None:
        """Open the link, take the cookie and the form token, ask for the first pair."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        head, _ = await self.ask(
            f"GET /{self.project}/a/{self.token} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        )
        self.cookie = re.search(r"set-cookie: ([^;]+)", head)[1]  # type: ignore[index]
        self.home = re.search(r"location: (\S+)", head)[1]  # type: ignore[index]
        _, page = await self.ask(self.get(self.home))
        self.form = re.search(rb'name="csrf" content="(\w+)"', page)[1].decode()  # type: ignore[index]
        _, task = await self.ask(self.get(f"{self.home}/api/task"))
        self.pair = json.loads(task)["task"]["pair"]

    async def leave(self) -> None:
        """Close the connection, if there is one."""
        if self.writer is not None:
            self.writer.close()
            with contextlib.suppress(OSError):
                await self.writer.wait_closed()

    def get(self, path: str) -> str:
        """Request a page."""
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {self.cookie}\r\n\r\n"

    async def ask(self, request: str) -> tuple[str, bytes]:
        """Send a request; return the head and the body of the reply."""
        assert self.writer is not None
        self.writer.write(request.encode())
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = int(re.search(r"content-length: (\d+)", head)[1])  # type: ignore[index]
        return head, await self.reader.readexactly(length)

    async def answer(self, key: str) -> bool:
        """Answer the current pair; return whether a receipt and another pair came back."""
        body = (
            f'{{"pair":{self.pair},"similarity":{self.similarity},"difference":{self.difference},'
            f'"cant_say":false,"note":"","seconds":4.2,"key":"{key}"}}'
        )
        head, reply = await self.ask(
            f"POST {self.home}/api/answer HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {self.cookie}\r\n"
            f"X-Studio-Form: {self.form}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )
        # The next pair stands first in its object; parsing all of it would slow the client.
        match = re.search(rb'"pair":(\d+)', reply)
        if " 200 " not in head[:20] or match is None:
            return False
        self.pair = int(match[1])
        return True


async def run(name: str, people: list[Annotator], seconds: float, rate: float | None) -> Load:
    """Let all annotators answer for a while."""
    waits: list[float] = []
    failures = 0
    rng = random.Random(0)
    start = time.perf_counter()
    end = start + seconds

    async def work(who: Annotator, number: int) -> None:
        nonlocal failures
        think = 0.0 if rate is None else len(people) / rate
        await asyncio.sleep(rng.random() * think)
        count = 0
        while (sent := time.perf_counter()) < end:
            count += 1
            if not await who.answer(f"{name[:4]}-{number:04}-{count:06}"):
                failures += 1
                return
            waits.append(time.perf_counter() - sent)
            if think:
                await asyncio.sleep(max(0.0, rng.uniform(0.5, 1.5) * think - waits[-1]))

    await asyncio.gather(*(work(who, number) for number, who in enumerate(people)))
    took = time.perf_counter() - start
    times = 1000 * np.array(waits)
    return Load(
        name,
        len(people),
        round(took, 2),
        len(waits),
        round(len(waits) / took, 1),
        *(round(float(np.quantile(times, share)), 2) for share in (0.5, 0.99, 1.0)),
        failures,
    )


def make_project(folder: Path, annotators: int, each: int) -> list[str]:
    """Make a project whose items are rows of six columns; return the tokens."""
    names = ",".join(f"column {n}" for n in range(6))
    rows = [f"item-{n}," + ",".join(str(n * k % 97) for k in range(1, 7)) for n in range(ITEMS)]
    (folder / "items.csv").write_text("\n".join([f"id,{names}", *rows]) + "\n")
    project = Project(folder, "table", "items.csv", Plan(pairs=annotators * each))
    project.save()
    with Store.create(project) as store:
        return [token for _, token in store.add_annotators([f"a{n}" for n in range(annotators)])]


def start_studio(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a studio in its own process; return it and its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = (
        "import sys; from pairlearn_studio.server import serve; "
        "serve(sys.argv[1], port=int(sys.argv[2]))"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder), str(port)], env=environment
    )
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return process, port
    raise SystemExit("the studio did not start")


async def measure(
    port: int, tokens: list[str], project: str, rate: float, seconds: float
) -> list[Load]:
    people = [Annotator(port, token, project) for token in tokens]
    await asyncio.gather(*(who.enter() for who in people))
    await run("warm-up", people, 1.0, rate)
    loads = [
        await run("paced", people, seconds, rate),
        await run("flat out", people, seconds / 2, None),
    ]
    await asyncio.gather(*(who.leave() for who in people))
    return loads


def time_status(answers: int, runs: int = 3) -> tuple[float, float]:
    """Seconds by the clock and of CPU time of `annotate status`, the least of some runs."""
    rng, names, people = random.Random(0), [*LEVELS], 4
    with tempfile.TemporaryDirectory() as folder:
        make_project(Path(folder), people, answers // people)
        with Store.open(Project.load(folder)) as store:
            pairs = [pair.id for pair in store.pairs()]
            for first in range(0, len(pairs), 1000):
                store.carry_out(
                    lambda changes, some=pairs[first : first + 1000]: [
                        changes.import_answer(f"person {pair % people}", pair, _graded(rng, names))
                        for pair in some
                    ]
                )
            kept = len(store.answers())
        if kept != answers // people * people:
            raise SystemExit(f"{kept} answers are in the store, not {answers}")
        took = []
        for _ in range(runs):
            start, before = time.perf_counter(), _cpu_of_children()
            command = [sys.executable, "-m", "pairlearn", "annotate", "status", folder]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            took.append((time.perf_counter() - start, _cpu_of_children() - before))
    return min(wall for wall, _ in took), min(cpu for _, cpu in took)


def _graded(rng: random.Random, names: list[str]) -> Answer:
    level = rng.choice(names)
    return Answer(*LEVELS[level], level=level, seconds=rng.uniform(1, 9))


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--annotators", type=int, default=200)
    parser.add_argument("--rate", type=float, default=600, help="answers a second, paced")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--status", type=int, default=0, help="answers; time `status` only")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.status:
        wall, cpu = time_status(options.status)
        print(f"status at {options.status:,} answers: {wall:.2f} s, {cpu:.2f} s of CPU time")
        return
    with tempfile.TemporaryDirectory() as folder:
        each = int(8 * options.seconds) + 200
        if options.annotators * each > ITEMS * (ITEMS - 1) // 2:
            raise SystemExit("too many answers for one run: shorten it")
        tokens = make_project(Path(folder), options.annotators, each)
        studio, port = start_studio(Path(folder))
        try:
            loads = asyncio.run(
                measure(port, tokens, Path(folder).name, options.rate, options.seconds)
            )
        finally:
            studio.terminate()
            studio.wait()
        with Store.open(Project.load(folder)) as store:
            kept = len(store.answers())
    if options.json:
        print(json.dumps({"runs": [asdict(load) for load in loads], "kept": kept}))
        return
    for load in loads:
        print(
            f"{load.run:9} {load.annotators} annotators, {load.answers} answers in "
            f"{load.seconds:g} s: {load.per_second:g} a second; wait {load.median_ms:g} ms in the "
            f"median, {load.p99_ms:g} ms at the 99th percentile, {load.worst_ms:g} ms at worst; "
            f"{load.failures} failures"
        )
    print(f"{kept} answers are in the store")


if __name__ == "__main__":
    main()
