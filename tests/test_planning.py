"""Plans against simulated tables of the planned size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pairlearn import Judgements, PairLabels
from pairlearn.check.planning import (
    annotator_accuracy,
    annotator_strength,
    plan,
    plan_classes,
)
from pairlearn.evaluation import estimate_accuracy, estimate_class_accuracy
from pairlearn.evaluation.judged import proportion


def instances(
    rng: np.random.Generator, n: int, accuracy: float, prior: float, strength: float
) -> tuple[Any, Any, Any]:
    """Posteriors, decisions and classes; decisions are flipped down to the accuracy."""
    y = rng.random(n) < prior
    u = rng.normal(np.where(y, strength / 2, -strength / 2), 1)
    r = 1 / (1 + np.exp(-strength * u - math.log(prior / (1 - prior))))
    best = np.maximum(r, 1 - r).mean()
    flips = rng.random(n) < (best - accuracy) / (2 * best - 1)
    return r, (r > 0.5) ^ flips, y


def half_widths(tables: int, n: int, seed: int, *setting: float, reading: str = "informed") -> Any:
    rng = np.random.default_rng(seed)
    widths = []
    # One large population, so that all tables have the same expected accuracy.
    r, h, y = instances(rng, 100_000, *setting)
    if reading == "independent":
        h = y ^ (rng.random(len(y)) < 1 - setting[0])
    for _ in range(tables):
        rows = rng.integers(0, len(r), (2, n))
        labels = PairLabels.from_posteriors(*r[rows])
        estimate = getattr(estimate_accuracy(*(h[rows] - 0.5), labels), reading)
        widths.append((estimate.high - estimate.low) / 2)
    return np.array(widths)


@pytest.mark.parametrize(
    ("wanted", "accuracy", "prior", "strength"),
    [(0.02, 0.97, 0.1, 5.0), (0.04, 0.85, 0.5, 3.0), (0.02, 0.95, 0.8, 8.0)],
)
def test_tables_of_the_planned_size_have_the_half_width(
    wanted: float, accuracy: float, prior: float, strength: float
) -> None:
    planned = plan(wanted, accuracy=accuracy, prior=prior, strength=strength)
    setting = (accuracy, prior, strength)
    widths = half_widths(30, planned.pairs, 1, *setting)
    assert widths.mean() == pytest.approx(wanted, rel=0.1)
    widths = half_widths(30, planned.pairs_independent, 1, *setting, reading="independent")
    assert widths.mean() == pytest.approx(wanted, rel=0.1)
    share = proportion(accuracy, accuracy * (1 - accuracy) / planned.labels, planned.labels, 1.96)
    assert (share.high - share.low) / 2 == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize(("prior", "error"), [(0.02, 0.012), (0.3, 0.1)])
def test_a_smaller_half_width_never_takes_fewer_pairs(prior: float, error: float) -> None:
    """Rare positives are the hard case: few pairs hold none of them."""
    setting = (1 - error, prior, 5.0)
    plans = [plan(width, accuracy=1 - error, prior=prior) for width in (0.3, 0.1, 0.05, 0.03, 0.02)]
    for name in ("labels", "pairs", "pairs_independent"):
        sizes = [getattr(one, name) for one in plans]
        assert sizes == sorted(sizes)
    # Most tables of twice the size that is planned have a smaller half width; where positives are
    # rare some have none.
    assert np.median(half_widths(30, 2 * plans[3].pairs, 3, *setting)) < 0.03


def test_a_plan_names_its_assumptions() -> None:
    known = {"accuracy": 0.9, "prior": 0.3, "strength": 5.0, "errors": "misses", "seed": 4}
    planned = plan(0.03, **known, confidence=0.9)
    more = {"annotator_accuracy": annotator_accuracy(5.0, 0.3)}
    assert planned.to_dict()["assumptions"] == known | more
    assert (planned.half_width, planned.confidence) == (0.03, 0.9)
    assert plan(0.03, **known, confidence=0.9) == planned


def test_more_confidence_takes_more_pairs() -> None:
    """In the square of the quantiles: (2.576 / 1.645)² = 2.45."""
    ninety, ninety_nine = (
        plan(0.02, accuracy=0.9, prior=0.3, confidence=k).pairs for k in (0.9, 0.99)
    )
    assert ninety_nine / ninety == pytest.approx(2.45, rel=0.12)


# ---- the annotator ----------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("strength", [2.0, 5.0])
def test_strength_and_accuracy_of_an_annotator(prior: float, strength: float) -> None:
    r, _, y = instances(np.random.default_rng(0), 60_000, 0.6, prior, strength)
    labels = PairLabels.from_posteriors(*r.reshape(2, -1))
    assert annotator_strength(labels, prior) == pytest.approx(strength, rel=0.03)
    right = ((r > 0.5) == y).mean()
    assert annotator_accuracy(strength, prior) == pytest.approx(right, abs=0.004)


def test_certain_judgements_are_as_strong_as_can_be() -> None:
    assert annotator_strength(PairLabels([0.0, 1.0], [1.0, 0.0]), 0.5) > 15
    assert annotator_strength(PairLabels([0.5, 0.5], [0.0, 0.0]), 0.5) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"half_width": 0.0}, r"half_width must lie in \(0, 0.5\); got 0"),
        ({"half_width": math.nan}, r"half_width must lie in \(0, 0.5\); got nan"),
        ({"accuracy": 1.0}, r"accuracy must lie in \(0, 1\); got 1"),
        ({"accuracy": 0.4}, "accuracy must lie above 0.5, where a trained classifier is"),
        ({"prior": 0.0}, r"prior must lie in \(0, 1\); got 0"),
        ({"confidence": 1.0}, r"confidence must lie in \(0, 1\); got 1"),
        ({"strength": 50.0}, r"strength must lie in \[0.1, 20\]; got 50"),
        ({"strength": 1.0}, "accuracy 0.9 is more than the 0.7470 that an annotator of strength 1"),
        ({"errors": "some"}, "errors must be 'symmetric', 'misses' or 'alarms'; got 'some'"),
        (
            {"errors": "misses", "prior": 0.05},
            "accuracy 0.9 is out of reach with misses only at prior 0.05: the lowest is 0.95",
        ),
    ],
)
def test_wrong_requests(changes: dict[str, Any], message: str) -> None:
    wanted: dict[str, Any] = {"half_width": 0.02, "accuracy": 0.9, "prior": 0.3} | changes
    with pytest.raises(ValueError, match=message):
        plan(wanted.pop("half_width"), **wanted)


def test_strength_needs_pairs_that_differ() -> None:
    with pytest.raises(ValueError, match="no pair with both judgements and a similarity below 1"):
        annotator_strength(PairLabels([1.0, 0.5], [0.0, math.nan]), 0.5)


@pytest.mark.parametrize(("classes", "strength", "accuracy"), [(3, 4.0, 0.85), (6, 3.0, 0.7)])
def test_plans_of_several_classes(classes: int, strength: float, accuracy: float) -> None:
    """Tables of the planned size have the half width."""
    wanted = plan_classes(0.05, classes=classes, accuracy=accuracy, strength=strength)
    rng, widths, values = np.random.default_rng(1), [], []
    for _ in range(40):
        y = rng.integers(classes, size=2 * wanted.pairs)
        z = rng.normal(size=(len(y), classes))
        z[np.arange(len(y)), y] += strength / np.sqrt(2)
        r = np.exp(z * strength / np.sqrt(2))
        r /= r.sum(1, keepdims=True)
        spoilt = rng.random(len(y)) < (r.max(1).mean() - accuracy) / (r.max(1).mean() - 1 / classes)
        decided = np.where(spoilt, rng.integers(classes, size=len(y)), r.argmax(1))
        ends, k = np.arange(len(y)).reshape(-1, 2), rng.integers(classes, size=wanted.pairs)
        labels = PairLabels.from_posteriors(r[ends[:, 0], k], r[ends[:, 1], k])
        rows = Judgements.from_pairs(ends, labels, about=k).of_classes(range(classes))
        found = estimate_class_accuracy(*np.eye(classes)[decided[ends.T]], rows)
        widths.append((found.high - found.low) / 2)
        values.append(found.value)
    assert np.mean(values) == pytest.approx(accuracy, abs=0.02)
    assert np.mean(widths) == pytest.approx(0.05, rel=0.1)
    with pytest.raises(ValueError, match="accuracy must lie in"):
        plan_classes(0.05, classes=classes, accuracy=0.999, strength=strength)
