"""A task whose exact risk is known, and the bounds on what is learned from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from pairlearn import bounds
from pairlearn.experiments.theory.numbers import Floats, logit, normal_shape, sigmoid
from pairlearn.labels import PairLabels
from pairlearn.losses import make_loss
from pairlearn.risks import Risk

__all__ = ["DELTA", "ESTIMATORS", "TwoGaussians"]

DELTA = 0.05
"""The bounds may fail with this probability, so they face the 95% quantile of the errors."""

ESTIMATORS = ("sconfconfdiff-none", "sconfconfdiff-abs", "convex-0.5-none")
"""What is trained, in the order of the theorems 3.5, 3.9 and B.1."""


@dataclass(frozen=True)
class TwoGaussians:
    """Two Gaussian classes, linear classifiers ‖w‖ ≤ B, sigmoid loss: the exact risk is known.

    x ~ N(±m e₁, I) in `dimension` features, and a constant feature carries the bias. The
    sigmoid loss has L = ¼ and C = 1 for all logits, so the features need no bound: the
    Rademacher complexity is at most B√(E‖x‖²/n). The risk depends on w only through w₁, the
    norm of the weights and the bias, and is a one-dimensional integral.

    Examples
    --------
    >>> task = TwoGaussians()
    >>> round(task.best_risk, 4), [round(floor, 4) for floor in task.floors]
    (0.181, [0.0085, 0.0339, 0.0085, 0.0339])
    """

    prior: float = 0.2
    mean: float = 1.0
    dimension: int = 10
    radius: float = 2.0
    loss: str = "sigmoid"
    best_risk: float = field(init=False)
    floors: tuple[float, float, float, float] = field(init=False)

    def __post_init__(self) -> None:
        positive, negative = (self._lowest(classes) / 2 for classes in ((1, 0), (0, 1)))
        object.__setattr__(self, "best_risk", self._lowest((1, 1)))
        object.__setattr__(self, "floors", (positive, negative, positive, negative))

    def class_risks(self, weights: Floats) -> Floats:
        """Exact π₊E₊[ℓ(g, +1)] and π₋E₋[ℓ(g, −1)] of weights (..., dimension + 1)."""
        nodes = np.linspace(-9, 9, 361)
        masses = normal_shape(nodes) / normal_shape(nodes).sum()
        noise = np.linalg.norm(weights[..., :-1], axis=-1)[..., None] * nodes
        shift, bias = self.mean * weights[..., :1], weights[..., -1:]
        plus = self.prior * sigmoid(-(bias + shift + noise)) @ masses
        minus = (1 - self.prior) * sigmoid(bias - shift + noise) @ masses
        return np.stack([plus, minus], axis=-1)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[torch.Tensor, PairLabels]:
        """Features (n, 2, dimension + 1) of n pairs and the labels from their true posteriors."""
        x = rng.standard_normal((n, 2, self.dimension + 1))
        x[..., 0] += np.where(rng.random((n, 2)) < self.prior, self.mean, -self.mean)
        x[..., -1] = 1.0
        r = sigmoid(2 * self.mean * x[..., 0] + logit(self.prior))
        labels = PairLabels.from_posteriors(*torch.from_numpy(r.T.copy()))
        return torch.from_numpy(x), labels

    def minimise(self, risk: Risk, features: torch.Tensor, labels: PairLabels) -> Floats:
        """Weights in the ball that minimise the empirical risk, by L-BFGS from zero."""
        v = torch.zeros(features.shape[-1], dtype=features.dtype, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [v], max_iter=60, tolerance_grad=1e-9, tolerance_change=1e-12,
            line_search_fn="strong_wolfe",
        )  # fmt: skip

        def weights() -> torch.Tensor:
            # B·sin‖v‖ is at most B, and smooth where the best classifiers are: on the sphere.
            return self.radius * v * torch.sinc(torch.linalg.vector_norm(v) / math.pi)

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            logits = features @ weights()
            value: torch.Tensor = risk(*logits.unbind(1), labels.similarity, labels.difference)
            value.backward()  # type: ignore[no-untyped-call]
            return value

        optimiser.step(closure)  # type: ignore[no-untyped-call]
        found: Floats = weights().detach().numpy()
        return found

    def error_bounds(self, n: int) -> dict[str, dict[str, float | None]]:
        """For each estimator the bounds on its excess risk: printed, rederived and uniform."""
        size = math.sqrt(self.mean**2 + self.dimension + 1)
        loss = make_loss(self.loss)
        given: dict[str, Any] = {
            "n": n,
            "delta": DELTA,
            "prior": self.prior,
            "lipschitz": loss.lipschitz(math.inf),
            "loss_bound": loss.bound(math.inf),
            "rademacher": bounds.linear_rademacher(
                n=n, weight_norm=self.radius, feature_radius=size
            ),
        }
        forms: tuple[bounds.Form, bounds.Form] = ("printed", "rederived")
        found: dict[str, dict[str, float | None]] = {name: {} for name in ESTIMATORS}
        for form in forms:
            negativity = bounds.delta_scd(
                n=n, prior=self.prior, loss_bound=1.0, floors=self.floors, form=form
            )
            values = (
                bounds.estimation_error(**given, form=form),
                bounds.corrected_estimation_error(
                    **given, correction_lipschitz=1.0, negativity=negativity, form=form
                ),
                bounds.convex_estimation_error(**given, gamma=0.5, form=form),
            )
            for name, value in zip(ESTIMATORS, values, strict=True):
                found[name][f"bound_{form}"] = value
        uniform = bounds.uniform_corrected_estimation_error(**given, correction_lipschitz=1.0)
        for name in ESTIMATORS:
            found[name]["bound_uniform"] = uniform if name.endswith("-abs") else None
        return found

    def _lowest(self, classes: tuple[int, int]) -> float:
        """The lowest sum of these class risks in the ball.

        Only w₁ and the bias can help, and the more of them the better: it lies on a circle.
        """
        center, width, lowest = 0.0, math.pi, math.inf
        for _ in range(3):
            angles = center + np.linspace(-width, width, 1001)
            weights = np.zeros((len(angles), self.dimension + 1))
            weights[:, 0], weights[:, -1] = np.cos(angles), np.sin(angles)
            values = self.class_risks(self.radius * weights) @ np.array(classes)
            center, width, lowest = float(angles[values.argmin()]), width / 250, values.min()
        return float(lowest)
