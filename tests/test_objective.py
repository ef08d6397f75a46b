"""The objective of mixed rows, against probabilities enumerated over the classes."""

import itertools
import math

import numpy as np
import pytest
import torch

from pairlearn import make_risk
from pairlearn.data.sampling import permutation, stream
from pairlearn.estimators.objective import PairObjective, log_different, log_not_reversed
from pairlearn.estimators.rows import (
    KINDS,
    Rows,
    held_out_rows,
    judged_rows,
    labelled_rows,
)
from pairlearn.models import make_model
from pairlearn.training import Fleet, Group, Member
from pairlearn.training.ranks import ALONE

DOUBLE = torch.float64
NAN = math.nan


def probability(z, z_prime, event):
    """P of an event in (y, y') for two independent classes with these log-odds."""
    p = {True: 1 / (1 + math.exp(-z)), False: 1 / (1 + math.exp(z))}
    q = {True: 1 / (1 + math.exp(-z_prime)), False: 1 / (1 + math.exp(z_prime))}
    return sum(p[y] * q[w] for y, w in itertools.product((True, False), repeat=2) if event(y, w))


def table(kinds, seed=0, n=40):
    """Rows of the given kinds with soft labels and uneven weights."""
    rng = np.random.default_rng(seed)
    r, r_prime = rng.random((2, n))
    kind = np.array([KINDS.index(kinds[i % len(kinds)]) for i in range(n)], dtype=np.int8)
    s, c = r * r_prime + (1 - r) * (1 - r_prime), r_prime - r
    name = np.array(KINDS)[kind]
    u = np.select([np.isin(name, ["both", "similarity"]), name == "labelled"], [s, r > 0.5], 0.0)
    v = np.select([np.isin(name, ["both", "difference"]), name == "labelled"], [c, r_prime > 0.5])
    return Rows(np.arange(2 * n).reshape(n, 2), kind, u, v.astype(float), rng.random(n) + 0.5)


def value(objective, rows, z, batch=None):
    """The objective of some of the rows, with the weights that the whole table gives."""
    chosen = slice(None) if batch is None else batch
    columns = [torch.as_tensor(c)[chosen] for c in objective.columns]
    u, v = torch.from_numpy(rows.u)[chosen], torch.from_numpy(rows.v)[chosen]
    return objective(
        z[0][chosen], z[1][chosen], u, v, torch.full_like(u, 1 / len(u)), *columns, total=ALONE.sum
    )


def logits(n, seed=1, scale=2.0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(scale * rng.normal(size=(2, n)))


def by_enumeration(row_kind, z, z_prime, u, v):
    """What one row costs, halved, from the probabilities of its outcomes."""
    same = probability(z, z_prime, lambda y, w: y == w)
    left = probability(z, z_prime, lambda y, w: y and not w)
    right = probability(z, z_prime, lambda y, w: w and not y)
    if row_kind == "both":
        outcomes = {(1 - u - v) / 2: left, (1 - u + v) / 2: right, u: same}
        return -sum(said * math.log(p) for said, p in outcomes.items()) / 2
    if row_kind == "similarity":
        return -(u * math.log(same) + (1 - u) * math.log(left + right)) / 2
    if row_kind == "preference":
        return -math.log(1 - left) / 2
    p, q = (probability(one, 0.0, lambda y, w: y) for one in (z, z_prime))
    if row_kind == "difference":
        total = min(max(p + q, abs(v)), 2 - abs(v))
        u, v = (total - v) / 2, (total + v) / 2
    likelihoods = u * math.log(p) + (1 - u) * math.log(1 - p)
    return -(likelihoods + v * math.log(q) + (1 - v) * math.log(1 - q)) / 2


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_row_costs_what_its_outcomes_say(kind):
    rows, z = table([kind]), logits(40)
    objective = PairObjective(make_risk("likelihood-abs"), rows, dtype=DOUBLE)
    costs = [by_enumeration(kind, *map(float, (*z[:, i], rows.u[i], rows.v[i]))) for i in range(40)]
    expected = np.average(costs, weights=rows.weight)
    assert float(value(objective, rows, z)) == pytest.approx(expected, rel=1e-9)


def test_a_mixed_table_costs_the_weighted_mean_of_its_rows():
    rows, z = table(KINDS), logits(40)
    objective = PairObjective(make_risk("likelihood-none"), rows, dtype=DOUBLE)
    costs = [
        by_enumeration(KINDS[rows.kind[i]], *map(float, (*z[:, i], rows.u[i], rows.v[i])))
        for i in range(40)
    ]
    expected = np.average(costs, weights=rows.weight)
    assert float(value(objective, rows, z)) == pytest.approx(expected, rel=1e-9)


def test_batches_average_to_the_whole_table_whatever_kinds_fall_into_them():
    rows, z = table(KINDS), logits(40)
    objective = PairObjective(make_risk("likelihood-none"), rows, dtype=DOUBLE)
    parts = [float(value(objective, rows, z, slice(k, k + 8))) for k in range(0, 40, 8)]
    assert np.mean(parts) == pytest.approx(float(value(objective, rows, z)), rel=1e-12)


@pytest.mark.parametrize("name", ["sconfconfdiff-abs", "confdiff-relu", "convex-0.5-none"])
@pytest.mark.parametrize("kind", ["both", "similarity", "difference"])
def test_affine_risks_use_sconf_and_confdiff_where_a_judgement_stands_alone(name, kind):
    rows, z = table([kind]), logits(40)
    rows = Rows(rows.ends, rows.kind, rows.u, rows.v, np.ones(40))
    correction = name.rsplit("-", 1)[1]
    alone = {
        "both": name,
        "similarity": f"sconf-{correction}",
        "difference": f"confdiff-{correction}",
    }
    risk = make_risk(alone[kind], prior=0.3)
    expected = risk(*z, torch.from_numpy(rows.u), torch.from_numpy(rows.v))
    objective = PairObjective(make_risk(name, prior=0.3), rows, dtype=DOUBLE)
    assert float(value(objective, rows, z)) == pytest.approx(float(expected), rel=1e-9)


def test_sconf_at_one_half_is_explained():
    with pytest.raises(ValueError, match="undefined at prior ½: use risk='likelihood'"):
        PairObjective(make_risk("confdiff", prior=0.5), table(["similarity"]))


def test_noisy_similarities_are_corrected_outcome_by_outcome():
    """s = 1.5 makes the share of "different" negative: its absolute value counts."""
    one = np.zeros((1, 2), dtype=np.int64)
    rows = judged_rows(one, np.array([1.5]), np.array([NAN]), np.zeros(1), np.ones(1))
    z = torch.zeros(2, 1, dtype=DOUBLE)
    for correction, expected in (("abs", 2.0), ("relu", 1.5), ("none", 1.0)):
        objective = PairObjective(make_risk(f"likelihood-{correction}"), rows, dtype=DOUBLE)
        assert float(value(objective, rows, z)) == pytest.approx(expected * math.log(2) / 2)


def test_a_difference_pulls_the_posteriors_apart_and_keeps_their_sum():
    rows = table(["difference"], n=6)
    z = logits(6).requires_grad_()
    objective = PairObjective(make_risk("likelihood-abs"), rows, dtype=DOUBLE)
    (gradient,) = torch.autograd.grad(value(objective, rows, z), z)
    p = torch.sigmoid(z.detach())
    told = torch.from_numpy(rows.v)
    reachable = (p.sum(0) >= told.abs()) & (p.sum(0) <= 2 - told.abs())
    assert int(reachable.sum()) >= 3
    assert torch.allclose(gradient[0, reachable], -gradient[1, reachable])
    towards = torch.sign(p[0] - p[1] + told)
    assert torch.equal(torch.sign(gradient[0, reachable]), towards[reachable])
    exact = Rows(rows.ends, rows.kind, rows.u, (p[1] - p[0]).numpy(), rows.weight)
    (gradient,) = torch.autograd.grad(value(objective, exact, z), z)
    assert gradient.abs().max() < 1e-12


def test_the_held_prior_adds_nothing_where_the_mean_is_right():
    rows, z = table(["difference"], n=10), torch.zeros(2, 10, dtype=DOUBLE)
    free, right, wrong = (
        float(
            value(
                PairObjective(make_risk("likelihood"), rows, held_prior=prior, dtype=DOUBLE),
                rows,
                z,
            )
        )
        for prior in (None, 0.5, 0.1)
    )
    assert right == pytest.approx(free)
    bits = 0.1 * math.log(0.1 / 0.5) + 0.9 * math.log(0.9 / 0.5)
    assert wrong == pytest.approx(free + bits)


@pytest.mark.parametrize("function", [log_different, log_not_reversed])
def test_log_probabilities_at_extreme_logits_and_in_half_precision(function):
    z = torch.tensor([-1e4, -3.0, 0.0, 2.0, 1e4])
    left, right = (t.flatten() for t in torch.meshgrid(z, z, indexing="ij"))
    left.requires_grad_()
    result = function(left, right)
    result.sum().backward()
    assert torch.isfinite(result).all()
    assert torch.isfinite(left.grad).all()
    assert left.grad.abs().max() <= 1
    for dtype in (torch.float16, torch.bfloat16):
        half = function(torch.tensor([3.0], dtype=dtype), torch.tensor([-2.0], dtype=dtype))
        whole = function(torch.tensor([3.0]), torch.tensor([-2.0]))
        assert half.dtype == torch.float32
        assert torch.equal(half, whole)


def test_gradients_of_a_mixed_table():
    # Completed posteriors are constants in the gradient, so differences stay out.
    kinds = [kind for kind in KINDS if kind != "difference"]
    rows = table(kinds, n=8)
    objective = PairObjective(make_risk("likelihood-abs"), rows, held_prior=0.3, dtype=DOUBLE)
    z = logits(8).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: value(objective, rows, t), z)


def test_a_fleet_minimises_the_objective_as_a_plain_loop_does():
    rng = np.random.default_rng(3)
    rows, x = table(KINDS, n=50), rng.normal(size=(100, 3))
    risk = make_risk("likelihood-abs")
    objective = PairObjective(risk, rows, dtype=DOUBLE)
    member = Member(risk, np.stack([rows.u, rows.v], 1), 1e-2, 1e-4, seed=5)
    fleet = Fleet(
        x,
        [Group(rows.ends, [member], seed=5)],
        "linear",
        batch_size=20,  # the last batch is filled up
        device="cpu",
        precision="float64",
        objective=objective,
    )
    fleet.fit(8)
    model = make_model("linear", (3,), 5).double().train()
    adam = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
    ends, instances = torch.from_numpy(rows.ends), torch.from_numpy(x)
    for epoch in range(8):
        order = torch.from_numpy(permutation(stream(5, "batches", epoch), 50))
        for batch in order.split(20):
            z = model(instances[ends[batch].T.reshape(-1)]).reshape(2, -1)
            columns = [c[batch] for c in objective.columns]
            u, v = torch.from_numpy(rows.u)[batch], torch.from_numpy(rows.v)[batch]
            adam.zero_grad()
            objective(
                *z, u, v, torch.full_like(u, 1 / len(u)), *columns, total=ALONE.sum
            ).backward()
            adam.step()
    expected, ours = model.state_dict(), fleet.module().state_dict()
    for name in expected:
        if expected[name].is_floating_point():
            assert torch.allclose(ours[name].double(), expected[name], atol=1e-9), name


def test_an_objective_is_for_one_group():
    rows = table(["both"], n=4)
    group = Group(rows.ends, [Member(make_risk("likelihood"), np.zeros((4, 2)))])
    objective = PairObjective(make_risk("likelihood"), rows)
    with pytest.raises(ValueError, match="trains one group"):
        Fleet(np.zeros((8, 2)), [group, group], "linear", device="cpu", objective=objective)


# --- rows ----------------------------------------------------------------------------------


def test_every_judgement_becomes_a_row_and_counts():
    ends = np.array([[0, 1], [0, 1], [2, 3], [4, 5]])
    s, c = np.array([0.4, NAN, 0.9, NAN]), np.array([0.1, 0.2, NAN, NAN])
    preference = np.array([1.0, NAN, 0.0, -1.0])
    rows = judged_rows(ends, s, c, preference, np.array([1.0, 2.0, 3.0, 4.0]))
    said = [
        (KINDS[k], tuple(e), float(w))
        for k, e, w in zip(rows.kind, rows.ends.tolist(), rows.weight, strict=True)
    ]
    assert said == [
        ("both", (0, 1), 1.0),
        ("difference", (0, 1), 2.0),
        ("similarity", (2, 3), 3.0),
        ("preference", (0, 1), 1.0),
        ("preference", (5, 4), 4.0),
    ]


@pytest.mark.parametrize("n", [1, 2, 7])
def test_labelled_instances_all_count_alike(n):
    positive = np.arange(n) % 2 == 0
    rows = labelled_rows(10 + np.arange(n), positive, seed=0)
    weight = np.zeros(n)
    for (one, two), w, u, v in zip(rows.ends - 10, rows.weight, rows.u, rows.v, strict=True):
        assert (u, v) == (positive[one], positive[two])
        weight[one] += w / 2
        weight[two] += w / 2
    assert weight == pytest.approx(np.full(n, 0.5))


def rows_of(ends):
    n = len(ends)
    return judged_rows(np.asarray(ends), np.full(n, 0.5), np.zeros(n), np.zeros(n), np.ones(n))


def test_held_out_items_are_in_no_other_row_where_that_is_possible():
    rng = np.random.default_rng(0)
    ends = np.concatenate([10 * k + rng.integers(0, 10, (6, 2)) for k in range(50)])
    mask = held_out_rows(rows_of(ends), 0.2, seed=1)
    assert 0.15 <= mask.mean() <= 0.2
    assert not set(ends[mask].ravel()) & set(ends[~mask].ravel())


def test_rows_of_one_pair_are_held_out_together_in_a_connected_table():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 40, (200, 2))
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    mask = held_out_rows(rows_of(ends), 0.1, seed=1)
    assert 0.08 <= mask.mean() <= 0.1
    unordered = {tuple(sorted(e)) for e in ends[mask].tolist()}
    assert not unordered & {tuple(sorted(e)) for e in ends[~mask].tolist()}
