"""What every harness asserts around a reader, and the folder that it works in."""

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

T = TypeVar("T")

LONGEST_MESSAGE = 2000
MARK = b"\n--8<--\n"
"""Between the files of an input that is more than one."""


class Broken(AssertionError):
    """A reader did what no reader may do."""


@dataclass(frozen=True)
class Harness:
    """What is done with an input, words that help a fuzzer, and changes that keep the format."""

    one_input: Callable[[bytes], Any]
    words: list[bytes]
    mutate: Callable[[bytes, int], bytes | None] | None = None


READERS: dict[str, Harness] = {}
"""Every reader by its name, which is that of its folder in ``corpus``."""


def harness(words: list[bytes], mutate: Any = None) -> Callable[[T], T]:
    """Enter a function of an input into `READERS`, by its name."""

    def enter(one_input: Any) -> Any:
        READERS[one_input.__name__] = Harness(one_input, words, mutate)
        return one_input

    return enter


def memory() -> str | None:
    """A folder in memory, where there is one; None is the usual place for temporary files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@cache
def folder(name: str) -> Path:
    """An empty folder of this process for one harness, in memory where there is such a place."""
    top = tempfile.mkdtemp(prefix="fuzz-", dir=os.environ.get("PAIRLEARN_FUZZ_FOLDER", memory()))
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
    """Call a reader: what it read, or the message of a documented error that names the file.

    Anything else that it raises passes through. It leaves all files as they were.
    """
    top = path.parent
    before = listing(top)
    try:
        found: T | str = read()
    except errors as error:
        found = str(error)
        if str(path) not in found:
            raise Broken(f"the message does not name {path}: {found}") from error
        if len(found) > LONGEST_MESSAGE:
            raise Broken(f"a message of {len(found)} characters: {found[:200]}…") from error
    after = listing(top)
    if after != before:
        names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        raise Broken(f"reading changed {names}")
    return found


def same(one: Any, other: Any, what: str) -> None:
    """Refuse two things that ought to be equal."""
    if one != other:
        raise Broken(f"{what}: {one!r:.300} is not {other!r:.300}")


def parts(data: bytes, count: int) -> list[bytes]:
    """The files of an input; those that are missing are empty."""
    found = data.split(MARK, count - 1)
    return found + [b""] * (count - len(found))


@contextmanager
def limits(memory: int = 2 << 30, seconds: int = 60) -> Iterator[None]:
    """Bound what the process may map from now on, and how long it may take."""

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
