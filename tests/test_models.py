"""Models: shapes, sizes counted by hand, norms, seeds."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pairlearn.models import MLP, make_model


def size(model):
    return sum(p.numel() for p in model.parameters())


# --- MLP -----------------------------------------------------------------------------------


def test_parameters_of_the_papers_network():
    norm = 2 * 784
    layers = (784 * 300 + 300) + 2 * (300 * 300 + 300) + (300 + 1)
    assert size(make_model("mlp", (28, 28))) == norm + layers == 417_969
    assert size(make_model("mlp-bn", (784,))) == norm + layers + 3 * 2 * 300
    assert size(make_model("linear", (784,))) == norm + 784 + 1
    assert size(MLP(784, norm="none")) == layers


def reference(model, x):
    """The network written out with functional operations, from its state alone."""
    state = model.state_dict()

    def norm(depth, h):
        mean, var = state[f"norms.{depth}.running_mean"], state[f"norms.{depth}.running_var"]
        if model.training:
            mean, var = h.mean(0), h.var(0, unbiased=False)
        h = (h - mean) / (var + 1e-5).sqrt()
        return h * state[f"norms.{depth}.weight"] + state[f"norms.{depth}.bias"]

    if model.norm != "none":
        x = norm(0, x)
    depths = sum(name.startswith("layers") and name.endswith("bias") for name in state)
    for depth in range(depths):
        x = x @ state[f"layers.{depth}.weight"].T + state[f"layers.{depth}.bias"]
        if depth < depths - 1:
            x = torch.clamp(norm(depth + 1, x) if model.norm == "all" else x, min=0)
    return x[:, 0]


@pytest.mark.parametrize("norm", ["none", "input", "all"])
@pytest.mark.parametrize("hidden", [(), (4,), (6, 3, 5)])
@pytest.mark.parametrize("training", [True, False])
def test_forward_is_what_it_says(norm, hidden, training):
    generator = torch.Generator().manual_seed(1)
    model = MLP(8, hidden, norm=norm).double()
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.add_(torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype))
    model.train(training)
    x = torch.randn(9, 8, generator=generator, dtype=torch.float64)
    expected, logits = reference(model, x), model(x)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)
    logits.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_initial_weights_are_pytorchs_default():
    """Uniform on ±1/√fan-in, which has the standard deviation 1/√(3 fan-in)."""
    model = make_model("mlp", (784,), seed=0)
    for layer in model.layers[:-1]:
        bound = layer.in_features**-0.5
        assert layer.weight.abs().max() <= bound
        assert layer.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    assert all(bool((n.weight == 1).all() and (n.bias == 0).all()) for n in model.norms)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": 3, "norm": "batch"}, "norm must be 'none', 'input' or 'all'; got 'batch'"),
        ({"features": 0}, r"every width must be at least 1; got \[0, 300"),
        ({"features": 3, "hidden": (4, 0)}, r"every width must be at least 1; got \[3, 4, 0\]"),
    ],
)
def test_networks_that_do_not_exist(arguments, message):
    with pytest.raises(ValueError, match=message):
        MLP(**arguments)


# --- residual networks ---------------------------------------------------------------------

STAGES = {
    "resnet34": ((64, 3), (128, 4), (256, 6), (512, 3)),
    "resnet32": ((16, 5), (32, 5), (64, 5)),
    "resnet8": ((8, 1), (16, 1), (32, 1)),
}


@pytest.mark.parametrize(
    ("name", "parameters"), [("resnet34", 21_277_505), ("resnet32", 466_321), ("resnet8", 19_657)]
)
def test_parameters_of_residual_networks(name, parameters):
    def conv(inputs, outputs, kernel):
        return inputs * outputs * kernel**2 + 2 * outputs  # with its batch norm

    inputs = STAGES[name][0][0]
    expected = conv(3, inputs, 3)
    for outputs, blocks in STAGES[name]:
        expected += conv(inputs, outputs, 3) + conv(outputs, outputs, 3)
        expected += (blocks - 1) * 2 * conv(outputs, outputs, 3)
        if inputs != outputs:
            expected += conv(inputs, outputs, 1)
        inputs = outputs
    expected += inputs + 1
    model = make_model(name, (3, 32, 32))
    assert size(model) == expected == parameters
    main_path = sum(isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3) for m in model.modules())
    assert f"resnet{main_path + 1}" == name, "the convolutions and the linear layer"


def test_convolutions_of_resnet32_start_with_the_spread_of_the_public_code():
    for module in make_model("resnet32", (3, 32, 32), seed=0).modules():
        if isinstance(module, nn.Conv2d):
            spread = (2 / (module.kernel_size[0] ** 2 * module.out_channels)) ** 0.5
            error = 5 * spread / (2 * module.weight.numel()) ** 0.5
            assert module.weight.std().item() == pytest.approx(spread, abs=error)


@pytest.mark.parametrize("name", STAGES)
def test_residual_networks_forward_and_backward(name):
    model = make_model(name, (3, 32, 32), seed=0)
    sizes = []
    for block in model.blocks:
        block.register_forward_hook(lambda _m, _i, out: sizes.append(tuple(out.shape[1:])))
    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0), requires_grad=True)
    logits = model(x)
    assert logits.shape == (2,)
    F.softplus(logits).sum().backward()
    assert all(bool(p.grad.isfinite().all()) and bool(p.grad.any()) for p in model.parameters())
    assert bool(x.grad[0].any()) and bool(x.grad[1].any())
    sides = (32, 16, 8, 4)
    assert sizes == [
        (width, side, side)
        for (width, count), side in zip(STAGES[name], sides, strict=False)
        for _ in range(count)
    ]
    assert int(model.norm.num_batches_tracked) == 1
    assert make_model(name, (1, 8, 8), seed=0).eval()(torch.zeros(1, 1, 8, 8)).shape == (1,)


# --- by name -------------------------------------------------------------------------------


def parameters(model):
    return nn.utils.parameters_to_vector(model.parameters())


@pytest.mark.parametrize("name", ["mlp", "mlp-bn", "linear", *STAGES])
def test_weights_follow_the_seed_and_touch_no_other(name):
    """A seed means torch.manual_seed, so that a plain script can start from the same."""
    shape = (3, 8, 8)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, other = make_model(name, shape, seed=0), make_model(name, shape, seed=1)
    assert torch.equal(torch.get_rng_state(), before), "torch's own generator stays as it was"
    torch.manual_seed(0)
    plain, second = make_model(name, shape), make_model(name, shape)
    assert torch.equal(parameters(first), parameters(plain))
    for model in (other, second):
        assert not torch.equal(parameters(first), parameters(model))
