"""``read_items`` and ``iter_items`` on .parquet files."""

from __future__ import annotations

from typing import Any

from fuzz import table_property

WORDS = table_property.WORDS["items"]


def one_input(data: bytes) -> Any:
    return table_property.table("items", ".parquet", data)
