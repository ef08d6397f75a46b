"""One comparison under way: splits, priors, training, outputs on held-out pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.comparison.training import (
    Decide,
    can_train_together,
    train_apart,
    train_together,
)
from pairlearn.estimators.classifier import PairClassifier
from pairlearn.estimators.parameters import needs_prior, recipe_of
from pairlearn.estimators.population import Majority, check_majority_shows, find_majority
from pairlearn.estimators.scaling import feature_scale, standardised
from pairlearn.estimators.splits import Folds, split_items
from pairlearn.estimators.table import Table
from pairlearn.judgements import Judgements
from pairlearn.kinds import kind
from pairlearn.prior import estimate_prior
from pairlearn.randomness import stream
from pairlearn.risks import make_risk

__all__ = ["AfterFold", "Progress", "Study", "kinds_of", "make_splits", "rows_that_test"]

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]
"""Called with the steps done and the steps in all."""
AfterFold = Callable[[Mapping[str, Decide]], None]
"""Called with the trained models of a fold, by method."""

FEW = 100
"""Held-out judgements below which the intervals are rough."""


@dataclass
class Study:
    """The table, how to train on it, and what was found worth saying."""

    table: Table
    classifier: PairClassifier
    splits: Sequence[Folds]
    folds: int
    warnings: list[str] = field(default_factory=list)
    prior: float | None = None

    def warn_of(self, message: str | None) -> None:
        """Keep a message, if there is one."""
        if message is not None:
            self.warnings.append(message)

    def warn_of_lost(self, dropped: int, tested: int, repeats: int) -> None:
        """Say what the split cost, if much."""
        n = len(self.table.judged.ends) * repeats
        if dropped > 0.2 * n:
            self.warn_of(
                f"{dropped:,} of {n:,} judgements are about pairs whose ends are in different "
                "folds and tested no model: items recur in many pairs. What is left may not be "
                "typical of all pairs"
            )
        if tested < FEW * repeats:
            self.warn_of(f"only {tested:,} judgements tested models: the intervals are rough")

    def priors(self, names: Sequence[str], seed: int) -> list[float | None]:
        """The class prior of each fold's training pairs, if a method needs one."""
        stated, said = self.classifier.prior, self.table.judged
        count = len(self.splits) * self.folds
        if stated != "estimate":
            self.prior = float(stated)
            return [self.prior] * count
        if not any(needs_prior(name) for name in names):
            return [None] * count
        majority = self.classifier.majority or self._majority(names, seed)
        self.classifier.majority = majority

        def of(rows: Any) -> float:
            some = said[rows]
            some = some[some.has("similarity")]
            return estimate_prior(some.u, majority, weight=some.weight).value

        self.prior = of(slice(None))
        return [of(split.trains(fold)) for split in self.splits for fold in range(self.folds)]

    def _majority(self, names: Sequence[str], seed: int) -> Majority:
        table = self.table
        check_majority_shows(table.judged, next(name for name in names if needs_prior(name)))
        weight = table.judged.item_weight(len(table.features))
        prepared = standardised(table.features, *feature_scale(table.features, weight))
        return find_majority(prepared, table.judged, seed, self.classifier.device)

    def defined(
        self, names: Sequence[str], priors: Sequence[float | None], *, required: bool
    ) -> list[str]:
        """The methods that exist at every fold's prior; an error where all were asked for."""
        kinds = self.table.judged.kinds()
        kept, lost = [], []
        for name in names:
            try:
                for prior in set(priors):
                    for one in kinds:
                        kind(one).table(make_risk(name, prior=prior))
                kept.append(name)
            except ValueError as error:
                if required:
                    raise ValueError(f"method {name!r}: {error}") from None
                lost.append(name)
        if lost:
            self.warn_of(f"left out, because undefined at a class prior of ½: {', '.join(lost)}")
        return kept

    def held_out(
        self,
        names: Sequence[str],
        priors: Sequence[float | None],
        seed: int,
        progress: Progress | None,
        after_fold: AfterFold | None,
    ) -> Floats:
        """Log-odds (k, rows, 2) of the pairs that tested models, fold after fold."""
        features, said = self.table.features, self.table.judged
        together = can_train_together(said, self.classifier.model)
        train = train_together if together else train_apart
        trained_on = [
            said[split.trains(fold)] for split in self.splits for fold in range(self.folds)
        ]
        steps = [
            recipe_of(self.classifier, len(part.ends), 0).epochs if together else len(names)
            for part in trained_on
        ]
        tick = _counter(progress, sum(steps))
        parts: list[Floats] = []
        tests = [test for split in self.splits for test in rows_that_test(split, said)]
        for number, (part, test, prior) in enumerate(zip(trained_on, tests, priors, strict=True)):
            fold_seed = int(stream(seed, "fold", number).bit_generator.random_raw()) >> 33
            models = train(features, part, names, prior, self.classifier, fold_seed, tick)
            if after_fold is not None:
                after_fold(dict(zip(names, models, strict=True)))
            items, ends = np.unique(said.ends[test], return_inverse=True)
            instances = features[items]
            z = np.stack([decide(instances) for decide in models])
            parts.append(z[:, ends.reshape(-1, 2)])
        return self._decided(names, np.concatenate(parts, axis=1))

    def _decided(self, names: Sequence[str], logits: Floats) -> Floats:
        """Outputs that are not numbers decide nothing, which is negative; and a warning."""
        undefined = np.isnan(logits)
        for name, wrong in zip(names, undefined, strict=True):
            if wrong.any():
                self.warn_of(f"{name}: training diverged, some outputs are not numbers")
        return np.where(undefined, -np.inf, logits)


def make_splits(said: Judgements, items: int, folds: int, repeats: int, seed: int) -> list[Folds]:
    """The splits, each with pairs to train every fold on, and some that test."""
    selves = said.ends[:, 0] == said.ends[:, 1]
    if selves.any():
        raise ValueError(
            f"pairs row {int(selves.argmax())} pairs an item with itself: drop such rows, they "
            "say nothing about the classes"
        )
    splits = [
        split_items(
            said.ends,
            items,
            folds,
            seed=int(stream(seed, "split", i).bit_generator.random_raw()) >> 33,
        )
        for i in range(repeats)
    ]
    for split in splits:
        trains = min(int(split.trains(fold).sum()) for fold in range(folds))
        tests = min(len(rows) for rows in rows_that_test(split, said))
        if not (trains and tests):
            raise ValueError(
                f"folds is {folds}, and the {len(said.ends)} pairs cannot be split so that there "
                "are pairs to train and to test the models of every fold: give more pairs, pairs "
                "that share fewer items, or fewer folds"
            )
    return splits


def rows_that_test(split: Folds, said: Judgements) -> list[NDArray[np.intp]]:
    """Rows that test the models of each fold: those with a similarity or a difference."""
    judged = said.has("similarity") | said.has("difference")
    return [np.flatnonzero(split.tests(fold) & judged) for fold in range(split.count)]


def kinds_of(said: Judgements) -> set[str]:
    """Which of the two judgements some row has."""
    return {name for name in ("similarity", "difference") if said.has(name).any()}


def _counter(progress: Progress | None, total: int) -> Callable[[], None]:
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return tick
