"""The readers of the bench, whatever the bytes of a file are."""

from __future__ import annotations

from pathlib import Path

import fuzz_bench  # noqa: F401 - registers the readers
from fuzz.replay import *  # noqa: F403 - the tests of any set of readers
from fuzz.replay import Suite

SUITE = Suite(
    Path(__file__).parent / "fuzz_bench" / "corpus",
    {"dataset_npz": "whole", "run_store": "three"},
    frozenset({"dataset_npz"}),
)
