"""Pairs and test subsets: exact counts, and the same rows on every machine."""

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlearn.randomness import normal, permutation, stream
from pairlearn_bench.data.sampling import sample_pairs, subset_at_prior

PRIORS = st.sampled_from([0.05, 0.1, 0.2, 0.3, 1 / 3, 0.5, 0.7, 0.8, 0.9])
MNIST_LIKE = np.repeat(np.arange(10), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009])


def digest(rows):
    return hashlib.sha256(np.ascontiguousarray(rows, dtype="<i8").tobytes()).hexdigest()[:16]


def mixed_digits():
    """Classes of MNIST's test split with its counts, in a mixed order."""
    classes = MNIST_LIKE[np.argsort(np.arange(10_000) * 7919 % 10_007, kind="stable")]
    return classes, classes % 2 == 0


# --- streams -------------------------------------------------------------------------------


def test_streams_are_fixed_for_ever():
    """Literal numbers: whatever numpy and machine, these must come out."""
    assert permutation(stream(0, "pairs"), 8).tolist() == STREAM_0
    assert digest(permutation(stream(3, "batches", 17), 1000)) == STREAM_3
    np.testing.assert_allclose(normal(stream(0, "label noise"), 3), NORMAL_0, rtol=1e-12)


def test_permutation_is_uniform():
    rng = stream(0, "uniform")
    counts = np.zeros((4, 4))
    for _ in range(6000):
        counts[np.arange(4), permutation(rng, 4)] += 1
    # Each cell is binomial(6000, 1/4) with standard deviation 33.5.
    assert abs(counts - 1500).max() < 5 * 33.5


def test_normal_has_the_moments_and_quantiles_of_a_normal():
    draws = normal(stream(1, "normal"), 200_000)
    assert abs(draws.mean()) < 5 / 200_000**0.5
    assert abs(draws.std() - 1) < 5 / (2 * 200_000) ** 0.5
    below = [(draws < z).mean() for z in (-1.6448536, 0.0, 0.6744898, 1.9599640)]
    np.testing.assert_allclose(below, [0.05, 0.5, 0.75, 0.975], atol=5 * 0.5 / 200_000**0.5)
    assert np.isfinite(draws).all()
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 5 / 200_000**0.5


# --- pairs ---------------------------------------------------------------------------------


@given(data=st.data(), prior=PRIORS, seed=st.integers(0, 10), n=st.integers(1, 40))
def test_pairs_are_distinct_and_meet_the_prior(data, prior, seed, n):
    n_drawn = int(2 * n * Fraction(prior).limit_denominator(1000))
    n_positive = n_drawn + data.draw(st.integers(0, 30))
    n_negative = 2 * n - n_drawn + data.draw(st.integers(0, 30))
    positive = np.array(data.draw(st.permutations([True] * n_positive + [False] * n_negative)))
    pairs = sample_pairs(positive, n, prior, seed)
    assert pairs.shape == (n, 2)
    assert pairs.dtype == np.int64
    assert len(np.unique(pairs)) == 2 * n
    assert pairs.min() >= 0
    assert pairs.max() < len(positive)
    assert positive[pairs].sum() == n_drawn


def test_pairs_are_the_same_on_every_machine():
    _, positive = mixed_digits()
    assert {p: digest(sample_pairs(positive, 1500, p, seed=0)) for p in PAIRS_0} == PAIRS_0
    assert digest(sample_pairs(positive, 1500, 0.2, seed=1)) == PAIRS_1


def test_places_are_exchangeable():
    """Every instance is as likely to be drawn, and as likely x as x'."""
    positive = np.arange(30) < 10
    left, right = np.zeros(30), np.zeros(30)
    draws = 1000
    for seed in range(draws):
        x, x_prime = sample_pairs(positive, 5, 0.4, seed).T
        left[x] += 1
        right[x_prime] += 1
    # 4 of 10 positives, 6 of 20 negatives, half of them on each side.
    expected = draws * np.where(positive, 0.2, 0.15)
    spread = np.sqrt(expected)
    assert (abs(left - expected) < 5 * spread).all()
    assert (abs(right - expected) < 5 * spread).all()


@pytest.mark.parametrize(
    ("positive", "n", "prior", "message"),
    [
        ([1, 0], 1, 0.5, r"positive must be a boolean array of shape \(m,\); got int64 \(2,\)"),
        ([[True]], 1, 0.5, r"got bool \(1, 1\)"),
        ([True, False], 0, 0.5, "n must be a whole number of at least 1; got 0"),
        ([True, False], 1, 0.0, r"prior must lie in \(0, 1\); got 0"),
        ([True, False], 1, 1.0, r"prior must lie in \(0, 1\); got 1"),
        ([True, False], 1, float("nan"), r"prior must lie in \(0, 1\); got nan"),
        ([True] * 3 + [False] * 9, 5, 0.4, "need 4 distinct positive instances, and there are 3"),
        ([True] * 9 + [False] * 3, 5, 0.6, "need 4 distinct negative instances, and there are 3"),
    ],
)
def test_pairs_that_cannot_be_drawn(positive, n, prior, message):
    with pytest.raises(ValueError, match=message):
        sample_pairs(positive, n, prior, 0)


# --- test subsets --------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    prior=PRIORS,
    n_positive=st.integers(1, 400),
    n_negative=st.integers(1, 400),
    kind=st.sampled_from(["paper", "stratified"]),
)
def test_subsets_keep_one_class_whole_and_meet_the_prior(prior, n_positive, n_negative, kind):
    positive = np.arange(n_positive + n_negative) % (n_positive + n_negative) < n_positive
    rows = subset_at_prior(positive, prior, kind)
    assert (np.diff(rows) > 0).all(), "sorted, and each once"
    kept = positive[rows].sum(), (~positive[rows]).sum()
    assert min(kept) >= 1
    exact = Fraction(prior).limit_denominator(1000)
    odds = exact / (1 - exact)
    # The largest numbers in this ratio: one class whole, the other cut to a whole number.
    if n_positive <= n_negative * odds:
        assert kept == (n_positive, max(1, min(n_negative, int(n_positive / odds))))
    else:
        assert kept == (max(1, int(n_negative * odds)), n_negative)


def test_paper_truncates_in_class_order():
    """MNIST at 0.2: the positives are the zeros and some twos; at 0.8 ones and some threes."""
    classes, positive = mixed_digits()
    rows = subset_at_prior(positive, 0.2, "paper", classes=classes)
    n_negative = int((~positive).sum())
    n_kept = n_negative // 4
    assert n_negative == 5074
    counts = np.bincount(classes[rows], minlength=10)
    np.testing.assert_array_equal(counts[1::2], np.bincount(classes)[1::2])
    np.testing.assert_array_equal(counts[::2], [980, n_kept - 980, 0, 0, 0])
    twos = np.flatnonzero(classes == 2)[: n_kept - 980]
    assert set(twos) <= set(rows), "the first of them in the order of the file"
    rows = subset_at_prior(positive, 0.8, "paper", classes=classes)
    counts = np.bincount(classes[rows], minlength=10)
    np.testing.assert_array_equal(counts[1::2], [1135, 4926 // 4 - 1135, 0, 0, 0])


@settings(max_examples=50)
@given(
    counts=st.lists(st.integers(1, 60), min_size=4, max_size=8),
    prior=PRIORS,
    seed=st.integers(0, 5),
)
def test_stratified_spreads_evenly_over_the_classes(counts, prior, seed):
    classes = np.repeat(np.arange(len(counts)), counts)
    positive = classes % 2 == 0
    rows = subset_at_prior(positive, prior, "stratified", classes=classes, seed=seed)
    for side in (True, False):
        kept = np.bincount(classes[rows][positive[rows] == side], minlength=len(counts))
        share = kept.sum() / (positive == side).sum()
        for k in range(len(counts)):
            if (k % 2 == 0) == side:
                assert abs(kept[k] - share * counts[k]) < 1


def test_stratified_follows_the_seed():
    classes, positive = mixed_digits()

    def rows(seed):
        return subset_at_prior(positive, 0.2, "stratified", classes=classes, seed=seed)

    np.testing.assert_array_equal(rows(0), rows(0))
    assert set(rows(0)) != set(rows(1))
    assert digest(rows(0)) == SUBSET_0


@pytest.mark.parametrize(
    ("positive", "prior", "kind", "message"),
    [
        ([True, False], 0, "paper", r"prior must lie in \(0, 1\); got 0"),
        ([True, False], 0.5, "papper", "'stratified' or 'paper'; got 'papper'"),
        ([1.0, 0.0], 0.5, "paper", "boolean array"),
        ([True, True], 0.5, "stratified", "both classes"),
        ([False], 0.5, "stratified", "both classes"),
        ([], 0.5, "stratified", "boolean array"),
    ],
)
def test_subsets_that_cannot_be_made(positive, prior, kind, message):
    with pytest.raises(ValueError, match=message):
        subset_at_prior(positive, prior, kind)


# What the streams above must give, on every machine and with every numpy.
STREAM_0 = [4, 6, 3, 7, 5, 1, 0, 2]
STREAM_3 = "3f4f32fd52818689"
NORMAL_0 = [0.04434248472472819, -0.22583851779027375, -1.3106518634918174]
PAIRS_0 = {0.2: "9ce657533f8aa1d1", 0.5: "b1359bbfb1c6bad9", 0.8: "e7ce73600e307110"}
PAIRS_1 = "3ccdcaf5c40081dc"
SUBSET_0 = "33211d8c4ad8aff6"
