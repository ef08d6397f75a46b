"""The theorems as numbers: by hand, in relation to each other, by enumeration, and refusals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlearn_bench import bounds

FORMS = ("printed", "rederived")
CORE = {"n": 100, "prior": 0.2, "lipschitz": 0.5, "loss_bound": 2.0, "rademacher": 0.1}
LABELS = ("similarity", "noisy_similarity", "difference", "noisy_difference")
WITHOUT_N = {key: value for key, value in CORE.items() if key != "n"}
MCDIARMID = {2: 2 * math.exp(-2), 4: 4 * math.exp(-2), 8: 8 * math.exp(-3.125)}
"""δ at which √(log(events/δ)/200) is exactly 0.1, 0.1 and 0.125, so that values are rational."""
E = math.exp
SCD = {"n": 81, "prior": 0.2, "loss_bound": 1.0, "floors": [0.1, 0.0, 0.2, 0.0]}
SCONF = {"n": 100, "prior": 0.25, "loss_bound": 2.0, "floors": [0.4, 0.0]}
CONFDIFF = {"n": 200, "loss_bound": 2.0, "floors": [0.1, 0.2, 0.0, 0.0]}

CORRECTED = {"loss_bound": 2.0, "correction_lipschitz": 1.5, "negativity": 0.01}
CONVEX = {**CORE, "gamma": 0.3}  # γ/d = 0.5 and 1 − γ = 0.7
CONVEX_CORRECTED = {
    **CONVEX, "correction_lipschitz": 1.5, "negativity_sconf": 0.1, "negativity_confdiff": 0.2
}  # fmt: skip
CONVEX_BIAS = (2 * 0.05 + 4 * 0.14) * 2.5 * 2
# c̄ = c + 0.1, s̄ = s − 0.2 on every pair, π̄₊ = 0.3: with c = 0.5 the terms are
# |0.3·0.6 − 0.2·0.5| + |0.7·0.6 − 0.8·0.5| + 0.2 = 0.08 + 0.02 + 0.2,
# and 0.05 + 0.15 + 0.1 for the prior.
NOISY = WITHOUT_N | {
    name: np.full(100, v) for name, v in zip(LABELS, (0.4, 0.2, 0.5, 0.6), strict=True)
}


@pytest.mark.parametrize(
    ("function", "arguments", "events", "printed", "rederived"),
    [
        ("contraction", {"prior": 0.2, "lipschitz": 0.5, "rademacher": 0.1}, None, 0.15, 0.178),
        ("correction_bias", CORRECTED, None, 0.15, None),
        ("delta_scd", SCD, None, 2 + E(-1) + E(-4), 2 + E(-2) + E(-8)),
        ("delta_sconf", SCONF, None, E(-2.965) + E(-3.125), E(-2) + 1),
        ("delta_confdiff", CONFDIFF, None, 2 + E(-1) + E(-4), None),
        ("uniform_deviation", CORE, 2, 0.3 + 0.636, 0.356 + 0.636),
        ("estimation_error", CORE, 2, 0.6 + 1.272, 0.712 + 1.272),
        (
            "robust_estimation_error",
            {**NOISY, "noisy_prior": 0.3},
            2,
            24 * 0.05 + 12.72 * 0.2 + 8 * 0.3 + 8 * 0.3,
            4 * (0.356 + 0.636) + 8 * 0.3 + 8 * 0.3,
        ),
        ("corrected_deviation", {"n": 100, **CORRECTED}, 2, 1.8 + 0.15, None),
        (
            "corrected_estimation_error",
            CORE | CORRECTED,
            4,
            0.3 + 0.6 + (18 + 1.36 + 5) * 0.2,
            0.3 + 0.712 + (18 + 1.36 + 5) * 0.2,
        ),
        (
            "uniform_corrected_estimation_error",
            {**CORE, "correction_lipschitz": 1.5},
            8,
            1.5 * (4 * 4.36 * 0.05 + 3.0),
            None,
        ),
        # Rederived, 2·0.5 + 0.7·(4 + 2·0.6) stands in place of 2·0.5 + 4·0.7.
        ("convex_uniform_deviation", CONVEX, 4, 3.8 * 0.05 + 1.9 * 0.2, 4.64 * 0.05 + 1.9 * 0.2),
        ("convex_estimation_error", CONVEX, 4, 7.6 * 0.05 + 3.8 * 0.2, 9.28 * 0.05 + 3.8 * 0.2),
        (
            "convex_robust_estimation_error",
            {**NOISY, "gamma": 0.3},
            4,
            15.2 * 0.05 + 7.6 * 0.2 + 2 * 2 * 0.5 * 0.2 + 4 * 2 * 0.7 * 0.1,
            18.56 * 0.05 + 7.6 * 0.2 + 2 * 2 * 0.5 * 0.2 + 4 * 2 * 0.7 * 0.1,
        ),
        (
            "convex_corrected_estimation_error",
            CONVEX_CORRECTED,
            8,
            3.8 * 2.5 * 0.25 + CONVEX_BIAS + 7.6 * 0.05,
            # 3.8·(2·1.5 + 1) in place of 3.8·2.5.
            3.8 * 4 * 0.25 + CONVEX_BIAS + 9.28 * 0.05,
        ),
    ],
)
def test_bounds_by_hand(function, arguments, events, printed, rederived) -> None:
    bound, delta = getattr(bounds, function), {"delta": MCDIARMID[events]} if events else {}
    assert bound(**delta, **arguments) == pytest.approx(printed)
    if rederived is not None:
        assert bound(**delta, form="rederived", **arguments) == pytest.approx(rederived)


def test_deltas_at_their_ends() -> None:
    assert bounds.delta_sconf(n=1, prior=0.2, loss_bound=100, floors=[90, 0]) == math.inf
    for form in FORMS:
        few, many, trivial = (
            bounds.delta_scd(n=n, prior=0.3, loss_bound=1, floors=[floor] * 4, form=form)
            for n, floor in ((1, 0.1), (10**6, 0.1), (9, 0))
        )
        assert few > 3 and many < 1e-30 and trivial == 4


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
        bound, swapped, more = (
            function(n=size, prior=p, rademacher=1 / math.sqrt(size), **extra, **core)
            for size, p in ((n, prior), (n, 1 - prior), (4 * n, prior))
        )
        assert bound == pytest.approx(swapped)
        assert more == pytest.approx(bound / 2)  # the rate n^(−1/2)


# ---- Rademacher complexities ------------------------------------------------------------------


# ---- bad arguments are refused by name, with advice -------------------------------------------

GOOD = {
    "convex_estimation_error": {**CORE, "delta": 0.1, "gamma": 0.5},
    "robust_estimation_error": {
        **{name: [0.1, 0.2] for name in LABELS}, **WITHOUT_N, "noisy_prior": 0.2, "delta": 0.1
    },
    "delta_scd": {"n": 1, "prior": 0.2, "loss_bound": 1, "floors": [0.1] * 4},
    "delta_sconf": {"n": 1, "prior": 0.2, "loss_bound": 1, "floors": [0.1, 0.1]},
    "delta_confdiff": {"n": 1, "loss_bound": 1, "floors": [0] * 4},
}  # fmt: skip


@pytest.mark.parametrize(
    ("function", "change", "message"),
    [
        *(
            ("convex_estimation_error", change, message)
            for change, message in (
                ({"prior": 0.0}, "prior must lie strictly between 0 and 1, got 0.0; pass P"),
                ({"prior": math.nan}, "prior must lie"),
                ({"delta": 1.0}, "delta must lie strictly between 0 and 1, got 1.0"),
                ({"n": 0}, "n must be an integer ≥ 1, got 0"),
                ({"n": 2.5}, "n must be an integer ≥ 1, got 2.5"),
                ({"n": True}, "n must be an integer"),
                ({"lipschitz": -1}, "lipschitz must be finite and not negative, got -1"),
                ({"loss_bound": math.inf}, "loss_bound must be finite .* bound the classifiers"),
                ({"rademacher": math.nan}, "rademacher must be finite"),
                ({"form": "fixed"}, "form must be 'printed' or 'rederived', got 'fixed'"),
                ({"gamma": 1.5}, r"gamma must lie in \[0, 1\], got 1.5"),
                ({"prior": 0.5}, "prior must differ from 0.5, .* Defined at 0.5 are gamma=0"),
            )
        ),
        *(
            ("robust_estimation_error", change, message)
            for change, message in (
                ({"similarity": [0.1, 1.2]}, r"similarity must be finite and in \[0, 1\], got arr"),
                ({"noisy_difference": [0.1]}, "noisy_difference must be 1-d, .* got \\(1,\\)"),
                ({"difference": [math.nan, 0]}, "difference must be finite .* drop pairs"),
                ({"similarity": []}, "similarity must be 1-d, non-empty"),
                ({"noisy_prior": 1.2}, "noisy_prior must lie strictly"),
            )
        ),
        ("delta_scd", {"floors": [0.1]}, "floors must have 4 values"),
        ("delta_sconf", {"floors": [0, -0.1]}, r"floors\[1\] must be finite .*, got -0.1"),
        ("delta_sconf", {"prior": 0.5}, "estimation_error"),
        ("delta_confdiff", {"loss_bound": 0}, "loss_bound must be positive, got 0"),
    ],
)
def test_bad_arguments_are_named(function, change, message) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(bounds, function)(**{**GOOD[function], **change})


def test_missing_and_unknown_arguments_are_named() -> None:
    arguments = GOOD["robust_estimation_error"]
    with pytest.raises(TypeError, match=r"^robust_estimation_error\(\) .*unexpected.* 'n'$"):
        bounds.robust_estimation_error(n=2, **arguments)  # it is the length of the labels
    with pytest.raises(TypeError, match=r"^estimation_error\(\) missing.* 'delta'$"):
        bounds.estimation_error(**CORE)
