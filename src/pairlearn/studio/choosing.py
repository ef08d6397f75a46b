"""Which pairs are judged, and by whom.

Pairs are drawn at random, or by what the current model expects to learn from them. A judgement of
a pair is about three events (+, −), (−, +) and same class. By the current posteriors r and r'
their probabilities are a, b and s, and a judgement brings at most the information

    H(r, r') = −a log a − b log b − s log s.

A model can be sure and wrong, so a share ε of the draws stays uniform. Pairs chosen this way are
no random sample. Of N candidates, uniform among the pairs not yet asked, one is drawn with
probability

    q = (1 − ε) H/ΣH + ε/N,      and gets the weight   w = 1/(N q)  ≤  1/ε.

The expectation of w·f over a draw is the mean of f over the remaining pairs, whatever the model.
`inclusion_weights` turns these weights into those of a sample without replacement.

Do not expect much: with 40 to 200 judged pairs of digits, even against odd, the accuracy was that
of random pairs within the error of measurement (``benchmarks/annotate_choosing.py``).
"""

from __future__ import annotations

import heapq
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Floats, as_floats, as_weights
from pairlearn.labels import PairLabels
from pairlearn.randomness import permutation, stream, uniform

if TYPE_CHECKING:
    from pairlearn.studio.store import Store

LOG = logging.getLogger("pairlearn.annotate")


def random_pairs(items: int, pairs: int, seed: int) -> NDArray[np.int64]:
    """Different pairs of different items, uniformly at random, in random order and direction.

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
    bits = stream(seed, "annotate", "assignment").bit_generator
    lots = iter(bits.random_raw(len(annotators) + len(pairs) * overlap).tolist())
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


class Drawn(NamedTuple):
    """A pair by its rows, and one over (candidates × the chance with which it was drawn)."""

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
    order of their ends. Each pair is chosen from N = ``candidates`` uniform draws; ``epsilon`` in
    (0, 1] is the share of uniform choice, so weights are at most 1/ε.
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
    as_weights(w, drawn)  # refuses what is no weight
    left = pool - np.arange(1, drawn + 1)
    v: Floats = 1 + (pool - drawn) / np.maximum(left, 1) * (w - 1)
    return v


REST = 9
"""Times as long as it ran the forecast rests, so that it takes a tenth of a processor."""


class Forecast:
    """The forecast of `pairlearn.studio.stopping`, made in its own process as answers come in.

    ``found`` is what the supervisor's page shows, and ``posterior`` P(y = +1 | x) of all items in
    mode "information", empty before the first model.
    """

    def __init__(self, folder: Path) -> None:
        self.results: dict[str, Any] = {}
        self.posterior: list[float] = []
        self._folder, self._lock = folder, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._seen, self._began, self._due = -1, 0.0, 0.0

    def refresh(self, latest: int) -> dict[str, Any]:
        """What is known now; a new look begins if anything changed since the last one."""
        with self._lock:
            if self._process is not None:
                self._collect(self._process)
            now = time.monotonic()
            if self._process is None and latest != self._seen and now >= self._due:
                self._seen, self._began = latest, now
                # Files, which unlike pipes never fill, and never wait for who else has them.
                self._told = tempfile.TemporaryFile()  # noqa: SIM115
                self._trouble = tempfile.TemporaryFile()  # noqa: SIM115
                self._process = subprocess.Popen(
                    # Without -P, a numpy.py in the current folder would be imported.
                    [sys.executable, "-P", "-m", "pairlearn.studio.stopping", self._folder],
                    env=os.environ | {"OMP_NUM_THREADS": "1"},
                    stdout=self._told,
                    stderr=self._trouble,
                )
            return self.results

    def _collect(self, process: subprocess.Popen[bytes]) -> None:
        """Take the lines that are there; those that are no JSON are somebody else's."""
        ended = process.poll()
        for line in _written(self._told).rpartition(b"\n")[0].splitlines():
            with suppress(ValueError):
                part = msgspec.json.decode(line, type=dict[str, Any])
                self.posterior = part.pop("posterior", self.posterior)
                self.results = self.results | part
        if ended is None:
            return
        if ended:
            last = _written(self._trouble).decode(errors="replace").strip().rpartition("\n")[2]
            why = last or f"it ended with {ended}"
            LOG.error("pairlearn annotate: no forecast of the accuracy: %s", why)
        self._end()
        now = time.monotonic()
        self._due = now + REST * (now - self._began)

    def _end(self) -> None:
        self._told.close()
        self._trouble.close()
        self._process = None

    def close(self) -> None:
        """End a look that is under way."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.wait()
                self._end()


def _written(file: IO[bytes]) -> bytes:
    """What a process wrote; not by seek and read, for it writes where the file is positioned."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def replenish(
    store: Store, posterior: list[float] | Floats, rng: np.random.Generator, ahead: int
) -> int:
    """Have ``ahead`` pairs open, choosing as many as are missing; their number.

    A pair is open while it has fewer answers than the overlap. Without posteriors, at random.
    """
    ids = store.items.ids
    rows = {one: row for row, one in enumerate(ids)}
    count = Counter(one.pair for one in store.answers())
    pairs = store.pairs()
    wanted = ahead - sum(count[one.id] < store.project.overlap for one in pairs)
    if wanted <= 0:
        return 0
    known = posterior if len(posterior) == len(ids) else np.full(len(ids), 0.5)
    taken = [
        (rows[one.left], rows[one.right]) for one in pairs if one.left in rows and one.right in rows
    ]
    drawn = choose_pairs(known, wanted, rng, taken=taken)
    chosen = [(ids[one.left], ids[one.right], one.weight) for one in drawn]
    if chosen:
        store.add_pairs(chosen)
    return len(chosen)


@contextmanager
def choosing(
    store: Store, forecast: Forecast, *, ahead: int = 20, every: float = 2.0
) -> Iterator[None]:
    """Keep ``ahead`` pairs of a project open from a thread, looking ``every`` so many seconds.

    Pairs are chosen by the posteriors of the forecast; until there are any, at random.
    """
    over, rng = threading.Event(), stream(store.project.plan.seed, "annotate", "choosing")

    def look() -> None:
        told = ""
        while True:
            trouble = ""
            try:
                forecast.refresh(store.latest())
                replenish(store, forecast.posterior, rng, ahead)
            except (ValueError, OSError) as error:  # the next look may be luckier
                trouble = f"{type(error).__name__}: {error}"
            if trouble and trouble != told:
                LOG.error("pairlearn annotate: no pairs are chosen: %s", trouble)
            told = trouble
            if over.wait(every):
                return

    thread = threading.Thread(target=look, name="pairlearn-replenish", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        forecast.close()
