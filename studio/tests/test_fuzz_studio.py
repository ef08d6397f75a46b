"""The readers of the studio, whatever the bytes of a file or of a reply are."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings

from fuzz.odd_tables import odd_csv, odd_parquet
from fuzz.replay import *  # noqa: F403 - the tests of any set of readers
from fuzz.replay import Suite, quick
from fuzz_studio import label_studio, studio_items

SUITE = Suite(
    Path(__file__).parent / "fuzz_studio" / "corpus",
    {
        "answer_cache": "two", "answers": "whole", "label_studio": "mixed", "model_reply": "reply",
        "project_file": "table", "studio_items": "table",
    },
    frozenset({"answers", "label_studio", "model_reply"}),
)  # fmt: skip


@quick
@given(data=odd_parquet())
def test_odd_parquet(data: bytes) -> None:
    studio_items(data)


@settings(quick, max_examples=50)
@given(data=odd_csv())
def test_odd_csv(data: bytes) -> None:
    studio_items(data)


def test_a_result_of_unknown_type_is_no_answer() -> None:
    kept = SUITE.corpus / "label_studio" / "found-value-without-type"
    assert "has no value" in label_studio(kept.read_bytes())
