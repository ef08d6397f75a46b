"""Simulated tables against the distribution they claim to come from."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pairlearn.io import read_items, read_pairs
from pairlearn.labels import PairLabels
from pairlearn.simulation import Simulation, simulate
from tables import contents, pair_ids


def odds(p: Any) -> Any:
    return p / (1 - p)


def same(first: Simulation, second: Simulation) -> bool:
    return bool(
        contents(first.items) == contents(second.items)
        and first.pairs == second.pairs
        and (first.positive == second.positive).all()
        and (first.posterior == second.posterior).all()
    )


@pytest.mark.parametrize("distribution", ["gaussians", "moons", "digits"])
def test_a_seed_determines_everything(distribution: Any) -> None:
    options: dict[str, Any] = {
        "pairs": 60, "annotators": 3, "noise": 0.1, "missing": 0.2, "preference": 0.2,
        "repeated": 0.5,
    }  # fmt: skip
    first, again, other = (simulate(distribution, seed=k, **options) for k in (1, 1, 2))
    assert same(first, again)
    assert not same(first, other)


@pytest.mark.parametrize("distribution", ["gaussians", "moons"])
@pytest.mark.parametrize("overlap", [0.05, 0.2])
def test_overlap_is_the_error_of_the_best_classifier(distribution: Any, overlap: float) -> None:
    simulated = simulate(distribution, pairs=6_000, prior=0.5, overlap=overlap)
    wrong = (simulated.posterior > 0.5) != simulated.positive
    assert wrong.mean() == pytest.approx(overlap, abs=0.011)  # about four standard errors


@pytest.mark.parametrize("distribution", ["gaussians", "moons"])
def test_posteriors_are_the_shares_of_positives(distribution: Any) -> None:
    simulated = simulate(distribution, pairs=8_000, prior=0.3, overlap=0.2)
    for low, high in itertools.pairwise(np.linspace(0, 1, 6)):
        bin_ = (simulated.posterior >= low) & (simulated.posterior < high)
        error = 4 * np.sqrt(0.25 / bin_.sum())
        assert simulated.positive[bin_].mean() == pytest.approx(
            simulated.posterior[bin_].mean(), abs=error
        )


def test_gaussian_posterior_by_hand() -> None:
    """Bayes' rule with the two densities, at distance 2·1.6449 for an overlap of 5%."""
    simulated = simulate(pairs=50, prior=0.3, overlap=0.05)
    x = simulated.items.features[:, 0].astype(float)
    plus, minus = (np.exp(-((x - centre) ** 2) / 2) for centre in (1.64485, -1.64485))
    assert simulated.posterior == pytest.approx(0.3 * plus / (0.3 * plus + 0.7 * minus), abs=1e-4)


def test_annotators_of_another_population_shift_the_odds() -> None:
    own, shifted = (simulate(pairs=30, prior=0.1, annotator_prior=p) for p in (None, 0.5))
    assert same_items(own, shifted)
    r = 1 / (1 + 1 / (odds(own.posterior) * odds(0.5) / odds(0.1)))
    expected = r[shifted.pairs.right] - r[shifted.pairs.left]
    assert shifted.pairs.difference == pytest.approx(expected, abs=1e-9)


def same_items(first: Simulation, second: Simulation) -> bool:
    return contents(first.items) == contents(second.items) and bool(
        (first.posterior == second.posterior).all()
    )


@pytest.mark.parametrize(("items", "spread"), [(50, 3), (31, 3), (300, 1), (15, 15)])
def test_items_recur_evenly_in_distinct_pairs(items: int, spread: int) -> None:
    simulated = simulate(pairs=100, items=items)
    assert (simulated.pairs.left != simulated.pairs.right).all()
    assert len({frozenset(pair) for pair in pair_ids(simulated.pairs).tolist()}) == 100
    uses = Counter(pair_ids(simulated.pairs).reshape(-1).tolist())
    counts = [uses[i] for i in range(items)]
    assert sum(counts) == 200
    assert max(counts) - min(counts) <= spread


def test_missing_and_preference_shares() -> None:
    simulated = simulate(pairs=200, missing=0.5, preference=0.25)
    table = simulated.pairs
    s, c = ~np.isnan(table.similarity), ~np.isnan(table.difference)
    choice = np.where(table.of("preference"), table.u, 0)
    ranked = choice != 0
    assert int(ranked.sum()) == 50
    assert not (ranked & (s | c)).any()
    assert (int((s & ~c).sum()), int((c & ~s).sum()), int((s & c).sum())) == (50, 50, 50)
    right_is_higher = simulated.posterior[table.right] > simulated.posterior[table.left]
    assert ((choice[ranked] == 1) == right_is_higher[ranked]).all()


def test_second_judgements_are_by_another_annotator() -> None:
    table = simulate(pairs=100, annotators=3, repeated=0.4).pairs
    assert len(table) == 140
    assert table.annotator is not None
    judges: dict[tuple[int, int], list[str]] = {}
    for pair, who in zip(pair_ids(table).tolist(), table.annotator.tolist(), strict=True):
        judges.setdefault(tuple(pair), []).append(who)
    assert Counter(map(len, judges.values())) == {1: 60, 2: 40}
    assert all(len(set(names)) == len(names) for names in judges.values())
    assert set(table.annotator) == {"annotator-1", "annotator-2", "annotator-3"}


def test_noise_stays_in_range_and_has_the_right_spread() -> None:
    clean, noisy = (simulate(pairs=4000, overlap=0.3, noise=x).pairs for x in (0.0, 0.1))
    assert noisy.similarity.min() >= 0
    assert noisy.similarity.max() <= 1
    assert np.abs(noisy.difference).max() <= 1
    middle = np.abs(clean.difference) < 0.6
    factor = noisy.difference[middle] / clean.difference[middle]
    assert (factor.mean(), factor.std()) == pytest.approx((1, 0.1), abs=0.01)


def test_data_sets() -> None:
    digits = simulate("digits", pairs=200, prior=0.4)
    assert digits.items.features.shape == (400, 64)
    assert int(digits.positive.sum()) == 160
    cancer = simulate("breast-cancer", pairs=400, prior=0.5)
    # 212 malignant tumours: at a prior of one half there are 424 items, and they recur.
    assert (len(cancer.items), len(cancer.pairs)) == (424, 400)
    assert cancer.items.names[0] == "mean_radius"
    for simulated, least in ((digits, 0.85), (cancer, 0.93)):
        right = (simulated.posterior > 0.5) == simulated.positive
        assert right.mean() > least
        assert right.mean() == pytest.approx(
            np.maximum(simulated.posterior, 1 - simulated.posterior).mean(), abs=0.03
        )


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_written_files_read_back(format: Any, tmp_path: Path) -> None:
    simulated = simulate(pairs=30, annotators=2, missing=0.3, preference=0.2, seed=3)
    paths = simulated.write(tmp_path / "new" / "folder", format)
    assert [path.name for path in paths] == [f"items.{format}", f"pairs.{format}", "truth.csv"]
    assert contents(read_items(paths[0])) == contents(simulated.items)
    assert read_pairs(paths[1]) == simulated.pairs
    with paths[2].open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id"]) for row in rows] == list(range(60))
    assert [row["class"] == "1" for row in rows] == simulated.positive.tolist()
    assert [float(row["posterior"]) for row in rows] == simulated.posterior.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distribution": "spirals"}, "distribution must be one of gaussians, moons, digits"),
        ({"pairs": 0}, "pairs must be at least 1; got 0"),
        ({"items": 1}, "items must be at least 2; got 1"),
        ({"items": 9, "pairs": 40}, "9 items make 36 pairs: ask for no more, or more items"),
        ({"annotators": 0}, "annotators must be at least 1; got 0"),
        ({"seed": -1}, "seed must be at least 0; got -1"),
        ({"prior": 1.0}, r"prior must lie in \(0, 1\); got 1"),
        ({"annotator_prior": 0.0}, r"annotator_prior must lie in \(0, 1\); got 0"),
        ({"missing": 1.5}, r"missing must lie in \[0, 1\]; got 1.5"),
        ({"missing": 0.7, "preference": 0.7}, "missing and preference are 1.4 together"),
        ({"noise": float("nan")}, "noise must be a finite number of at least 0"),
        ({"repeated": 0.5}, "repeated is 0.5: a second judgement needs two annotators"),
        ({"overlap": 0.6}, r"overlap must lie in \(0, 0.45\] for gaussians; got 0.6"),
        ({"distribution": "digits", "overlap": 0.1}, "overlap is fixed in digits"),
        (
            {"distribution": "breast-cancer", "items": 560, "prior": 0.5},
            "560 items of breast-cancer at prior 0.5 need 280 distinct positive .* there are 212",
        ),
    ],
)
def test_wrong_requests(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(**options)


def test_more_than_two_classes() -> None:
    made = simulate(pairs=900, classes=["cat", "dog", "a|b"], overlap=0.1, seed=3)
    rows = made.pairs.of_classes(made.names)
    assert rows.members().any(0).all()
    k = rows.members().argmax(1)
    expected = PairLabels.from_posteriors(*made.posterior[rows.ends, k[:, None]].T)
    assert rows.u == pytest.approx(expected.similarity, abs=1e-9)
    assert rows.v == pytest.approx(expected.difference, abs=1e-9)
    right = made.posterior.argmax(1) == made.positive
    assert right.mean() == pytest.approx(made.posterior.max(1).mean(), abs=0.03)
    assert rows.q is not None
    uniform, proposed = rows.q[:225], rows.q[225:]
    assert uniform == pytest.approx(1 / 3)
    # 1/q weighs rows of a class such that they stand for all rows.
    assert (1 / proposed) @ (k[225:] == 0) / 675 == pytest.approx(1, abs=0.15)
    own = np.take_along_axis(made.posterior[rows.ends].mean(1), k[:, None], 1).ravel()
    assert own[225:].mean() > own[:225].mean() + 0.1


def test_more_classes_are_gaussians() -> None:
    with pytest.raises(ValueError, match="three or more, from gaussians"):
        simulate("moons", classes=["a", "b", "c"])
