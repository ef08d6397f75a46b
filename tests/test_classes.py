"""K classes: sets, their log-odds, K-class risks, training; by enumeration of small worlds."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

from pairlearn.columns import RowError
from pairlearn.judgements import Judgements
from pairlearn.judgements.sets import join_set, propose_sets, read_sets, split_set
from pairlearn.labels import PairLabels
from pairlearn.losses import log_odds, log_same
from pairlearn.risks import ClassRisk, PairLikelihood
from pairlearn.training import Objective, Recipe, train
from pairlearn.training.objective import at_sets
from pairlearn.training.trainer import module_logits

NAMES = ["cat", "cow", "dog"]


def world(classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, torch.Tensor]:
    """Chances (m,), posteriors (m, K) and outputs (m, K) of a few kinds of items."""
    rng = np.random.default_rng(seed)
    chance, r = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(classes), 4)
    return chance, r, torch.from_numpy(rng.normal(size=(4, classes)) * 2)


def pairs_of(chance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All ordered pairs of kinds of items, and their chances."""
    ends = np.array(list(itertools.product(range(len(chance)), repeat=2)))
    return ends, chance[ends].prod(1)


# ---- sets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [["cat"], ["dog", "a|b"], ['say "x"', "a b", "c"]])
def test_sets_survive_being_written(names: list[str]) -> None:
    assert split_set(join_set(names)) == tuple(sorted(names))


def test_sets_are_written_in_one_way() -> None:
    assert read_sets(["dog|cat", "cat | dog", "", 7]).tolist() == ["cat|dog", "cat|dog", "", "7"]


@pytest.mark.parametrize("text", ["cat||dog", '"cat', "|"])
def test_unreadable_sets_are_refused(text: str) -> None:
    with pytest.raises(RowError, match="about is"):
        read_sets(["cat", text])


def soft(about: Any, labels: Any = None) -> Judgements:
    n = len(about)
    ends = np.arange(2 * n).reshape(n, 2)
    return Judgements.from_pairs(ends, [[0.6, 0.3]] * n if labels is None else labels, about=about)


def test_the_classes_are_those_that_are_named() -> None:
    table = soft(["dog|cat", "cow"])
    assert table.of_classes().classes == ("cat", "cow", "dog")
    assert table.of_classes().members().astype(int).tolist() == [[1, 0, 1], [0, 1, 0]]


def test_two_classes_are_those_without_sets() -> None:
    table = soft(["cat", "dog"]).of_classes(["cat", "dog"])
    assert table == soft(["", ""], [[0.6, -0.3], [0.6, 0.3]])
    assert table.about is None


def test_one_name_is_set_against_the_rest() -> None:
    assert soft(["cat", ""]).of_classes() == soft(["", ""])


def test_every_kind_says_the_same_about_the_complement() -> None:
    rng = np.random.default_rng(0)
    for name, values in {
        "both": [0.6, 0.3], "similarity": [0.6, 0], "difference": [0, 0.3], "label": [1, 0],
        "confidence": [0.3, 0], "preference": [1, 0], "comparison": [-2, 0], "positive": [1, 0],
    }.items():  # fmt: skip
        from pairlearn.judgements.kinds import kind

        p, q = rng.random(2)
        u, v = np.array(values, float)
        u2, v2 = kind(name).complement(np.array([[u, v]]))[0]
        one = kind(name).divergence(*(np.array([a]) for a in (p, q, u, v)))
        other = kind(name).divergence(*(np.array([a]) for a in (1 - p, 1 - q, u2, v2)))
        assert one == pytest.approx(other), name


def test_statements_need_a_set() -> None:
    message = r"a similarity with a difference is about a class, .* \(rows without: 1\)"
    with pytest.raises(ValueError, match=message):
        soft(["cat", ""]).of_classes(NAMES)
    with pytest.raises(ValueError, match="all classes"):
        soft(["cat|dog|cow"]).of_classes(NAMES)
    with pytest.raises(ValueError, match="'horse', and the classes are"):
        soft(["horse"]).of_classes(NAMES)


def test_sets_are_kept_by_tables() -> None:
    table = Judgements.from_pairs([[0, 1], [2, 3]], [[0.6, 0.3]] * 2, about=["a", "b"], q=[0.2, 1])
    whole = Judgements.concatenate([table[1:], table[:1]])
    assert whole.sets.tolist() == ["b", "a"]
    assert whole.inverse_q.tolist() == [1, 5]
    assert whole != Judgements.concatenate([table[1:], table[1:]])


def test_single_statements_about_different_sets_share_no_row() -> None:
    labels = Judgements.about_items("label", range(5), np.ones(5), about=["a", "b", "a", "b", "c"])
    rows = labels.of_classes().packed(0)
    assert sorted(rows.sets.tolist()) == ["a", "b", "c"]
    assert {tuple(sorted(ends)) for ends in rows.ends.tolist()} == {(0, 2), (1, 3), (4, 4)}


# ---- the log-odds of a set ---------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 4, 7])
def test_log_odds_are_those_of_the_set(classes: int) -> None:
    _, _, z = world(classes, 0)
    p = z.softmax(1).numpy()
    for members in itertools.product([False, True], repeat=classes):
        if any(members) and not all(members):
            inside = p[:, list(members)].sum(1)
            got = log_odds(z, torch.tensor(members)).numpy()
            assert got == pytest.approx(np.log(inside / (1 - inside)), abs=1e-9)


@pytest.mark.parametrize("classes", [2, 3, 4, 7])
def test_the_probability_of_one_class(classes: int) -> None:
    _, _, z = world(classes, 1)
    p = z.softmax(1).numpy()
    same, different = log_same(z[:2], z[2:]).exp().numpy()
    joint = p[:2, :, None] * p[2:, None, :]
    agree = np.eye(classes, dtype=bool)
    assert same == pytest.approx(joint[:, agree].sum(1), abs=1e-9)
    assert different == pytest.approx(joint[:, ~agree].sum(1), abs=1e-9)


def test_gradients_are_exact() -> None:
    z = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    members = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1]], dtype=torch.bool)
    z, z_prime = z.requires_grad_(), (z.detach() * 0.7 + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: log_odds(x, members), z)
    assert torch.autograd.gradcheck(log_same, (z, z_prime))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_large_outputs_are_safe(dtype: torch.dtype) -> None:
    z = torch.tensor([[1e4, -1e4, 0, 1e4], [-1e4, 1e4, 1e4, 0]], dtype=dtype, requires_grad=True)
    members = torch.tensor([[True, False, False, False]])
    losses = [log_odds(z, members), log_same(z, z.flip(1)), log_same(z, z)]
    sum(loss.sum() for loss in losses).backward()
    assert all(bool(torch.isfinite(loss).all()) for loss in losses)
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())


# ---- the objective -----------------------------------------------------------------------------


def loss_of(objective: Objective, rows: Judgements, z: torch.Tensor) -> torch.Tensor:
    """The objective of rows about kinds of items with these outputs."""
    left, right = z[rows.ends.T]
    share = torch.from_numpy(objective.weight_columns(rows) / len(rows)).to(z)
    u, v = torch.from_numpy(rows.values.T.copy()).to(z)
    members = torch.from_numpy(rows.members().T.copy())
    return objective(left, right, u, v, share, total=lambda x: x, members=members)


@pytest.mark.parametrize("classes", [3, 4, 7])
def test_the_likelihood_is_least_at_the_posteriors(classes: int) -> None:
    chance, r, _ = world(classes, 2)
    ends, share = pairs_of(chance)
    n = len(ends)
    tables = []
    for k in range(classes - 1):
        labels = PairLabels.from_posteriors(r[ends[:, 0], k], r[ends[:, 1], k])
        about = np.full(n, str(k))
        tables.append(Judgements.from_pairs(ends, labels, about=about, weight=share))
    same = (r[ends[:, 0]] * r[ends[:, 1]]).sum(1)
    tables.append(Judgements.from_columns(ends, {"similarity": same}, share))
    rows = Judgements.concatenate(tables).of_classes(range(classes))
    objective = Objective(PairLikelihood(), rows.kinds()).to(torch.device("cpu"), torch.float64)

    z = torch.from_numpy(np.log(r)).requires_grad_()
    least = loss_of(objective, rows, z)
    (slope,) = torch.autograd.grad(least, z)
    assert slope.abs().max() < 1e-9
    for seed in range(5):
        _, _, other = world(classes, seed)
        assert loss_of(objective, rows, other) > least


def test_at_sets_reads_sets_and_pairs_of_all_classes() -> None:
    _, _, z = world(3, 3)
    members = torch.tensor([[True, False], [True, False], [False, False]])
    left, right, same = at_sets(z[:2], z[2:], members)
    p = z.softmax(1)
    assert left[0].sigmoid() == pytest.approx(float(p[0, :2].sum()))
    assert right[0].sigmoid() == pytest.approx(float(p[2, :2].sum()))
    assert same is not None
    assert bool(same[:, 0].isnan().all())
    assert same[0, 1].exp() == pytest.approx(float(p[1] @ p[3]))


# ---- risks of K classes ------------------------------------------------------------------------

AFFINE = ["confdiff", "sconfconfdiff", "nonnegative"]
OTHERS = ["sconf", "convex-0.5"]


@pytest.mark.parametrize("classes", [2, 3, 4, 7])
@pytest.mark.parametrize("name", AFFINE + OTHERS)
@pytest.mark.parametrize("asked", ["all", "one"])
def test_class_risks_are_unbiased(name: str, classes: int, asked: str) -> None:
    for seed in range(3):
        chance, r, z = world(classes, seed)
        ends, share = pairs_of(chance)
        prior = chance @ r
        truth = -(chance[:, None] * r * z.log_softmax(1).numpy()).sum()
        risk = ClassRisk(name, prior.tolist())
        s = r[ends[:, 0]] * r[ends[:, 1]] + (1 - r[ends[:, 0]]) * (1 - r[ends[:, 1]])
        c = r[ends[:, 1]] - r[ends[:, 0]]
        weight = np.tile(share[:, None] * len(ends), (1, classes))
        if asked == "one":  # each class in a row of its own, drawn with a chance that varies
            q = np.random.default_rng(seed).dirichlet(np.ones(classes), len(ends))
            rows, k = (a.ravel() for a in np.indices((len(ends), classes)))
            ends, s, c = ends[rows], s[rows], c[rows]
            drawn = q[rows, k] * share[rows] * len(rows)
            weight = np.where(np.arange(classes) == k[:, None], (drawn / q[rows, k])[:, None], 0.0)
        tensors = [torch.from_numpy(a) for a in (s, c, weight)]
        left, right = z[ends.T]
        assert float(risk(left, right, *tensors)) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("name", AFFINE)
def test_the_objective_is_the_class_risk(name: str) -> None:
    chance, r, z = world(3, 5)
    ends, _ = pairs_of(chance)
    n, rng = len(ends), np.random.default_rng(0)
    k, q = rng.integers(3, size=n), rng.random(n)
    labels = PairLabels.from_posteriors(r[ends[:, 0], k], r[ends[:, 1], k])
    rows = Judgements.from_pairs(ends, labels, about=k, q=q).of_classes(range(3))
    risk = ClassRisk(f"{name}-abs", [0.2, 0.3, 0.5])
    objective = Objective(risk, rows.kinds()).to(torch.device("cpu"), torch.float64)
    left, right = z[rows.ends.T]
    weight = rows.members() / q[:, None] / (1 / q).mean()
    s, c = (np.broadcast_to(column[:, None], (n, 3)) for column in rows.values.T)
    expected = risk(left, right, *(torch.from_numpy(a.copy()) for a in (s, c, weight)))
    assert float(objective.of(rows, left, right)) == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("name", [*AFFINE, "likelihood"])
def test_gradients_of_risks_are_exact_and_large_outputs_safe(name: str) -> None:
    _, r, z = world(3, 6)
    ends, k = np.array([[0, 1], [2, 3], [1, 2]]), np.array([0, 1, 2])
    labels = PairLabels.from_posteriors(*r[ends, k[:, None]].T)
    tables = [Judgements.from_pairs(ends, labels, about=k)]
    if name == "likelihood":
        same = {"similarity": (r[ends[:, 0]] * r[ends[:, 1]]).sum(1)}
        tables += [Judgements.from_columns(ends, same), Judgements.from_pairs(
            ends, labels, about=["0|1", "1|2", "2"])]  # fmt: skip
    rows = Judgements.concatenate(tables).of_classes(range(3))
    risk = PairLikelihood() if name == "likelihood" else ClassRisk(name, [0.2, 0.3, 0.5])
    objective = Objective(risk, rows.kinds()).to(torch.device("cpu"), torch.float64)

    assert torch.autograd.gradcheck(lambda z: loss_of(objective, rows, z), z.requires_grad_())
    large = (1e4 * z.detach().sign()).float().requires_grad_()
    loss = loss_of(objective.to(torch.device("cpu"), torch.float32), rows, large)
    loss.backward()
    assert large.grad is not None
    assert bool(torch.isfinite(loss)) and bool(torch.isfinite(large.grad).all())


def test_class_risks_say_what_they_read() -> None:
    with pytest.raises(ValueError, match="is not affine"):
        ClassRisk("likelihood", [0.2, 0.3, 0.5])
    risk = ClassRisk("confdiff", [0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="not known classes: use risk='likelihood'"):
        Objective(risk, ("label",))
    rows = soft(["cat|dog"]).of_classes(NAMES)
    with pytest.raises(ValueError, match=r"row 0 is about cat\|dog"):
        Objective(risk, rows.kinds()).weight_columns(rows)


# ---- training ----------------------------------------------------------------------------------


def three_gaussians(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Features, posteriors and classes of three classes around the corners of a triangle."""
    rng = np.random.default_rng(seed)
    angles = 2 * math.pi * np.arange(3) / 3
    centres = 2 * np.stack([np.cos(angles), np.sin(angles)], 1)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = (centres[y] + rng.normal(size=(n, 2))).astype(np.float32)
    odds = x @ centres.T + np.log([0.5, 0.3, 0.2])
    p = np.exp(odds - odds.max(1, keepdims=True))
    return x, p / p.sum(1, keepdims=True), y


RECIPE = Recipe(40, 32, 1e-2, 1e-5, 20, schedule="cosine")


@pytest.mark.parametrize("said", ["classes", "same and labels", "partial labels", "sets"])
def test_training_finds_the_classes(said: str) -> None:
    x, r, y = three_gaussians(900)
    rng = np.random.default_rng(1)
    ends = rng.permutation(900).reshape(-1, 2)
    n = len(ends)
    if said == "partial labels":
        sets = [f"{k}|{rng.choice([j for j in range(3) if j != k])}" for k in y]
        table = Judgements.about_items("label", range(900), np.ones(900), about=sets)
    elif said == "same and labels":
        same = Judgements.from_columns(ends, {"similarity": (r[ends[:, 0]] * r[ends[:, 1]]).sum(1)})
        known = Judgements.about_items("label", range(30), np.ones(30), about=y[:30])
        table = Judgements.concatenate([same, known])
    else:
        k, q = propose_sets(r, ends, 0.3, seed=0)
        labels = PairLabels.from_posteriors(*r[ends, k[:, None]].T)
        about = k if said == "classes" else [join_set({"0", "1", "2"} - {str(c)}) for c in k]
        if said == "sets":
            labels = PairLabels(labels.similarity, -labels.difference)
        table = Judgements.from_pairs(ends, labels, about=about, q=q)
    rows = table.of_classes(range(3)).packed(0)
    trained = train(x, rows, PairLikelihood(correction="abs"), "linear", RECIPE)
    test, best, truth = three_gaussians(4000, 7)
    assert trained.order is not None
    right = module_logits(trained.module, test)[:, trained.order].argmax(1) == truth
    assert right.mean() > (best.argmax(1) == truth).mean() - 0.015
    assert n == 450


def test_a_prior_fixes_the_level_of_differences() -> None:
    x, r, _ = three_gaussians(900)
    ends = np.arange(900).reshape(-1, 2)
    k = np.random.default_rng(0).integers(3, size=450)
    c = np.diff(r[ends, k[:, None]], axis=1)[:, 0]
    columns = {"difference": c}
    rows = Judgements.from_columns(ends, columns, about=k).of_classes(range(3))
    prior = r.mean(0)
    trained = train(
        x, rows, PairLikelihood(correction="abs"), "linear", RECIPE, held_prior=prior.tolist()
    )
    z = module_logits(trained.module, x)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    assert p.mean(0) == pytest.approx(prior, abs=0.03)


def test_proposals_follow_the_predictions() -> None:
    predictions = np.array([[0.8, 0.2, 0.0], [0.2, 0.6, 0.2]])
    ends = np.tile([0, 1], (40_000, 1))
    about, q = propose_sets(predictions, ends, 0.3, seed=1)
    chances = 0.7 * np.array([0.5, 0.4, 0.1]) + 0.1
    assert np.bincount(about) / len(about) == pytest.approx(chances, abs=0.01)
    assert q == pytest.approx(chances[about])
    with pytest.raises(ValueError, match="share_uniform must lie"):
        propose_sets(predictions, ends, 0.0)
    with pytest.raises(ValueError, match="sum to one; row 1"):
        propose_sets([[0.5, 0.5], [0.5, 0.6]], [[0, 1]])
