"""When to stop: the accuracy of a quick model on the answers so far, and the gain from more.

The model is linear in the items' features and maximises the pair likelihood with a ridge penalty.
Items are put into folds, and each end of a pair is predicted by a model that saw no pair with that
item. The same with a few large folds, which leave far fewer pairs to train with, shows how the
accuracy grows; it is assumed to approach its limit like n^-½.

An answer at the end of a scale in words stands for everything up to certainty: the interval
reaches from the estimate with the numbers of the project file to that with certain answers.

The studio's server runs this module as a program (`Forecast`), which also learns how everybody
answers, and in mode "information" prints the posteriors by which `pairlearn_studio.choosing`
chooses pairs.
"""

from __future__ import annotations

import logging
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Floats
from pairlearn.evaluation import Estimate, estimate_accuracy
from pairlearn.io import TableError, read_items
from pairlearn.labels import PairLabels
from pairlearn_studio.creating import describe_fit
from pairlearn_studio.exchange import exportable, settled
from pairlearn_studio.overview import AnswerColumns, people_of
from pairlearn_studio.project import Project
from pairlearn_studio.reader import StoreReader
from pairlearn_studio.records import CERTAIN, StoredAnswer

LOG = logging.getLogger("pairlearn.annotate")

LEAST_PAIRS = 30
NEXT = 50
"""Number of further pairs whose gain is predicted."""
FOLDS, FEW_FOLDS = 10, 3
CONFIDENCE = 0.98
"""Covers the sampling of pairs alone; as the model varies, too, intervals are meant to hold nine
times in ten (`bench/speed/stopping.py`)."""
RIDGES = (1.0, 10.0, 100.0)
WIDEST = 200
"""Most features; where there are more, so many principal components are used."""
REST = 9
"""The forecast rests this many times as long as it ran: it takes a tenth of a processor."""


class TooFewPairsError(ValueError):
    """Too few pairs have been judged for a forecast."""


@dataclass(frozen=True)
class Outlook:
    """Accuracy of a quick model, ``now`` and as planned, each as (estimate, low, high).

    ``pairs`` counts those judged with both numbers. ``gain`` is the expected gain of the next 50
    pairs, and ``next_half_width`` that of the interval after them.
    """

    pairs: int
    planned: int
    now: tuple[float, float, float]
    planned_accuracy: tuple[float, float, float]
    gain: float
    half_width: float
    next_half_width: float


def outlook(
    features: Any,
    ends: NDArray[np.int64],
    stated: PairLabels,
    certain: PairLabels,
    planned: int,
    weight: Floats | None = None,
) -> Outlook:
    """Estimate the accuracy of a quick model, and predict the gain of more pairs.

    ``ends`` (n, 2) has the rows of ``features`` (N, d) of each judged pair, ``weight`` (n,) its
    inclusion weight; ``certain`` are the ``stated`` labels with the ends of the scale taken for
    certainty. Raises TooFewPairsError.
    """
    pairs = len(np.unique(np.sort(ends, 1), axis=0))
    if pairs < LEAST_PAIRS:
        raise TooFewPairsError(f"{pairs} pairs have both numbers so far; {LEAST_PAIRS} are needed")
    model = _Model(_standardise(features), ends, stated, weight)

    def accuracy(z: Floats, labels: PairLabels) -> Estimate:
        return estimate_accuracy(
            z[:, 0], z[:, 1], labels, items=ends, weight=model.weight, confidence=CONFIDENCE
        ).informed

    ridge, predicted = model.choose()
    low, high = accuracy(predicted, stated), accuracy(predicted, certain)
    fewer = [model.out_of_fold(FEW_FOLDS, ridge, seed) for seed in range(FEW_FOLDS)]
    before = np.mean([accuracy(z, certain).value for z in fewer])
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
    return Outlook(
        pairs, planned, now, with_pairs(max(planned, pairs)), later[0] - now[0], half,
        half - narrower,
    )  # fmt: skip


def quick_model(
    features: Any, ends: NDArray[np.int64], stated: PairLabels, weight: Floats | None = None
) -> Floats:
    """Log-odds of the items by the model whose accuracy `outlook` estimates."""
    model = _Model(_standardise(features), ends, stated, weight)
    z: Floats = model.x @ model.fit(np.arange(len(ends)), model.choose()[0])
    return z


def _standardise(features: Any) -> Floats:
    """Features of mean 0 and variance 1; where there are many, their principal components."""
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    x = StandardScaler().fit_transform(np.asarray(features, np.float64))
    if x.shape[1] > WIDEST:
        x = PCA(min(WIDEST, len(x)), random_state=0).fit_transform(x)
    return np.asarray(x)


class _Model:
    """Linear model of judged pairs."""

    def __init__(
        self, x: Floats, ends: NDArray[np.int64], labels: PairLabels, weight: Floats | None
    ) -> None:
        self.x, self.ends = np.column_stack([np.ones(len(x)), x]), ends
        self.outcomes: Floats = labels.project().outcomes()
        self.weight = np.ones(len(ends)) if weight is None else weight

    def choose(self) -> tuple[float, Floats]:
        """The ridge penalty that predicts best out of fold, and its log-odds."""
        logits = {ridge: self.out_of_fold(FOLDS, ridge) for ridge in RIDGES}
        best = max(RIDGES, key=lambda ridge: self.likelihood(*logits[ridge].T))
        return best, logits[best]

    def out_of_fold(self, folds: int, ridge: float, seed: int = 0) -> Floats:
        """Log-odds (n, 2) of the ends, by models that saw no pair with the item."""
        part = np.random.default_rng(seed).permutation(len(self.x)) % folds
        logits = np.empty(self.ends.shape)
        for fold in range(folds):
            held_out = part[self.ends] == fold
            if held_out.any():
                z = self.x @ self.fit(~held_out.any(1), ridge)
                logits[held_out] = z[self.ends][held_out]
        return logits

    def fit(self, rows: Any, ridge: float) -> Floats:
        """Coefficients, the intercept first, which has no penalty."""
        from scipy.optimize import minimize
        from scipy.special import expit

        left, right = (self.x[end] for end in self.ends[rows].T)
        (a, b, same), weight = self.outcomes[rows].T, self.weight[rows]
        penalty = np.r_[0.0, np.full(self.x.shape[1] - 1, ridge)]

        def loss(w: Floats) -> tuple[float, Floats]:
            z, q = left @ w, right @ w
            # P(+ | outcome) of an end: two ends of the same class have log-odds z + q.
            alike = same * expit(z + q)
            dz, dq = weight * (expit(z) - a - alike), weight * (expit(q) - b - alike)
            value = -self.likelihood(z, q, rows) + penalty @ w**2 / 2
            return value, left.T @ dz + right.T @ dq + penalty * w

        start = np.zeros(self.x.shape[1])
        best: Floats = minimize(loss, start, jac=True, method="L-BFGS-B").x
        return best

    def likelihood(self, z: Floats, q: Floats, rows: Any = slice(None)) -> float:
        """Log-likelihood of pairs, from the log-odds of their ends."""
        # Of (+, −), (−, +) and same class, without their common factor.
        logs = np.stack([z, q, np.logaddexp(0, z + q)], 1)
        logs -= (np.logaddexp(0, z) + np.logaddexp(0, q))[:, None]
        return float(self.weight[rows] @ (self.outcomes[rows] * logs).sum(1))


class _JudgedPairs(NamedTuple):
    """Answers with both numbers about items that exist, as arguments of `outlook`."""

    ends: NDArray[np.int64]
    stated: PairLabels
    certain: PairLabels
    weight: Floats | None

    @classmethod
    def of(
        cls, answers: Sequence[StoredAnswer], ids: Sequence[str], weighted: bool
    ) -> _JudgedPairs:
        rows = {item: row for row, item in enumerate(ids)}
        answers = [
            answer
            for answer in answers
            if None not in answer.numbers and rows.keys() >= {answer.left, answer.right}
        ]
        columns = AnswerColumns(answers)
        ends = np.array([(rows[answer.left], rows[answer.right]) for answer in answers], np.int64)
        certain = [CERTAIN.get(answer.level, answer.numbers) for answer in answers]
        return cls(
            ends.reshape(-1, 2),
            PairLabels(columns.similarity, columns.difference, noisy=True),
            PairLabels(*np.reshape(np.array(certain, np.float64), (-1, 2)).T, noisy=True),
            columns.weight if weighted else None,
        )


def forecast_parts(store: StoreReader) -> Iterator[dict[str, Any]]:
    """The forecast for the supervisor's page, part by part, the quickest first.

    The outlook with all answers; how everybody answers, and who is flagged; the outlook without
    those; and, where a model chooses the pairs, its posteriors.
    """
    project, author = store.project, store.adjudicator
    features = None
    try:
        features = read_items(project.items_path).features
    except TableError:
        yield {"needs": describe_fit(project), "featureless": True}
    except (ImportError, OSError) as error:
        yield {"needs": str(error), "featureless": False}
    answers = [answer for answer in settled(exportable(store), author) if answer.right]
    planned = sum(pair.origin != "import" for pair in store.pairs())
    model_chooses = project.plan.mode == "information"

    def judged_pairs(left_out: Collection[str] = ()) -> _JudgedPairs:
        kept = [answer for answer in answers if answer.annotator not in left_out]
        return _JudgedPairs.of(kept, store.items.ids, model_chooses)

    def outlook_of(pairs: _JudgedPairs) -> dict[str, Any]:
        return _attempt(lambda: asdict(outlook(features, *pairs[:3], planned, pairs.weight)))

    if features is not None:
        yield {"everybody": outlook_of(judged_pairs()), "needs": None}
    people = people_of(store.answers())
    doubted = {*people.doubted}
    manners = {
        person.name: (people.phrases(person.name), person.name in doubted)
        for person in people.annotators.people
    }
    doubted |= {name for name, quality in store.quality().items() if quality.phrases}
    flagged = sorted(doubted - {author})
    yield {"manners": manners, "flagged": flagged}
    if features is None:
        return
    pairs = judged_pairs(flagged)
    yield {"without": outlook_of(pairs) if flagged else None}
    if model_chooses and len(pairs.ends) >= LEAST_PAIRS:
        yield _attempt(lambda: {"posterior": _posterior(features, pairs)})


def _attempt(compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A part of the forecast, or why there is none."""
    try:
        return compute()
    except TooFewPairsError as error:
        return {"needs": str(error), "few": True}
    except Exception as error:  # whatever it is, the other parts still come
        return {"needs": str(error) or repr(error), "few": False}


def _posterior(features: Any, pairs: _JudgedPairs) -> list[float]:
    """P(y = +1 | x) of all items."""
    from scipy.special import expit

    z = quick_model(features, pairs.ends, pairs.stated, pairs.weight)
    if not np.isfinite(z).all():
        raise ValueError("the quick model that chooses pairs is not finite for some items")
    posterior: list[float] = np.round(expit(z), 4).tolist()
    return posterior


def main() -> None:
    """Print the forecast of the project in the first argument, a line of JSON for each part."""
    os.nice(5)
    for part in forecast_parts(StoreReader(Project.load(sys.argv[1]))):
        print(msgspec.json.encode(part).decode(), flush=True)


class Forecast:
    """The forecast of this module, made by a process of its own as answers come in.

    ``results`` are the parts for the supervisor's page, and ``posterior`` is P(y = +1 | x) of all
    items in mode "information", empty before the first model.
    """

    def __init__(self, folder: Path) -> None:
        self.results: dict[str, Any] = {}
        self.posterior: list[float] = []
        self._folder, self._lock = folder, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._seen, self._began, self._due = -1, 0.0, 0.0

    def refresh(self, latest: int) -> dict[str, Any]:
        """The results so far; a new process starts if anything changed since the last one."""
        with self._lock:
            if self._process is not None:
                self._collect(self._process)
            now = time.monotonic()
            if self._process is None and latest != self._seen and now >= self._due:
                self._seen, self._began = latest, now
                # Files, unlike pipes, never fill, and reading them never waits for who else has
                # them open.
                self._output = tempfile.TemporaryFile()  # noqa: SIM115
                self._errors = tempfile.TemporaryFile()  # noqa: SIM115
                try:
                    self._process = subprocess.Popen(
                        # Without -P, a numpy.py in the current folder would be imported.
                        [sys.executable, "-P", "-m", "pairlearn_studio.stopping", self._folder],
                        env=os.environ | {"OMP_NUM_THREADS": "1"},
                        stdout=self._output,
                        stderr=self._errors,
                    )
                except OSError as error:  # no memory or too many processes: the page does without
                    self._end(f"no process could be started ({error})")
            return self.results

    def _collect(self, process: subprocess.Popen[bytes]) -> None:
        """Take the lines written so far; those that are not JSON come from other libraries."""
        status = process.poll()
        for line in _written(self._output).rpartition(b"\n")[0].splitlines():
            with suppress(ValueError):
                part = msgspec.json.decode(line, type=dict[str, Any])
                self.posterior = part.pop("posterior", self.posterior)
                self.results = self.results | part
        if status is None:
            return
        last = _written(self._errors).decode(errors="replace").strip().rpartition("\n")[2]
        self._end((last or f"it ended with {status}") if status else None)

    def _end(self, error: str | None = None) -> None:
        if error is not None:
            LOG.error("pairlearn annotate: no forecast of the accuracy: %s", error)
        self._output.close()
        self._errors.close()
        now, self._process = time.monotonic(), None
        self._due = now + REST * (now - self._began)

    def close(self) -> None:
        """End a process that is under way."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.wait()
                self._end()


def _written(file: IO[bytes]) -> bytes:
    """Output of a process; not by seek and read, for it writes where the file is positioned."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


if __name__ == "__main__":
    main()
