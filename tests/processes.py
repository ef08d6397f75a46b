"""Commands as processes of their own, forked from one that has everything imported.

A command then takes a tenth of a second and not three; see `conftest`.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import random
import signal
import socket
import sys
import time
from contextlib import suppress
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
_ports = count(random.SystemRandom().randrange(2000))


def free_port() -> int:
    """A free port below those that the system assigns to connections.

    Each test worker has a range of its own, and uses no port twice.
    """
    while True:
        port = 20_000 + 2000 * (_WORKER % 6) + next(_ports) % 2000
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _main(
    module: str, name: str, arguments: list[str], output: str, environment: dict[str, str]
) -> None:
    """Run the command, with its output in a file."""
    os.environ.update(environment)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    importlib.import_module(module).app(arguments, prog_name=name)


class Command:
    """A command that runs in a process of its own."""

    module = "pairlearn.cli.root"  # which has its `app`
    name = "pairlearn"

    def __init__(
        self,
        output: Path,
        *arguments: object,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.output = output.with_name(f"{output.name}-{time.monotonic_ns()}.txt")
        words = [str(argument) for argument in arguments]
        self.process: BaseProcess = _CONTEXT.Process(
            target=_main, args=(self.module, self.name, words, str(self.output), environment or {})
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
