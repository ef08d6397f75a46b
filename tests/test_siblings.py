"""The sibling risks against exact enumeration of what an annotator can say.

Items, their classes and the statement about them are enumerated with their probabilities, so that
expectations are finite sums. The reference is the definition of the risk, as in test_risks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch

from pairlearn import Judgements, PairClassifier, make_risk
from pairlearn.judgements.kinds import code
from pairlearn.losses import LOSSES, make_loss
from pairlearn.risks import contract, pair_moments
from pairlearn.training.trainer import bind_risk
from test_risks import World, world

Rows = list[tuple[int, int, str, float, float, float]]  # both items, kind, u, v, probability


def pairs(w: World, say: Callable[[int, int], tuple[str, float, float] | None]) -> Rows:
    """All pairs and classes (+1 or −1) with the statement about them, if there is one."""
    rows = []
    for i, j in product(range(len(w.mass)), repeat=2):
        for y, y_prime in product((1, -1), repeat=2):
            chance = float(w.mass[i] * w.mass[j])
            for k, c in ((i, y), (j, y_prime)):
                r = float(w.posterior[k])
                chance *= r if c > 0 else 1 - r
            statement = say(y, y_prime)
            if statement is not None:
                rows.append((i, j, *statement, chance))
    return rows


def similar(y: int, y_prime: int) -> tuple[str, float, float]:
    return "similarity", float(y == y_prime), 0.0


def ordered(y: int, y_prime: int) -> tuple[str, float, float] | None:
    """Pairs in the wrong order are left out."""
    return None if y < y_prime else ("preference", -1.0, 0.0)


def outcome(y: int, y_prime: int) -> tuple[str, float, float]:
    return "both", float(y == y_prime), (y_prime - y) / 2


def mirrored(rows: Rows) -> Rows:
    """Half of the statements with the items exchanged."""
    return [(*row[:5], row[5] / 2) for row in rows] + [
        (j, i, name, -u, v, p / 2) for i, j, name, u, v, p in rows
    ]


def weighted(rows: Rows, share: float) -> Rows:
    """The rows with probabilities that sum to the share of a table that they are."""
    whole = sum(row[5] for row in rows)
    return [(*row[:5], share * row[5] / whole) for row in rows]


def about_items(w: World, name: str, chance: torch.Tensor, u: torch.Tensor, share: float) -> Rows:
    """One statement about single items, which stand twice in a row."""
    values = zip(u.tolist(), chance.tolist(), strict=True)
    return weighted([(i, i, name, value, value, p) for i, (value, p) in enumerate(values)], share)


def positives(w: World) -> Rows:
    ones = torch.ones_like(w.mass)
    known = about_items(w, "positive", w.mass * w.posterior, ones, 0.2)
    return known + about_items(w, "unlabelled", w.mass, ones, 0.8)


def similar_and_unlabelled(w: World) -> Rows:
    alike = [row for row in pairs(w, similar) if row[3] == 1]
    return weighted(alike, 0.6) + about_items(w, "unlabelled", w.mass, torch.ones_like(w.mass), 0.4)


STATED: dict[str, Callable[[World], Rows]] = {
    "sd": lambda w: pairs(w, similar),
    "su": similar_and_unlabelled,
    "nnpu-none": positives,
    "pcomp": lambda w: mirrored(pairs(w, ordered)),
    "sdpcomp": lambda w: pairs(w, outcome),
}


def table(rows: Rows) -> Judgements:
    i, j, names, u, v, chance = zip(*rows, strict=True)
    kinds = np.array([code(name) for name in names], np.int8)
    return Judgements(np.stack([i, j], 1), kinds, np.stack([u, v], 1), np.array(chance))


def expected(name: str, w: World, rows: Rows, loss: str) -> list[float]:
    """E[partial risks] over the statements."""
    risk, read = bind_risk(make_risk(name, prior=w.prior, loss=loss), table(rows))
    u, v, share = (torch.from_numpy(column) for column in (read.u, read.v, read.weight))
    z, z_prime = w.logit[read.ends[:, 0]], w.logit[read.ends[:, 1]]
    moments = pair_moments(z, z_prime, u, v, make_loss(loss), terms=4, share=share / share.sum())
    return contract(risk.table, moments).tolist()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", STATED)
def test_expectations_are_the_parts_of_the_risk(name: str, loss: str) -> None:
    for seed in range(4):
        w = world(seed)
        parts = expected(name, w, STATED[name](w), loss)
        assert parts == pytest.approx(w.true_parts(loss), abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_positive_confidences(loss: str) -> None:
    """Positive items with their posteriors: the risk, but for the factor π₊."""
    w = world(2)
    rows = about_items(w, "confidence", w.mass * w.posterior, w.posterior, 1.0)
    got = w.prior * np.array(expected("pconf", w, rows, loss))
    assert got == pytest.approx(w.true_parts(loss), abs=1e-9)


def test_any_number_of_groups() -> None:
    """Three groups with shares 0.9, 0.4 and 0.1, of different sizes."""
    w = world(3)
    of_class = torch.stack([1 - w.posterior, w.posterior]) * w.mass
    of_class = of_class / of_class.sum(1, keepdim=True)
    shares = torch.tensor([0.9, 0.4, 0.1], dtype=torch.float64).repeat_interleave(len(w.mass))
    mixed = shares * of_class[1].repeat(3) + (1 - shares) * of_class[0].repeat(3)
    sizes = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64).repeat_interleave(len(w.mass))
    z, chance = w.logit.repeat(3), mixed * sizes
    risk = make_risk("uu", w.prior).over(shares, shares, chance)
    moments = pair_moments(z, z, shares, shares, make_loss("logistic"), terms=4, share=chance)
    got = contract(risk.table, moments).tolist()
    assert got == pytest.approx(w.true_parts("logistic"), abs=1e-9)


def test_how_often_each_answer_was_collected_does_not_matter() -> None:
    """Three times as many similar as dissimilar pairs, or the other way round."""
    w = world(1)
    for name, share in (("sd", 0.75), ("sd", 0.1), ("sdpcomp", 0.9)):
        rows = STATED[name](w)
        same = weighted([row for row in rows if row[3] == 1], share)
        apart = weighted([row for row in rows if row[3] == 0], 1 - share)
        got = expected(name, w, same + apart, "logistic")
        assert got == pytest.approx(w.true_parts("logistic"), abs=1e-9), (name, share)


def test_nonnegative_risk_by_hand() -> None:
    """π₊ = 0.3, hinge: positives cost 2 as positives and 0 as negatives, or the other way round.

    uPU is 0.3·R_p⁺ + R_u⁻ − 0.3·R_p⁻; nnPU takes no less than 0 for the difference.
    """
    share, other = torch.tensor([1.0, 1.0]), torch.tensor([0.3, 0.3])
    # Known positives at z = 1: R_p⁺ = 0, R_p⁻ = 2. Unlabelled at z = −1: R_u⁻ = 0.
    batch = torch.tensor([1.0, 1.0]), torch.tensor([-1.0, -1.0]), share, other
    values = [
        float(make_risk(f"nnpu{c}", 0.3, loss="hinge")(*batch)) for c in ("-none", "", "-abs")
    ]
    assert values == pytest.approx([-0.6, 0, 0.6], abs=1e-6)


def test_published_weights() -> None:
    """At π₊ = 0.2, of single rows with hinge losses of 2 and 0, as the papers print them."""
    up, down = torch.tensor([1.0]), torch.tensor([-1.0])
    # Pcomp, x more positive than x': ℓ₊(x) 1, ℓ₊(x') −π₋ = −0.8, ℓ₋(x) −π₊ = −0.2, ℓ₋(x') 1.
    preferences = Judgements.from_columns([[0, 1]], {"preference": [-1.0]})
    risk, read = bind_risk(make_risk("pcomp", 0.2, loss="hinge"), preferences)
    u, v = torch.from_numpy(read.u), torch.from_numpy(read.v)
    parts = [risk.partial_risks(z, z_prime, u, v) / 2 for z in (down, up) for z_prime in (down, up)]
    assert torch.stack(parts).flatten().tolist() == pytest.approx(
        [1 - 0.8, 0, 1, 1, -0.8, -0.2, 0, 1 - 0.2], abs=1e-6
    )


@pytest.mark.parametrize("name", STATED)
def test_soft_or_unknown_statements_are_refused(name: str) -> None:
    rows = Judgements.from_columns([[0, 1]], {"difference": [0.5]})
    with pytest.raises(ValueError, match=f"risk '{name}.*' reads .*table also has difference"):
        bind_risk(make_risk(name, 0.2), rows)


def test_errors_say_what_to_do() -> None:
    soft = Judgements.from_columns([[0, 1]], {"similarity": [0.5]})
    with pytest.raises(ValueError, match="similarity is 0\\.5, and this risk reads hard answers"):
        bind_risk(make_risk("sd", 0.2), soft)
    with pytest.raises(ValueError, match=r"sd is undefined at prior ½.*pcomp"):
        make_risk("sd", 0.5)
    ones = torch.ones(3)
    with pytest.raises(ValueError, match="needs items from two populations at least"):
        make_risk("uu", 0.2)(ones, ones, ones, ones)


@pytest.mark.parametrize("name", ["sd", "pcomp", "sdpcomp", "nnpu", "uu"])
def test_a_classifier_learns_from_them(name: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2400, 2)).astype(np.float32)
    y = x[:, 0] > 0.8
    ends = rng.permutation(2400).reshape(-1, 2)
    left, right = y[ends].T.astype(float)
    columns = {
        "sd": {"similarity": left == right},
        "pcomp": {"preference": np.where(left >= right, -1.0, np.nan)},
        "sdpcomp": {"similarity": left == right, "difference": right - left},
    }.get(name, {})
    rows = Judgements.from_columns(ends, columns)
    if name == "uu":
        of = rng.random(2400) < np.where(y, 0.8, 0.2)
        share = np.where(of, y[of].mean(), y[~of].mean())
        alone = np.stack([np.arange(2400), np.full(2400, -1)], 1)
        rows = Judgements.from_columns(alone, {"share": share, "group": of})
    if name == "nnpu":
        known = np.flatnonzero(y)[:100]
        parts = ("positive", known), ("unlabelled", np.arange(2400))
        rows = Judgements.concatenate(
            [Judgements.about_items(kind, of, np.ones(len(of))) for kind, of in parts]
        )
    classifier = PairClassifier(
        risk=f"{name}-none", model="linear", prior=float(y.mean()), random_state=0, epochs=30
    )
    accuracy = np.mean((classifier.fit(x, rows).predict(x) == 1) == y)
    assert accuracy > 0.93  # the larger class has 0.78
