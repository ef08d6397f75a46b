"""Draw the pairs to judge at random, and assign them to annotators."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.judgements.sets import join_set, propose_sets
from pairlearn.randomness import stream, uniform
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
    seen = {frozenset(pair) for pair in taken}
    possible = items * (items - 1) // 2
    if not 1 <= pairs <= possible - len(seen):
        beside = f", and {len(seen)} are in the project already" if seen else ""
        raise ValueError(
            f"pairs is {pairs}: {items} items make {possible} different pairs{beside}; "
            "ask for fewer, or add items"
        )
    # With other pairs before them, pairs come from another stream.
    rng = stream(seed, "annotate", "pairs", *([str(len(seen))] if seen else []))
    drawn: list[tuple[int, int]] = []
    while len(drawn) < pairs:
        ends = (uniform(rng, 4 * pairs) * items).astype(np.int64).reshape(-1, 2)
        for left, right in ends.tolist():
            pair = frozenset((left, right))
            if left != right and pair not in seen:
                seen.add(pair)
                drawn.append((left, right))
    return np.array(drawn[:pairs], np.int64)


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


def judges_needed(pair: int, overlap: float) -> int:
    """How many annotators judge a pair by its number; ``overlap`` is their mean.

    >>> [judges_needed(pair, 1.25) for pair in range(1, 9)]
    [1, 1, 1, 2, 1, 1, 1, 2]
    """
    return int(pair * overlap) - int((pair - 1) * overlap)


def assign(
    pairs: Sequence[int],
    annotators: Mapping[int, float],
    overlap: float,
    seed: int,
    kept: Mapping[int, Iterable[int]] | None = None,
) -> dict[int, list[int]]:
    """Assign every pair to ``overlap`` annotators (`judges_needed`), with equal loads.

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
    held = {pair: list(dict.fromkeys(who)) for pair, who in (kept or {}).items()}
    load = Counter(who for whose in held.values() for who in whose)
    bits = stream(seed, "annotate", "assignment").bit_generator
    needed = {pair: judges_needed(pair, overlap) for pair in pairs}
    lots = iter(bits.random_raw(len(annotators) + sum(needed.values())).tolist())
    priority = {who: (load[who], next(lots)) for who in annotators}
    assigned: dict[int, list[int]] = {}
    for pair in pairs:
        holders = held.get(pair, [])
        free = [who for who in priority if who not in holders and load[who] < annotators[who]]
        added = heapq.nsmallest(needed[pair] - len(holders), free, key=priority.__getitem__)
        for who in added:
            load[who] += 1
            priority[who] = (load[who], next(lots))
        assigned[pair] = holders + added
    return assigned
