"""A data set with the annotators, pairs, test sets and training of its runs."""

from __future__ import annotations

import gc
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pairlearn.columns import Mask
from pairlearn.estimators.orientation import guiding_prior
from pairlearn.judgements import Judgements
from pairlearn.models import CONVOLUTIONAL
from pairlearn.randomness import stream, uniform
from pairlearn.risks import Risk
from pairlearn.training import Precision, choose_device
from pairlearn.training.loop import is_guided
from pairlearn.training.trainer import bind_risk
from pairlearn_bench.data import Dataset, as_features, as_images, split_indices
from pairlearn_bench.data.sampling import sample_pairs, subset_at_prior
from pairlearn_bench.fleet import Fleet, Group, Member, TestSet
from pairlearn_bench.rivals import RIVALS
from pairlearn_bench.runs import GUIDED, Run, grouped, risk_of
from pairlearn_bench.simulated import Annotator, add_noise, judge, train_annotators
from pairlearn_bench.statements import LIKELIHOODS, make_statements, positive_share, statements_of

Result = tuple[Run, dict[str, float]]
AnnotatorKey = tuple[int, float | None]  # seed, and class prior if not the natural one
Posteriors = dict[AnnotatorKey, NDArray[np.floating[Any]]]
#: Residual networks that train together on a GPU: a ResNet-34 alone is bound by arithmetic.
RESNETS = {"resnet34": 1, "resnet32": 20, "resnet8": 20}
PlannedFleet = list[list[Run]]  # groups of runs on the same pairs


@dataclass
class Benchmark:
    """A loaded data set with the architecture, device and precision that its runs share."""

    dataset: Dataset
    model: str
    device: str
    precision: Precision

    def __post_init__(self) -> None:
        prepare = as_images if self.model in CONVOLUTIONAL else as_features
        self.features: NDArray[np.float32] | Tensor = prepare(self.dataset.x, self.dataset.spec)
        self.positive = self.dataset.spec.is_positive(self.dataset.y)

    def rows(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of the training and of the test split."""
        everything = np.arange(len(self.dataset.y))
        train, test = split_indices(self.dataset, seed)
        return everything[train], everything[test]

    def posteriors(self, runs: Sequence[Run]) -> Posteriors:
        """Train every annotator of the runs; on CUDA those of one prior together."""
        keys = sorted({annotator_of(run) for run in runs}, key=str)
        on_cpu = choose_device(self.device).type == "cpu"
        most = 1 if on_cpu else RESNETS.get(self.model, len(keys))
        posteriors: Posteriors = {}
        # The annotators of a fleet learn from equally many instances, so of one prior.
        for alike in grouped(keys, lambda key: key[1]).values():
            for start in range(0, len(alike), most):
                posteriors |= self.annotate(alike[start : start + most])
        return posteriors

    def annotate(self, batch: Sequence[AnnotatorKey]) -> Posteriors:
        """Train annotators together, and return the posteriors of all instances by each."""
        annotators = []
        for seed, prior in batch:
            train, _ = self.rows(seed)
            annotators.append(Annotator(train, self.positive[train], seed, prior))
        posteriors = train_annotators(
            self.features,
            annotators,
            self.model,
            batch_size=self.dataset.spec.batch_size,
            learning_rate=self.dataset.spec.learning_rate,
            weight_decay=self.dataset.spec.weight_decay,
            device=self.device,
            precision=self.precision,
        )
        return dict(zip(batch, posteriors, strict=True))

    def train(
        self,
        groups: Sequence[Sequence[Run]],
        annotators: Posteriors,
        progress: Callable[[int, float], None] | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> list[Result]:
        """Train one fleet and measure the accuracy of each run."""
        run = groups[0][0]
        if choose_device(self.device).type == "cuda":
            free_memory()
        fleet = Fleet(
            self.features,
            [self._group(members, annotators) for members in groups],
            self.model,
            batch_size=run.batch_size,
            device=self.device,
            precision=self.precision,
        )
        saving = {} if checkpoints is None else checkpoints.of(groups)
        history = fleet.fit(run.epochs, window=run.window, progress=progress, **saving)
        results = []
        for g, group in enumerate(groups):
            test = fleet.groups[g].test
            assert test is not None
            for m, run in enumerate(group):
                accuracy = {name: float(values[:, g, m].mean()) for name, values in history.items()}
                if run.method in RIVALS:  # which class is which is matched afterwards
                    accuracy = {name: max(value, 1 - value) for name, value in accuracy.items()}
                posterior = self._posterior(run, annotators)[test.rows]
                for name, subset in test.subsets.items():
                    threshold = 1 / (1 + np.exp(-test.thresholds.get(name, 0.0)))
                    correct = (posterior[subset] > threshold) == test.positive[subset]
                    accuracy[f"annotator_{name}"] = float(correct.mean())
                results.append((run, accuracy))
        return results

    def _group(self, runs: Sequence[Run], annotators: Posteriors) -> Group:
        """Runs on the same pairs, or on the same statements about the items of the pairs."""
        first, statements = runs[0], statements_of(runs[0].method)
        train, test = self.rows(first.seed)
        classes = self._classes(first, annotators)
        positive, posterior = classes[train], self._posterior(first, annotators)
        ends = sample_pairs(positive, first.n_training_pairs, first.pair_prior, first.seed)
        pairs, test_set = train[ends], self._test_set(test, first, classes)
        members = []
        if statements is None:
            for run in runs:
                risk = risk_of(run.method, run.estimator_prior)
                labels, rows = positive[ends], None
                if risk.judgements == ("similarity", "difference"):
                    judged = add_noise(judge(posterior, pairs), run.label_noise, run.seed)
                    labels = judged.to_array()
                    rows = Judgements.from_pairs(pairs, judged) if run.method == GUIDED else None
                members.append(self._member(run, risk, labels, None, rows))
            return Group(pairs, members, first.seed, test_set)
        rows = make_statements(statements, pairs, posterior, first.seed, first.label_noise)
        for run in runs:
            risk, read = bind_risk(risk_of(run.method, run.estimator_prior), rows)
            alone, prior = risk.kinds or run.method in RIVALS, run.estimator_prior
            share = None if alone or prior is None else positive_share(rows, prior)
            guided = not alone and share is None  # as in `fit`
            members.append(self._member(run, risk, read.values, share, rows if guided else None))
        kinds = read.kinds()
        columns = read.weight_columns(kinds)
        return Group(read.ends, members, first.seed, test_set, kinds=kinds, columns=columns)

    def _member(
        self, run: Run, risk: Risk, labels: Any, held: float | None, guide: Judgements | None
    ) -> Member:
        """The model of a run, with the guiding prior that the judgements `guide` imply."""
        prior = None
        if guide is not None and is_guided(run.epochs):
            prior = guiding_prior(np.asarray(self.features), guide, run.seed)
        return Member(risk, labels, run.learning_rate, run.weight_decay, run.seed, held, prior)

    def _posterior(self, run: Run, annotators: Posteriors) -> NDArray[np.floating[Any]]:
        """The annotator's posteriors of all instances; drawn classes have the pairs' prior."""
        posterior = annotators[annotator_of(run)]
        if run.annotator != "drawn":
            return posterior
        natural = float(posterior[self.rows(run.seed)[0]].mean())
        odds = run.pair_prior / natural * (1 - natural) / (1 - run.pair_prior)
        positive = odds * posterior
        shifted: NDArray[np.floating[Any]] = np.clip(positive / (positive + 1 - posterior), 0, 1)
        return shifted

    def _classes(self, run: Run, annotators: Posteriors) -> Mask:
        """Whether instances are positive: the truth, or drawn from the annotator's posteriors."""
        if run.annotator != "drawn":
            return self.positive
        posterior = annotators[annotator_of(run)]
        return uniform(stream(run.seed, "classes"), len(posterior)) < posterior

    def _test_set(self, rows: NDArray[np.int64], run: Run, drawn: Mask) -> TestSet:
        positive, classes = drawn[rows], self.dataset.y[rows]
        # Only the image sets were truncated in class order; the others were shuffled before.
        in_order = classes if self.dataset.spec.official_split else None
        subsets = {
            "paper": subset_at_prior(positive, run.pair_prior, "paper", classes=in_order),
            "stratified": subset_at_prior(
                positive, run.pair_prior, "stratified", classes=classes, seed=run.seed
            ),
        }
        shifted = {f"{name}_shifted": rows for name, rows in subsets.items()}
        thresholds = dict.fromkeys(shifted, -self._prior_shift(run))
        return TestSet(rows, positive, subsets | shifted, thresholds)

    def _prior_shift(self, run: Run) -> float:
        """Log-odds of the prior of the pairs less those of the annotator's population."""
        if run.annotator != "paper":
            return 0.0
        train, _ = self.rows(run.seed)
        natural = self.positive[train].mean()
        return math.log(run.pair_prior / (1 - run.pair_prior)) - math.log(natural / (1 - natural))


def free_memory() -> None:
    """Release the CUDA memory of finished fleets.

    A fleet and the graph of its step refer to each other, so the fleet stays in memory until the
    garbage is collected, and a device may not have room for two. The workspaces of the graphs'
    matrix products stay as well; no graph in use may need them when this is called.
    """
    gc.collect()
    clear_workspaces = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear_workspaces is not None:
        clear_workspaces()
    torch.cuda.empty_cache()


@dataclass(frozen=True)
class Checkpoints:
    """A folder where fleets save their state, one file each, every so many seconds."""

    folder: Path
    seconds: float = 60.0

    def of(self, groups: Sequence[Sequence[Run]]) -> dict[str, Any]:
        """Arguments of `Fleet.fit` for the fleet of these runs."""
        keys = "".join(run.key() for group in groups for run in group)
        name = hashlib.sha256(keys.encode()).hexdigest()[:24]
        return {"checkpoint": self.folder / name, "checkpoint_seconds": self.seconds}


def group_key(run: Run) -> tuple[Any, ...]:
    """What the runs of a group share: pairs, statements, and the way to read these."""
    name = statements_of(run.method)
    together = name is not None and run.method in (*LIKELIHOODS, *RIVALS)
    noise = run.label_noise if name is not None else None
    return run.prior, run.seed, run.annotator, name, together, noise


def annotator_of(run: Run) -> AnnotatorKey:
    """The annotator whose judgements a run learns from."""
    return run.seed, (run.prior if run.annotator == "calibrated" else None)
