"""The threshold with the least expected cost, chosen and measured on the same pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.evaluation.decisions import agreeing, fit_decisions
from pairlearn.evaluation.estimate import Estimate, proportion, quantile
from pairlearn.evaluation.judged import JudgedPairs, check_confidence, check_prior
from pairlearn.evaluation.measures import check_cost, cost_measure
from pairlearn.labels import PairLabels

__all__ = ["ThresholdChoice", "choose_threshold"]

CANDIDATES = 50
DRAWS = 4000


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold and its expected cost per instance.

    Attributes
    ----------
    threshold : float
        Decide positive above it.
    cost : Estimate
        Its expected cost. The value is the least of many estimates and so a little
        optimistic; the interval holds for all candidates at once, so for the chosen one.
    candidates, costs : array of shape (m,)
        All thresholds tried, and their estimated costs.
    """

    threshold: float
    cost: Estimate
    candidates: NDArray[np.float64]
    costs: NDArray[np.float64]


def choose_threshold(
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    cost: tuple[float, float] = (1.0, 1.0),
    weight: Any = None,
    items: Any = None,
    confidence: float = 0.95,
    prior: float | None = None,
) -> ThresholdChoice:
    """Choose the threshold with the least estimated expected cost.

    The expected cost q (1 − p) c_fp + (1 − q) o c_fn is estimated at up to 50 quantiles
    of the outputs, and at the extremes, "always" and "never". Choosing the least makes a
    plain interval at the choice too low and too short. Here the interval is
    *simultaneous*: its quantile is that of the largest deviation among all candidates,
    simulated with their estimated correlations, so it covers whichever is chosen.

    Parameters
    ----------
    cost : (false positive, false negative)
        What a wrong decision of either kind costs; (1, 1) is the error rate.
    logits, logits_prime, labels, weight, items, confidence, prior
        As in `estimate_accuracy`.

    Examples
    --------
    Missing a positive costs nine times as much as a false alarm, so that it pays to call
    positive whatever is so with probability .1, at log-odds of −2.2:

    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(0, 3, size=(2, 2000))
    >>> labels = PairLabels.from_posteriors(1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-z_prime)))
    >>> choice = choose_threshold(z, z_prime, labels, cost=(1, 9))
    >>> round(choice.threshold, 1), str(choice.cost)
    (-2.2, '.345 [.323, .369]')
    """
    check_confidence(confidence)
    check_prior(prior)
    costs = check_cost(cost)
    pairs = JudgedPairs.of(logits, logits_prime, labels, weight, items)
    candidates = _candidates(pairs)
    solutions = agreeing([fit_decisions(pairs, float(t), prior, confidence) for t in candidates])
    measured = [s.measure(lambda theta: cost_measure(costs, theta)) for s in solutions]
    values = np.concatenate([value for value, _ in measured])
    influences = np.concatenate([influence for _, influence in measured], axis=1)
    best = int(np.argmin(values))
    ends = pairs.effective_ends
    z = _simultaneous(pairs.dependence.covariance(influences), confidence)
    # Few items widen the simultaneous quantile in the proportion of a single one.
    z *= quantile(confidence, ends) / quantile(confidence, 1e12)
    variance = float(pairs.dependence.variance(influences[:, best]))
    scaled = proportion(float(values[best]), variance, ends, z, noisy=pairs.noisy)
    most = max(costs)
    estimate = Estimate(scaled.value * most, scaled.low * most, scaled.high * most)
    return ThresholdChoice(float(candidates[best]), estimate, candidates, values * most)


def _candidates(pairs: JudgedPairs) -> NDArray[np.float64]:
    """Midpoints between outputs at quantiles, and one below and one above all outputs."""
    outputs = np.unique(np.concatenate([pairs.z, pairs.z_prime]))
    outputs = outputs[np.isfinite(outputs)]
    if not len(outputs):
        raise ValueError("logits are all infinite: a threshold needs finite outputs")
    middle = (outputs[1:] + outputs[:-1]) / 2
    if len(middle) > CANDIDATES:
        pooled = np.concatenate([pairs.z, pairs.z_prime])
        places = np.quantile(pooled[np.isfinite(pooled)], np.linspace(0, 1, CANDIDATES + 2)[1:-1])
        middle = np.unique(middle[np.searchsorted(middle, places).clip(0, len(middle) - 1)])
    return np.concatenate([[outputs[0] - 1], middle, [outputs[-1] + 1]])


def _simultaneous(covariance: NDArray[np.float64], confidence: float) -> float:
    """Quantile of max |Z| for normal Z with these correlations."""
    scale = np.sqrt(np.diag(covariance))
    varies = scale > 1e-9 * scale.max()
    correlation = (covariance / np.outer(scale, scale).clip(1e-300))[np.ix_(varies, varies)]
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(values.clip(0))
    draws = np.random.default_rng(0).standard_normal((DRAWS, len(values))) @ root.T
    return float(np.quantile(np.abs(draws).max(1), confidence))
