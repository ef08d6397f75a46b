"""``AnswerCache``: the SQLite file of the answers of a language model."""

from __future__ import annotations

from typing import Any

from fuzz.sandbox import Broken, folder, listing
from pairlearn.studio.ask import AnswerCache, ModelError

WORDS = [b"SQLite format 3\0", b"answers", b"question", b"CREATE TABLE", b"\0\0\0\x01", b"{}"]


def one_input(data: bytes) -> Any:
    place = folder("answer_cache")
    path = place / "cache.sqlite"
    for rest in place.iterdir():
        rest.unlink()
    path.write_bytes(data)
    before = listing(place)
    try:
        cache = AnswerCache(path)
    except ModelError as error:
        if str(path) not in str(error) or listing(place) != before:
            raise Broken(f"the message does not name the file, or it changed: {error}") from error
        return str(error)
    with cache:
        try:
            found = [cache.get("one"), cache.get("two"), len(cache)]
            cache.put("three", {"tokens": []})
            if cache.get("three") is None:
                raise Broken("what was put is not there")
        except ModelError as error:
            return str(error)
    return found
