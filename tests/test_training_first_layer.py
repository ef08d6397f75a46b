"""The first layer's kernel, in Triton's interpreter, against autograd and torch's Adam."""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch

from pairlearn.models import MLP
from pairlearn.training.adam import FleetAdam
from pairlearn.training.network import StackedMLP

GROUPS, MEMBERS, INPUTS, UNITS, STEPS = 2, 3, 21, 10, 3


def check(dtype: torch.dtype) -> None:
    """Take a few steps with given gradients of the operands, both ways."""
    from pairlearn.training.first_layer import FirstLayer

    torch.manual_seed(0)
    models = [[MLP(INPUTS, (UNITS, 4)) for _ in range(MEMBERS)] for _ in range(GROUPS)]
    network = StackedMLP(models, dtype=dtype)
    with torch.no_grad():  # scales of one and shifts of zero would hide mistakes
        network.scales[0].uniform_(0.5, 2)
        network.shifts[0].normal_()
    parameters = dict(network.named_parameters())
    reference = {name: p.detach().clone().requires_grad_() for name, p in parameters.items()}
    rates, decays = torch.rand(2, GROUPS, MEMBERS) * torch.tensor([1e-2, 1e-1]).view(2, 1, 1)
    adam = FleetAdam(parameters, rates, decays)
    layer = FirstLayer(network, adam)
    operands = {name: t.clone() for name, t in network.operands(parameters).items()}
    optimisers = []
    for g in range(GROUPS):
        for m in range(MEMBERS):
            own = {n: reference[n].detach()[g, m].clone() for n in FirstLayer.parameters}
            optimiser = torch.optim.Adam(
                own.values(), float(rates[g, m]), weight_decay=float(decays[g, m])
            )
            optimisers.append((g, m, own, optimiser))
    for _ in range(STEPS):
        slopes = {name: torch.randn_like(t.float()).to(t.dtype) for name, t in operands.items()}
        made = network.operands(reference)
        total = sum((made[n].float() * slopes[n].float()).sum() for n in ("weights.0", "biases.0"))
        wanted = dict(
            zip(
                FirstLayer.parameters,
                torch.autograd.grad(total, [reference[n] for n in FirstLayer.parameters]),
                strict=True,
            )
        )
        with torch.no_grad():
            for g, m, own, optimiser in optimisers:
                for name, tensor in own.items():
                    tensor.grad = wanted[name][g, m].clone()
                optimiser.step()
                for name, tensor in own.items():
                    reference[name][g, m] = tensor
            adam.advance()
            layer.update(slopes, operands)
            for name in FirstLayer.parameters:
                torch.testing.assert_close(
                    parameters[name], reference[name].detach(), rtol=1e-5, atol=1e-6
                )
            again = network.operands(parameters)
            tolerance = (
                {"rtol": 1e-5, "atol": 1e-5}
                if dtype == torch.float32
                else {"rtol": 1e-2, "atol": 1e-3}
            )
            torch.testing.assert_close(operands["weights.0"], again["weights.0"], **tolerance)
            bias = parameters["biases.0"] + layer.shifts().view(GROUPS, MEMBERS, UNITS)
            torch.testing.assert_close(bias, again["biases.0"], rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton has no build for this platform"
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_kernel_is_autograd_and_adam(dtype):
    # The interpreter has to be asked for before the kernel is defined: a process of its own.
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, __file__, dtype], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    check(getattr(torch, sys.argv[1]))
