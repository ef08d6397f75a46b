"""The class prior against values worked out by hand and simulated annotators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pairlearn import PriorEstimate, estimate_prior

NAN = math.nan
ONE_SIGMA = math.erf(math.sqrt(0.5))
similarities = st.lists(st.floats(0, 1), min_size=3, max_size=30)


# ---- values worked out by hand ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "share"), [(1.0, 1.0), (0.82, 0.9), (0.68, 0.8), (0.58, 0.7), (0.52, 0.6), (0.5, 0.5)]
)
def test_value_by_hand(mean: float, share: float) -> None:
    """π² + (1 − π)² at π = .9, .8, … is .82, .68, …"""
    s = [mean - 0.25, mean + 0.25, mean]
    assert estimate_prior(s).value == pytest.approx(share)
    assert estimate_prior(s, "negative").value == pytest.approx(1 - share)
    assert estimate_prior(s).mean_similarity == pytest.approx(mean)


@pytest.mark.parametrize(
    ("s", "options", "expected"),
    [
        # Two values, one standard error: the interval of the mean is from one to the other.
        ([0.58, 0.68], {"confidence": ONE_SIGMA}, (0.7, None, 0.8)),
        # With δ = 2e⁻² and n = 100 the half width is √(2/200) = 0.1: [.48, .68] around .58.
        (np.tile([0.48, 0.68], 50), {"interval": "mcdiarmid", "confidence": 1 - 2 * math.exp(-2)},
         (0.5, 0.7, 0.8)),
        ([1.0], {"interval": "mcdiarmid"}, (0.5, 1.0, 1.0)),
        # By chance below ½: mean + 1.96·0.2/√99 = 0.5294, and (1 + √0.0588)/2 = 0.6212.
        (0.49 + np.tile([-0.2, 0.2], 50), {}, (0.5, 0.5, 0.6212)),
        (0.49 + np.tile([-0.2, 0.2], 50), {"majority": "negative"}, (0.3788, 0.5, 0.5)),
        # Weighted mean (3·.6 + .84)/4 = .66, so that π = (1 + √.32)/2.
        ([0.6, 0.84, NAN], {"weight": [3.0, 1.0, 5.0]}, (None, (1 + math.sqrt(0.32)) / 2, None)),
        ([1.6, 1.2, 0.9], {}, (None, 1.0, 1.0)),  # label noise beyond the range is admitted
        ([True, True, False, True], {}, (None, (1 + math.sqrt(0.5)) / 2, None)),
    ],
)  # fmt: skip
def test_intervals_by_hand(s: Any, options: Any, expected: Any) -> None:
    estimate = estimate_prior(s, **options)
    for end, bound in zip((estimate.low, estimate.value, estimate.high), expected, strict=True):
        assert bound is None or end == pytest.approx(bound, abs=1e-4)
    assert estimate.n == np.isfinite(s).sum()


# ---- coverage ---------------------------------------------------------------------------------

REPETITIONS = 800


def simulated_similarities(prior: float, n: int, annotator: str) -> Any:
    """(REPETITIONS, n) judgements of independent pairs, soft or of drawn classes."""
    rng = np.random.default_rng(20240501)
    r, r_prime = rng.beta(3 * prior, 3 * (1 - prior), size=(2, REPETITIONS, n))
    if annotator == "soft":
        return r * r_prime + (1 - r) * (1 - r_prime)
    y, y_prime = rng.random((2, REPETITIONS, n)) < np.stack([r, r_prime])
    return (y == y_prime).astype(float)


def coverage(prior: float, n: int, annotator: str, **options: Any) -> float:
    majority = "positive" if prior >= 0.5 else "negative"
    estimates = [
        estimate_prior(s, majority, **options) for s in simulated_similarities(prior, n, annotator)
    ]
    return float(np.mean([e.low - 1e-12 <= prior <= e.high + 1e-12 for e in estimates]))


@pytest.mark.parametrize("annotator", ["soft", "hard"])
def test_intervals_cover(annotator: str) -> None:
    for prior in (0.1, 0.8):
        assert 0.93 <= coverage(prior, 400, annotator) <= 0.97
        assert 0.77 <= coverage(prior, 400, annotator, confidence=0.8) <= 0.83
    # At ½ the lower end cannot miss, so 97.5% is what to expect.
    assert 0.96 <= coverage(0.5, 400, annotator) <= 0.99
    for prior in (0.02, 0.5, 0.8):
        for n in (1, 5, 400):
            assert coverage(prior, n, annotator, interval="mcdiarmid") >= 0.95


# ---- properties -------------------------------------------------------------------------------


@given(s=similarities)
def test_the_interval_holds_the_value_and_stays_on_its_side(s: list[float]) -> None:
    for interval in ("normal", "mcdiarmid"):
        positive = estimate_prior(s, interval=interval)
        assert 0.5 <= positive.low <= positive.value <= positive.high <= 1
        negative = estimate_prior(s, "negative", interval=interval)
        mirrored = (1 - positive.value, 1 - positive.high, 1 - positive.low)
        assert (negative.value, negative.low, negative.high) == mirrored


@given(s=similarities)
def test_intervals_grow_with_confidence_and_mcdiarmid_is_the_wider(s: list[float]) -> None:
    narrow, wide = estimate_prior(s, confidence=0.5), estimate_prior(s)
    free = estimate_prior(s, interval="mcdiarmid")
    assert free.low <= wide.low <= narrow.low
    assert narrow.high <= wide.high <= free.high


@pytest.mark.parametrize(
    "similarity",
    [
        np.array([0.5, 1, 0.75, NAN], dtype=np.float32),
        (0.5, 1, 0.75),
        torch.tensor([0.5, 1, 0.75, NAN]),
        torch.tensor([0.5, 1, 0.75], dtype=torch.float64, requires_grad=True),
        torch.tensor([0.5, NAN, 1, NAN, 0.75], dtype=torch.float16),
        torch.tensor([0.5, 1, 0.75], dtype=torch.bfloat16),
    ],
)
def test_arrays_and_tensors(similarity: Any) -> None:
    estimate = estimate_prior(similarity)
    assert estimate == estimate_prior([0.5, 1.0, 0.75])
    assert isinstance(estimate, PriorEstimate)
    assert all(type(x) is float for x in (estimate.value, estimate.low, estimate.high))
    assert (estimate.n, type(estimate.n)) == (3, int)


# ---- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("similarity", "options", "message"),
    [
        ([], {}, "similarity has no value: every entry is missing, or it is empty"),
        (torch.tensor([]), {}, "similarity has no value"),
        ([[0.5, 0.6]], {}, r"similarity must have shape \(n,\); got \(1, 2\)"),
        ([0.5, math.inf], {}, "similarity is infinite somewhere: use NaN"),
        (["a"], {}, "similarity must be numbers"),
        ([0.5, 0.6], {"confidence": 1 - 2**-53}, "confidence must lie in"),
        ([0.5], {}, "similarity has one value: a normal interval needs at least two"),
        ([0.5, 1.01], {"interval": "mcdiarmid"}, r"similarity leaves \[0, 1\]: McDiarmid"),
        ([0.5, 0.6], {"majority": "left"}, "majority must be 'positive' or 'negative'; got 'left'"),
        ([0.5, 0.6], {"interval": "exact"}, "interval must be 'normal' or .*; got 'exact'"),
        ([0.5, 0.6], {"confidence": 0.0}, r"confidence must lie in \(0, 1\); got 0\.0"),
        ([0.5, 0.6], {"confidence": NAN}, r"confidence must lie in \(0, 1\); got nan"),
        ([0.5, 0.6], {"weight": [1.0, -1.0]}, "weight must be positive .*; row 1 is -1: drop"),
        ([0.5, 0.6], {"weight": [1.0]}, r"weight must have shape \(2,\)"),
        ([0.5, 0.6], {"items": [[1, 2]]}, r"items must have shape \(2, 2\)"),
        ([0.5, 0.6], {"items": [[1, 2], [3, 3]]}, "items row 1 pairs item 3 with itself"),
    ],
)
def test_errors_name_the_argument(similarity: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate_prior(similarity, **options)


# ---- weights and recurring items ----------------------------------------------------------------


def test_equal_weights_and_distinct_items_change_nothing() -> None:
    s = [0.9, 0.5, 0.64, 0.68]
    items = np.arange(8).reshape(4, 2)
    for interval in ("normal", "mcdiarmid"):
        plain = estimate_prior(s, interval=interval)
        for options in ({"weight": [2.0] * 4}, {"items": items}):
            other = estimate_prior(s, interval=interval, **options)
            assert (other.low, other.high) == pytest.approx((plain.low, plain.high))


def test_intervals_cover_when_items_recur() -> None:
    rng = np.random.default_rng(1)
    covered = dict.fromkeys(("aware", "ignorant", "sure"), 0.0)
    for _ in range(250):
        r = rng.beta(0.9, 2.1, size=60)
        left = rng.integers(0, 60, 400)
        right = (left + rng.integers(1, 60, 400)) % 60
        s = r[left] * r[right] + (1 - r[left]) * (1 - r[right])
        pairs = np.stack([left, right], 1)
        for kind, options in {
            "aware": {"items": pairs},
            "ignorant": {},
            "sure": {"items": pairs, "interval": "mcdiarmid"},
        }.items():
            estimate = estimate_prior(s, "negative", **options)
            covered[kind] += (estimate.low <= 0.3 <= estimate.high) / 250
    assert 0.88 <= covered["aware"] <= 0.99
    assert covered["ignorant"] < 0.87
    assert covered["sure"] >= 0.99
