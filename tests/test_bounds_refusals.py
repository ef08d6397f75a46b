"""Bad arguments are refused by name, with advice."""

import math

import pytest

from pairlearn import bounds

CORE = {"n": 100, "prior": 0.2, "lipschitz": 0.5, "loss_bound": 2.0, "rademacher": 0.1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
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
    ],
)
def test_bad_numbers_are_named(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        bounds.convex_estimation_error(**{**CORE, "delta": 0.1, "gamma": 0.5, **change})


def test_balanced_prior_is_refused_only_where_sconf_has_weight() -> None:
    balanced = {**CORE, "prior": 0.5, "delta": 0.1}
    assert bounds.convex_estimation_error(gamma=0, **balanced) > 0
    assert bounds.estimation_error(**balanced) > 0
    with pytest.raises(ValueError, match="estimation_error"):
        bounds.delta_sconf(n=1, prior=0.5, loss_bound=1, floors=[0, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"similarity": [0.1, 1.2]},
            r"similarity must be finite and in \[0, 1\], got array\(\[1.2",
        ),
        ({"noisy_difference": [0.1]}, "noisy_difference must be 1-d, .* got \\(1,\\)"),
        ({"difference": [math.nan, 0]}, "difference must be finite .* drop pairs"),
        ({"similarity": []}, "similarity must be 1-d, non-empty"),
        ({"noisy_prior": 1.2}, "noisy_prior must lie strictly"),
    ],
)
def test_bad_labels_are_named(change, message) -> None:
    names = ("similarity", "noisy_similarity", "difference", "noisy_difference")
    good = {name: [0.1, 0.2] for name in names}
    core = {"prior": 0.2, "noisy_prior": 0.2, "delta": 0.1, "lipschitz": 1, "loss_bound": 1}
    with pytest.raises(ValueError, match=message):
        bounds.robust_estimation_error(**{**good, **core, "rademacher": 0.1, **change})


def test_other_refusals() -> None:
    with pytest.raises(ValueError, match="floors must have 4 values"):
        bounds.delta_scd(n=1, prior=0.2, loss_bound=1, floors=[0.1])
    with pytest.raises(ValueError, match=r"floors\[1\] must be finite and not negative, got -0.1"):
        bounds.delta_sconf(n=1, prior=0.2, loss_bound=1, floors=[0.1, -0.1])
    with pytest.raises(ValueError, match="loss_bound must be positive, got 0"):
        bounds.delta_confdiff(n=1, loss_bound=0, floors=[0] * 4)
    with pytest.raises(ValueError, match=r"outputs must be .* got \(3,\); for one classifier"):
        bounds.empirical_rademacher([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="outputs must be finite"):
        bounds.empirical_rademacher([[1.0, math.nan]])
    with pytest.raises(ValueError, match="draws must be an integer ≥ 2, got 1"):
        bounds.empirical_rademacher([[1.0]], draws=1)
