"""The class prior: what a table determines of it, what the user must state, and shifts to another.

An annotator judges by the class prior of the population they have in mind. A classifier that is
used at another prior π shifts its log-odds by δ = logit π − logit π_a from the annotator's prior
π_a; where that is unknown, δ solves mean σ(z + δ) = π on the training instances.

**Guidance.** Similarity and difference do not change when both posteriors are reflected,
(r, r') ↔ (1 − r', 1 − r). At a prior far from ½ most pairs are of one class, and their reflections
of the other: a model can start on the wrong side and stay there, or learn all pairs of one class
reflected. The loss hardly shows it, and nearly every prediction is wrong: on Optdigits at π₊ = 0.1,
with 100 pairs, in half of the trainings of "mlp".

Differences determine the side. Let g be a linear score that predicts them, c ≈ g(x') − g(x). Then

    M = Σ(1 − s)(g + g')/2 / Σ(1 − s)     is half way between the classes' mean scores,
    ḡ = mean of (g + g')/2                is π₊ of the way,

and the positive class is the larger one where ḡ > M; the similarities show how much larger. In the
first quarter of the epochs mean(p) is drawn to that prior, by KL(π ‖ mean p) with a weight that
falls from one to zero.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import expit, logit

from pairlearn.columns import Floats
from pairlearn.evaluation import Confidence, recalibrate
from pairlearn.evaluation.ranking import against_classes, linear_scores
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import kind
from pairlearn.labels import PairLabels
from pairlearn.prior import PriorEstimate, estimate_prior
from pairlearn.randomness import permutation, stream
from pairlearn.risks import PairLikelihood
from pairlearn.training.learner import Recipe
from pairlearn.training.trainer import module_logits, train

if TYPE_CHECKING:
    from pairlearn.evaluation import Estimate

Majority = Literal["positive", "negative"]
Need = Literal["nothing", "majority", "prior"]
CONFIDENCE = 0.99  # of the interval outside of which a stated prior causes a warning
LEAST_ROWS = 30  # judged rows from which on an interval is trusted
ROWS = 4096  # for guidance: more rows do not change which class is larger
FOLDS = 10
UNEVEN = 0.6  # share of the larger class below which there is no wrong side
LEAST_LABELS = 10
CLEAR = 1.5  # least distance from chance, in standard errors, that is believed


class PriorMismatchWarning(UserWarning):
    """The stated class prior is not the one that the judgements imply."""


def required_parameter(rows: Judgements, prior_known: bool) -> Need:
    """Which parameter the user must state because the statements do not determine it.

    Similarities are the same with the classes exchanged, so alone they need the majority;
    differences and preferences leave an additive constant open, so alone they need the prior. Risks
    with a prior read similarities and differences with it, which settles both.
    """
    fixed = frozenset().union(*(kind(name).fixes(prior_known) for name in rows.kinds()))
    return "prior" if "level" not in fixed else "nothing" if "side" in fixed else "majority"


def determines_side(rows: Judgements) -> bool:
    """Whether statements show which class is which; shares of groups that are all near ½ do not."""
    groups = rows.joint & rows.single
    if np.ptp([0.5, *np.unique(rows.u[groups])]) < UNEVEN - 0.5:
        rows = rows[~groups]
    return any("side" in kind(name).fixes(prior_known=False) for name in rows.kinds())


def stated_majority(prior: float | None, majority: Majority | None) -> Majority | None:
    """The larger class, if stated by name or by the prior."""
    if majority is None and prior is not None and prior != 0.5:
        return "positive" if prior > 0.5 else "negative"
    return majority


def check_stated(
    need: Need, rows: Judgements, prior: float | None, majority: Majority | None
) -> None:
    """Raise if the required parameter is missing."""
    kinds = " and ".join(str(kind(name)) for name in rows.kinds())
    if need == "majority" and stated_majority(prior, majority) is None:
        raise ValueError(
            f"labels have {kinds} alone, which are the same with the two classes exchanged: "
            "state the larger class (majority=, or --majority), or give some differences, "
            "preferences or labelled instances"
        )
    if need == "prior" and prior is None:
        raise ValueError(
            f"labels have {kinds} alone, which do not tell how frequent the classes are: state "
            "the share of the positive class (prior=, or --prior), or give some similarities or "
            "labelled instances"
        )


def unclear_majority(rows: Judgements, side: Majority) -> str | None:
    """Warning that classes may be too equal in size to tell which one is larger."""
    if not rows.has("similarity").any():
        return None
    prior = prior_from_similarities(rows, side)
    if not prior.low <= 0.5 <= prior.high:
        return None
    return (
        "the similarities allow for classes of equal size (a share of positives of "
        f"{prior.value:.3f}, 95% interval {prior.low:.3f} to {prior.high:.3f}), and the larger "
        "class is all that tells which is which: it may be a coin toss. Give more pairs, or some "
        "differences, preferences or labelled instances"
    )


def check_majority_determined(rows: Judgements, risk: Any) -> None:
    """Raise if a prior is to be estimated and nothing shows which side of ½ it is on."""
    if required_parameter(rows, prior_known=False) == "majority":
        raise ValueError(
            f"risk {str(risk)!r} needs the class prior, and similarities alone give it up to an "
            "exchange of the classes: state the larger class (majority=, or --majority) or the "
            "prior (prior=, or --prior)"
        )


def solve_shift(logits: Floats, weight: Floats, prior: float) -> float:
    """Solve mean σ(z + δ) = π over weighted instances for δ."""
    from scipy.optimize import brentq

    def excess(shift: float) -> float:
        return mean_posterior(logits + shift, weight) - prior

    # With every logit above (below) that of the prior, the mean is above (below) it.
    low, high = logit(prior) - logits.max() - 1e-3, logit(prior) - logits.min() + 1e-3
    return float(brentq(excess, low, high, xtol=1e-9))


def mean_posterior(logits: Floats, weight: Floats) -> float:
    """Mean σ(z) over weighted instances."""
    return float(np.average(expit(logits), weights=weight))


def prior_from_similarities(
    rows: Judgements, majority: Majority, confidence: float = 0.95
) -> PriorEstimate:
    """Class prior implied by the similarities of a table."""
    similar = rows.has("similarity")
    if not similar.any():
        raise ValueError(
            "the class prior is estimated from similarities, and labels have none: state it "
            "(prior=, or --prior), or use the risk 'likelihood'"
        )
    # Pairs that share an instance are dependent, which widens the interval; an instance paired
    # with itself has no such account.
    ends = rows.ends[similar]
    recur = len(np.unique(ends)) < ends.size and bool((ends[:, 0] != ends[:, 1]).all())
    weight = rows.weight[similar]
    return estimate_prior(
        rows.u[similar],
        majority,
        confidence=confidence,
        weight=None if (weight == weight[0]).all() else weight,
        items=ends if recur else None,
    )


def find_majority(features: Any, rows: Judgements, seed: int, device: str) -> Majority:
    """Find the larger class by a linear model trained with the pair likelihood.

    With similarities and differences it follows from the model's ranking by `prior_of_ranking`,
    which is right even if the likelihood has learnt reflected posteriors; otherwise from mean(p).
    """
    steps = -(-len(rows) // 256)
    recipe = Recipe(
        epochs=max(5, -(-300 // steps)),
        batch_size=256,
        learning_rate=1e-2,
        weight_decay=1e-4,
        patience=1,
        device=device,
        seed=seed,
    )
    flat = features.reshape(len(features), -1)
    risk = PairLikelihood(correction="abs")
    rows = rows.packed(seed)
    z = module_logits(train(flat, rows, risk, "linear", recipe).module, flat)
    prior = prior_of_ranking(rows, z)
    mean = mean_posterior(z[rows.ends].ravel(), np.repeat(rows.weight, 2))
    return "positive" if (mean if prior is None else prior.value) > 0.5 else "negative"


def prior_of_ranking(rows: Judgements, logits: Floats) -> Estimate | None:
    """Class prior implied by differences and similarities under a model's ranking of the items.

    Similarities are the same with the classes exchanged; differences are not, once a model shows
    which items are alike. With its outputs cut at their median, the class rates of both halves
    (`pairlearn.evaluation.levels`) give the prior with an interval, even for a model that was
    trained with a wrong prior or with the classes exchanged. None with fewer than two such rows, or
    without similarities or differences.
    """
    from pairlearn.evaluation import evaluate

    rows = rows[rows.soft & (rows.weight > 0) & (rows.ends[:, 0] != rows.ends[:, 1])]
    if len(rows) < 2 or not rows.has("similarity").any() or not rows.has("difference").any():
        return None
    z = logits[rows.ends]
    return evaluate(
        z[:, 0],
        z[:, 1],
        rows.labels(),
        weight=rows.weight,
        items=rows.ends,
        threshold=float(np.median(z)),
        confidence=CONFIDENCE,
    ).prior


def disagreement(
    rows: Judgements, stated: float, logits: Floats | None, weight: Floats
) -> str | None:
    """Warning that the stated prior contradicts the judgements.

    The similarities of the rows imply a prior. With the pair likelihood, the mean posterior of the
    weighted training instances is the annotator's prior too; `logits` are None with another risk.
    """
    side: Majority = "positive" if stated > 0.5 else "negative"
    priors: list[tuple[str, float, float, float]] = []
    if rows.weight[rows.has("similarity")].sum() > 0 and len(rows) > 1:
        s = prior_from_similarities(rows, side, CONFIDENCE)
        priors.append(("the similarities imply", s.value, s.low, s.high))
    if logits is not None and len(logits) > 1:
        mean = mean_posterior(logits, weight)
        spread = math.sqrt(float(np.average((expit(logits) - mean) ** 2, weights=weight)))
        count = float(weight.sum()) ** 2 / float(weight @ weight)
        half = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * spread / math.sqrt(count)
        priors.append(("the posteriors learnt have mean", mean, mean - half, mean + half))
    for source, value, low, high in priors:
        if not low <= stated <= high:
            return (
                f"the stated class prior is {stated:g}, and {source} {value:.3f} "
                f"({CONFIDENCE:.0%} interval {low:.3f} to {high:.3f}): the stated prior is wrong, "
                "or the judgements were made with another population in mind. In the first case "
                "leave it out; in the second, if the classifier is used at the stated prior, pass "
                f"{stated:g} as the target prior (target_prior=, or --target-prior)"
            )
    return None


def wrong_side(rows: Judgements, prior: float, logits: Floats) -> str | None:
    """Warning that by `prior_of_ranking` the larger class is not the one of the prior."""
    if prior == 0.5 or len(rows) < LEAST_ROWS:
        return None
    implied = prior_of_ranking(rows, logits)
    if implied is None or not (implied.high < 0.5 if prior > 0.5 else implied.low > 0.5):
        return None
    larger, smaller = ("positive", "negative") if prior > 0.5 else ("negative", "positive")
    return (
        f"the class prior {prior:.3g} makes the {larger} class the larger one, and the "
        f"differences say that it is the {smaller} one: with the model they imply "
        f"{implied.value:.3f} ({CONFIDENCE:.0%} interval {implied.low:.3f} to {implied.high:.3f}). "
        f"Pass {1 - prior:.3g} (prior=, or --prior), or change the sign of the differences if they "
        "are how much likelier the left one is positive"
    )


class KnownClassesWarning(UserWarning):
    """Known classes and differences contradict each other."""


def classes_against_differences(features: Any, statements: Judgements) -> str | None:
    """Warning that known classes contradict the differences."""
    if (share := against_classes(statements, features)) is None:
        return None
    return (
        "the known classes contradict the differences: by these, an item called negative is the "
        f"more positive one in {share:.0%} of the couples. Either the positive class "
        "(positive=, or --positive) is the other one, or differences are above 0 where the left "
        "item is the more positive one: then change their sign"
    )


def confidence_from_labels(
    features: Any, z: Floats, judged: Judgements, known: Judgements
) -> tuple[Confidence | None, float]:
    """Calibrate the annotators' confidence by items of known class; and a factor for z.

    These items must be in judged pairs, where they are found by their features. (None, 1) if they
    are few, or if answers are hard and so do not show confidence.
    """
    both, known = judged[judged.of("both")], known[known.of("label")]
    if len(known) < LEAST_LABELS or not len(both) or both.hard().mean() > 0.5:
        return None, 1.0
    flat = features.reshape(len(features), -1)
    _, same = np.unique(flat, axis=0, return_inverse=True)
    classes = np.full(len(features), np.nan)
    classes[same[known.ends[:, 0]]] = known.u
    items = same[both.ends]
    at_ends = classes[items]
    if len(np.unique(items[~np.isnan(at_ends)])) < LEAST_LABELS:
        return None, 1.0
    outputs = z[both.ends]
    fit = recalibrate(both.labels(), *outputs.T, *at_ends.T, weight=both.weight, items=items)
    confidence = Confidence(fit.slope, fit.shift, fit.n, fit.interval)
    if confidence.interval[0] <= 1 <= confidence.interval[1]:
        return confidence, 1.0
    # The model was trained on the labels too, which has corrected a part of it.
    shares = fit.labels.outcomes()

    def loss(slope: float) -> float:
        chances = PairLabels.from_posteriors(*expit(slope * outputs.T)).outcomes()
        return -float((shares * np.log(chances.clip(1e-12))).sum())

    return confidence, min(np.geomspace(confidence.slope, 1, 20).tolist(), key=loss)


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
    both = rows[rows.of("both")]
    both = both[permutation(stream(seed, "guidance"), len(both))[:ROWS]]
    if len(both) < FOLDS:
        return None
    # Scores are those of a ridge regression fitted to other rows.
    g, g_prime = linear_scores(features, both.ends, both.v, both.weight, FOLDS, ROWS).T
    weight, different = both.weight / both.weight.sum(), 1 - both.u
    share = float(weight @ different)
    if share <= 0:
        return None
    # `apart` is μ₊ − μ₋, which shows whether the score separates the classes; `side` is ḡ − M.
    scored = both.v * (g_prime - g)
    apart = float(weight @ scored) / share
    middle = (g + g_prime) / 2
    centred = middle - float(weight @ (different * middle)) / share
    side = float(weight @ centred)
    if _in_errors(apart, weight, (scored - apart * different) / share) < CLEAR:
        return None
    if _in_errors(abs(side), weight, centred * (1 - different / share) - side) < CLEAR:
        return None
    return "positive" if side > 0 else "negative"


def _in_errors(value: float, weight: Floats, added: Floats) -> float:
    """A weighted mean in units of its standard error, from the contribution of each row."""
    error = float(np.sqrt(np.square(weight * added).sum()))
    return value / error if error > 0 else 0.0
