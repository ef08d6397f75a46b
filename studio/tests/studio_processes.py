"""Commands as processes of their own, and people who answer a studio over HTTP.

Processes are forked from one that has everything imported (see conftest), so that a command
takes a tenth of a second and not three.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx2

from browser import free_port, make_project
from studio_client import Visitor

_CONTEXT = multiprocessing.get_context("forkserver")


def fate(left: Any, right: Any) -> tuple[float, float]:
    """A model that is asked: `annotate ask --model studio_processes:fate`."""
    return 0.5, 0.0


def _main(module: str, arguments: list[str], output: str, environment: dict[str, str]) -> None:
    """Run the command, with its output in a file."""
    os.environ.update(environment)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    importlib.import_module(module).app(arguments)


class Command:
    """One command that runs: ``pairlearn annotate``, unless another module has its `app`."""

    def __init__(
        self,
        output: Path,
        *arguments: object,
        module: str = "pairlearn_studio.cli.annotate",
        environment: dict[str, str] | None = None,
    ) -> None:
        self.output = output.with_name(f"{output.name}-{time.monotonic_ns()}.txt")
        words = [str(argument) for argument in arguments]
        self.process: BaseProcess = _CONTEXT.Process(
            target=_main, args=(module, words, str(self.output), environment or {})
        )
        self.process.start()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def words(self) -> str:
        return self.output.read_text() if self.output.exists() else ""

    def wait(self, seconds: float = 300) -> int | None:
        """Its exit code; minus the signal that ended it."""
        self.process.join(seconds)
        return self.process.exitcode

    def end(self, how: signal.Signals) -> int | None:
        with suppress(ProcessLookupError):  # it has ended by itself
            os.kill(self.pid, how)
        return self.wait()


def limit_files(pid: int, size: int) -> None:
    """Let a process write no file beyond a size, which any user may do to their processes."""
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def check_outage_log(words: str) -> None:
    """Check that a server reported an outage of its disk and its end, once each."""
    assert words.count("answers are not being stored") == 1
    assert words.count("answers are being stored again") == 1
    assert "Traceback" not in words and "damaged" not in words


def wait_until(true: Callable[[], object]) -> None:
    """Wait for something that happens soon, however busy the machine is."""
    end = time.monotonic() + 300
    while not true():
        assert time.monotonic() < end, "nothing happened for five minutes"
        time.sleep(0.02)


class Place:
    """A project, its tokens, and a folder for the output of commands."""

    def __init__(self, folder: Path, names: tuple[str, ...], pairs: int, overlap: int = 1) -> None:
        self.root, self.folder, self.port = folder, folder / "p", free_port()
        self.project, self.tokens, _ = make_project(
            self.folder, pairs=pairs, names=names, overlap=overlap
        )
        self.url = f"http://127.0.0.1:{self.port}"
        self.connections: list[httpx2.Client] = []

    def run(self, name: str, *more: object) -> Command:
        return Command(self.root / name, name, self.folder, *more)

    def serve(self) -> Command:
        """A server that answers."""
        command = self.run("serve", "--port", self.port)
        wait_until(lambda: self.url in command.words() or not command.process.is_alive())
        assert command.process.is_alive(), command.words()
        return command

    @contextmanager
    def served(self) -> Iterator[Command]:
        command = self.serve()
        try:
            yield command
        finally:
            if command.process.is_alive():
                command.end(signal.SIGKILL)
            while self.connections:
                self.connections.pop().close()

    def stored(self, path: Path | None = None) -> dict[tuple[str, int], float | None]:
        """Answers by plain SQLite, each stored once, in a sound file."""
        with closing(sqlite3.connect(path or self.project.store_path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            rows = connection.execute(
                "SELECT n.name, x.pair, x.similarity FROM answer x "
                "JOIN annotator n ON n.id = x.annotator"
            ).fetchall()
        answers = {(name, pair): value for name, pair, value in rows}
        assert len(answers) == len(rows), "an answer was stored twice"
        return answers


class Person(Visitor):
    """Somebody who answers over HTTP, and remembers what was acknowledged."""

    def __init__(self, place: Place, name: str) -> None:
        # One connection, however busy the machine is.
        patient = httpx2.Limits(keepalive_expiry=None)
        url = f"http://127.0.0.1:{place.port}/{place.folder.name}"
        client = httpx2.Client(base_url=url, follow_redirects=True, timeout=120, limits=patient)
        place.connections.append(client)
        super().__init__(client, place.tokens[name])
        self.name, self.pair = name, self.task()["pair"]
        self.acknowledged: dict[tuple[str, int], float] = {}

    def answer(self, similarity: float) -> int:  # type: ignore[override]
        """Answer the pair at hand; the status, 200 when it is acknowledged."""
        values = {"pair": self.pair, "similarity": similarity, "difference": 0.0, "seconds": 1.0}
        reply = self.post(
            f"{self.home}/api/answer", values | {"key": f"{self.name}-{self.pair:06}"}
        )
        if reply.status_code == 200:
            self.acknowledged[self.name, self.pair] = similarity
            self.pair = (reply.json()["task"] or {"pair": 0})["pair"]
        return int(reply.status_code)

    def answer_many(self, count: int) -> None:
        for _ in range(count):
            assert self.answer(round(self.pair / 1000, 3)) == 200
