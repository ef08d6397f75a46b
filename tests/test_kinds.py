"""Every kind of statement, alone and mixed, against probabilities enumerated over the classes.

A new kind needs one row in `COSTS`: what a statement costs, worked out from probabilities. Where
posteriors are completed to those given an event in the two classes, that is `given(event)`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit, logit
from torch import Tensor

from pairlearn import Judgements, make_risk
from pairlearn.estimators import PairClassifier, TrainingOptions
from pairlearn.judgements.kinds import KINDS, code, kind
from pairlearn.models import make_model
from pairlearn.randomness import permutation, stream
from pairlearn.risks import RISKS, PairLikelihood, Risk, base
from pairlearn.risks.base import TERMS, pair_terms
from pairlearn.simulation import simulate
from pairlearn.training import Learner, Objective, Recipe
from pairlearn.training.loop import run_epochs
from pairlearn.training.ranks import ALONE

NAN = math.nan
# Not those that other tests register.
NAMES = [known.name for known in KINDS if type(known).__module__.startswith("pairlearn.")]


def probability(z: float, z_prime: float, event: Callable[[bool, bool], bool]) -> float:
    """P of an event in (y, y') for two independent classes with these log-odds."""
    p = {True: 1 / (1 + math.exp(-z)), False: 1 / (1 + math.exp(z))}
    q = {True: 1 / (1 + math.exp(-z_prime)), False: 1 / (1 + math.exp(z_prime))}
    return sum(p[y] * q[w] for y, w in itertools.product((True, False), repeat=2) if event(y, w))


def left(y: bool, w: bool) -> bool:
    return y and not w


def right(y: bool, w: bool) -> bool:
    return w and not y


def same(y: bool, w: bool) -> bool:
    return y == w


def both(z: float, q: float, u: float, v: float) -> float:
    shares = {left: (1 - u - v) / 2, right: (1 - u + v) / 2, same: u}
    return -sum(share * math.log(probability(z, q, event)) for event, share in shares.items())


def similarity(z: float, q: float, u: float, v: float) -> float:
    alike = probability(z, q, same)
    return -(u * math.log(alike) + (1 - u) * math.log(1 - alike))


def preference(z: float, q: float, u: float, v: float) -> float:
    return -math.log(1 - probability(z, q, left if u > 0 else right))


def common(z: float, q: float, u: float, v: float) -> float:
    both = probability(z, q, lambda y, w: y == w == bool(u))
    return -math.log(both / probability(z, q, same))


def choice(z: float, q: float, u: float, v: float) -> float:
    """Cross-entropy to the posteriors given the choice, where a tie is a coin's toss."""
    named = right if u > 0 else left
    chance = probability(z, q, named) + probability(z, q, same) / 2
    first, second = (
        probability(z, q, lambda y, w, end=end: (y, w)[end] and named(y, w))
        + probability(z, q, lambda y, w: y and w) / 2
        for end in (0, 1)
    )
    return label(z, q, first / chance, second / chance)


def label(z: float, q: float, u: float, v: float) -> float:
    p, w = probability(z, 0.0, lambda y, _: y), probability(q, 0.0, lambda y, _: y)
    first = u * math.log(p) + (1 - u) * math.log(1 - p)
    return -(first + v * math.log(w) + (1 - v) * math.log(1 - w))


def difference(z: float, q: float, u: float, v: float) -> float:
    p, w = probability(z, 0.0, lambda y, _: y), probability(q, 0.0, lambda y, _: y)
    total = min(max(p + w, abs(v)), 2 - abs(v))
    return label(z, q, (total - v) / 2, (total + v) / 2)


def positive(z: float, q: float, u: float, v: float) -> float:
    return -math.log(probability(z, q, lambda y, w: y and w))


def given(event: Callable[[bool, bool], bool]) -> Callable[..., float]:
    """Cross-entropy to the posteriors given an event in (y, y')."""

    def cost(z: float, q: float, *_: float) -> float:
        chance = probability(z, q, event)
        p = probability(z, q, lambda y, w: y and event(y, w)) / chance
        return label(z, q, p, probability(z, q, lambda y, w: w and event(y, w)) / chance)

    return cost


def comparison(z: float, q: float, u: float, v: float) -> float:
    if abs(u) == 1:
        out = left if u > 0 else right
        return given(lambda y, w: not out(y, w))(z, q)
    p, w = probability(z, 0.0, lambda y, _: y), probability(q, 0.0, lambda y, _: y)
    gap = 0.0 if u == 0 else math.copysign(max(0.5, math.copysign(1, u) * (w - p)), u)
    return difference(z, q, u, gap)


def group(z: float, q: float, u: float, v: float) -> float:
    """Cross-entropy to log-odds that are moved by u and v."""
    p, w = (probability(at, 0.0, lambda y, _: y) for at in (z + u, q + v))
    return label(z, q, p, w)


def triplet(z: float, q: float, u: float, v: float) -> float:
    """The same; x stands in both rows, half in each."""
    return (group(z, q, u, v) + group(q, q, v, v) / 2) / 2


COSTS = {
    "both": both,
    "similarity": similarity,
    "difference": difference,
    "preference": preference,
    "label": label,
    "confidence": label,
    "positive": positive,
    "unlabelled": lambda *_: 0.0,
    "same": similarity,
    "comparison": comparison,
    "group": group,
    "triplet": triplet,
    "choice": choice,
    "common": common,
}
ONE_SIDED = {known.name for known in KINDS if known.joint or known.fixes(False) == {"side"}}
"""Kinds that say less than the posteriors: a model that goes further fits them better."""


def honest(name: str, r: Any, q: Any, rng: np.random.Generator) -> Any:
    """What annotators say; where they would say nothing, what they say of others."""
    values = kind(name).simulate(r, q, rng)
    if kind(name).single:
        values[:, 1] = kind(name).simulate(q, r, rng)[:, 0]
    return np.where(np.isnan(values), 1.0, values)


def table(names: list[str], seed: int = 0, n: int = 40) -> Judgements:
    """Packed rows of the given kinds, as honest annotators say them, with uneven weights."""
    rng = np.random.default_rng(seed)
    parts = []
    for number, name in enumerate(names):
        rows = np.arange(number, n, len(names))
        r, q = rng.random((2, len(rows)))
        values = honest(name, r, q, rng)
        ends = np.stack([2 * rows, 2 * rows + 1], 1)
        kinds = np.full(len(rows), code(name), np.int8)
        parts.append(Judgements(ends, kinds, values, rng.random(len(rows)) + 0.5))
    joined = Judgements.concatenate(parts)
    return joined[np.argsort(joined.ends[:, 0])]


def objective_of(rows: Judgements, risk: str = "likelihood-abs", **options: Any) -> Objective:
    """The objective of one model, with what `make_risk` takes and its priors."""
    named = {key: options.pop(key) for key in ("prior",) if key in options}
    return Objective(make_risk(risk, **named), rows.kinds(), **options)


def value(objective: Objective, rows: Judgements, z: Tensor, batch: Any = slice(None)) -> Tensor:
    """The objective of some rows, with the weights that the whole table gives."""
    weights = torch.from_numpy(np.stack(rows.weight_columns(objective.kinds)))[:, batch]
    u, v = torch.from_numpy(rows.values)[batch].T
    return objective(*z[:, batch], u, v, weights / len(u), total=ALONE.sum)


def logits(n: int, seed: int = 1) -> Tensor:
    return torch.from_numpy(2.0 * np.random.default_rng(seed).normal(size=(2, n)))


def expected(rows: Judgements, z: Tensor) -> float:
    costs = [
        COSTS[NAMES[k]](*map(float, (*z[:, i], *rows.values[i])))
        for i, k in enumerate(rows.kind.tolist())
    ]
    return float(np.average(costs, weights=rows.weight)) / 2


@pytest.mark.parametrize("names", [*([name] for name in NAMES), NAMES], ids=str)
def test_statements_cost_what_their_outcomes_say(names: list[str]) -> None:
    rows, z = table(names), logits(40)
    cost = value(objective_of(rows, "likelihood-none"), rows, z)
    assert float(cost) == pytest.approx(expected(rows, z), rel=1e-9)


@pytest.mark.parametrize("name", sorted({*NAMES} - ONE_SIDED))
def test_the_true_posteriors_cost_least(name: str) -> None:
    """Moving an honest annotator's posteriors away never pays, up to what a kind leaves open."""
    rng = np.random.default_rng(0)
    r, q = np.tile(rng.uniform(0.05, 0.95, (2, 60)), 4000)  # 60 pairs, each answered often
    ends = np.arange(2 * len(r)).reshape(-1, 2)
    rows = Judgements(ends, np.full(len(r), code(name), np.int8), honest(name, r, q, rng))
    z = torch.from_numpy(np.log([r, q]) - np.log1p([-r, -q])).requires_grad_()
    (slope,) = torch.autograd.grad(value(objective_of(rows, "likelihood-none"), rows, z), z)
    assert slope.reshape(2, 4000, 60).sum(1).abs().max() * 60 < 0.03


@pytest.mark.parametrize("name", [k.name for k in KINDS if not k.completes(PairLikelihood())])
def test_posteriors_given_a_statement_are_the_slope_of_what_it_costs(name: str) -> None:
    """E[y | statement] = p − ∂cost/∂z, where the cost is −log of the statement's probability."""
    rng = np.random.default_rng(0)
    z, values, h = 2 * rng.normal(size=(2, 30)), honest(name, *rng.random((2, 30)), rng), 1e-5
    p = 1 / (1 + np.exp(-z))
    for end, posterior in enumerate(kind(name).complete(*p, *values.T)):
        step = h * np.eye(2)[end][:, None]
        up, down = (
            np.array([COSTS[name](*row) for row in zip(*(z + s), *values.T, strict=True)])
            for s in (step, -step)
        )
        wanted = (p[end] - (up - down) / (2 * h)).clip(0, 1)
        assert posterior == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(
    ("process", "name", "mean"),
    [("coin", "choice", 0.24), ("coin", "preference", 0.17),
     ("likelier", "preference", 0.22), ("likelier", "choice", 0.32)],
)  # fmt: skip
def test_how_people_choose_decides_what_a_choice_means(
    process: str, name: str, mean: float
) -> None:
    """The figures of docs/guides/statements.md: half of the pairs have numbers, half a choice."""
    r = np.array([0.01, 0.02, 0.04, 0.09, 0.09, 0.17, 0.22, 0.28, 0.36, 0.39, 0.49, 0.71])
    first, second = (x.ravel() for x in np.indices((12, 12)))
    p, q = r[first], r[second]
    up, down = q * (1 - p), p * (1 - q)
    chance = up + (1 - up - down) / 2 if process == "coin" else (np.sign(q - p) + 1) / 2

    def cost(z: Any) -> float:
        left, right = expit(z[first]), expit(z[second])
        kinds = kind("both"), kind(name)
        numbers = kinds[0].divergence(left, right, 1 - up - down, up - down)
        named, other = (kinds[1].divergence(left, right, side + 0 * left, left) for side in (1, -1))
        return float(np.mean(numbers + chance * named + (1 - chance) * other))

    fitted = expit(minimize(cost, logit(r) / 2 - 0.5, options={"maxiter": 500}).x)
    assert fitted.mean() == pytest.approx(mean, abs=0.006)
    if (process, name) == ("coin", "choice"):
        assert fitted == pytest.approx(r, abs=0.01)


def test_the_class_of_both_tells_similar_pairs_apart() -> None:
    """Similarities leave the classes exchanged or not; who says "both positive" settles it."""
    made = simulate("gaussians", pairs=150, overlap=0.1, seed=3)
    rng = np.random.default_rng(0)
    columns = {"similarity": made.pairs.similarity, "both": np.full(150, np.nan)}
    r = made.posterior[made.pairs.ends]
    columns["both"][:60] = kind("common").simulate(*r[:60].T, rng)[:, 0]
    for flipped in (False, True):
        said = columns | {"both": 1 - columns["both"] if flipped else columns["both"]}
        model = PairClassifier(model="linear", epochs=40, random_state=0)
        model.fit(made.items.features, Judgements.from_columns(made.pairs.ends, said))
        right = np.mean((model.predict(made.items.features) > 0) == made.positive)
        assert right < 0.2 if flipped else right > 0.8


def test_batches_average_to_the_whole_table_whatever_kinds_fall_into_them() -> None:
    rows, z = table(NAMES), logits(40)
    objective = objective_of(rows, "likelihood-none")
    parts = [float(value(objective, rows, z, slice(k, k + 8))) for k in range(0, 40, 8)]
    assert np.mean(parts) == pytest.approx(float(value(objective, rows, z)), rel=1e-12)


@pytest.mark.parametrize("name", ["sconfconfdiff-abs", "confdiff-relu", "convex-0.5-none"])
@pytest.mark.parametrize("alone", ["both", "similarity", "difference"])
def test_affine_risks_use_sconf_and_confdiff_where_a_judgement_stands_alone(
    name: str, alone: str
) -> None:
    rows, z = table([alone]), logits(40)
    rows = Judgements(rows.ends, rows.kind, rows.values)
    family = {"both": name.rsplit("-", 1)[0], "similarity": "sconf", "difference": "confdiff"}
    risk = make_risk(f"{family[alone]}-{name.rsplit('-', 1)[1]}", prior=0.3)
    cost = value(objective_of(rows, name, prior=0.3), rows, z)
    assert float(cost) == pytest.approx(float(risk(*z, *torch.from_numpy(rows.values).T)))


def test_noisy_similarities_are_corrected_outcome_by_outcome() -> None:
    """s = 1.5 makes the share of "different" negative: its absolute value counts."""
    rows = Judgements.from_columns([[0, 1]], {"similarity": [1.5]})
    z = torch.zeros(2, 1, dtype=torch.float64)
    for correction, cost in (("abs", 2.0), ("relu", 1.5), ("none", 1.0)):
        actual = value(objective_of(rows, f"likelihood-{correction}"), rows, z)
        assert float(actual) == pytest.approx(cost * math.log(2) / 2)


def test_the_held_prior_adds_nothing_where_the_mean_is_right() -> None:
    rows, z = table(["difference"], n=10), torch.zeros(2, 10, dtype=torch.float64)
    free, exact, wrong = (
        float(value(objective_of(rows, held_prior=prior), rows, z)) for prior in (None, 0.5, 0.1)
    )
    assert exact == pytest.approx(free)
    bits = 0.1 * math.log(0.1 / 0.5) + 0.9 * math.log(0.9 / 0.5)
    assert wrong == pytest.approx(free + bits)


def test_log_probabilities_at_extreme_logits_and_in_half_precision() -> None:
    z = torch.tensor([-1e4, -3.0, 0.0, 2.0, 1e4])
    left_logits, right_logits = (t.flatten() for t in torch.meshgrid(z, z, indexing="ij"))
    left_logits.requires_grad_()
    loss = make_risk("likelihood").loss
    terms = pair_terms(left_logits, right_logits, loss, len(TERMS))[4:]
    terms.sum().backward()
    assert torch.isfinite(terms).all() and torch.isfinite(left_logits.grad).all()  # type: ignore[arg-type]
    for dtype in (torch.float16, torch.bfloat16):
        half = pair_terms(torch.tensor([3.0], dtype=dtype), torch.tensor([-2.0]), loss, len(TERMS))
        assert half.dtype == torch.float32
        assert torch.equal(half, pair_terms(torch.tensor([3.0]), torch.tensor([-2.0]), loss, 8))


def test_gradients_of_a_mixed_table() -> None:
    # Completed posteriors are constants in the gradient, so these kinds stay out.
    rows = table([k.name for k in KINDS if not k.completes(PairLikelihood())], n=12)
    objective = objective_of(rows, held_prior=0.3)
    z = logits(12).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: value(objective, rows, t), z)


def test_a_completed_triplet_has_the_gradient_of_its_probability() -> None:
    """P(x is more like y than like z), enumerated over the classes of three items."""
    z = torch.tensor([0.7, -0.4, 1.2], dtype=torch.float64, requires_grad=True)
    p = torch.sigmoid(z)
    event = torch.zeros((), dtype=torch.float64)
    for classes in itertools.product((True, False), repeat=3):
        chance = torch.stack([p[i] if y else 1 - p[i] for i, y in enumerate(classes)]).prod()
        x, y, w = classes
        event = event + chance * (0.5 + 0.5 * ((x == y) - (x == w)))
    (gradient,) = torch.autograd.grad(-torch.log(event) / 2, z)
    statements = np.array([[1.0, 4.0], [0.0, 4.0]])
    ends = p.detach().numpy()[[[0, 1], [0, 2]]]
    completed = np.stack(kind("triplet").complete(*ends.T, *statements.T), 1)
    moved = np.log(completed / (1 - completed)) - np.log(ends / (1 - ends))
    rows = Judgements(np.array([[0, 1], [0, 2]]), np.full(2, code("triplet"), np.int8), moved)
    cost = 2 * value(objective_of(rows, "likelihood-none"), rows, torch.stack([z[[0, 0]], z[1:]]))
    assert torch.allclose(torch.autograd.grad(cost, z)[0], gradient)
    # Half a triplet, or one whose rows do not share an item, says nothing.
    apart = ends + np.array([[0.0, 0.0], [0.1, 0.0]])
    for bad in (ends[:1], apart):
        left_alone = kind("triplet").complete(*bad.T, *statements[: len(bad)].T)
        np.testing.assert_allclose(np.stack(left_alone, 1), bad)


def test_a_group_is_completed_to_its_share_by_one_shift() -> None:
    p = np.array([0.1, 0.5, 0.8, 0.3, 0.6])
    share, number = np.array([0.2, 0.2, 0.2, 0.9, 0.9]), np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    completed, _ = kind("group").complete(p, p, share, number)
    assert completed[:3].mean() == pytest.approx(0.2) and completed[3:].mean() == pytest.approx(0.9)
    shift = np.log(completed / (1 - completed)) - np.log(p / (1 - p))
    assert np.ptp(shift[:3]) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("risk", ["likelihood-abs", "sconfconfdiff-abs"])
def test_training_minimises_the_objective_as_a_plain_loop_does(risk: str) -> None:
    # Those that are completed together have other values in each epoch.
    rows = table([name for name in NAMES if not kind(name).joint], n=50)
    x = np.random.default_rng(3).normal(size=(100, 3))
    objective = objective_of(rows, risk, prior=0.3)
    recipe = Recipe(8, 20, 1e-2, 1e-4, 1, "cpu", "float64", 5)  # the last batch is short
    learner = Learner(x, rows, objective, "linear", recipe)
    run_epochs(learner, 8)
    ends, instances = torch.from_numpy(rows.ends), torch.from_numpy(x)
    model = make_model("linear", (3,), 5).double().train()
    adam = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
    for epoch in range(8):
        order = torch.from_numpy(permutation(stream(5, "batches", epoch), 50))
        for batch in order.split(20):
            z = torch.zeros(2, 50, dtype=torch.float64)
            z[:, batch] = model(instances[ends[batch].T.reshape(-1)]).reshape(2, -1)
            adam.zero_grad()
            value(objective, rows, z, batch).backward()
            adam.step()
    for name, plain in model.state_dict().items():
        ours = learner.module.state_dict()[name]
        assert torch.allclose(ours.double(), plain.double(), atol=1e-9), name


def test_fit_runs_the_code_that_the_exact_tests_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step of a fit goes through `pair_moments` and `contract`."""
    from pairlearn.training import objective

    calls: list[str] = []
    for name in ("pair_moments", "contract"):
        original = getattr(base, name)
        monkeypatch.setattr(
            objective,
            name,
            lambda *a, _n=name, _f=original, **k: (calls.append(_n), _f(*a, **k))[1],
        )
    rng = np.random.default_rng(0)
    judgements = Judgements.from_pairs(rng.permutation(80).reshape(40, 2), rng.random((40, 2)) / 3)
    PairClassifier(model="linear", epochs=3, training=TrainingOptions(batch_size=10)).fit(
        rng.normal(size=(80, 2)), judgements
    )
    assert calls.count("pair_moments") >= 12
    assert calls.count("pair_moments") == calls.count("contract")


# --- a risk of one's own -------------------------------------------------------------------


class Plain(Risk):
    """The pair likelihood under another name: no prior, and no word of "likelihood"."""

    family = "plain"

    def __init__(self, *, correction: str | float = "none") -> None:
        super().__init__(PairLikelihood().table, correction=correction)


def few() -> tuple[Any, Any, dict[str, Any]]:
    """30 pairs (n, 2, 3), their judgements, and parameters of a quick fit."""
    rng = np.random.default_rng(0)
    options = {"model": "linear", "epochs": 3, "random_state": 0, "annotators": "ideal"}
    return rng.normal(size=(30, 2, 3)), rng.random((30, 2)) / 2, options


@pytest.mark.parametrize("by_name", [True, False])
def test_a_risk_of_ones_own_without_a_prior(by_name: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no prior, and tables are asked for what they need."""
    monkeypatch.setitem(RISKS, "plain", Plain)
    risk = "plain-abs" if by_name else Plain(correction="abs")
    pairs, labels, options = few()
    ours = PairClassifier(risk=risk, **options).fit(pairs, labels)
    likelihood = PairClassifier(**options).fit(pairs, labels)
    x = pairs[:, 0]
    assert ours.decision_function(x) == pytest.approx(likelihood.decision_function(x))
    with pytest.raises(ValueError, match=r"differences only.*\(prior=, or --prior\)"):
        PairClassifier(risk=risk, **options).fit(pairs, labels * [np.nan, 1])


@pytest.mark.filterwarnings("ignore:the stated class prior")
def test_a_risk_object_brings_its_prior() -> None:
    pairs, labels, options = few()
    by_object = PairClassifier(risk=make_risk("confdiff-abs", prior=0.4), **options).fit(
        pairs, labels
    )
    by_name = PairClassifier(risk="confdiff-abs", prior=0.4, **options).fit(pairs, labels)
    x = pairs[:, 0]
    assert by_object.prior_ == 0.4
    assert by_object.decision_function(x) == pytest.approx(by_name.decision_function(x))
