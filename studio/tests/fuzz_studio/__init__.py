"""Files of the studio, and what a language model replies, whatever their bytes are."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec

from fuzz.mutation import json_mutation
from fuzz.sandbox import Broken, attempt, folder, harness, listing, same
from fuzz.table_files import CSV, written
from pairlearn_studio.ask import AnswerCache
from pairlearn_studio.changes import Changes
from pairlearn_studio.endpoint import Reply, Way, _read_choice, _read_completion
from pairlearn_studio.exchange import Statement, _import
from pairlearn_studio.items import Items
from pairlearn_studio.label_studio import LabelStudioError, read_label_studio
from pairlearn_studio.limits import SkippedError
from pairlearn_studio.project import Plan, Project, ProjectError
from pairlearn_studio.store import Store
from pairlearn_studio.store_file import StoreError, make_tables


def keys(*names: str) -> list[bytes]:
    return [f'"{name}":'.encode() for name in names]


SQLITE = [b"SQLite format 3\0", b"CREATE TABLE", b"\0\0\0\x01"]


@harness([b'["one", {}]', b'["two", {"mass": 1}]', b"\n", b"{}"])
def answer_cache(data: bytes) -> Any:
    path = folder("answer_cache") / "cache.jsonl"
    path.write_bytes(data)
    cache = AnswerCache(path)
    found = [cache.get("one"), cache.get("two"), len(cache.answers)]
    cache.put("three", {"tokens": []})
    again = AnswerCache(path)
    same([again.get("one"), again.get("two")], found[:2], "written and read")
    if again.get("three") is None or len(again.answers) < found[2]:
        raise Broken("what was put is not there")
    return found if found[2] else "no answers"


@harness([*SQLITE, b"answer", b"assignment", b"pair"])
def answers(data: bytes) -> Any:
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
    opened = listing(place)  # a new file has its tables now
    with Store.open(project) as store:
        try:
            found = everything(store)
        except StoreError as error:
            named(error, project)
            return str(error)
    if listing(place) != opened:
        raise Broken("reading has changed the file")
    return found


def everything(store: Store) -> list[Any]:
    found: list[Any] = [store.annotators(), store.pairs(), store.answers(), store.answers(False)]
    found += [store.overview(store.answers())]
    for one in store.annotators():
        found += [store.next_task(one.id), store.progress(one.id)]
    return found


def named(error: Exception, project: Project) -> None:
    if str(project.folder) not in str(error) or len(str(error)) > 2000:
        raise Broken(f"the message does not name the file: {error!s:.300}") from error


@harness(
    [*keys("format", "version", "kind", "items", "plan", "pairs", "overlap", "columns"),
     b'"../', b'"pairlearn-project"', b"\\ud800"],
    json_mutation,
)  # fmt: skip
def project_file(data: bytes) -> Project | str:
    place = folder("project_file")
    path = place / "project.json"
    path.write_bytes(data)
    found = attempt(lambda: Project.load(place), path, ProjectError)
    if not isinstance(found, str):
        found.save()
        same(Project.load(place), found, "written and read")
    return found


@harness([*CSV, b"id", b"name", b"x0", b"\0", b"1", b"2.5"])
def studio_items(data: bytes) -> Any:
    path = written("studio_items", data)
    project = Project(path.parent, "table", path.name, Plan(1))
    found = attempt(lambda: Items.open(project), path, ProjectError)
    if not isinstance(found, str):
        widths = {len(found.view(one).rows) for one in found.ids}
        same(len(widths), 1, "columns")
        same(len(set(found.ids)), len(found), "ids")
    path.unlink()
    return found


@harness(
    [*keys("similarity", "annotations", "result", "number", "completed_by", "left_id"),
     b'"cannot_say":', b'"Can\'t say"', b"null", b"[{"],
    json_mutation,
)  # fmt: skip
def label_studio(data: bytes) -> Any:
    path = folder("label_studio") / "export.json"
    path.write_bytes(data)
    result = attempt(lambda: read_label_studio(path), path, LabelStudioError)
    if isinstance(result, str):
        return result
    statements, _ = result
    again, _ = read_label_studio(path)
    same(without_keys(again), without_keys(statements), "read once more")
    for statement in statements:
        check_statement(statement)
    imported(statements)
    return result


def check_statement(one: Statement) -> None:
    answer = one.answer
    replace(answer)  # its checks run again
    given = (answer.similarity, answer.difference, answer.others.get("preference"))
    if answer.cant_say != (given == (None, None, None)):
        raise Broken(f"{answer} says both something and nothing")
    if not (one.left and one.right and one.annotator and one.place):
        raise Broken(f"{one} has an empty field")


def imported(rows: list[Statement]) -> None:
    """Whatever was read goes into the store, or is refused by it."""
    connection = empty_store()
    connection.execute("BEGIN")
    try:
        _import(Changes(connection, "import"), rows)
    except StoreError:
        pass
    finally:
        connection.execute("ROLLBACK")


@cache
def empty_store() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    make_tables(connection, Path("memory"))
    return connection


def without_keys(rows: list[Statement]) -> list[Any]:
    return [replace(one, answer=replace(one.answer, key="k")) for one in rows]


ANSWERS = {"yes": ("yes",), "no": ("no",)}


@harness(
    [*keys("choices", "message", "content", "logprobs", "token", "logprob", "top_logprobs"),
     *keys("usage", "error", "code"), b"-1e999"],
    json_mutation,
)  # fmt: skip
def model_reply(data: bytes) -> Any:
    try:
        completion, usage = _read_completion(data)
    except SkippedError as error:
        if len(str(error)) > 600:
            raise Broken(f"a message of {len(str(error))} characters") from error
        return str(error)
    if usage is not None and min(usage) < 0:
        raise Broken(f"tokens {usage}")
    replies = [_read_choice(completion.choices[0], way, ANSWERS) for way in get_args(Way)]
    for reply in replies:
        stored = json.loads(json.dumps(msgspec.to_builtins(reply)))
        same(msgspec.convert(stored, Reply), reply, "written and read")
        total = math.fsum(reply.shares.values())
        if not (0 <= reply.mass <= 1 and math.isclose(total, bool(reply.mass), abs_tol=1e-9)):
            raise Broken(f"{reply}")
        if len(reply.skipped) > 600 or len(reply.text) > 80:
            raise Broken(f"a long text: {reply!s:.400}")
    return replies
