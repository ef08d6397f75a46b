"""Draw the pairs to judge, and assign them to annotators.

Pairs are drawn at random, or by what the current model expects to learn from them. A judgement of
a pair is about three events (+, −), (−, +) and same class. By the current posteriors r and r'
their probabilities are a, b and s, and a judgement brings at most the information

    H(r, r') = −a log a − b log b − s log s.

A model can be confident and wrong, so a share ε of the draws stays uniform. Pairs chosen this way
are no random sample. Of N candidates, uniform among the pairs not yet asked, one is drawn with
probability

    q = (1 − ε) H/ΣH + ε/N,      and gets the weight   w = 1/(N q)  ≤  1/ε.

The expectation of w·f over a draw is the mean of f over the remaining pairs, whatever the model.
`inclusion_weights` turns these weights into those of a sample without replacement.

Do not expect much: with 40 to 200 judged pairs of digits, even against odd, the accuracy was that
of random pairs within the error of measurement (``bench/speed/annotate_choosing.py``).
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Floats, as_floats, as_weights, check_integer, first_rows
from pairlearn.labels import PairLabels
from pairlearn.randomness import permutation, stream, uniform

if TYPE_CHECKING:
    from pairlearn_studio.stopping import Forecast
    from pairlearn_studio.store import Store

LOG = logging.getLogger("pairlearn.annotate")


def random_pairs(items: int, pairs: int, seed: int) -> NDArray[np.int64]:
    """Draw distinct pairs of distinct items uniformly, in random order and direction.

    The two ends are two draws from the items, as the theory assumes, except that no pair comes
    twice. The result has shape (pairs, 2).
    """
    if items < 2:
        raise ValueError(f"items is {items}: a pair needs at least two")
    possible = items * (items - 1) // 2
    if not 1 <= pairs <= possible:
        raise ValueError(
            f"pairs is {pairs}: {items} items make {possible} different pairs; "
            "ask for 1 to so many, or add items"
        )
    rng = stream(seed, "annotate", "pairs")
    return _decode(_draw(rng, pairs, possible, set()), rng)


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
    annotators: Sequence[int],
    overlap: int,
    seed: int,
    kept: Mapping[int, Iterable[int]] | None = None,
) -> dict[int, list[int]]:
    """Assign every pair to ``overlap`` annotators, with equal loads.

    Pairs go in their order to those with the fewest so far, ties by a lot that ``seed``
    determines: without ``kept`` the loads of any two annotators differ by at most one. ``kept``
    names annotators that began a pair: they come first and count towards its overlap and their
    load, whether or not they still take part.

    Examples
    --------
    >>> assign([1, 2, 3], annotators=[10, 20, 30], overlap=2, seed=0)
    {1: [20, 30], 2: [10, 20], 3: [30, 10]}
    """
    check_integer("overlap", overlap, 1)
    held = {pair: list(dict.fromkeys(who)) for pair, who in (kept or {}).items()}
    load = Counter(who for whose in held.values() for who in whose)
    bits = stream(seed, "annotate", "assignment").bit_generator
    lots = iter(bits.random_raw(len(annotators) + len(pairs) * overlap).tolist())
    priority = {who: (load[who], next(lots)) for who in dict.fromkeys(annotators)}
    assigned: dict[int, list[int]] = {}
    for pair in pairs:
        holders = held.get(pair, [])
        others = [who for who in priority if who not in holders]
        added = heapq.nsmallest(overlap - len(holders), others, key=priority.__getitem__)
        for who in added:
            priority[who] = (priority[who][0] + 1, next(lots))
        assigned[pair] = holders + added
    return assigned


class Drawn(NamedTuple):
    """A drawn pair by its rows, and its weight 1/(N q)."""

    left: int
    right: int
    weight: float


def expected_information(r: Any, r_prime: Any) -> Floats:
    """Entropy of the three outcomes of a pair, in nats, from the posteriors of its ends.

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
) -> list[Drawn]:
    """Draw pairs, each from uniform candidates by its expected information.

    Fewer than ``count`` are drawn where fewer are left. ``taken`` pairs are not drawn, in either
    direction. Each pair is chosen from N = ``candidates`` uniform draws; ``epsilon`` in
    (0, 1] is the share of uniform choice, so weights are at most 1/ε.
    """
    r = np.asarray(posterior, dtype=np.float64)
    if r.ndim != 1 or len(r) < 2:
        raise ValueError(f"posterior must have shape (items,), two at least; got {r.shape}")
    for row in first_rows(~((r >= 0) & (r <= 1))):
        raise ValueError(f"posterior must lie in [0, 1]; item {row} has {r[row]:g}")
    if not 0 < epsilon <= 1:
        raise ValueError(f"epsilon must lie in (0, 1]; got {epsilon:g}")
    check_integer("candidates", candidates, 1)
    possible = len(r) * (len(r) - 1) // 2
    excluded = {_encode(*pair) for pair in taken if pair[0] != pair[1]}
    chosen = []
    for _ in range(min(count, possible - len(excluded))):
        ends = _decode(_draw(rng, candidates, possible, excluded), rng)
        information = expected_information(r[ends[:, 0]], r[ends[:, 1]])
        chance = np.full(len(ends), 1 / len(ends))
        if information.sum() > 0:
            chance = (1 - epsilon) * information / information.sum() + epsilon * chance
            chance /= chance.sum()
        row = min(int(np.searchsorted(np.cumsum(chance), uniform(rng, 1)[0])), len(ends) - 1)
        left, right = (int(end) for end in ends[row])
        excluded.add(_encode(left, right))
        chosen.append(Drawn(left, right, float(1 / (len(ends) * chance[row]))))
    return chosen


def inclusion_weights(weights: Any, items: int) -> Floats:
    """`pool_weights` divided by their mean, which leaves less variance.

    ``weights`` are those of `choose_pairs` in the order of the draws, 1 for pairs at random.
    """
    v = pool_weights(weights, items)
    return as_weights(v, len(v))


def pool_weights(weights: Any, items: int) -> Floats:
    """Weights v for which (1/M) Σ v_m f_m is an unbiased estimate of the mean over all pairs.

    With w₁ … w_M the weights of `choose_pairs` in the order of the draws, and P = items (items −
    1)/2 pairs in all,

        v_m = 1 + (P − M)/(P − m) · (w_m − 1)

    (Farquhar, Gal and Rainforth, "On Statistical Bias In Active Learning", ICLR 2021). Where few
    of the pairs are drawn v is w; where all are drawn it is 1.
    """
    w = as_floats(weights)
    pool, drawn = items * (items - 1) // 2, len(w)
    if not 0 < drawn <= pool:
        raise ValueError(f"weights has {drawn} rows, and {items} items make 1 to {pool} pairs")
    as_weights(w, drawn)  # checks them
    left = pool - np.arange(1, drawn + 1)
    v: Floats = 1 + (pool - drawn) / np.maximum(left, 1) * (w - 1)
    return v


def replenish(
    store: Store, posterior: list[float] | Floats, rng: np.random.Generator, ahead: int
) -> int:
    """Choose as many pairs as are missing for ``ahead`` open ones; return their number.

    A pair is open while it has fewer answers than the overlap. Without posteriors, pairs are
    random.
    """
    ids = store.items.ids
    rows = {item: row for row, item in enumerate(ids)}
    answered = Counter(answer.pair for answer in store.answers())
    pairs = store.pairs()
    missing = ahead - sum(answered[pair.id] < store.project.overlap for pair in pairs)
    if missing <= 0:
        return 0
    r = posterior if len(posterior) == len(ids) else np.full(len(ids), 0.5)
    ends = [(pair.left, pair.right) for pair in pairs]
    taken = [(rows[left], rows[right]) for left, right in ends if left in rows and right in rows]
    drawn = choose_pairs(r, missing, rng, taken=taken)
    if drawn:
        store.add_pairs([(ids[pair.left], ids[pair.right], pair.weight) for pair in drawn])
    return len(drawn)


@contextmanager
def choosing(
    store: Store, forecast: Forecast, *, ahead: int = 20, every: float = 2.0
) -> Iterator[None]:
    """Keep ``ahead`` pairs of a project open from a thread, checking ``every`` so many seconds.

    Pairs are chosen by the posteriors of the forecast; until there are any, at random.
    """
    ended, rng = threading.Event(), stream(store.project.plan.seed, "annotate", "choosing")

    def keep_open() -> None:
        reported = ""
        while True:
            message = ""
            try:
                forecast.refresh(store.latest())
                replenish(store, forecast.posterior, rng, ahead)
            except (ValueError, OSError) as error:  # the next attempt may succeed
                message = f"{type(error).__name__}: {error}"
            if message and message != reported:
                LOG.error("pairlearn annotate: no pairs are chosen: %s", message)
            reported = message
            if ended.wait(every):
                return

    thread = threading.Thread(target=keep_open, name="pairlearn-replenish", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        forecast.close()
