"""All steps on one small data set: judge pairs, train, evaluate without labels.

The data are scikit-learn's digits, even against odd. A simulated annotator judges pairs drawn at
prior 0.3, every family of risks trains on the judgements alone, and the accuracy estimated from
judgements of held-out pairs is compared with the accuracy by the labels of the same instances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators import Annotator, judge, train_annotators
from pairlearn.check.plane import plot_plane
from pairlearn.data import as_features, load, split_indices
from pairlearn.data.sampling import sample_pairs
from pairlearn.evaluation import AccuracyEstimate, estimate_accuracy
from pairlearn.labels import PairLabels
from pairlearn.prior import PriorEstimate, estimate_prior
from pairlearn.risks import make_risk
from pairlearn.style import BLUE, GREEN, ORANGE
from pairlearn.training import Fleet, Group, Member, TestSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIOR = 0.3
TRAINING_PAIRS, HELD_OUT_PAIRS = 400, 125
EPOCHS, BATCH_SIZE = 100, 128
METHODS = (
    "sconfconfdiff-none",
    "sconfconfdiff-relu",
    "sconfconfdiff-abs",
    "sconf-abs",
    "confdiff-abs",
    "convex-0.5-abs",
    "nonnegative-abs",
    "likelihood-abs",
    "supervised",
)


@dataclass(frozen=True)
class DemoRow:
    """The accuracy of one method: measured with labels, and estimated without them."""

    method: str
    accuracy: float
    estimate: AccuracyEstimate


@dataclass(frozen=True)
class Demo:
    """The results of the demo."""

    seed: int
    prior: PriorEstimate
    labels: PairLabels
    agree: NDArray[np.bool_]
    rows: tuple[DemoRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "dataset": "digits",
            "seed": self.seed,
            "true_prior": PRIOR,
            "estimated_prior": asdict(self.prior),
            "training_pairs": TRAINING_PAIRS,
            "held_out_pairs": HELD_OUT_PAIRS,
            "results": [
                {
                    "method": row.method,
                    "test_accuracy": row.accuracy,
                    "accuracy_without_labels": row.estimate.to_dict()
                    | {"method": row.estimate.method, "n": row.estimate.n},
                }
                for row in self.rows
            ],
        }


def run_demo(seed: int = 0, progress: Callable[[int, int], None] | None = None) -> Demo:
    """Run the demo; ``progress`` is called with the epochs done and their total."""
    dataset = load("digits")
    features = as_features(dataset.x, dataset.spec)
    positive = dataset.spec.is_positive(dataset.y)
    train, test = (np.arange(len(positive))[part] for part in split_indices(dataset, seed))
    (posterior,) = train_annotators(
        features, [Annotator(train, positive[train], seed, PRIOR)], device="cpu", epochs=30
    )
    shown = train[sample_pairs(positive[train], TRAINING_PAIRS, PRIOR, seed)]
    held_out = test[sample_pairs(positive[test], HELD_OUT_PAIRS, PRIOR, seed)]
    judged, judged_held_out = judge(posterior, shown), judge(posterior, held_out)
    prior = estimate_prior(judged.similarity, majority="negative")

    members = []
    for method in METHODS:
        risk = make_risk(method, prior=prior.value)
        labels = positive[shown] if method == "supervised" else judged.to_array()
        members.append(Member(risk, labels, seed=seed))
    rows = held_out.T.reshape(-1)
    group = Group(shown, members, seed, TestSet(rows, positive[rows]))
    fleet = Fleet(features, [group], batch_size=BATCH_SIZE, device="cpu")
    history = fleet.fit(
        EPOCHS, progress=None if progress is None else lambda epoch, _: progress(epoch, EPOCHS)
    )
    results = []
    for index, logits in enumerate(fleet.logits(rows)[0].cpu().numpy()):
        left, right = logits.reshape(2, -1)
        estimate = estimate_accuracy(left, right, judged_held_out)
        results.append(DemoRow(METHODS[index], float(history["all"][-1, 0, index]), estimate))
    agree = positive[shown[:, 0]] == positive[shown[:, 1]]
    return Demo(seed, prior, judged, agree, tuple(results))


def draw_demo(demo: Demo) -> Figure:
    """Draw the pairs in the (c, s) plane with the feasible region, and the accuracies."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    plane, accuracies = figure.subplots(1, 2)
    plot_plane(None, plane)
    for agree, colour, name in ((True, BLUE, "same class"), (False, ORANGE, "different")):
        chosen = demo.agree == agree
        c, s = demo.labels.difference[chosen], demo.labels.similarity[chosen]
        plane.scatter(c, s, s=14, alpha=0.6, lw=0, color=colour, label=f"pairs, {name}", zorder=3)
    plane.set(xlabel="difference c", ylabel="similarity s", title="What the annotator said")
    plane.legend(loc="lower center", frameon=False)  # below the parabola no label can be

    y = np.arange(len(demo.rows))[::-1]
    estimates = [(r.estimate.value, r.estimate.low, r.estimate.high) for r in demo.rows]
    value, low, high = np.array(estimates).T
    span = np.maximum([value - low, high - value], 0)
    estimated = {"color": GREEN, "label": "estimated without labels, 95%"}
    accuracies.errorbar(value, y, xerr=span, fmt="o", ms=5, capsize=3, **estimated)
    measured = {"color": "black", "label": "on labelled test data"}
    accuracies.plot([row.accuracy for row in demo.rows], y, "D", ms=5, **measured)
    accuracies.set_yticks(y, [row.method for row in demo.rows])
    accuracies.set(xlabel="accuracy", title="What was learnt", ylim=(-0.6, len(y) - 0.4))
    accuracies.grid(axis="x", color="0.9")
    figure.legend(*accuracies.get_legend_handles_labels(), loc="outside lower right", ncols=2)
    return figure
