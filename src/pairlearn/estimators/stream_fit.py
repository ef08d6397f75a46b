"""Training on files of pairs of any size in constant memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pairlearn.estimators import population
from pairlearn.estimators.models import is_scikit_learn
from pairlearn.estimators.pair_stream import BLOCK_PAIRS, PairFile, ParquetPairStream
from pairlearn.estimators.parameters import (
    callbacks_of,
    check_parameters,
    needs_prior,
    recipe_of,
    risk_of,
)
from pairlearn.estimators.scaling import CHUNK
from pairlearn.estimators.seen import fingerprints
from pairlearn.estimators.splits import Split
from pairlearn.estimators.stream_items import StreamItems, mapped_features, open_items
from pairlearn.estimators.survey import Survey, survey_pairs
from pairlearn.progress import Progress
from pairlearn.training import Checkpoint

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

__all__ = ["fit_file", "fit_survey", "survey_for"]

PathLike = str | os.PathLike[str]
VALIDATION_PAIRS = 1 << 16
"""Most pairs that early stopping looks at, about."""


def fit_file(
    classifier: PairClassifier,
    items: PathLike,
    pairs: PathLike,
    *,
    ids: PathLike | None = None,
    noisy: bool = False,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    scratch: PathLike | None = None,
    block_pairs: int = BLOCK_PAIRS,
) -> PairClassifier:
    """Learn from a Parquet file of judged pairs that need not fit into memory.

    What stays in memory depends on the number of items, not on that of pairs. A first pass
    checks and counts all rows. In every epoch the row groups of the file come in another
    order; their rows are cut into blocks, and each block is shuffled. Every row is seen once
    an epoch. Early stopping holds out pairs at random, 65,536 at most.

    Parameters
    ----------
    classifier : PairClassifier
        What to fit, with any model but a scikit-learn classifier.
    items, ids : path-like
        As in `pairlearn.tables.read_items`. Features of an ``.npy`` file stay in the file.
    pairs : path-like
        The ``.parquet`` file of pairs; `rewrite_pairs` makes one of CSV.
    noisy : bool
        Admit finite judgements outside their ranges.
    progress, checkpoint
        As in `PairClassifier.fit`. Training goes on in the middle of an epoch.
    scratch : path-like, optional
        Folder for the standardised features of ``.npy`` items, 4 bytes a number, while this
        lasts; that for temporary files by default.
    block_pairs : int
        About how many pairs are shuffled together; some four blocks are in memory.

    Returns
    -------
    PairClassifier
        The classifier.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.estimators import PairClassifier
    >>> from pairlearn.data.simulation import simulate
    >>> from pairlearn.tables import write_items, write_pairs
    >>> told = simulate(pairs=200)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     items = write_items(told.items, f"{folder}/items.csv")
    ...     pairs = write_pairs(told.pairs, f"{folder}/pairs.parquet")
    ...     classifier = PairClassifier(model="linear", epochs=5, random_state=0)
    ...     fit_file(classifier, items, pairs).n_iter_
    5
    """
    _check(classifier)
    file = PairFile(Path(pairs), open_items(items, ids), noisy=noisy)
    survey = survey_for(classifier, file)
    fit_survey(
        classifier,
        survey,
        progress=progress,
        checkpoint=checkpoint,
        scratch=scratch,
        block_pairs=block_pairs,
    )
    return classifier


def survey_for(
    classifier: PairClassifier,
    file: PairFile,
    held: NDArray[np.bool_] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Survey:
    """Read a file once, for a training of this classifier.

    Parameters
    ----------
    classifier : PairClassifier
        Says whether some pairs are held out to stop early.
    file : PairFile
        The pairs.
    held : array of bool, shape (m,), optional
        Items that the training must not see.
    progress : callable, optional
        Called with the number of rows done.
    """
    seed = int(check_random_state(classifier.random_state).randint(2**31 - 1))
    share = 0.0
    if classifier.early_stopping:
        share = min(float(classifier.validation_fraction), VALIDATION_PAIRS / file.rows)
    return survey_pairs(file, Split(held, share, seed), seed=seed, progress=progress)


def fit_survey(
    classifier: PairClassifier,
    survey: Survey,
    *,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    scratch: PathLike | None = None,
    block_pairs: int = BLOCK_PAIRS,
) -> NDArray[np.float64]:
    """Fit to a file that was surveyed; the log-odds of all its items.

    Parameters
    ----------
    classifier : PairClassifier
        What to fit.
    survey : Survey
        Made by `survey_for` with the same classifier.
    progress, checkpoint, scratch, block_pairs
        As in `fit_file`.
    """
    _check(classifier)
    # The seed of the survey: without a random_state another one would be drawn here.
    seed, items, weight = survey.split.seed, survey.file.items, survey.instance_weight
    names = np.asarray(items.names, dtype=object)
    classifier._remember(np.array([-1, 1]), items.features, weight, names)
    classifier.training_items_ = _fingerprints(items, np.flatnonzero(weight))
    rows = survey.sample_rows()
    affine = needs_prior(classifier.risk)
    need = population.need_of(rows, affine)
    with mapped_features(items.features, classifier.mean_, classifier.scale_, scratch) as features:
        prior = classifier._prior(need, features, rows, seed, survey.prior)
        recipe = recipe_of(classifier, survey.training, seed)
        source = ParquetPairStream(
            survey,
            recipe.batch_size,
            seed,
            block_pairs=block_pairs,
            dtype=np.float64 if recipe.precision == "float64" else np.float32,
        )
        classifier._train(
            features,
            rows,
            survey.validation_rows(),
            risk_of(classifier, prior),
            need,
            recipe,
            callbacks_of([*(classifier.callbacks or ()), progress])[0],
            checkpoint,
            source,
        )
        z = classifier._raw_log_odds(features)
    sign = classifier.sign_
    classifier._settle(z, weight, rows, need, prior)
    return classifier.sign_ * sign * z + classifier.shift_


def _fingerprints(items: StreamItems, used: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of some items, whose features are read in parts."""
    ids = items.index.ids
    parts = [used[start : start + CHUNK] for start in range(0, len(used), CHUNK)]
    hashes = [
        fingerprints(items.features[part], part if isinstance(ids, int) else ids[part])
        for part in parts
    ]
    return np.concatenate([np.empty((0, 2), np.int64), *hashes])


def _check(classifier: PairClassifier) -> None:
    """Refuse a classifier that cannot learn from a stream."""
    check_parameters(classifier)
    if is_scikit_learn(classifier.model):
        raise ValueError(
            f"model {type(classifier.model).__name__} is a scikit-learn classifier, which needs "
            "all pairs in memory: use PairClassifier.fit, or model='linear' or 'mlp-bn'"
        )
