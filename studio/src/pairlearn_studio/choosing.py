"""Draw the pairs to judge at random, and assign them to annotators."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import check_integer
from pairlearn.judgements.sets import join_set, propose_sets
from pairlearn.randomness import permutation, stream, uniform
from pairlearn_studio.project import Project


def random_pairs(
    items: int, pairs: int, seed: int, taken: AbstractSet[tuple[int, int]] = frozenset()
) -> NDArray[np.int64]:
    """Draw distinct pairs of distinct items uniformly, in random order and direction.

    The two ends are two draws from the items, as the theory assumes, except that no pair comes
    twice, and none of those that are ``taken``. The result has shape (pairs, 2).
    """
    if items < 2:
        raise ValueError(f"items is {items}: a pair needs at least two")
    codes = {_encode(*pair) for pair in taken}
    possible = items * (items - 1) // 2
    if not 1 <= pairs <= possible - len(codes):
        beside = f", and {len(codes)} are in the project already" if codes else ""
        raise ValueError(
            f"pairs is {pairs}: {items} items make {possible} different pairs{beside}; "
            "ask for fewer, or add items"
        )
    # With other pairs before them, pairs come from another stream.
    rng = stream(seed, "annotate", "pairs", *([str(len(codes))] if codes else []))
    return _decode(_draw(rng, pairs, possible, codes), rng)


def _draw(
    rng: np.random.Generator, wanted: int, possible: int, taken: AbstractSet[int]
) -> NDArray[np.int64]:
    """Codes of distinct pairs that are not taken, in random order; all where fewer are left."""
    if possible - len(taken) <= max(4 * wanted, possible // 8):
        free = np.setdiff1d(np.arange(possible), list(taken))
        return np.asarray(free[permutation(rng, len(free))[:wanted]], np.int64)
    drawn = np.empty(0, np.int64)
    while len(drawn) < wanted:
        more = (uniform(rng, 2 * wanted) * possible).astype(np.int64)
        drawn = np.concatenate([drawn, more[np.isin(more, list(taken), invert=True)]])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:wanted]


def choose_sets(
    project: Project, ends: NDArray[np.int64], number: int, predictions: Any = None
) -> list[tuple[str | None, float]]:
    """The set of classes that each pair is asked about, and the probability of this choice.

    One of the sets that the project names, or else a class that ``predictions`` of a quick model
    propose (`pairlearn.judgements.propose_sets`); without predictions all are as likely. Draws of
    another ``number`` are independent. None in a project of two classes.
    """
    if not project.classes:
        return [(None, 1.0)] * len(ends)
    seed, n = project.plan.seed, len(ends)
    sets = list(project.about or map(join_set, ([name] for name in project.classes)))
    if predictions is None or project.about:
        q = np.full(n, 1 / len(sets))
        chosen = (uniform(stream(seed, "sets", number), n) * len(sets)).astype(np.int64)
    else:
        chosen, q = propose_sets(predictions, ends, seed=seed + number)
    asked = [(sets[k], float(p)) for k, p in zip(chosen, q, strict=True)]
    same = uniform(stream(seed, "same", number), n) < project.same_share
    return [("", 1.0) if one else which for one, which in zip(same, asked, strict=True)]


def _encode(first: int, second: int) -> int:
    """Code i(i − 1)/2 + j of a pair j < i, in either direction."""
    high, low = max(first, second), min(first, second)
    return high * (high - 1) // 2 + low


def _decode(codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Pairs of codes, each in a random direction."""
    swapped = (rng.bit_generator.random_raw(len(codes)) >> np.uint64(63)).astype(bool)
    high = ((1 + np.sqrt(1 + 8 * codes.astype(np.float64))) // 2).astype(np.int64)
    # The root of a large number can be off by one.
    high -= high * (high - 1) // 2 > codes
    high += high * (high + 1) // 2 <= codes
    low = codes - high * (high - 1) // 2
    return np.stack([np.where(swapped, high, low), np.where(swapped, low, high)], 1)


def assign(
    pairs: Sequence[int],
    annotators: Mapping[int, float],
    overlap: int,
    seed: int,
    kept: Mapping[int, Iterable[int]] | None = None,
) -> dict[int, list[int]]:
    """Assign every pair to ``overlap`` annotators, with equal loads.

    Pairs go in their order to those with the fewest so far, ties by a lot that ``seed``
    determines: without ``kept`` the loads of any two annotators differ by at most one.
    ``annotators`` maps each to the most pairs that they judge. ``kept`` names annotators who have
    a pair already: they come first and count towards its overlap and their load, whether or not
    they still take part.

    Examples
    --------
    >>> most = dict.fromkeys([10, 20, 30], 99)
    >>> assign([1, 2, 3], most, overlap=2, seed=0)
    {1: [20, 30], 2: [10, 20], 3: [30, 10]}
    """
    check_integer("overlap", overlap, 1)
    held = {pair: list(dict.fromkeys(who)) for pair, who in (kept or {}).items()}
    load = Counter(who for whose in held.values() for who in whose)
    bits = stream(seed, "annotate", "assignment").bit_generator
    lots = iter(bits.random_raw(len(annotators) + len(pairs) * overlap).tolist())
    priority = {who: (load[who], next(lots)) for who in annotators}
    assigned: dict[int, list[int]] = {}
    for pair in pairs:
        holders = held.get(pair, [])
        free = [who for who in priority if who not in holders and load[who] < annotators[who]]
        added = heapq.nsmallest(overlap - len(holders), free, key=priority.__getitem__)
        for who in added:
            load[who] += 1
            priority[who] = (load[who], next(lots))
        assigned[pair] = holders + added
    return assigned
