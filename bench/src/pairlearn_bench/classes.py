"""What statements about a data set's own classes teach: the trainings of the grid "classes".

The annotator is the paper's network with one output for each class, trained as in the paper. Its
posteriors are the soft answers; hard answers follow from classes drawn from them, anew for each
answer. Every method learns from the same pairs of distinct training items as `PairClassifier` does,
in as many steps, and is measured on the whole test split: all priors are those of the data.

    true                  the true classes of the 2n items of n pairs
    label, labels         a class of n or of all 2n items, drawn from the annotator's posteriors
    confidences           the posteriors of all 2n items
    all                   similarity and difference of each pair about every class
    proposed, random      the same about one class, which a model proposes or which is uniform
    half                  the same about a random half of the classes
    same                  whether both are of the same class; hard, it is the meta classification
                          likelihood, MCL (Hsu et al., ICLR 2019)
    same-true             the same by the true classes, as MCL was published

"Same" alone does not name the classes: they are matched to the truth on the test split, as in the
papers. A quarter of the proposed questions is uniform; before each other quarter a quick model of
all answers so far proposes the rest. On a GPU the models of a fleet train as one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import confusion_matrix

from pairlearn import Judgements, PairLabels
from pairlearn.columns import Floats, Indices
from pairlearn.judgements import propose_sets
from pairlearn.judgements.sets import join_set
from pairlearn.randomness import permutation, stream, uniform
from pairlearn.risks import PairLikelihood
from pairlearn.training import Objective, Recipe
from pairlearn.training.devices import features_on
from pairlearn.training.learner import Learner
from pairlearn_bench.benchmark import Benchmark, Checkpoints, Posteriors, Result, free_memory
from pairlearn_bench.fleet.together import Together, shape_of
from pairlearn_bench.runs import Run, grouped
from pairlearn_bench.simulated import EPOCHS

#: Share of uniform questions among those that a model proposes, as `propose_sets` has it.
SHARE_UNIFORM = 0.1
#: Rounds of proposed questions, the first of which are uniform.
ROUNDS = 4
#: Share of the epochs that a quick model trains for.
QUICK_SHARE = 0.3
#: Posteriors below which a class is left out of an item's soft label.
NEGLIGIBLE = 1e-3


class Training(NamedTuple):
    """Statements to learn from, and how."""

    rows: Judgements
    model: str
    recipe: Recipe


class ClassesBenchmark(Benchmark):
    """A data set whose runs learn its own classes."""

    def posteriors(self, runs: Sequence[Run]) -> Posteriors:
        """Posteriors (N, K) of all items by the annotator of each seed."""
        seeds = sorted({run.seed for run in runs})
        found = self.fit([self._annotator(seed) for seed in seeds])
        return {(seed, None): each for seed, each in zip(seeds, found, strict=True)}

    def _annotator(self, seed: int) -> Training:
        spec, (train, _) = self.dataset.spec, self.rows(seed)
        recipe = self.recipe(EPOCHS, spec.batch_size, spec.learning_rate, spec.weight_decay, seed)
        return Training(_labels(train, self.dataset.y[train]), spec.model, recipe)

    def recipe(
        self, epochs: int, batch_size: int, rate: float, decay: float, seed: int, **more: Any
    ) -> Recipe:
        """A recipe on the device of the benchmark."""
        more |= {"device": self.device, "precision": self.precision, "seed": seed}
        return Recipe(epochs, batch_size, rate, decay, patience=epochs, **more)

    def fit(self, trainings: Sequence[Training]) -> list[Floats]:
        """Posteriors (N, K) of all items by the model of each training."""
        features = features_on(torch.device(self.device), self.features, torch.float32)
        learners = [self.learner(features, one) for one in trainings]
        found: dict[int, Floats] = {}
        for alike in grouped(range(len(learners)), lambda k: shape_of(learners[k])).values():
            if self.device != "cpu":
                free_memory()
            found |= zip(alike, Together([learners[k] for k in alike]).fit(), strict=True)
        return [found[k] for k in range(len(learners))]

    def learner(self, features: Any, training: Training) -> Learner:
        """The learner of `PairClassifier` by the likelihood, whose annotators are ideal."""
        rows = training.rows.of_classes(range(self.dataset.spec.n_classes))
        rows = rows.scaled(len(rows) / rows.weight.sum()).packed(training.recipe.seed)
        risk = PairLikelihood(correction="abs").over(rows.u, rows.v, rows.weight)
        objective = Objective(risk, rows.kinds())
        return Learner(features, rows, objective, training.model, training.recipe)

    def train(
        self,
        groups: Sequence[Sequence[Run]],
        annotators: Posteriors,
        progress: Callable[[int, float], None] | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> list[Result]:
        """Train a fleet; it is short, and writes no checkpoints.

        Quick models of all runs train together, then the models that follow them.
        """
        runs = [run for group in groups for run in group]
        asked = [_Asked(self, run, np.asarray(annotators[run.seed, None])) for run in runs]
        working = {k: one.trainings() for k, one in enumerate(asked)}
        wanted = {k: next(work) for k, work in working.items()}
        last: dict[int, Floats] = {}
        while wanted:
            last |= zip(wanted, self.fit([*wanted.values()]), strict=True)
            following = {k: _next_of(working[k], last[k]) for k in wanted}
            wanted = {k: request for k, request in following.items() if request is not None}
        return [(run, asked[k].accuracies(last[k])) for k, run in enumerate(runs)]


def _next_of(work: Generator[Training, Floats, None], posteriors: Floats) -> Training | None:
    """The training that follows one with these posteriors."""
    try:
        return work.send(posteriors)
    except StopIteration:
        return None


class _Asked:
    """The pairs of a run, and the answers about them."""

    def __init__(self, benchmark: ClassesBenchmark, run: Run, posterior: Floats) -> None:
        self.benchmark, self.run = benchmark, run
        self.annotator = self.posterior = posterior.astype(np.float64)
        train, _ = benchmark.rows(run.seed)
        items = train[permutation(stream(run.seed, "pairs"), len(train))]
        self.pairs = items[: 2 * run.pairs].reshape(run.pairs, 2)
        self.classes = posterior.shape[1]
        self.hard = run.method.endswith("-hard")
        if run.method == "classes-same-true":
            self.hard, self.posterior = True, np.eye(self.classes)[benchmark.dataset.y]

    def trainings(self) -> Generator[Training, Floats, None]:
        """The trainings of the run, of which the last one is measured; each gets its posteriors."""
        if not self.run.method.startswith("classes-proposed"):
            yield self.training(self.rows())
            return
        k, q = self.uniform()
        for start in np.arange(1, ROUNDS) * len(k) // ROUNDS:
            quick = yield self.training(self.about(k, q)[:start], "mlp-small", QUICK_SHARE)
            rest = propose_sets(quick, self.pairs[start:], SHARE_UNIFORM, self.run.seed)
            k[start:], q[start:] = rest
        yield self.training(self.about(k, q))

    def accuracies(self, posteriors: Floats) -> dict[str, float]:
        """Accuracy of a model with these posteriors, and of the annotator, on the test split."""
        _, test = self.benchmark.rows(self.run.seed)
        truth = self.benchmark.dataset.y[test]
        counts = confusion_matrix(truth, posteriors[test].argmax(1))
        if self.run.method.startswith("classes-same"):
            counts = counts[:, linear_sum_assignment(counts, maximize=True)[1]]
        accuracy = float(counts.trace() / counts.sum())
        right = self.annotator[test].argmax(1) == truth
        return {"stratified": accuracy, "annotator_stratified": float(right.mean())}

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
            case "half":
                return self.about_half()
            case _:
                left, right = self.posterior[self.pairs].swapaxes(0, 1)
                same = (left * right).sum(1).clip(0, 1)
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
        answers = self.answers(self.posterior[self.pairs, k[:, None]])
        return Judgements.from_pairs(self.pairs, answers, about=k, q=q)

    def about_half(self) -> Judgements:
        """Answers about a random half of the classes for each pair."""
        draws = uniform(stream(self.run.seed, "classes"), len(self.pairs) * self.classes)
        members = draws.reshape(-1, self.classes).argsort(1) < self.classes // 2
        answers = self.answers((self.posterior[self.pairs] * members[:, None]).sum(-1).clip(0, 1))
        about = [join_set(map(str, np.flatnonzero(mask))) for mask in members]
        return Judgements.from_pairs(self.pairs, answers, about=about)

    def answers(self, ends: Floats) -> PairLabels:
        """Answers about a set of classes, whose posteriors (n, 2) are given for both items."""
        if self.hard:
            draws = uniform(stream(self.run.seed, "answers"), ends.size)
            ends = (draws.reshape(ends.shape) < ends).astype(np.float64)
        return PairLabels.from_posteriors(*ends.T)

    def uniform(self) -> tuple[Indices, Floats]:
        """A class drawn uniformly for each pair, and its probability."""
        draws = uniform(stream(self.run.seed, "classes"), len(self.pairs))
        return (draws * self.classes).astype(np.int64), np.full(len(draws), 1 / self.classes)

    def training(self, rows: Judgements, model: str | None = None, share: float = 1.0) -> Training:
        """A training in about as many steps whatever the number of statements."""
        run = self.run
        batch_size = max(1, round(run.batch_size * len(rows.packed(run.seed)) / run.pairs))
        epochs = max(1, round(share * run.epochs))
        rates = run.learning_rate, run.weight_decay
        recipe = self.benchmark.recipe(epochs, batch_size, *rates, run.seed, schedule="cosine")
        return Training(rows, model or run.model, recipe)


def _labels(items: Indices, classes: Any) -> Judgements:
    return Judgements.about_items("label", items, np.ones(len(items)), about=classes)
