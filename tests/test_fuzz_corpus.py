"""Every input that was kept, through the harness of its reader: ``fuzz/corpus/READER/NAME``.

Among them are all that ever failed, ``found-…``, with those that `benchmarks/fuzz.py` found.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fuzz.sandbox import limits

HARNESSES = Path(__file__).parent / "fuzz"
READERS = sorted(path.stem.removeprefix("fuzz_") for path in HARNESSES.glob("fuzz_*.py"))
KEPT = sorted(HARNESSES.glob("corpus/*/*"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_kept_input(path: Path) -> None:
    harness = import_module(f"fuzz.fuzz_{path.parent.name}")
    with limits():
        harness.one_input(path.read_bytes())


@pytest.mark.parametrize("reader", READERS)
def test_some_are_read_and_some_refused(reader: str) -> None:
    """A harness that refuses everything, or nothing, would test nothing."""
    harness = import_module(f"fuzz.fuzz_{reader}")
    kept = [path.read_bytes() for path in KEPT if path.parent.name == reader]
    results = [one for data in kept for one in flat(harness.one_input(data))]
    assert any(isinstance(one, str) for one in results)
    assert any(not isinstance(one, str) for one in results)


def flat(outcome: Any) -> Iterator[Any]:
    """What a harness returns: one outcome, or a list with one for each way of reading."""
    mixed = isinstance(outcome, list) and any(isinstance(one, str) for one in outcome)
    yield from outcome if mixed else [outcome]


def test_corpus_stays_small() -> None:
    assert sum(path.stat().st_size for path in KEPT) < 1_000_000
