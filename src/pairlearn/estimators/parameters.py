"""The parameters of a PairClassifier: checked, and "auto" made a number."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, get_args

from pairlearn.estimators.models import is_scikit_learn
from pairlearn.risks import RISKS, Risk, make_risk
from pairlearn.training import Precision, Recipe, choose_device

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

__all__ = ["check_parameters", "needs_prior", "recipe_of", "risk_of"]

STEPS = 2_000
"""Steps of Adam that "auto" plans for large tables."""


def check_parameters(estimator: PairClassifier) -> None:
    """Refuse parameters that make no sense, before any work is done."""
    value: Any
    for name in ("patience", "epochs", "batch_size"):
        value, auto = getattr(estimator, name), "" if name == "patience" else " or 'auto'"
        if auto and isinstance(value, str) and value == "auto":
            continue
        if not (_is_a(Integral, value) and value >= 1):
            raise ValueError(f"{name} must be a whole number of at least 1{auto}; got {value!r}")
    for name in ("learning_rate", "weight_decay"):
        value = getattr(estimator, name)
        automatic = name == "learning_rate" and isinstance(value, str) and value == "auto"
        if not automatic and not (_is_a(Real, value) and 0 <= value < math.inf):
            raise ValueError(f"{name} must be a number of at least 0; got {value!r}")
    for name in ("prior", "target_prior", "annotator_prior", "validation_fraction"):
        value = getattr(estimator, name)
        left_open = value == "estimate" if name == "prior" else value is None
        if not left_open and not (_is_a(Real, value) and 0 < value < 1):
            also = {"prior": " or be 'estimate'", "validation_fraction": ""}.get(
                name, " or be None"
            )
            raise ValueError(f"{name} must lie in (0, 1){also}; got {value!r}")
    if estimator.annotator_prior is not None and estimator.target_prior is None:
        raise ValueError(
            "annotator_prior is the prior to shift from, and needs target_prior to shift to"
        )
    risk_of(estimator, prior=0.3)  # any will do to find out whether there is such a risk
    if is_scikit_learn(estimator.model) and str(estimator.risk).partition("-")[0] != "likelihood":
        raise ValueError(
            f"risk {str(estimator.risk)!r}: a scikit-learn classifier is trained by the pair "
            "likelihood; use risk='likelihood'"
        )
    share: Any = estimator.labelled_weight
    if share != "auto" and not (_is_a(Real, share) and 0 < share < 1):
        raise ValueError(f"labelled_weight must be 'auto' or lie in (0, 1); got {share!r}")
    choices: dict[str, tuple[Any, ...]] = {
        "majority": (None, "positive", "negative"),
        "early_stopping": (True, False),
        "precision": ("auto", *get_args(Precision)),
    }
    for name, allowed in choices.items():
        if getattr(estimator, name) not in allowed:
            raise ValueError(f"{name} must be one of {allowed}; got {getattr(estimator, name)!r}")


def _is_a(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def needs_prior(risk: str | Risk) -> bool:
    """Whether a risk, or the risk of a name, needs the class prior.

    Examples
    --------
    >>> needs_prior("likelihood-abs"), needs_prior("convex-0.5")
    (False, True)
    """
    if isinstance(risk, Risk):
        return risk.needs_prior
    return RISKS[risk.partition("-")[0]].needs_prior


def risk_of(estimator: PairClassifier, prior: float | None) -> Risk:
    """The risk, or the one of that name; a correction in the name goes before `correction`."""
    name, correction = estimator.risk, estimator.correction
    if isinstance(name, Risk):
        if name.judgements != ("similarity", "difference"):
            raise ValueError(f"risk {str(name)!r} reads classes, not judgements: choose another")
        return name
    if not isinstance(name, str):
        raise TypeError(f"risk must be a name such as 'likelihood', or a Risk; got {name!r}")
    if name.startswith("supervised"):
        raise ValueError("risk 'supervised' reads classes, not judgements: choose another risk")
    if not name.endswith(("-none", "-relu", "-abs")) and "-slope=" not in name:
        text = correction if isinstance(correction, str) else f"slope={correction:g}"
        name = f"{name}-{text}"
    return make_risk(name, prior=prior, loss=estimator.loss)


def recipe_of(estimator: PairClassifier, rows: int, seed: int) -> Recipe:
    """How to train on this many rows."""
    batch_size = automatic_batch_size(rows)
    if estimator.batch_size != "auto":
        batch_size = int(estimator.batch_size)
    epochs = min(200, max(10, -(-STEPS // -(-rows // batch_size))))
    if estimator.epochs != "auto":
        epochs = int(estimator.epochs)
    learning_rate = 1e-2 if estimator.model == "linear" else 1e-3
    if estimator.learning_rate != "auto":
        learning_rate = float(estimator.learning_rate)
    precision: Any = estimator.precision
    if precision == "auto":
        on_cuda = choose_device(estimator.device).type == "cuda"
        precision = "bf16" if on_cuda else "float32"
    return Recipe(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=float(estimator.weight_decay),
        patience=int(estimator.patience),
        device=estimator.device,
        precision=precision,
        seed=seed,
    )


def automatic_batch_size(rows: int) -> int:
    """The power of two next below rows/16, in [32, 8192]: larger tables, larger batches.

    Examples
    --------
    >>> [automatic_batch_size(n) for n in (30, 1_200, 4_000, 1_000_000)]
    [32, 64, 128, 8192]
    """
    return int(2 ** min(max(math.floor(math.log2(max(rows, 1) / 16)), 5), 13))
