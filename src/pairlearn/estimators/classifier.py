"""PairClassifier: a binary classifier from judged pairs, with scikit-learn's interface."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.utils import check_random_state

from pairlearn.columns import Floats
from pairlearn.estimators import population
from pairlearn.estimators.cross_fitting import choose_model, learn_annotators, train_network
from pairlearn.estimators.features import FeatureStep
from pairlearn.estimators.instances import feature_range
from pairlearn.estimators.neighbours import with_unjudged
from pairlearn.estimators.parameters import (
    CONSTRAINTS,
    MODEL_OF,
    NETWORK,
    check_parameters,
    flattens,
    is_scikit_learn,
    kept_parameters,
    model_of,
    needs_prior,
    risk_of,
    split_callbacks,
)
from pairlearn.estimators.prediction import PairPredictor
from pairlearn.estimators.table import FEW, FewPairsWarning, Table, read_table, with_groups
from pairlearn.judgements import Judgements
from pairlearn.progress import training_bar
from pairlearn.risks import Risk
from pairlearn.training import Checkpoint
from pairlearn.training.loop import Callback, Report, refuse_divergence

NOT_ALWAYS = frozenset(
    ["model_", "module_", "estimator_", "encoder_", "features_", "feature_names_in_", "trained_on_"]
)
"""Attributes that only some fits set."""


@dataclass(kw_only=True, eq=False, repr=False)
class PairClassifier(PairPredictor):
    """Learn P(y = +1 | x) from pairs (x, x') that an annotator judged.

    Parameters
    ----------
    risk : str or Risk
        "likelihood" (the default; needs no class prior), or an affine risk by its name:
        "sconfconfdiff", "confdiff", "sconf", "convex-0.5", "nonnegative". A correction at the
        end of the name, as in "sconf-relu", takes precedence over `correction`.
    correction : {"abs", "relu", "none"} or float
        How partial risks below zero are corrected.
    annotators : {"auto", "learn", "ideal"}
        "ideal" takes every answer as a calibrated probability and trains to the end. Otherwise
        held-out pairs decide when to stop on hard answers and how confident to be, and labels of
        judged items how confident annotators were. "learn" estimates how each annotator answers
        (`annotators_`), corrects and weights the answers; it trains further models, on parts of
        the pairs, for a fifth of the epochs. "auto" learns if there are several annotators, answers
        that no posteriors produce, or at least 1,000 pairs on three or four levels.
    prior : float or "estimate"
        The class prior π₊ of the instances in the pairs. The likelihood needs it only for
        tables without any similarity or class. "estimate" takes it from the similarities.
    majority : {"positive", "negative"}, optional
        The larger class. Needed with similarities alone, which are the same with the classes
        exchanged, unless `prior` implies it. When the prior is estimated, a linear model trained on
        the pairs finds the larger class by default.
    target_prior, annotator_prior : float, optional
        The class prior where the classifier will be used, to which log-odds are shifted, and that
        of the population that the annotator had in mind. Without the latter the shift makes mean
        P(y = +1 | x) over the training instances the `target_prior`.
    model : str, nn.Module, callable or scikit-learn classifier
        "mlp-bn" (three hidden layers of 300 with batch norm), "mlp" (the paper's, batch
        norm on the input only), "linear", "resnet34", "resnet32", "resnet8"; a module with one
        output, which is copied and trained from its current weights; a function that makes one
        from the number of features (for images: channels, height, width); or a classifier
        whose `fit` takes `sample_weight`, trained by rounds of target completion. "auto" is
        "mlp-bn"; with fewer than 400 rows it is "linear" if a linear score ranks 99% of the
        answers, judged on pairs left out, so that there is hardly anything to gain. It
        is always "mlp-bn" with your own `epochs`, `batch_size` or `learning_rate`, "linear" with
        columns of free text, and "resnet8" for a folder of images.
    loss : str
        Margin loss of the affine risks.
    learning_rate : float or "auto"
        Learning rate of Adam. "auto" is 0.002, and 0.01 for the linear model.
    schedule : {"auto", "cosine", "constant"}
        Whether the rate falls to zero along half a cosine in the second half of the epochs.
        "auto" is "constant" where a `learning_rate` is given, and "cosine" otherwise.
    weight_decay : float
        Weight decay of Adam, in the gradient.
    batch_size, epochs : int or "auto"
        "auto" is about a sixteenth of the pairs, 32 to 8,192, and 200 epochs; fewer, but at least
        10, if those would be more than 1,600 steps.
    early_stopping : bool
        Hold out a part of the pairs and keep the weights of the epoch that is best on them.
        Off by default: with averaged weights the last epoch was about as good in a few trials on
        Letter and Optdigits, clean and noisy, and holding out pairs costs training data.
    validation_fraction, patience : float, int
        The share of pairs that is held out, as far as possible with instances that no other pair
        has, and the number of epochs without improvement after which training stops.
    standardize : bool
        Scale every feature (every channel of images) to mean 0 and variance 1 over the instances of
        the training pairs.
    preprocessor : array, table or callable, optional
        Turns ids into features: an array whose rows they are, a data frame with the
        ids as index or in a column "id", a table with `ids` and `features`, or a function.
        Columns of a data frame may be of any type, with gaps: an `ItemEncoder` is fitted.
    features : scikit-learn transformer or callable, optional
        Computes features (m, d, ...) of rows of the preprocessor, or of the elements of the pairs,
        such as texts. A transformer is cloned and fitted to the instances of the pairs. It is not
        saved: pass it to `load`.
    labelled_weight : float or "auto"
        Share λ of ordinary labels in the objective, (1 − λ) pairs + λ labels. "auto" counts every
        judged pair and every labelled instance as one observation of the same likelihood.
    unjudged : {"auto", "ignore"}
        What to do with items without any statement. "auto" learns from them, assuming that nearest
        neighbours are alike, if there are at least four for each judged item and 30 to 1,000
        statements, and held-out statements show that it helps. It trains four or five further
        models.
    device, precision : str
        "auto" is CUDA with bf16 products where available, else the CPU with float32.
    random_state : int, RandomState or None
        Determines initial weights, batches and the held-out pairs.
    callbacks : sequence, optional
        Functions that are called after each epoch with the planned number of epochs and the
        epoch's history; `pairlearn.training.Callback` objects; and a `Checkpoint`, which saves the
        state of training from time to time and resumes from it, with the same result, until you
        `remove` its files. scikit-learn classifiers ignore them.
    verbose : int
        Show a bar during training, on a terminal.

    Attributes
    ----------
    classes_ : array of shape (2,)
        [−1, 1], or the two classes of `labelled`; the last one is positive.
    n_features_in_, feature_names_in_
        Features of one instance, and their names if they have some.
    encoder_ : ItemEncoder
        Encoder of the columns, if they are not all plain numbers.
    features_ : transformer or callable
        The fitted `features`.
    module_ : nn.Module, or estimator_ : scikit-learn classifier
        The trained model. Its inputs are standardised, its logits z become
        `sign_` · `slope_` · z + `shift_`.
    model_ : str
        The model that "auto" chose.
    mean_, scale_ : array
        Mean and scale of the standardisation; 0 and 1 without it.
    range_ : array of shape (2, d)
        Least and largest value of each feature in training.
    sign_ : int
        −1 if the model's outputs are log-odds of the negative class: similarities are the same with
        the classes exchanged, and training may have found either solution.
    slope_ : float
        Differs from 1 if the network is over- or underconfident, judged by held-out pairs for hard
        answers, "same" or "different", and by labels for soft ones.
    confidence_ : Confidence or None
        How confident annotators are compared with how confident they should be, if labels of items
        in their pairs show it.
    shift_ : float
        Added to the log-odds for another prior.
    prior_ : float
        The prior that was used; with the likelihood, the mean of P(y = +1 | x) over the training
        instances before the shift.
    annotators_ : Annotators
        How each annotator answers; without people if all were taken as ideal.
    unjudged_ : int
        Number of items without any statement that were learnt from.
    training_items_ : array of shape (m, 2)
        Hashes of the training instances, by which `score`, `estimate_accuracy` and `evaluate`
        recognise them.
    n_iter_, history_ : int, list of dict
        The epoch of the final weights; and "epoch", "risk", "seconds" and, with early stopping,
        "validation_risk" of every epoch.

    See Also
    --------
    pairlearn.risks.make_risk : The risks by their names.
    pairlearn.comparison.compare : Which method is best on your own pairs.
    pairlearn.evaluation.evaluate : Accuracy, rates and costs without labels.

    Examples
    --------
    >>> import numpy as np
    >>> from pairlearn import PairLabels
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(300, 2, 4))
    >>> r = 1 / (1 + np.exp(-4 * pairs[:, :, 0]))       # the annotator's posteriors
    >>> labels = PairLabels.from_posteriors(r[:, 0], r[:, 1])
    >>> classifier = PairClassifier(model="linear", random_state=0).fit(pairs, labels)
    >>> classifier.predict([[2.0, 0.0, 0.0, 0.0], [-2.0, 0.0, 0.0, 0.0]])
    array([ 1, -1])
    """

    _parameter_constraints = CONSTRAINTS

    risk: str | Risk = "likelihood"
    correction: str | float = "abs"
    annotators: str = "auto"
    prior: float | str = "estimate"
    majority: population.Majority | None = None
    target_prior: float | None = None
    annotator_prior: float | None = None
    model: Any = "auto"
    loss: str = "logistic"
    learning_rate: float | str = "auto"
    schedule: str = "auto"
    weight_decay: float = 1e-5
    batch_size: int | str = "auto"
    epochs: int | str = "auto"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 20
    standardize: bool = True
    preprocessor: Any = None
    features: Any = None
    labelled_weight: float | str = "auto"
    unjudged: str = "auto"
    device: str = "auto"
    precision: str = "auto"
    random_state: Any = None
    callbacks: Any = None
    verbose: int = 0

    def fit(
        self,
        pairs: Any,
        labels: Any,
        *,
        annotator: Any = None,
        sample_weight: Any = None,
        preference: Any = None,
        labelled: tuple[Any, Any] | None = None,
        positive: Any = None,
        groups: tuple[Any, Mapping[Any, Any]] | None = None,
    ) -> PairClassifier:
        """Learn from judged pairs.

        Parameters
        ----------
        pairs : array of shape (n, 2, d, ...) or (n, 2)
            Both instances of each pair, or their ids, which the `preprocessor` knows. A pair may be
            in several rows, judged by several annotators: all of them count.
        labels : PairLabels, array of shape (n, 2), Judgements or data frame
            Similarity and difference, NaN where not given; None if all rows have a
            preference only. `Judgements` with ids, and data frames with the columns of a file
            (`Judgements.from_frame`), take None as `pairs`. `Judgements` without ids refer to items
            by position: then `pairs` are these items (N, d, ...), or ids or pairs row by row.
        annotator, sample_weight : array of shape (n,), optional
            Who judged each pair, and weights of the rows; not beside `labels` that have others.
        preference : array of shape (n,), optional
            "right" (1) or "left" (−1), the more positive instance; None or 0 where not given.
        labelled : (X, y), optional
            Instances (or ids) with ordinary labels, of two classes.
        positive : optional
            The positive class of `labelled`. Needed unless the classes are numbers, of which the
            larger one is positive by default.
        groups : (array of shape (N,), mapping), optional
            The group of each item, and {group: share of positives}; see `Judgements.in_groups`.
        """
        check_parameters(self)
        callbacks, checkpoint = split_callbacks(self.callbacks or ())
        table = read_table(
            pairs,
            with_groups(labels, groups),
            sample_weight=sample_weight,
            preference=preference,
            annotator=annotator,
            labelled=labelled,
            positive=positive,
            preprocessor=self.preprocessor,
            step=FeatureStep(self.features),
        )
        if (count := len(table.statements)) < FEW:
            warnings.warn(
                f"there are too few judged pairs, {count}, for a model to learn from: "
                "judge some dozens at least",
                FewPairsWarning,
                stacklevel=2,
            )
        if table.seed < 0:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            table = replace(table, seed=seed)
        learner = copy.copy(self)
        for name in NOT_ALWAYS:
            learner.__dict__.pop(name, None)
        learner._learn(table, callbacks, checkpoint)
        # All at once: a fit that fails or is interrupted leaves the classifier as it was.
        kept = {name: value for name, value in vars(self).items() if name not in NOT_ALWAYS}
        learnt = {name: value for name, value in vars(learner).items() if name.endswith("_")}
        self.__dict__ = kept | learnt | {"_trained_with": kept_parameters(learner)}
        return self

    def _learn(
        self, table: Table, callbacks: list[Callback], checkpoint: Checkpoint | None
    ) -> None:
        """Set the attributes by learning from a table."""
        weight = table.item_weight()
        self._describe_instances(table, weight)
        table = replace(table, features=self._prepared(table.features, table.scratch))
        table, self.annotators_ = learn_annotators(self, table)
        doubt = None
        if table.known is not None:
            doubt = population.classes_against_differences(table.features, table.statements)
            if doubt is not None:
                warnings.warn(doubt, population.KnownClassesWarning, stacklevel=3)
        self.contradicted_ = doubt is not None
        rows = table.rows(self.labelled_weight)
        if model_of(self) == NETWORK and self.model == "auto":
            self.model_ = choose_model(self, table, rows)
        need = population.required_parameter(rows, needs_prior(self.risk))
        prior = self._prior(need, table, rows.packed(table.seed))
        if reads := risk_of(self, prior).kinds:
            need = "nothing"  # this risk reads the prior with every row
        rows, self.unjudged_ = with_unjudged(self, table, rows, need, reads)
        if is_scikit_learn(self.model):
            self._complete(table, rows, prior)
            outputs = None
        else:
            outputs = self._train(table, rows, need, prior, callbacks, checkpoint)
        self.shift_, self.confidence_ = 0.0, None
        z = self._log_odds(table.features) if outputs is None else self._factor * outputs
        trusted = table.known if doubt is None else None
        if self.annotators != "ideal" and trusted is not None:
            self.confidence_, slope = population.confidence_from_labels(
                table.features, z, table.judged, trusted
            )
            self.slope_, z = self.slope_ * slope, slope * z
        self._set_prior(z, weight, table.judged, need, prior)

    def _describe_instances(self, table: Table, weight: Floats) -> None:
        """Set the attributes that depend on the instances alone."""
        self.training_items_ = table.fingerprints()
        self.classes_ = table.classes
        self.instance_shape_ = tuple(int(size) for size in table.features.shape[1:])
        self.n_features_in_ = int(np.prod(self.instance_shape_))
        table.step.set_attributes(self)
        if self.model == "auto":
            models = [MODEL_OF[kind] for kind in MODEL_OF if table.step.reads(kind)]
            self.model_ = models[0] if models else NETWORK
        encoder = table.step.encoder
        self.range_ = feature_range(table.features, True if encoder is None else encoder.scaled)
        self.mean_, self.scale_ = np.zeros(()), np.ones(())
        if self.standardize:
            self.mean_, self.scale_ = table.scale(weight, normed=flattens(self))

    def _prior(self, need: population.Need, table: Table, rows: Judgements) -> float | None:
        """Class prior that the risk or the table needs, stated or estimated; None if neither."""
        stated = None if self.prior == "estimate" else float(self.prior)
        population.check_stated(need, rows, stated, self.majority)
        side = population.stated_majority(stated, self.majority)
        if need == "majority" and side is not None:
            doubt = population.unclear_majority(rows, side)
            if doubt is not None:
                warnings.warn(doubt, population.PriorMismatchWarning, stacklevel=4)
        if stated is not None or not needs_prior(self.risk) or is_scikit_learn(self.model):
            return stated
        if isinstance(self.risk, Risk):
            return float(self.risk.prior)  # type: ignore[arg-type]
        majority = self.majority
        if majority is None:
            population.check_majority_determined(rows, self.risk)
            majority = population.find_majority(table.features, rows, table.seed, self.device)
        return table.prior(rows, majority)

    def _train(
        self,
        table: Table,
        rows: Judgements,
        need: population.Need,
        prior: float | None,
        callbacks: list[Callback],
        checkpoint: Checkpoint | None,
    ) -> Floats | None:
        """Train a network; return its outputs for all instances where training computed them."""
        shown = self.verbose and not callbacks
        with training_bar("fit", shown=bool(shown)) as bar:
            callbacks = [Report(refuse_divergence), *callbacks]
            if bar is not None:
                callbacks.append(Report(bar))
            trained, self.slope_ = train_network(
                self, table, rows.packed(table.seed), need, prior, callbacks, checkpoint
            )
        self.module_, self.sign_ = trained.module, trained.sign
        self.history_, self.n_iter_ = trained.history, trained.epoch
        return trained.outputs

    def _complete(self, table: Table, rows: Judgements, prior: float | None) -> None:
        """Train a scikit-learn classifier by rounds of target completion."""
        from pairlearn.estimators.completion import complete_and_fit

        side = population.stated_majority(prior, self.majority)
        self.estimator_, rounds = complete_and_fit(
            self.model, table.features, rows, prior=prior, majority=side, random_state=table.seed
        )
        self.sign_, self.slope_ = 1, 1.0
        self.history_ = [asdict(record) for record in rounds]
        self.n_iter_ = len(rounds)

    def _set_prior(
        self,
        z: Floats,
        weight: Floats,
        judged: Judgements,
        need: population.Need,
        prior: float | None,
    ) -> None:
        """Set sign, shift and prior, and warn if the stated prior does not fit."""
        mean = population.mean_posterior(z, weight)
        larger = population.stated_majority(prior, self.majority)
        if need == "majority" and (mean > 0.5) != (larger == "positive"):
            self.sign_, z, mean = -self.sign_, -z, 1 - mean
        affine = needs_prior(self.risk)
        self.prior_ = prior if affine and prior is not None else mean
        reason = None
        if affine and prior is not None and (self.prior != "estimate" or self.majority):
            reason = population.wrong_side(judged, prior, z)
        # Where the table does not fix the level, mean(p) is held to the prior.
        target = prior if self.target_prior is None and need == "prior" else self.target_prior
        if target is not None and self.annotator_prior is not None:
            self.shift_ = float(logit(target) - logit(self.annotator_prior))
        elif target is not None:
            self.shift_ = population.solve_shift(z, weight, target)
        elif reason is None and self.prior != "estimate":
            learnt = None if affine else z
            reason = population.disagreement(judged, float(self.prior), learnt, weight)
        if reason is not None:
            warnings.warn(reason, population.PriorMismatchWarning, stacklevel=4)
