"""Pairs drawn at random, and their annotators."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlearn_studio.choosing import assign, random_pairs


def anyone(*people: int) -> dict[int, float]:
    """Annotators without a quota."""
    return dict.fromkeys(people, math.inf)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_pairs(1, 1, seed=0), "items is 1"),
        (lambda: random_pairs(3, 4, seed=0), "pairs is 4"),
        (lambda: random_pairs(3, 0, seed=0), "pairs is 0"),
        (lambda: random_pairs(3, 2, 0, {(0, 1), (2, 1)}), "and 2 are in the project already"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# ---- random pairs and their annotators --------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "pairs"), [(2, 1), (5, 10), (5, 3), (40, 780), (2000, 300), (3_000_000, 20_000)]
)  # of 4.5e12 pairs in the last, where roots of codes begin to round
def test_pairs_are_different_pairs_of_different_items(items: int, pairs: int) -> None:
    drawn = random_pairs(items, pairs, seed=1)
    assert drawn.shape == (pairs, 2)
    assert ((drawn >= 0) & (drawn < items)).all()
    assert (drawn[:, 0] != drawn[:, 1]).all()
    assert len({frozenset(pair) for pair in drawn.tolist()}) == pairs
    assert np.array_equal(drawn, random_pairs(items, pairs, seed=1))  # the seed decides
    if items == 3_000_000:
        assert abs(drawn.mean() / items - 0.5) < 0.01
        assert not np.array_equal(drawn, random_pairs(items, pairs, seed=2))


@pytest.mark.parametrize("items", [6, 30])  # by a permutation, and by rejection
def test_every_ordered_pair_is_equally_likely_at_every_place(items: int) -> None:
    counts: Counter[tuple[int, int]] = Counter()
    first: Counter[tuple[int, int]] = Counter()
    draws, cells = 3000, items * (items - 1)
    for seed in range(draws):
        drawn = list(map(tuple, random_pairs(items, 4, seed).tolist()))
        counts.update(drawn)
        first.update(drawn[:1])
    for observed, expected in ((counts, 4 * draws / cells), (first, draws / cells)):
        ends = ((i, j) for i in range(items) for j in range(items) if i != j)
        chi = sum((observed[pair] - expected) ** 2 for pair in ends)
        # Chi-squared has mean k and variance about 2k; five deviations.
        assert abs(chi / expected - cells) < 5 * np.sqrt(2 * cells)


@settings(max_examples=100)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 5), st.integers(0, 2**32), st.data())
def test_overlap_and_balance(
    pairs: int, annotators: int, overlap: int, seed: int, data: st.DataObject
) -> None:
    people = [10 * (k + 1) for k in range(annotators)]
    given_ = assign(list(range(pairs)), anyone(*people), overlap, seed)
    loads = Counter(dict.fromkeys(people, 0))
    for whose in given_.values():
        assert len(set(whose)) == len(whose) == min(overlap, annotators)
        loads.update(whose)
    assert max(loads.values()) - min(loads.values()) <= 1
    assert assign(list(range(pairs)), anyone(*people), overlap, seed) == given_

    # Somebody joins when some pairs are done: those stay, every pair is complete.
    done = data.draw(st.integers(0, pairs))
    kept = {pair: given_[pair] for pair in range(done)}
    again = assign(list(range(pairs)), anyone(*people, 5), overlap, seed, kept)
    for pair, whose in again.items():
        assert len(set(whose)) == len(whose) == min(overlap, annotators + 1)
        assert set(kept.get(pair, [])) <= set(whose)


def test_a_share_of_the_pairs_is_judged_twice() -> None:
    """Of any run of pairs, as many as the overlap says; new pairs change nothing before them."""
    shared = assign(range(1, 101), anyone(1, 2, 3), 1.2, 0)
    doubled = [pair for pair, whose in shared.items() if len(set(whose)) == 2]
    assert len(doubled) == 20 and sum(map(len, shared.values())) == 120
    assert max(np.diff([0, *doubled])) <= 6
    longer = assign(range(1, 131), anyone(1, 2, 3), 1.2, 0, shared)
    assert {pair: longer[pair] for pair in shared} == shared
    assert sum(map(len, longer.values())) == 156


def test_who_comes_late_who_left_and_nobody() -> None:
    late = assign(range(100), anyone(1, 2), 1, 0, {pair: [1] for pair in range(40)})
    assert Counter(who for whose in late.values() for who in whose) == {1: 50, 2: 50}
    assert assign([1, 2], anyone(7), 2, 0, {1: [5, 6], 2: [5]}) == {1: [5, 6], 2: [5, 7]}
    assert assign([1, 2], {}, 2, 0) == {1: [], 2: []}


def test_nobody_gets_more_than_their_quota() -> None:
    shared = assign(range(10), {1: 3, 2: math.inf}, 1, 0)
    assert Counter(who for whose in shared.values() for who in whose) == {1: 3, 2: 7}
    few = assign(range(10), {1: 3}, 1, 0, {0: [1], 1: [1]})
    assert sum(map(len, few.values())) == 3


def test_further_pairs_are_new_and_uniform() -> None:
    """Of the 15 pairs of 6 items, those that are not taken are equally likely."""
    taken = {(0, 1), (3, 2), (5, 4)}
    counts: Counter[frozenset[int]] = Counter()
    for seed in range(1200):
        counts.update(frozenset(pair) for pair in random_pairs(6, 4, seed, taken).tolist())
    assert len(counts) == 12 and not {frozenset(pair) for pair in taken} & counts.keys()
    assert max(abs(count - 400) for count in counts.values()) < 5 * math.sqrt(400 * 2 / 3)
