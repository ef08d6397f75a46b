"""Backups, snapshots, and the way back from them."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from pairlearn_studio import Answer, Project, Store, StoreError, writer
from pairlearn_studio.store_file import StoreFileError, copy_file, find_damage
from studio_processes import Command, Person, Place, check_outage_log, limit_files
from studio_store import make, rows, submit

COUNT = "SELECT count(*) FROM answer"


def answered(folder: Path, count: int = 6) -> Project:
    project = make(folder, items=12, pairs=60)
    with Store.create(project) as store:
        store.add_annotator("ann")
        for pair in range(1, count + 1):
            submit(store, 1, pair)
    return project


def test_a_backup_is_one_file_for_its_owner(tmp_path: Path) -> None:
    project = answered(tmp_path / "p")
    with Store.open(project) as store:  # in use, with a log beside it
        for pair in (7, 8):
            submit(store, 1, pair)
        store.undo(1).result()
        path, count = writer.back_up(project, tmp_path / "copy.sqlite")
        assert count == 7 == len(store.answers())  # without the one that was taken back
    assert rows(path, COUNT) == [(8,)]
    assert writer.restore(project, path).answers == 7
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.sqlite", "p"]
    with pytest.raises(StoreError, match="already exists"):
        writer.back_up(project, path)


def test_a_copy_that_is_not_whole_does_not_appear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = answered(tmp_path / "p")
    monkeypatch.setattr("pairlearn_studio.store_file.find_damage", lambda *_: "page 7 is lost")
    with pytest.raises(StoreFileError, match=r"not written whole \(page 7 is lost\)"):
        writer.back_up(project, tmp_path / "copy.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def answer(project: Project, first: int, last: int) -> None:
    for pair in range(first, last + 1):
        with Store.open(project) as store:  # closing waits for the snapshot
            submit(store, 1, pair)


def snapshot(project: Project) -> int | None:
    """Number of answers in the automatic snapshot."""
    path = project.folder / "backups" / writer.SNAPSHOT
    return int(rows(path, COUNT)[0][0]) if path.exists() else None


def test_the_snapshot_is_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after an older state was restored."""
    monkeypatch.setattr(writer, "EVERY", 5)
    project = answered(tmp_path / "p", 0)
    answer(project, 1, 8)
    assert snapshot(project) == 5
    early, _ = writer.back_up(project, tmp_path / "early.sqlite")
    answer(project, 9, 17)
    assert snapshot(project) == 15
    writer.restore(project, early)
    assert snapshot(project) is None
    assert len(list((project.folder / "backups").glob("replaced-auto-*"))) == 1
    with pytest.raises(StoreError, match="has no backups"):
        writer.newest_backup(project)
    answer(project, 9, 14)
    assert snapshot(project) == 14
    assert writer.newest_backup(project).name == writer.SNAPSHOT


def test_a_snapshot_with_more_answers_than_there_are_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "EVERY", 5)
    project, more = answered(tmp_path / "p", 2), answered(tmp_path / "q", 11)
    writer.back_up(more, project.folder / "backups" / writer.SNAPSHOT)
    with Store.open(project) as store:
        for pair in range(3, 9):
            submit(store, 1, pair)
    assert snapshot(project) == 8


def test_nobody_writes_while_a_backup_is_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = answered(tmp_path / "p")
    path, _ = writer.back_up(project)
    with Store.open(project), pytest.raises(StoreError, match="in use by another command"):
        writer.restore(project, path)

    def copy_while_others_try(connection: sqlite3.Connection, kept: Path) -> dict[str, int]:
        with pytest.raises(StoreError, match="being restored from a backup"):
            Store.open(project)
        return copy_file(connection, kept)

    monkeypatch.setattr(writer, "copy_file", copy_while_others_try)
    restored = writer.restore(project, path)
    assert restored.replaced is not None and restored.replaced.exists()
    with Store.open(project) as store:
        submit(store, 1, 7)


def test_a_snapshot_does_not_hold_up_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def slow(connection: sqlite3.Connection, path: Path) -> dict[str, int]:
        assert go.wait(120)
        return copy_file(connection, path)

    monkeypatch.setattr(writer, "EVERY", 5)
    monkeypatch.setattr(writer, "copy_file", slow)
    project = answered(tmp_path / "p", 0)
    with Store.open(project) as store:
        for pair in range(1, 21):
            store.submit(1, pair, Answer(0.5)).result(timeout=60)
        go.set()
    assert [path.name for path in (project.folder / "backups").iterdir()] == [writer.SNAPSHOT]


def test_a_snapshot_that_fails_is_told_once_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "EVERY", 10)
    project = answered(tmp_path / "p", 0)
    (project.folder / "backups").write_text("in the way")
    with Store.open(project) as store:
        for pair in range(1, 16):
            submit(store, 1, pair)
    assert len(caplog.messages) == 1 and "no snapshot" in caplog.messages[0]
    assert rows(project.store_path, COUNT) == [(15,)]


HARMS: dict[str, Callable[[Path], object]] = {
    "overwritten": lambda path: path.write_bytes(b"no SQLite here\n" * 1000),
    "cut": lambda path: os.truncate(path, 8192),
    "empty": lambda path: os.truncate(path, 0),
    "gone": Path.unlink,
}


@pytest.mark.parametrize("harm", HARMS)
def test_the_way_back_from_a_file_that_is_lost(tmp_path: Path, harm: str) -> None:
    project = answered(tmp_path / "p")
    path, _ = writer.back_up(project)
    HARMS[harm](project.store_path)
    with pytest.raises(StoreError):
        Store.open(project)
    restored = writer.restore(project, writer.newest_backup(project))
    assert restored.answers == 6
    with Store.open(project) as store:
        assert len(store.answers()) == 6
        submit(store, 1, 7)
    assert (restored.replaced is None) == (harm == "gone")
    assert restored.links is None  # which links were voided since is unknown
    assert rows(path, COUNT) == [(6,)]


def test_a_link_that_was_ended_stays_so(tmp_path: Path) -> None:
    project = make(tmp_path / "p", items=12, pairs=60)
    with Store.create(project) as store:
        tokens = {who.name: token for who, token in store.add_annotators(["ann", "bob", "dee"])}
        old = store.supervisor_token
    path, _ = writer.back_up(project)
    with Store.open(project) as store:
        renewed, supervisor = store.renew_token(1), store.renew_supervisor_token()
        store.retire(2)
        _, added = store.add_annotator("cy")
    assert writer.restore(project, path).links == ["ann", "bob", "cy", "the supervisor"]
    with Store.open(project) as store:
        links = [renewed, added, tokens["dee"], tokens["ann"], tokens["bob"]]
        holders = [store.by_token(token) for token in links]
        assert [who and who.name for who in holders] == ["ann", "cy", "dee", None, None]
        assert store.is_supervisor(supervisor) and not store.is_supervisor(str(old))
        assert {who.name: store.progress(who.id).total for who in store.annotators()} == {
            "ann": 20, "bob": 0, "dee": 20, "cy": 20,
        }  # fmt: skip
    assert writer.restore(project, path).links == ["ann", "bob", "cy", "the supervisor"]
    assert not list(project.folder.glob("tmp*"))


def test_what_is_not_restored(tmp_path: Path) -> None:
    project = answered(tmp_path / "p")
    with pytest.raises(StoreError, match="has no backups"):
        writer.newest_backup(project)
    empty, other = tmp_path / "empty.sqlite", tmp_path / "other.sqlite"
    empty.touch()
    rows(other, "CREATE TABLE bookmarks (url TEXT)")
    damaged, _ = writer.back_up(project)
    os.truncate(damaged, damaged.stat().st_size - 4096)
    for source, message in (
        (project.store_path, "is the file of answers itself"),
        (tmp_path, "is a folder"),
        (empty, "is empty"),
        (other, "of another program"),
        (damaged, "damaged"),
    ):
        with pytest.raises(StoreError, match=message):
            writer.restore(project, source)
    assert rows(project.store_path, COUNT) == [(6,)]


def test_a_file_of_two_moments_is_told_from_a_whole_one(tmp_path: Path) -> None:
    project = answered(tmp_path / "p")
    torn = shutil.copy(project.store_path, tmp_path / "torn.sqlite")
    with closing(sqlite3.connect(torn, isolation_level=None)) as connection:
        assert find_damage(connection) == ""
        connection.execute("DROP TRIGGER answer_delete")
        connection.execute("DELETE FROM answer WHERE id = 3")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert find_damage(connection) == "6 answers were stored, 5 are there"


WATCHED = """
import sys
from pathlib import Path

opened = []
sys.addaudithook(
    lambda event, given: opened.append(given[0])
    if event == "open" and str(given[0]).endswith((".sqlite", "-wal", "-shm")) else None
)
from typer.testing import CliRunner
from pairlearn_studio import Project, Store
from pairlearn_studio.cli.annotate import app

folder = Path(sys.argv[1])
with Store.open(Project.load(folder)):
    for command in (["status"], ["link", "bob"], ["backup"], ["export", folder / "out.csv"]):
        done = CliRunner().invoke(app, [command[0], str(folder), *map(str, command[1:])])
        assert done.exit_code == 0, done.output
print([path for path in opened if Path(path).parent == folder])
"""


def test_only_sqlite_opens_its_files(tmp_path: Path) -> None:
    """Closing a descriptor of ours would drop the locks of all connections of the process."""
    project = answered(tmp_path / "p")
    command = [sys.executable, "-c", WATCHED, project.folder]
    assert subprocess.check_output(command, text=True) == "[]\n"


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="prlimit and tmpfs are of Linux")


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    place = Place(tmp_path, ("ann",), pairs=60)
    with place.served() as server:
        ann = Person(place, "ann")
        ann.answer_many(5)
        limit_files(server.pid, 4096)
        assert [ann.answer(0.5) for _ in range(5)] == [503] * 5
        limit_files(server.pid, resource.RLIM_INFINITY)
        ann.answer_many(5)
        check_outage_log(server.words())
        assert server.words().count("\n") == 4  # two at the start, two of the outage
        server.end(signal.SIGKILL)
    assert place.stored() == ann.acknowledged
    assert len(ann.acknowledged) == 10


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    status = subprocess.call(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder])
    assert status == 0, "this test mounts a tmpfs: run it as root"
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path) -> Path:
    """Take all the space that there is."""
    path = folder / "ballast"
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    return path


def refused(command: Command) -> str:
    """The one line of a command that fails without calling the file damaged."""
    assert command.wait() == 2
    assert "damaged" not in command.words() and command.words().count("\n") == 1
    return command.words()


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
        check_outage_log(server.words())
        assert "the disk is full" in server.words()
        server.end(signal.SIGKILL)
    for leftover in place.folder.glob("*-shm"):
        leftover.unlink()  # as after a power cut
    ballast = fill(small_disk)
    for name in ("serve", "status", "backup"):
        words = refused(place.run(name))
        assert "the disk is full" in words or "No space left" in words
    ballast.unlink()
    assert place.stored() == ann.acknowledged


@pytest.mark.long
def test_a_disk_that_is_read_only(small_disk: Path, tmp_path: Path) -> None:
    place = Place(small_disk, ("ann",), pairs=20)
    place.root = tmp_path  # what commands say goes to another disk
    with Store.open(place.project) as store:
        for pair in range(1, 4):
            submit(store, 1, pair)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for name, *more in (["status"], ["export", "pairs.csv"], ["backup", "copy.sqlite"]):
        command = place.run(name, *(str(tmp_path / name) for name in more))
        assert command.wait() == 0, command.words()
    assert rows(tmp_path / "copy.sqlite", COUNT) == [(3,)]
    assert len((tmp_path / "pairs.csv").read_text().splitlines()) == 1 + 3
    for name, *more in (["serve"], ["link", "bob"], ["backup"]):
        assert "Read-only file system" in refused(place.run(name, *more))


@pytest.mark.long
def test_a_file_that_nobody_may_change(tmp_path: Path) -> None:
    """Root may write every file that is not immutable."""
    place = Place(tmp_path, ("ann",), pairs=20)
    path, root = place.project.store_path, os.geteuid() == 0
    subprocess.run([*(["chattr", "+i"] if root else ["chmod", "400"]), path], check=True)
    try:
        command = place.run("serve")
        assert command.wait() == 2 and command.words().count("\n") == 1
        assert "cannot be written: the file is read-only" in command.words()
        assert place.run("status").wait() == 0
    finally:
        subprocess.run([*(["chattr", "-i"] if root else ["chmod", "600"]), path], check=True)
    assert place.stored() == {}
