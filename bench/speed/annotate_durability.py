"""Kill the studio while people answer: no answer with a receipt may be missing or doubled.

    python bench/speed/annotate_durability.py [--kills 50] [--clients 8] [--seed 0] [--json]

Clients answer over HTTP as fast as they can and behave as the page does: an answer without
a receipt is sent again with the same key. At random moments the studio gets SIGKILL and is
restarted. In the end the store must hold every acknowledged answer, as it was sent, once.

A kill loses what the process had, not what the kernel had: it cannot show that an answer
was on disk. So a second run follows the studio's system calls with strace: between the
read of an answer and the write of its receipt to the same socket, an fdatasync or fsync of
the store's file or of its write-ahead log has to begin and to succeed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from annotate_load import Annotator, make_project

from pairlearn_studio import Project, Store
from pairlearn_studio.server import serve

EACH = 5000
"""Pairs of each client."""
CALLS = "read,recvfrom,recvmsg,write,writev,sendto,sendmsg,fsync,fdatasync"


@dataclass(frozen=True)
class Durability:
    """Answers kept, lost and changed over the kills."""

    kills: int
    acknowledged: int
    missing: int
    doubled: int
    changed: int
    resent: int
    resent_and_there: int


@dataclass(frozen=True)
class Flushes:
    """Answers that were flushed before their receipt, by the system calls."""

    answers: int
    flushed_before_reply: int
    flushes: int


class StubbornAnnotator(Annotator):
    """Sends an answer again, under its key, until there is a receipt."""

    def __init__(self, port: int, token: str, project: str, name: str) -> None:
        super().__init__(port, token, project)
        self.name = name
        self.acknowledged: dict[int, float] = {}
        self.resent = 0
        self.resent_and_there = 0

    async def work(self, over: asyncio.Event) -> None:
        """Answer until it is over; the last answer gets its receipt too."""
        waiting: tuple[int, float] | None = None
        while True:
            try:
                await self.enter()
                while waiting or not over.is_set():
                    if waiting:
                        self.resent += 1
                        # The pair is no longer the next one: the studio has the answer.
                        self.resent_and_there += self.pair != waiting[0]
                    pair, value = waiting or (self.pair, round(random.random(), 6))
                    waiting = (pair, value)
                    self.pair, self.similarity, self.difference = pair, value, 0.0
                    if not await self.answer(f"{self.name}-{pair:08}"):
                        raise SystemExit(f"{self.name}: an answer to pair {pair} was refused")
                    self.acknowledged[pair] = value
                    waiting = None
                return
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.02)
            finally:
                await self.leave()


def free_port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    """Wait until a server listens on a port."""
    for _ in range(1500):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit("the studio did not start")


async def answer_through_kills(
    folder: Path, tokens: list[str], kills: int, seed: int
) -> list[StubbornAnnotator]:
    """Let clients answer while the studio is killed and restarted `kills` times."""
    # Forked from a process with all imports done, so that a start is quick.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pairlearn_studio.server"])
    rng, port = random.Random(seed), free_port()

    def start() -> multiprocessing.process.BaseProcess:
        process = context.Process(
            target=serve,
            args=(folder, "127.0.0.1", port),
            kwargs={"log_level": "critical"},
        )
        process.start()
        return process

    studio = start()
    await asyncio.to_thread(wait_for, port)
    people = [
        StubbornAnnotator(port, token, folder.name, f"person-{n}") for n, token in enumerate(tokens)
    ]
    over = asyncio.Event()
    works = [asyncio.create_task(who.work(over)) for who in people]
    for kill in range(kills):
        while sum(len(who.acknowledged) for who in people) < 20 * (kill + 1):
            await asyncio.sleep(0.01)
        await asyncio.sleep(rng.uniform(0, 0.1))
        assert studio.pid is not None
        os.kill(studio.pid, signal.SIGKILL)
        await asyncio.to_thread(studio.join)
        studio = start()
        await asyncio.to_thread(wait_for, port)
    await asyncio.sleep(0.3)
    over.set()
    await asyncio.gather(*works)
    studio.terminate()
    studio.join()
    return people


def check(folder: Path, people: list[StubbornAnnotator], kills: int) -> Durability:
    """Compare the receipts with the store."""
    with Store.open(Project.load(folder)) as store:
        rows = store.answers(current=False)
        ids = {annotator.name: annotator.id for annotator in store.annotators()}
    names = {f"a{number}": who for number, who in enumerate(people)}
    assert set(names) == set(ids)
    stored = Counter((row.annotator, row.pair) for row in rows)
    values = {(row.annotator, row.pair): row.similarity for row in rows}
    receipts = {
        (name, pair): value
        for name, who in names.items()
        for pair, value in who.acknowledged.items()
    }
    return Durability(
        kills=kills,
        acknowledged=len(receipts),
        missing=sum(receipt not in stored for receipt in receipts),
        doubled=sum(count > 1 for count in stored.values()),
        changed=sum(
            values[receipt] != value for receipt, value in receipts.items() if receipt in values
        ),
        resent=sum(who.resent for who in people),
        resent_and_there=sum(who.resent_and_there for who in people),
    )


def run_kills(kills: int, clients: int, seed: int) -> Durability:
    """The first run: kill the studio again and again."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = make_project(Path(folder), clients, EACH)
        people = asyncio.run(answer_through_kills(Path(folder), tokens, kills, seed))
        return check(Path(folder), people, kills)


def run_traced(clients: int, answers: int = 1000) -> Flushes:
    """The second run: the studio under strace."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = make_project(Path(folder), clients, EACH)
        port, trace = free_port(), Path(folder, "trace.txt")
        code = (
            "import sys; from pairlearn_studio.server import serve; "
            "serve(sys.argv[1], port=int(sys.argv[2]))"
        )
        follow = ["strace", "-f", "-y", "-s", "48", "-e", f"trace={CALLS}", "-o", str(trace)]
        studio = subprocess.Popen([*follow, sys.executable, "-c", code, folder, str(port)])
        try:
            wait_for(port)
            asyncio.run(_answer_so_many(port, tokens, Path(folder).name, answers))
        finally:
            # strace passes no signal on: end the studio itself, and strace ends with it.
            for child in Path(f"/proc/{studio.pid}/task/{studio.pid}/children").read_text().split():
                os.kill(int(child), signal.SIGTERM)
            studio.wait()
        return read_trace(trace.read_text("utf-8", "replace").splitlines())


async def _answer_so_many(port: int, tokens: list[str], project: str, answers: int) -> None:
    people = [
        StubbornAnnotator(port, token, project, f"person-{n}") for n, token in enumerate(tokens)
    ]
    over = asyncio.Event()
    works = [asyncio.create_task(who.work(over)) for who in people]
    while sum(len(who.acknowledged) for who in people) < answers:
        await asyncio.sleep(0.01)
    over.set()
    await asyncio.gather(*works)


_CALL = re.compile(r"^(\d+) +(?:<\.\.\. )?(\w+)(?:\((\d+)(?:<([^>]*)>)?| resumed>)(.*)$")


def read_trace(lines: list[str]) -> Flushes:
    """Follow each answer from its read to its receipt, and look for a flush in between.

    Every line of strace is a call, or the first or second half of one that was interrupted
    by another thread's: ``fdatasync(9</p/answers.sqlite-wal> <unfinished ...>`` and
    ``<... fdatasync resumed>) = 0``.
    """
    begun: dict[str, tuple[str, str, int]] = {}  # by thread: descriptor, path, line
    flushes: list[tuple[int, int]] = []  # lines of beginning and end
    asked: dict[str, int] = {}  # by descriptor: line of the answer that waits
    answers = flushed = 0
    for number, line in enumerate(lines):
        match = _CALL.match(line)
        if match is None:
            continue
        thread, call, descriptor, path, rest = match.groups()
        start = number
        if descriptor is None:
            descriptor, path, start = begun.pop(thread, ("", "", number))
        elif "<unfinished" in rest:
            begun[thread] = (descriptor, path or "", number)
            if not call.startswith(("write", "send")):
                continue
        if call in ("fsync", "fdatasync"):
            if "answers.sqlite" in (path or "") and rest.rstrip().endswith("= 0"):
                flushes.append((start, number))
        elif call in ("read", "recvfrom", "recvmsg"):
            if re.search(r"POST \S*/api/answer", rest):
                asked[descriptor] = number
        elif "HTTP/1.1 200" in rest and descriptor in asked:
            answers += 1
            since = asked.pop(descriptor)
            flushed += any(since < begin and end < number for begin, end in reversed(flushes))
    return Flushes(answers, flushed, len(flushes))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    kills = run_kills(options.kills, options.clients, options.seed)
    trace = run_traced(options.clients)
    if options.json:
        print(json.dumps({"kills": asdict(kills), "strace": asdict(trace)}))
    else:
        print(
            f"{kills.kills} kills, {kills.acknowledged} answers with a receipt: {kills.missing} "
            f"missing, {kills.doubled} doubled, {kills.changed} changed; {kills.resent} were sent "
            f"again, {kills.resent_and_there} of them had been stored without a receipt\n"
            f"strace: {trace.flushed_before_reply} of {trace.answers} answers were flushed "
            f"between request and reply, by {trace.flushes} flushes"
        )
    bad = kills.missing + kills.doubled + kills.changed
    raise SystemExit(bad > 0 or trace.flushed_before_reply < trace.answers or not trace.answers)


if __name__ == "__main__":
    main()
