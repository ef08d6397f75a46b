"""Everything that `fit` is given: instances and a table of judgements. Bad input never trains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from pairlearn import kinds
from pairlearn.columns import Floats, Indices, Mask, as_floats, first_rows, two_classes
from pairlearn.estimators.features import FeatureStep
from pairlearn.estimators.instances import (
    CHUNK,
    checked_numbers,
    feature_scale,
    fingerprints,
    read_instances,
    read_pairs,
)
from pairlearn.estimators.population import prior_from_similarities
from pairlearn.estimators.splits import held_out_rows, hold_out_items, keep_whole
from pairlearn.judgements import Judgements
from pairlearn.labels import PairLabels
from pairlearn.tables import ItemTable, PairTable
from pairlearn.tables.read import Labelled

if TYPE_CHECKING:
    from pairlearn.training import PairStream, Recipe

FEW = 10
"""Statements under which there is hardly anything to learn from."""
MOST_ONE_SIDED = 0.5
"""Weight of all known positives, in units of that of the judged rows.

40 pairs of digits and 400 positives gave 0.849 without this limit, two thirds called positive,
and 0.881 with it (one seed)."""


class FewPairsWarning(UserWarning):
    """There are too few judged pairs for a model to learn from."""


@dataclass(frozen=True)
class Table:
    """Instances, and what was said of them: what `PairClassifier.fit` learns from.

    All of it is in memory here; `pairlearn.estimators.streams` has one whose rows stay in their
    file. ``features`` (N, ...) are the instances of the pairs, then the labelled ones; ``judged``
    are statements about pairs, none of weight zero, and ``known`` labels of instances; ``classes``
    are the negative and the positive one. ``step`` made the features, ``ids`` (N,) are names, ""
    where not known, and ``spare`` are instances without any statement. `fit` draws a ``seed``
    where it is −1, and puts standardised features in place of ``features``, in the folder
    ``scratch`` where these are mapped from a file.
    """

    features: NDArray[Any]
    judged: Judgements
    known: Judgements | None = None
    classes: NDArray[Any] = field(default_factory=lambda: np.array([-1, 1]))
    step: FeatureStep = field(default_factory=FeatureStep)
    ids: NDArray[Any] | None = None
    seed: int = -1
    scratch: Path | None = None
    spare: Indices = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(
        cls, features: NDArray[Any], said: Judgements, told: Judgements | None = None, **more: Any
    ) -> Table:
        """A table of statements, but for those of weight zero, and of labels that were `told`."""
        said = said[(said.weight > 0) & ~said.says_nothing]
        known, judged = None, said
        if said.single.any() and not said.single.all():
            known, judged = said[said.single], said[~said.single]
        if told is not None and len(told):
            known = told if known is None else Judgements.concatenate([known, told])
        table = cls(features, judged, known, **more)
        return replace(table, spare=np.setdiff1d(np.arange(len(features)), table.statements.ends))

    @classmethod
    def of_items(
        cls,
        items: ItemTable,
        said: Judgements,
        known: Labelled | None = None,
        groups: Judgements | None = None,
    ) -> Table:
        """Of what files say: statements about rows of items, known classes, shares of groups."""
        more: dict[str, Any] = {"step": FeatureStep.of_items(items), "ids": items.ids}
        told = None
        if known is not None:
            more["classes"] = known.classes
            told = Judgements.about_items("label", known.rows, known.positive)
        if groups is not None:
            said = Judgements.concatenate([said, groups])
        return cls.of(items.features, said, told, **more)

    @property
    def statements(self) -> Judgements:
        """All statements."""
        if self.known is None:
            return self.judged
        return Judgements.concatenate([self.judged, self.known])

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of statements that there are."""
        return self.statements.kinds()

    @property
    def used(self) -> Indices:
        """The instances that something was said of, beside the share of their group."""
        rows = self.statements
        ends = np.unique(rows[~(rows.joint & rows.single)].ends)
        return ends[ends >= 0]

    @property
    def in_memory(self) -> bool:
        """Whether `judged` are all statements, and no sample."""
        return True

    def item_weight(self) -> Floats:
        """How much each instance counts; beside judged pairs, those that nobody judged do not."""
        weight = self.judged.item_weight(len(self.features))
        if self.judged.single.all():
            weight[self.spare] = 1.0
        return weight

    def scale(self, weight: Floats, *, normed: bool) -> tuple[Floats, Floats]:
        """Mean and standard deviation of features, and what leaves yes, no and words as they are.

        Standardised, a word of few items would count as much as one of many. Built-in networks
        begin with a batch norm (`normed`), which divides by √(variance + ε): made small as √ε,
        such features come out of it as they were.
        """
        mean, scale = feature_scale(self.features, weight)
        if self.step.encoder is not None:
            measured = self.step.encoder.scaled
            apart = torch.nn.BatchNorm1d(1).eps ** -0.5 if normed else 1.0
            mean, scale = np.where(measured, mean, 0.0), np.where(measured, scale, apart)
        return mean, scale

    def fingerprints(self) -> Indices:
        """By which the instances that something was said of are recognised later."""
        used, ids = self.used, self.ids
        parts = [used[start : start + CHUNK] for start in range(0, len(used), CHUNK)]
        hashes = [fingerprints(self.features[p], None if ids is None else ids[p]) for p in parts]
        return np.concatenate([np.empty((0, 2), np.int64), *hashes])

    def rows(self, labelled_weight: float | str) -> Judgements:
        """All statements, labels with the share asked for; of a stream, a sample.

        Judged rows have mean weight one. So has each label with "auto": it counts one half,
        as one pair does, whose likelihood is halved. Known positives, which tell nothing of how
        frequent the class is, count together at most half as much as all judged rows.
        """
        judged = self.judged.scaled(len(self.judged) / self.judged.weight.sum())
        if self.known is None:
            return judged
        known = self.known
        if not isinstance(labelled_weight, str):
            share = labelled_weight / (1 - labelled_weight)
            known = known.scaled(share * judged.weight.sum() / (known.weight.sum() / 2))
        elif (sided := known.one_sided).any():
            most = MOST_ONE_SIDED * judged.weight.sum() / (known.weight[sided].sum() / 2)
            weight = known.weight * np.where(sided, min(1.0, most), 1.0)
            known = replace(known, weight=weight)
        return Judgements.concatenate([judged, known])

    def held_out(
        self, rows: Judgements, fraction: float, seed: int
    ) -> tuple[Judgements, Judgements | None]:
        """The rows to train on, and those that early stopping looks at."""
        if len(rows) < 2:
            return rows, None
        mask = held_out_rows(rows, fraction, seed)
        return rows[~mask], rows[mask]

    def hold_out(self, fraction: float, seed: int) -> HeldOut | None:
        """Pairs of some items, and the table without what was said of these items.

        Shares of groups stay. None if there is nothing left.
        """
        said, known = self.judged, self.known
        training, held = parts = hold_out_items(said.ends, fraction, seed)
        keep_whole(parts, lambda one: np.where(said.of(one.name), said.v, np.nan))
        if known is not None:
            apart = np.isin(known.ends[:, 0], said.ends[held])
            known = known[known.joint | ~apart] or None
        rest = replace(self, judged=said[training], known=known)
        dropped = int((~training & ~held).sum())
        return HeldOut(rest, said[held], int(training.sum()), dropped)

    def prior(self, rows: Judgements, majority: Literal["positive", "negative"]) -> float:
        """The class prior that the similarities imply, given the larger class."""
        return prior_from_similarities(rows, majority).value

    def count(self, rows: Judgements) -> int:
        """How many rows there are to train on."""
        return len(rows)

    def source(self, recipe: Recipe) -> PairStream | None:
        """Where the rows to train on come from, if not from memory."""
        return None


@dataclass(frozen=True)
class HeldOut:
    """Statements ``judged`` about held-out pairs, and the ``rest`` with its ``training`` pairs.

    ``dropped`` counts statements about pairs with items of both parts; ``capped`` says that more
    were to be held out than are kept in memory.
    """

    rest: Table
    judged: Judgements
    training: int
    dropped: int
    capped: bool = False


def read_table(
    pairs: Any,
    labels: Any,
    sample_weight: Any,
    preference: Any,
    labelled: tuple[Any, Any] | None,
    preprocessor: Any,
    annotator: Any = None,
    step: FeatureStep | None = None,
    positive: Any = None,
) -> Table:
    """Check what `fit`, or an evaluation, is given and put it together."""
    if isinstance(pairs, Table):
        return pairs
    step, told = step or FeatureStep(), None
    more: dict[str, Any] = {"step": step}
    if isinstance(labels, Judgements):
        features, said, ids = _of_judgements(pairs, labels, preprocessor, step)
    else:
        features, ends, ids = read_pairs(pairs, preprocessor, step)
        n = len(ends)
        columns = dict(zip(("similarity", "difference"), read_labels(labels, n).T, strict=True))
        if preference is not None:
            columns["preference"] = np.asarray(preference)
            _same_length("preference", columns["preference"].size, n)
        columns, weight = kinds.read_columns(columns), read_weight(sample_weight, n)
        for row in first_rows(np.isnan([*columns.values()]).all(0)):
            none = "" if preference is None else ", and there is no preference"
            raise ValueError(
                f"labels have neither similarity nor difference in row {row}{none}: drop such pairs"
            )
        said = Judgements.from_columns(ends, columns, weight, annotator)
    if ids is not None:
        more["ids"] = ids.astype(np.str_)
    if labelled is not None:
        if not isinstance(labelled, (tuple, list)) or len(labelled) != 2:
            raise ValueError("labelled must be (X, y): instances and their classes")
        x, y = labelled
        instances = read_instances("labelled instances", x, preprocessor, step)
        if instances.shape[1:] != features.shape[1:]:
            raise ValueError(
                f"labelled instances have shape {instances.shape[1:]} each, and those of the "
                f"pairs {features.shape[1:]}"
            )
        more["classes"], of_positive = read_classes(y, len(instances), positive)
        rows = np.arange(len(features), len(features) + len(instances))
        told = Judgements.about_items("label", rows, of_positive)
        features = np.concatenate([features, instances])
        if ids is not None:
            named = np.asarray(x).astype(np.str_) if np.ndim(x) == 1 else [""] * len(instances)
            more["ids"] = np.concatenate([more["ids"], named])
    elif positive is not None:
        raise ValueError("positive is a class of labelled, which is not given")
    return Table.of(features, said, told, **more)


def _of_judgements(
    pairs: Any, said: Judgements, preprocessor: Any, step: FeatureStep
) -> tuple[NDArray[Any], Judgements, NDArray[Any] | None]:
    """The items that statements are about, the statements by their rows, and their ids.

    `pairs` are the items themselves (N, d, ...), to which the statements refer; or, row by
    row, the pairs (n, 2, d, ...), or the ids (n, 2) that the preprocessor knows; without
    them the statements refer to ids.
    """
    single = said.ends < 0
    if preprocessor is None and (np.ndim(pairs) < 3 or np.shape(pairs)[:2] != (len(said), 2)):
        features = read_instances("pairs", pairs, None, step)
        if said.ends.max(initial=-1) >= len(features):
            raise ValueError(
                f"labels are about item {said.ends.max()}, and pairs has {len(features)} items"
            )
        return features, said, None
    given = said.ends if pairs is None else np.asarray(pairs)
    _same_length("labels", len(said), len(given))
    if given.ndim == 2:  # ids, of which a statement about one item has one
        given = np.where(single, given[:, :1], given)
    features, ends, ids = read_pairs(given, preprocessor, step)
    return features, replace(said, ends=np.where(single, -1, ends)), ids


def with_groups(labels: Any, groups: tuple[Any, Mapping[Any, Any]] | None) -> Any:
    """Statements with those about groups of items beside them."""
    if groups is None:
        return labels
    told = Judgements.in_groups(*groups)
    if labels is None:
        return told
    if not isinstance(labels, Judgements):
        raise ValueError("groups name items by position: give labels as Judgements too, or None")
    told.values[:, 1] += labels.v.max(initial=-1.0) + 1  # numbers that no other group has
    return Judgements.concatenate([labels, told])


def read_labels(labels: Any, n: int) -> Floats:
    """Similarity and difference (n, 2) of n pairs, NaN where not given.

    An array (n, 2) or a `PairTable` may have rows without either (a preference may stand
    for them). Values outside the ranges are refused in an array; in a table or in
    `PairLabels` they were checked, or noise was admitted.
    """
    if labels is None:
        return np.full((n, 2), np.nan)
    if isinstance(labels, (list, tuple)) and labels and isinstance(labels[0], PairLabels):
        labels = PairLabels.concatenate(labels)  # scikit-learn takes rows one by one
    if isinstance(labels, (PairTable, PairLabels)):
        told = as_floats(labels.to_array())
    else:
        told = checked_numbers("labels", np.asarray(labels)).astype(np.float64)
        if told.ndim != 2 or told.shape[1] != 2:
            raise ValueError(
                "labels must be PairLabels or have shape (n, 2), columns similarity and "
                f"difference; got {told.shape}"
            )
        # PairLabels checks the ranges; what is empty is checked with the preferences.
        PairLabels.from_array(np.where(np.isnan(told).all(1, keepdims=True), 0.0, told))
    _same_length("labels", len(told), n)
    return told


def read_weight(sample_weight: Any, n: int) -> Floats:
    """Weights of n pairs, one each if none are given."""
    if sample_weight is None:
        return np.ones(n)
    weight = checked_numbers("sample_weight", np.asarray(sample_weight)).astype(np.float64)
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must have shape (n,); got {weight.shape}")
    _same_length("sample_weight", len(weight), n)
    for row in first_rows(~np.isfinite(weight) | (weight < 0)):
        raise ValueError(
            f"sample_weight must be finite and at least 0; row {row} is {weight[row]:g}"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero for every pair: there is nothing to learn from")
    return weight


def read_classes(y: Any, n: int, positive: Any = None) -> tuple[NDArray[Any], Mask]:
    """The two classes, the positive one last, and which instances are positive."""
    array = np.asarray(y)
    if array.shape != (n,):
        raise ValueError(
            f"labelled classes must have shape ({n},), one for each instance; got {array.shape}"
        )
    for row in first_rows(np.asarray(array != array)):
        raise ValueError(f"labelled classes are missing (NaN) in row {row}")
    classes = two_classes("labelled classes", array, positive)
    return classes, array == classes[1]


def _same_length(name: str, length: int, n: int) -> None:
    if length != n:
        raise ValueError(f"{name} has {length} rows and pairs has {n}: they need the same length")
