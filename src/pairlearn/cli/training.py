"""What ``pairlearn fit`` does between reading its files and writing the model."""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.cli.labelled import Labelled
from pairlearn.diagnostics import CheckReport, Finding
from pairlearn.evaluation import AccuracyEstimate, estimate_accuracy
from pairlearn.evaluation.decisions import Side
from pairlearn.judgements import Judgements
from pairlearn.kinds import kind
from pairlearn.tables import ItemTable
from pairlearn.training import Checkpoint

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier
    from pairlearn.progress import Progress

__all__ = [
    "DivergedError",
    "FitCheckpoints",
    "Inputs",
    "Measured",
    "Unmeasured",
    "accuracy_on",
    "as_options",
    "count_kinds",
    "diagnose",
    "digest",
    "fit_pairs",
    "measure",
    "told_as_options",
    "watching",
]

PARAMETERS = (
    *("annotator_prior", "target_prior", "majority", "positive", "prior"),
    *("learning_rate", "epochs"),
)
RANGES = {"similarity-range", "difference-range"}
"""Findings that ``--noisy`` admits."""
TOLD_BY_LABELS = {"majority-unclear", "needs-majority", "needs-prior", "ranking-only"}
"""Findings that some known classes settle."""
SHOWN = 3
TOO_FEW = "there are too few pairs, or their items recur too often, to hold some out"


class DivergedError(Exception):
    """The loss is not a number any more."""


class FitCheckpoints:
    """Checkpoints of both trainings of ``pairlearn fit``, in a folder beside the model.

    Parameters
    ----------
    out : Path
        The model folder to be.
    seconds : float
        As in `Checkpoint`.

    Examples
    --------
    >>> FitCheckpoints(Path("model"), 60).folder
    PosixPath('model.checkpoint')
    """

    def __init__(self, out: Path, seconds: float) -> None:
        self.folder = out.with_name(f"{out.name}.checkpoint")
        self.measure = Checkpoint(self.folder / "measure", seconds)
        self.fit = Checkpoint(self.folder / "fit", seconds)

    def remove(self) -> None:
        """Remove what there is of them; other files in the folder stay."""
        self.measure.remove()
        self.fit.remove()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


@dataclass(frozen=True)
class Inputs:
    """What there is to learn from.

    Attributes
    ----------
    items : ItemTable
        The items, as they are in their file.
    said : Judgements
        What was said of which rows of the items.
    rows : int
        Rows of the file of judgements, each of which may say several things.
    labelled : Labelled or None
        Items of known class.
    """

    items: ItemTable
    said: Judgements
    rows: int
    labelled: Labelled | None

    @property
    def used(self) -> NDArray[np.int64]:
        """Rows of the items that something was said of."""
        known = np.empty(0, np.int64) if self.labelled is None else self.labelled.rows
        ends = self.said.ends.ravel()
        return np.unique(np.concatenate([ends[ends >= 0], known]))

    @property
    def by_row(self) -> ItemTable:
        """The items with their rows as ids, which a `PairClassifier` looks up."""
        return ItemTable.trusted(np.arange(len(self.items)), self.items.features, self.items.names)


@dataclass(frozen=True)
class Measured:
    """An accuracy on held-out pairs.

    Attributes
    ----------
    accuracy : AccuracyEstimate
        Of a model that was fitted to the pairs for training alone.
    training, held_out, dropped : int
        Pairs for training, for measuring, and for neither.
    capped : bool
        Whether more were to be held out than are kept in memory.
    """

    accuracy: AccuracyEstimate
    training: int
    held_out: int
    dropped: int
    capped: bool = False


@dataclass(frozen=True)
class Unmeasured:
    """Why there is no accuracy."""

    reason: str


def diagnose(
    report: CheckReport, *, noisy: bool, labelled: bool, names: tuple[str, str]
) -> list[str]:
    """What was found in the judgements: an error if they cannot be used, else warnings in short.

    Parameters
    ----------
    report : CheckReport
        Of `pairlearn.diagnostics.check`.
    noisy : bool
        Values out of range are no error.
    labelled : bool
        Some classes are known.
    names : (str, str)
        Of both files, for the command that says more.
    """
    settled = (RANGES if noisy else set()) | (TOLD_BY_LABELS if labelled else set())
    errors = [found for found in report.of("error") if found.code not in settled]
    more = f"pairlearn check {names[1]} --items {names[0]}"
    if errors:
        lines = [f"  {_in_short(found)}" for found in errors[:SHOWN]]
        if len(errors) > SHOWN:
            lines.append(f"  … and {len(errors) - SHOWN} more")
        raise ValueError(
            "\n".join([f"{names[1]} cannot be used as it is:", *lines, f"`{more}` says more"])
        )
    return [_in_short(found) for found in report.of("warning") if found.code not in settled]


def fit_pairs(
    classifier: PairClassifier,
    inputs: Inputs,
    progress: Progress | None,
    rows: Any = slice(None),
    without: NDArray[np.int64] | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[str]:
    """Fit to some rows of the table, and say what it warned of.

    Parameters
    ----------
    classifier : PairClassifier
        What to fit; it is given the items.
    inputs : Inputs
        What to learn from.
    progress : callable or None
        Called after each epoch.
    rows : slice or mask
        Of what was said.
    without : array of int, optional
        Items whose class must not be told.
    checkpoint : Checkpoint, optional
        As `PairClassifier.fit` takes it.
    """
    told, known = inputs.labelled, None
    if told is not None:
        kept = np.ones(len(told.rows), bool) if without is None else ~np.isin(told.rows, without)
        if kept.any():
            known = told.rows[kept], np.where(told.positive[kept], 1, -1)
    callbacks = [watching(progress), *([] if checkpoint is None else [checkpoint])]
    classifier.set_params(preprocessor=inputs.by_row, callbacks=callbacks)
    with told_as_options() as warned:
        classifier.fit(None, inputs.said[rows], labelled=known)
    classifier.set_params(preprocessor=None, callbacks=None)  # of no use to a model
    if told is not None:
        classifier.classes_ = told.classes
    return warned


def watching(progress: Progress | None) -> Progress:
    """The same progress, with an error as soon as the loss is not a number any more."""

    def watch(epochs: int, row: dict[str, float]) -> None:
        if not math.isfinite(row["risk"]):
            raise DivergedError(
                f"training diverged: the loss is {row['risk']} in epoch {row['epoch']:.0f}; try a "
                "lower --learning-rate"
            )
        if progress is not None:
            progress(epochs, row)

    return watch


@contextmanager
def told_as_options() -> Iterator[list[str]]:
    """What a fit warns of, and its errors, in terms of the command line.

    Yields
    ------
    list of str
        Filled with the warnings when the block ends.

    Examples
    --------
    >>> with told_as_options() as warned:
    ...     warnings.warn("pass prior=0.2", stacklevel=1)
    >>> warned
    ['pass --prior 0.2']
    """
    warned: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield warned
        except ValueError as error:
            raise ValueError(as_options(str(error))) from None
    warned += [as_options(str(warning.message)) for warning in caught]


def measure(
    classifier: PairClassifier,
    inputs: Inputs,
    fraction: float,
    seed: int,
    prior: float | None,
    progress: Progress | None,
    checkpoint: Checkpoint | None = None,
) -> Measured | Unmeasured:
    """Accuracy on pairs of items that the classifier, fitted to the others, has not seen."""
    from pairlearn.estimators.splits import hold_out_items

    said = inputs.said
    soft = said.has("similarity") | said.has("difference")
    if not soft.any():
        return Unmeasured("an accuracy takes pairs with a similarity or a difference, and none has")
    training, held_out = np.zeros((2, len(said)), bool)
    training[~said.single], held_out[~said.single] = hold_out_items(
        said.ends[~said.single], fraction, seed
    )
    without = said.ends[held_out].ravel()
    training |= said.single & ~np.isin(said.ends[:, 0], without)
    dropped = int((~training & ~held_out & ~said.single).sum())
    held_out &= soft
    if said[training].kinds() != said.kinds() or held_out.sum() < 2:
        return Unmeasured(TOO_FEW)
    held = said[held_out]
    fit_pairs(classifier, inputs, progress, training, without, checkpoint)
    z = classifier.decision_function(inputs.by_row)
    # What the model learnt the side from may be no part of the pairs that are held out.
    told = any("side" in kind(name).fixes(prior_known=False) for name in said.kinds())
    knows = inputs.labelled is not None or told
    accuracy = accuracy_on(held, z, prior, classifier.majority or ("better" if knows else None))
    if isinstance(accuracy, Unmeasured):
        return accuracy
    return Measured(accuracy, int(training.sum()), len(held), dropped)


def accuracy_on(
    held: Judgements,
    z: NDArray[np.float64],
    prior: float | None,
    side: Side | None = None,
) -> AccuracyEstimate | Unmeasured:
    """Accuracy on held-out pairs.

    Parameters
    ----------
    held : Judgements
        A similarity or a difference, or both, in each row.
    z : array of shape (m,)
        Log-odds of all items.
    prior : float, optional
        The class prior as it was stated, for pairs with one kind of judgement.
    side : {"positive", "negative", "better"}, optional
        As in `estimate_accuracy`, for pairs with similarities alone. A model that was told
        some classes is "better" than chance.
    """
    similar, different = held.has("similarity").any(), held.has("difference").any()
    # A prior near ½ would choose the side by chance where the model knows it.
    unneeded = (similar and different) or (similar and side == "better")
    try:
        return estimate_accuracy(
            z[held.ends[:, 0]],
            z[held.ends[:, 1]],
            held.labels(),
            weight=None if (held.weight == 1).all() else held.weight,
            items=held.ends,
            prior=None if unneeded else prior,
            side=side,
        )
    except ValueError as error:
        return Unmeasured(as_options(str(error)))


def by_kind(counts: Mapping[str, int], rows: int) -> dict[str, int]:
    """Rows about pairs by what they say, from how many statements there are of each kind.

    A row has at most one statement with a similarity or a difference.

    Examples
    --------
    >>> by_kind({"both": 5, "preference": 4}, rows=7)["preference_only"]
    2
    """
    soft = {name: counts.get(name, 0) for name in ("both", "similarity", "difference")}
    return {
        "both": soft["both"],
        "similarity_only": soft["similarity"],
        "difference_only": soft["difference"],
        "preference_only": rows - sum(soft.values()),
    }


def count_kinds(inputs: Inputs) -> dict[str, int]:
    """Rows by what they say, items that were judged, and items of known class."""
    said = inputs.said
    ends, single = said.ends.ravel(), int(said.single.sum())
    return {
        "judgements": inputs.rows,
        "features": len(inputs.items.names),
        "items": len(np.unique(ends[ends >= 0])),
        **by_kind(said.counts(), inputs.rows - single),
        "labelled": single + (0 if inputs.labelled is None else len(inputs.labelled.rows)),
    }


def as_options(text: str) -> str:
    """A message about parameters as one about options of the command line.

    Examples
    --------
    >>> as_options("pass prior=, or majority='positive' or 'negative'; see target_prior=0.1")
    "pass --prior, or --majority 'positive' or 'negative'; see --target-prior 0.1"
    """

    def option(found: re.Match[str]) -> str:
        space = " " if found[2] else ""
        return f"--{found[1].replace('_', '-')}{space}{found[2]}"

    def parameter(found: re.Match[str]) -> str:
        return f"--{found[1].replace('_', '-')}"

    text = re.sub(r"The '(\w+)' parameter of PairClassifier", parameter, text)
    return re.sub(rf"\b({'|'.join(PARAMETERS)})=([^\s,;:]?)", option, text)


def digest(path: Path) -> str:
    """SHA-256 of a file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a").write_bytes(b"abc")
    ...     digest(Path(folder, "a"))[:16]
    'ba7816bf8f01cfea'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _in_short(found: Finding) -> str:
    """A finding's first sentence, and the first rows that it is about."""
    text = found.message.split(". ")[0].rstrip(".")
    where = [f"row {', '.join(map(str, found.rows[:SHOWN]))}"] if found.rows else []
    where += [", ".join(map(str, found.ids[:SHOWN]))] if found.ids else []
    more = ", …" if where and found.count > SHOWN else ""
    return f"{found.code}: {text}" + (f" ({'; '.join(where)}{more})" if where else "")
