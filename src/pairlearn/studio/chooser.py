"""A model in the background that chooses pairs, fitted again as answers come in."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pairlearn.judgements import Judgements
from pairlearn.randomness import stream
from pairlearn.studio.choosing import choose_pairs
from pairlearn.studio.export import pair_table
from pairlearn.studio.records import Floats, StoredAnswer
from pairlearn.tables import ItemTable, TableError, read_items

if TYPE_CHECKING:
    from pairlearn.studio.store import Store


Fit: TypeAlias = Callable[[NDArray[np.float32], Judgements, int], Floats]
"""From features, answers and a seed to P(y = +1 | x) of all items."""


def fit_posteriors(features: NDArray[np.float32], judged: Judgements, seed: int) -> Floats:
    """Posteriors of all items by a `PairClassifier`, fitted to the answers with their weights."""
    from pairlearn.estimators import PairClassifier

    classifier = PairClassifier(random_state=seed).fit(features, judged)
    posteriors: Floats = classifier.predict_proba(features)[:, 1].astype(np.float64)
    return posteriors.clip(0, 1)


class Chooser:
    """Chooses pairs by a model that is refitted in the background as answers come in.

    Until the first fit is done draws are uniform; after a fit that failed they follow the model
    before it. ``fit`` maps features, answers and a seed to posteriors; it runs after
    ``least_answers`` answers and again after as many new ones. For ``candidates`` and ``epsilon``
    see `choose_pairs`.

    Attributes
    ----------
    trouble : str
        Why the last fit failed; empty if it did not.
    """

    def __init__(
        self,
        items: ItemTable,
        *,
        fit: Fit = fit_posteriors,
        least_answers: int = 20,
        candidates: int = 256,
        epsilon: float = 0.1,
        seed: int = 0,
    ) -> None:
        self._ids = [str(one) for one in items.ids.tolist()]
        self._rows = {one: row for row, one in enumerate(self._ids)}
        self._features, self._fit, self._seed = items.features, fit, seed
        self._least, self._candidates, self._epsilon = least_answers, candidates, epsilon
        self._posterior = np.full(len(self._ids), 0.5)
        self._rng = stream(seed, "annotate", "choosing")
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="pairlearn-choosing")
        self._running: Future[Floats] | None = None
        self._learnt = 0
        self.trouble = ""

    def learn(self, answers: Sequence[StoredAnswer]) -> bool:
        """Start a fit to these answers if enough of them are new and none is under way."""
        self._collect()
        said = [one for one in answers if not one.cant_say]
        if self._running is not None or len(said) < self._learnt + self._least:
            return False
        self._learnt = len(said)
        judged = pair_table(said, weights=True).judgements(np.array(self._ids))
        self._running = self._pool.submit(self._fit, self._features, judged, self._seed)
        return True

    def wait(self) -> None:
        """Wait for the fit that is under way, if there is one."""
        if self._running is not None:
            self._running.exception()
        self._collect()

    def choose(
        self, count: int, taken: Iterable[tuple[str, str]] = ()
    ) -> list[tuple[str, str, float]]:
        """Draw pairs that are not taken: ids of both ends, and the weight of the draw."""
        self._collect()
        rows = [(self._rows[left], self._rows[right]) for left, right in taken]
        chosen = choose_pairs(
            self._posterior,
            count,
            self._rng,
            taken=rows,
            candidates=self._candidates,
            epsilon=self._epsilon,
        )
        return [(self._ids[one.left], self._ids[one.right], one.weight) for one in chosen]

    def close(self) -> None:
        """Wait for the fit that is under way, and end its thread."""
        self._pool.shutdown()

    def _collect(self) -> None:
        if self._running is None or not self._running.done():
            return
        error = self._running.exception()
        if error is None:
            self._posterior = self._running.result()
        self.trouble = "" if error is None else f"{type(error).__name__}: {error}"
        self._running = None


def replenish(store: Store, chooser: Chooser, ahead: int) -> int:
    """Have `ahead` pairs open, choosing as many as are missing; their number.

    A pair is open while it has fewer answers than the project's overlap. Also starts a fit to the
    answers so far.
    """
    answers = store.answers()
    chooser.learn(answers)
    count = Counter(one.pair for one in answers)
    pairs = store.pairs()
    wanted = ahead - sum(count[one.id] < store.project.overlap for one in pairs)
    if wanted <= 0:
        return 0
    chosen = chooser.choose(wanted, [(one.left, one.right) for one in pairs])
    if chosen:
        store.add_pairs(chosen)
    return len(chosen)


@contextmanager
def choosing(
    store: Store, *, ahead: int = 20, every: float = 2.0, fit: Fit = fit_posteriors
) -> Iterator[Chooser]:
    """Keep ``ahead`` pairs of a project open from a thread, looking ``every`` so many seconds.

    The project is in mode "information" and its items have features; ValueError if a model cannot
    learn from them.
    """
    try:
        items = read_items(store.project.items_path)
    except TableError as error:
        raise ValueError(
            f"no model can choose by these items ({error}): use mode 'uniform'"
        ) from None
    chooser = Chooser(items, fit=fit, seed=store.project.plan.seed)
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            try:
                replenish(store, chooser, ahead)
            except (ValueError, OSError) as error:  # the next look may be luckier
                chooser.trouble = f"{type(error).__name__}: {error}"
            over.wait(every)

    thread = threading.Thread(target=look, name="pairlearn-replenish", daemon=True)
    thread.start()
    try:
        yield chooser
    finally:
        over.set()
        thread.join()
        chooser.close()
