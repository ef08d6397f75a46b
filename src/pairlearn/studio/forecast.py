"""The quick model of a project that is served: its forecast, and the pairs that it chooses.

The model is fitted again and again by `pairlearn.studio.stopping`, in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pairlearn.randomness import stream
from pairlearn.studio.backups import LOG
from pairlearn.studio.choosing import choose_pairs
from pairlearn.studio.records import Floats
from pairlearn.studio.store import Store

REST = 9
"""Times as long as it ran the forecast rests, so that it takes a tenth of a processor."""


class Forecast:
    """The forecast of `pairlearn.studio.stopping`, made in its own process as answers come in.

    ``found`` is what the supervisor's page shows. ``posterior`` has P(y = +1 | x) of all items in
    mode "information"; it is empty before the first model.
    """

    def __init__(self, folder: Path) -> None:
        self.found: dict[str, Any] = {}
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
                # Files, which unlike pipes never fill; closed with the process.
                self._told = tempfile.TemporaryFile()  # noqa: SIM115
                self._trouble = tempfile.TemporaryFile()  # noqa: SIM115
                self._process = subprocess.Popen(
                    # Without -P, a numpy.py in the current folder would be imported.
                    [sys.executable, "-P", "-m", "pairlearn.studio.stopping", self._folder],
                    env=os.environ | {"OMP_NUM_THREADS": "1"},
                    stdout=self._told,
                    stderr=self._trouble,
                )
            return self.found

    def _collect(self, process: subprocess.Popen[bytes]) -> None:
        """Take the lines that are there."""
        ended = process.poll()
        # Not by seek and read: the process writes where this file is positioned.
        told = os.pread(self._told.fileno(), os.fstat(self._told.fileno()).st_size, 0)
        for line in told.rpartition(b"\n")[0].splitlines():
            part = msgspec.json.decode(line)
            self.posterior = part.pop("posterior", self.posterior)
            self.found |= part
        if ended is None:
            return
        if ended:
            size = os.fstat(self._trouble.fileno()).st_size
            trouble = os.pread(self._trouble.fileno(), 4096, max(size - 4096, 0))
            last = trouble.decode(errors="replace").strip().rpartition("\n")[2]
            LOG.error("pairlearn annotate: no forecast of the accuracy: %s", last)
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


def replenish(
    store: Store, posterior: list[float] | Floats, rng: np.random.Generator, ahead: int
) -> int:
    """Have `ahead` pairs open, choosing as many as are missing; their number.

    A pair is open while it has fewer answers than the project's overlap. Without a posterior
    for every item draws are uniform.
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
