"""One training, fully described."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from pairlearn.experiments.methods import canonical_name, is_defined

__all__ = ["Run"]

MODELS = ("mlp", "mlp-bn", "linear", "resnet34", "resnet32")
ANNOTATORS = ("paper", "calibrated")
IMAGES = ("proper", "published")

_KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "int": (int, "a whole number"),
    "float": (float, "a finite number"),
    "str": (str, "printable text"),
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """The full configuration of one training: two equal runs give the same result.

    Parameters
    ----------
    dataset : str
        Name of the benchmark.
    prior : float
        Class prior π₊ of the pairs and of the test set, in (0, 1).
    seed : int
        Seed of everything random.
    method : str
        Name of the risk for :func:`pairlearn.make_risk`; kept in its canonical spelling.
    prior_factor : float
        ε: the estimator is given ε π₊ in place of π₊.
    label_noise : float
        σ: similarities and differences are multiplied by N(1, σ²).
    fraction : float
        Share of the pairs that is used, in (0, 1].
    model : {"mlp", "mlp-bn", "linear", "resnet34", "resnet32"}
        Architecture.
    annotator : {"paper", "calibrated"}
        Trained at the natural class balance, or at that of the pairs.
    pairs : int
        Pairs sampled before ``fraction`` is taken.
    epochs, batch_size : int
        Passes over the pairs, and pairs in a batch.
    learning_rate, weight_decay : float
        Of Adam.
    window : int
        The accuracy is the mean over this many last epochs, or over all if there are fewer.
    images : {"proper", "published"}
        How colour images are prepared, as in :func:`pairlearn.data.load`.

    Examples
    --------
    >>> run = Run(dataset="letter", prior=0.2, seed=0, method="confdiff", pairs=4000, epochs=200)
    >>> run.method, run.n_training_pairs
    ('confdiff-none', 4000)
    >>> Run.from_fields(json.loads(run.key())) == run
    True
    """

    dataset: str
    prior: float
    seed: int
    method: str
    prior_factor: float = 1.0
    label_noise: float = 0.0
    fraction: float = 1.0
    model: str = "mlp"
    annotator: str = "paper"
    pairs: int
    epochs: int
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    window: int = 10
    images: str = "proper"

    def __post_init__(self) -> None:
        _normalise_types(self)
        _require(0 < self.prior < 1, "prior", self.prior, "a number in (0, 1)")
        _require(self.seed >= 0, "seed", self.seed, "0 or more")
        _require(self.prior_factor > 0, "prior_factor", self.prior_factor, "positive")
        _require(self.label_noise >= 0, "label_noise", self.label_noise, "0 or more")
        _require(0 < self.fraction <= 1, "fraction", self.fraction, "a number in (0, 1]")
        _require(self.model in MODELS, "model", self.model, f"one of {', '.join(MODELS)}")
        for name, known in (("annotator", ANNOTATORS), ("images", IMAGES)):
            value = getattr(self, name)
            _require(value in known, name, value, f"one of {', '.join(known)}")
        for name in ("pairs", "epochs", "batch_size", "window"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        _require(self.learning_rate > 0, "learning_rate", self.learning_rate, "positive")
        _require(self.weight_decay >= 0, "weight_decay", self.weight_decay, "0 or more")
        object.__setattr__(self, "method", canonical_name(self.method))
        given = self.estimator_prior
        _require(
            0 < given < 1 and is_defined(self.method, given),
            "method",
            self.method,
            f"a risk that is defined at the prior {given:g} which its estimator is given",
        )

    @property
    def estimator_prior(self) -> float:
        """The prior that the estimator is given, ε π₊."""
        # Rounded, or 1.1·0.2 would differ from 0.22 in the last bit.
        return round(self.prior_factor * self.prior, 12)

    @property
    def n_training_pairs(self) -> int:
        """Pairs that are trained on."""
        return max(1, round(self.fraction * self.pairs))

    def fields(self) -> dict[str, Any]:
        """Every field by name, in the order of their definition."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Run:
        """The run with these fields; ValueError where one is unknown or missing."""
        try:
            return cls(**fields)
        except TypeError as error:
            raise ValueError(f"not the fields of a run: {error}") from None

    def key(self) -> str:
        """The configuration as one line of JSON: equal for equal runs, on every machine."""
        fields = self.fields()
        if self.images == "proper":  # as they all were when the first keys were written
            del fields["images"]
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def is_finite(value: Any) -> bool:
    """Whether a number is one that a float can hold; ``math.isfinite`` fails for 10**400.

    Examples
    --------
    >>> is_finite(0.5), is_finite(float("nan")), is_finite(10**400)
    (True, False, False)
    """
    return bool(abs(value) <= sys.float_info.max)


def _require(holds: bool, name: str, value: object, what: str) -> None:
    if not holds:
        raise ValueError(f"{name}={value!r:.80} must be {what}")


def _normalise_types(run: Run) -> None:
    # 1 and 1.0 are equal but are not written alike, and the key is what is written.
    for field in dataclasses.fields(run):
        value = getattr(run, field.name)
        kind, what = _KINDS[str(field.type)]
        if kind is str:
            right = isinstance(value, str) and value.isprintable()
        else:
            number = isinstance(value, Real) and not isinstance(value, bool)
            right = number and is_finite(value) and kind(value) == value
        _require(right, field.name, value, what)
        object.__setattr__(run, field.name, kind(value))
