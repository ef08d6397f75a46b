"""Margin losses against their definitions in fifty-digit decimal arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import pytest
import torch

from pairlearn.losses import LOSSES, make_loss

HUGE = 1e4
LOGITS = [-HUGE, -700.5, -45.0, -39.9, -20.1, -3.0, -1.0, -0.3, -1e-9]
LOGITS += [-0.0, 0.0, *(-z for z in reversed(LOGITS))]
RADII = [0.5, 3.0, 40.0]


def zero_one(z: Decimal, y: int) -> Decimal:
    prediction = 1 if z > 0 else -1
    return Decimal(prediction != y)


DEFINITIONS: dict[str, Callable[[Decimal, int], Decimal]] = {
    "logistic": lambda z, y: -(1 / (1 + (-z * y).exp())).ln(),  # −log of the class's probability
    "sigmoid": lambda z, y: 1 - 1 / (1 + (-z * y).exp()),  # the other class's probability
    "squared": lambda z, y: (z - y) ** 2,
    "hinge": lambda z, y: max(Decimal(0), 1 - z * y),
    "squared_hinge": lambda z, y: (min(z * y, Decimal(1)) - 1) ** 2,
    "zero_one": zero_one,
}


def reference(name: str, z: float, y: int) -> float:
    with localcontext(prec=50):
        return float(DEFINITIONS[name](Decimal(z), y))


SMOOTH = [name for name in LOSSES if name != "zero_one"]


@pytest.mark.parametrize("y", [1, -1])
@pytest.mark.parametrize("name", LOSSES)
def test_values(name: str, y: int) -> None:
    z = torch.tensor(LOGITS, dtype=torch.float64)
    expected = [reference(name, value, y) for value in LOGITS]
    got = make_loss(name)(z, torch.full_like(z, y))
    # Fifty digits lose e^−700 beside 1, hence the absolute tolerance.
    assert got.tolist() == pytest.approx(expected, rel=1e-14, abs=1e-300)
    single = make_loss(name)(z.float(), torch.full_like(z, y))
    assert single.dtype == torch.float32
    # Single precision rounds the logits as well, by 3e-8 of each.
    rounded = [reference(name, value, y) for value in z.float().tolist()]
    assert single.tolist() == pytest.approx(rounded, rel=1e-6, abs=1e-37)


@pytest.mark.parametrize("classes", [(1, -1), (1, 0), (1.0, 0.0), (True, False)])
def test_a_positive_class_is_above_zero(classes: tuple[float, float]) -> None:
    loss, z = make_loss("squared"), torch.tensor([3.0, 3.0])
    assert loss(z, torch.tensor(classes)).tolist() == [4.0, 16.0]


# ---- the two constants ------------------------------------------------------------------------


def on_grid(name: str, radius: float) -> tuple[torch.Tensor, torch.Tensor]:
    z = torch.linspace(-radius, radius, 80_001, dtype=torch.float64)
    return z, make_loss(name).both(z)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("name", SMOOTH)
def test_lipschitz_constant_holds_and_is_tight(name: str, radius: float) -> None:
    z, curves = on_grid(name, radius)
    steepest = float((curves.diff(dim=-1) / z.diff()).abs().max())
    constant = make_loss(name).lipschitz(radius)
    assert steepest <= constant * (1 + 1e-9)
    # The logistic constant is the global one, reached by large margins only.
    if name != "logistic" or radius == max(RADII):
        assert steepest >= 0.999 * constant


@pytest.mark.parametrize("radius", [0.0, *RADII])
@pytest.mark.parametrize("name", LOSSES)
def test_bound_is_the_largest_value(name: str, radius: float) -> None:
    _, curves = on_grid(name, radius)
    assert float(curves.max()) == pytest.approx(make_loss(name).bound(radius), rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_constants_on_the_whole_line(name: str) -> None:
    loss = make_loss(name)
    assert loss.bound(math.inf) == (1.0 if name in ("sigmoid", "zero_one") else math.inf)
    straight = name in ("logistic", "sigmoid", "hinge")  # and a step has no constant at all
    assert loss.lipschitz(math.inf) == (loss.lipschitz(40.0) if straight else math.inf)


# ---- numerics ---------------------------------------------------------------------------------

# Slopes of ℓ(z, +1) at z = −1e4 and z = +1e4, from the definitions' tails.
SLOPES = {
    "logistic": (-1.0, 0.0),
    "sigmoid": (0.0, 0.0),
    "squared": (-20002.0, 19998.0),
    "hinge": (-1.0, 0.0),
    "squared_hinge": (-20002.0, 0.0),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", SMOOTH)
def test_huge_logits_have_finite_gradients(name: str, dtype: torch.dtype) -> None:
    z = torch.tensor([-HUGE, HUGE], dtype=dtype, requires_grad=True)
    low, high = SLOPES[name]
    for y, expected in ((1.0, [low, high]), (-1.0, [-high, -low])):
        values = make_loss(name)(z, torch.full((2,), y))
        assert values.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        (gradient,) = torch.autograd.grad(values.sum(), z)
        assert torch.isfinite(values).all()
        # bfloat16 keeps eight bits of the logits and of the gradient.
        assert gradient.tolist() == pytest.approx(expected, rel=1e-2 if dtype.itemsize == 2 else 0)


# ---- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["log", "Hinge", "", None])
def test_an_unknown_loss_lists_the_known_ones(name: str) -> None:
    known = "logistic, sigmoid, squared, hinge, squared_hinge, zero_one"
    with pytest.raises(ValueError, match=f"^loss {name!r} is unknown; choose one of {known}$"):
        make_loss(name)


def test_a_loss_does_not_broadcast() -> None:
    with pytest.raises(ValueError, match=r"share one shape; got \(3, 1\), \(3,\)"):
        make_loss("hinge")(torch.zeros(3, 1), torch.ones(3))
