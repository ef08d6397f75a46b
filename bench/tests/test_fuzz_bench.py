"""The readers of the bench, whatever the bytes of a file are."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from fuzz.replay import *  # noqa: F403 - the tests of any set of readers
from fuzz.replay import Suite
from fuzz_bench import dataset_zip
from pairlearn_bench.data import sources

SUITE = Suite(
    Path(__file__).parent / "fuzz_bench" / "corpus",
    {"dataset_npz": "whole", "dataset_zip": "stored", "run_store": "three"},
    frozenset({"dataset_npz", "dataset_zip"}),
)


def test_members_of_an_archive_are_bounded() -> None:
    data = (SUITE.corpus / "dataset_zip" / "whole").read_bytes()
    with mock.patch.object(sources, "_LARGEST_IMAGE", 10):
        assert "at most 10 are read" in dataset_zip(data)
    assert not isinstance(dataset_zip(data), str)
