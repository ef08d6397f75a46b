"""Splits of pairs by their items: folds, and pairs that are held out."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlearn.estimators import ItemKFold, hold_out_items, splits

Graph = tuple[int, list[tuple[int, int]]]


class Folds:
    """Which pairs test and train the models of a fold, and how many straddle."""

    def __init__(self, of_item: Any, ends: Any) -> None:
        self.of_item, self.of_ends = of_item, of_item[np.asarray(ends)]

    def tests(self, fold: int) -> Any:
        return (self.of_ends == fold).all(1)

    def trains(self, fold: int) -> Any:
        return (self.of_ends != fold).all(1)

    @property
    def dropped(self) -> int:
        return int((self.of_ends[:, 0] != self.of_ends[:, 1]).sum())


def split_items(ends: Any, *options: Any, **named: Any) -> Folds:
    return Folds(splits.split_items(ends, *options, **named), ends)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    items = draw(st.integers(2, 14))
    edge = st.tuples(st.integers(0, items - 1), st.integers(0, items - 1))
    return items, draw(st.lists(edge.filter(lambda e: e[0] != e[1]), min_size=1, max_size=25))


@given(graphs(), st.integers(2, 5), st.integers(0, 3))
@settings(max_examples=60)
def test_masks_by_brute_force(graph: Graph, count: int, seed: int) -> None:
    items, pairs = graph
    folds = split_items(np.array(pairs), items, count, seed)
    assert folds.of_item.shape == (items,)
    assert set(folds.of_item.tolist()) <= set(range(count))
    tested = 0
    for fold in range(count):
        inside = {i for i in range(items) if folds.of_item[i] == fold}
        tests, trains = folds.tests(fold), folds.trains(fold)
        assert tests.tolist() == [a in inside and b in inside for a, b in pairs]
        assert trains.tolist() == [a not in inside and b not in inside for a, b in pairs]
        seen = {i for row in np.flatnonzero(trains) for i in pairs[row]}
        assert not seen & {i for row in np.flatnonzero(tests) for i in pairs[row]}
        tested += int(tests.sum())
    assert tested + folds.dropped == len(pairs)


def test_nothing_is_lost_where_components_fit() -> None:
    rng = np.random.default_rng(0)
    pairs: list[tuple[int, int]] = []
    items = 0
    for size in rng.integers(2, 7, size=60):  # chains, some of their pairs judged twice
        chain = [(items + i, items + i + 1) for i in range(size - 1)]
        pairs += chain + chain[: int(rng.integers(0, 2))]
        items += int(size)
    folds = split_items(rng.permutation(pairs), items, 5)
    assert folds.dropped == 0
    sizes = [int(folds.tests(fold).sum()) for fold in range(5)]
    assert max(sizes) - min(sizes) <= 2  # the smallest components come last and even out


def test_distinct_items_are_split_evenly_and_differently_by_seed() -> None:
    pairs = np.arange(206).reshape(103, 2)
    one, same, other = (split_items(pairs, 206, 5, seed) for seed in (0, 0, 1))
    assert sorted(int(one.tests(fold).sum()) for fold in range(5)) == [20, 20, 21, 21, 21]
    assert one.dropped == 0
    assert (one.of_item == same.of_item).all()
    assert (one.of_item != other.of_item).any()


def test_a_bridge_between_two_cliques_is_the_cut() -> None:
    clique = list(combinations(range(6), 2))
    pairs = clique + [(a + 6, b + 6) for a, b in clique] + [(2, 8)]
    ends = np.array(pairs)
    # The best of all 2^12 splits with at most 1.05 of half of the ends on either side.
    best = min(
        sum(side[a] != side[b] for a, b in pairs)
        for side in product((0, 1), repeat=12)
        if abs(sum(np.array(side)[ends].ravel()) - len(pairs)) <= 0.05 * len(pairs)
    )
    assert best == 1
    for seed in range(5):
        assert split_items(ends, 12, 2, seed).dropped == 1


def test_a_ring_loses_little_and_random_pairs_less_than_a_random_split() -> None:
    ring = np.stack([np.arange(100), np.roll(np.arange(100), 1)], 1)
    assert split_items(ring, 100, 4).dropped <= 10  # 4 at best, about 75 at random
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, 300, size=(400, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    folds = split_items(pairs, 300, 5)
    at_random = Folds(rng.integers(0, 5, 300), pairs)
    assert folds.dropped < 0.6 * at_random.dropped
    ends = np.bincount(folds.of_item[pairs].ravel(), minlength=5)
    assert ends.max() <= 1.1 * ends.mean()


def test_one_fold_is_refused() -> None:
    with pytest.raises(ValueError, match="folds must be a whole number of at least 2; got 1"):
        split_items([[0, 1]], 2, folds=1)


# ---- pairs that are held out ------------------------------------------------------------------


@pytest.mark.parametrize("items", [12, 60, 5000])
def test_held_out_pairs_have_items_of_their_own(items: int) -> None:
    for seed in range(5):
        ends = np.random.default_rng(seed).integers(0, items, (300, 2))
        training, held_out = hold_out_items(ends, 0.2, seed)
        assert not (training & held_out).any()
        seen, measured = set(ends[training].flat), set(ends[held_out].flat)
        assert not seen & measured
        for pair in ends[~training & ~held_out].tolist():
            assert measured & set(pair)
        assert held_out.sum() >= 60
        assert (hold_out_items(ends, 0.2, seed)[1] == held_out).all()
        assert (hold_out_items(ends, 0.2, seed + 9)[1] != held_out).any()


@pytest.mark.parametrize("ids", ["k{}", "{}", 10**12, "features", "frame"])
def test_items_are_split_whatever_their_ids_are(ids: Any) -> None:
    ends = np.random.default_rng(0).integers(0, 9, (40, 2))
    pairs: Any = np.char.mod(ids.replace("{}", "%d"), ends) if "{}" in str(ids) else ends
    if ids == 10**12:
        pairs = ends * ids
    elif ids == "features":
        pairs = np.random.default_rng(1).normal(size=(9, 3))[ends]
    elif ids == "frame":
        pairs = pd.DataFrame(ends, columns=["left", "right"]).map("k{}".format)
    training, held_out = hold_out_items(pairs, 0.2, seed=0)
    assert training.any() and held_out.any()
    assert not {*ends[training].flat} & {*ends[held_out].flat}
    for rows in ItemKFold(2).split(pairs):
        assert not {*ends[rows[0]].flat} & {*ends[rows[1]].flat}


def test_how_many_pairs_are_lost() -> None:
    """None where items do not recur; else f of the pairs takes √f of the items, (1 − √f)² stay."""
    training, held_out = hold_out_items(np.arange(400).reshape(-1, 2), 0.2, seed=1)
    assert (training.sum(), held_out.sum()) == (160, 40)
    ends = np.random.default_rng(0).integers(0, 300, (20_000, 2))
    training, held_out = hold_out_items(ends, 0.25, seed=0)
    assert held_out.mean() == pytest.approx(0.25, abs=0.02)
    assert training.mean() == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(
    ("ends", "fraction", "message"),
    [
        ([], 0.2, r"ends must have shape \(n, 2, d, ...\), or .*; got \(0,\)"),
        ([[0, -1]], 0.2, "ends has no second item in row 0"),
        ([["a", None]], 0.2, "an id is missing in row 0"),
        ([[0, 1]], 0.0, r"fraction must lie in \(0, 1\); got 0"),
    ],
)
def test_bad_splits(ends: Any, fraction: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hold_out_items(ends, fraction, seed=0)
