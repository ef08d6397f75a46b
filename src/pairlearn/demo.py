"""The demo: judged pairs of scikit-learn's digits, several risks, accuracies without labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.check.plane import plot_plane
from pairlearn.columns import Mask
from pairlearn.estimators import PairClassifier, TrainingOptions
from pairlearn.evaluation import AccuracyEstimate, estimate_accuracy
from pairlearn.labels import PairLabels
from pairlearn.prior import PriorEstimate, estimate_prior
from pairlearn.simulation import simulate
from pairlearn.style import BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: An uneven one, so that the classes can be told apart.
PRIOR = 0.3
#: With fewer the interval shows little; with more the demo takes longer than a minute.
TRAINING_PAIRS, HELD_OUT_PAIRS = 400, 125
#: Enough for the accuracies to settle.
EPOCHS = 100
METHODS = ("sconf-abs", "confdiff-abs", "convex-0.5-abs", "sconfconfdiff-abs", "likelihood-abs")


@dataclass(frozen=True)
class Demo:
    """The results of the demo.

    ``accuracies`` has that of each method, measured with labels, and its estimate without them;
    ``agree`` says which training pairs are of one class.
    """

    seed: int
    prior: PriorEstimate
    labels: PairLabels
    agree: Mask
    accuracies: dict[str, tuple[float, AccuracyEstimate]]

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
                {"method": m, "test_accuracy": a, "accuracy_without_labels": estimate.to_dict()}
                for m, (a, estimate) in self.accuracies.items()
            ],
        }


def run_demo(seed: int = 0, progress: Callable[[int, int], None] | None = None) -> Demo:
    """Learn even from odd digits; ``progress`` is called with the models done and their number."""
    data = simulate("digits", pairs=TRAINING_PAIRS + HELD_OUT_PAIRS, prior=PRIOR, seed=seed)
    ends = np.stack([data.pairs.left, data.pairs.right], axis=1)
    labels = data.pairs.labels()
    shown, held_out = slice(TRAINING_PAIRS), slice(TRAINING_PAIRS, None)
    prior = estimate_prior(labels[shown].similarity, majority="negative")
    truth = np.where(data.positive, 1, -1)
    accuracies = {}
    for done, method in enumerate(METHODS, start=1):
        model = PairClassifier(
            risk=method,
            prior=prior.value,
            annotators="ideal",
            model="mlp-bn",
            epochs=EPOCHS,
            training=TrainingOptions(batch_size=32),
            random_state=seed,
        )
        model.fit(data.items.features[ends[shown]], labels[shown])
        logits = model.decision_function(data.items.features[ends[held_out].reshape(-1)])
        correct = (logits > 0) == (truth[ends[held_out].reshape(-1)] > 0)
        left, right = logits.reshape(-1, 2).T
        estimate = estimate_accuracy(left, right, labels[held_out])
        accuracies[method] = float(correct.mean()), estimate
        if progress is not None:
            progress(done, len(METHODS))
    agree = truth[ends[shown, 0]] == truth[ends[shown, 1]]
    return Demo(seed, prior, labels[shown], agree, accuracies)


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

    y = np.arange(len(demo.accuracies))[::-1]
    true, estimates = zip(*demo.accuracies.values(), strict=True)
    value, low, high = np.array([(e.value, e.low, e.high) for e in estimates]).T
    span = np.maximum([value - low, high - value], 0)
    estimated = {"color": GREEN, "label": "estimated without labels, 95%"}
    accuracies.errorbar(value, y, xerr=span, fmt="o", ms=5, capsize=3, **estimated)
    measured = {"color": "black", "label": "on labelled test data"}
    accuracies.plot(true, y, "D", ms=5, **measured)
    accuracies.set_yticks(y, [*demo.accuracies])
    accuracies.set(xlabel="accuracy", title="What was learnt", ylim=(-0.6, len(y) - 0.4))
    accuracies.grid(axis="x", color="0.9")
    figure.legend(*accuracies.get_legend_handles_labels(), loc="outside lower right", ncols=2)
    return figure
