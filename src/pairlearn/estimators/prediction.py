"""The fitted PairClassifier: predictions for instances and files, evaluation on judged pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from pairlearn.annotators import Corrected
from pairlearn.columns import Floats, Indices, Mask, TableError, as_weights, first_rows
from pairlearn.estimators import instances
from pairlearn.estimators.features import FeatureStep, is_frame
from pairlearn.estimators.fit_input import read_table
from pairlearn.estimators.fitted import Fitted, probabilities
from pairlearn.evaluation import (
    AccuracyEstimate,
    ClassAccuracy,
    Evaluation,
    estimate_accuracy,
    estimate_class_accuracy,
    evaluate,
)
from pairlearn.evaluation.decisions import fit_decisions
from pairlearn.evaluation.judged import JudgedPairs, Side
from pairlearn.evaluation.measures import dependent_ends, unclear_decisions
from pairlearn.io.encoder import ItemEncoder
from pairlearn.judgements import Judgements
from pairlearn.labels import PairLabels
from pairlearn.prior import Majority


class PairPredictor(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Prediction and evaluation; a subclass has the parameters and `fit`."""

    majority: Majority | None
    preprocessor: Any
    fitted_: Fitted

    def __getattr__(self, name: str) -> Any:
        """Attributes of a fit: ``NAME_`` is what `Fitted` calls ``NAME``."""
        fitted = vars(self).get("fitted_")
        value = getattr(fitted, name[:-1], None) if name[-1:] == "_" else None
        if value is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return value

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the positive class for instances (m, d, ...), or for ids (m,).

        With more than two classes (m, K): of each class against the others.

        Ids need a `preprocessor`, which `save` does not write. Columns of a data frame are found
        by their names, in any order; others are left out with a warning. After a fit with named
        features an array is taken in the order of `feature_names_in_`, with a warning as by
        scikit-learn.
        """
        check_is_fitted(self)
        return self.finite_log_odds(self._instances(X), lambda row: f"row {row} of X")

    def log_odds(self, features: NDArray[Any]) -> Floats:
        """Log-odds for features in the order of training, without checks."""
        return self.fitted_.log_odds(self.fitted_.prepared(features))

    def finite_log_odds(self, features: NDArray[Any], place: Callable[[int], str]) -> Floats:
        """The same; TableError where the model overflows, which names the ``place`` of a row."""
        with np.errstate(over="ignore", invalid="ignore"):
            z = self.log_odds(features)
        for row in first_rows(~np.isfinite(z).reshape(len(z), -1).all(1)):
            raise TableError(
                f"{place(row)} gets log-odds of {z[row]}: its features are far outside the range "
                "of the training"
            )
        return z

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (m, K) of the classes in the order of `classes_`."""
        return probabilities(self.decision_function(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class of each instance."""
        z = self.decision_function(X)
        likeliest = z.argmax(1) if z.ndim > 1 else (z > 0).astype(np.intp)
        predicted: NDArray[Any] = self.classes_[likeliest]
        return predicted

    def score(
        self, pairs: Any, labels: Any = None, sample_weight: Any = None, annotator: Any = None
    ) -> float:
        """Accuracy as the annotator sees it, estimated on held-out pairs; higher is better.

        Pairs, labels, weights and annotators are as in `fit`, here and in `estimate_accuracy` and
        `evaluate`, also data frames, whose scales are those of the fit; similarities, differences
        and equivalent kinds are used.
        It is the value of `estimate_accuracy`, so that cross-validation and grid search
        choose by accuracy although there are no classes. Use them with `ItemKFold` where
        items are in several pairs.
        """
        estimate = self.estimate_accuracy(pairs, labels, sample_weight, annotator=annotator)
        return float(estimate.value)

    def estimate_accuracy(
        self,
        pairs: Any,
        labels: Any = None,
        sample_weight: Any = None,
        *,
        about: Any = None,
        annotator: Any = None,
        confidence: float = 0.95,
        labelled: Any = None,
    ) -> AccuracyEstimate | ClassAccuracy:
        """Accuracy with a confidence interval, from judged pairs that were held out.

        Where `fit` learnt how annotators answer, the answers are corrected for it; `annotator`
        (n,) says who gave them. The interval contains two readings of the answers; with `labelled`
        (X, y), instances of known class that are a random sample and that `fit` was not given, it
        is the one that these give; (X, y, weight) for a sample that was not drawn uniformly.
        A `DependentPairsWarning` says that pairs were not drawn at random, as with near
        neighbours, and the figure is wrong.

        Pairs with an item that `fit` was given are left out with a `SeenItemsWarning`. Where no
        others remain, all are used, and the warning and the estimate's `method` say that this is
        no accuracy. See `pairlearn.evaluation.estimate_accuracy`, and with more than two classes
        `pairlearn.evaluation.estimate_class_accuracy`.
        """
        beside = {"sample_weight": sample_weight, "annotator": annotator, "about": about}
        scored, doubt = self._score_held_out(pairs, labels, **beside)
        known = None if labelled is None else self.labelled(*labelled)
        if isinstance(scored, ScoredClasses):
            return scored.accuracy(confidence=confidence, labelled=known)
        estimate = scored.accuracy(confidence=confidence, labelled=known)
        if wrong := dependent_ends(JudgedPairs.of(*scored.arguments, **scored.options())):
            warnings.warn(wrong, instances.DependentPairsWarning, stacklevel=2)
        if doubt is not None and doubt.startswith(instances.NO_ACCURACY):
            return replace(estimate, method=f"{estimate.method}, on items seen in training")
        return estimate

    def evaluate(
        self,
        pairs: Any,
        labels: Any = None,
        sample_weight: Any = None,
        *,
        annotator: Any = None,
        labelled: Any = None,
        **options: Any,
    ) -> Evaluation:
        """Estimate rates, AUC and cost from held-out pairs, and perhaps labelled instances.

        Pairs with items that `fit` was given are treated as in `estimate_accuracy`. See
        `pairlearn.evaluation.evaluate`, which takes the further options.
        """
        beside = {"sample_weight": sample_weight, "annotator": annotator}
        scored, doubt = self._score_held_out(pairs, labels, **beside)
        if isinstance(scored, ScoredClasses):
            raise ValueError(
                f"evaluate measures two classes, and there are {len(self.classes_)}: use "
                "estimate_accuracy, which has the recall and the precision of each class"
            )
        if labelled is not None:
            options["labelled"] = self.labelled(*labelled)
        result = scored.evaluate(**options)
        return result if doubt is None else replace(result, warnings=(doubt, *result.warnings))

    def labelled(self, X: Any, y: Any, weight: Any = None) -> tuple[Floats, Indices, Floats]:
        """Log-odds, places of the classes, and weights of labelled instances that are new to `fit`.

        What is left out is said in a `SeenItemsWarning`.
        """
        places = {name: number for number, name in enumerate(self.classes_.tolist())}
        named = np.asarray(y).tolist()
        if strange := set(named) - places.keys():
            raise ValueError(f"labelled has classes {sorted(strange)}; known are {self.classes_}")
        features, ids = self._instances(X), X.ids if instances.is_item_table(X) else None
        weight = as_weights(weight, len(features))
        new = instances.places_of(self.fitted_.training_items, features, ids) < 0
        instances.check_labelled(new)
        known = np.array([places[name] for name in named], np.int64)
        return self.log_odds(features[new]), known[new], weight[new]

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted classifier into a folder: tensors and JSON, no code.

        A model that is there is replaced with `overwrite` only, and nothing else ever. Parameters
        are those of the fit, whatever `set_params` changed since.
        """
        from pairlearn.estimators.model_folder import save_model

        check_is_fitted(self)
        save_model(self.fitted_, path, overwrite=overwrite)

    @classmethod
    def load(
        cls,
        path: str | Path,
        module: nn.Module | None = None,
        *,
        preprocessor: Any = None,
    ) -> Self:
        """Read a classifier that `save` wrote; a module of your own has to be given.

        The `preprocessor`, which is not saved either, is needed for ids only.
        """
        from pairlearn.estimators.model_folder import load_model

        fitted = load_model(path, module)
        loaded = cls(**fitted.parameters, preprocessor=preprocessor)
        loaded.fitted_ = fitted
        return loaded

    def export_onnx(self, path: str | Path) -> float:
        """Write the classifier as an ONNX file; return the largest difference to torch.

        The graph maps features ``x`` to ``logit`` and ``probability``, standardisation and
        shift included. The file is checked by running it: `RuntimeError` if onnxruntime gives
        other answers, by more than 1e-4, and nothing is written then.
        """
        from pairlearn.estimators.onnx_export import export_onnx

        check_is_fitted(self)
        return export_onnx(self.fitted_, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.two_d_array = tags.target_tags.one_d_labels = False
        tags.input_tags.three_d_array = tags.target_tags.two_d_labels = True
        if not hasattr(self, "classes_"):
            # Before `fit` it is about pairs, which scikit-learn must not try to stratify by
            # their labels: it would refuse missing ones. Fitted, it classifies instances.
            tags.estimator_type = None
        return tags

    def _step(self) -> FeatureStep:
        """The fitted step that makes features of instances."""
        fitted = self.fitted_
        return FeatureStep(fitted.encoder, fitted.feature_names_in)

    def columns(self) -> ItemEncoder | None:
        """Columns that the classifier takes from a file; None if it was fitted without names."""
        names: Any = self.fitted_.feature_names_in
        plain = None if names is None else ItemEncoder.of_numbers(names)
        return self.fitted_.encoder or plain

    def _instances(self, x: Any) -> NDArray[Any]:
        """Features of instances to predict, checked against those of `fit`."""
        x, step, items = instances.as_array("X", x), self._step(), instances.is_item_table(x)
        ids = not items and not is_frame(x) and np.ndim(x) == 1
        if ids and self.preprocessor is None:
            raise ValueError(
                f"X has shape {np.shape(x)}. If these are ids, the classifier needs a preprocessor "
                "to find their features, which is not saved with it: pass preprocessor=items to "
                "load or set_params, or pass the items. Reshape your data with "
                "X.reshape(1, -1) if it is one instance"
            )
        if not (items or ids) and len(self.instance_shape_) == 1:
            return self._validated(x, step)
        features = instances.read_instances("X", x, self.preprocessor, step)
        self._check_shape("X has", features)
        return features

    def _check_shape(self, what: str, features: NDArray[Any]) -> None:
        if features.shape[1:] != self.instance_shape_:
            raise ValueError(
                f"{what} instances of shape {features.shape[1:]}, but PairClassifier is expecting "
                f"{self.instance_shape_}"
            )

    def _validated(self, x: Any, step: FeatureStep) -> NDArray[Any]:
        """Instances (m, d), with scikit-learn's checks."""
        types = [np.float64, np.float32]
        if is_frame(x) and hasattr(self, "feature_names_in_"):
            return np.asarray(
                check_array(step.numbers(x), dtype=types, input_name="X", estimator=self)
            )
        if hasattr(self, "encoder_"):
            raise ValueError(
                "X has no column names, and the classifier was fitted to columns of several "
                "types: pass a data frame, or the item table"
            )
        return np.asarray(validate_data(self, x, reset=False, dtype=types))

    def _score_held_out(
        self, pairs: Any, labels: Any, **beside: Any
    ) -> tuple[ScoredPairs | ScoredClasses, str | None]:
        """Score the pairs without items of the training, and say what is doubtful about them."""
        check_is_fitted(self)
        of_fit: Any = {"classes": self.fitted_.classes, "scales": self.fitted_.scales}
        of_fit |= {"preprocessor": self.preprocessor, "step": self._step()}
        table = read_table(pairs, labels, **of_fit, **beside)
        self._check_shape("pairs have", table.features)
        judged = table.judged[table.judged.soft]
        if not len(judged):
            raise ValueError("labels have neither similarity nor difference to measure with")
        new = self.unseen(judged.ends, table.features, table.ids)
        doubt = instances.doubt_of_seen(new)
        if doubt is not None:
            warnings.warn(doubt, instances.SeenItemsWarning, stacklevel=3)
        if new.sum() >= 2:
            judged = judged[new]
        return self.score_pairs(judged, lambda rows: self.log_odds(table.features[rows])), doubt

    def unseen(self, ends: Indices, features: NDArray[Any], ids: NDArray[Any] | None) -> Mask:
        """Mask of the pairs (n, 2) of items of which none was seen in training."""
        needed, places = np.unique(ends, return_inverse=True)
        names = None if ids is None else ids[needed]
        seen = instances.places_of(self.fitted_.training_items, features[needed], names) >= 0
        return np.asarray(~seen[places.reshape(ends.shape)].any(1))

    def score_pairs(
        self, judged: Judgements, log_odds: Callable[[Indices], Floats]
    ) -> ScoredPairs | ScoredClasses:
        """Correct judgements for how the annotators answer, and score both ends of their pairs.

        ``log_odds`` computes those of some items.
        """
        rows, noise = self.corrected(judged)
        needed, places = np.unique(rows.ends, return_inverse=True)
        z = log_odds(needed)[places.reshape(rows.ends.shape)]
        if rows.classes is not None:
            return ScoredClasses(z, rows)
        weight = None if (rows.weight == 1).all() else rows.weight
        return ScoredPairs(
            z, rows.labels(), weight, rows.ends, self.majority, noise, rows.annotator
        )

    def corrected(self, judged: Judgements) -> Corrected:
        """Judgements corrected for how the annotators answer, if any of them tells something.

        The noise of answers that are mostly hard is unknown, since these do not show confidence.
        """
        annotators = self.fitted_.annotators
        if annotators.people and not any(person.informative for person in annotators.people):
            raise ValueError(
                "no answer is left to measure with: every annotator gives the same answer to every "
                "pair, or guesses. Ask other annotators"
            )
        rows, noise = annotators.correct(judged)
        return Corrected(rows, np.full(len(rows), np.nan) if judged.hard().mean() > 0.5 else noise)


@dataclass(frozen=True)
class ScoredClasses:
    """Log-odds ``z`` (n, 2, K) of both ends of pairs, beside statements about sets of classes."""

    z: Floats
    judged: Judgements

    @property
    def ends(self) -> Indices:
        """Positions (n, 2) of the items."""
        return self.judged.ends

    def accuracy(
        self,
        prior: Any = None,
        confidence: float = 0.95,
        labelled: Any = None,
    ) -> ClassAccuracy:
        """Estimate the accuracy; see `pairlearn.evaluation.estimate_class_accuracy`."""
        known = labelled and (probabilities(labelled[0]), *labelled[1:])
        p, q = expit(self.z).swapaxes(0, 1)
        return estimate_class_accuracy(
            p, q, self.judged, priors=prior, confidence=confidence, labelled=known
        )

    def measured(self, prior: Any = None) -> tuple[ClassAccuracy, list[str], None]:
        """The accuracy, also in words, and no warning: statements name the classes."""
        found = self.accuracy(prior)
        return found, [found.sentence()], None


@dataclass(frozen=True)
class ScoredPairs:
    """Log-odds ``z`` (n, 2) of both ends of pairs, beside the judgements of the same pairs.

    ``ends`` (n, 2) are positions of the items; without ``weight`` (n,) all pairs count alike.
    ``side`` is the larger class, if it was stated; ``noise`` (n,) is the variance of each
    difference that comes from its ``annotator``, as in `JudgedPairs`.
    """

    z: Floats
    labels: PairLabels
    weight: Floats | None
    ends: Indices
    side: Side | None
    noise: Floats | None
    annotator: Any = None

    @property
    def has_differences(self) -> bool:
        """Whether there is a difference, which tells the classes apart."""
        return bool((~np.isnan(self.labels.difference)).any())

    @property
    def likely_side(self) -> Side | None:
        """The larger class as stated, or as the model finds it where that is clear.

        It tells the classes apart where decisions hardly vary, as for a model that calls nearly
        everything negative since positives are rare.
        """
        p = expit(self.z)
        excess = float(p.mean()) - 0.5
        clear = abs(excess) > NormalDist().inv_cdf(0.975) * float(p.std()) / p.size**0.5
        if self.side is not None or not self.has_differences or not clear:
            return self.side
        return "positive" if excess > 0 else "negative"

    @property
    def arguments(self) -> tuple[Floats, Floats, PairLabels]:
        """Positional arguments of all measures."""
        return self.z[:, 0], self.z[:, 1], self.labels

    def options(self, confidence: float = 0.95) -> dict[str, Any]:
        """Keyword arguments of all measures."""
        return {"weight": self.weight, "items": self.ends, "confidence": confidence}

    def evaluate(self, confidence: float = 0.95, **options: Any) -> Evaluation:
        """Estimate all measures; see `pairlearn.evaluation.evaluate`."""
        measure: Any = evaluate  # a keyword given twice is a TypeError
        estimates: Evaluation = measure(
            *self.arguments,
            side=self.likely_side,
            noise=self.noise,
            annotator=self.annotator,
            **self.options(confidence),
            **options,
        )
        return estimates

    def accuracy(
        self,
        prior: float | None = None,
        confidence: float = 0.95,
        labelled: Any = None,
    ) -> AccuracyEstimate:
        """Estimate the accuracy under both readings of the answers, or with labelled items."""
        options = self.options(confidence) | {"side": self.likely_side, "labelled": labelled}
        options |= {"noise": self.noise, "annotator": self.annotator}
        return estimate_accuracy(*self.arguments, prior=prior, **options)

    def measured(
        self, prior: float | None = None
    ) -> tuple[AccuracyEstimate, list[str], str | None]:
        """The accuracy, also in words, and a warning if the decisions do not follow the classes.

        Where positives are rare, the words begin with what the model finds of them.
        """
        found, side, options = self.evaluate(prior=prior), self.likely_side, self.options()
        pairs = JudgedPairs.of(*self.arguments, prior=prior, side=side, **options)
        return found.accuracy, found.sentences(), unclear_decisions(pairs, fit_decisions(pairs))
