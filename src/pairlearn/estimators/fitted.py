"""What a fit learns: one immutable value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logit, logsumexp
from torch import nn

from pairlearn.annotators import Annotators
from pairlearn.columns import Floats, Indices
from pairlearn.estimators.instances import standardise
from pairlearn.io.encoder import ItemEncoder
from pairlearn.judgements.scales import Scale
from pairlearn.training.trainer import module_logits


@dataclass(frozen=True, kw_only=True, eq=False)
class Scorer:
    """A trained network or scikit-learn classifier, whose output z becomes log-odds.

    They are ``sign`` · ``slope`` · z + ``shift``. ``n_iter`` is the epoch of the final weights.
    With more than two classes ``order`` is the output of each class, and the log-odds are those of
    each class against the others.
    """

    module: nn.Module | None = None
    estimator: Any = None
    sign: int = 1
    slope: float = 1.0
    shift: float = 0.0
    order: tuple[int, ...] | None = None
    n_iter: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def factor(self) -> float:
        """Factor of the outputs."""
        return self.sign * self.slope

    def log_odds(self, prepared: NDArray[np.float32]) -> Floats:
        """Log-odds (m,), or (m, K), of standardised instances in the shape that the model takes."""
        if self.order is not None:
            if self.module is None:
                p = np.full((len(prepared), len(self.order)), 1e-12)
                p[:, self.estimator.classes_] += self.estimator.predict_proba(prepared)
                return each_log_odds(np.log(p))
            return each_log_odds(self.slope * module_logits(self.module, prepared)[:, self.order])
        if self.module is not None:
            z = module_logits(self.module, prepared)
        else:
            column = list(self.estimator.classes_).index(1)
            p = self.estimator.predict_proba(prepared)[:, column].astype(np.float64)
            z = np.asarray(logit(np.clip(p, 1e-12, 1 - 1e-12)))  # in float32 that would be 1
        return self.factor * z + self.shift


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted(Scorer):
    """All that `PairClassifier` has learnt, as its attributes with "_" describe it.

    ``flat`` models take instances as vectors; ``parameters`` are those of the fit, without data
    and code; ``scales`` those that answers were given on; ``trained_on`` is for files and notes
    about them, which the command line adds. ``held_items`` (k, 2) are fingerprints of items that a
    first model, fitted without them, was measured on, and ``held_log_odds`` what it gave them.
    ``fold_log_odds`` (n, 2) are those that annotators were learnt with, and ``last_epoch`` is where
    a trial on hard answers said to stop; neither is saved.
    """

    model: Any
    parameters: Mapping[str, Any]
    classes: NDArray[Any]
    instance_shape: tuple[int, ...]
    mean: Floats
    scale: Floats
    flat: bool
    prior: float | tuple[float, ...]
    training_items: Indices
    annotators: Annotators
    feature_names_in: NDArray[Any] | None = None
    encoder: ItemEncoder | None = None
    unjudged: int = 0
    scales: Mapping[str, Scale] = field(default_factory=dict)
    trained_on: Mapping[str, Any] | None = None
    held_items: Indices = field(default_factory=lambda: np.empty((0, 2), np.int64))
    held_log_odds: Floats = field(default_factory=lambda: np.empty(0))
    fold_log_odds: Floats | None = None
    last_epoch: float = math.inf

    @property
    def n_features_in(self) -> int:
        """Features of one instance, or columns of a data frame."""
        return math.prod(self.instance_shape) if self.encoder is None else len(self.encoder.columns)

    def prepared(self, features: NDArray[Any]) -> NDArray[np.float32]:
        """Standardised features in the shape that the model takes."""
        ready = standardise(features, self.mean, self.scale)
        return ready.reshape(len(ready), -1) if self.flat else ready


def probabilities(z: Floats) -> Floats:
    """Probabilities (m, K) of the classes for log-odds (m,) of the last of two, or (m, K)."""
    if z.ndim == 1:
        return np.stack([expit(-z), expit(z)], 1)
    return np.asarray(expit(z) / expit(z).sum(1, keepdims=True))


def each_log_odds(z: Floats) -> Floats:
    """Log-odds (m, K) of each class against the others, of outputs (m, K).

    Examples
    --------
    >>> expit(each_log_odds(np.log([[0.2, 0.3, 0.5]]))).round(3).tolist()
    [[0.2, 0.3, 0.5]]
    """
    log_p = log_softmax(z, axis=1)
    top, each = z.argmax(1), np.arange(len(z))
    rest = log_p.copy()
    rest[each, top] = -np.inf
    likeliest = log_p[each, top] - logsumexp(rest, axis=1)
    odds = log_p - np.log1p(-np.exp(np.minimum(log_p, np.log(0.5))))
    odds[each, top] = likeliest  # where 1 − p would cancel
    return np.asarray(odds)
