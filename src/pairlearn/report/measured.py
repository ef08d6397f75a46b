"""The report about a fitted model: a page for readers who do not know the method."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from pairlearn.annotators import Annotator, Annotators
from pairlearn.check import CheckReport, check, plot_plane
from pairlearn.check.view import TableView
from pairlearn.columns import Floats, Indices
from pairlearn.evaluation import (
    CalibrationCurve,
    ClassAccuracy,
    Evaluation,
    calibration_curve,
)
from pairlearn.io import ItemTable
from pairlearn.judgements import Judgements
from pairlearn.labels import PairLabels
from pairlearn.report import figures
from pairlearn.report.html import percent, render

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

    from pairlearn.estimators import PairClassifier

#: Pairs in the table of disagreements.
SHOWN = 12
#: Annotators in the figure; the table has all.
MOST_PEOPLE = 30
#: Judgements in the figure, spread evenly over the table.
MOST_DOTS = 2000


@dataclass(frozen=True)
class Measured:
    """The contents of a report; see `measure`.

    ``model`` and ``pairs`` are names, ``table`` has the rows with a similarity or a difference,
    and ``probabilities`` are those of their distinct items. ``calibration`` is a sentence where the
    judgements do not allow a curve. ``answers`` (n, 2) and ``model_answers`` (n, 2) are the (s, c)
    of annotators and model, and ``furthest`` are the rows in which these are furthest apart.
    ``history`` is that of the training, and ``facts`` describe the model.
    """

    model: str
    pairs: str
    evaluation: Evaluation
    threshold: float
    warnings: tuple[str, ...]
    check: CheckReport
    table: Judgements
    probabilities: Floats
    calibration: CalibrationCurve | str
    annotators: tuple[AnnotatorRow, ...]
    answers: Floats
    model_answers: Floats
    furthest: Indices
    history: list[dict[str, float]]
    facts: dict[str, str]
    classes: tuple[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Counts and the accuracy, for JSON."""
        return {
            "pairs": self.evaluation.n,
            "items": len(self.probabilities),
            "annotators": len(self.annotators),
            "accuracy": self.evaluation.accuracy.to_dict(),
            "warnings": [*self.warnings, *(f.message for f in self.check.of("warning"))],
            "errors": [f.message for f in self.check.of("error")],
            "epochs": len(self.history),
        }


def measure(
    classifier: PairClassifier,
    items: ItemTable,
    table: Judgements,
    evaluation: Evaluation,
    *,
    names: tuple[str, str],
    threshold: float = 0.5,
    prior: float | None = None,
    warnings: Sequence[str] = (),
    log_odds_of: Callable[[Indices], Floats] | None = None,
) -> Measured:
    """Compute the contents of a report.

    Parameters
    ----------
    classifier, items, table, evaluation
        A fitted `PairClassifier`, and its `Evaluation` on the pairs.
    names : (model, pairs)
        Their names on the page.
    threshold, prior : float
        Those of the evaluation; the threshold is a probability.
    warnings : sequence of str
        Further reasons for doubt.
    log_odds_of : callable, optional
        Log-odds of items by position, by default those that the classifier gives them.
    """
    used = table[table.soft]
    ends = used.located(items.ids).ends
    needed, places = np.unique(ends, return_inverse=True)
    z = (log_odds_of or (lambda rows: classifier.decision_function(items[rows])))(needed)
    both = z[places.reshape(ends.shape)]
    options: Any = {"prior": prior, "items": ends, "weight": used.weight}
    options["confidence"] = evaluation.confidence
    try:
        p, q = expit(both).T
        curve: CalibrationCurve | str = calibration_curve(p, q, used.labels(), **options)
    except ValueError as error:  # it takes both kinds of judgement, or a prior
        curve = str(error)
    answers, by_model = used.answers(), model_labels(both)
    distance = np.nansum((answers - by_model) ** 2, axis=1)
    report = check(table, items=items, prior=prior)
    return Measured(
        model=names[0],
        pairs=names[1],
        evaluation=evaluation,
        threshold=threshold,
        warnings=tuple(warnings),
        check=report,
        table=used,
        probabilities=expit(z),
        calibration=curve,
        annotators=compare_annotators(used, both, report.people),
        answers=answers,
        model_answers=by_model,
        furthest=np.argsort(-distance, kind="stable")[:SHOWN],
        history=getattr(classifier, "history_", []),
        facts=_facts(classifier),
        classes=(str(classifier.classes_[0]), str(classifier.classes_[1])),
    )


def _facts(classifier: PairClassifier) -> dict[str, str]:
    model, origin = classifier.model, "estimated" if classifier.prior == "estimate" else "stated"
    several = len(classifier.classes_) > 2
    what = f"the classes {', '.join(map(str, classifier.classes_))}" if several else "positives"
    shares = ", ".join(f"{share:.3f}" for share in np.atleast_1d(classifier.prior_))
    facts = {
        "Risk": str(classifier.risk),
        "Model": model if isinstance(model, str) else type(model).__name__,
        "Features of an item": f"{classifier.n_features_in_:,}",
        f"Share{'s' * several} of {what} in training": f"{shares} ({origin})",
        "Weights of epoch": f"{classifier.n_iter_:,}",
    }
    if hasattr(classifier, "encoder_"):
        facts["Columns"] = str(classifier.encoder_)
    if classifier.target_prior is not None:
        facts["Meant for a share of positives of"] = f"{float(classifier.target_prior):g}"
    if not several and not math.isclose(classifier.shift_, 0.0):
        facts["Shift of the log-odds"] = f"{classifier.shift_:+.3f}"
    return facts | {
        f"Trained on: {name.replace('_', ' ')}": str(value)
        for name, value in (classifier.fitted_.trained_on or {}).items()
        if isinstance(value, str | int) and "sha256" not in name
    }


def build_report(measured: Measured) -> str:
    """Render a report as a self-contained page of HTML.

    Examples
    --------
    >>> from pairlearn.estimators import PairClassifier
    >>> from pairlearn.report import measure
    >>> from pairlearn.simulation import simulate
    >>> data, other = simulate(pairs=120, seed=0), simulate(pairs=120, seed=1)
    >>> pairs, labels = other.items.features[other.pairs.ends], other.pairs.labels()
    >>> model = PairClassifier(model="linear", epochs=5, random_state=0).fit(pairs, labels)
    >>> evaluation = model.evaluate(data.items.features[data.pairs.ends], data.pairs.labels())
    >>> page = build_report(measure(model, data.items, data.pairs, evaluation, names=("m", "p")))
    >>> page.startswith("<!doctype html>"), "as the annotators see it" in page
    (True, True)
    """
    return render(
        "model.html",
        title=f"{measured.model}: how good is it?",
        measured=measured,
        evaluation=measured.evaluation,
        charts=_charts(measured),
        foot=(
            f"from the model {measured.model} and {measured.evaluation.n:,} judged pairs of "
            f"{measured.pairs}"
        ),
    )


def _charts(measured: Measured) -> dict[str, Markup]:
    """The figures that there are data for."""
    p, n = measured.probabilities, len(measured.table)
    alt = f"{n:,} judgements in the plane of difference and similarity"
    charts = {"plane": figures.draw(partial(_plot_judgements, measured), alt, (5.2, 4.4))}
    alt = (
        f"Histogram of the probabilities of {len(p):,} items, of which "
        f"{(p > measured.threshold).sum():,} are called positive"
    )
    plot: Any = partial(figures.plot_histogram, p, measured.threshold)
    charts["histogram"] = figures.draw(plot, alt)
    if not isinstance(curve := measured.calibration, str):
        bins = (
            f"{percent(float(predicted))} predicted, {percent(implied.value)} implied"
            for predicted, implied in zip(curve.predicted, curve.implied, strict=True)
        )
        plot = partial(figures.plot_calibration, curve)
        charts["calibration"] = figures.draw(plot, f"Calibration curve: {'; '.join(bins)}")
    people = [row.person for row in measured.annotators if row.person is not None]
    if people:
        alt = "; ".join(f"{row.name} {row.words}" for row in measured.annotators)
        plot = partial(figures.plot_annotators, people[:MOST_PEOPLE])
        size = (5.2, 1.2 + 0.42 * min(len(people), MOST_PEOPLE))
        charts["annotators"] = figures.draw(plot, alt, size)
    return charts | _learning(measured.history)


def _learning(history: list[dict[str, float]]) -> dict[str, Markup]:
    """The learning curve, if the model keeps one."""
    history = [row for row in history if np.isfinite(row.get("risk", np.nan))]
    if len(history) < 2:
        return {}
    first, last = history[0]["risk"], history[-1]["risk"]
    alt = f"Learning curve: the risk from {first:.3f} to {last:.3f} in {len(history)} rounds"
    return {"learning": figures.draw(partial(figures.plot_learning, history), alt, (5.2, 3.2))}


def build_class_report(
    classifier: PairClassifier,
    items: ItemTable,
    table: Judgements,
    accuracy: ClassAccuracy,
    *,
    names: tuple[str, str],
) -> str:
    """Render a report about a model of more than two classes; ``names`` as in `measure`."""
    return render(
        "classes.html",
        title=f"{names[0]}: how good is it?",
        accuracy=accuracy,
        check=check(table, items=items),
        facts=_facts(classifier),
        charts=_learning(getattr(classifier, "history_", [])),
        foot=f"from the model {names[0]} and {len(table):,} statements of {names[1]}",
    )


def _plot_judgements(measured: Measured, ax: Axes) -> None:
    labels = measured.table.labels()
    plot_plane(labels[figures.evenly(len(labels), MOST_DOTS)], ax)
    s, c = measured.answers[measured.furthest].T
    ax.plot(c, s, "D", ms=5, mfc="none", mec="black", zorder=4)


@dataclass(frozen=True)
class AnnotatorRow:
    """One annotator: number of judgements, and in ``words`` how they answer.

    ``model_gap`` is the mean distance in s and in c to the model's answers, NaN where there are
    none; ``person`` has guesses, leans and spreads, where known.
    """

    name: str
    judgements: int
    words: str
    model_gap: float
    person: Annotator | None = None


def compare_annotators(
    table: Judgements, log_odds: Floats, people: Annotators | None = None
) -> tuple[AnnotatorRow, ...]:
    """Compare the annotators that a table names with a model.

    `log_odds` (n, 2) are the model's, for both ends of each row; `people` saves learning it again.

    Examples
    --------
    >>> labels = [[0.8, 0.1], [0.6, -0.3]]
    >>> table = Judgements.from_pairs([[1, 2], [2, 1]], labels, annotator=["ann", "bob"])
    >>> ann, bob = compare_annotators(table, np.zeros((2, 2)))
    >>> ann.words, round(ann.model_gap, 3)
    ('nothing is known about the answers', 0.2)
    """
    view = TableView.of(table)
    if people is None or not people.people:
        people = Annotators.learn(view.judgements)
    gaps = np.abs(table.answers() - model_labels(log_odds))
    return tuple(
        AnnotatorRow(
            str(name),
            int(mine.sum()),
            people.describe(str(name)),
            float(np.nanmean(gaps[mine])) if np.isfinite(gaps[mine]).any() else np.nan,
            people.find(str(name)),
        )
        for name in view.annotators
        for mine in [view.names == name]
    )


def model_labels(log_odds: Floats) -> Floats:
    """Similarity and difference (n, 2) by a model, from its log-odds of both ends."""
    return np.asarray(PairLabels.from_posteriors(*expit(log_odds).T).to_array())
