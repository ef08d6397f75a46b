"""Pairs whose ends depend on each other: `dependent-ends`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pairlearn import PairLabels
from pairlearn.check import CheckReport, check
from pairlearn.dependence import Dependence, correlated_ends
from pairlearn.io import ItemTable, read_items
from pairlearn.judgements import Judgements
from tables import changed, pair_table


def warning(report: CheckReport) -> str:
    """The message of the finding, empty if there is none."""
    found = [f for f in report.findings if f.code == "dependent-ends" and f.severity == "warning"]
    return "".join(finding.message for finding in found)


@pytest.mark.parametrize("chosen", ["near", "far", "at random"])
def test_pairs_that_were_chosen_by_their_features(chosen: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4))
    left, right = rng.permutation(400).reshape(2, 200)
    distance = ((x[left, None] - x[right]) ** 2).sum(2)
    if chosen != "at random":
        right = right[distance.argmin(1) if chosen == "near" else distance.argmax(1)]
    r = 1 / (1 + np.exp(-3 * x[:, 0]))
    labels = PairLabels.from_posteriors(r[left], r[right])
    judged = pair_table(left, right, labels.similarity, labels.difference)
    shuffled = rng.permutation(400)
    report = check(judged, items=ItemTable(shuffled, x[shuffled]))
    assert bool(message := warning(report)) == (chosen != "at random")
    if chosen != "at random":
        assert f"are {'more' if chosen == 'near' else 'less'} alike than pairs drawn at" in message
        assert ("so can the model" in message) == (chosen == "near")


def matched(columns: int) -> tuple[Judgements, ItemTable]:
    """Pairs of neighbours in the score that decides; most columns have nothing to do with it."""
    rng = np.random.default_rng(columns)
    x = rng.normal(size=(400, columns))
    z = x[:, :4] @ [2.4, -2.0, 1.4, 1.0]
    order, place = z.argsort(), rng.integers(390, size=200)
    ends = np.stack([order[place], order[place + rng.integers(1, 10, 200)]])
    left, right = rng.permuted(ends, axis=0)
    r = 1 / (1 + np.exp(-z))
    labels = PairLabels.from_posteriors(r[left], r[right])
    return pair_table(left, right, labels.similarity, labels.difference), ItemTable(None, x)


@pytest.mark.parametrize("columns", [6, 9, 16, 26])
def test_pairs_that_were_matched_on_a_score(columns: int) -> None:
    judged, items = matched(columns)
    message = warning(check(judged, items=items))
    assert "more alike" in message and "mostly in 'x0', " in message
    caveats = check(judged, items=items).summary.prior_caveats
    assert "the items of a pair were not drawn independently" in caveats
    at_random = changed(judged, right=np.random.default_rng(0).permutation(judged.right))
    at_random = at_random[at_random.left != at_random.right]
    assert not warning(check(at_random, items=items))


def test_words_that_all_items_share_do_not_make_pairs_alike(tmp_path: Path) -> None:
    judged, items = matched(6)
    right = np.random.default_rng(0).permutation(items.ids)[judged.right]
    columns = dict(zip(items.names, items.features.T, strict=True))
    frame = pd.DataFrame({"id": items.ids, **columns, "one": 0.1})
    frame["note"] = [f"ticket number {k} reported" for k in frame["id"]]
    frame.to_csv(tmp_path / "items.csv", index=False)
    at_random = changed(judged, right=right)[judged.left != right]
    report = check(at_random, items=read_items(tmp_path / "items.csv"))
    assert not warning(report)


@pytest.mark.parametrize("correlation", [0.05, 0.5])
def test_only_a_dependence_that_does_harm_is_reported(correlation: float) -> None:
    """With 10,000 pairs a correlation of 0.05 is significant, and harmless."""
    rng = np.random.default_rng(0)
    left, other = rng.normal(size=(2, 10_000, 3))
    right = correlation * left + np.sqrt(1 - correlation**2) * other
    found = correlated_ends(left, right, np.ones(10_000), Dependence.of(None, 10_000))
    if correlation < 0.15:
        assert found is None
    else:
        assert found is not None and found[0] == pytest.approx(correlation, abs=0.05)
        # A pair that counts for nothing is not looked at.
        right[5000:] = other[5000:]
        weight = np.repeat([0.0, 1.0], 5000)
        assert correlated_ends(left, right, weight, Dependence.of(None, 10_000)) is None
