"""A live server beside other commands, some killed, and connections that keep it waiting."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser import LiveStudio, live_studio
from studio_processes import Command, Person, Place, free_port, wait_until

NAMES = ("ann", "bob", "spare")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "judged.csv").write_text("left,right,similarity\nM-001,M-002,0.25\n")
    yield Place(tmp_path, NAMES, pairs=300)


def arguments(name: str, place: Place) -> tuple[object, ...]:
    """What each command needs; those that write files get a name of their own."""
    fresh = place.root / f"out-{time.monotonic_ns()}"
    return {
        "status": (),
        "link": ("spare", "--renew"),
        "export": (fresh.with_suffix(".csv"),),
        "import": (place.root / "judged.csv", "--annotator", "elsewhere"),
        "ask": ("--model", "studio_processes:fate", "--name", "rule", "--pairs", 3),
        "backup": (fresh.with_suffix(".sqlite"),),
        "serve": ("--port", free_port()),
        "restore": tuple(place.root.glob("out-*.sqlite"))[:1],
    }[name]


COMMANDS = ("status", "link", "export", "import", "ask", "backup", "serve", "restore")


def by_people(place: Place, path: Path | None = None) -> dict[tuple[str, int], float | None]:
    return {
        (name, pair): value for (name, pair), value in place.stored(path).items() if name in NAMES
    }


def test_no_command_costs_an_answer(place: Place) -> None:
    with place.served() as server:
        ann = Person(place, "ann")
        for name in COMMANDS:
            ann.answer_many(6)
            options = arguments(name, place)
            command = place.run(name, *options)
            if name in ("serve", "restore"):
                assert command.wait() == 2
                assert command.words().count("\n") == 1
                assert f"is being served already, at {place.url}" in command.words()
            else:
                assert command.wait() == 0, command.words()
            if name == "export":
                assert isinstance(options[0], Path)
                written = options[0].read_text().splitlines()
                assert len(written) == 1 + len(ann.acknowledged)
        assert server.end(signal.SIGTERM) == -signal.SIGTERM
    kept = ann.acknowledged
    assert by_people(place) == kept and len(kept) == 6 * len(COMMANDS)
    with place.served() as server:  # and a server goes on from there
        again = Person(place, "ann")
        assert again.pair == ann.pair
        again.answer_many(6)
        assert server.end(signal.SIGINT) == 0
        assert "Traceback" not in server.words()
    kept = kept | again.acknowledged
    assert by_people(place) == kept
    assert not list(place.folder.glob("answers.sqlite-*"))  # nothing is left in a log
    (path,) = place.root.glob("out-*.sqlite")
    assert place.run("restore", path).wait() == 0
    assert by_people(place) == by_people(place, path)
    (replaced,) = (place.folder / "backups").glob("replaced-*.sqlite")
    assert by_people(place, replaced) == kept


class Load:
    """People who answer at their own pace, while commands come and go, some killed."""

    def __init__(self, place: Place, names: tuple[str, ...], answers: int, commands: int) -> None:
        self.place, self.names, self.answers, self.commands = place, names, answers, commands
        self.lock = threading.Lock()
        self.acknowledged: dict[tuple[str, int], float] = {}
        self.failures: list[str] = []
        self.backups: list[tuple[Command, Path, set[tuple[str, int]]]] = []
        self.count = 0
        self.kept = False  # whether a backup has ended that began after an answer

    def run(self, seed: int) -> None:
        rng = random.Random(seed)
        threads = [threading.Thread(target=self._answer, args=(name,)) for name in self.names]
        for thread in threads:
            thread.start()
        running: list[tuple[Command, float, signal.Signals]] = []
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.1)
            for command, deadline, how in running:
                if command.process.is_alive() and time.monotonic() > deadline:
                    command.end(how)
            running = [entry for entry in running if entry[0].process.is_alive()]
            self.kept |= any(
                bool(before) and backup.process.exitcode == 0 for backup, _, before in self.backups
            )
            if len(running) < 6:  # on a slow machine they would pile up
                late = self.count >= self.commands
                command = self._start("backup" if late else rng.choice(COMMANDS))
                doomed = not late and rng.random() < 0.4
                end = time.monotonic() + (rng.uniform(0, 0.4) if doomed else 30)
                running.append((command, end, rng.choice([signal.SIGKILL, signal.SIGTERM])))
        for thread in threads:
            thread.join()
        for command, *_ in running:
            command.wait()
        assert self.failures == []

    def _start(self, name: str) -> Command:
        with self.lock:
            before = set(self.acknowledged)
        options = arguments(name, self.place)
        command = self.place.run(name, *options)
        self.count += 1
        if name == "backup":
            assert isinstance(options[0], Path)
            self.backups.append((command, options[0], before))
        return command

    def _answer(self, name: str) -> None:
        try:
            person, rng = Person(self.place, name), random.Random(name)
            while (
                len(person.acknowledged) < self.answers
                or self.count < self.commands
                or not self.kept
            ):
                pair, value = person.pair, round(rng.random(), 6)
                assert person.answer(value) == 200, (name, pair, person.pair)
                with self.lock:
                    self.acknowledged[name, pair] = value
                time.sleep(rng.uniform(0.02, 0.1))
        except Exception as error:
            self.failures.append(repr(error))


@pytest.mark.parametrize(
    ("people", "answers", "commands"),
    [(4, 20, 10), pytest.param(20, 50, 100, marks=pytest.mark.long)],
)
def test_answers_under_load(tmp_path: Path, people: int, answers: int, commands: int) -> None:
    """All are there, once, and in every backup that began after them."""
    names = tuple(f"a{number}" for number in range(people))
    place = Place(tmp_path, (*names, "spare"), pairs=1700, overlap=5)
    (tmp_path / "judged.csv").write_text("left,right,similarity\nM-001,M-002,0.25\n")
    load = Load(place, names, answers, commands)
    with place.served() as server:
        load.run(seed=people)
        server.end(signal.SIGKILL)
    stored = place.stored()
    assert {key: value for key, value in stored.items() if key[0] in names} == load.acknowledged
    assert len(load.acknowledged) >= people * answers
    finished = [(path, before) for command, path, before in load.backups if command.wait() == 0]
    assert finished and any(before for _, before in finished)
    for path, before in finished:
        kept = place.stored(path)
        assert before <= set(kept)
        assert kept.items() <= stored.items()
    path, before = max(finished, key=lambda backup: len(backup[1]))
    restored = place.run("restore", path)
    assert restored.wait() == 0, restored.words()
    assert place.stored() == place.stored(path)
    assert before <= set(place.stored())


def test_backup_tools_that_copy_the_files(place: Place) -> None:
    with place.served() as server:
        ann = Person(place, "ann")
        for number in range(10):
            ann.answer_many(4)
            subprocess.run(["cp", "-r", place.folder, place.root / f"copy-{number}"], check=True)
        server.end(signal.SIGKILL)
    assert by_people(place) == ann.acknowledged
    assert len(ann.acknowledged) == 40


def test_addresses_of_servers_and_links(place: Place, tmp_path: Path) -> None:
    def link(name: str, *more: str) -> str:
        command = place.run("link", name, *more)
        assert command.wait() == 0
        return command.words().split()[1]

    assert link("dee").startswith("http://127.0.0.1:8337/p/a/")  # never served yet
    assert link("fay", "--address", "https://x.example").startswith("https://x.example/p/a/")
    other = Place(tmp_path / "other", ("cy",), pairs=5)
    with place.served():
        start, place.tokens["eve"] = link("eve").rsplit("/", 1)
        assert start == f"{place.url}/a"
        Person(place, "eve").answer_many(1)
        command = other.run("serve", "--port", place.port)
        assert command.wait() == 2
    taken = f"pairlearn annotate serve: port {place.port} of 127.0.0.1 cannot be used"
    assert command.words().startswith(taken) and "http" not in command.words()


HEAD = b"POST /p/annotate/1/api/answer HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SLOW = {
    "nothing": b"",
    "half of a head": HEAD[:30],
    "empty lines": b"\r\n",
    "no body": HEAD + b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n",
    "half of a body": HEAD + b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
}


@contextmanager
def slow_callers(port: int, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        callers = []
        for number in range(count):
            caller = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120))
            caller.sendall(list(SLOW.values())[number % len(SLOW)])
            callers.append(caller)
        yield callers


def connections(studio: LiveStudio) -> list[Any]:
    return list(studio._server.server_state.connections)


def test_a_request_that_the_end_cuts_off_is_no_traceback(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    token = f"Authorization: Bearer {place.tokens['ann']}\r\n".encode()
    with live_studio(place.folder) as studio:
        wire = socket.create_connection(("127.0.0.1", studio.port), timeout=120)
        wire.sendall(SLOW["half of a body"].replace(b"Content-Type", token + b"Content-Type"))
        wait_until(lambda: any(wire.cycle is not None for wire in connections(studio)))
    with wire:
        assert wire.recv(65536).startswith(b"HTTP/1.1 503")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def test_half_open_connections_keep_nobody_out(place: Place) -> None:
    """300 callers that never finish their requests; people answer meanwhile."""
    with live_studio(place.folder) as studio:
        place.port = studio.port
        with slow_callers(studio.port, 300):
            Person(place, "ann").answer_many(3)
        while place.connections:
            place.connections.pop().close()
