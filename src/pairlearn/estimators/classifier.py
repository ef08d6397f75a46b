"""PairClassifier: a classifier from judged pairs, with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from sklearn.utils import check_random_state

from pairlearn.estimators.fit_input import Table, names_judgements, read_table, with_groups
from pairlearn.estimators.learning import learn
from pairlearn.estimators.parameters import (
    CONSTRAINTS,
    TrainingOptions,
    check_parameters,
    split_callbacks,
)
from pairlearn.estimators.prediction import PairPredictor
from pairlearn.prior import Majority
from pairlearn.progress import Progress, training_bar
from pairlearn.risks import Risk
from pairlearn.training import Checkpoint
from pairlearn.training.loop import Report


@dataclass(kw_only=True, eq=False, repr=False)
class PairClassifier(PairPredictor):
    """Learn P(y = +1 | x) from pairs (x, x') that an annotator judged.

    >>> import numpy as np
    >>> from pairlearn import PairLabels
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(300, 2, 4))
    >>> r = 1 / (1 + np.exp(-4 * pairs[:, :, 0]))       # the annotator's posteriors
    >>> labels = PairLabels.from_posteriors(r[:, 0], r[:, 1])
    >>> classifier = PairClassifier(model="linear", random_state=0).fit(pairs, labels)
    >>> classifier.predict([[2.0, 0.0, 0.0, 0.0], [-2.0, 0.0, 0.0, 0.0]])
    array([ 1, -1])

    The defaults suit most tables. The parameters by what they are about:

    - data: `preprocessor`, `unjudged`, `classes`
    - risk: `risk`, `prior`, `majority`, `target_prior`, `annotator_prior`
    - annotators: `annotators`
    - training: `model`, `epochs`, `training`, `random_state`, `callbacks`
    - output: `verbose`

    Parameters
    ----------
    risk : str or Risk
        "likelihood-abs" (the default; needs no class prior), or the name of another risk and its
        correction: "sconfconfdiff-abs", "confdiff-relu", "sconf-none", "convex-0.5-abs",
        "nonnegative". A name without a correction has the usual one of its family, mostly none.
        For another margin loss give a `Risk`, as `make_risk("sconf-abs", prior=0.3,
        loss="squared")`.
    prior : float, "estimate", or {class: share}
        The class prior π₊ of the instances in the pairs. The likelihood needs it only for
        tables without any similarity or class. "estimate" takes it from the similarities. With
        more than two classes give the share of each.
    majority : {"positive", "negative"}, optional
        The larger class. Needed with similarities alone, which are the same with the classes
        exchanged, unless `prior` implies it. When the prior is estimated, a linear model trained on
        the pairs finds the larger class by default.
    target_prior, annotator_prior : float, optional
        The class prior where the classifier will be used, to which log-odds are shifted, and that
        of the population that the annotator had in mind. Without the latter the shift makes mean
        P(y = +1 | x) over the training instances the `target_prior`.
    annotators : {"auto", "learn", "ideal"}
        "ideal" takes every answer as a calibrated probability and trains to the end. Otherwise
        held-out pairs decide when to stop on hard answers and how confident to be. "learn"
        estimates how each annotator answers (`annotators_`), corrects and weights the answers; it
        trains three more models, on parts of the pairs, for a fifth of the epochs. "auto" learns if
        there are several annotators, or answers that no posteriors produce.
    unjudged : {"auto", "ignore"}
        What to do with items without any statement. "auto" learns from them, assuming that nearest
        neighbours are alike, if there are at least four for each judged item and 30 to 1,000
        statements, and held-out statements show that it helps. It trains four or five further
        models.
    classes : sequence or int, optional
        Names of the classes; with two, the last one is positive. By default those that `about` and
        `labelled` name. A number of classes calls those without a name "group 1" and so on.
    model : str, nn.Module, callable or scikit-learn classifier
        "mlp-bn" (three hidden layers of 300 with batch norm), "mlp" (the paper's, batch
        norm on the input only), "linear", "resnet34", "resnet32", "resnet8"; a module with one
        output, which is copied and trained from its current weights; a function that makes one
        from the number of features (for images: channels, height, width); or a classifier
        whose `fit` takes `sample_weight`, trained by rounds of target completion. "auto" is
        "mlp-bn"; with fewer than 400 rows it is "linear" if a linear score ranks 99.5% of the
        answers, judged on pairs left out, so that there is hardly anything to gain. It
        is always "mlp-bn" with `epochs`, batch size or learning rate of your own, "linear" with
        columns of free text, and "resnet8" for a folder of images.
    preprocessor : array, table or callable, optional
        Turns ids into features. An array whose rows they are, a data frame with the
        ids as index or in a column "id", or a table with `ids` and `features`. Or a function
        from ids (m,), which may be file names or texts, to features (m, d, ...). Columns of a
        data frame may be of any type, with gaps: an `ItemEncoder` is fitted. It is not saved:
        pass it to `load`.
    epochs : int or "auto"
        "auto" is 200 epochs; fewer, but at least 10, if those would be more than 1,600 steps.
    training : TrainingOptions, optional
        How networks are trained: batches, learning rate, weight decay, device.
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
    classes_ : array of shape (K,)
        [−1, 1] without names; otherwise the classes. The last one of two is positive.
    n_features_in_, feature_names_in_
        Features of one instance, and their names if they have some.
    encoder_ : ItemEncoder
        Encoder of the columns, if they are not all plain numbers.
    module_ : nn.Module, or estimator_ : scikit-learn classifier
        The trained model. Its inputs are standardised, its logits z become
        `sign_` · `slope_` · z + `shift_`.
    model_ : str, nn.Module, callable or scikit-learn classifier
        The model that was trained, as "auto" chose it or as it was given.
    mean_, scale_ : array
        Mean and scale of the standardisation; 0 and 1 without it.
    sign_ : int
        −1 if the model's outputs are log-odds of the negative class: similarities are the same with
        the classes exchanged, and training may have found either solution.
    slope_ : float
        Differs from 1 if the network is over- or underconfident on hard answers, "same" or
        "different", judged by held-out pairs.
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
    scales_ : dict
        The scales of answers, by column, if `fit` was given some. They hold for the data frames
        that the model is measured with as well.
    n_iter_, history_ : int, list of dict
        The epoch of the final weights; and "epoch", "risk" and "seconds" of every epoch.

    See Also
    --------
    pairlearn.risks.make_risk : The risks by their names.
    pairlearn.comparison.compare : Which method is best on your own pairs.
    pairlearn.evaluation.evaluate : Accuracy, rates and costs without labels.
    """

    _parameter_constraints = CONSTRAINTS

    risk: str | Risk = "likelihood-abs"
    prior: float | str = "estimate"
    majority: Majority | None = None
    target_prior: float | None = None
    annotator_prior: float | None = None
    annotators: str = "auto"
    unjudged: str = "auto"
    classes: Any = None
    model: Any = "auto"
    preprocessor: Any = None
    epochs: int | str = "auto"
    training: TrainingOptions | None = None
    random_state: Any = None
    callbacks: Any = None
    verbose: int = 0

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``training__NAME`` those of `training`, which is made if it is None."""
        if self.training is None and any(name.startswith("training__") for name in params):
            self.training = TrainingOptions()
        super().set_params(**params)
        return self

    def fit(
        self,
        pairs: Any,
        labels: Any = None,
        *,
        about: Any = None,
        annotator: Any = None,
        sample_weight: Any = None,
        preference: Any = None,
        labelled: tuple[Any, Any] | None = None,
        positive: Any = None,
        groups: tuple[Any, Mapping[Any, Any]] | None = None,
        similarity_scale: Any = None,
        difference_scale: Any = None,
    ) -> Self:
        """Learn from judged pairs.

        Parameters
        ----------
        pairs : data frame, Judgements or array
            Alone: a data frame with the columns of a file, ``left``, ``right``, ``similarity`` and
            so on (`pairlearn.io.read_pairs`), or `Judgements` with ids, which `preprocessor` knows.
            Beside `labels`: both instances of each pair (n, 2, d, ...), or their ids (n, 2). A pair
            may be in several rows, judged by several annotators: all of them count.
        labels : PairLabels, array of shape (n, 2), Judgements or data frame
            Similarity and difference, NaN where not given; None if all rows have a
            preference only. `Judgements` without ids refer to items by position: then `pairs` are
            these items (N, d, ...), or ids or pairs row by row.
        about : array of shape (n,), optional
            The class, or the set of classes as "cat|dog", that each row is about; "" for a
            similarity that says "the same class at all". Without it there are two classes.
        annotator, sample_weight : array of shape (n,), optional
            Who judged each pair, and weights of the rows; not beside `labels` that have others.
        preference : array of shape (n,), optional
            "right" (1) or "left" (−1), the more positive instance; None where not given.
        labelled : (X, y), optional
            Instances (or ids) with ordinary labels.
        positive : optional
            The positive class of `labelled`. Needed unless the classes are numbers, of which the
            larger one is positive by default.
        groups : (array of shape (N,), mapping), optional
            The group of each item, and {group: share of positives}; see `Judgements.in_groups`.
        similarity_scale, difference_scale : (low, high), optional
            Ends of the scales of a data frame's answers, the lowest first, as (1, 5). The model
            keeps them.
        """
        check_parameters(self)
        scales = {"similarity": similarity_scale, "difference": difference_scale}
        frame = names_judgements(pairs if labels is None else labels)
        if not frame and (similarity_scale, difference_scale) != (None, None):
            raise ValueError(
                "similarity_scale and difference_scale are for data frames: rescale other answers "
                "to [0, 1] and [−1, 1]"
            )
        return self.fit_table(
            read_table(
                pairs,
                with_groups(labels, groups),
                sample_weight=sample_weight,
                preference=preference,
                annotator=annotator,
                about=about,
                classes=self.classes,
                labelled=labelled,
                positive=positive,
                preprocessor=self.preprocessor,
                scales=scales,
            )
        )

    def fit_table(
        self,
        table: Table,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Learn from a table that was read before; ``progress`` and ``checkpoint`` are extra."""
        callbacks, own = split_callbacks([*(self.callbacks or ()), progress])
        if table.seed < 0:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            table = replace(table, seed=seed)
        with training_bar("fit", shown=bool(self.verbose and not callbacks)) as bar:
            callbacks += [] if bar is None else [Report(bar)]
            # A fit that fails or is interrupted leaves the classifier as it was.
            self.fitted_ = learn(self, table, callbacks, checkpoint or own)
        return self
