"""Pairs drawn at random or by expected information, their weights and their annotators."""

from __future__ import annotations

import itertools
import math
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from browser import make_project
from pairlearn import PairLabels
from pairlearn.evaluation import estimate_accuracy
from pairlearn.prior import estimate_prior
from pairlearn_studio.choosing import (
    assign,
    choose_pairs,
    choosing,
    expected_information,
    inclusion_weights,
    pool_weights,
    random_pairs,
    replenish,
)
from pairlearn_studio.creating import create_project
from pairlearn_studio.project import Project, ProjectError
from pairlearn_studio.server import serve
from pairlearn_studio.stopping import Forecast, forecast_parts
from pairlearn_studio.store import Store
from studio_processes import wait_until
from studio_store import make, submit

Floats = NDArray[np.float64]


def sigmoid(z: Floats) -> Floats:
    result: Floats = 1 / (1 + np.exp(-z))
    return result


# ---- draws ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("r", "r_prime"), [(0.5, 0.5), (0.2, 0.9), (0.01, 0.02), (0.0, 0.3), (1.0, 0.0)]
)
def test_information_is_the_entropy_of_three_events(r: float, r_prime: float) -> None:
    """Counted over the four pairs of classes, both equal ones as one event."""
    chances = dict.fromkeys(("+-", "-+", "same"), 0.0)
    for y, y_prime in itertools.product("+-", repeat=2):
        chance = (r if y == "+" else 1 - r) * (r_prime if y_prime == "+" else 1 - r_prime)
        chances["same" if y == y_prime else y + y_prime] += chance
    entropy = -sum(p * math.log(p) for p in chances.values() if p > 0)
    assert expected_information([r], [r_prime])[0] == pytest.approx(entropy)


def test_no_pair_comes_twice_and_all_come_in_the_end() -> None:
    posterior = np.linspace(0.01, 0.99, 12)
    taken = [(3, 1), (5, 4)]
    chosen = choose_pairs(posterior, 1000, np.random.default_rng(0), taken=taken, candidates=8)
    ends = {frozenset(pair[:2]) for pair in chosen}
    assert len(ends) == len(chosen) == 12 * 11 // 2 - 2
    assert not ends & {frozenset((1, 3)), frozenset((4, 5))}


def test_weights_are_bounded_and_directions_random() -> None:
    posterior = np.r_[np.full(300, 1e-9), np.full(10, 0.5)]
    chosen = choose_pairs(posterior, 400, np.random.default_rng(0), epsilon=0.2)
    weights = np.array([pair.weight for pair in chosen])
    assert weights.max() <= 1 / 0.2 + 1e-9
    assert weights.min() < 0.2
    share = np.mean([pair.left < pair.right for pair in chosen])
    assert 0.4 < share < 0.6
    uncertain = np.mean([max(pair[:2]) >= 300 for pair in chosen])
    assert uncertain > 0.6  # of all pairs it is 6%


def test_a_model_that_knows_nothing_draws_uniformly() -> None:
    for constant in (0.5, 0.0):
        chosen = choose_pairs(np.full(50, constant), 100, np.random.default_rng(0))
        assert [pair.weight for pair in chosen] == pytest.approx([1.0] * 100)


def test_candidates_are_uniform() -> None:
    """One candidate a draw, so that no score matters: every pair as often as any other."""
    counts: dict[frozenset[int], int] = {}
    rng = np.random.default_rng(0)
    for _ in range(1500):
        (pair,) = choose_pairs([0.1, 0.5, 0.9, 0.2], 1, rng, candidates=1)
        counts[frozenset(pair[:2])] = counts.get(frozenset(pair[:2]), 0) + 1
        assert pair.weight == 1.0
    # Chi-square with 5 degrees of freedom: 20.5 is exceeded once in a thousand.
    assert sum((n - 250) ** 2 / 250 for n in counts.values()) < 20.5


HALF = [0.5, 0.5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rng: choose_pairs([0.5], 1, rng), "two at least"),
        (lambda rng: choose_pairs([0.5, 1.5], 1, rng), "item 1 has 1.5"),
        (lambda rng: choose_pairs([math.nan, 0.5], 1, rng), "item 0 has nan"),
        (lambda rng: choose_pairs(HALF, 1, rng, epsilon=0.0), "epsilon must lie in"),
        (lambda rng: choose_pairs(HALF, 1, rng, candidates=0), "candidates must be a whole number"),
        (lambda _: inclusion_weights([], 3), "weights has 0 rows"),
        (lambda _: inclusion_weights([1.0] * 4, 3), "3 items make 1 to 3 pairs"),
        (lambda _: inclusion_weights([1.0, 0.0], 3), "row 1 is 0"),
        (lambda _: inclusion_weights([math.nan, 1.0], 3), "NaN in row 0"),
        (lambda _: random_pairs(1, 1, seed=0), "items is 1"),
        (lambda _: random_pairs(3, 4, seed=0), "pairs is 4"),
        (lambda _: random_pairs(3, 0, seed=0), "pairs is 0"),
        (lambda _: assign([1], [1], 0, 0), "overlap must be a whole number of at least 1; got 0"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0))


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


def test_who_comes_late_who_left_and_nobody() -> None:
    late = assign(range(100), [1, 2], 1, 0, {pair: [1] for pair in range(40)})
    assert Counter(who for whose in late.values() for who in whose) == {1: 50, 2: 50}
    assert assign([1, 2], [7], 2, 0, {1: [5, 6], 2: [5]}) == {1: [5, 6], 2: [5, 7]}
    assert assign([1, 2], [], 2, 0) == {1: [], 2: []}


# ---- what the weights are for -----------------------------------------------------------------


@pytest.mark.parametrize("candidates", [100, 3])
def test_weighted_mean_is_unbiased_in_a_small_pool(candidates: int) -> None:
    """Eight of fifteen pairs: so many that drawing without replacement shows."""
    posterior = np.array([0.02, 0.1, 0.45, 0.5, 0.9, 0.97])
    value = np.random.default_rng(3).random((6, 6))
    value = (
        value
        + value.T
        + 2 * expected_information(np.repeat(posterior, 6), np.tile(posterior, 6)).reshape(6, 6)
    )
    truth = value[np.triu_indices(6, 1)].mean()
    rng = np.random.default_rng(0)
    weighted, plain, naive = [], [], []
    for _ in range(300):
        chosen = choose_pairs(posterior, 8, rng, candidates=candidates)
        f = np.array([value[pair[:2]] for pair in chosen])
        w = np.array([pair.weight for pair in chosen])
        weighted.append((pool_weights(w, 6) * f).mean())
        plain.append(f.mean())
        naive.append((w * f).mean())
    error = np.std(weighted) / math.sqrt(len(weighted))
    assert abs(np.mean(weighted) - truth) < 3.5 * error
    assert np.mean(plain) - truth > 5 * error
    assert abs(np.mean(naive) - truth) > 3.5 * error  # of the pairs that are left, not of all


def test_weights_correct_the_prior_and_the_accuracy() -> None:
    """A pool at prior 0.1, pairs chosen by a mediocre model, 30 times over."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=400) + np.where(np.arange(400) < 40, 1.5, -1.5)
    posterior = sigmoid(3 * x + math.log(1 / 9))
    model = sigmoid(3 * x + math.log(1 / 9) + rng.normal(size=400))
    logits = x + 0.7 * rng.normal(size=400)
    truth = float(np.where(logits > 0, posterior, 1 - posterior).mean())
    both = (posterior[ends] for ends in np.triu_indices(400, 1))
    agree = float(PairLabels.from_posteriors(*both).similarity.mean())
    means: dict[str, list[float]] = {"weighted": [], "plain": []}
    covered = {"weighted": 0, "plain": 0}
    for _ in range(30):
        chosen = choose_pairs(model, 150, rng, candidates=64)
        ends = np.array([pair[:2] for pair in chosen])
        labels = PairLabels.from_posteriors(posterior[ends[:, 0]], posterior[ends[:, 1]])
        corrected = inclusion_weights([pair.weight for pair in chosen], items=400)
        for name, weight in (("weighted", corrected), ("plain", np.ones(150))):
            means[name].append(estimate_prior(labels.similarity, weight=weight).mean_similarity)
            options = {"weight": weight, "items": ends}
            estimate = estimate_accuracy(*logits[ends.T], labels, **options).informed
            covered[name] += estimate.low <= truth <= estimate.high
    error = np.std(means["weighted"]) / math.sqrt(30)
    # A ratio of two means has a bias of the order 1/n, here far below that of plain means.
    assert abs(np.mean(means["weighted"]) - agree) < 3 * error + 0.005
    assert abs(agree - np.mean(means["plain"])) > 0.1
    assert covered["weighted"] >= 25
    assert covered["plain"] <= 15


# ---- with a store -----------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make(tmp_path / "p", items=30, pairs=6, mode="information")


def answer_all(store: Store, who: int) -> int:
    """By which of two items has the larger number."""
    count = 0
    while (task := store.next_task(who)) is not None:
        left, right = (store.items.ids.index(item) for item in (task.left, task.right))
        r, q = sigmoid(np.array([left - 14.5, right - 14.5]))
        submit(store, who, task.pair, similarity=r * q + (1 - r) * (1 - q), difference=q - r)
        count += 1
    return count


def test_open_pairs_are_replenished(project: Project) -> None:
    rng = np.random.default_rng(0)
    with Store.create(project) as store:
        ann, _ = store.add_annotator("ann")
        assert replenish(store, [], rng, ahead=6) == 0
        assert answer_all(store, ann.id) == 6
        assert replenish(store, [], rng, ahead=4) == 4  # no model yet
        answer_all(store, ann.id)
        assert replenish(store, np.where(np.arange(30) < 2, 0.5, 0.0), rng, ahead=8) == 8
        pairs = store.pairs()
        assert len({frozenset((pair.left, pair.right)) for pair in pairs}) == 18
        assert [pair.weight for pair in pairs[:10]] == pytest.approx([1.0] * 10)
        assert len({pair.weight for pair in pairs[10:]}) > 1
        assert np.mean([bool({"i0", "i1"} & {pair.left, pair.right}) for pair in pairs[10:]]) > 0.6
        weights = inclusion_weights([pair.weight for pair in pairs], len(store.items))
        assert weights.mean() == pytest.approx(1)


def test_pairs_are_chosen_by_the_model_of_the_forecast(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a thread, as the answers come in; the model is that of a process of its own."""
    with Store.create(project) as store:
        ann, _ = store.add_annotator("ann")
        forecast = Forecast(project.folder)
        with choosing(store, forecast, ahead=10, every=0.01):
            wait_until(lambda: answer_all(store, ann.id) >= 0 and len(store.answers()) >= 50)
            wait_until(lambda: forecast.posterior)
            chosen = len(store.pairs())
            more = chosen + 10
            wait_until(lambda: answer_all(store, ann.id) >= 0 and len(store.pairs()) >= more)
        assert np.corrcoef(forecast.posterior, np.arange(30))[0, 1] > 0.8
        assert len({pair.weight for pair in store.pairs()[chosen:]}) > 1
        nowhere = np.full(30, np.nan)
        monkeypatch.setattr("pairlearn_studio.stopping.quick_model", lambda *_, **__: nowhere)
        part = list(forecast_parts(store))[-1]
        assert "not finite" in part["needs"] and "posterior" not in part
        assert not [t for t in threading.enumerate() if t.name.startswith("pairlearn-replenish")]


def test_items_that_no_model_can_learn_from_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "items.csv").write_text("id,name\na,\nb,\nc,\n")
    with pytest.raises(ProjectError, match="no model can choose by these items"):
        create_project(tmp_path / "p", tmp_path / "items.csv", mode="information")
    images = make_project(tmp_path / "q", "image", pairs=3)[0].items_path
    made, _ = create_project(tmp_path / "r", images, mode="information")
    assert made.plan.mode == "information"
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ProjectError, match=r"(?i)pillow.*use mode 'uniform'"):
        create_project(tmp_path / "s", images, mode="information")
    assert not (tmp_path / "p").exists() and not (tmp_path / "s").exists()
    with pytest.raises(ProjectError, match=r"(?i)pillow.*use mode 'uniform'"):
        serve(made.folder, port=0, ready=pytest.fail)
