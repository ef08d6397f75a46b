"""Mutations of JSON that keep it valid, since most random bytes are only refused as no JSON."""

from __future__ import annotations

import json
from random import Random
from typing import Any

ODD: list[Any] = [None, True, False, 0, -1, 1, 2, 80, -0.0, 0.5, 1e308, -1e-320, 2**31, 2**63]
ODD += [10**400, -(10**400), float("nan"), float("inf"), float("-inf"), 1.0]
ODD += ["", " ", "a", "left", "1", "é", "\ud800", "\0", "\x1b[2J", "\u2028", "x" * 300, "0" * 5000]
ODD += [[], {}, [[]], [None], {"": 0}, ["a", "a"], "a/../b", "-", "nan"]
DEPTHS = (1, 2, 50, 330, 900, 960, 975, 985, 990, 995)


def json_mutation(data: bytes, seed: int) -> bytes | None:
    """Change a JSON text in one to three places; None if it is not JSON."""
    random = Random(seed)
    try:
        whole = [json.loads(data)]
        for _ in range(random.randint(1, 3)):
            _change(whole, random)
        text = json.dumps(whole[0], ensure_ascii=random.random() < 0.5)
    except (ValueError, RecursionError):
        return None
    return text.encode("utf-8", "surrogatepass")


def line_mutation(data: bytes, seed: int) -> bytes | None:
    """Change one line of JSON lines."""
    lines = data.split(b"\n")
    at = Random(seed).randrange(len(lines))
    changed = json_mutation(lines[at], seed)
    if changed is None:
        return None
    return b"\n".join([*lines[:at], changed, *lines[at + 1 :]])


def _change(whole: list[Any], random: Random) -> None:
    places = list(_places(whole))
    inside, key = random.choice(places)
    act = random.randrange(6)
    if act == 0:
        inside[key] = _deep(inside[key], random)
    elif act == 1:
        other, other_key = random.choice(places)
        inside[key] = json.loads(json.dumps(other[other_key]))
    elif act == 2 and inside is not whole:
        del inside[key]
    elif act == 3 and isinstance(inside, dict):
        name = random.choice([*map(str, ODD[-12:]), "\ud800", "x", "similarity", "results"])
        inside[name] = inside.pop(key)
    elif act == 4 and isinstance(inside[key], list):
        inside[key] = inside[key] * 2
    elif act == 5 and isinstance(inside[key], (int, float)) and not isinstance(inside[key], bool):
        inside[key] = random.choice([-inside[key], inside[key] + 1, float("nan"), str(inside[key])])
    else:
        inside[key] = random.choice(ODD)


def _deep(value: Any, random: Random) -> Any:
    wrap = random.random() < 0.5
    for _ in range(random.choice(DEPTHS)):
        value = [value] if wrap else {"a": value}
    return value


def _places(whole: list[Any]) -> list[tuple[Any, Any]]:
    """Containers and keys of up to about 500 values of a document, the outer ones first."""
    places: list[tuple[Any, Any]] = [(whole, 0)]
    for inside, key in places:
        value = inside[key]
        if isinstance(value, dict):
            places += [(value, name) for name in value]
        elif isinstance(value, list):
            places += [(value, index) for index in range(len(value))]
        if len(places) > 500:
            break
    return places
