"""Simulated annotators: what they learn, what they say, and the noise on it."""

import numpy as np
import pytest
import torch

from pairlearn import PairLabels
from pairlearn.models import make_model
from pairlearn.randomness import permutation, stream
from pairlearn_bench.simulated import Annotator, add_noise, judge, train_annotators

QUICK = {"model": "linear", "batch_size": 64, "learning_rate": 0.03, "device": "cpu"}


@pytest.fixture(scope="module")
def world():
    """Two overlapping Gaussians: the posterior is known in closed form."""
    rng = np.random.default_rng(0)
    positive = rng.random(1200) < 0.5
    x = rng.normal(size=(1200, 2)).astype(np.float32) + np.where(positive, 1, -1)[:, None]
    return x.astype(np.float32), positive


# --- training ------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0.1, 0.2, 0.5, 0.8])
def test_calibrated_annotator_trains_at_the_class_balance_asked_for(prior, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "pairlearn_bench.simulated.Fleet", lambda _x, groups, *_a, **_k: seen.append(groups)
    )
    positive = np.arange(1000) % 4 == 0
    rows = np.arange(1000) + 7
    with pytest.raises(AttributeError):  # there is no fleet to fit
        train_annotators(np.zeros((1007, 2)), [Annotator(rows, positive, 0, prior)])
    ((group,),) = seen
    used = np.asarray(group.pairs)
    assert len(np.unique(used)) == used.size, "no instance twice"
    np.testing.assert_array_equal(group.members[0].labels, positive[used - 7])
    n_positive = int(positive[used - 7].sum())
    assert n_positive == int(used.size * prior + 1e-9)
    # As many as there are: one class is used up but for what makes whole pairs.
    left = 250 - n_positive, 750 - (used.size - n_positive)
    assert min(left) <= 4


def test_natural_annotator_uses_every_instance_but_an_odd_one(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "pairlearn_bench.simulated.Fleet", lambda _x, groups, *_a, **_k: seen.append(groups)
    )
    for count in (10, 11):
        with pytest.raises(AttributeError):
            train_annotators(
                np.zeros((20, 2)), [Annotator(np.arange(count), np.ones(count, bool), 0)]
            )
    assert sorted(seen[0][0].pairs.ravel()) == list(range(10))
    assert len(np.unique(seen[1][0].pairs)) == 10


def test_is_an_ordinary_supervised_training(world):
    """The same as a plain loop with binary cross-entropy over batches of instances."""
    x, positive = world
    rows = np.arange(300)
    (r,) = train_annotators(
        x, [Annotator(rows, positive[rows], 4)], "linear", epochs=3, batch_size=50,
        precision="float64", device="cpu",
    )  # fmt: skip
    model = make_model("linear", (2,), 4).double()
    data, target = torch.as_tensor(x).double(), torch.as_tensor(positive).double()
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    ends = permutation(stream(4, "annotator"), 300).reshape(2, 150)
    for epoch in range(3):
        order = permutation(stream(4, "batches", epoch), 150)
        for start in range(0, 150, 25):
            batch = torch.as_tensor(ends[:, order[start : start + 25]].ravel())
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                model(data[batch]), target[batch]
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
    with torch.no_grad():
        expected = torch.sigmoid(model.eval()(data)).numpy()
    np.testing.assert_allclose(r, expected, atol=2e-7)  # returned as float32


def test_annotators_follow_their_seeds_and_not_their_neighbours(world):
    x, positive = world
    rows = np.arange(400)
    one, two = (Annotator(rows, positive[rows], seed) for seed in (0, 1))
    arguments = {**QUICK, "epochs": 3, "precision": "float64"}
    together = train_annotators(x, [one, two], **arguments)
    assert np.abs(together[0] - together[1]).max() > 1e-3
    for index, annotator in enumerate((one, two)):
        (alone,) = train_annotators(x, [annotator], **arguments)
        np.testing.assert_allclose(together[index], alone, atol=1e-7)
    np.testing.assert_array_equal(train_annotators(x, [one, two], **arguments), together)


def test_progress_is_reported(world):
    x, positive = world
    seen = []
    train_annotators(
        x, [Annotator(np.arange(100), positive[:100], 0)], epochs=3,
        progress=lambda epoch, risk: seen.append((epoch, risk)), **QUICK,
    )  # fmt: skip
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert all(0 < risk < 2 for _, risk in seen)


# --- judgements ----------------------------------------------------------------------------


def test_judge_is_the_definition():
    r = np.array([0.9, 0.2, 0.5, 1.0])
    labels = judge(r, np.array([[0, 1], [3, 2], [1, 1]]))
    # Similarity: both positive or both negative. Difference: right less left.
    same = [0.9 * 0.2 + 0.1 * 0.8, 1.0 * 0.5 + 0.0 * 0.5, 0.2**2 + 0.8**2]
    np.testing.assert_allclose(labels.similarity, same)
    np.testing.assert_allclose(labels.difference, [-0.7, -0.5, 0.0], atol=1e-15)


# --- noise ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(1)
    return PairLabels.from_posteriors(*rng.uniform(0.05, 0.95, (2, 50_000)))


@pytest.mark.parametrize("sigma", [0.01, 0.1, 0.5])
def test_noise_has_mean_one_and_the_spread_asked_for(clean, sigma):
    noisy = add_noise(clean, sigma, seed=0)
    n = len(clean)
    factors = [noisy.similarity / clean.similarity, noisy.difference / clean.difference]
    for factor in factors:
        assert factor.mean() == pytest.approx(1, abs=5 * sigma / n**0.5)
        assert factor.std() == pytest.approx(sigma, rel=5 / (2 * n) ** 0.5)
        normal = ((factor - 1) / sigma) ** 3
        assert abs(normal.mean()) < 5 * (15 / n) ** 0.5, "symmetric"
    correlation = np.corrcoef(factors)[0, 1]
    assert abs(correlation) < 5 / n**0.5, "the two judgements err independently"


def test_the_same_noise_scaled(clean):
    small, large = add_noise(clean, 0.1, seed=3), add_noise(clean, 0.5, seed=3)
    np.testing.assert_allclose(
        (large.similarity - clean.similarity), 5 * (small.similarity - clean.similarity), atol=1e-12
    )
    np.testing.assert_allclose(
        (large.difference - clean.difference), 5 * (small.difference - clean.difference), atol=1e-12
    )


def test_nothing_is_clipped_and_nothing_lost(clean):
    noisy = add_noise(clean, 0.5, seed=0)
    assert noisy.similarity.max() > 1
    assert noisy.similarity.min() < 0
    still = add_noise(clean, 0.0, seed=0)
    np.testing.assert_array_equal(still.to_array(), clean.to_array())
    gaps = add_noise(PairLabels([np.nan, 0.5], [0.1, np.nan]), 0.1, seed=0).to_array()
    np.testing.assert_array_equal(np.isnan(gaps), [[True, False], [False, True]])


def test_noise_follows_its_seed(clean):
    first = add_noise(clean, 0.1, seed=0).to_array()
    np.testing.assert_array_equal(add_noise(clean, 0.1, seed=0).to_array(), first)
    assert (add_noise(clean, 0.1, seed=1).to_array() != first).all()


@pytest.mark.parametrize("sigma", [-0.1, float("nan"), float("inf")])
def test_spreads_that_do_not_exist(clean, sigma):
    with pytest.raises(ValueError, match=f"finite number of at least 0; got {sigma}"):
        add_noise(clean, sigma, seed=0)
