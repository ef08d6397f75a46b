"""``read_pairs`` and ``iter_pairs`` on .csv files."""

from __future__ import annotations

from typing import Any

from fuzz import table_property

WORDS = table_property.WORDS["pairs"] + table_property.CSV_WORDS


def one_input(data: bytes) -> Any:
    return table_property.table("pairs", ".csv", data)
