"""When to stop: the accuracy of a linear model on the answers so far, and the gain from more.

The model is the library's (``PairClassifier(model="linear")``). Items are put into folds, and each
end of a pair is predicted by a model that saw no pair with that item. The same with a few large
folds, which leave far fewer pairs to train with, shows how the accuracy grows; it is assumed to
approach its limit like n^-½.

An answer at the end of a scale in words stands for everything up to certainty: the interval
reaches from the estimate with the numbers of the project file to that with certain answers.

The studio's server runs this module as a program (`Forecast`), which also learns how each
annotator answers. Its results are stored in ``forecast.json``, where `status` reads them. In a
project of several classes it makes no forecast: its model proposes the classes to ask about.
"""

from __future__ import annotations

import logging
import math
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pairlearn.atomic import replacing
from pairlearn.columns import Floats
from pairlearn.evaluation import Estimate, estimate_accuracy
from pairlearn.io import TableError, read_items
from pairlearn.labels import PairLabels
from pairlearn_studio.choosing import choose_sets
from pairlearn_studio.creating import describe_fit
from pairlearn_studio.exchange import export_table, settled
from pairlearn_studio.overview import people_of
from pairlearn_studio.project import Project
from pairlearn_studio.reader import FORECAST, StoreReader
from pairlearn_studio.records import CERTAIN, StoredAnswer
from pairlearn_studio.store import Store

LOG = logging.getLogger("pairlearn.annotate")

#: With fewer, a fold of the pairs is a handful (`bench/speed/stopping.py`).
LEAST_PAIRS = 30
#: Number of further pairs whose gain is predicted.
NEXT = 50
#: Each fold is one fit; the eight of an outlook with 400 answers took 27 s of CPU time.
FOLDS, FEW_FOLDS = 5, 3
#: Of the interval for the sampling of pairs. It is above 0.95 because the model varies as well;
#: `bench/speed/stopping.py` measures how often the intervals hold.
CONFIDENCE = 0.98
#: Most features; where there are more, so many principal components are used.
WIDEST = 200
#: The forecast rests this many times as long as it ran: it takes a tenth of a processor.
REST = 9


class TooFewPairsError(ValueError):
    """Too few pairs have been judged for a forecast."""


@dataclass(frozen=True)
class Outlook:
    """Accuracy of a quick model, ``now`` and as planned, each as (estimate, low, high).

    ``pairs`` counts those judged with both numbers. ``gain`` is the expected gain of the next 50
    pairs, and ``next_half_width`` that of the interval after them. ``sentence`` says how accurate
    the model is by both readings of the answers so far, and what that assumes, as `fit` does.
    """

    pairs: int
    planned: int
    now: tuple[float, float, float]
    planned_accuracy: tuple[float, float, float]
    gain: float
    half_width: float
    next_half_width: float
    sentence: str


def outlook(
    features: Any,
    ends: NDArray[np.int64],
    stated: PairLabels,
    certain: PairLabels,
    planned: int,
) -> Outlook:
    """Estimate the accuracy of a linear model, and predict the gain of more pairs.

    ``ends`` (n, 2) has the rows of ``features`` (N, d) of each judged pair; ``certain`` are the
    ``stated`` labels with the ends of the scale taken for certainty. Raises TooFewPairsError.
    """
    pairs = len(np.unique(np.sort(ends, 1), axis=0))
    if pairs < LEAST_PAIRS:
        raise TooFewPairsError(f"{pairs} pairs have both numbers so far; {LEAST_PAIRS} are needed")
    x = _reduced(features)

    def accuracy(z: Floats, labels: PairLabels) -> Estimate:
        return estimate_accuracy(
            z[:, 0], z[:, 1], labels, items=ends, confidence=CONFIDENCE
        ).informed

    predicted = _out_of_fold(x, ends, stated, FOLDS)
    low, high = accuracy(predicted, stated), accuracy(predicted, certain)
    before = accuracy(_out_of_fold(x, ends, stated, FEW_FOLDS), certain).value
    # The model of a fold is trained with the pairs without any of its items.
    trained, less = (pairs * (1 - 1 / folds) ** 2 for folds in (FOLDS, FEW_FOLDS))
    growth, sampling = max(high.value - float(before), 0.0), (high.high - high.low) / 2

    def with_pairs(number: float) -> tuple[float, float, float]:
        share = (trained**-0.5 - number**-0.5) / (less**-0.5 - trained**-0.5)
        # The growth is about half as uncertain as the accuracy, both being of the same pairs.
        top = min(high.high + share * (growth + sampling / 4), 1.0)
        return min((low.value + high.value) / 2 + share * growth, top), low.low, top

    now, later = with_pairs(pairs), with_pairs(pairs + NEXT)
    half = (now[2] - now[1]) / 2
    narrower = sampling * (1 - math.sqrt(pairs / (pairs + NEXT)))
    both = estimate_accuracy(predicted[:, 0], predicted[:, 1], stated, items=ends)
    return Outlook(
        pairs, planned, now, with_pairs(max(planned, pairs)), later[0] - now[0], half,
        half - narrower, both.sentence(),
    )  # fmt: skip


def _reduced(features: Any) -> Floats:
    """Features as a matrix; where there are many, their principal components."""
    x = np.asarray(features, np.float64).reshape(len(features), -1)
    if x.shape[1] > WIDEST:
        from sklearn.decomposition import PCA

        x = PCA(min(WIDEST, len(x)), random_state=0).fit_transform(x)
    return x


def _out_of_fold(x: Floats, ends: NDArray[np.int64], labels: PairLabels, folds: int) -> Floats:
    """Log-odds (n, 2) of the ends, by models that saw no pair with the item."""
    from pairlearn import PairClassifier

    part = np.random.default_rng(0).permutation(len(x)) % folds
    logits, numbers = np.empty(ends.shape), labels.to_array()
    for fold in range(folds):
        held_out = part[ends] == fold
        rows = ~held_out.any(1)
        if held_out.any():
            model = PairClassifier(model="linear", annotators="ideal", random_state=0)
            with warnings.catch_warnings(action="ignore"):  # the forecast states its own limits
                model.fit(x[ends[rows]], PairLabels(*numbers[rows].T, noisy=True))
                z = model.decision_function(x)
            logits[held_out] = z[ends][held_out]
    return logits


def _judged_pairs(
    answers: Sequence[StoredAnswer], ids: Sequence[str]
) -> tuple[NDArray[np.int64], PairLabels, PairLabels]:
    """Answers with both numbers about items that exist, as arguments of `outlook`."""
    rows = {item: row for row, item in enumerate(ids)}
    answers = [
        answer
        for answer in answers
        if None not in answer.numbers and rows.keys() >= {answer.left, answer.right}
    ]
    ends = np.array([(rows[answer.left], rows[answer.right]) for answer in answers], np.int64)
    stated = np.array([answer.numbers for answer in answers], np.float64).reshape(-1, 2)
    certain = [CERTAIN.get(answer.level, answer.numbers) for answer in answers]
    both = (stated, np.array(certain, np.float64).reshape(-1, 2))
    return ends.reshape(-1, 2), *(PairLabels(*numbers.T, noisy=True) for numbers in both)  # type: ignore[return-value]


def forecast_parts(store: StoreReader) -> Iterator[dict[str, Any]]:
    """The forecast for the supervisor's page, in two parts.

    How each annotator answers, and who is flagged; then the outlook without those.
    """
    answers, people = store.answers(), people_of(store.answers())
    doubted = {*people.doubted}
    manners = {
        person.name: (people.phrases(person.name), person.name in doubted)
        for person in people.annotators.people
    }
    doubted |= {row.annotator.name for row in store.overview(answers) if row.flags}
    flagged = sorted(doubted - {store.adjudicator})
    yield {"manners": manners, "flagged": flagged}
    yield {"outlook": _outlook_without(flagged, store)}


def _outlook_without(flagged: Collection[str], store: StoreReader) -> dict[str, Any]:
    """The outlook without some annotators, or why there is none."""
    answers = settled(store.drawn(store.answers()), store.adjudicator)
    kept = [one for one in answers if one.right and one.annotator not in flagged]
    try:
        features = read_items(store.project.items_path).features
        if store.project.classes:
            return {"needs": "none for several classes; `pairlearn evaluate` measures the accuracy"}
        pairs = _judged_pairs(kept, store.items.ids)
        return asdict(outlook(features, *pairs, store.planned()))
    except TableError:
        return {"needs": describe_fit(store.project), "reason": "no features"}
    except TooFewPairsError as error:
        return {"needs": str(error), "reason": "few pairs"}
    except Exception as error:  # whatever it is, the page says it
        return {"needs": str(error) or repr(error), "reason": "failed"}


def propose(store: StoreReader) -> dict[int, tuple[str, float]]:
    """What a quick model would ask about each pair of the plan; empty with too few answers."""
    from pairlearn import PairClassifier

    answers = settled(store.drawn(store.answers()), store.adjudicator)
    if not store.project.classes or len(answers) < LEAST_PAIRS:
        return {}
    try:
        x = _reduced(read_items(store.project.items_path).features)
    except TableError:  # nothing that a quick model could learn from
        return {}
    rows = {item: row for row, item in enumerate(store.items.ids)}
    pairs = [one for one in store.pairs() if rows.keys() >= {one.left, one.right} and one.about]
    ends = np.array([(rows[one.left], rows[one.right]) for one in pairs], np.int64).reshape(-1, 2)
    model = PairClassifier(
        model="linear", annotators="ideal", classes=[*store.project.classes], random_state=0
    )
    with warnings.catch_warnings(action="ignore"):
        predictions = model.fit(
            x, export_table(answers).table.located(store.items.ids)
        ).predict_proba(x)
    drawn = replace(store.project, same_share=0.0)  # pairs asked "of the same kind?" stay so
    sets = choose_sets(drawn, ends, len(answers), predictions)
    asked = zip(pairs, sets, strict=True)
    return {pair.id: (about, q) for pair, (about, q) in asked if about}


def main() -> None:
    """Make the forecast of the project in the first argument, and store every part of it."""
    os.nice(5)
    store = StoreReader(Project.load(sys.argv[1]))
    stored: dict[str, Any] = {"latest": store.latest()}
    for part in forecast_parts(store):
        stored |= part
        with replacing(store.project.folder / FORECAST) as file:
            file.write_bytes(msgspec.json.encode(stored))
    if chosen := propose(store):
        with Store(store.project) as writing:
            writing.carry_out(lambda changes: changes.ask_about(chosen))


class Forecast:
    """The forecast of this module, made by a process of its own as answers come in."""

    def __init__(self, store: StoreReader) -> None:
        self._folder, self._lock = store.project.folder, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._seen, self._began, self._due = store.forecast().get("latest", -1), 0.0, 0.0

    def refresh(self, latest: int) -> None:
        """Start a new process if anything changed since the last one."""
        with self._lock:
            now = time.monotonic()
            if self._process is not None and self._process.poll() is not None:
                if self._process.returncode > 0:
                    LOG.error("pairlearn annotate: no forecast of the accuracy (see above)")
                self._process, self._due = None, now + REST * (now - self._began)
            if self._process is None and latest != self._seen and now >= self._due:
                self._seen, self._began = latest, now
                try:
                    self._process = subprocess.Popen(
                        # Without -P, a numpy.py in the current folder would be imported.
                        [sys.executable, "-P", "-m", "pairlearn_studio.stopping", self._folder],
                        env=os.environ | {"OMP_NUM_THREADS": "1"},
                        stdout=subprocess.DEVNULL,
                    )
                except OSError as error:  # no memory or too many processes: the page does without
                    LOG.error("pairlearn annotate: no forecast of the accuracy: %s", error)

    def close(self) -> None:
        """End a process that is under way."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.wait()


if __name__ == "__main__":
    main()
