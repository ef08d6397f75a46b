"""Training steps against a plain PyTorch loop: same initial weights, same batches.

The loop is what anybody would write: one model, `loss.backward()`, `torch.optim.Adam`,
and the risk called as a user calls it. In float64 the fleet must agree with it to many
digits after 50 steps. In float32 it cannot: Adam divides a gradient by its own size, so
where that is nearly zero a rounding error decides about a whole step. The yardstick there
is how far two plain loops get apart that differ in the order of their sums alone.
"""

import shutil

import numpy as np
import pytest
import torch
from torch import nn

from pairlearn import PairLabels, make_risk, models
from pairlearn.annotators import add_noise
from pairlearn.models import MLP, make_model
from pairlearn.randomness import permutation, stream
from pairlearn.training import Fleet, Group, Member

DIM, PAIRS, BATCH = 7, 120, 24
EPOCHS = 6  # of five steps each
DTYPES = {"float64": torch.float64, "float32": torch.float32}


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
        monkeypatch.setitem(models._FLAT, name, ((20,) * 3, norm))


def mixed_groups(rates=(1e-3,) * 4, decays=(1e-5,) * 4):
    """Three ragged groups: every family of risk, corrections, priors, noises, seeds."""
    x, ends, told = draw(0)
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
            labels = add_noise(told, 0.3 * m, seed=g).to_array()
            if name == "supervised":
                labels = classes
            risk = make_risk(name, prior=(0.2, 0.4, 0.7)[(g + m) % 3])
            members.append(Member(risk, labels, rates[m], decays[m], seed=10 * g + m // 2))
        groups.append(Group(np.roll(ends, 13 * g, 0), members, seed=g % 2))
    return x, groups


# --- the fleet and the plain loop ----------------------------------------------------------


@pytest.mark.parametrize("name", ["mlp", "linear", "mlp-bn"])
def test_any_mix_of_members_equals_plain_loops(name):
    x, groups = mixed_groups()
    fleet = Fleet(x, groups, name, batch_size=BATCH, device="cpu", precision="float64")
    fleet.fit(EPOCHS)
    for difference in differences(fleet, name, x):
        assert difference.max() < 1e-9


@pytest.mark.parametrize("name", ["linear", "mlp-bn"])
def test_every_member_has_its_own_rates(name):
    x, groups = mixed_groups(rates=(1e-3, 3e-3, 1e-2, 5e-4), decays=(1e-5, 0.0, 1e-2, 1e-1))
    fleet = Fleet(x, groups, name, batch_size=BATCH, device="cpu", precision="float64")
    fleet.fit(EPOCHS)
    # The shift of a batch norm with another behind it has a gradient of zero, so that Adam
    # is led by rounding there, in the plain loop too, and large decays amplify it.
    led_by_rounding = ("norms.0.bias", "norms.1.running_mean") if name == "mlp-bn" else ()
    for difference in differences(fleet, name, x, leaving_out=led_by_rounding):
        assert difference.max() < 1e-9


@pytest.mark.parametrize("count", [1, 2], ids=["alone", "stacked"])
@pytest.mark.parametrize(("pairs", "batch"), [(PAIRS, 50), (PAIRS, 1000), (1, 8), (5, 1)])
def test_batches_that_do_not_divide_the_pairs(pairs, batch, count):
    x, ends, told = draw(2, pairs)
    risks = [make_risk("sconfconfdiff-abs", prior=0.3), make_risk("likelihood-abs")][:count]
    group = Group(ends, [Member(risk, told.to_array(), seed=1) for risk in risks], seed=3)
    fleet = Fleet(x, [group], "mlp-bn", batch_size=batch, device="cpu", precision="float64")
    fleet.fit(4)
    for difference in differences(fleet, "mlp-bn", x, epochs=4, batch=batch):
        assert difference.max() < 1e-9


@pytest.mark.parametrize("rates", [(1e-3, 1e-3), (1e-3, 2e-3)], ids=["one rate", "two rates"])
@pytest.mark.parametrize("name", ["linear", "mlp-bn"])
def test_float32_to_rounding(name, rates):
    x, ends, told = draw(4)
    risks = make_risk("likelihood-abs"), make_risk("sconfconfdiff-abs", prior=0.4)
    labels = told.to_array()
    members = [Member(r, labels, rate, seed=5) for r, rate in zip(risks, rates, strict=True)]
    group = Group(ends, members, seed=6)
    fleet = Fleet(x, [group], name, batch_size=BATCH, device="cpu")
    fleet.fit(EPOCHS)
    shuffled = permutation(stream(0, "columns"), DIM)
    for m, difference in enumerate(differences(fleet, name, x, dtype=torch.float32)):
        assert difference.median() < 1e-6
        # The same loop with the features in another order: sums round differently.
        plain, other = make_model(name, (DIM,), 5), make_model(name, (DIM,), 5)
        _reorder(other, shuffled)
        plain = plain_loop(plain, x, group, members[m], dtype=torch.float32)
        other = plain_loop(other, x[:, shuffled], group, members[m], dtype=torch.float32)
        _reorder(other, np.argsort(shuffled))
        yardstick = (flat(plain) - flat(other)).abs()
        assert difference.mean() < 5 * yardstick.mean() + 1e-7


@torch.no_grad()
def _reorder(model, order):
    """Let the model take its features in another order."""
    model.layers[0].weight.copy_(model.layers[0].weight[:, order])
    for values in (*model.norms[0].parameters(), *model.norms[0].buffers()):
        if values.ndim:
            values.copy_(values[order])


@pytest.mark.parametrize("loss", ["sigmoid", "hinge"])
def test_other_losses(loss):
    x, ends, told = draw(7)
    members = [
        Member(make_risk(name, prior=0.4, loss=loss), told.to_array())
        for name in ("sconfconfdiff-abs", "confdiff-none")
    ]
    fleet = Fleet(
        x, [Group(ends, members)], "mlp", batch_size=BATCH, device="cpu", precision="float64"
    )
    fleet.fit(EPOCHS)
    for difference in differences(fleet, "mlp", x):
        assert difference.max() < 1e-9


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
    x, ends, told = draw(8, 40, 3)
    risks = make_risk("likelihood-abs"), make_risk("sconfconfdiff-abs", prior=0.4)
    members = [Member(r, told.to_array(), rate) for r, rate in zip(risks, rates, strict=True)]
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


# --- a module of one's own -----------------------------------------------------------------


class Convolutional(nn.Module):
    """Batch norm, dropout, a frozen layer, a tied one, and a buffer that is reassigned."""

    def __init__(self, drop):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.frozen = nn.Linear(4 * DIM, 6)
        self.frozen.requires_grad_(False)
        self.tied = nn.Linear(6, 6)
        self.again = self.tied
        self.drop = nn.Dropout(drop)
        self.head = nn.Linear(6, 1)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls = self.calls + 1
        h = torch.relu(self.norm(self.conv(x.unsqueeze(1)))).flatten(1)
        h = self.again(torch.relu(self.tied(self.frozen(h))))
        return self.head(self.drop(torch.relu(h)))  # (n, 1)


def own_module(make, *, precision, rate=1e-3):
    x, ends, told = draw(9)
    member = Member(make_risk("sconfconfdiff-abs", prior=0.4), told.to_array(), rate)
    group = Group(ends, [member], seed=2)
    torch.manual_seed(0)
    own = make()
    torch.manual_seed(0)
    plain = make()
    torch.manual_seed(1)
    fleet = Fleet(x, [group], own, batch_size=50, device="cpu", precision=precision)
    fleet.fit(EPOCHS)
    torch.manual_seed(1)
    plain = plain_loop(plain, x, group, member, batch=50, dtype=DTYPES[precision])
    return own, plain, fleet


@pytest.mark.parametrize(
    "make",
    [
        lambda: MLP(DIM, (9,), norm="all"),
        lambda: nn.Sequential(nn.Linear(DIM, 9), nn.Dropout(0.4), nn.Linear(9, 1), nn.Flatten(0)),
        lambda: Convolutional(0.5),
    ],
    ids=["batch norm", "dropout", "everything"],
)
def test_a_module_of_ones_own_equals_the_plain_loop(make):
    own, plain, fleet = own_module(make, precision="float64")
    assert fleet.module() is own
    for (name, ours), theirs in zip(
        own.state_dict().items(), plain.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize("name", ["linear", "mlp", "mlp-bn"])
def test_a_named_model_without_autograd_equals_its_module(name):
    x, ends, told = draw(9)
    group = Group(ends, [Member(make_risk("likelihood-abs"), told.to_array(), seed=5)], seed=2)
    named, own = (
        Fleet(x, [group], model, batch_size=50, device="cpu", precision="float64")
        for model in (name, make_model(name, (DIM,), seed=5))
    )
    assert type(named.network) is not type(own.network)
    for fleet in (named, own):
        fleet.fit(EPOCHS)
    for key, ours in named.module().state_dict().items():
        torch.testing.assert_close(ours, own.module().state_dict()[key], rtol=0, atol=1e-9)
    before = flat(named.module()).clone()
    with torch.no_grad():
        next(named.module().parameters()).zero_()  # what was handed out is not what trains
    torch.testing.assert_close(flat(named.module()), before, rtol=0, atol=0)


class OnImages(nn.Module):
    """Convolutions, whose weights are laid out channels last."""

    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(3, 5, 3, padding=1)
        self.two = nn.Conv2d(5, 4, (3, 2), stride=2)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(torch.relu(self.two(torch.relu(self.one(x)))).mean((2, 3)))


def test_a_network_of_images_equals_the_plain_loop():
    _, ends, told = draw(9)
    x = np.random.default_rng(0).normal(size=(ends.max() + 1, 3, 6, 6)).astype(np.float32)
    member = Member(make_risk("likelihood-abs"), told.to_array())
    group = Group(ends, [member], seed=2)
    torch.manual_seed(0)
    own = OnImages()
    torch.manual_seed(0)
    plain = plain_loop(OnImages(), x, group, member, batch=50, dtype=torch.float64)
    Fleet(x, [group], own, batch_size=50, device="cpu", precision="float64").fit(EPOCHS)
    for ours, theirs in zip(own.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


def test_looking_at_a_module_does_not_change_its_training():
    """`module` gives it in evaluation mode; training must go on in training mode."""
    x, ends, told = draw(9)
    group = Group(ends, [Member(make_risk("likelihood-abs"), told.to_array())])
    results = []
    for looks in (False, True):
        torch.manual_seed(0)
        own = MLP(DIM, (9,), norm="all")
        fleet = Fleet(x, [group], own, batch_size=50, device="cpu")
        fleet.fit(2)
        if looks:
            assert not fleet.module().training
        fleet.fit(4)
        results.append(flat(own))
    assert torch.equal(*results)


def test_resnet34_takes_a_step():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 3, 8, 8)).astype(np.float32)
    labels = np.array([[0.6, 0.1], [0.4, -0.2]])
    group = Group(np.arange(4).reshape(2, 2), [Member(make_risk("likelihood-abs"), labels, seed=3)])
    fleet = Fleet(x, [group], "resnet34", batch_size=2, device="cpu")
    fleet.fit(1)
    trained, fresh = fleet.module(), make_model("resnet34", (3, 8, 8), seed=3)
    assert int(trained.norm.num_batches_tracked) == 1
    moved = (trained.stem.weight - fresh.stem.weight).abs().max().item()
    assert moved == pytest.approx(1e-3, rel=0.01), "Adam's first step has the learning rate's size"
