"""Risks against exact enumeration of small discrete distributions.

A distribution has m points with masses q and posteriors r; pairs are all m² of
them. Expectations are then finite sums, with no sampling error, and the reference
is the definition of the risk: Σ q [r ℓ(g, +1) + (1 − r) ℓ(g, −1)].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pairlearn import (
    ConfDiff,
    Convex,
    Mixed,
    NonNegative,
    PairLabels,
    PairLikelihood,
    Sconf,
    SconfConfDiff,
    Supervised,
    make_risk,
    register_risk,
)
from pairlearn.losses import make_loss
from pairlearn.risks import (
    RISKS,
    SIBLINGS,
    Risk,
    check_risk,
    correct,
    pair_moments,
)

AFFINE = ["sconf", "confdiff", "convex-0.3", "convex-1", "sconfconfdiff", "sconfconfdiff-0.2"]
AFFINE += ["nonnegative"]
EVERY = [*AFFINE, "likelihood", "supervised", *SIBLINGS]


@dataclass
class World:
    """A discrete distribution over m points and a classifier on them."""

    mass: Tensor
    posterior: Tensor
    logit: Tensor

    @property
    def prior(self) -> float:
        return float((self.mass * self.posterior).sum())

    def pairs(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Probability, g, g', s, c of all m² ordered pairs."""
        m = len(self.mass)
        i, j = torch.cartesian_prod(torch.arange(m), torch.arange(m)).unbind(-1)
        labels = PairLabels.from_posteriors(self.posterior[i], self.posterior[j])
        weight = self.mass[i] * self.mass[j]
        return weight, self.logit[i], self.logit[j], labels.similarity, labels.difference

    def true_parts(self, loss: str) -> tuple[float, float]:
        """The two halves of the risk, from its definition: + class and − class."""
        ell = make_loss(loss)
        ones = torch.ones_like(self.logit)
        plus = (self.mass * self.posterior * ell(self.logit, ones)).sum()
        minus = (self.mass * (1 - self.posterior) * ell(self.logit, -ones)).sum()
        return float(plus), float(minus)


def world(seed: int, m: int = 5) -> World:
    g = torch.Generator().manual_seed(seed)

    def rand() -> Tensor:
        return torch.rand(m, generator=g, dtype=torch.float64)

    mass = rand() + 0.05
    posterior = rand() ** float(torch.randint(1, 4, (), generator=g))
    return World(mass / mass.sum(), posterior, 4 * rand() - 2)


def expected_partial_risks(risk: Risk, w: World) -> Tensor:
    """E[partial risks]: linear in the pair, so a weighted sum over single pairs."""
    weight, *pairs = w.pairs()
    parts = torch.stack([risk.partial_risks(*(t[k : k + 1] for t in pairs)) for k in range(25)])
    return (weight.unsqueeze(-1) * parts).sum(0)


@pytest.mark.parametrize("name", EVERY)
def test_a_risk_has_the_properties_of_all(name: str) -> None:
    """Its name, gradients, range of values and, if it is affine, expectation."""
    check_risk(name, unbiased=name in AFFINE)


def test_what_check_risk_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConfDiff, "betas", lambda self: (0.1, 0.2))
    check_risk("confdiff")  # any β is unbiased
    table = ConfDiff(0.2).table
    monkeypatch.setattr(ConfDiff, "partial_risks", lambda self, *_: 2 * table.sum() * torch.ones(1))
    with pytest.raises(AssertionError, match="confdiff is biased with the logistic loss"):
        check_risk("confdiff")


def test_mistakes_in_a_new_risk_are_named() -> None:
    with pytest.raises(TypeError, match="takes a subclass of Risk; got ConfDiff"):
        register_risk(ConfDiff(0.2))  # type: ignore[arg-type]
    for family, message in (
        ("Half-way", "lower-case letters; got 'Half-way'"),
        ("sconf", "built in"),
    ):
        with pytest.raises(ValueError, match=f"New: family .*{message}"):
            register_risk(type("New", (ConfDiff,), {"family": family}))


@pytest.mark.parametrize("seed", range(6))
def test_partial_risks_equal_their_stated_parts(seed: int) -> None:
    w = world(seed)
    plus, minus = w.true_parts("logistic")
    halves = [plus / 2, minus / 2, plus / 2, minus / 2]
    expected = {
        "confdiff": halves,
        "sconfconfdiff": halves,
        "nonnegative": halves,
        "sconfconfdiff-0.2": [0.2 * plus, 0.8 * minus, 0.8 * plus, 0.2 * minus],
        "sconf": [plus, minus],
        "convex-0.3": [0.3 * plus, 0.3 * minus, *(0.7 * half for half in halves)],
    }
    for name, parts in expected.items():
        got = expected_partial_risks(make_risk(name, prior=w.prior), w)
        assert got.tolist() == pytest.approx(parts, abs=1e-12), name


def test_published_weights() -> None:
    """The weights printed in the three papers, at numbers worked out by hand.

    π₊ = 0.2, s = 0.3, c = 0.4, and unit losses one at a time (hinge, logits ±1 make
    one loss 2 and the other 0).
    """
    s, c = torch.tensor([0.3]), torch.tensor([0.4])
    up, down = torch.tensor([1.0]), torch.tensor([-1.0])  # ℓ₋ = 2, ℓ₊ = 2

    def weights(risk: Risk) -> tuple[float, ...]:
        # z = −1 shows ℓ(x, +1) = 2 alone, z = +1 shows ℓ(x, −1) = 2 alone.
        total = {
            (a, b): float(risk(za, zb, s, c)) / 2
            for a, za in (("+", down), ("-", up))
            for b, zb in (("+", down), ("-", up))
        }
        return tuple(round(total[key], 6) for key in (("+", "+"), ("+", "-"), ("-", "+")))

    # ConfDiff: x+ (π₊−c)/2 = −.1, x− (π₋+c)/2 = .6, x'+ (π₊+c)/2 = .3, x'− (π₋−c)/2 = .2
    assert weights(ConfDiff(0.2, loss="hinge")) == (0.2, 0.1, 0.9)
    # Sconf: + (s−π₋)/(2δ) = .5/1.2, − (π₊−s)/(2δ) = .1/1.2
    assert weights(Sconf(0.2, loss="hinge")) == (0.833333, 0.5, 0.5)
    # SconfConfDiff: x+ ½(.4(−.2)+.8−.3) = .21, x'− ½(1.6·.4+.2−.3) = .27,
    #                x'+ ½(.4·.6+.5) = .37, x− ½(1.6·1.2−.1) = .91
    assert weights(SconfConfDiff(0.2, loss="hinge")) == (0.58, 0.48, 1.28)
    # NonNegative: a = .15, b = .55: x+ a/(2π₋), x'+ b/(2π₋), x− b/(2π₊), x'− a/(2π₊)
    assert weights(NonNegative(0.2, loss="hinge")) == (0.4375, 0.46875, 1.71875)


@given(prior=st.floats(0.02, 0.98), r=st.floats(0, 1), r_prime=st.floats(0, 1))
def test_nonnegative_member_is_never_negative(prior: float, r: float, r_prime: float) -> None:
    labels = PairLabels.from_posteriors(
        torch.tensor([r], dtype=torch.float64), torch.tensor([r_prime], dtype=torch.float64)
    )
    logits = torch.tensor([0.3], dtype=torch.float64)
    parts = NonNegative(prior).partial_risks(logits, -logits, labels.similarity, labels.difference)
    assert (parts >= -1e-12).all()


@pytest.mark.parametrize("seed", range(4))
def test_members_coincide_at_prior_one_half(seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    z, z_prime = torch.randn(2, 64, generator=g, dtype=torch.float64)
    labels = PairLabels.from_posteriors(*torch.rand(2, 64, generator=g, dtype=torch.float64))
    names = ["sconfconfdiff-none", "sconfconfdiff-relu", "sconfconfdiff-abs", "nonnegative-abs"]
    values = [
        float(make_risk(name, prior=0.5)(z, z_prime, labels.similarity, labels.difference))
        for name in names
    ]
    assert values == pytest.approx([values[0]] * 4, abs=1e-14)


def test_likelihood_is_the_cross_entropy_of_the_outcomes() -> None:
    z, z_prime = torch.tensor([0.7, -2.0]).double(), torch.tensor([1.9, 0.4]).double()
    r, r_prime = torch.tensor([[0.3, 0.8], [0.6, 0.1]], dtype=torch.float64)
    labels = PairLabels.from_posteriors(r, r_prime)
    predicted = PairLabels.from_posteriors(z.sigmoid(), z_prime.sigmoid()).outcomes()
    by_hand = -(labels.outcomes() * predicted.log()).sum(-1).mean() / 2
    got = PairLikelihood()(z, z_prime, labels.similarity, labels.difference)
    assert float(got) == pytest.approx(float(by_hand), abs=1e-14)


def test_same_term_keeps_its_digits() -> None:
    """−log P(same) of two confident logits, against float64 arithmetic by log1p."""
    z = torch.tensor([20.0, -15.0, 12.0, 1e4])
    z_prime = torch.tensor([18.0, -25.0, -12.0, -1e4])
    p, q = z[:3].double().neg().exp(), z_prime[:3].double().neg().exp()  # odds of negative
    exact = torch.log1p(p) + torch.log1p(q) - torch.log1p(p * q)
    zero, one = torch.zeros(1), torch.ones(1)
    got = [
        -float(pair_moments(a[None], b[None], zero, one, make_loss("logistic"))[4, 2])
        for a, b in zip(z, z_prime, strict=True)
    ]
    assert got[:3] == pytest.approx(exact.tolist(), rel=1e-5)
    assert got[3] == pytest.approx(1e4 - math.log(2))


def test_correction_applies_to_each_partial_risk() -> None:
    z, s, c = torch.tensor([2.0, -1.0]), torch.tensor([0.1, 0.0]), torch.tensor([0.9, 1.0])
    parts = ConfDiff(0.2).partial_risks(z, z, s, c).tolist()
    assert min(parts) < 0
    for correction, slope in (("none", -1), ("relu", 0), ("abs", 1), (0.3, 0.3)):
        expected = sum(max(part, -slope * part) for part in parts)
        corrected = ConfDiff(0.2, correction=correction)(z, z, s, c)
        assert float(corrected) == pytest.approx(expected)
        steps = torch.tensor(slope * 1.0)  # as a fleet has them
        assert float(correct(torch.tensor(parts), steps).sum()) == pytest.approx(expected)


def test_ascent_minimises_the_negative_risk_alone() -> None:
    """Algorithm 1 of nnPU: a step up the negative partial risk, else the whole risk."""
    both = torch.tensor([0.7, -0.2], requires_grad=True)
    for slope in (math.inf, torch.tensor([math.inf])):
        correct(both, slope).sum().backward()
        assert both.grad is not None and both.grad.tolist() == [0.0, -1.0]
        both.grad = None
    whole = correct(torch.tensor([[0.7, 0.2], [0.7, -0.2]]), torch.tensor([math.inf]))
    assert whole.tolist() == [[pytest.approx(0.7), pytest.approx(0.2)], [0, pytest.approx(0.2)]]
    # In a fleet each member has its own slope.
    slopes = torch.tensor([[math.inf], [1.0]])
    assert correct(torch.tensor([[0.7, -0.2]] * 2), slopes).sum(-1).tolist() == pytest.approx(
        [0.2, 0.9]
    )
    assert str(make_risk("nnpu-ascent", prior=0.3)) == "nnpu-ascent"


def test_moments_can_be_averaged_before_the_correction() -> None:
    g = torch.Generator().manual_seed(0)
    z, z_prime = torch.randn(2, 60, generator=g)
    s, c = torch.rand(60, generator=g), torch.rand(60, generator=g) - 0.5
    risk = make_risk("convex-0.5-abs", prior=0.2)
    halves = [risk.moments(z[k], z_prime[k], s[k], c[k]) for k in (slice(0, 30), slice(30, 60))]
    whole = risk(z, z_prime, s, c)
    assert float(risk.from_moments((halves[0] + halves[1]) / 2)) == pytest.approx(float(whole))


def test_supervised_and_mixed() -> None:
    z, z_prime = torch.tensor([1.0, -2.0]), torch.tensor([0.5, 3.0])
    y, y_prime = torch.tensor([1, -1]), torch.tensor([0, 1])
    reference = torch.nn.functional.binary_cross_entropy_with_logits(
        torch.cat([z, z_prime]), torch.tensor([1.0, 0.0, 0.0, 1.0])
    )
    assert float(Supervised()(z, z_prime, y, y_prime)) == pytest.approx(float(reference))
    pair_risk = SconfConfDiff(0.2, correction="abs")
    s, c = torch.tensor([0.6, 0.1]), torch.tensor([0.1, 0.7])
    mixed = Mixed(pair_risk, 0.3)(z, z_prime, s, c, torch.tensor([0.0]), torch.tensor([1]))
    pairs = float(pair_risk(z, z_prime, s, c))
    assert float(mixed) == pytest.approx(0.3 * pairs + 0.7 * math.log(2))


def test_names() -> None:
    assert {risk.family for risk in RISKS.values()} == set(RISKS)
    assert str(make_risk("convex-0.3-slope=0.25", prior=0.2)) == "convex-0.3-slope=0.25"
    assert str(make_risk("likelihood")) == "likelihood-none"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sconf(0.5), "sconf is undefined at prior ½.*confdiff, sconfconfdiff"),
        (lambda: Convex(0.5, 0.2), "convex is undefined at prior ½"),
        (lambda: ConfDiff(0.0), r"prior must lie in \(0, 1\); got 0"),
        (lambda: ConfDiff(1.2), r"prior must lie in \(0, 1\); got 1.2"),
        (lambda: ConfDiff(math.nan), "prior must lie"),
        (lambda: Convex(0.2, 1.5), r"gamma must lie in \[0, 1\]; got 1.5"),
        (lambda: SconfConfDiff(0.2, -0.1), r"lam must lie in \[0, 1\]; got -0.1"),
        (lambda: Mixed(ConfDiff(0.2), 2), r"weight must lie in \[0, 1\]; got 2"),
        (lambda: ConfDiff(0.2, correction="abss"), "correction 'abss' is unknown"),
        (lambda: ConfDiff(0.2, correction=-2), "slope of at least -1; got -2"),
        (lambda: ConfDiff(0.2, loss="log"), "loss 'log' is unknown; choose one of logistic"),
        (lambda: make_risk("nopcomp", 0.2), "risk 'nopcomp' is unknown"),
        (lambda: make_risk("convex-abs", 0.2), "needs its γ in the name"),
        (lambda: make_risk("sconf-0.5", 0.2), "sconf takes no number"),
        (lambda: make_risk("confdiff-abs"), "needs the class prior"),
        (lambda: make_risk("likelihood", loss="hinge"), "loss 'hinge' does not apply"),
    ],
)
def test_errors_name_the_argument(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_bad_batches() -> None:
    risk, z = PairLikelihood(), torch.zeros(3)
    with pytest.raises(ValueError, match=r"difference is missing \(NaN\) in row 1"):
        risk(z, z, z, torch.tensor([0.0, math.nan, 0.0]))
    with pytest.raises(ValueError, match=r"y_prime is missing \(NaN\) in row 2"):
        Supervised()(z, z, z, torch.tensor([0.0, 1.0, math.nan]))
    with pytest.raises(ValueError, match=r"share one shape.*\(3,\), \(2,\)"):
        risk(z, z[:2], z, z)
    with pytest.raises(ValueError, match="the batch is empty"):
        risk(z[:0], z[:0], z[:0], z[:0])
    column = z.unsqueeze(-1)
    assert risk(column, column, z, z) == risk(z, z, z, z)


def test_autocast_does_not_lower_the_precision() -> None:
    g = torch.Generator().manual_seed(2)
    z, z_prime, s, c = torch.rand(4, 100, generator=g)
    risk = make_risk("sconfconfdiff-abs", prior=0.3)
    with torch.autocast("cpu", torch.bfloat16):
        inside = risk(z, z_prime, s, c)
    assert inside == risk(z, z_prime, s, c)
