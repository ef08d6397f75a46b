"""The bounds against grids of labels and exact small worlds."""

import itertools
import math

import numpy as np
import pytest

from pairlearn_bench import bounds

FORMS = ("printed", "rederived")

# ---- constants against grids of labels --------------------------------------------------------

PRIORS = (0.02, 0.2, 0.25, 0.5, 0.6, 0.707, 0.9)


def weights(prior: float, s: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Weights of ℓ(x,+), ℓ(x',−), ℓ(x',+), ℓ(x,−) in SconfConfDiff, Theorem 3.2."""
    minus = 1 - prior
    return np.stack(
        [
            2 * prior * (prior - c) + minus - s,
            2 * minus * (minus - c) + prior - s,
            2 * prior * (prior + c) + minus - s,
            2 * minus * (minus + c) + prior - s,
        ]
    )


def feasible_labels() -> tuple[np.ndarray, np.ndarray]:
    r, r_prime = (axis.ravel() for axis in np.meshgrid(*[np.linspace(0, 1, 101)] * 2))
    return r * r_prime + (1 - r) * (1 - r_prime), r_prime - r


@pytest.mark.parametrize("prior", PRIORS)
def test_contraction_covers_feasible_labels(prior: float) -> None:
    size = np.abs(weights(prior, *feasible_labels()))
    printed, rederived = (
        bounds.contraction(prior=prior, lipschitz=1, rademacher=1, form=form) for form in FORMS
    )
    norm = size.sum(axis=0).max() / 2
    by_argument = (size[0] + size[3]).max() / 2 + (size[1] + size[2]).max() / 2
    by_term = size.max(axis=1).sum() / 2
    assert norm <= printed  # what the paper shows
    assert by_argument == pytest.approx(rederived)  # what Talagrand's lemma needs
    assert by_argument <= by_term + 1e-12
    complexity = bounds.uniform_corrected_estimation_error(
        n=1, delta=0.5, prior=prior, lipschitz=1, loss_bound=0, correction_lipschitz=1, rademacher=1
    )
    assert complexity == pytest.approx(4 * by_term)
    c = np.linspace(-1, 1, 201)  # ConfDiff's weights, for all labels
    size = np.abs(np.stack([prior - c, 1 - prior - c, prior + c, 1 - prior + c]))
    by_argument = (size[0] + size[3]).max() / 2 + (size[1] + size[2]).max() / 2
    confdiff = bounds.convex_uniform_deviation(
        n=1, delta=0.5, prior=prior, gamma=0, lipschitz=1, loss_bound=0, rademacher=1,
        form="rederived",
    )  # fmt: skip
    assert confdiff == pytest.approx(2 * by_argument)


@pytest.mark.parametrize("prior", PRIORS)
def test_mcdiarmid_terms_cover_the_range_of_one_pair(prior: float) -> None:
    values = weights(prior, *feasible_labels()) / 2
    spread = np.clip(values, 0, None).sum(axis=0).max() - np.clip(values, None, 0).sum(axis=0).min()
    delta = 2 * math.exp(-2)  # t(2) = 1 at n = 1
    allowed = bounds.uniform_deviation(
        n=1, delta=delta, prior=prior, lipschitz=1, loss_bound=1, rademacher=0
    )
    d = abs(2 * prior - 1)
    assert spread == pytest.approx(2 + 0.75 * d + d**2 / 4)  # the docstring's exact range
    assert spread + 0.5 <= allowed
    each = np.clip(values, 0, None).max(axis=1) - np.clip(values, None, 0).min(axis=1)
    allowed = bounds.corrected_deviation(
        n=1, delta=delta, loss_bound=1, correction_lipschitz=1, negativity=0
    )
    assert each.sum() <= allowed


def largest_change(points: np.ndarray) -> float:
    return float(np.abs(points[:, None] - points[None]).sum(axis=-1).max())


@pytest.mark.parametrize("prior", [0.1, 0.25, 0.8])
def test_convex_correction_increments(prior: float) -> None:
    """Printed increments are exceeded even by the 0-1 loss, rederived ones are attained."""
    minus, d = 1 - prior, 2 * prior - 1
    bits = list(itertools.product((0, 1), repeat=4))
    sconf, confdiff, zero_one = [], [], []
    for s, (u, v, *_) in itertools.product((0, 0.5, 1), bits):
        sconf.append([(s - minus) * u / d, (prior - s) * v / d])
    for c, (t, u, v, w) in itertools.product((-1, 0, 1), bits):
        terms = [(prior - c) * t, (minus - c) * u, (prior + c) * v, (minus + c) * w]
        confdiff.append(np.array(terms) / 2)
        if t != w and u != v:
            zero_one.append(np.array(terms) / 2)
    for gamma, change in (
        (1, largest_change(np.array(sconf))),
        (0, largest_change(np.array(confdiff))),
    ):
        arguments = {
            "n": 1, "delta": 8 * math.exp(-8), "prior": prior, "gamma": gamma, "lipschitz": 1,
            "loss_bound": 1, "rademacher": 0, "negativity_sconf": 0, "negativity_confdiff": 0,
        }  # fmt: skip
        slopes = [
            bounds.convex_corrected_estimation_error(correction_lipschitz=1, form=f, **arguments)
            - bounds.convex_corrected_estimation_error(correction_lipschitz=0, form=f, **arguments)
            for f in FORMS
        ]  # 2 deviations at t(8) = 2
        assert slopes[0] / 4 == pytest.approx(change / 2)
        assert slopes[1] / 4 == pytest.approx(change)
    assert largest_change(np.array(zero_one)) == pytest.approx(3)  # 2 is printed


# ---- a small world in which everything can be enumerated --------------------------------------


class World:
    """Three instances, four classifiers, sigmoid loss (L = 1/4, C = 1); all moments exact."""

    mass = np.array([0.5, 0.3, 0.2])
    posterior = np.array([0.9, 0.7, 0.1])
    prior = float(mass @ posterior)
    outputs = np.array([[2.0, 1.0, -2.0], [-2.0, -1.0, 2.0], [3.0, -3.0, 0.0], [-1.0, 2.0, 3.0]])

    def __init__(self) -> None:
        positive = 1 / (1 + np.exp(self.outputs))  # ℓ(g, +1); ℓ(g, −1) = 1 − it
        self.risk = (positive * self.posterior + (1 - positive) * (1 - self.posterior)) @ self.mass
        i, j = (axis.ravel() for axis in np.meshgrid(range(3), range(3), indexing="ij"))
        r, r_prime = self.posterior[i], self.posterior[j]
        weight = weights(self.prior, r * r_prime + (1 - r) * (1 - r_prime), r_prime - r)
        losses = np.stack([positive[:, i], 1 - positive[:, j], positive[:, j], 1 - positive[:, i]])
        self.pair_mass = self.mass[i] * self.mass[j]
        self.partial = weight[:, None] * losses / 2  # (partial risk, classifier, pair)
        self.pair_loss = self.partial.sum(axis=0)  # (classifier, pair)

    def rademacher(self, values: np.ndarray, mass: np.ndarray, n: int) -> float:
        """Expectation over every sample of size n and every sign vector."""
        signs = np.array(list(itertools.product((-1, 1), repeat=n)))
        total = 0.0
        for sample in itertools.product(range(mass.size), repeat=n):
            chosen = list(sample)
            total += mass[chosen].prod() * (values[:, chosen] @ signs.T).max(axis=0).mean() / n
        return total


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def test_world_is_unbiased_and_contraction_holds_exactly(world: World) -> None:
    np.testing.assert_allclose(world.pair_loss @ world.pair_mass, world.risk)
    ours = world.rademacher(world.pair_loss, world.pair_mass, 3)
    simple = world.rademacher(world.outputs, world.mass, 3)
    for form in FORMS:
        bound = bounds.contraction(prior=world.prior, lipschitz=0.25, rademacher=simple, form=form)
        assert 0 < ours <= bound


@pytest.mark.parametrize("correction", [lambda z: z, lambda z: np.maximum(z, 0), np.abs])
def test_deviation_and_excess_risk_hold_in_every_draw(world: World, correction) -> None:
    n, draws, rng = 6, 3000, np.random.default_rng(0)
    core = {
        "n": n, "delta": 0.05, "prior": world.prior, "lipschitz": 0.25, "loss_bound": 1.0,
        "rademacher": world.rademacher(world.outputs, world.mass, n),
    }  # fmt: skip
    counts = rng.multinomial(n, world.pair_mass, size=draws) / n
    empirical = correction(world.partial @ counts.T).sum(axis=0)  # (classifier, draw)
    gap = np.abs(empirical - world.risk[:, None]).max(axis=0)
    excess = world.risk[empirical.argmin(axis=0)] - world.risk.min()
    corrected = bounds.uniform_corrected_estimation_error(correction_lipschitz=1, **core)
    assert gap.max() <= corrected / 2
    assert excess.max() <= corrected
    if correction(-1.0) == -1.0:
        for form in FORMS:
            assert gap.max() <= bounds.uniform_deviation(form=form, **core)
            assert excess.max() <= bounds.estimation_error(form=form, **core)


@pytest.mark.parametrize("form", FORMS)
def test_correction_bias_holds(world: World, form: bounds.Form) -> None:
    n, rng = 40, np.random.default_rng(1)
    counts = rng.multinomial(n, world.pair_mass, size=20_000) / n
    expected = world.partial @ world.pair_mass  # (partial risk, classifier)
    sampled = world.partial @ counts.T
    bias = np.maximum(sampled, 0).sum(axis=0).mean(axis=1) - world.risk
    for k in range(4):
        negativity = bounds.delta_scd(
            n=n, prior=world.prior, loss_bound=1, floors=expected[:, k].tolist(), form=form
        )
        assert (sampled[:, k] <= 0).any(axis=0).mean() <= negativity
        allowed = bounds.correction_bias(
            loss_bound=1, correction_lipschitz=1, negativity=negativity
        )
        assert bias[k] <= allowed


def test_printed_delta_sconf_fails_where_the_rederived_one_holds() -> None:
    """An exact trinomial: P(Â ≤ 0) for a nearly perfect classifier exceeds the printed Δ_Sconf."""
    n, mass, posterior = 60, 0.8, 0.98  # of x = 1; the posterior of x = 0 is 0.02
    prior = mass * posterior + (1 - mass) * (1 - posterior)
    same = posterior**2 + (1 - posterior) ** 2
    # The 0-1 loss ℓ(x, +1) is 1 at x = 0 only: twice in a pair (0, 0), once in a mixed pair.
    alike, mixed = (same - 1 + prior) * 2, (1 - same) - 1 + prior
    odds = ((1 - mass) ** 2, 2 * mass * (1 - mass), mass**2)
    not_positive = sum(
        math.comb(n, i) * math.comb(n - i, j) * odds[0] ** i * odds[1] ** j * odds[2] ** (n - i - j)
        for i in range(n + 1)
        for j in range(n + 1 - i)
        if i * alike + j * mixed <= 0
    )
    floor = (odds[0] * alike + odds[1] * mixed) / (2 * (2 * prior - 1))
    assert floor == pytest.approx((1 - mass) * (1 - posterior))  # π₊·E₊[ℓ]: Sconf is unbiased
    printed, rederived = (
        bounds.delta_sconf(n=n, prior=prior, loss_bound=1, floors=[floor, floor], form=form)
        for form in FORMS
    )
    assert printed < 0.01 < 0.3 < not_positive <= rederived
