"""Connections that keep the studio waiting, in either direction."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from browser import LiveStudio, live_studio
from pairlearn.studio.server.security import Connection, most_connections
from studio_processes import Person, Place, wait_until

HEAD = b"POST /annotate/1/api/answer HTTP/1.1\r\nHost: 127.0.0.1\r\n"
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
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120))
            one.sendall(list(SLOW.values())[number % len(SLOW)])
            callers.append(one)
        yield callers


def wait_for_end(wire: socket.socket) -> None:
    """Read until the studio closes the connection, perhaps after a refusal."""
    with suppress(ConnectionResetError):
        while wire.recv(65536):
            pass


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, ("ann",), pairs=100)


@pytest.fixture
def patient(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveStudio]:
    """A studio that gives every request time, however busy the machine is."""
    monkeypatch.setattr(Connection, "REQUEST_SECONDS", 120.0)
    monkeypatch.setattr(Connection, "REPLY_SECONDS", 120.0)
    with live_studio(place.folder) as studio:
        place.port = studio.port
        yield studio
        while place.connections:
            place.connections.pop().close()


@pytest.fixture
def hurried(patient: LiveStudio, monkeypatch: pytest.MonkeyPatch) -> LiveStudio:
    monkeypatch.setattr(Connection, "REQUEST_SECONDS", 0.6)
    return patient


def connections(studio: LiveStudio) -> list[Any]:
    return list(studio._server.server_state.connections)


def test_a_request_has_to_arrive_in_time(hurried: LiveStudio) -> None:
    with slow_callers(hurried.port, len(SLOW)) as callers:
        for wire in callers:
            wait_for_end(wire)


def test_a_request_that_the_end_cuts_off_is_no_traceback(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    token = f"Authorization: Bearer {place.tokens['ann']}\r\n".encode()
    with live_studio(place.folder) as studio:
        wire = socket.create_connection(("127.0.0.1", studio.port), timeout=120)
        wire.sendall(SLOW["half of a body"].replace(b"Content-Type", token + b"Content-Type"))
        wait_until(lambda: [one for one in connections(studio) if one.cycle is not None])
    with wire:
        assert wire.recv(65536).startswith(b"HTTP/1.1 503")
    assert [one.getMessage() for one in caplog.records if one.exc_info] == []


def test_bytes_that_trickle_in_win_no_time(hurried: LiveStudio) -> None:
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", hurried.port), timeout=120) as wire:
        with pytest.raises(OSError):
            for letter in HEAD * 3:
                wire.sendall(bytes([letter]))
                time.sleep(0.02)
        assert time.monotonic() - begun > 0.5


def test_a_patient_annotator_stays(patient: LiveStudio, place: Place) -> None:
    """The time that a request has does not run between requests."""
    ann = Person(place, "ann")
    ann.answer_many(2)
    wait_until(lambda: [one._deadline for one in connections(patient)] == [None])
    first = ann.connection.sock
    ann.answer_many(2)
    assert ann.connection.sock is first


def test_new_connections_take_the_place_of_waiting_ones(
    patient: LiveStudio, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "MOST", 20)
    with slow_callers(patient.port, 60) as callers:
        Person(place, "ann").answer_many(5)
        wait_until(lambda: len(connections(patient)) <= 20)
        wait_for_end(callers[0])


@contextmanager
def deaf_callers(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Connections that ask for far more than they ever read."""
    ask = b"GET /static/annotate.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with ExitStack() as stack:
        callers = []
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            one.settimeout(120)
            one.connect(("127.0.0.1", port))
            one.sendall(ask * 400)
            callers.append(one)
        yield callers


def stuck(studio: LiveStudio) -> int:
    """Connections whose replies wait for somebody to read them."""
    return sum(one.flow.write_paused for one in connections(studio))


def look(studio: LiveStudio) -> None:
    """Have the studio look once at every reply, as it does after `REPLY_SECONDS`."""
    for one in connections(studio):
        seen = threading.Event()
        one.loop.call_soon_threadsafe(lambda one=one, seen=seen: (one._look_at_reply(), seen.set()))
        assert seen.wait(120)


def test_a_reply_has_to_be_read_in_time(
    patient: LiveStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is taken between two looks keeps a connection; what is not ends it."""
    with deaf_callers(patient.port, 3) as callers:
        wait_until(lambda: stuck(patient) == 3)
        look(patient)
        left = {one: one._left for one in connections(patient)}
        while not any(one.transport.get_write_buffer_size() < left[one] for one in left):
            assert callers[0].recv(65536)
        look(patient)
        wait_until(lambda: len(connections(patient)) == 1)
        monkeypatch.setattr(Connection, "REPLY_SECONDS", 0.2)
        look(patient)
        wait_until(lambda: not connections(patient))


def test_connections_that_never_read_lock_nobody_out(
    patient: LiveStudio, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "MOST", 6)
    with deaf_callers(patient.port, 6):
        wait_until(lambda: stuck(patient) == 6)
        Person(place, "ann").answer_many(5)
        assert stuck(patient) == 5


def test_connections_leave_files_for_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {}
    for files in (64, 256, 1024, resource.RLIM_INFINITY):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        allowed[files] = most_connections(500)
    assert list(allowed.values()) == [32, 128, 500, 500]


@pytest.mark.long
def test_three_hundred_half_open_connections_for_forty_seconds(place: Place) -> None:
    waits = []
    with place.served():
        for _ in range(4):
            with slow_callers(place.port, 300):
                end = time.monotonic() + 10
                while time.monotonic() < end:
                    begun = time.monotonic()
                    ann = Person(place, "ann")
                    assert ann.answer(0.5) == 200
                    waits.append(time.monotonic() - begun)
                    ann.connection.close()
                    time.sleep(0.5)
    assert len(waits) > 20 and max(waits) < 3
