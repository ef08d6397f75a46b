"""Accuracy and every other measure of a classifier, from judged pairs and perhaps a few labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from pairlearn.columns import Floats
from pairlearn.dependence import correlated_ends
from pairlearn.evaluation.decisions import (
    MEASURES,
    Decisions,
    Measure,
    expected_cost,
    fit_decisions,
)
from pairlearn.evaluation.judged import Bracket, Estimate, JudgedPairs, Side, plain
from pairlearn.evaluation.labelled import (
    CONDITION_OF_LABELS,
    LabelCheck,
    LabelledItems,
    check_labels,
    chosen_items,
    closer_reading,
    prediction_powered,
)
from pairlearn.evaluation.readings import (
    bracket_area,
    bracket_measures,
    independent_threshold,
    knowledge_of,
)
from pairlearn.labels import PairLabels

CONFUSION = ("true_positive", "false_positive", "false_negative", "true_negative")
NAMED = tuple(name for name in MEASURES if name not in CONFUSION)
#: Share of positives below which an accuracy says little about them: at 10% and 3% both readings
#: differ by 0.2 in recall and by 0.01 in accuracy, at 40% hardly (``bench/speed/rare.txt``).
RARE = 0.2
LEADING = ("true_positive_rate", "precision", "roc_auc")
#: Independent pairs below which normal intervals are rough, by the usual rule of thumb.
FEW_PAIRS = 30
#: Distance of posteriors from 0 and 1, where log-odds are infinite.
SURE = 1e-6
EITHER_WAY = (
    "the judgements do not tell which class is which: there are too few, or the decisions have "
    "little to do with the classes. Intervals contain both answers; more pairs, drawn at random, "
    "may settle this"
)
#: What the bracket of both readings needs: calibrated annotators.
CONDITION = (
    "This assumes that the annotators' probabilities are right on average, given what they know."
)
THRESHOLDS = {
    None: "The best threshold on the probability is {:.2f} if the annotators knew everything that "
    "the model uses, and {:.2f} if their mistakes are unrelated to the model's; labelled items "
    "show which.",
    "informed": "The best threshold on the probability is {:.2f} by the labelled items; it would "
    "be {:.2f} if the annotators' mistakes were unrelated to the model's.",
    "independent": "The best threshold on the probability is {1:.2f} by the labelled items; it "
    "would be {0:.2f} if the annotators knew everything that the model uses.",
}


@dataclass(frozen=True)
class AccuracyEstimate(Bracket):
    """An accuracy under both readings of the answers, or as labelled items show it.

    Attributes
    ----------
    value : float
        The accuracy if the annotators knew everything that the model uses (`informed`); with
        labelled items, the prediction-powered estimate.
    low, high : float
        Ends of the interval: from the lower end of one reading to the upper end of the other, with
        sampling error; with labelled items, of the interval that they give.
    informed, independent : Estimate
        The accuracy if the annotators knew everything that the model uses, and if their mistakes
        are unrelated to the model's. Each has its own interval.
    method : str
        The estimator, for instance "likelihood": rates of both decisions by the pair likelihood.
    n : int
        Number of pairs used.
    confidence : float
        Coverage of the intervals.
    knowledge : Estimate
        κ, the share of the variance of the class that the annotators know.
    labelled : LabelCheck or None
        What the labelled items show, if there are some.
    """

    method: str
    n: int
    confidence: float
    knowledge: Estimate
    labelled: LabelCheck | None = None

    def sentence(self) -> str:
        """The result and its condition, in words for a general reader."""
        span = f"The model is right on {self.low:.1%} to {self.high:.1%} of new items"
        level = f"{self.confidence:.0%} interval"
        if self.labelled is not None:
            return (
                f"{span} ({level}, estimate {self.value:.1%}): {self.labelled.sentence()}. "
                f"{CONDITION_OF_LABELS}"
            )
        other = self.independent
        unrelated, unknown = f"{other.value:.1%}", ""
        if math.isnan(other.value):
            unrelated = f"up to {other.high:.1%}"
            unknown = " (the answers do not show how much they knew)"
        return (
            f"{span} ({level}): {self.informed.value:.1%} if the annotators knew everything that "
            f"the model uses, {unrelated} if their mistakes are unrelated to the model's{unknown}. "
            f"{CONDITION}"
        )

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return super().to_dict() | {"sentence": self.sentence()}


def estimate_accuracy(
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    weight: Any = None,
    items: Any = None,
    confidence: float = 0.95,
    prior: float | None = None,
    side: Side | None = None,
    noise: Any = None,
    annotator: Any = None,
    labelled: Any = None,
) -> AccuracyEstimate:
    """Estimate the accuracy of a classifier on held-out judged pairs.

    With q the share of items decided positive, and p and o the share of positives among those
    decided positive and negative,

        accuracy = q p + (1 − q)(1 − o).

    The pair likelihood gives the annotators' mean probabilities p̃ and õ of both groups (see
    `pairlearn.evaluation.levels`), without a class prior. Two readings of these bracket the
    accuracy (see `pairlearn.evaluation.readings`): either the answers are posteriors given
    everything that the decision depends on, or the annotators' mistakes are unrelated to the
    model's. Both assume calibrated annotators (see `sensitivity`), and a classifier that was not
    trained on these pairs.

    A few labelled items remove the assumptions about annotators: with `labelled` the estimate is
    prediction-powered (see `pairlearn.evaluation.labelled`).

    Parameters
    ----------
    logits, logits_prime : array of shape (n,)
        Classifier outputs for both ends of pairs that it was not trained on; above
        zero is positive.
    labels : PairLabels
        The annotator's judgements; pairs may have one of them.
    weight : array of shape (n,), optional
        Weights of the pairs, for instance inverse probabilities of inclusion.
    items : array of shape (n, 2), optional
        Ids of both ends. Pairs that share items are dependent, and the interval accounts
        for it. Without ids all items count as distinct.
    confidence : float
        Coverage of the interval, in (0, 1).
    prior : float, optional
        π₊ of the judged pairs if it is known, as the annotator sees it; required if labels
        are differences only.
    side : {"positive", "negative", "better"}, optional
        Tells the classes apart if the answers do not, as similarities alone, and `prior` is not
        known: the larger class, or "better" if the classifier is better than chance. The interval
        contains both answers if the classes may be of equal size.
    noise : float or array of shape (n,), optional
        Variance of the noise in each difference, negative for the mean answer of people who know
        different things, and NaN where it is not known. By default 0, and unknown if all answers
        are hard.
    annotator : array of shape (n,), optional
        Who gave each answer. Pairs that two people judged show how much they know if answers are
        hard; this also needs `items`.
    labelled : (logits, y) or LabelledItems, optional
        Outputs and classes (1, and 0 or −1) of a random sample of items that the model did not
        learn from.

    See Also
    --------
    evaluate : All measures at once.
    pairlearn.check.plan : How many labels or pairs a given precision takes.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, `PPI++: Efficient Prediction-Powered Inference
    <https://arxiv.org/abs/2311.01453>`__, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(size=(2, 500))
    >>> r, r_prime = 1 / (1 + np.exp(-4 * z)), 1 / (1 + np.exp(-4 * z_prime))
    >>> labels = PairLabels.from_posteriors(r, r_prime)
    >>> estimate = estimate_accuracy(z, z_prime, labels)
    >>> print(estimate.informed)
    0.870 (0.860 to 0.879)
    >>> round(float(np.maximum([r, r_prime], [1 - r, 1 - r_prime]).mean()), 3)  # the truth
    0.869
    >>> z_known = rng.normal(size=100)
    >>> y_known = rng.random(100) < 1 / (1 + np.exp(-4 * z_known))
    >>> print(estimate_accuracy(z, z_prime, labels, labelled=(z_known, y_known)))
    0.832 (0.755 to 0.889)
    """
    columns = (logits, logits_prime, labels, weight, items)
    pairs = JudgedPairs.of(*columns, confidence, prior, side, noise=noise, annotator=annotator)
    known = None if labelled is None else LabelledItems.of(labelled)
    measures = {"accuracy": MEASURES["accuracy"]}
    return _measure(pairs, fit_decisions(pairs), measures, 0.0, known)[0]


def _measure(
    pairs: JudgedPairs,
    solutions: Sequence[Decisions],
    measures: Mapping[str, Measure],
    threshold: float,
    known: LabelledItems | None,
) -> tuple[AccuracyEstimate, dict[str, Bracket]]:
    """The accuracy, and all measures by name, with the AUC."""
    knowledge = knowledge_of(pairs)
    brackets = bracket_measures(solutions, list(measures.values()), knowledge)
    brackets.append(bracket_area(pairs, knowledge))
    if known is not None:
        powered = prediction_powered(pairs, known, list(measures.values()), threshold)
        brackets = [
            replace(bracket, value=best.value, low=best.low, high=best.high)
            for bracket, best in zip(brackets, powered.estimates(), strict=True)
        ]
    by_name = dict(zip((*measures, "roc_auc"), brackets, strict=True))
    bracket = by_name["accuracy"]
    check = None if known is None else check_labels(pairs, bracket, known, threshold)
    method = "likelihood" if pairs.prior is None else "likelihood, prior given"
    accuracy = AccuracyEstimate(
        **vars(bracket),
        method=method if known is None else "prediction-powered",
        n=len(pairs),
        confidence=pairs.confidence,
        knowledge=knowledge.share,
        labelled=check,
    )
    return accuracy, by_name


@dataclass(frozen=True)
class Evaluation:
    """Measures of a classifier under both readings of the answers, or as labelled items show them.

    Attributes
    ----------
    accuracy : AccuracyEstimate
        The accuracy, as `estimate_accuracy` gives it.
    true_positive_rate, false_positive_rate, precision, f1, balanced_accuracy : Bracket
        NaN in [0, 1] if a measure is not defined, such as the precision of a classifier
        that never decides positive.
    prior : Bracket
        π₊ of the judged pairs, implied by judgements and decisions.
    confusion : dict of str to Bracket
        Shares of all items that are "true_positive", "false_positive",
        "false_negative" and "true_negative".
    roc_auc : Bracket
        P(output of a positive > output of a negative), ties half.
    expected_cost : Bracket or None
        Expected cost per item, if costs were given.
    threshold, confidence : float
        As given.
    thresholds : tuple of float
        Probabilities above which positive is the cheaper decision, under the informed reading of
        the answers and under the independent one, where it is NaN if the answers do not determine
        it.
    fits : {"informed", "independent"} or None
        The reading whose probabilities are nearer to the classes of labelled items.
    n : int
        Number of pairs used.
    effective_pairs : float
        Number of independent, equally weighted pairs that are as informative.
    warnings : tuple of str
        Reasons for doubt.
    """

    accuracy: AccuracyEstimate
    true_positive_rate: Bracket
    false_positive_rate: Bracket
    precision: Bracket
    f1: Bracket
    balanced_accuracy: Bracket
    prior: Bracket
    confusion: dict[str, Bracket]
    roc_auc: Bracket
    expected_cost: Bracket | None
    threshold: float
    thresholds: tuple[float, float]
    fits: Literal["informed", "independent"] | None
    confidence: float
    n: int
    effective_pairs: float
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts and lists, for JSON; undefined values are None."""
        return dict(plain(asdict(self)), accuracy=self.accuracy.to_dict())

    def rows(self) -> dict[str, Bracket]:
        """All estimates by their titles."""
        first = LEADING if self.prior.value < RARE else ()
        names = dict.fromkeys((*first, *NAMED, "roc_auc"))
        rows: dict[str, Bracket] = {name: getattr(self, name) for name in names} | self.confusion
        if self.expected_cost is not None:
            rows["expected_cost"] = self.expected_cost
        return {name.replace("_", " "): estimate for name, estimate in rows.items()}

    def sentences(self) -> list[str]:
        """The result in words; where positives are rare, what the model finds of them first."""
        text, rare = [], self.prior.value < RARE
        if rare:
            found, right, area = (getattr(self, name) for name in LEADING)
            text.append(
                f"Positives are rare ({self.prior.value:.1%} of the items). The model finds "
                f"{found.low:.1%} to {found.high:.1%} of them, and {right.low:.1%} to "
                f"{right.high:.1%} of the items that it calls positive are positive. Its ROC AUC "
                f"is {area.low:.3f} to {area.high:.3f}."
            )
        if (rare or self.expected_cost is not None) and not math.isnan(self.thresholds[1]):
            text.append(THRESHOLDS[self.fits].format(*self.thresholds))
        return [*text, self.accuracy.sentence()]

    def __str__(self) -> str:
        lines = [f"{name:<20} {estimate}" for name, estimate in self.rows().items()]
        head = f"{self.n} pairs, {self.confidence:g} intervals, threshold {self.threshold:g}"
        warnings = (f"warning: {text}" for text in self.warnings)
        return "\n".join([head, *lines, *self.sentences(), *warnings])


def evaluate(
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    threshold: float = 0.0,
    cost: tuple[float, float] | None = None,
    labelled: Any = None,
    **options: Any,
) -> Evaluation:
    """Measure a classifier on held-out judged pairs, without labels or with few.

    All measures are functions of three numbers: q, the share decided positive, and the
    rates of positives p and o among those decided positive and negative (see
    `estimate_accuracy`). With π₊ = q p + (1 − q) o,

        TPR = q p / π₊,   FPR = q (1 − p) / (1 − π₊),   precision = p,
        F1 = 2 q p / (π₊ + q),   expected cost = q (1 − p) c_fp + (1 − q) o c_fn.

    Standard errors follow by the delta method. Each measure has both readings of the answers.

    Parameters
    ----------
    logits, logits_prime, labels, labelled, **options
        As in `estimate_accuracy`. A prior is used even if the judgements contradict it, with a
        warning.
    threshold : float
        Outputs above it are decided positive.
    cost : (false positive, false negative), optional
        Cost of a wrong decision of either kind.

    See Also
    --------
    estimate_accuracy : The accuracy alone.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(-1, 1.5, size=(2, 400))
    >>> r, r_prime = 1 / (1 + np.exp(-4 * z)), 1 / (1 + np.exp(-4 * z_prime))
    >>> labels = PairLabels.from_posteriors(r, r_prime)
    >>> print(evaluate(z, z_prime, labels, cost=(1, 5)))  # doctest: +ELLIPSIS
    400 pairs, 0.95 intervals, threshold 0
    accuracy             0.931 (0.922 to 1.000)
    true positive rate   0.850 (0.814 to 1.000)
    false positive rate  0.040 (0.000 to 0.052)
    precision            0.880 (0.853 to 1.000)
    f1                   0.865 (0.842 to 1.000)
    balanced accuracy    0.905 (0.889 to 1.000)
    prior                0.259 (0.226 to 0.288)
    roc auc              0.976 (0.958 to 1.000)
    true positive        0.220 (0.193 to 0.278)
    false positive       0.030 (0.000 to 0.038)
    false negative       0.039 (0.000 to 0.047)
    true negative        0.711 (0.679 to 0.778)
    expected cost        0.225 (0.000 to 0.265)
    The best threshold on the probability is 0.17 if the annotators knew everything that the...
    """
    if math.isnan(threshold):
        raise ValueError("threshold is NaN: give a finite number, 0 for outputs that are log-odds")
    costs = check_cost((1, 1) if cost is None else cost)
    pairs = JudgedPairs.of(logits, logits_prime, labels, **options)
    solutions = fit_decisions(pairs, threshold)
    measures = MEASURES | {"expected_cost": expected_cost(costs)}
    known = None if labelled is None else LabelledItems.of(labelled)
    accuracy, by_name = _measure(pairs, solutions, measures, threshold, known)
    share, kappa = by_name["prior"].informed.value, accuracy.knowledge.value
    level, fits = costs[0] / sum(costs), None
    readable = kappa > 0 and 0 < share < 1
    if known is not None and readable:
        fits = closer_reading(known, share, kappa)
    return Evaluation(
        accuracy=accuracy,
        **{name: by_name[name] for name in (*NAMED[1:], "roc_auc")},
        confusion={name: by_name[name] for name in CONFUSION},
        expected_cost=None if cost is None else by_name["expected_cost"].scaled(max(costs)),
        threshold=float(threshold),
        thresholds=(level, independent_threshold(share, kappa, level) if readable else math.nan),
        fits=fits,
        confidence=pairs.confidence,
        n=len(pairs),
        effective_pairs=pairs.effective_ends / 2,
        warnings=tuple(_warnings(pairs, solutions, known)),
    )


def sensitivity(
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    slopes: Sequence[float] = (0.5, 0.75, 1.0, 1.5, 2.0),
    **options: Any,
) -> dict[float, Estimate]:
    """Estimate the accuracy, by the informed reading, if the annotator is over- or underconfident.

    The true posterior of an item is r̃ = σ(k · logit r), where r is the annotator's: k < 1 for an
    overconfident annotator, k > 1 for an underconfident one. Judgements of a pair determine
    (r, r') up to the reflection (1 − r', 1 − r), and the rescaled judgements are the same for
    both. Judgements alone do not determine k; labels of some items remove the assumption.

    Parameters
    ----------
    logits, logits_prime, labels, **options
        As in `estimate_accuracy`. Only pairs with both judgements are used, since one
        alone does not determine posteriors; infeasible judgements are projected first.
    slopes : sequence of float
        Values of k.

    Returns
    -------
    dict of float to Estimate
        The informed reading of the accuracy for each k.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(0, 3, size=(2, 500))
    >>> labels = PairLabels.from_posteriors(1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-z_prime)))
    >>> band = sensitivity(z, z_prime, labels, slopes=[0.5, 1, 2])
    >>> {k: round(estimate.value, 2) for k, estimate in band.items()}
    {0.5: 0.73, 1.0: 0.83, 2.0: 0.91}
    """
    if not len(slopes) or not all(np.isfinite(k) and k > 0 for k in slopes):
        raise ValueError(f"slopes must be some positive and finite numbers; got {slopes}")
    pairs = JudgedPairs.of(logits, logits_prime, labels, **options)
    both = pairs.has_similarity & pairs.has_difference
    if both.sum() < 2:
        raise ValueError("labels have fewer than two pairs with both judgements: give two")
    given = PairLabels(pairs.similarity[both], pairs.difference[both], noisy=True)
    r = given.project().posteriors()[0].clip(SURE, 1 - SURE)
    odds = np.log(r) - np.log1p(-r)
    items = None if pairs.items is None else np.asarray(pairs.items)[both]
    return {
        float(k): estimate_accuracy(
            pairs.z[both],
            pairs.z_prime[both],
            PairLabels.from_posteriors(*expit(k * odds).T),
            weight=pairs.weight[both],
            items=items,
            confidence=pairs.confidence,
        ).informed
        for k in slopes
    }


def check_cost(cost: Sequence[Any]) -> tuple[float, float]:
    """Check two costs, of a false positive and of a false negative."""
    try:
        false_positive, false_negative = map(float, cost)
    except (TypeError, ValueError):
        false_positive = false_negative = math.nan
    if not (min(false_positive, false_negative) >= 0 < false_positive + false_negative < math.inf):
        raise ValueError(
            "cost must be two finite numbers, (false positive, false negative), not negative and "
            f"not both zero; got {cost!r}"
        )
    return false_positive, false_negative


def dependent_ends(pairs: JudgedPairs) -> str | None:
    """A warning if the ends of the pairs were not drawn independently."""
    left, right = _ranks(pairs)
    found = correlated_ends(left, right, pairs.weight, pairs.dependence)
    if found is None:
        return None
    return (
        f"the outputs for both ends of a pair have a correlation of {found[0]:.2f}, so the "
        "pairs are not independent draws: pairs of near neighbours, for instance, bias the "
        "accuracy and all other measures. Measure on pairs drawn at random, or give weights that "
        "undo how they were chosen"
    )


def unclear_decisions(pairs: JudgedPairs, solutions: Sequence[Decisions]) -> str | None:
    """A warning if decisions do not follow the classes, as far as the judgements tell."""
    if len(solutions) > 1:
        return EITHER_WAY
    rates = [MEASURES["true_positive_rate"], MEASURES["false_positive_rate"]]
    gap = solutions[0].value(rates[0]) - solutions[0].value(rates[1])
    influence = solutions[0].influences(rates) @ [1, -1]
    if abs(gap) <= pairs.quantile * math.sqrt(float(pairs.dependence.variance(influence))):
        return (
            f"true and false positive rates differ by only {gap:.3f}, which can be chance: "
            "the decisions may be unrelated to the classes. More pairs may settle this"
        )
    if gap < 0:
        return (
            "the judgements contradict the decisions: items called positive are more often "
            "negative. Either left and right are exchanged in these judgements, or the classes are "
            "exchanged in the decisions"
        )
    return None


def _warnings(
    pairs: JudgedPairs, solutions: list[Decisions], known: LabelledItems | None
) -> list[str]:
    warnings = [] if known is None else [*filter(None, [chosen_items(pairs, known)])]
    effective = pairs.effective_ends / 2
    if effective < FEW_PAIRS:
        warnings.append(
            f"the pairs are worth only {effective:.0f} independent ones, and intervals from "
            f"fewer than {FEW_PAIRS} are rough"
        )
    unclear = unclear_decisions(pairs, solutions)
    if unclear == EITHER_WAY:
        unclear += "; so would a known prior (prior=)"
    warnings += filter(None, [dependent_ends(pairs), unclear])
    if pairs.prior is not None and pairs.has_similarity.any() and pairs.has_difference.any():
        (implied,) = fit_decisions(replace(pairs, prior=None))[0].estimates([MEASURES["prior"]])
        if not implied.low <= pairs.prior <= implied.high:
            warnings.append(
                f"the stated prior is {pairs.prior:g} and the judgements imply {implied}: the "
                "annotator has another population in mind, or is miscalibrated"
            )
    return warnings


def _ranks(pairs: JudgedPairs) -> Floats:
    """Ranks (2, n, 1) of the outputs, which may be infinite, among those of both ends."""
    outputs = np.concatenate([pairs.z, pairs.z_prime])
    _, place, count = np.unique(outputs, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - count / 2)[place].reshape(2, -1, 1), np.float64)
