"""Assertions that every harness makes about a reader, and the folder that it works in."""

from __future__ import annotations

import atexit
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

from pairlearn.io import ItemTable
from tables import contents

T = TypeVar("T")

LONGEST_MESSAGE = 2000
MARK = b"\n--8<--\n"
"""Separates the files of an input."""


class Broken(AssertionError):
    """A reader did something that no reader may do."""


@dataclass(frozen=True)
class Harness:
    """A function of an input, words for the fuzzer, and a mutation that keeps the format."""

    one_input: Callable[[bytes], Any]
    words: list[bytes]
    mutate: Callable[[bytes, int], bytes | None] | None = None


READERS: dict[str, Harness] = {}
"""Readers by name, which is that of their folder in a corpus."""


def harness(words: list[bytes], mutate: Any = None) -> Callable[[T], T]:
    """Register a function of an input in `READERS` by its name."""

    def register(one_input: Any) -> Any:
        READERS[one_input.__name__] = Harness(one_input, words, mutate)
        return one_input

    return register


@cache
def folder(name: str) -> Path:
    """An empty folder of this process for one harness, in memory if possible."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    top = tempfile.mkdtemp(prefix="fuzz-", dir=os.environ.get("PAIRLEARN_FUZZ_FOLDER", memory))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    path = Path(top, name)
    path.mkdir()
    return path


def listing(place: Path) -> dict[str, bytes | None]:
    """Everything in a folder: files with their bytes, folders with None."""
    return {
        str(path.relative_to(place)): path.read_bytes() if path.is_file() else None
        for path in sorted(place.rglob("*"))
    }


def attempt(
    read: Callable[[], T], path: Path, errors: type[Exception] | tuple[type[Exception], ...]
) -> T | str:
    """Call a reader: the result, or the message of a documented error, which names the file.

    Other errors pass through. No file may change.
    """
    before = listing(path.parent)
    try:
        result: T | str = read()
    except errors as error:
        result = str(error)
        if str(path) not in result:
            raise Broken(f"the message does not name {path}: {result}") from error
        if len(result) > LONGEST_MESSAGE:
            raise Broken(f"a message of {len(result)} characters: {result[:200]}…") from error
    after = listing(path.parent)
    if after != before:
        names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        raise Broken(f"reading changed {names}")
    return result


def same(actual: Any, expected: Any, what: str) -> None:
    """Raise `Broken` if two values are not equal."""
    if isinstance(actual, ItemTable):
        actual, expected = contents(actual), contents(expected)
    if actual != expected:
        raise Broken(f"{what}: {actual!r:.300} is not {expected!r:.300}")


def parts(data: bytes, count: int) -> list[bytes]:
    """The files of an input; missing ones are empty."""
    files = data.split(MARK, count - 1)
    return files + [b""] * (count - len(files))


@contextmanager
def limits(memory: int = 2 << 30, seconds: int = 60) -> Iterator[None]:
    """Limit the memory that the process may map from now on, and its time."""

    def late(number: int, frame: FrameType | None) -> NoReturn:
        raise Broken(f"not done after {seconds} seconds")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    statm = Path("/proc/self/statm")
    mapped = int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0
    previous = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    if mapped:
        resource.setrlimit(resource.RLIMIT_AS, (mapped + memory, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
