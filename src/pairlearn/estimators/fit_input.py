"""The input of `fit`, checked: instances and statements about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pairlearn import io
from pairlearn.columns import (
    Floats,
    Indices,
    Mask,
    as_floats,
    first_rows,
    locate_errors,
    two_classes,
    whole_number,
)
from pairlearn.estimators.features import FeatureStep, columns_in_order, is_frame
from pairlearn.estimators.instances import (
    CHUNK,
    as_array,
    as_known,
    checked_numbers,
    feature_scale,
    fingerprints,
    instances_of_pairs,
    is_item_table,
    look_up,
    read_instances,
    standardise,
)
from pairlearn.estimators.splits import hold_out_positions, keep_whole
from pairlearn.judgements import Judgements, check_ends, kinds
from pairlearn.judgements.scales import Scale
from pairlearn.judgements.sets import join_set, resolve_classes
from pairlearn.labels import PairLabels

#: Weight of all known positives, in units of that of the judged rows.
#:
#: 40 pairs of digits and 400 positives gave 0.849 without this limit, two thirds called positive,
#: and 0.881 with it (one seed).
MOST_ONE_SIDED = 0.5


@dataclass(frozen=True)
class Table:
    """Instances and the statements about them that `PairClassifier.fit` learns from.

    ``features`` (N, ...) are the instances of the pairs, then the labelled ones; ``judged`` are
    statements about pairs, none of weight zero, and ``known`` labels of instances; ``classes`` are
    the negative and the positive one. ``step`` made the features, ``ids`` (N,) are names, "" if
    unknown, and ``spare`` are instances without any statement. `fit` draws a ``seed`` where it is
    −1, and replaces ``features`` by standardised ones. ``scales`` are those that answers were given
    on, by column. An earlier fit to a part of the table gives ``log_odds`` (n, 2) of the judged
    rows, by models that did not see the pair. It also gives the model that it ``tried``, with the
    factor of its log-odds and its last epoch.
    """

    features: NDArray[Any]
    judged: Judgements
    known: Judgements | None = None
    classes: NDArray[Any] = field(default_factory=lambda: np.array([-1, 1]))
    step: FeatureStep = field(default_factory=FeatureStep)
    ids: NDArray[Any] | None = None
    seed: int = -1
    spare: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    scales: Mapping[str, Scale] = field(default_factory=dict)
    log_odds: Floats | None = None
    tried: tuple[Any, float, float] | None = None

    @classmethod
    def of(
        cls,
        features: NDArray[Any],
        statements: Judgements,
        **fields: Any,
    ) -> Table:
        """Make a table of statements, without those of weight zero."""
        statements = statements[(statements.weight > 0) & ~statements.says_nothing]
        known, judged = None, statements
        if statements.single.any() and not statements.single.all():
            known, judged = statements[statements.single], statements[~statements.single]
        table = cls(features, judged, known, **fields)
        return replace(table, spare=np.setdiff1d(np.arange(len(features)), table.statements.ends))

    @classmethod
    def of_items(
        cls,
        items: io.ItemTable,
        statements: Judgements,
        scales: Mapping[str, Scale] = MappingProxyType({}),
        classes: NDArray[Any] | None = None,
    ) -> Table:
        """Make a table of items and statements about their rows."""
        fields: dict[str, Any] = {} if classes is None else {"classes": classes}
        fields |= {"step": FeatureStep.of_items(items), "ids": items.ids, "scales": scales}
        return cls.of(items.features, replace(statements, ids=items.ids), **fields)

    @property
    def statements(self) -> Judgements:
        """All statements."""
        if self.known is None:
            return self.judged
        return Judgements.concatenate([self.judged, self.known])

    @property
    def used(self) -> Indices:
        """Instances with a statement other than the share of their group."""
        rows = self.statements
        ends = np.unique(rows[~(rows.joint & rows.single)].ends)
        return ends[ends >= 0]

    def item_weight(self) -> Floats:
        """Weight of each instance; without judged pairs, those without a statement count too."""
        weight = self.judged.item_weight(len(self.features))
        if self.judged.single.all():
            weight[self.spare] = 1.0
        return weight

    def scale(self, weight: Floats, *, normed: bool) -> tuple[Floats, Floats]:
        """Mean and standard deviation of measured features; yes, no and words stay as they are.

        Standardised, a word of few items would count as much as one of many. Built-in networks
        begin with a batch norm (`normed`), which divides by √(variance + ε): multiplied by √ε
        first, such features come out of it unchanged.
        """
        mean, scale = feature_scale(self.features, weight)
        if self.step.encoder is not None:
            measured = self.step.encoder.scaled
            other = torch.nn.BatchNorm1d(1).eps ** -0.5 if normed else 1.0
            mean, scale = np.where(measured, mean, 0.0), np.where(measured, scale, other)
        return mean, scale

    def fingerprints(self, used: Indices) -> Indices:
        """Hashes by which instances are recognised later."""
        ids = self.ids
        parts = [used[start : start + CHUNK] for start in range(0, len(used), CHUNK)]
        hashes = [fingerprints(self.features[p], None if ids is None else ids[p]) for p in parts]
        return np.concatenate([np.empty((0, 2), np.int64), *hashes])

    def description(self) -> dict[str, Any]:
        """What `Fitted` keeps of the instances, before they are standardised."""
        return {
            "feature_names_in": self.step.names,
            "encoder": self.step.encoder,
            "classes": self.classes,
            "instance_shape": tuple(int(size) for size in self.features.shape[1:]),
            "training_items": self.fingerprints(self.used),
            "scales": self.scales,
        }

    def standardised(self, mean: Floats, scale: Floats, *, flat: bool) -> Table:
        """The same table with features for a model, which takes vectors if it is `flat`."""
        ready = standardise(self.features, mean, scale)
        return replace(self, features=ready.reshape(len(ready), -1) if flat else ready)

    def rows(self, labelled_weight: float | str) -> Judgements:
        """All statements, labels with the requested share.

        Judged rows have mean weight one. So has each label with "auto": it counts one half, as one
        pair does, whose likelihood is halved. Known positives, which do not show how frequent the
        class is, together count at most half as much as all judged rows.
        """
        judged = self.judged.scaled(len(self.judged) / self.judged.weight.sum())
        if self.known is None:
            return judged
        known = self.known
        if not isinstance(labelled_weight, str):
            share = labelled_weight / (1 - labelled_weight)
            known = known.scaled(share * judged.weight.sum() / (known.weight.sum() / 2))
        elif (one_sided := known.one_sided).any():
            most = MOST_ONE_SIDED * judged.weight.sum() / (known.weight[one_sided].sum() / 2)
            known = replace(known, weight=known.weight * np.where(one_sided, min(1.0, most), 1.0))
        return Judgements.concatenate([judged, known])

    def hold_out(self, fraction: float, seed: int) -> HeldOut:
        """Hold out the pairs of some items.

        The rest has no statement about these items but shares of groups.
        """
        judged, known = self.judged, self.known
        training, held = parts = hold_out_positions(judged.ends, fraction, seed)
        keep_whole(parts, judged)
        if known is not None:
            held_item = np.isin(known.ends[:, 0], judged.ends[held])
            known = known[known.joint | ~held_item] or None
        rest = replace(self, judged=judged[training], known=known)
        return HeldOut(rest, judged[held], training)


@dataclass(frozen=True)
class HeldOut:
    """Statements ``judged`` about held-out pairs, and the ``rest`` for training.

    ``training`` is the mask of the rest among all judged rows; others are held out, or about pairs
    with items of both parts.
    """

    rest: Table
    judged: Judgements
    training: Mask


def read_table(
    pairs: Any,
    labels: Any,
    *,
    classes: Any = None,
    labelled: tuple[Any, Any] | None = None,
    positive: Any = None,
    preprocessor: Any = None,
    step: FeatureStep | None = None,
    scales: Mapping[str, Any] = MappingProxyType({}),
    **beside: Any,
) -> Table:
    """Check the input of `fit`, or of an evaluation, and make a table of it.

    ``beside`` labels may be sample_weight, preference, annotator and about.
    """
    step = step or FeatureStep()
    scales = {name: Scale.of(ends) for name, ends in scales.items() if ends is not None}
    if labels is None and (isinstance(pairs, Judgements) or names_judgements(pairs)):
        pairs, labels = None, pairs
    if names_judgements(labels):
        options: Any = {f"{name}_scale": scale for name, scale in scales.items()}
        labels = io.read_pairs(labels, **options)
    pairs = columns_in_order(as_array("pairs", pairs), "left", "right")
    labels = columns_in_order(labels, "similarity", "difference")
    if isinstance(labels, (list, tuple)) and labels and hasattr(labels[0], "concatenate"):
        labels = labels[0].concatenate(labels)  # scikit-learn takes rows one by one
    if not isinstance(labels, Judgements):
        features, ends, ids = instances_of_pairs(pairs, preprocessor, step)
        statements = _read_statements(labels, ends, **beside)
    elif given := [name for name, values in beside.items() if values is not None]:
        raise ValueError(
            f"labels are Judgements, which have columns of their own: leave out {given[0]}"
        )
    else:
        features, statements, ids = _locate(pairs, labels, preprocessor, step)
    y, x = None, None
    if labelled is not None:
        if not isinstance(labelled, (tuple, list)) or len(labelled) != 2:
            raise ValueError("labelled must be (X, y): instances and their classes")
        instances = read_instances("labelled instances", labelled[0], preprocessor, step)
        if instances.shape[1:] != features.shape[1:]:
            raise ValueError(
                f"labelled instances have shape {instances.shape[1:]} each, and those of the "
                f"pairs {features.shape[1:]}"
            )
        x, y = labelled[0], checked_classes(labelled[1], len(instances))
    named = resolve_classes(classes, statements.about, y, positive)
    if y is None and named is None and positive is not None:
        raise ValueError("positive names a class of labelled: pass labelled as well")
    if y is not None:
        named = two_classes("labelled classes", y, positive) if named is None else named
        rows = np.arange(len(features), len(features) + len(y))
        sets = [join_set([str(whole_number(value))]) for value in y.tolist()]
        known = Judgements.about_items("label", rows, np.ones(len(rows)), about=sets)
        features = np.concatenate([features, instances])
        if ids is not None:
            ids = np.concatenate([ids.astype(np.str_), _names_of(x, len(rows))])
    fields: Any = {} if named is None else {"classes": named}
    if named is not None:
        names = [str(whole_number(name)) for name in named.tolist()]
        statements = statements.of_classes(names)
        if y is not None:
            statements = Judgements.concatenate([statements, known.of_classes(names)])
    ids = None if ids is None else ids.astype(np.str_)
    return Table.of(features, statements, step=step, ids=ids, scales=scales, **fields)


def _names_of(x: Any, n: int) -> NDArray[np.str_]:
    """Ids of n labelled instances, "" if they have none."""
    ids = x.ids if is_item_table(x) else x
    one_each = np.asarray(ids) if np.ndim(ids) == 1 else np.full(n, "")
    return np.array([str(whole_number(one)) for one in one_each], np.str_)


def names_judgements(values: Any) -> bool:
    """Whether an object is a data frame, or a mapping, with the columns of judged pairs."""
    if isinstance(values, Mapping):
        return {"left", "right"} < values.keys()
    if not is_frame(values):
        return False
    names = getattr(values, "column_names", values.columns)
    return {"left", "right"} < {str(name) for name in names}


def _locate(
    pairs: Any, statements: Judgements, preprocessor: Any, step: FeatureStep
) -> tuple[NDArray[Any], Judgements, NDArray[Any] | None]:
    """Find the items of statements: features, statements about their rows, and ids.

    `pairs` are the items themselves (N, d, ...), to which the statements refer; or, row by row, the
    pairs (n, 2, d, ...) or their ids (n, 2). Without them the statements refer to ids, or rows,
    that the preprocessor knows.
    """
    check_ends(statements.ends, statements.kind)
    if pairs is None and preprocessor is not None:
        known: Any = statements.ids
        if known is None:
            known = np.arange(statements.ends.max(initial=-1) + 1)
        used = statements.used()
        places = np.full(len(known) + 1, -1)  # the last one is that of no item
        places[used] = np.arange(len(used))
        features = look_up(preprocessor, as_known(known[used], preprocessor), step)
        return (
            features,
            replace(statements, ends=places[statements.ends], ids=known[used]),
            known[used],
        )
    single = statements.ends < 0
    by_row = np.shape(pairs)[:2] == single.shape or statements.ids is not None
    if preprocessor is not None or (np.ndim(pairs) > 2 and by_row):
        rows = np.array(pairs)
        if len(single) != len(rows):
            raise ValueError(f"labels has {len(single)} rows and pairs has {len(rows)}")
        rows[single[:, 1], 1:] = rows[single[:, 1], :1]
        features, ends, ids = instances_of_pairs(rows, preprocessor, step)
        ends[single] = -1
        return features, replace(statements, ends=ends, ids=ids), ids
    features = read_instances("pairs", pairs, None, step)
    if statements.ids is not None and len(statements.ids) != len(features):
        raise ValueError(
            f"labels name {len(statements.ids)} items, and pairs has {len(features)}: give "
            "labels.located(ids) with the ids of its rows, or the items as the preprocessor"
        )
    if (last := statements.ends.max(initial=-1)) >= len(features):
        raise ValueError(f"labels are about item {last}, and pairs has {len(features)} items")
    return features, statements, None


def with_groups(labels: Any, groups: tuple[Any, Mapping[Any, Any]] | None) -> Any:
    """Add statements about the shares of groups to those about items."""
    if groups is None:
        return labels
    shares = Judgements.in_groups(*groups)
    if labels is None:
        return shares
    if not isinstance(labels, Judgements):
        raise ValueError("groups name items by position: give labels as Judgements too, or None")
    shares.values[:, 1] += labels.v.max(initial=-1.0) + 1  # numbers that no other group has
    return Judgements.concatenate([labels, shares])


def _read_statements(
    labels: Any,
    ends: Indices,
    *,
    sample_weight: Any = None,
    preference: Any = None,
    annotator: Any = None,
    about: Any = None,
) -> Judgements:
    """Statements of n pairs, at least one in each row.

    Values of an array outside the ranges are refused; in `PairLabels` they were checked, or noise
    was admitted.
    """
    n, values, weight = len(ends), np.full((len(ends), 2), np.nan), np.ones(len(ends))
    if isinstance(labels, PairLabels):
        values = as_floats(labels.to_array())
    elif labels is not None:
        values = checked_numbers("labels", np.asarray(as_array("labels", labels)))
        values = values.astype(np.float64)
        # Rows without values may have a preference.
        PairLabels.from_array(np.where(np.isnan(values).all(-1, keepdims=True), 0.0, values))
    if sample_weight is not None:
        weight = checked_numbers("sample_weight", np.asarray(sample_weight)).astype(np.float64)
    given = {"labels": values, "preference": preference, "sample_weight": weight, "about": about}
    for name, column in given.items():
        if column is not None and len(np.atleast_1d(column)) != n:
            raise ValueError(
                f"{name} has {len(np.atleast_1d(column))} rows and pairs has {n}: they need the "
                "same length"
            )
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must have shape (n,); got {weight.shape}")
    for row in first_rows(~np.isfinite(weight) | (weight < 0)):
        raise ValueError(
            f"sample_weight must be finite and at least 0; row {row} is {weight[row]:g}"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero for every pair: there is nothing to learn from")
    columns: dict[str, Any] = {"similarity": values[:, 0], "difference": values[:, 1]}
    columns |= {} if preference is None else {"preference": np.asarray(preference)}
    with locate_errors(lambda row: f"row {row}"):
        columns = kinds.read_columns(columns)
    for row in first_rows(np.isnan([*columns.values()]).all(0)):
        none = "" if preference is None else ", and there is no preference"
        raise ValueError(
            f"labels have neither similarity nor difference in row {row}{none}: drop such pairs"
        )
    return Judgements.from_columns(ends, columns, weight, annotator, about=about)


def checked_classes(y: Any, n: int) -> NDArray[Any]:
    """The classes of labelled instances."""
    array = np.asarray(y)
    if array.shape != (n,):
        raise ValueError(
            f"labelled classes must have shape ({n},), one for each instance; got {array.shape}"
        )
    for row in first_rows(np.array([whole_number(value) == "" for value in array], bool)):
        raise ValueError(f"labelled classes are missing in row {row}")
    return array
