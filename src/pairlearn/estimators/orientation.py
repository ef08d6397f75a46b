"""What a table fixes: the level, the side, and so which class is which.

Statements may leave open how frequent the classes are (the level), or which of the two is the
positive one (the side). Then the user must say. `Orientation` decides it once for a fit, and
everything else asks it.

**Guidance.** Similarity and difference do not change when both posteriors are reflected,
(r, r') ↔ (1 − r', 1 − r). At a prior far from ½ most pairs are of one class, and their reflections
of the other: a model can start on the wrong side and stay there, or learn all pairs of one class
reflected. The loss hardly shows it, and nearly every prediction is wrong: on Optdigits at π₊ = 0.1,
with 100 pairs, in 6 of 8 trainings of "mlp".

Differences determine the side. Let g be a linear score that predicts them, c ≈ g(x') − g(x). Then

    M = Σ(1 − s)(g + g')/2 / Σ(1 − s)     is half way between the classes' mean scores,
    ḡ = mean of (g + g')/2                is π₊ of the way,

and the positive class is the larger one where ḡ > M; the similarities show how much larger. In the
first quarter of the epochs mean(p) is drawn to that prior, by KL(π ‖ mean p) with a weight that
falls from one to zero.

**Shift.** An annotator judges by the class prior of the population they have in mind. A classifier
that is used at another prior π shifts its log-odds by δ = logit π − logit π_a from the annotator's
prior π_a; where that is unknown, δ solves mean σ(z + δ) = π on the training instances.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from pairlearn.columns import Floats
from pairlearn.estimators.parameters import Prior, needs_prior, risk_of
from pairlearn.evaluation.ranking import linear_scores, reversed_share
from pairlearn.judgements import Judgements
from pairlearn.judgements.identification import needs_priors, not_told_apart
from pairlearn.judgements.kinds import kind
from pairlearn.prior import Majority, class_priors, estimate_prior
from pairlearn.randomness import permutation, stream
from pairlearn.risks import ClassRisk, Risk

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier
    from pairlearn.evaluation import LabelledItems

Need = Literal["nothing", "majority", "prior"]
#: Rows for guidance: more do not change which class is larger.
ROWS = 4096
#: Folds of the linear score, each fitted to nine tenths of the rows.
FOLDS = 10
#: Share of the larger class below which hardly any training ends reflected
#: (`bench/results/mirrored.py`).
UNEVEN = 0.6
#: Least distance from chance that is believed, in standard errors: by chance, one in fifteen.
BELIEVED = 1.5
AGAINST_MODEL = (
    "the known classes contradict the model: in {share:.0%} of the comparisons of a known positive "
    "with a known negative item, it takes the negative one for the more positive. Either the "
    "positive class (positive=, or --positive) is the other one, or the model was fitted to "
    "differences with left and right exchanged: a difference above 0 says that the right item is "
    "the more positive"
)


@dataclass(frozen=True)
class Orientation:
    """What the statements leave open, and what settles it.

    ``need`` is what the statements do not determine; ``prior`` the class prior that a risk or the
    table needs, stated or estimated; ``larger`` the larger class, if it was stated.
    """

    need: Need
    prior: Any
    larger: Majority | None

    @property
    def held(self) -> Any:
        """The prior, or priors, that mean(p) is held to."""
        return self.prior if self.need == "prior" else None

    @classmethod
    def of(cls, settings: PairClassifier, features: Any, rows: Judgements, seed: int) -> Self:
        """Decide for a table; ValueError if something must be stated and is not."""
        if rows.classes is not None:
            need, priors = orient_classes(settings, rows)
            return cls(need, priors, None)
        prior = stated_prior(settings.prior)
        affine, rows = needs_prior(settings.risk), rows.packed(seed)
        need, larger = required_parameter(rows, affine), stated_majority(prior, settings.majority)
        check_stated(need, rows, prior, larger)
        if prior is None and affine and isinstance(settings.risk, Risk):
            prior = float(settings.risk.prior)  # type: ignore[arg-type]
        elif prior is None and affine:
            side = larger or likelier_majority(features, rows, seed, settings.risk)
            prior = prior_from_similarities(rows, side)
        # A risk of its own kinds reads the prior with every row.
        return cls("nothing" if risk_of(settings, prior).kinds else need, prior, larger)


def stated_prior(prior: Any) -> float | None:
    """The prior of two classes, if it was stated."""
    if isinstance(prior, str):
        return None
    if np.ndim(prior) or isinstance(prior, Mapping):
        raise ValueError(f"prior must be one number with two classes; got {prior!r}")
    return float(prior)


def orient_classes(settings: PairClassifier, rows: Judgements) -> tuple[Need, Prior]:
    """What statements about more than two classes leave open, and the priors if they are needed.

    A `ClassesWarning` names classes that no statement tells apart.
    """
    names = rows.classes or ()
    for name in ("majority", "target_prior", "annotator_prior"):
        if getattr(settings, name) is not None:
            raise ValueError(f"{name} is for two classes, and there are {len(names)}: leave it out")
    if alike := not_told_apart(rows):
        warnings.warn(ClassesWarning(alike), stacklevel=6)
    need: Need = "prior" if needs_priors(rows) else "nothing"
    affine = needs_prior(settings.risk)
    priors = stated_priors(settings.prior, names)
    if priors is None and need == "prior" and not affine:
        raise ValueError(
            "some classes have differences only, which do not show how frequent they are: state "
            "the priors (prior={name: share}), or give some similarities or labelled instances"
        )
    if isinstance(settings.risk, ClassRisk):
        priors = settings.risk.priors
    elif isinstance(settings.risk, Risk) and (affine or settings.risk.kinds):
        raise ValueError(f"risk {str(settings.risk)!r} is for two classes: use a ClassRisk")
    elif priors is None and affine:
        members, similar = rows.members(), rows.has("similarity")
        asked = (members & (similar & (members.sum(1) == 1))[:, None]) * rows.inverse_q[:, None]
        if not asked.any(0).all():
            raise ValueError("priors are estimated from similarities about each class: state them")
        priors = tuple(class_priors((1 - rows.u) @ asked / asked.sum(0))[0].tolist())
    if priors is not None and len(priors) != len(names):
        raise ValueError(f"there are {len(names)} classes, and {len(priors)} priors")
    if risk_of(settings, priors).kinds:
        raise ValueError(f"risk {str(settings.risk)!r} is for two classes: use risk='likelihood'")
    return need, priors


def stated_priors(prior: Any, names: Sequence[str]) -> tuple[float, ...] | None:
    """The stated priors of classes in their order."""
    if isinstance(prior, str):
        return None
    if isinstance(prior, Mapping):
        given = {str(name): share for name, share in prior.items()}
        if given.keys() != set(names):
            raise ValueError(f"prior names {', '.join(given)}, and the classes are {names}")
        prior = [given[name] for name in names]
    shares = np.asarray(prior, np.float64)
    if shares.shape != (len(names),) or (shares <= 0).any() or abs(shares.sum() - 1) > 1e-6:
        raise ValueError(
            f"prior must be the shares of all {len(names)} classes, with the sum 1, as "
            f"{{name: share}}; got {prior!r}"
        )
    return tuple(shares.tolist())


class ClassesWarning(UserWarning):
    """Classes that no statement tells apart."""

    def __init__(self, alike: Sequence[tuple[str, ...]]) -> None:
        self.alike = alike
        groups = "; ".join(", ".join(group) for group in alike)
        super().__init__(
            f"no statement tells these classes apart: {groups}. Their separate probabilities mean "
            "nothing; ask about each of them, or label some items of each"
        )


def required_parameter(rows: Judgements, prior_known: bool) -> Need:
    """Which parameter the user must state because the statements do not determine it.

    Similarities are the same with the classes exchanged, so alone they need the majority;
    differences and preferences leave an additive constant open, so alone they need the prior. Risks
    with a prior read similarities and differences with it, which settles both.
    """
    fixed = rows.fixed(prior_known=prior_known)
    return "prior" if "level" not in fixed else "nothing" if "side" in fixed else "majority"


def determines_side(rows: Judgements) -> bool:
    """Whether statements show which class is which; shares of groups that are all near ½ do not."""
    groups = rows.joint & rows.single
    if np.ptp([0.5, *np.unique(rows.u[groups])]) < UNEVEN - 0.5:
        rows = rows[~groups]
    return "side" in rows.fixed()


def stated_majority(prior: float | None, majority: Majority | None) -> Majority | None:
    """The larger class, if stated by name or by the prior."""
    if majority is None and prior is not None and prior != 0.5:
        return "positive" if prior > 0.5 else "negative"
    return majority


def check_stated(need: Need, rows: Judgements, prior: float | None, larger: Any) -> None:
    """Raise if the required parameter is missing."""
    kinds = " and ".join(str(kind(name)) for name in rows.kinds())
    if need == "majority" and larger is None:
        raise ValueError(
            f"labels have {kinds} only, which are the same with the two classes exchanged: "
            "state the larger class (majority=, or --majority), or give some differences, "
            "preferences or labelled instances"
        )
    if need == "prior" and prior is None:
        raise ValueError(
            f"labels have {kinds} only, which do not show how frequent the classes are: state "
            "the share of the positive class (prior=, or --prior), or give some similarities or "
            "labelled instances"
        )


def solve_shift(logits: Floats, weight: Floats, prior: float) -> float:
    """Solve mean σ(z + δ) = π over weighted instances for δ."""

    def excess(shift: float) -> float:
        return float(mean_posterior(logits + shift, weight) - prior)

    # With every logit above (below) that of the prior, the mean is above (below) it.
    low, high = logit(prior) - logits.max() - 1e-3, logit(prior) - logits.min() + 1e-3
    return float(brentq(excess, low, high, xtol=1e-9))


def mean_posterior(logits: Floats, weight: Floats) -> Any:
    """Mean σ(z) over weighted instances; with log-odds (N, K) that of each class."""
    mean = np.average(expit(logits), axis=0, weights=weight)
    return tuple(mean.tolist()) if mean.ndim else float(mean)


def prior_from_similarities(rows: Judgements, majority: Majority) -> float:
    """Class prior implied by the similarities of a table."""
    similar = rows.has("similarity")
    if not similar.any():
        raise ValueError(
            "the class prior is estimated from similarities, and labels have none: state it "
            "(prior=, or --prior), or use the risk 'likelihood'"
        )
    return estimate_prior(rows.u[similar], majority, weight=rows.weight[similar]).value


def guiding_prior(features: Any, rows: Judgements, seed: int) -> float | None:
    """Class prior to which the first epochs are drawn; None if unneeded or unclear."""
    similar = rows[rows.has("similarity")]
    if len(similar) < 2:
        return None
    larger = estimate_prior(similar.u, "positive", weight=similar.weight).value
    if larger < UNEVEN:
        return None
    side = larger_class(features, rows, seed)
    return None if side is None else larger if side == "positive" else 1 - larger


def larger_class(features: Any, rows: Judgements, seed: int = 0) -> Majority | None:
    """The larger class by differences and similarities together; None if unclear."""
    apart, side = _separation(features, rows, seed)
    if min(apart, abs(side)) < BELIEVED:
        return None
    return "positive" if side > 0 else "negative"


def likelier_majority(features: Any, rows: Judgements, seed: int, risk: Any) -> Majority:
    """The larger class as far as the statements show it; ValueError if they do not."""
    if required_parameter(rows, prior_known=False) == "majority":
        raise ValueError(
            f"risk {str(risk)!r} needs the class prior, which similarities alone give only up "
            "to an exchange of the classes: state the larger class (majority=, or --majority) or "
            "the prior (prior=, or --prior)"
        )
    return "positive" if _separation(features, rows, seed)[1] > 0 else "negative"


def _separation(features: Any, rows: Judgements, seed: int) -> tuple[float, float]:
    """How clearly a linear score separates the classes, and says that positives are more frequent.

    Both are in standard errors. The score is fitted to differences, to preferences as ±1, and to
    the classes of the two items in a packed row.
    """
    difference = np.select(
        [rows.has("difference"), rows.has("preference"), rows.of("label", "confidence")],
        [rows.v, rows.u, rows.v - rows.u],
        default=np.nan,
    )
    used = np.flatnonzero(~np.isnan(difference) | rows.has("similarity"))
    used = used[permutation(stream(seed, "guidance"), len(used))[:ROWS]]
    rows, difference = rows[used], difference[used]
    telling, alike = ~np.isnan(difference), rows.has("similarity")
    if telling.sum() < FOLDS or not alike.any():
        return 0.0, 0.0
    # Scores are those of a ridge regression fitted to other rows.
    c, fitted = np.nan_to_num(difference), rows.weight * telling
    g, g_prime = linear_scores(features, rows.ends, c, fitted, FOLDS, ROWS).T
    weight, different = rows.weight * alike / (rows.weight @ alike), 1 - rows.u
    share = float(weight @ different)
    if share <= 0:
        return 0.0, 0.0
    # `apart` is μ₊ − μ₋, which shows whether the score separates the classes; `side` is ḡ − M.
    scored, fraction = c * (g_prime - g), fitted / fitted.sum()
    apart = float(fraction @ scored) / share
    middle = (g + g_prime) / 2
    centred = middle - float(weight @ (different * middle)) / share
    side = float(weight @ centred)
    return (
        _in_errors(apart, fraction, (scored - apart * different) / share),
        _in_errors(side, weight, centred * (1 - different / share) - side),
    )


def _in_errors(value: float, weight: Floats, added: Floats) -> float:
    """A weighted mean in units of its standard error, from the contribution of each row."""
    error = float(np.sqrt(np.square(weight * added).sum()))
    return value / error if error > 0 else 0.0


def class_doubts(known: LabelledItems) -> list[str]:
    """What known classes contradict: the log-odds of a model."""
    share = reversed_share(known.logits, known.y > 0.5)
    return [] if share is None else [AGAINST_MODEL.format(share=share)]
