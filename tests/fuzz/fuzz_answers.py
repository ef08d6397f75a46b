"""``Store.open``: the SQLite file of the studio's answers, and every question put to it."""

from __future__ import annotations

import shutil
from typing import Any

from fuzz.sandbox import Broken, folder, listing
from pairlearn.studio.project import Plan, Project
from pairlearn.studio.store import Store
from pairlearn.studio.store_file import StoreError

WORDS = [b"SQLite format 3\0", b"answer", b"assignment", b"CREATE TABLE", b"pair", b"\0\0\0\x01"]


def one_input(data: bytes) -> Any:
    place = folder("answers") / "project"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "items.csv").write_text("id,x\n" + "".join(f"i{k},{k}\n" for k in range(4)))
    project = Project(place, "table", "items.csv", Plan(3))
    project.store_path.write_bytes(data)
    before = listing(place)
    try:
        store = Store.open(project)
    except StoreError as error:
        named(error, project)
        if listing(place) != before:
            raise Broken("a file that was refused has changed") from error
        return str(error)
    store.close()
    migrated = listing(place)  # a file of the first version is brought to the present one
    with Store.open(project) as store:
        try:
            found = everything(store)
        except StoreError as error:
            named(error, project)
            return str(error)
    if listing(place) != migrated:
        raise Broken("reading has changed the file")
    return found


def everything(store: Store) -> list[Any]:
    found: list[Any] = [store.annotators(), store.pairs(), store.answers(), store.answers(False)]
    found += [store.history(), store.overview()]
    for one in store.annotators():
        found += [store.next_task(one.id), store.progress(one.id)]
        found += [store.current(one.id, pair.id) for pair in store.pairs()]
    return found


def named(error: Exception, project: Project) -> None:
    if str(project.folder) not in str(error) or len(str(error)) > 2000:
        raise Broken(f"the message does not name the file: {error!s:.300}") from error
