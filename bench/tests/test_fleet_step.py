"""Steps of a fleet against a plain PyTorch loop: same initial weights, same batches.

The loop is what anybody would write: one model, `loss.backward()`, `torch.optim.Adam`,
and the risk called as a user calls it. In float64 the fleet must agree with it to many
digits after 30 steps. In float32 it cannot: Adam divides a gradient by its own size, so
where that is nearly zero a rounding error decides about a whole step. Most of the weights
agree to rounding there.
"""

import shutil

import numpy as np
import pytest
import torch

from pairlearn import PairLabels, make_risk, models
from pairlearn.models import MLP, make_model
from pairlearn.randomness import permutation, stream
from pairlearn_bench.fleet import Fleet, Group, Member
from pairlearn_bench.fleet.networks import StackedMLP
from pairlearn_bench.fleet.objective import FleetObjective
from pairlearn_bench.fleet.step import FleetAdam, Step
from pairlearn_bench.simulated import add_noise

DIM, PAIRS, BATCH = 7, 120, 24
EPOCHS = 6  # of five steps each


def draw(seed, pairs=PAIRS, dim=DIM):
    """Features, pairs, and the judgements of a known posterior."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * pairs, dim)).astype(np.float32)
    ends = rng.permutation(2 * pairs).reshape(pairs, 2)
    r = 1 / (1 + np.exp(-2 * x[:, 0] + x[:, 1] * x[:, 2]))
    return x, ends, PairLabels.from_posteriors(*r[ends].T)


def plain_loop(model, x, group, member, *, epochs=EPOCHS, batch=BATCH, dtype=torch.float64):
    """Train one model the ordinary way."""
    model = model.to(dtype).train()
    x, labels = torch.as_tensor(x).to(dtype), torch.as_tensor(member.labels).to(dtype)
    pairs = torch.as_tensor(group.pairs.copy())
    adam = torch.optim.Adam(
        [p for p in model.parameters() if p.requires_grad],
        lr=member.learning_rate,
        weight_decay=member.weight_decay,
    )
    for epoch in range(epochs):
        order = torch.as_tensor(permutation(stream(group.seed, "batches", epoch), len(pairs)))
        for rows in order.split(batch):
            logits = model(x[pairs[rows].T.reshape(-1)]).reshape(2, -1)
            loss = member.risk(*logits, *labels[rows].T)
            adam.zero_grad()
            loss.backward()
            adam.step()
    return model


def flat(model, leaving_out=()):
    """Parameters and running statistics in one vector."""
    state = {n: t for n, t in model.state_dict().items() if n not in leaving_out}
    return torch.cat([t.flatten().double() for t in state.values() if t.is_floating_point()])


def differences(fleet, name, x, *, leaving_out=(), **loop):
    """Differences of each member's model from the plain loop's."""
    result = []
    for g, group in enumerate(fleet.groups):
        for m, member in enumerate(group.members):
            model = make_model(name, x.shape[1:], member.seed)
            plain = plain_loop(model, x, group, member, **loop)
            ours = fleet.module(g, m)
            result.append((flat(ours, leaving_out) - flat(plain, leaving_out)).abs())
    return result


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Narrow networks."""
    for name, norm in (("mlp", "input"), ("mlp-bn", "all")):
        monkeypatch.setitem(models.PERCEPTRONS, name, ((20,) * 3, norm))


def mixed_groups(rates=(1e-3,) * 4, decays=(1e-5,) * 4):
    """Three ragged groups: every family of risk, corrections, priors, noises, seeds."""
    x, ends, judged = draw(0)
    classes = np.random.default_rng(1).random((PAIRS, 2)) < 0.5
    names = [
        ["likelihood-abs", "sconfconfdiff-none", "supervised", "convex-0.3-relu"],
        ["sconf-abs", "nonnegative-none"],
        ["confdiff-slope=0.5", "likelihood-none", "sconfconfdiff-0.2-relu"],
    ]
    groups = []
    for g, row in enumerate(names):
        members = []
        for m, name in enumerate(row):
            labels = add_noise(judged, 0.3 * m, seed=g).to_array()
            if name == "supervised":
                labels = classes
            risk = make_risk(name, prior=(0.2, 0.4, 0.7)[(g + m) % 3])
            members.append(Member(risk, labels, rates[m], decays[m], seed=10 * g + m // 2))
        groups.append(Group(np.roll(ends, 13 * g, 0), members, seed=g % 2))
    return x, groups


# --- the fleet and the plain loop ----------------------------------------------------------


OWN_RATES = (1e-3, 3e-3, 1e-2, 5e-4), (1e-5, 0.0, 1e-2, 1e-1)


@pytest.mark.parametrize("rates", [(), OWN_RATES], ids=["one rate", "own rates"])
@pytest.mark.parametrize("name", ["mlp", "linear", "mlp-bn"])
def test_any_mix_of_members_equals_plain_loops(name, rates):
    x, groups = mixed_groups(*rates)
    fleet = Fleet(x, groups, name, batch_size=BATCH, device="cpu", precision="float64")
    fleet.fit(EPOCHS)
    # The shift of a batch norm with another behind it has a gradient of zero, so that Adam
    # is led by rounding there, in the plain loop too, and large decays amplify it.
    led_by_rounding = ("norms.0.bias", "norms.1.running_mean") if name == "mlp-bn" and rates else ()
    for difference in differences(fleet, name, x, leaving_out=led_by_rounding):
        assert difference.max() < 1e-9


@pytest.mark.parametrize("count", [1, 2], ids=["alone", "stacked"])
@pytest.mark.parametrize(
    ("name", "pairs", "batch", "loss"),
    [
        ("mlp-bn", PAIRS, 50, "logistic"),
        ("mlp", PAIRS, 1000, "sigmoid"),
        ("linear", PAIRS, 50, "hinge"),
        ("mlp-bn", 1, 8, "logistic"),
        ("mlp-bn", 5, 1, "logistic"),
    ],
)
def test_batches_that_do_not_divide_the_pairs_and_other_losses(name, pairs, batch, loss, count):
    x, ends, judged = draw(2, pairs)
    names = ["sconfconfdiff-abs", "confdiff-none"][:count]
    risks = [make_risk(risk, prior=0.3, loss=loss) for risk in names]
    group = Group(ends, [Member(risk, judged.to_array(), seed=1) for risk in risks], seed=3)
    fleet = Fleet(x, [group], name, batch_size=batch, device="cpu", precision="float64")
    fleet.fit(4)
    for difference in differences(fleet, name, x, epochs=4, batch=batch):
        assert difference.max() < 1e-9
    before = flat(fleet.module()).clone()
    with torch.no_grad():
        next(fleet.module().parameters()).zero_()  # what was handed out is not what trains
    torch.testing.assert_close(flat(fleet.module()), before, rtol=0, atol=0)


@pytest.mark.parametrize("rates", [(1e-3,), (1e-3, 1e-3), (1e-3, 2e-3)])
@pytest.mark.parametrize("name", ["linear", "mlp-bn"])
def test_float32_to_rounding(name, rates):
    """Alone and together, with one rate and with two."""
    x, ends, judged = draw(4)
    risks = make_risk("likelihood-abs"), make_risk("sconfconfdiff-abs", prior=0.4)
    labels = judged.to_array()
    members = [Member(r, labels, rate, seed=5) for r, rate in zip(risks, rates, strict=False)]
    fleet = Fleet(x, [Group(ends, members, seed=6)], name, batch_size=BATCH, device="cpu")
    fleet.fit(EPOCHS)
    for difference in differences(fleet, name, x, dtype=torch.float32):
        assert difference.median() < 1e-6
        assert difference.mean() < 1e-4


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, on importing its compiler
@pytest.mark.parametrize(
    "rates",
    [
        pytest.param((1e-2, 1e-2), id="one rate"),
        pytest.param((1e-2, 2e-2), id="two rates", marks=pytest.mark.long),
    ],
)
def test_compiled_equals_eager(rates):
    """Linear and tiny: compiling takes far longer than training, and half a minute at first."""
    x, ends, judged = draw(8, 40, 3)
    risks = make_risk("likelihood-abs"), make_risk("sconfconfdiff-abs", prior=0.4)
    members = [Member(r, judged.to_array(), rate) for r, rate in zip(risks, rates, strict=True)]
    fleets = []
    for compiled in (False, True):
        fleet = Fleet(
            x, [Group(ends, members)], "linear", batch_size=16, device="cpu",
            precision="float64", compiled=compiled,
        )  # fmt: skip
        fleet.fit(3)
        fleets.append(fleet)
    for m in range(2):
        eager, compiled = (flat(fleet.module(0, m)) for fleet in fleets)
        torch.testing.assert_close(compiled, eager, rtol=0, atol=1e-9)


# --- parts of a step ------------------------------------------------------------------------


@pytest.mark.parametrize("uniform", [True, False])
def test_adams_first_steps_in_float32(uniform):
    """1 − β₂ᵗ is .001 at first: computed as a difference it would have four digits only."""
    rates = torch.tensor([[1.0, 1.0 if uniform else 0.5]])
    p = torch.zeros(1, 2, 3)
    adam = FleetAdam([p], rates, torch.zeros(1, 2))
    adam.step([torch.full((1, 2, 3), 0.3)])
    torch.testing.assert_close(p, -rates.unsqueeze(-1).expand(1, 2, 3), rtol=3e-7, atol=0)


def test_padded_units_stay_zero_and_change_nothing():
    torch.manual_seed(0)
    x, ends, judged = draw(11)
    u, v = (torch.as_tensor(c).float().expand(1, 2, -1) for c in judged.to_array().T)
    models = [[MLP(DIM, (5, 18), norm="all") for _ in range(2)]]
    risks = make_risk("likelihood-abs"), make_risk("likelihood-none")
    members = [Member(risk, judged.to_array()) for risk in risks]
    rates, decays = torch.full((1, 2), 1e-2), torch.full((1, 2), 1e-3)
    batch = torch.as_tensor(x[ends.T.reshape(-1)])[None]
    stacks = [StackedMLP(models, pad_to=pad_to) for pad_to in (1, 16)]
    for stack in stacks:
        step = Step(
            stack,
            rates,
            decays,
            FleetObjective.of_groups([Group(ends, members)]).to(torch.device("cpu"), torch.float32),
        )
        for _ in range(12):
            step(batch, u, v, torch.ones(PAIRS))
    plain, padded = stacks
    assert [w.shape[-2:] for w in padded.weights] == [(DIM, 16), (16, 32), (32, 1)]
    stuffing = [
        padded.weights[0][..., 5:],
        padded.weights[1][..., 5:, :],
        padded.biases[0][..., 5:],
    ]
    stuffing += [padded.weights[1][..., 18:], padded.weights[2][..., 18:, :]]
    assert not any(part.any() for part in (*stuffing, padded.biases[1][..., 18:]))
    for m in range(2):
        difference = (flat(plain.module(0, m)) - flat(padded.module(0, m))).abs()
        assert difference.median() < 1e-6
        assert difference.max() < 1e-2
