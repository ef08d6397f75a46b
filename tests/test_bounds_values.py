"""The theorems as numbers: values worked out by hand, and relations between the bounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlearn import bounds

FORMS = ("printed", "rederived")
CORE = {"n": 100, "prior": 0.2, "lipschitz": 0.5, "loss_bound": 2.0, "rademacher": 0.1}
MCDIARMID = {2: 2 * math.exp(-2), 4: 4 * math.exp(-2), 8: 8 * math.exp(-3.125)}
"""δ at which √(log(events/δ)/200) is exactly 0.1, 0.1 and 0.125, so that values are rational."""


# ---- values worked out by hand from the printed theorems --------------------------------------


def test_contraction_by_hand() -> None:
    arguments = {"prior": 0.2, "lipschitz": 0.5, "rademacher": 0.1}
    assert bounds.contraction(**arguments) == pytest.approx(0.15)
    assert bounds.contraction(**arguments, form="rederived") == pytest.approx(0.178)


@pytest.mark.parametrize(
    ("function", "printed", "rederived"),
    [
        (bounds.uniform_deviation, 0.3 + 0.636, 0.356 + 0.636),
        (bounds.estimation_error, 0.6 + 1.272, 0.712 + 1.272),
    ],
)
def test_unbiased_by_hand(function, printed, rederived) -> None:
    assert function(delta=MCDIARMID[2], **CORE) == pytest.approx(printed)
    assert function(delta=MCDIARMID[2], form="rederived", **CORE) == pytest.approx(rederived)


def test_robust_by_hand() -> None:
    # c̄ = c + 0.1, s̄ = s − 0.2 on every pair, π̄₊ = 0.3: with c = 0.5 the terms are
    # |.3·.6 − .2·.5| + |.7·.6 − .8·.5| + .2 = .08 + .02 + .2 and .05 + .15 + .1 for the prior.
    labels = {
        "similarity": np.full(100, 0.4),
        "noisy_similarity": np.full(100, 0.2),
        "difference": np.full(100, 0.5),
        "noisy_difference": np.full(100, 0.6),
    }
    core = {key: value for key, value in CORE.items() if key != "n"}
    value = bounds.robust_estimation_error(**labels, noisy_prior=0.3, delta=MCDIARMID[2], **core)
    assert value == pytest.approx(24 * 0.05 + 12.72 * 0.2 + 8 * 0.3 + 8 * 0.3)
    convex = bounds.convex_robust_estimation_error(**labels, gamma=0.3, delta=MCDIARMID[4], **core)
    # γ/d = 0.5 and 1 − γ = 0.7.
    assert convex == pytest.approx(15.2 * 0.05 + 7.6 * 0.2 + 2 * 2 * 0.5 * 0.2 + 4 * 2 * 0.7 * 0.1)


def test_corrected_by_hand() -> None:
    correction = {"loss_bound": 2.0, "correction_lipschitz": 1.5, "negativity": 0.01}
    assert bounds.correction_bias(**correction) == pytest.approx(0.15)
    value = bounds.corrected_deviation(n=100, delta=MCDIARMID[2], **correction)
    assert value == pytest.approx(1.8 + 0.15)
    value = bounds.corrected_estimation_error(
        delta=MCDIARMID[4], correction_lipschitz=1.5, negativity=0.01, **CORE
    )
    assert value == pytest.approx(0.3 + 0.6 + (18 + 1.36 + 5) * 0.2)
    value = bounds.uniform_corrected_estimation_error(
        delta=MCDIARMID[8], correction_lipschitz=1.5, **CORE
    )
    assert value == pytest.approx(1.5 * (4 * 4.36 * 0.05 + 3.0))


def test_convex_by_hand() -> None:
    convex = {**CORE, "gamma": 0.3}  # γ/d = 0.5 and 1 − γ = 0.7
    assert bounds.convex_uniform_deviation(delta=MCDIARMID[4], **convex) == pytest.approx(
        3.8 * 0.05 + 1.9 * 0.2
    )
    assert bounds.convex_estimation_error(delta=MCDIARMID[4], **convex) == pytest.approx(
        7.6 * 0.05 + 3.8 * 0.2
    )
    corrected = {"correction_lipschitz": 1.5, "negativity_sconf": 0.1, "negativity_confdiff": 0.2}
    printed, rederived = (
        bounds.convex_corrected_estimation_error(
            delta=MCDIARMID[8], form=form, **corrected, **convex
        )
        for form in FORMS
    )
    bias = (2 * 0.05 + 4 * 0.14) * 2.5 * 2
    assert printed == pytest.approx(3.8 * 2.5 * 0.25 + bias + 7.6 * 0.05)
    # 3.8·(2·1.5 + 1) in place of 3.8·2.5; 4·0.5 + 2·0.7·(4 + 2·0.6) in place of 7.6.
    assert rederived == pytest.approx(3.8 * 4 * 0.25 + bias + 9.28 * 0.05)


def test_deltas_by_hand() -> None:
    scd = {"n": 81, "prior": 0.2, "loss_bound": 1.0, "floors": [0.1, 0.0, 0.2, 0.0]}
    assert bounds.delta_scd(**scd) == pytest.approx(2 + math.exp(-1) + math.exp(-4))
    assert bounds.delta_scd(form="rederived", **scd) == pytest.approx(
        2 + math.exp(-2) + math.exp(-8)
    )
    sconf = {"n": 100, "prior": 0.25, "loss_bound": 2.0, "floors": [0.4, 0.0]}
    assert bounds.delta_sconf(**sconf) == pytest.approx(math.exp(-2.965) + math.exp(-3.125))
    assert bounds.delta_sconf(form="rederived", **sconf) == pytest.approx(math.exp(-2) + 1)
    floors = [0.1, 0.2, 0.0, 0.0]
    assert bounds.delta_confdiff(n=200, loss_bound=2.0, floors=floors) == pytest.approx(
        2 + math.exp(-1) + math.exp(-4)
    )


def test_printed_delta_sconf_overflows_to_infinity() -> None:
    assert bounds.delta_sconf(n=1, prior=0.2, loss_bound=100, floors=[90, 0]) == math.inf


# ---- relations --------------------------------------------------------------------------------


@given(
    prior=st.floats(0.01, 0.99).filter(lambda p: abs(p - 0.5) > 0.01),
    gamma=st.floats(0, 1),
    n=st.integers(1, 10**6),
    delta=st.floats(1e-6, 0.99),
    form=st.sampled_from(FORMS),
)
def test_bounds_shrink_with_pairs_and_forget_the_class_names(prior, gamma, n, delta, form) -> None:
    core = {"delta": delta, "lipschitz": 1.0, "loss_bound": 1.0, "form": form}
    for function, extra in (
        (bounds.estimation_error, {}),
        (bounds.convex_estimation_error, {"gamma": gamma}),
    ):
        here, swapped, more = (
            function(n=size, prior=p, rademacher=1 / math.sqrt(size), **extra, **core)
            for size, p in ((n, prior), (n, 1 - prior), (4 * n, prior))
        )
        assert here == pytest.approx(swapped)
        assert more == pytest.approx(here / 2)  # the rate n^(−1/2)


def test_without_noise_the_robust_bounds_are_twice_the_clean_ones() -> None:
    s, c = np.linspace(0.2, 0.9, 50), np.linspace(-0.1, 0.1, 50)
    labels = {"similarity": s, "noisy_similarity": s, "difference": c, "noisy_difference": c}
    core = {"delta": 0.1, "prior": 0.3, "lipschitz": 1, "loss_bound": 1, "rademacher": 0.2}
    robust = bounds.robust_estimation_error(**labels, noisy_prior=0.3, **core)
    assert robust == pytest.approx(2 * bounds.estimation_error(n=50, **core))
    robust = bounds.convex_robust_estimation_error(**labels, gamma=0.4, **core)
    assert robust == pytest.approx(2 * bounds.convex_estimation_error(n=50, gamma=0.4, **core))


def test_corrected_error_decomposes_at_half_delta() -> None:
    correction = {"correction_lipschitz": 1.0, "negativity": 0.02}
    whole = bounds.corrected_estimation_error(delta=0.1, **correction, **CORE)
    parts = 2 * bounds.corrected_deviation(n=100, delta=0.05, loss_bound=2.0, **correction)
    assert whole == pytest.approx(parts + bounds.estimation_error(delta=0.05, **CORE))


def test_deltas_vanish_with_pairs_and_are_trivial_without_floors() -> None:
    for form in FORMS:
        few, many = (
            bounds.delta_scd(n=n, prior=0.3, loss_bound=1, floors=[0.1] * 4, form=form)
            for n in (1, 10**6)
        )
        assert few > 3 and many < 1e-30
        assert bounds.delta_scd(n=9, prior=0.3, loss_bound=1, floors=[0] * 4, form=form) == 4
