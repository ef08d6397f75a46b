"""Which pairs are judged, and by whom."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlearn.studio.choosing import assign, random_pairs


@pytest.mark.parametrize(("items", "pairs"), [(2, 1), (5, 10), (5, 3), (40, 780), (2000, 300)])
def test_pairs_are_different_pairs_of_different_items(items: int, pairs: int) -> None:
    drawn = random_pairs(items, pairs, seed=1)
    assert drawn.shape == (pairs, 2)
    assert ((drawn >= 0) & (drawn < items)).all()
    assert (drawn[:, 0] != drawn[:, 1]).all()
    assert len({frozenset(pair) for pair in drawn.tolist()}) == pairs


def test_all_pairs_are_every_pair() -> None:
    drawn = {tuple(sorted(pair)) for pair in random_pairs(30, 435, seed=0).tolist()}
    assert drawn == set(combinations(range(30), 2))


@pytest.mark.parametrize("items", [6, 30])  # by a permutation, and by rejection
def test_every_ordered_pair_is_equally_likely(items: int) -> None:
    counts: Counter[tuple[int, int]] = Counter()
    draws = 4000
    for seed in range(draws):
        counts.update(map(tuple, random_pairs(items, 4, seed).tolist()))
    cells = items * (items - 1)
    expected = 4 * draws / cells
    chi = sum(
        (counts[(i, j)] - expected) ** 2 for i in range(items) for j in range(items) if i != j
    )
    # Chi-squared has mean k and variance about 2k; five deviations.
    assert abs(chi / expected - cells) < 5 * np.sqrt(2 * cells)


def test_the_order_is_random_too() -> None:
    first = Counter(tuple(sorted(random_pairs(5, 10, seed)[0].tolist())) for seed in range(3000))
    assert len(first) == 10
    assert max(abs(count - 300) for count in first.values()) < 90


def test_the_seed_decides() -> None:
    one, same, other = (random_pairs(100, 50, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_large_set_of_items() -> None:
    items = 3_000_000  # 4.5e12 pairs, where roots of codes begin to round
    drawn = random_pairs(items, 20_000, seed=0)
    assert ((drawn >= 0) & (drawn < items)).all()
    assert (drawn[:, 0] != drawn[:, 1]).all()
    assert abs(drawn.mean() / items - 0.5) < 0.01


@pytest.mark.parametrize(("items", "pairs"), [(1, 1), (3, 4), (3, 0)])
def test_impossible_plans(items: int, pairs: int) -> None:
    with pytest.raises(ValueError, match=r"items is|pairs is"):
        random_pairs(items, pairs, seed=0)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 5), st.integers(0, 2**32), st.data())
def test_overlap_and_balance(
    pairs: int, annotators: int, overlap: int, seed: int, data: st.DataObject
) -> None:
    people = [10 * (k + 1) for k in range(annotators)]
    given_ = assign(list(range(pairs)), people, overlap, seed)
    loads = Counter(dict.fromkeys(people, 0))
    for whose in given_.values():
        assert len(set(whose)) == len(whose) == min(overlap, annotators)
        loads.update(whose)
    assert max(loads.values()) - min(loads.values()) <= 1
    assert assign(list(range(pairs)), people, overlap, seed) == given_

    # Somebody joins when some pairs are done: those stay, every pair is complete.
    done = data.draw(st.integers(0, pairs))
    kept = {pair: given_[pair] for pair in range(done)}
    again = assign(list(range(pairs)), [*people, 5], overlap, seed, kept)
    for pair, whose in again.items():
        assert len(set(whose)) == len(whose) == min(overlap, annotators + 1)
        assert set(kept.get(pair, [])) <= set(whose)


def test_who_comes_late_catches_up() -> None:
    kept = {pair: [1] for pair in range(40)}
    given_ = assign(range(100), [1, 2], 1, 0, kept)
    loads = Counter(one for whose in given_.values() for one in whose)
    assert loads == {1: 50, 2: 50}


def test_the_answers_of_who_left_count() -> None:
    given_ = assign([1, 2], [7], 2, 0, {1: [5, 6], 2: [5]})
    assert given_ == {1: [5, 6], 2: [5, 7]}


def test_no_annotators_and_a_bad_overlap() -> None:
    assert assign([1, 2], [], 2, 0) == {1: [], 2: []}
    with pytest.raises(ValueError, match="overlap must be at least 1; got 0"):
        assign([1], [1], 0, 0)
