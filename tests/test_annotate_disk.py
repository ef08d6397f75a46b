"""Disks that take nothing: full, limited, read-only. Answers wait, and nobody sees a traceback."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from annotate_processes import Person, Place
from browser import chromium, press, settled, snapshot

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="prlimit and tmpfs are of Linux")


def limit_files(pid: int, size: int) -> None:
    """Let a process write no file beyond a size, which any user may do to their processes."""
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def said_once(words: str) -> None:
    assert words.count("answers are not being stored") == 1
    assert words.count("answers are being stored again") == 1
    assert "Traceback" not in words and "damaged" not in words


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    place = Place(tmp_path, ("ann",), pairs=60)
    with place.served() as server:
        ann = Person(place, "ann")
        ann.answer_many(5)
        limit_files(server.pid, 4096)
        assert [ann.answer(0.5) for _ in range(5)] == [503] * 5
        limit_files(server.pid, resource.RLIM_INFINITY)
        ann.answer_many(5)
        said_once(server.words())
        assert server.words().count("\n") == 4  # two at the start, two of the outage
        server.end(signal.SIGKILL)
    assert place.stored() == ann.acknowledged
    assert len(ann.acknowledged) == 10


def test_the_page_keeps_an_answer_that_is_not_stored_yet(tmp_path: Path) -> None:
    place = Place(tmp_path, ("ann",), pairs=20)
    with place.served() as server, chromium() as browser:
        page = browser.new_page()
        page.add_init_script("localStorage.setItem('pairlearn tutorial seen', '1')")
        page.goto(f"{place.url}/a/{place.tokens['ann']}")
        settled(page)
        press(page, "s")
        settled(page, 1)
        limit_files(server.pid, 4096)
        press(page, "l")
        expect(page.locator("#away")).to_contain_text(
            "The studio cannot write to its disk. Your answer is kept in this browser, "
            "not stored yet; it is sent again in"
        )
        snapshot(page, "disk-full")
        page.reload()  # it waits through that, too
        expect(page.locator("#away")).to_contain_text("The studio cannot write to its disk")
        limit_files(server.pid, resource.RLIM_INFINITY)
        page.locator("#retry").click()
        settled(page, 2)
        said_once(server.words())
    assert sorted(place.stored().values(), key=str) == [0.0, 1.0]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False)
    assert made.returncode == 0, "this test mounts a tmpfs: run it as root"
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path) -> Path:
    """Take all the space that there is."""
    path = folder / "ballast"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    return path


@pytest.mark.long
def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    place = Place(small_disk, ("ann",), pairs=200)
    place.root = tmp_path  # what commands say goes to another disk
    with place.served() as server:
        ann = Person(place, "ann")
        ann.answer_many(5)
        ballast = fill(small_disk)
        statuses = [ann.answer(0.5) for _ in range(20)]
        assert statuses[-1] == 503 and set(statuses) <= {200, 503}
        ballast.unlink()
        ann.answer_many(5)
        said_once(server.words())
        assert "the disk is full" in server.words()
        server.end(signal.SIGKILL)
    for leftover in place.folder.glob("*-shm"):
        leftover.unlink()  # as after a power cut
    ballast = fill(small_disk)
    for name in ("serve", "status", "backup"):
        command = place.run(name)
        assert command.wait() == 2
        assert "the disk is full" in command.words() or "No space left" in command.words()
        assert "damaged" not in command.words() and command.words().count("\n") == 1
    ballast.unlink()
    assert place.stored() == ann.acknowledged


def refused(place: Place) -> None:
    command = place.run("serve")
    if command.wait(20) is None:
        command.end(signal.SIGKILL)
    assert command.words().count("\n") == 1
    assert "cannot be written: the file is read-only" in command.words()
    assert place.run("status").wait() == 0


@pytest.mark.long
def test_a_file_that_nobody_may_change(tmp_path: Path) -> None:
    place = Place(tmp_path, ("ann",), pairs=20)
    path = place.project.store_path
    made = subprocess.run(["chattr", "+i", path], check=False)
    assert made.returncode == 0, "this test makes a file immutable: run it as root"
    try:
        refused(place)
    finally:
        subprocess.run(["chattr", "-i", path], check=True)
    assert place.stored() == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
def test_a_file_without_the_right_to_write(tmp_path: Path) -> None:
    place = Place(tmp_path, ("ann",), pairs=20)
    place.project.store_path.chmod(0o400)
    refused(place)
