"""What ``pairlearn fit --stream`` and ``evaluate --stream`` do with a file of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from pairlearn.cli.training import (
    TOO_FEW,
    Measured,
    Unmeasured,
    accuracy_on,
    by_kind,
    diagnose,
    told_as_options,
    watching,
)
from pairlearn.diagnostics import check
from pairlearn.estimators.pair_files import PairFile, open_items
from pairlearn.estimators.prediction import log_odds
from pairlearn.estimators.streams import fit_survey
from pairlearn.estimators.survey import (
    NothingLeftError,
    Survey,
    held_items,
    survey_for,
    survey_pairs,
)
from pairlearn.judgements import Judgements
from pairlearn.progress import bar
from pairlearn.tables import ItemTable, PairTable
from pairlearn.training import Checkpoint

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier
    from pairlearn.progress import Progress
    from pairlearn.tables.scales import Scale

__all__ = [
    "Sampled",
    "StreamInputs",
    "count_streamed",
    "fit_streamed",
    "measure_streamed",
    "open_streamed",
    "sample_pairs_of",
]

MEASURED_PAIRS = 100_000
"""Most pairs that the accuracy is measured with, about."""
EVALUATED_PAIRS = 1 << 18
"""Most pairs that ``evaluate --stream`` takes into memory, about."""


@dataclass(frozen=True)
class StreamInputs:
    """What there is to learn from, in files.

    Attributes
    ----------
    survey : Survey
        Of the pairs.
    scratch : Path
        Folder for features that are mapped from a file.
    shown : bool
        Whether to show bars.
    """

    survey: Survey
    scratch: Path
    shown: bool


def open_streamed(
    classifier: PairClassifier,
    files: tuple[Path, Path | None, Path],
    *,
    prior: float | None,
    majority: Literal["positive", "negative"] | None,
    noisy: bool,
    scales: Sequence[Scale | None],
    out: Path,
    shown: bool,
) -> tuple[StreamInputs, list[str]]:
    """Look through the files: what there is to learn from, and warnings in short.

    Parameters
    ----------
    classifier : PairClassifier
        What will be fitted.
    files : (Path, Path or None, Path)
        Items, their ids and the pairs.
    prior, majority
        As in `pairlearn.diagnostics.check`, which looks at a sample of the pairs.
    noisy : bool
        Values out of range are no error.
    scales : sequence of Scale or None
        Of similarities and of differences.
    out : Path
        The model folder to be; features are mapped beside it.
    shown : bool
        Whether to show bars.
    """
    items, ids, pairs = files
    file = PairFile(pairs, open_items(items, ids), noisy=noisy, scales=scales)
    with bar("looking through", file.rows, unit="rows", shown=shown) as progress:
        survey = survey_for(classifier, file, progress=progress)
    if selves := survey.counts["self_pairs"]:
        raise ValueError(
            f"{pairs} cannot be used as it is: {selves:,} rows pair an item with itself; drop them"
        )
    said = Judgements.concatenate(survey.sampled)
    sample = PairTable.from_judgements(said, file.items.index.names())
    report = check(sample, prior=prior, majority=majority, precision=False)
    if len(sample) < file.rows:  # rows of the sample are not those of the file
        bare = [replace(found, rows=(), ids=()) for found in report.findings]
        report = replace(report, findings=tuple(bare))
    warned = diagnose(report, noisy=noisy, labelled=False, names=(str(items), str(pairs)))
    if warned and len(sample) < file.rows:
        warned = [f"{text} (in a sample of {len(sample):,} rows)" for text in warned]
    return StreamInputs(survey, out.absolute().parent, shown), warned


def fit_streamed(
    classifier: PairClassifier,
    inputs: StreamInputs,
    progress: Progress | None,
    *,
    checkpoint: Checkpoint | None = None,
) -> list[str]:
    """Fit to the whole file, and say what it warned of."""
    with told_as_options() as warned:
        fit_survey(
            classifier,
            inputs.survey,
            progress=watching(progress),
            checkpoint=checkpoint,
            scratch=inputs.scratch,
        )
    return warned


def measure_streamed(
    classifier: PairClassifier,
    inputs: StreamInputs,
    fraction: float,
    seed: int,
    prior: float | None,
    progress: Progress | None,
    checkpoint: Checkpoint | None = None,
) -> Measured | Unmeasured:
    """Accuracy on pairs of items that the classifier, fitted to the others, has not seen."""
    file, whole = inputs.survey.file, inputs.survey
    apart = held_items(len(file.items), file.rows, fraction, MEASURED_PAIRS, seed)
    with bar("looking through", file.rows, unit="rows", shown=inputs.shown) as tick:
        try:
            survey = survey_for(classifier, file, apart, tick)
        except NothingLeftError:
            return Unmeasured(TOO_FEW)
    if not survey.held or survey.kinds != whole.kinds:
        return Unmeasured(TOO_FEW)
    said = Judgements.concatenate(survey.held)
    held = said[said.has("similarity") | said.has("difference")]
    if len(held) < 2:
        return Unmeasured(TOO_FEW)
    with told_as_options():
        fit_survey(
            classifier,
            survey,
            progress=watching(progress),
            checkpoint=checkpoint,
            scratch=inputs.scratch,
        )
    known, place = np.unique(held.ends, return_inverse=True)
    z = log_odds(classifier, file.items.some(known), file.items.path)
    held = replace(held, ends=place.reshape(-1, 2))
    accuracy = accuracy_on(held, z, prior, classifier.majority)
    if isinstance(accuracy, Unmeasured):
        return accuracy
    training = survey.counts["training"] + sum(len(part) for part in survey.validating)
    return Measured(
        accuracy,
        training,
        len(held),
        dropped=sum(whole.counts[name] for name in whole.kinds) - training - len(said),
        capped=fraction * file.rows > MEASURED_PAIRS,
    )


def count_streamed(inputs: StreamInputs) -> dict[str, int]:
    """Rows by what they say, and items that were judged."""
    survey = inputs.survey
    return {
        "judgements": survey.file.rows,
        "features": len(survey.file.items.names),
        "items": int(survey.judged.sum()),
        **by_kind(survey.counts, survey.file.rows),
        "labelled": 0,
    }


@dataclass(frozen=True)
class Sampled:
    """Items, some of the judged pairs of a file, how many rows it has, and how many have none."""

    items: ItemTable
    table: PairTable
    rows: int
    ignored: int


def sample_pairs_of(
    items: Path,
    ids: Path | None,
    pairs: Path,
    *,
    noisy: bool,
    scales: Sequence[Scale | None] = (None, None),
) -> Sampled:
    """Look through a file of pairs and keep a random sample, or all if they are not many."""
    known = open_items(items, ids)
    file = PairFile(pairs, known, noisy=noisy, scales=scales)
    survey = survey_pairs(file, sample=EVALUATED_PAIRS)
    said, of = Judgements.concatenate(survey.sampled), known.index.names()
    table = PairTable.from_judgements(said[said.has("similarity") | said.has("difference")], of)
    ignored = by_kind(survey.counts, file.rows)["preference_only"]
    return Sampled(ItemTable.trusted(of, known.features, known.names), table, file.rows, ignored)
