"""What statements about a data set's own classes teach: the trainings of the grid "classes".

The annotator is the paper's network with one output for each class, trained as in the paper. Its
posteriors are the soft answers; hard answers follow from classes drawn from them, anew for each
answer. Every method learns from the same pairs of distinct training items by `PairClassifier`, in
as many steps, and is measured on the whole test split: all priors are those of the data.

    true                  the true classes of the 2n items of n pairs
    label, labels         a class of n or of all 2n items, drawn from the annotator's posteriors
    confidences           the posteriors of all 2n items
    all                   similarity and difference of each pair about every class
    proposed, random      the same about one class, which a model proposes or which is uniform
    same                  whether both are of the same class; hard, it is the meta classification
                          likelihood, MCL (Hsu et al., ICLR 2019)
    same-true             the same by the true classes, as MCL was published

"Same" alone does not name the classes: they are matched to the truth on the test split, as in the
papers. A quarter of the proposed questions is uniform; before each other quarter a quick model of
all answers so far proposes the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import confusion_matrix

from pairlearn import Judgements, PairClassifier, PairLabels
from pairlearn.columns import Floats, Indices
from pairlearn.estimators.parameters import TrainingOptions
from pairlearn.judgements import propose_sets
from pairlearn.randomness import permutation, stream, uniform
from pairlearn_bench.benchmark import Benchmark, Checkpoints, Posteriors, Result
from pairlearn_bench.runs import Run
from pairlearn_bench.simulated import EPOCHS

#: Share of uniform questions among those that a model proposes, as `propose_sets` has it.
SHARE_UNIFORM = 0.1
#: Rounds of proposed questions, the first of which are uniform.
ROUNDS = 4
#: Share of the epochs that a quick model trains for.
QUICK_SHARE = 0.3
#: Posteriors below which a class is left out of an item's soft label.
NEGLIGIBLE = 1e-3


class ClassesBenchmark(Benchmark):
    """A data set whose runs learn its own classes, one at a time."""

    def posteriors(self, runs: Sequence[Run]) -> Posteriors:
        """Posteriors (N, K) of all items by the annotator of each seed."""
        return {(seed, None): self._annotate(seed) for seed in sorted({run.seed for run in runs})}

    def _annotate(self, seed: int) -> Floats:
        spec, (train, _) = self.dataset.spec, self.rows(seed)
        recipe = TrainingOptions(
            batch_size=spec.batch_size,
            learning_rate=spec.learning_rate,
            weight_decay=spec.weight_decay,
        )
        return self.fit(_labels(train, self.dataset.y[train]), spec.model, EPOCHS, recipe, seed)

    def fit(
        self, rows: Judgements, model: str, epochs: int, recipe: TrainingOptions, seed: int
    ) -> Floats:
        """Posteriors (N, K) of all items by a classifier that learnt from these statements."""
        recipe.set_params(device=self.device, precision=self.precision)
        classifier = PairClassifier(
            model=model,
            classes=range(self.dataset.spec.n_classes),
            annotators="ideal",
            unjudged="ignore",
            epochs=epochs,
            training=recipe,
            random_state=seed,
        )
        features = np.asarray(self.features)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "same" alone does not name the classes
            posteriors: Floats = classifier.fit(features, rows).predict_proba(features)
        return posteriors

    def train(
        self,
        groups: Sequence[Sequence[Run]],
        annotators: Posteriors,
        progress: Callable[[int, float], None] | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> list[Result]:
        """Train the one model of a fleet; it is short, and writes no checkpoints."""
        ((run,),) = groups
        asked = _Asked(self, run, np.asarray(annotators[run.seed, None], np.float64))
        predicted = asked.fit(asked.rows()).argmax(1)
        _, test = self.rows(run.seed)
        counts = confusion_matrix(self.dataset.y[test], predicted[test])
        if run.method.startswith("classes-same"):
            counts = counts[:, linear_sum_assignment(counts, maximize=True)[1]]
        right = asked.posterior[test].argmax(1) == self.dataset.y[test]
        accuracy = float(counts.trace() / counts.sum())
        return [(run, {"stratified": accuracy, "annotator_stratified": float(right.mean())})]


class _Asked:
    """The pairs of a run, and the answers about them."""

    def __init__(self, benchmark: ClassesBenchmark, run: Run, posterior: Floats) -> None:
        self.benchmark, self.run, self.posterior = benchmark, run, posterior
        train, _ = benchmark.rows(run.seed)
        items = train[permutation(stream(run.seed, "pairs"), len(train))]
        self.pairs = items[: 2 * run.pairs].reshape(run.pairs, 2)
        self.classes = posterior.shape[1]
        self.hard = run.method.endswith("-hard")
        if run.method == "classes-same-true":
            self.hard, self.posterior = True, np.eye(self.classes)[benchmark.dataset.y]

    def rows(self) -> Judgements:
        """The statements that the method of the run reads."""
        n, items = self.run.pairs, self.pairs.ravel()
        match self.run.method.removeprefix("classes-").split("-")[0]:
            case "true":
                return _labels(items, self.benchmark.dataset.y[items])
            case "labels":
                return _labels(items, self.drawn(items))
            case "label":
                return _labels(items[::2], self.drawn(items)[::2])
            case "confidences":
                return self.confidences(items)
            case "all":
                each = [self.about(np.full(n, k), np.ones(n)) for k in range(self.classes)]
                return Judgements.concatenate(each)
            case "random":
                return self.about(*self.uniform())
            case "proposed":
                return self.about(*self.proposed())
            case _:
                left, right = self.posterior[self.pairs].swapaxes(0, 1)
                same = (left * right).sum(1)
                if self.hard:
                    same = np.equal(*self.drawn(items).reshape(n, 2).T)
                answers = np.stack([same, np.full(n, np.nan)], 1)
                return Judgements.from_pairs(self.pairs, answers)

    def drawn(self, items: Indices) -> Indices:
        """Classes of items, drawn from the posteriors."""
        draws = uniform(stream(self.run.seed, "drawn"), len(items))
        k: Indices = (draws[:, None] > self.posterior[items].cumsum(1)[:, :-1]).sum(1)
        return k

    def confidences(self, items: Indices) -> Judgements:
        """The posteriors of items: each class as a label with its probability as the weight."""
        place, k = np.nonzero(self.posterior[items] > NEGLIGIBLE)
        weight = self.posterior[items[place], k] * self.classes
        return Judgements.about_items("label", items[place], np.ones(len(k)), weight, about=k)

    def about(self, k: Indices, q: Floats) -> Judgements:
        """Answers about one class of each pair, which was asked about with probability q."""
        ends: Floats = self.posterior[self.pairs, k[:, None]]
        if self.hard:
            draws = uniform(stream(self.run.seed, "answers"), ends.size)
            ends = (draws.reshape(ends.shape) < ends).astype(np.float64)
        answers = PairLabels.from_posteriors(*ends.T)
        return Judgements.from_pairs(self.pairs, answers, about=k, q=q)

    def uniform(self) -> tuple[Indices, Floats]:
        """A class drawn uniformly for each pair, and its probability."""
        draws = uniform(stream(self.run.seed, "classes"), len(self.pairs))
        return (draws * self.classes).astype(np.int64), np.full(len(draws), 1 / self.classes)

    def proposed(self) -> tuple[Indices, Floats]:
        """The class that quick models propose for each pair, and its probability."""
        k, q = self.uniform()
        for start in np.arange(1, ROUNDS) * len(k) // ROUNDS:
            quick = self.fit(self.about(k, q)[:start], "mlp-small", QUICK_SHARE)
            rest = propose_sets(quick, self.pairs[start:], SHARE_UNIFORM, self.run.seed)
            k[start:], q[start:] = rest
        return k, q

    def fit(self, rows: Judgements, model: str | None = None, share: float = 1.0) -> Floats:
        """Posteriors by a model in as many steps whatever the number of statements."""
        run = self.run
        recipe = TrainingOptions(
            batch_size=max(1, round(run.batch_size * len(rows) / run.pairs)),
            learning_rate=run.learning_rate,
            schedule="cosine",
            weight_decay=run.weight_decay,
        )
        epochs = max(1, round(share * run.epochs))
        return self.benchmark.fit(rows, model or run.model, epochs, recipe, run.seed)


def _labels(items: Indices, classes: Any) -> Judgements:
    return Judgements.about_items("label", items, np.ones(len(items)), about=classes)
