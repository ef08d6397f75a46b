"""Choose a classifier by cross-validation on judged pairs, without labels or with a few."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone

from pairlearn.annotators import Corrected
from pairlearn.columns import Floats, Mask, as_weights, check_confidence, check_integer
from pairlearn.estimators.classifier import PairClassifier
from pairlearn.estimators.fit_input import read_table
from pairlearn.estimators.instances import read_instances
from pairlearn.estimators.orientation import stated_priors
from pairlearn.estimators.parameters import check_parameters
from pairlearn.estimators.splits import ItemKFold, item_ends
from pairlearn.evaluation import LabelledItems, evaluate
from pairlearn.evaluation.classes import rank_classes
from pairlearn.evaluation.decisions import MethodResult, rank
from pairlearn.judgements import Judgements

__all__ = ["Comparison", "MethodResult", "compare", "default_candidates"]

MODELS = ("linear", "mlp-bn", "boosting")
#: Held-out judgements below which the intervals are rough: at an accuracy of 0.9 the standard error
#: of 100 independent answers is 0.03, more than models usually differ by.
FEW_TESTED = 100


def default_candidates(
    models: Sequence[str] = MODELS, risks: Sequence[str] = ("likelihood-abs",), **options: Any
) -> dict[str, PairClassifier]:
    """Classifiers to compare: every network with every risk, and gradient boosting.

    Parameters
    ----------
    models : sequence of str
        Names of networks, as the `model` of `PairClassifier`, and "boosting": scikit-learn's
        `HistGradientBoostingClassifier`, which is trained by the likelihood alone.
    risks : sequence of str
        Names for `make_risk`, with a correction.
    **options
        Further parameters of all classifiers.

    Examples
    --------
    >>> list(default_candidates(risks=["likelihood-abs", "sconf-abs"]))
    ['linear', 'linear, sconf-abs', 'mlp-bn', 'mlp-bn, sconf-abs', 'boosting']
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    made = {}
    for model in models:
        for risk in ["likelihood-abs"] if model == "boosting" else risks:
            name = model if risk == "likelihood-abs" else f"{model}, {risk}"
            chosen: Any = model
            if model == "boosting":
                chosen = HistGradientBoostingClassifier(random_state=options.get("random_state"))
            made[name] = PairClassifier(model=chosen, risk=risk, **options)
            check_parameters(made[name])
    return made


@dataclass(frozen=True)
class Comparison:
    """Candidates from the best to the worst, and how they were compared.

    Attributes
    ----------
    rows : tuple of MethodResult
        The first one is the best. The intervals of all differences from it hold together.
    sentences : tuple of str
        How accurate the best candidate is, with the condition, as `Evaluation.sentences`.
    judgements, tested, folds : int
        Judgements in the table, those that tested models, and folds.
    prior : float, or tuple of float
        Share of positives, with more than two classes that of each, by the best candidate and the
        judgements that tested it.
    confidence : float
        Coverage of each accuracy's interval, and of all intervals of differences together.
    warnings : tuple of str
        Reasons to doubt the ranking.
    labelled : int
        Labelled instances that accuracies and differences are measured with.
    estimators : tuple of dict
        The fitted classifiers of each fold, by candidate.
    """

    rows: tuple[MethodResult, ...]
    sentences: tuple[str, ...]
    judgements: int
    tested: int
    folds: int
    prior: float | tuple[float, ...]
    confidence: float
    warnings: tuple[str, ...] = ()
    labelled: int = 0
    estimators: tuple[dict[str, PairClassifier], ...] = ()

    @property
    def best(self) -> MethodResult:
        """The candidate with the highest estimated accuracy."""
        return self.rows[0]

    @property
    def ties(self) -> tuple[str, ...]:
        """Candidates whose accuracy cannot be distinguished from the best."""
        return tuple(row.name for row in self.rows if row.tie)

    @property
    def verdict(self) -> str:
        """The best candidate and its ties, in a sentence."""
        rest = f"tied with {'; '.join(self.ties)}" if self.ties else "no ties"
        return f"best: {self.best.name} ({rest})"

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        fields = asdict(replace(self, estimators=()))
        del fields["estimators"]
        return {"best": self.best.name, "ties": list(self.ties), **fields}


def compare(
    candidates: Mapping[str, PairClassifier] | None,
    pairs: Any,
    labels: Any,
    *,
    preprocessor: Any = None,
    sample_weight: Any = None,
    annotator: Any = None,
    about: Any = None,
    labelled: Any = None,
    folds: int = 3,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Rank classifiers on judged pairs by cross-validation, without labels or with a few.

    The items are split into folds by `ItemKFold`. Every candidate is fitted to the pairs outside
    a fold and decides about the pairs inside; the accuracy of its decisions, all folds together,
    is estimated as by `pairlearn.estimate_accuracy`, as the annotators see it. All candidates
    are measured with the same judgements, so that their differences are paired. A miscalibrated
    annotator biases all accuracies, and their order if some models learn the annotator's errors
    better than others.

    Parameters
    ----------
    candidates : mapping of str to PairClassifier, optional
        By default those of `default_candidates`: a linear model, a network, and
        gradient boosting.
    pairs, labels, sample_weight, annotator, about
        As in `PairClassifier.fit`; ids in `pairs` are looked up in the `preprocessor`.
    labelled : (X, y) or (X, y, weight), optional
        Instances drawn at random, and their classes (1, and 0 or −1). Accuracies and differences
        then hold whatever the answers are worth. Each instance is decided by the models of a fold
        that did not learn from it.
    folds : int
        At least 2.
    confidence : float
        Coverage of the intervals, in (0, 1).
    seed : int
        Seed of the folds.
    progress : callable, optional
        Called with the trainings done, and all of them.

    Examples
    --------
    >>> from pairlearn import PairLabels
    >>> x = np.random.default_rng(0).normal(size=(600, 3))
    >>> r = 1 / (1 + np.exp(1 - 4 * x[:, 0]))
    >>> labels = PairLabels.from_posteriors(r[:300], r[300:])
    >>> pairs = np.stack([x[:300], x[300:]], axis=1)
    >>> few = {f"{n} epochs": PairClassifier(model="linear", epochs=n, random_state=0)
    ...         for n in (1, 30)}
    >>> compare(few, pairs, labels).best.name
    '30 epochs'
    """
    check_confidence(confidence)
    chosen = dict(default_candidates(random_state=seed) if candidates is None else candidates)
    if not chosen:
        raise ValueError("candidates is empty: give at least one classifier, or None")
    table = read_table(
        pairs,
        labels,
        sample_weight=sample_weight,
        annotator=annotator,
        about=about,
        classes=next(iter(chosen.values())).classes,
        preprocessor=preprocessor,
    )
    rows = replace(table.statements, ids=None)  # about the rows of table.features
    selves = ~rows.single & (rows.ends[:, 0] == rows.ends[:, 1])
    if selves.any():
        raise ValueError(f"row {int(selves.argmax())} pairs an item with itself: drop such rows")
    check_integer("folds", folds, 2)
    parts, estimators, total = [], [], folds * len(chosen)
    known, decided = None, []
    if labelled is not None:
        if rows.classes is not None:
            raise ValueError("labelled is for two classes: measure each model by `evaluate`")
        known = read_instances("labelled", labelled[0], preprocessor, table.step)
    splits = ItemKFold(folds, random_state=seed).split(item_ends(rows.ends))
    for fold, (train, test) in enumerate(splits):
        models = {}
        for number, (name, candidate) in enumerate(chosen.items(), 1):
            model = clone(candidate).set_params(preprocessor=table.features)
            models[name] = model.fit(rows[train])
            if progress is not None:
                progress(fold * len(chosen) + number, total)
        estimators.append(models)
        parts.append(_scores([*models.values()], rows[test][rows[test].soft], table.features))
        if known is not None:
            new = next(iter(models.values())).unseen(np.arange(len(known))[:, None], known, None)
            decided.append((np.stack([one.log_odds(known) for one in models.values()]), new))
    z = np.concatenate([scores for scores, _ in parts], axis=1)
    judged = Judgements.concatenate([tested.judged for _, tested in parts])
    stated = [c.prior for c in chosen.values() if not isinstance(c.prior, str)]
    if rows.classes is not None:
        priors = stated_priors(stated[0], rows.classes) if stated else None
        options: Any = {"priors": priors, "confidence": confidence}
        ranking, accuracy = rank_classes(list(chosen), expit(z), judged, **options)
        share: Any = tuple(one.value for one in accuracy.prior.values())
        sentences = [accuracy.sentence()]
    else:
        # Judgements of both kinds tell the prior themselves.
        both = judged.has("similarity").any() and judged.has("difference").any()
        prior = None if both or not stated else float(stated[0])
        options = {"items": judged.ends, "weight": judged.weight, "confidence": confidence}
        options |= {"prior": prior, "annotator": judged.annotator}
        noises = (np.zeros(len(rows)) if noise is None else noise for _, (rows, noise) in parts)
        options["noise"] = np.concatenate([*noises])
        sample = None if known is None else _sample(decided, labelled[1:])
        ranking = rank(list(chosen), z, judged.labels(), labelled=sample, **options)
        first = list(chosen).index(ranking[0].name)
        options["labelled"] = sample and LabelledItems(sample[0][first], *sample[1:])
        evaluation = evaluate(z[first, :, 0], z[first, :, 1], judged.labels(), **options)
        share, sentences = evaluation.prior.value, evaluation.sentences()
    rough = f"only {len(judged):,} judgements were held out: the intervals are rough"
    warnings = (rough,) * (len(judged) < FEW_TESTED)
    counts = len(rows), len(judged), folds
    return Comparison(
        ranking, (*sentences,), *counts, share, confidence, warnings,
        0 if known is None else len(known), (*estimators,),
    )  # fmt: skip


def _scores(
    models: Sequence[PairClassifier], rows: Judgements, features: NDArray[Any]
) -> tuple[Floats, Corrected]:
    """Log-odds (k, n, 2, ...) of held-out pairs by all models, beside their judgements.

    Judgements are corrected for how annotators answer, as the first model has learnt it: all
    models are measured with the same ones.
    """
    corrected = models[0].corrected(rows)
    flat = features[corrected.judged.ends.ravel()]
    z = np.stack([model.log_odds(flat) for model in models])
    return z.reshape(len(z), -1, 2, *z.shape[2:]), corrected


def _sample(decided: Sequence[tuple[Floats, Mask]], classes: Sequence[Any]) -> tuple[Any, ...]:
    """Log-odds (k, m) of labelled instances, each by the models of one fold; classes, weights."""
    new = np.stack([mask for _, mask in decided])
    y, weight = np.asarray(classes[0]), as_weights([*classes[1:], None][0], new.shape[1])
    if y.shape != weight.shape:
        raise ValueError(f"the classes of labelled must have shape {weight.shape}; got {y.shape}")
    turn = np.arange(len(y)) % new.sum(0).clip(1)  # the folds that may, one after the other
    fold, kept = ((new.cumsum(0) > turn) & new).argmax(0), np.flatnonzero(new.any(0))
    z = np.stack([z for z, _ in decided])[fold[kept], :, kept].T
    return z, y[kept], weight[kept]
