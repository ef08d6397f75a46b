"""The parts of a step on their own: Adam, stacked networks against single ones, bad input."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from pairlearn import make_risk
from pairlearn.models import MLP
from pairlearn.training import Fleet, Group, Member, Objective, TestSet
from pairlearn.training.network import StackedMLP
from pairlearn.training.perceptron import LoneMLP
from pairlearn.training.step import FleetAdam, Step
from test_training_step import DIM, PAIRS, draw, flat, quick

__all__ = ["quick"]

# --- Adam ----------------------------------------------------------------------------------


@pytest.mark.parametrize("uniform", [True, False])
def test_adams_first_steps_in_float32(uniform):
    """1 − β₂ᵗ is .001 at first: computed as a difference it would have four digits only."""
    rates = torch.tensor([[1.0, 1.0 if uniform else 0.5]])
    p = torch.zeros(1, 2, 3)
    adam = FleetAdam([p], rates, torch.zeros(1, 2))
    adam.step([torch.full((1, 2, 3), 0.3)])
    torch.testing.assert_close(p, -rates.unsqueeze(-1).expand(1, 2, 3), rtol=3e-7, atol=0)


# --- networks ------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["none", "input", "all"])
@pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
@pytest.mark.parametrize("training", [True, False])
def test_a_stack_is_its_models(norm, hidden, training):
    torch.manual_seed(0)
    models = [[MLP(DIM, hidden, norm=norm).double() for _ in range(3)] for _ in range(2)]
    for row in models:
        for model in row:
            for parameter in model.parameters():
                parameter.data.add_(0.1 * torch.randn_like(parameter))
    stack = StackedMLP(models, dtype=torch.float64).double()
    x = torch.randn(2, 11, DIM, dtype=torch.float64)
    if norm != "none":  # statistics other than the initial ones, the same everywhere
        for row in models:
            for model in row:
                for n in model.norms:
                    n.running_mean.fill_(0.3)
                    n.running_var.fill_(1.7)
        for name, buffer in stack.named_buffers():
            buffer.fill_(0.3 if "mean" in name else 1.7)
    stack.train(training)
    logits = stack(x)
    assert logits.shape == (2, 3, 11)
    for g in range(2):
        for m in range(3):
            expected = models[g][m].train(training)(x[g])
            torch.testing.assert_close(logits[g, m], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("norm", ["all"])
def test_padded_units_stay_zero_and_change_nothing(norm):
    torch.manual_seed(0)
    x, ends, told = draw(11)
    u, v = (torch.as_tensor(c).float().expand(1, 2, -1) for c in told.to_array().T)
    models = [[MLP(DIM, (5, 18), norm=norm) for _ in range(2)]]
    risks = make_risk("likelihood-abs"), make_risk("likelihood-none")
    members = [Member(risk, told.to_array()) for risk in risks]
    rates, decays = torch.full((1, 2), 1e-2), torch.full((1, 2), 1e-3)
    batch = torch.as_tensor(x[ends.T.reshape(-1)])[None]
    stacks = [StackedMLP(models, pad_to=pad_to) for pad_to in (1, 16)]
    for stack in stacks:
        step = Step(stack, rates, decays, Objective([Group(ends, members)]))
        for _ in range(12):
            step(batch, u, v, torch.ones(PAIRS))
    plain, padded = stacks
    assert [w.shape[-2:] for w in padded.weights] == [(DIM, 16), (16, 32), (32, 1)]
    assert not padded.weights[0][..., 5:].any()
    assert not padded.weights[1][..., 5:, :].any()
    assert not padded.weights[1][..., 18:].any()
    assert not padded.weights[2][..., 18:, :].any()
    assert not padded.biases[0][..., 5:].any()
    assert not padded.biases[1][..., 18:].any()
    for m in range(2):
        difference = (flat(plain.module(0, m)) - flat(padded.module(0, m))).abs()
        assert difference.median() < 1e-6
        assert difference.max() < 1e-2


def test_a_copy_of_a_perceptron_is_trained_by_itself():
    network = LoneMLP(MLP(DIM, (5,), norm="all"), pad_to=4)
    copied = deepcopy(network)
    torch.testing.assert_close(flat(copied.module()), flat(network.module()))
    copied.vector.add_(1.0)
    for trained, kept in zip(
        copied.module().parameters(), network.module().parameters(), strict=True
    ):
        torch.testing.assert_close(trained, kept + 1.0)


# --- bad input never trains ----------------------------------------------------------------

X = np.linspace(-1, 1, 40, dtype=np.float32).reshape(20, 2)
ENDS = np.arange(20).reshape(10, 2)
LABELS = np.full((10, 2), 0.25)
POSITIVE = X[:, 0] > 0


def fleet(
    x=X, pairs=ENDS, labels=LABELS, test=None, batch_size=4, second=None,
    model="linear", precision="float32", **rates,
):  # fmt: skip
    groups = [Group(pairs, [Member(make_risk("likelihood"), labels, **rates)], test=test)]
    if second is not None:
        groups.append(Group(ENDS, [Member(make_risk("likelihood"), LABELS)], test=second))
    return Fleet(x, groups, model, batch_size=batch_size, device="cpu", precision=precision)


def changed(array, value):
    array = array.astype(np.float32)
    array[3, 1] = value
    return array


ALL = TestSet(np.arange(20), POSITIVE)
NAMED = TestSet(np.arange(20), POSITIVE, {"half": np.arange(10)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": ENDS.astype(float)}, "pairs of group 0 must be integers; got float64"),
        ({"pairs": ENDS - 1}, "pairs of group 0 point outside the 20 instances"),
        ({"pairs": ENDS[:0]}, r"pairs of group 0 must have shape \(0, 2\), n > 0"),
        ({"labels": changed(LABELS, np.nan)}, r"likelihood-none are missing \(NaN\) in row 3"),
        ({"labels": changed(LABELS, np.inf)}, "likelihood-none are infinite in row 3"),
        ({"labels": LABELS[:, 0]}, r"must have shape \(10, 2\); got \(10,\)"),
        ({"x": changed(X, np.nan)}, "features are NaN or infinite in row 3"),
        ({"model": MLP(2), "second": ALL}, "train one at a time"),
        ({"precision": "half"}, r"precision must be one of .*; got 'half'"),
        ({"model": "mpl"}, "model 'mpl' is unknown"),
        ({"x": X[:, 0]}, r"features must have shape \(N, ...\); got \(20,\)"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be a number of at least 0; got -1.0"),
        ({"weight_decay": np.nan}, "weight_decay must be a number of at least 0; got nan"),
        ({"test": TestSet(np.arange(20), 2 * POSITIVE - 1)}, "must be booleans of shape"),
        ({"test": TestSet(np.arange(20) + 1, POSITIVE)}, "test rows of group 0 point outside"),
        ({"test": TestSet(np.arange(19), POSITIVE)}, r"booleans of shape \(19,\)"),
        ({"test": TestSet(np.arange(20), POSITIVE, {"none": []})}, "subset 'none' .* is empty"),
        ({"test": TestSet(np.arange(20), POSITIVE, {"far": [20]})}, "'far' .* point outside"),
        ({"test": ALL, "second": NAMED}, r"group 1 20 and \['half'\]"),
        (
            {"test": ALL, "second": TestSet(np.arange(5), POSITIVE[:5])},
            r"group 0 has 20 rows and subsets \[\], group 1 5",
        ),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        fleet(**arguments)


def test_read_only_and_image_features_are_fine():
    x = np.zeros((20, 2, 3), np.float32)
    x[:, 0, 0] = X[:, 0]
    x.flags.writeable = False
    assert fleet(x=x, test=ALL).fit(1)["all"].shape == (1, 1, 1)
