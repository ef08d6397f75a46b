"""Tests of any set of readers: kept inputs, and valid files cut off, overwritten or changed.

A module of tests has a `Suite` of its distribution's readers as ``SUITE`` and imports everything
from here; each test then runs for the readers of that suite. ``CORPUS/READER/NAME`` are the kept
inputs, ``found-…`` those that failed once, many of them found by `bench/speed/fuzz.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.sandbox import READERS, Harness, limits

__all__ = [
    "pytest_generate_tests",
    "test_changed_json",
    "test_cut_off",
    "test_damaged",
    "test_every_depth_of_nesting",
    "test_kept_input",
    "test_some_are_read_and_some_refused",
    "test_the_corpus_is_small_and_of_every_reader",
    "test_zeros_where_the_end_was",
]

# Far more in `make test-long`, which draws new examples.
quick = settings(max_examples=30 if settings().derandomize else 3000)


@dataclass(frozen=True)
class Suite:
    """The readers of a distribution.

    ``valid`` names a valid file of each in its folder of the corpus; ``sized`` are the readers
    of formats with a length, which must refuse a file that was cut off.
    """

    corpus: Path
    valid: dict[str, str]
    sized: frozenset[str]

    def kept(self, reader: str = "*") -> list[Path]:
        """The kept inputs."""
        return sorted(self.corpus.glob(f"{reader}/*"))

    def case(self, reader: str) -> Case:
        """One reader."""
        return Case(self, reader, READERS[reader])


@dataclass(frozen=True)
class Case:
    """A reader of a suite."""

    suite: Suite
    name: str
    harness: Harness

    def valid(self) -> bytes:
        """A valid file."""
        return (self.suite.corpus / self.name / self.suite.valid[self.name]).read_bytes()

    def feed(self, data: bytes) -> Any:
        """What the reader makes of an input."""
        return self.harness.one_input(data)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test for the readers of the suite of its module, by the names of its arguments."""
    suite: Suite = metafunc.module.SUITE
    cases = [suite.case(name) for name in suite.valid]
    chosen = {
        "suite": [suite],
        "path": suite.kept(),
        "case": cases,
        "sized_case": [case for case in cases if case.name in suite.sized],
        "json_case": [case for case in cases if case.harness.mutate is not None],
    }
    for name in chosen.keys() & {*metafunc.fixturenames}:
        metafunc.parametrize(name, chosen[name], ids=_id)


def _id(value: Any) -> str:
    return (
        f"{value.parent.name}-{value.name}"
        if isinstance(value, Path)
        else getattr(value, "name", "all")
    )


def test_kept_input(path: Path) -> None:
    with limits():
        READERS[path.parent.name].one_input(path.read_bytes())


def test_some_are_read_and_some_refused(case: Case) -> None:
    """A harness that refuses everything, or nothing, would test nothing."""
    kept = [path.read_bytes() for path in case.suite.kept(case.name)]
    refused = [isinstance(result, str) for data in kept for result in _flat(case.feed(data))]
    assert any(refused) and not all(refused)


def _flat(outcome: Any) -> Iterator[Any]:
    """The outcomes of a harness, which returns one, or a list with one for each way of reading."""
    mixed = isinstance(outcome, list) and any(isinstance(result, str) for result in outcome)
    yield from outcome if mixed else [outcome]


def test_the_corpus_is_small_and_of_every_reader(suite: Suite) -> None:
    assert sum(path.stat().st_size for path in suite.kept()) < 1_000_000
    assert {path.parent.name for path in suite.kept()} == suite.valid.keys()
    assert suite.sized <= suite.valid.keys() <= READERS.keys()


# ---- torn files -------------------------------------------------------------------------------


def _cut(case: Case, sizes: range) -> None:
    whole = case.valid()
    for size in sizes:
        outcome = case.feed(whole[:size])
        if case.name == "model_folder":
            outcome = outcome[0]  # the second one has its checksums corrected
        if case.name in case.suite.sized:
            assert isinstance(outcome, str), f"{size} of {len(whole)} bytes are accepted"


@pytest.mark.parametrize("places", [40, pytest.param(10**9, marks=pytest.mark.long)])
def test_cut_off(case: Case, places: int) -> None:
    size = len(case.valid())
    _cut(case, range(0, size, size // places + 1))
    _cut(case, range(size - 12, size))


def test_zeros_where_the_end_was(sized_case: Case) -> None:
    """As some file systems leave files after a crash."""
    whole = sized_case.valid()
    for size in range(len(whole) - 200, len(whole) - 1, 7):
        sized_case.feed(whole[:size] + bytes(len(whole) - size))


# ---- damaged files ----------------------------------------------------------------------------


@st.composite
def damaged(draw: st.DrawFn, data: bytes, words: list[bytes]) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(start + 40, len(data))))
        here = data[start:stop]
        there = draw(st.integers(0, len(data)))
        middle = draw(
            st.binary(max_size=4)
            | st.sampled_from(words)
            | st.sampled_from([here * 2, here[::-1], bytes(len(here)), data[there : there + 40]])
        )
        data = data[:start] + middle + data[stop:]
    return data


@quick
@given(data=st.data())
def test_damaged(case: Case, data: st.DataObject) -> None:
    with limits():
        case.feed(data.draw(damaged(case.valid(), case.harness.words)))


@quick
@given(seed=st.integers(0, 2**32))
def test_changed_json(json_case: Case, seed: int) -> None:
    assert json_case.harness.mutate is not None
    changed = json_case.harness.mutate(json_case.valid(), seed)
    if changed is not None:
        json_case.feed(changed)


def test_every_depth_of_nesting(json_case: Case) -> None:
    """JSON is parsed up to some depth, and then processed a little deeper."""
    for depth in [10, 300, *range(930, 1000, 3), 100_000]:
        nested = b"[" * depth + b"]" * depth
        data = json_case.valid()
        at = data.index(b": ") + 2
        end = min(data.index(mark, at) for mark in (b",", b"}") if mark in data[at:])
        json_case.feed(data[:at] + nested + data[end:])
