"""The likelihood's first epochs: drawn to the right side, and only where there is one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from pairlearn import Judgements, PairLabels
from pairlearn.data.sampling import sample_pairs
from pairlearn.data.simulation import simulate
from pairlearn.estimators import PairClassifier, cross_fitting
from pairlearn.estimators.population import guiding_prior, larger_class
from pairlearn.risks import PairLikelihood
from pairlearn.training import Group, Member, Objective
from pairlearn.training.ranks import ALONE


def rows_of(r: np.ndarray, ends: np.ndarray) -> Judgements:
    return Judgements.from_pairs(ends, PairLabels.from_posteriors(*r[ends].T))


@pytest.mark.parametrize("prior", [0.1, 0.3, 0.7, 0.9])
def test_the_prior_of_the_similarities_on_the_side_that_a_linear_model_sees(prior: float) -> None:
    told = simulate(pairs=300, prior=prior, seed=1)
    rows = rows_of(told.posterior, told.pairs.positions(told.items))
    for seed in range(3):
        found = guiding_prior(told.items.features, rows, seed)
        assert found == pytest.approx(told.posterior.mean(), abs=0.05)


def test_no_side_is_taken_where_classes_are_even_or_no_line_parts_them() -> None:
    told = simulate(pairs=300, prior=0.5, seed=1)
    rows = rows_of(told.posterior, told.pairs.positions(told.items))
    assert guiding_prior(told.items.features, rows, 0) is None
    rng = np.random.default_rng(0)
    angle, positive = rng.uniform(0, 2 * np.pi, 800), np.arange(800) % 10 == 0
    ring = np.stack([np.cos(angle), np.sin(angle)], 1) * np.where(positive, 1.0, 3.0)[:, None]
    rows = rows_of(np.where(positive, 0.98, 0.02), rng.permutation(800).reshape(-1, 2))
    assert guiding_prior(ring.astype(np.float32), rows, 0) is None


def test_nothing_is_told_without_pairs_of_different_classes() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    ends = np.arange(60).reshape(30, 2)
    assert larger_class(x, rows_of(np.ones(60), ends)) is None
    assert larger_class(x, rows_of((x[:, 0] > 0.5).astype(float), ends)[:9]) is None


@pytest.mark.parametrize("prior", [0.15, 0.85])
def test_the_wrong_side_is_hardly_ever_named(prior: float) -> None:
    """Many features and few pairs, where a score fits its own pairs whatever they say."""
    named = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        positive = rng.random(120) < prior
        x = rng.normal(size=(120, 40)).astype(np.float32)
        x[:, 0] += 3.0 * positive
        rows = rows_of(np.where(positive, 0.95, 0.05), np.arange(120).reshape(60, 2))
        named.append(larger_class(x, rows, seed))
    right = "positive" if prior > 0.5 else "negative"
    assert named.count(right) >= 15
    assert len(named) - named.count(right) - named.count(None) <= 1


def test_guidance_is_a_divergence_that_fades_and_is_no_part_of_the_objective() -> None:
    told = simulate(pairs=50, prior=0.2, seed=0)
    rows = rows_of(told.posterior, told.pairs.positions(told.items))
    plain, guided = (
        Objective(
            [Group(rows.ends, [Member(PairLikelihood(), rows.values, guiding_prior=prior)])],
            dtype=torch.float64,
        )
        for prior in (None, 0.2)
    )
    z = torch.linspace(-2, 1, 50, dtype=torch.float64)
    arguments = [c.expand(1, 1, -1) for c in (z, z, *torch.from_numpy(rows.values).T)]
    share = torch.full_like(z, 1 / 50)

    def value(objective: Objective) -> float:
        return float(objective(*arguments, share, total=ALONE.sum))

    mean = float(torch.sigmoid(z).mean())
    divergence = 0.2 * np.log(0.2 / mean) + 0.8 * np.log(0.8 / (1 - mean))
    for weight in (1.0, 0.25, 0.0):
        guided.guidance.fill_(weight)
        assert value(guided) == pytest.approx(value(plain) + weight * divergence, abs=1e-12)
        assert torch.equal(guided.of(rows, z[None], z[None]), plain.of(rows, z[None], z[None]))
        assert float(guided.guidance) == weight


def few_digits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """100 pairs of digits, a tenth of them positive (even), and all digits with their classes."""
    x, y = load_digits(return_X_y=True)
    positive = y % 2 == 0
    ends = sample_pairs(positive, 100, 0.1, seed)
    labels = PairLabels.from_posteriors(*np.where(positive, 0.98, 0.02)[ends].T).to_array()
    return x.astype(np.float32), positive, ends, labels


def accuracy(seed: int) -> float:
    """At the prior of the pairs."""
    x, positive, ends, labels = few_digits(seed)
    fitted = PairClassifier(model="mlp", epochs=60, random_state=seed, device="cpu")
    right = (fitted.fit(x[ends], labels).predict(x) > 0) == positive
    return 0.1 * float(right[positive].mean()) + 0.9 * float(right[~positive].mean())


def test_few_pairs_far_from_one_half_are_not_learnt_reflected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds = (2,)
    assert min(accuracy(seed) for seed in seeds) > 0.9
    monkeypatch.setattr(cross_fitting, "guiding_prior", lambda *_: None)
    assert max(accuracy(seed) for seed in seeds) < 0.4, "what guidance is for"
