"""A reduced run of benchmarks/annotate_durability.py: a killed studio loses no answer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import annotate_durability


def test_three_kills_lose_and_double_nothing() -> None:
    found = annotate_durability.run_kills(kills=3, clients=8, seed=1)
    assert found.acknowledged > 50 and found.resent > 0
    assert (found.missing, found.doubled, found.changed) == (0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="strace is a tool of Linux")
def test_every_answer_is_flushed_before_its_reply() -> None:
    found = annotate_durability.run_traced(clients=4, seconds=0.5)
    assert found.answers > 10 and found.flushed_before_reply == found.answers


ASK = '7 read(9<TCP:[1]>, "POST /api/answer HTTP/1.1\\r\\nHost", 65536) = 300'
TELL = '7 sendto(9<TCP:[1]>, "HTTP/1.1 200 OK\\r\\ndate", 900, 0, NULL, 0) = 900'
FLUSH = "8 fdatasync(5</p/answers.sqlite-wal>) = 0"
BEGIN = "8 fdatasync(5</p/answers.sqlite-wal> <unfinished ...>"
END = "8 <... fdatasync resumed>)            = 0"


@pytest.mark.parametrize(
    ("lines", "flushed"),
    [
        ([ASK, FLUSH, TELL], 1),
        ([ASK, BEGIN, END, TELL], 1),
        ([FLUSH, ASK, TELL], 0),
        ([ASK, TELL, FLUSH], 0),
        ([BEGIN, ASK, END, TELL], 0),  # begun before the answer came: it may be without it
        ([ASK, BEGIN, TELL, END], 0),
        ([ASK, FLUSH.replace("= 0", "= -1 EIO"), TELL], 0),
        ([ASK, FLUSH.replace("answers.sqlite-wal", "other"), TELL], 0),
    ],
)
def test_reading_a_trace(lines: list[str], flushed: int) -> None:
    found = annotate_durability.read_trace(lines)
    assert (found.answers, found.flushed_before_reply) == (1, flushed)
