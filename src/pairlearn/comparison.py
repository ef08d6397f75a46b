"""Choose a risk and a correction by cross-validation, without labels.

All methods are trained on the same folds of the user's own pairs, and their accuracies,
as the annotator sees them, are estimated on the pairs that were held out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from pairlearn.annotators.answers import untouched
from pairlearn.annotators.crowd import words_of
from pairlearn.annotators.measurement import fair
from pairlearn.annotators.sides import with_sides_right
from pairlearn.columns import Floats, check_confidence, check_integer
from pairlearn.estimators import parameters, population
from pairlearn.estimators.classifier import PairClassifier
from pairlearn.estimators.cross_fitting import learn_annotators
from pairlearn.estimators.instances import standardise
from pairlearn.estimators.splits import split_items
from pairlearn.estimators.table import Table, read_table
from pairlearn.evaluation.decisions import Comparison, MethodResult, rank
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import kind
from pairlearn.randomness import stream
from pairlearn.risks import CORRECTIONS, RISKS, Supervised, make_risk
from pairlearn.training.loop import Report
from pairlearn.training.trainer import Trained, module_logits, train

__all__ = [
    "Comparison",
    "Decide",
    "MethodResult",
    "compare",
    "default_methods",
]

Decide = Callable[[NDArray[Any]], Floats]
"""Log-odds (m,) of instances (m, d, ...) by a trained model."""

FAMILIES = ("likelihood", "sconfconfdiff", "confdiff", "sconf", "convex-0.5", "nonnegative")
STACKED = ("mlp", "mlp-bn", "linear")
FEW = 100
"""Held-out judgements below which the intervals are rough."""


def default_methods() -> tuple[str, ...]:
    """Every family of risks about pairs with every correction; new ones of the catalogue last.

    Examples
    --------
    >>> default_methods()[:3], len(default_methods())
    (('likelihood-abs', 'likelihood-relu', 'likelihood-none'), 18)
    """
    known = {family.partition("-")[0] for family in FAMILIES} | {Supervised.family}
    others = [name for name, risk in RISKS.items() if not risk.kinds and name not in known]
    families = [*FAMILIES, *others]
    return tuple(f"{family}-{name}" for family in families for name in reversed(CORRECTIONS))


def compare(
    features: Any,
    pairs: Any,
    labels: Any,
    *,
    weight: Any = None,
    preference: Any = None,
    methods: Sequence[str] | None = None,
    prior: float | str = "estimate",
    majority: population.Majority | None = None,
    annotators: str = "auto",
    folds: int = 5,
    repeats: int = 1,
    model: Any = "mlp-bn",
    epochs: int | str = "auto",
    batch_size: int | str = "auto",
    learning_rate: float | str = "auto",
    weight_decay: float = 1e-5,
    confidence: float = 0.95,
    seed: int = 0,
    device: str = "auto",
    precision: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    after_fold: Callable[[Mapping[str, Decide]], None] | None = None,
) -> Comparison:
    """Rank risks and corrections on judged pairs by cross-validation, without any label.

    The items are split into folds. The models of a fold, one a method, are trained on the pairs
    with both ends outside the fold, and decide about the pairs with both ends inside. Pairs that
    straddle test no model; `split_items` loses as few as it can. All methods have the same pairs,
    batches and initial weights: what is ranked is ``PairClassifier(risk=method)``.

    The accuracy of a method is that of its models' decisions, all folds together, *as the
    annotator sees it* (`pairlearn.evaluation.estimate_accuracy`). A miscalibrated annotator biases
    all methods, and their order if some learn the annotator's errors better. The intervals of the
    differences hold all together; where one contains 0 the method is marked as a tie.

    Parameters
    ----------
    features : array, table or callable
        Maps the ids in `pairs` to features, as the `preprocessor` of `PairClassifier`; None if
        the pairs are features themselves.
    pairs : array of shape (n, 2) or (n, 2, d, ...)
        Ids of both ends, or their features.
    labels : PairLabels, array of shape (n, 2), or Judgements
        As in `PairClassifier.fit`. Where every row has both judgements, all methods train as
        one fleet; otherwise one after another by `PairClassifier`, and every judgement counts.
    weight, preference : array of shape (n,), optional
        As in `PairClassifier.fit`. Weights count in training and in evaluation; preferences
        train, and do not test.
    methods : sequence of str, optional
        Names for `make_risk`; one without a correction stands for all three. By default
        `default_methods`, less those that are undefined at the class prior.
    prior : float or "estimate"
        The class prior that affine risks are given; estimated for each fold from the
        similarities that its models are trained on.
    majority : {"positive", "negative"}, optional
        The larger class, for estimating the prior; found by a linear model if not given.
    annotators : {"auto", "learn", "ideal"}
        As in `PairClassifier`: how annotators answer is learnt out of fold, from the answers and
        the features, once for all methods. Their answers are corrected first, and a warning says
        so. `Judgements` name the annotators. Hard answers train to the end here.
    folds, repeats : int
        Folds of a split, and splits.
    model, epochs, batch_size, learning_rate, weight_decay, device, precision
        As in `PairClassifier`; no scikit-learn classifiers, which know one risk only.
    confidence, seed : float, int
        Coverage of the intervals, in (0, 1), and the seed of folds, weights and batches.
    progress, after_fold : callable, optional
        Called with the hundredths of folds done, and of all folds; and with the trained models of
        each fold, by method: functions from instances (m, d, ...) to log-odds (m,).

    Examples
    --------
    >>> from pairlearn import PairLabels
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(600, 3))
    >>> pairs = np.arange(600).reshape(300, 2)
    >>> r = 1 / (1 + np.exp(1 - 4 * x[:, 0]))
    >>> labels = PairLabels.from_posteriors(*r[pairs].T)
    >>> result = compare(x, pairs, labels, methods=["likelihood-abs", "sconf-none"],
    ...                  majority="negative", model="linear", epochs=10, learning_rate=0.03)
    >>> [row.name for row in result.rows], result.ties, result.dropped
    (['likelihood-abs', 'sconf-none'], (), 0)
    """
    check_confidence(confidence)
    check_integer("folds", folds, 2)
    check_integer("repeats", repeats, 1)
    if parameters.is_scikit_learn(model):
        raise ValueError(
            "model is a scikit-learn classifier, which is trained by the pair likelihood alone: "
            "there is nothing to compare; give the name of a network, or a module"
        )
    classifier = PairClassifier(
        model=model, prior=prior, majority=majority, epochs=epochs, batch_size=batch_size,
        learning_rate=learning_rate, weight_decay=weight_decay, device=device,
        precision=precision, annotators=annotators,
    )  # fmt: skip
    parameters.check_parameters(classifier)
    names = _full_names(default_methods() if methods is None else methods)
    table = _read(features, pairs, labels, weight, preference)
    table, notes = _corrected(table, classifier, seed)
    classifier.set_params(annotators="ideal")
    judged = table.judged
    parts, dropped = _split(table, folds, repeats, seed)
    rows = np.concatenate([fold.tests for fold in parts])
    tested = judged[rows]
    kinds = [name for name in ("similarity", "difference") if tested.has(name).any()]
    if len(kinds) < 2 and prior == "estimate":
        raise ValueError(
            f"held-out labels have {kinds[0]} alone, which does not fix the accuracy of a "
            "classifier: give both for some pairs, or pass prior=, the share of the positive class"
        )
    if prior != "estimate":
        doubt = population.disagreement(judged, float(prior), None, np.empty(0))
        notes += [] if doubt is None else [doubt]
    whole, *priors = _priors(
        [judged, *(fold.training for fold in parts)], table, classifier, names, seed
    )
    parts = [replace(fold, prior=share) for fold, share in zip(parts, priors, strict=True)]
    names, undefined = _defined(names, judged, priors, required=methods is not None)
    if undefined:
        notes.append(f"left out, because undefined at a class prior of ½: {', '.join(undefined)}")
    logits = _held_out(parts, classifier, names, progress, after_fold)
    notes += [
        f"{name}: training diverged, some outputs are not numbers"
        for name, z in zip(names, logits, strict=True)
        if np.isnan(z).any()
    ]
    ranking = rank(
        names,
        np.where(np.isnan(logits), -np.inf, logits),  # NaN decides negative
        tested.labels(),
        weight=tested.weight,
        items=tested.ends,
        confidence=confidence,
        # Only where judgements are of one kind: elsewhere they tell the prior themselves.
        prior=None if len(kinds) == 2 else float(prior),
    )
    notes += _losses(len(judged) * repeats, len(rows), dropped, repeats)
    return Comparison(
        ranking,
        pairs=len(judged),
        tested=len(rows),
        dropped=dropped,
        folds=folds,
        repeats=repeats,
        prior=whole,
        confidence=confidence,
        warnings=tuple(notes),
    )


def _read(features: Any, pairs: Any, labels: Any, weight: Any, preference: Any) -> Table:
    table = read_table(
        pairs, labels, sample_weight=weight, preference=preference, preprocessor=features
    )
    selves = table.judged.ends[:, 0] == table.judged.ends[:, 1]
    if selves.any():
        raise ValueError(
            f"pairs row {int(selves.argmax())} pairs an item with itself: drop such rows, they "
            "say nothing about the classes"
        )
    return table


def _losses(count: int, tested: int, dropped: int, repeats: int) -> Iterator[str]:
    """Notes about judgements that tested no model."""
    if dropped > 0.2 * count:
        yield (
            f"{dropped:,} of {count:,} judgements are about pairs whose ends are in different "
            "folds and tested no model: items recur in many pairs. What is left may not be "
            "typical of all pairs"
        )
    if tested < FEW * repeats:
        yield f"only {tested:,} judgements tested models: the intervals are rough"


def _full_names(methods: Sequence[str]) -> list[str]:
    """Names with corrections; a name without one stands for all three."""
    if isinstance(methods, str):
        raise ValueError(f"methods must be a sequence of names; got {methods!r}: put it in a list")
    names: list[str] = []
    for method in methods:
        if method.startswith("supervised"):
            raise ValueError("method 'supervised' reads classes, not judgements: leave it out")
        risk = str(make_risk(method, prior=0.3))  # any prior: does the risk exist?
        if method.endswith(tuple(CORRECTIONS)) or "slope=" in method:
            names.append(risk)
        else:
            names += [f"{risk.removesuffix('-none')}-{name}" for name in reversed(CORRECTIONS)]
    if not names:
        raise ValueError("methods is empty: name at least one, or leave it out for all")
    return list(dict.fromkeys(names))


def _seed(seed: int, purpose: str, number: int) -> int:
    return int(stream(seed, purpose, number).bit_generator.random_raw()) >> 33


def _corrected(table: Table, classifier: PairClassifier, seed: int) -> tuple[Table, list[str]]:
    """Correct the answers for the habits of their annotators; the table, and notes about it."""
    ready = replace(table, features=_prepared(table), seed=_seed(seed, "annotators", 0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, manners = learn_annotators(classifier, ready)
    notes = [str(warning.message) for warning in caught]
    if classifier.annotators != "ideal":
        table = replace(table, judged=table.judged[~untouched(table.judged)[0]])
    if not manners:
        return table, notes
    rivals = sum((getattr(warning.message, "groups", ()) for warning in caught), ())
    habits = {m.name or "the annotator": words_of(m, rivals) for m in manners if not m.honest}
    if said := "; ".join(map(": ".join, habits.items())):
        notes.append(f"answers are corrected before methods are compared; {said}")
    soft, rest = table.judged[table.judged.soft], table.judged[~table.judged.soft]
    parts = [fair(manners, soft), with_sides_right(rest, manners)]
    return replace(table, judged=Judgements.concatenate(parts)), notes


def _prepared(table: Table) -> NDArray[np.float32]:
    weight = table.judged.item_weight(len(table.features))
    return standardise(table.features, *table.scale(weight, normed=True))


@dataclass(frozen=True)
class _Fold:
    """Statements to train on, rows that test, and the prior that affine risks are given."""

    table: Table
    training: Judgements
    tests: NDArray[np.intp]
    seed: int
    prior: float | None = None


def _split(table: Table, folds: int, repeats: int, seed: int) -> tuple[list[_Fold], int]:
    """The folds of all splits, and how many pairs straddle two folds.

    A model is trained on pairs and on statements about items outside its fold. Those with a
    similarity or a difference inside test it.
    """
    judged, known = table.judged, table.known
    parts: list[_Fold] = []
    dropped = 0
    for repeat in range(repeats):
        items = len(table.features)
        split = split_items(judged.ends, items, folds, seed=_seed(seed, "split", repeat))
        dropped += split.dropped
        for fold in range(folds):
            training = judged[split.trains(fold)]
            tests = np.flatnonzero(split.tests(fold) & judged.soft)
            if not (len(training) and len(tests)):
                raise ValueError(
                    f"folds is {folds}, and the {len(judged)} pairs cannot be split so that there "
                    "are pairs to train and to test the models of every fold: give more pairs, "
                    "pairs that share fewer items, or fewer folds"
                )
            if known is not None:
                outside = split.of_item[known.ends[:, 0]] != fold
                training = Judgements.concatenate([training, known[outside]])
            parts.append(_Fold(table, training, tests, _seed(seed, "fold", len(parts))))
    return parts, dropped


def _priors(
    parts: Sequence[Judgements],
    table: Table,
    classifier: PairClassifier,
    names: Sequence[str],
    seed: int,
) -> list[float | None]:
    """The class prior of each part, or None if no method needs one."""
    if classifier.prior != "estimate":
        return [float(classifier.prior)] * len(parts)
    needing = next(filter(parameters.needs_prior, names), None)
    if needing is None:
        return [None] * len(parts)
    if classifier.majority is None:
        population.check_majority_determined(table.judged, needing)
        classifier.majority = population.find_majority(
            _prepared(table), table.judged, seed, classifier.device
        )
    return [population.prior_from_similarities(part, classifier.majority).value for part in parts]


def _defined(
    names: Sequence[str], judged: Judgements, priors: Sequence[float | None], *, required: bool
) -> tuple[list[str], list[str]]:
    """The methods that are defined at the priors of all folds, and the others.

    If methods are ``required``, an undefined one is an error.
    """
    undefined = []
    for name in names:
        try:
            for prior in set(priors):
                for stated in judged.kinds():
                    kind(stated).table(make_risk(name, prior=prior))
        except ValueError as error:
            if required:
                raise ValueError(f"method {name!r}: {error}") from None
            undefined.append(name)
    return [name for name in names if name not in undefined], undefined


def _held_out(
    folds: Sequence[_Fold],
    classifier: PairClassifier,
    names: Sequence[str],
    progress: Callable[[int, int], None] | None,
    after_fold: Callable[[Mapping[str, Decide]], None] | None,
) -> Floats:
    """Log-odds (k, rows, 2) of the pairs that tested models, fold after fold."""
    outputs, done = [], 0

    def tick(number: int, share: float) -> None:
        nonlocal done
        done = max(done, round(100 * (number + share)))  # a second round is not counted
        if progress is not None:
            progress(done, 100 * len(folds))

    stackable = isinstance(classifier.model, str) and classifier.model in STACKED
    for number, fold in enumerate(folds):
        # A fleet takes no prior and no majority, which some tables require.
        required = population.required_parameter(fold.training, prior_known=False)
        train_all = _train_together if stackable and required == "nothing" else _train_apart
        models = train_all(fold, names, classifier, partial(tick, number))
        if after_fold is not None:
            after_fold(dict(zip(names, models, strict=True)))
        items, ends = np.unique(fold.table.judged.ends[fold.tests], return_inverse=True)
        z = np.stack([decide(fold.table.features[items]) for decide in models])
        outputs.append(z[:, ends.reshape(-1, 2)])
    return np.concatenate(outputs, axis=1)


def _train_together(
    fold: _Fold, names: Sequence[str], classifier: PairClassifier, tick: Callable[[float], None]
) -> list[Decide]:
    """Train one fleet: what `PairClassifier` trains, on the same rows, batches and weights."""
    seed = int(check_random_state(fold.seed).randint(2**31 - 1))
    table, rows = fold.table, fold.training
    mean, scale = table.scale(rows.item_weight(len(table.features)), normed=True)

    def prepare(instances: NDArray[Any]) -> NDArray[np.float32]:
        return standardise(instances, mean, scale).reshape(len(instances), -1)

    prepared = prepare(table.features)
    fleet = train(
        prepared,
        rows.scaled(len(rows) / rows.weight.sum()).packed(seed),
        [make_risk(name, prior=fold.prior) for name in names],
        classifier.model,
        parameters.recipe_of(classifier, len(rows), seed),
        guiding_prior=population.guiding_prior(prepared, rows, seed),
        callbacks=[Report(lambda epochs, row: tick(row["epoch"] / epochs))],
    )

    def decide(member: Trained, instances: NDArray[Any]) -> Floats:
        return member.sign * module_logits(member.module, prepare(instances))

    return [partial(decide, member) for member in fleet]


def _train_apart(
    fold: _Fold, names: Sequence[str], classifier: PairClassifier, tick: Callable[[float], None]
) -> list[Decide]:
    """Train a `PairClassifier` for each method: for any module, and if a parameter is required."""
    models: list[Decide] = []
    known = {} if fold.prior is None else {"prior": fold.prior}
    for number, name in enumerate(names, 1):
        model = clone(classifier).set_params(
            risk=name, random_state=fold.seed, preprocessor=fold.table.features, **known
        )
        with warnings.catch_warnings():
            # `compare` warns once for the whole table.
            warnings.simplefilter("ignore", population.PriorMismatchWarning)
            model.fit(None, fold.training)
        models.append(model.decision_function)
        tick(number / len(names))
    return models
