"""The pages in other languages: a table for each, from the English words.

``words/LANGUAGE.json`` has every text of the pages and every refusal; one that it lacks is shown in
English. Names in braces are filled in. ``"(direction)": "rtl"`` is for languages that are written
from right to left.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "de", "fr"]


@cache
def words_of(language: str) -> dict[str, str]:
    """The table of a language, empty for English."""
    if language == "en":
        return {}
    path = Path(__file__).with_name("words") / f"{language}.json"
    table: dict[str, str] = json.loads(path.read_text("utf-8"))
    return table


def translate(language: str, text: str, **values: object) -> str:
    """A text in a language, with the names in braces filled in.

    Examples
    --------
    >>> translate("fr", "Both “{name}”", name="panne")
    'Les deux « panne »'
    """
    return words_of(language).get(text, text).format(**values)
