"""Which pairs are judged, and by whom.

Pairs are drawn at random, or by what the current model expects to learn from them. A judgement of
a pair is about three events (+, −), (−, +) and same class. By the current posteriors r and r'
their probabilities are a, b and s, and a judgement brings at most the information

    H(r, r') = −a log a − b log b − s log s.

That is the expected information about the classes of the pair; about the *model* it is an upper
bound, since a better model is also uncertain of a pair that is uncertain by nature. A model can be
sure and wrong, so a share ε of the draws stays uniform. Pairs chosen this way are no random
sample. Of N candidates, uniform among the pairs not yet asked, one is drawn with probability

    q = (1 − ε) H/ΣH + ε/N,      and gets the weight   w = 1/(N q)  ≤  1/ε.

The expectation of w·f over a draw is the mean of f over the remaining pairs, whatever the model.
`inclusion_weights` turns these weights into those of a sample without replacement.

Do not expect much: on digits, even against odd, with 40 to 200 judged pairs the accuracy was that
of random pairs within the error of measurement, 0.908 against 0.906 at 200
(``benchmarks/annotate_choosing.py``, where a `PairClassifier` is fitted before each choice, as the
studio once did; with its quick model it was not measured).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairlearn.labels import PairLabels
from pairlearn.randomness import permutation, stream, uniform


def random_pairs(items: int, pairs: int, seed: int) -> NDArray[np.int64]:
    """Different pairs of different items, uniformly at random, in random order and direction.

    Every unordered pair {i, j} has the same chance, and so has each direction: the two ends are
    two draws from the items, as the theory assumes, except that no pair comes twice. At most
    items·(items − 1)/2 pairs; the result has shape (pairs, 2).
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
    return _turned(_draw(rng, pairs, possible, set()), rng)


def _draw(
    rng: np.random.Generator, wanted: int, possible: int, taken: AbstractSet[int]
) -> NDArray[np.int64]:
    """Codes of different pairs that are not taken, in random order; all where fewer are left."""
    if possible - len(taken) <= max(4 * wanted, possible // 8):
        free = np.setdiff1d(np.arange(possible), list(taken))
        return np.asarray(free[permutation(rng, len(free))[:wanted]], np.int64)
    drawn = np.empty(0, np.int64)
    while len(drawn) < wanted:
        more = (uniform(rng, 2 * wanted) * possible).astype(np.int64)
        drawn = np.concatenate([drawn, more[np.isin(more, list(taken), invert=True)]])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:wanted]


def _turned(codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The pairs of codes, each in a random direction."""
    turned = (rng.bit_generator.random_raw(len(codes)) >> np.uint64(63)).astype(bool)
    high, low = _ends(codes)
    return np.stack([np.where(turned, high, low), np.where(turned, low, high)], 1)


def _code(one: int, two: int) -> int:
    """The number i(i − 1)/2 + j of a pair j < i, in either direction."""
    high, low = max(one, two), min(one, two)
    return high * (high - 1) // 2 + low


def _ends(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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

    Pairs go in their order to those with the fewest so far, ties by a lot that ``seed``
    determines: without ``kept`` the loads of any two annotators differ by at most one. ``kept``
    names annotators that began a pair: they come first and count towards its overlap and their
    load, whether or not they still take part.

    Examples
    --------
    >>> assign([1, 2, 3], annotators=[10, 20, 30], overlap=2, seed=0)
    {1: [20, 30], 2: [10, 20], 3: [30, 10]}
    """
    if overlap < 1:
        raise ValueError(f"overlap must be at least 1; got {overlap}")
    held = {pair: list(dict.fromkeys(who)) for pair, who in (kept or {}).items()}
    load = Counter(who for whose in held.values() for who in whose)
    lots = iter(_lots(seed, len(annotators) + len(pairs) * overlap))
    turn = {who: (load[who], next(lots)) for who in dict.fromkeys(annotators)}
    result: dict[int, list[int]] = {}
    for pair in pairs:
        mine = held.get(pair, [])
        others = [who for who in turn if who not in mine]
        fresh = heapq.nsmallest(overlap - len(mine), others, key=turn.__getitem__)
        for who in fresh:
            turn[who] = (turn[who][0] + 1, next(lots))
        result[pair] = mine + fresh
    return result


def _lots(seed: int, count: int) -> list[int]:
    drawn: list[int] = (
        stream(seed, "annotate", "assignment").bit_generator.random_raw(count).tolist()
    )
    return drawn


Floats = NDArray[np.float64]


class ColumnChoice(NamedTuple):
    """A pair by its rows, and one over (candidates × the chance with which it was drawn)."""

    left: int
    right: int
    weight: float


def expected_information(r: Any, r_prime: Any) -> Floats:
    """Entropy of the three outcomes of a pair, in nats, from the posteriors of its ends.

    Examples
    --------
    >>> expected_information([0.5, 0.5, 1.0], [0.5, 1.0, 1.0]).round(3)
    array([1.04 , 0.693, 0.   ])
    """
    outcomes = PairLabels.from_posteriors(r, r_prime).outcomes().clip(0, 1)
    information: Floats = (outcomes * np.log(1 / np.where(outcomes > 0, outcomes, 1.0))).sum(-1)
    return information


def choose_pairs(
    posterior: Any,
    count: int,
    rng: np.random.Generator,
    *,
    taken: Iterable[tuple[int, int]] = (),
    candidates: int = 256,
    epsilon: float = 0.1,
) -> list[ColumnChoice]:
    """Draw pairs, each from uniform candidates by its expected information.

    Fewer than ``count`` are drawn where fewer are left. A ``posterior`` that is the same for all
    items makes every draw uniform. ``taken`` pairs are not drawn, in either order of their ends.
    Each pair is chosen from N = ``candidates`` uniform draws; ``epsilon`` in (0, 1] is the share
    of uniform choice, so weights are at most 1/ε.
    """
    r = np.asarray(posterior, dtype=np.float64)
    if r.ndim != 1 or len(r) < 2:
        raise ValueError(f"posterior must have shape (items,), two at least; got {r.shape}")
    bad = ~((r >= 0) & (r <= 1))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"posterior must lie in [0, 1]; item {row} has {r[row]:g}")
    if not 0 < epsilon <= 1:
        raise ValueError(f"epsilon must lie in (0, 1]; got {epsilon:g}")
    if candidates < 1:
        raise ValueError(f"candidates must be at least 1; got {candidates}")
    possible = len(r) * (len(r) - 1) // 2
    gone = {_code(*pair) for pair in taken if pair[0] != pair[1]}
    chosen = []
    for _ in range(min(count, possible - len(gone))):
        ends = _turned(_draw(rng, candidates, possible, gone), rng)
        information = expected_information(r[ends[:, 0]], r[ends[:, 1]])
        chance = np.full(len(ends), 1 / len(ends))
        if information.sum() > 0:
            chance = (1 - epsilon) * information / information.sum() + epsilon * chance
            chance /= chance.sum()
        row = min(int(np.searchsorted(np.cumsum(chance), uniform(rng, 1)[0])), len(ends) - 1)
        left, right = (int(end) for end in ends[row])
        gone.add(_code(left, right))
        chosen.append(ColumnChoice(left, right, float(1 / (len(ends) * chance[row]))))
    return chosen


def inclusion_weights(weights: Any, items: int) -> Floats:
    """Weights of pairs drawn one after another without replacement, with mean 1.

    `pool_weights` divided by their mean, which keeps estimates within the range of what was
    observed, with less variance. ``weights`` are those of `choose_pairs` in the order of the
    draws, 1 for pairs at random.
    """
    v = pool_weights(weights, items)
    v /= v.mean()
    return v


def pool_weights(weights: Any, items: int) -> Floats:
    """Weights v for which (1/M) Σ v_m f_m is an unbiased estimate of the mean over all pairs.

    With w₁ … w_M the weights of `choose_pairs` in the order of the draws, and P = items (items −
    1)/2 pairs in all,

        v_m = 1 + (P − M)/(P − m) · (w_m − 1)

    (Farquhar, Gal and Rainforth, "On Statistical Bias In Active Learning", ICLR 2021). Where few
    of the pairs are drawn v is w; where all are drawn it is 1.
    """
    w = np.asarray(weights, dtype=np.float64)
    pool, drawn = items * (items - 1) // 2, len(w)
    if w.ndim != 1 or not drawn:
        raise ValueError(f"weights must have shape (M,), M at least 1; got {w.shape}")
    if drawn > pool:
        raise ValueError(f"weights has {drawn} rows, and {items} items make {pool} pairs")
    bad = ~((w > 0) & (w < math.inf))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"weights must be positive and finite; row {row} is {w[row]:g}")
    left = pool - np.arange(1, drawn + 1)
    v: Floats = 1 + (pool - drawn) / np.maximum(left, 1) * (w - 1)
    return v
