"""Which pairs are judged, and by whom."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pairlearn.randomness import permutation, stream

__all__ = ["assign", "random_pairs"]


def random_pairs(items: int, pairs: int, seed: int) -> NDArray[np.int64]:
    """Different pairs of different items, uniformly at random, in random order and direction.

    Every unordered pair {i, j} has the same chance, and so has each of its directions:
    the two ends of a pair are then two draws from the items, as the theory assumes, but
    that no pair comes twice.

    Parameters
    ----------
    items : int
        How many there are.
    pairs : int
        How many pairs; at most items·(items − 1)/2.
    seed : int
        The pairs follow from it.

    Returns
    -------
    array of int, shape (pairs, 2)
        Rows of the items.

    Examples
    --------
    >>> random_pairs(items=4, pairs=3, seed=0)
    array([[3, 2],
           [2, 0],
           [0, 1]])
    """
    possible = items * (items - 1) // 2
    if items < 2:
        raise ValueError(f"items is {items}: a pair needs at least two")
    if not 1 <= pairs <= possible:
        raise ValueError(
            f"pairs is {pairs}: {items} items make {possible} different pairs; "
            "ask for 1 to so many, or add items"
        )
    rng = stream(seed, "annotate", "pairs")
    codes = _distinct(rng, pairs, possible)
    high, low = _ends(codes)
    turned = (rng.bit_generator.random_raw(pairs) >> np.uint64(63)).astype(bool)
    return np.stack([np.where(turned, high, low), np.where(turned, low, high)], 1)


def _distinct(rng: np.random.Generator, wanted: int, possible: int) -> NDArray[np.int64]:
    """Different numbers below ``possible``, in random order."""
    if possible <= 4 * wanted:
        return permutation(rng, possible)[:wanted].astype(np.int64)
    drawn = np.empty(0, np.int64)
    while len(drawn) < wanted:
        bits = rng.bit_generator.random_raw(2 * wanted) >> np.uint64(11)
        more = (bits.astype(np.float64) * 2.0**-53 * possible).astype(np.int64)
        drawn = np.concatenate([drawn, more])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:wanted]


def _ends(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pair j < i of the code i(i − 1)/2 + j."""
    high = ((1 + np.sqrt(1 + 8 * codes.astype(np.float64))) // 2).astype(np.int64)
    # The root of a large number can be off by one.
    high -= high * (high - 1) // 2 > codes
    high += high * (high + 1) // 2 <= codes
    return high, codes - high * (high - 1) // 2


def assign(
    pairs: Sequence[int],
    annotators: Sequence[int],
    overlap: int,
    seed: int,
    kept: Mapping[int, Iterable[int]] | None = None,
) -> dict[int, list[int]]:
    """Give every pair to ``overlap`` annotators, and every annotator as many pairs.

    Pairs go in their order to those with the fewest so far, ties by lot. From the same
    pairs, annotators and seed follows the same assignment. Without ``kept`` the numbers of
    pairs of any two annotators differ by one at most.

    Parameters
    ----------
    pairs : sequence of int
        Their ids, in the order in which they are judged.
    annotators : sequence of int
        Ids of those that take part.
    overlap : int
        Annotators a pair; all of them where there are fewer.
    seed : int
        Of the lots.
    kept : mapping of int to ints, optional
        Annotators that a pair stays with, because they began it: they count as those of
        the pair and towards the load of each, whether they still take part or not.

    Returns
    -------
    dict of int to list of int
        For each pair its annotators, the kept ones first.

    Examples
    --------
    >>> assign([1, 2, 3], annotators=[10, 20, 30], overlap=2, seed=0)
    {1: [20, 30], 2: [10, 20], 3: [30, 10]}
    """
    if overlap < 1:
        raise ValueError(f"overlap must be at least 1; got {overlap}")
    held = {pair: list(dict.fromkeys(who)) for pair, who in (kept or {}).items()}
    load = dict.fromkeys(annotators, 0)
    for who in held.values():
        for annotator in who:
            if annotator in load:
                load[annotator] += 1
    lots = iter(_lots(seed, len(load) + len(pairs) * overlap))
    heap = [(count, next(lots), annotator) for annotator, count in load.items()]
    heapq.heapify(heap)
    result: dict[int, list[int]] = {}
    for pair in pairs:
        mine = held.get(pair, [])
        fresh: list[int] = []
        passed: list[tuple[int, int, int]] = []
        while heap and len(mine) + len(fresh) < overlap:
            entry = heapq.heappop(heap)
            if entry[2] in mine:
                passed.append(entry)
            else:
                fresh.append(entry[2])
                # Not back into the heap before the pair is complete: nobody gets it twice.
                passed.append((entry[0] + 1, next(lots), entry[2]))
        for entry in passed:
            heapq.heappush(heap, entry)
        result[pair] = mine + fresh
    return result


def _lots(seed: int, count: int) -> list[int]:
    drawn: list[int] = (
        stream(seed, "annotate", "assignment").bit_generator.random_raw(count).tolist()
    )
    return drawn
