"""The store under SIGKILL."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from pairlearn.studio import Answer, Plan, Project, Store

ANNOTATORS = 8

# Imports once and then forks for each round: a round costs milliseconds, not an import.
CLIENTS = """
import os, sys, threading
from pairlearn.studio import Answer, Project, Store

def client(store, who):
    while (task := store.next_task(who)) is not None:
        key = f"{who}-{task.pair}"
        receipt = store.submit(who, task.pair, Answer(task.pair / 1e6, key=key)).result()
        line = f"{who} {task.pair} {key} {receipt.answer_id} {receipt.revision}\\n"
        os.write(1, line.encode())

def answer():
    with Store.open(Project.load(sys.argv[1])) as store:
        people = [one.id for one in store.annotators()]
        threads = [threading.Thread(target=client, args=(store, who)) for who in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        answer()
        os._exit(0)
    os.write(1, f"pid {child}\\n".encode())
    os.waitpid(child, 0)
    os.write(1, b"dead\\n")
"""


def project(folder: Path, pairs: int) -> Project:
    rows = "".join(f"i{k},{k}\n" for k in range(300))
    (folder / "items.csv").write_text(f"id,x\n{rows}")
    one = Project(folder, "table", "items.csv", Plan(pairs))
    one.save()
    with Store.create(one) as store:
        store.add_annotators([f"a{k}" for k in range(ANNOTATORS)])
    return one


def kill_rounds(one: Project, rounds: int, seed: int) -> int:
    """Kill the clients `rounds` times; how many answers they had receipts for."""
    rng = random.Random(seed)
    receipts: dict[tuple[int, int, str], tuple[int, int]] = {}
    program = subprocess.Popen(
        [sys.executable, "-c", CLIENTS, str(one.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        for _ in range(rounds):
            program.stdin.write("go\n")
            program.stdin.flush()
            pid = killed = 0
            wanted = rng.randint(0, 60)
            for line in program.stdout:
                words = line.split()
                if words[0] == "dead":
                    break
                if words[0] == "pid":
                    pid = int(words[1])
                else:
                    who, pair, key, answer_id, revision = words
                    receipts[int(who), int(pair), key] = (int(answer_id), int(revision))
                    wanted -= 1
                if pid and not killed and wanted <= 0:
                    time.sleep(rng.random() * 0.02)  # anywhere within a transaction
                    os.kill(pid, signal.SIGKILL)
                    killed = 1
            check(one, receipts)
    finally:
        program.stdin.close()
        program.stdout.close()
        program.wait()
    return len(receipts)


def check(one: Project, receipts: dict[tuple[int, int, str], tuple[int, int]]) -> None:
    """Every receipt has its answer, once, in a file that is sound."""
    with closing(sqlite3.connect(one.store_path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        rows = connection.execute(
            "SELECT annotator, pair, key, id, revision, similarity FROM answer"
        ).fetchall()
        standing = connection.execute(
            "SELECT annotator, pair, answer FROM assignment WHERE answer IS NOT NULL"
        ).fetchall()
        logged = connection.execute(
            "SELECT count(*) FROM change WHERE after IS NOT NULL"
        ).fetchone()
    found = {(who, pair, key): (number, revision) for who, pair, key, number, revision, _ in rows}
    assert len(found) == len(rows) == len(standing) == logged[0]
    assert all(similarity == pair / 1e6 for _, pair, _, _, _, similarity in rows)
    assert {key: found.get(key) for key in receipts} == receipts


def test_no_receipt_is_lost_or_doubled_by_a_kill(tmp_path: Path) -> None:
    one = project(tmp_path, pairs=4000)
    count = kill_rounds(one, rounds=8, seed=1)
    assert count > 50
    with Store.open(one) as store:  # deliveries that are repeated after the restart
        sent = [(row.annotator, row.pair, row.id) for row in store.answers()]
        names = {who.name: who.id for who in store.annotators()}
        again = [
            store.submit(names[name], pair, Answer(0.5, key=f"{names[name]}-{pair}"))
            for name, pair, _ in sent
        ]
        assert [one.result().answer_id for one in again] == [number for _, _, number in sent]
        assert len(store.answers(current=False)) == len(sent)


@pytest.mark.long
def test_no_receipt_is_lost_or_doubled_by_fifty_kills(tmp_path: Path) -> None:
    one = project(tmp_path, pairs=30_000)
    assert kill_rounds(one, rounds=50, seed=2) > 500
