"""Commands as processes of their own, and people who answer a studio over HTTP.

Processes are forked from one that has everything imported (see conftest), so that a command
takes a tenth of a second and not three.
"""

from __future__ import annotations

import resource
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2

import processes
from browser import make_project
from processes import free_port
from studio_client import Visitor


def fate(left: Any, right: Any) -> tuple[float, float]:
    """A model that is asked: `annotate ask --model studio_processes:fate`."""
    return 0.5, 0.0


class Command(processes.Command):
    """``pairlearn annotate``."""

    module = "pairlearn_studio.cli.annotate"
    name = "pairlearn annotate"


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
        self.url = f"http://127.0.0.1:{self.port}/{self.folder.name}"
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
