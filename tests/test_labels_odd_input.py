"""Odd but possible input to PairLabels and estimate_prior: mixtures, halves, scalars."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pairlearn import PairLabels, estimate_prior
from pairlearn.losses import make_loss


def test_a_list_beside_a_tensor_keeps_its_digits() -> None:
    labels = PairLabels(torch.tensor([0.5], dtype=torch.float64), [0.1])
    assert labels.difference.item() == 0.1


def test_the_bad_column_is_the_one_named() -> None:
    with pytest.raises(ValueError, match=r"difference must have shape \(n,\); got \(1, 1\)"):
        PairLabels(None, [[0.1]])
    with pytest.raises(ValueError, match="difference must be numbers"):
        PairLabels(torch.tensor([0.5]), ["a"])


def test_a_missing_entry_beside_a_tensor_is_nan() -> None:
    labels = PairLabels(torch.tensor([0.5, 0.2]), [0.1, None])
    assert bool(torch.isnan(labels.difference[1]))


@pytest.mark.parametrize(
    ("r", "r_prime", "message"),
    [
        (None, None, "r and r_prime must both be given"),
        ([0.1], None, "r and r_prime must both be given"),
        ([np.nan], [0.5], r"r is missing \(NaN\) in row 0"),
        ([0.5], [1.2], r"r_prime must lie in \[0, 1\]; row 0 is 1.2$"),
    ],
)
def test_posteriors_are_named(r: object, r_prime: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PairLabels.from_posteriors(r, r_prime)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(dtype: torch.dtype) -> None:
    labels = PairLabels.from_posteriors(
        torch.tensor([0.25, 0.3], dtype=dtype), torch.tensor([0.75, 0.7], dtype=dtype)
    )
    assert labels.similarity.dtype == torch.float32
    assert "PairLabels" in repr(labels)
    assert bool(labels.project().feasible().all())
    assert estimate_prior(torch.tensor([0.5, 0.75], dtype=dtype)).mean_similarity == 0.625


def test_scalar_indices_of_every_kind_give_one_row() -> None:
    for labels in (PairLabels([0.1, 0.2], None), PairLabels(torch.tensor([0.1, 0.2]), None)):
        for index in (1, np.int64(1), np.array(1), torch.tensor(1), -1):
            assert len(labels[index]) == 1
            assert float(labels[index].similarity[0]) == pytest.approx(0.2)
        for index in (None, True):
            with pytest.raises(IndexError, match="indexed by pair"):
                labels[index]


def test_concatenating_both_kinds_gives_tensors() -> None:
    parts = [PairLabels([0.1], None), PairLabels(torch.tensor([0.2]), None)]
    for order in (parts, parts[::-1]):
        assert isinstance(PairLabels.concatenate(order).similarity, torch.Tensor)


def test_prior_errors_are_named() -> None:
    with pytest.raises(ValueError, match="similarity must be numbers"):
        estimate_prior(["a"])
    with pytest.raises(ValueError, match="confidence must lie in"):
        estimate_prior([0.5, 0.6], confidence=1 - 2**-53)


def test_a_loss_does_not_broadcast() -> None:
    with pytest.raises(ValueError, match=r"share one shape; got \(3, 1\), \(3,\)"):
        make_loss("hinge")(torch.zeros(3, 1), torch.ones(3))
