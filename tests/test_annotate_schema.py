"""Versions of the file of answers, and the way between them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from pairlearn.studio import Answer, Plan, Project, Store, StoreError, writer
from pairlearn.studio.store_file import APPLICATION_ID, MIGRATIONS, connect, migrate, version_of

FIRST = (
    "CREATE TABLE judgement (pair INTEGER PRIMARY KEY, percent INTEGER)",
    f"PRAGMA application_id = {APPLICATION_ID}",
)
SECOND = (
    "CREATE TABLE answer (pair INTEGER PRIMARY KEY, similarity REAL)",
    "INSERT INTO answer SELECT pair, percent / 100.0 FROM judgement",
    "DROP TABLE judgement",
)
THIRD = ("ALTER TABLE answer ADD COLUMN difference REAL",)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(path, writer=True)) as connection:
        yield connection


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of version 1, as an earlier program would have left it."""
    path = tmp_path / "answers.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE judgement (pair INTEGER PRIMARY KEY, percent INTEGER)")
        connection.execute("INSERT INTO judgement VALUES (1, 80), (2, 25)")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    return path


def test_an_old_file_is_brought_up_to_date(old: Path) -> None:
    with opened(old) as connection:
        assert migrate(connection, old, (FIRST, SECOND, THIRD)) == 1
        assert version_of(connection) == 3
        found = connection.execute("SELECT * FROM answer ORDER BY pair").fetchall()
    assert found == [(1, 0.8, None), (2, 0.25, None)]
    with closing(sqlite3.connect(old.with_name("answers.v1.sqlite"))) as copy:
        assert copy.execute("SELECT percent FROM judgement ORDER BY pair").fetchall() == [
            (80,),
            (25,),
        ]
        assert version_of(copy) == 1


def test_a_step_that_fails_leaves_the_file_at_the_step_before(old: Path) -> None:
    broken = ("ALTER TABLE answer ADD COLUMN difference REAL", "INSERT INTO nowhere VALUES (1)")
    with opened(old) as connection:
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            migrate(connection, old, (FIRST, SECOND, broken))
        assert version_of(connection) == 2
        columns = [row[1] for row in connection.execute("PRAGMA table_info(answer)")]
    assert columns == ["pair", "similarity"]


def test_a_file_that_is_up_to_date_is_left_alone(old: Path) -> None:
    with opened(old) as connection:
        assert migrate(connection, old, (FIRST,)) == 1
    assert [path.name for path in old.parent.iterdir()] == ["answers.sqlite"]


def project(folder: Path) -> Project:
    (folder / "items.csv").write_text("id,x\na,1\nb,2\nc,3\n")
    return Project(folder, "table", "items.csv", Plan(pairs=3))


def test_the_answers_of_a_real_project_survive_the_next_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = project(tmp_path)
    with Store.create(one) as store:
        ann, token = store.add_annotator("ann")
        store.submit(ann.id, 1, Answer(0.7, 0.1, key="k")).result()
        before = store.answers()
    later = (*MIGRATIONS, ("ALTER TABLE answer ADD COLUMN sure REAL",))
    monkeypatch.setattr(writer, "migrate", partial(migrate, migrations=later))
    with Store.open(one) as store:
        assert store.carry_out(version_of) == len(MIGRATIONS) + 1
        assert store.answers() == before
        assert store.by_token(token) == ann
        store.submit(ann.id, 2, Answer(0.2, key="k")).result()
        assert len(store.answers()) == 2
    monkeypatch.undo()
    with pytest.raises(StoreError, match="upgrade pairlearn"):
        Store.open(one)


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    one = project(tmp_path)
    Store.create(one).close()
    with closing(sqlite3.connect(one.store_path)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
    with pytest.raises(StoreError) as caught:
        Store.open(one)
    newest = len(MIGRATIONS)
    assert f"has schema version 99; this pairlearn knows versions up to {newest}" in str(
        caught.value
    )
    with closing(sqlite3.connect(one.store_path)) as connection:
        assert version_of(connection) == 99


def other_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
        connection.commit()


def other_program_with_a_version(path: Path) -> None:
    other_program(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.commit()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (other_program, "is an SQLite file of another program"),
        (other_program_with_a_version, "is an SQLite file of another program"),
        (lambda path: path.write_bytes(b"id,x\n" * 1000), "is not a file of answers"),
        (lambda path: None, "answers.sqlite does not exist"),
    ],
)  # fmt: skip
def test_files_that_are_not_ours(tmp_path: Path, make: object, message: str) -> None:
    one = project(tmp_path)
    make(one.store_path)  # type: ignore[operator]
    before = one.store_path.read_bytes() if one.store_path.exists() else None
    with pytest.raises(StoreError) as caught:
        Store.open(one)
    assert message in str(caught.value)
    after = one.store_path.read_bytes() if one.store_path.exists() else None
    if message != "is an SQLite file of another program":  # its journal mode may change
        assert after == before
