"""What every risk must satisfy, as one function for the authors of new ones."""

from __future__ import annotations

import torch

from pairlearn.labels import PairLabels
from pairlearn.losses import LOSSES, make_loss
from pairlearn.risks.catalogue import make_risk

__all__ = ["check_risk"]

_PRIORS = (0.2, 0.7)  # both sides of ½, where some risks are undefined
_EXTREMES = (-1e4, -300.0, -20.0, 0.0, 0.5, 88.0, 1e4)  # exp of 89 is infinite in float32
_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SMOOTH = ("logistic", "sigmoid", "squared", "squared_hinge")


def check_risk(name: str, *, unbiased: bool = True) -> None:
    """Check a registered risk; AssertionError says what does not hold.

    - Its name: ``make_risk(str(risk))`` gives the same risk.
    - Its gradients agree with finite differences, for every smooth loss.
    - Neither value nor gradient overflows at logits of ±1e4, in any precision.
    - It is unbiased: over all pairs of small distributions, enumerated exactly, its expectation is
      the risk of the classifier, for every loss.

    Parameters
    ----------
    name : str
        Its family, with a number if it has one: "confdiff", "convex-0.3".
    unbiased : bool
        False for a risk that is minimised at the posteriors without being the risk itself, such as
        a likelihood.

    Examples
    --------
    >>> from pairlearn.risks import check_risk
    >>> check_risk("sconfconfdiff")
    """
    for correction in ("none", "relu", "abs", "slope=0.25", "slope=-0.5"):
        risk = make_risk(f"{name}-{correction}", prior=_PRIORS[0])
        again = make_risk(str(risk), prior=_PRIORS[0])
        same = str(again) == str(risk) and again.slope == risk.slope
        assert same and torch.equal(again.table.nan_to_num(), risk.table.nan_to_num()), (
            f"{name}: make_risk({str(risk)!r}) is another risk"
        )
    for loss in LOSSES:
        try:
            make_risk(name, prior=_PRIORS[0], loss=loss)
        except ValueError:  # the logistic loss is part of a likelihood
            continue
        if loss in _SMOOTH:
            _check_gradients(name, loss)
        if loss in ("logistic", "sigmoid", "hinge"):
            _check_range(name, loss)
        for seed in range(3) if unbiased else ():
            _check_expectation(name, loss, seed)


def _check_gradients(name: str, loss: str) -> None:
    g = torch.Generator().manual_seed(3)
    z, z_prime = torch.randn(2, 7, generator=g, dtype=torch.float64).requires_grad_().unbind(0)
    u, v = torch.rand(2, 7, generator=g, dtype=torch.float64)
    for correction in ("none", "abs", "slope=0.3"):
        risk = make_risk(f"{name}-{correction}", prior=0.3, loss=loss)
        torch.autograd.gradcheck(lambda a, b, risk=risk: risk(a, b, u, v), (z, z_prime))


def _check_range(name: str, loss: str) -> None:
    """Every pair of extreme logits at once, in every precision."""
    z, z_prime = torch.cartesian_prod(*[torch.tensor(_EXTREMES)] * 2).T
    labels = PairLabels.from_posteriors(*torch.linspace(0, 1, 2 * len(z)).view(2, -1))
    for dtype in _TYPES:
        for prior in _PRIORS:
            logits = z.to(dtype).requires_grad_()
            risk = make_risk(f"{name}-abs", prior=prior, loss=loss)
            judged = labels.similarity.to(dtype), labels.difference.to(dtype)
            value = risk(logits, z_prime.to(dtype), *judged)
            (gradient,) = torch.autograd.grad(value, logits)
            where = f"{name}, {loss} loss, prior {prior}, {dtype}"
            assert torch.isfinite(value) and torch.isfinite(gradient).all(), f"{where}: not finite"
            assert value.dtype == max(dtype, torch.float32, key=lambda t: torch.finfo(t).bits), (
                f"{where}: computed in {value.dtype}"
            )


def _check_expectation(name: str, loss: str, seed: int) -> None:
    """Five points with masses, posteriors and logits; all 25 pairs with their probabilities."""
    g = torch.Generator().manual_seed(seed)
    mass, posterior, logit = torch.rand(3, 5, generator=g, dtype=torch.float64)
    mass, posterior, logit = mass / mass.sum(), posterior ** (1 + seed), 4 * logit - 2
    ell, ones = make_loss(loss), torch.ones_like(logit)
    true = mass @ (posterior * ell(logit, ones) + (1 - posterior) * ell(logit, -ones))
    risk = make_risk(name, prior=float(mass @ posterior), loss=loss)
    expected = torch.zeros((), dtype=torch.float64)
    for i in range(5):
        for j in range(5):
            labels = PairLabels.from_posteriors(posterior[[i]], posterior[[j]])
            pair = logit[[i]], logit[[j]], labels.similarity, labels.difference
            expected += mass[i] * mass[j] * risk.partial_risks(*pair).sum()
    assert torch.isclose(expected, true, rtol=0, atol=1e-10), (
        f"{name} is biased with the {loss} loss: its expectation is {expected:.6f}, the risk "
        f"{true:.6f}"
    )
