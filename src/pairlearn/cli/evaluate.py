"""``evaluate`` and ``report``: how good a model is, from judged pairs alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlearn.cli.command import NO_RANGE, Output, as_options, baseline, command, counted
from pairlearn.cli.options import Reading, check_new_file

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.measuring import HeldPairs, PairSample
    from pairlearn.evaluation import Evaluation

TITLES = {"f1": "F1", "prior": "share of positives", "roc auc": "ROC AUC"}
LINES = {
    "recalibration": "judgements corrected with {labels:,} known classes: log-odds times "
    "{slope:.2f}, shifted by {shift:+.2f};\n  as they were, the accuracy was {accuracy_before}",
    "chosen_threshold": "threshold with the least cost: probability {probability:.3f},\n  expected "
    "cost {expected_cost}",
    "sensitivity": "if the true log-odds are {by_slope[0][slope]:g} to {by_slope[4][slope]:g} "
    "times the annotators',\n  the accuracy is {low:.3f} to {high:.3f}, with sampling error "
    "{low_end:.3f} to {high_end:.3f}",
    "calibration": "predicted probability, and the share of positives that judgements imply:",
}
"""What was asked for beside the measures, in a line each."""


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """A model, and judged pairs to measure it with; files by position or by name.

    Parameters
    ----------
    files
        ITEMS and PAIRS, unless they are given by name.
    items
        Table of items, or their folder: ITEMS by name.
    pairs
        Judged pairs that were held out: PAIRS by name.
    """

    model: Annotated[Path, typer.Argument()]
    files: Annotated[list[Path] | None, typer.Argument(metavar="ITEMS PAIRS")] = None
    items: Path | None = None
    pairs: Path | None = None
    ids: Path | None = None
    threshold: float = 0.5
    prior: float | None = None
    confidence: float = 0.95
    noisy: bool = False

    @cached_property
    def tables(self) -> tuple[Path, Path]:
        """The files of items and of pairs."""
        from pairlearn.columns import check_share

        check_share("--threshold", self.threshold)
        rest = [*(self.files or ())]
        found = [named or (rest.pop(0) if rest else None) for named in (self.items, self.pairs)]
        if rest or None in found:
            given = " ".join(map(str, self.files or ())) or "none"
            page = getattr(self, "out", None)
            last = f"; the last file, {page}, is the page to write" * (page is not None)
            raise ValueError(
                "give ITEMS and PAIRS, by position or as --items and --pairs; by position there "
                f"are: {given}{last}"
            )
        return found[0], found[1]  # type: ignore[return-value]

    @cached_property
    def classifier(self) -> PairClassifier:
        """The model."""
        from pairlearn.estimators import PairClassifier

        return PairClassifier.load(self.model)

    def sample(self, reading: Reading, *, stream: bool = False) -> PairSample:
        """Items, and pairs as they are in the file, or some of a stream."""
        from pairlearn.estimators.measuring import PairSample, sample_pair_file
        from pairlearn.tables import read_items

        (items, pairs), columns = self.tables, self.classifier.columns()
        if stream:
            scales = reading.stream_scales()
            known = read_items(items, self.ids, columns=columns, mapped=True)
            return sample_pair_file(known, pairs, noisy=self.noisy, scales=scales)
        table = reading.checked(pairs, noisy=self.noisy, prior=self.prior)
        return PairSample(read_items(items, self.ids, columns=columns), table, len(table))

    def evaluated(self, held: HeldPairs, cost: tuple[float, float] | None = None) -> Evaluation:
        """All measures on held-out pairs."""
        options = {"cost": cost, "prior": self.prior}
        return held.evaluate(self.classifier, self.threshold, self.confidence, **options)

    def doubts(self, held: HeldPairs, told: Evaluation, reading: Reading) -> list[str]:
        """What speaks against an evaluation."""
        from pairlearn.estimators.measuring import evaluation_doubts

        found = evaluation_doubts(self.classifier, self.tables[1], told, self.prior)
        notes = [*held.items.notes, *reading.notes, *found, *held.annotator_doubts(self.classifier)]
        return [*notes, *map(as_options, told.warnings)]


@command(
    "evaluate",
    Measuring,
    Reading,
    quiet="Print the accuracy alone.",
    exits="0 done, 1 the accuracy does not reach --at-least",
)
def evaluate(
    what: Measuring,
    reading: Reading,
    *,
    cost: str | None = None,
    choose_threshold: bool = False,
    sensitivity: bool = False,
    calibration: bool = False,
    labelled: Path | None = None,
    positive: str | None = None,
    at_least: float | None = None,
    stream: bool = False,
) -> Output:
    """Measure a model on judged pairs that it was not fitted to.

    No label is needed. Everything is as the annotators see it: with a calibrated annotator,
    accuracy, rates and the others are those of the true classes. Weights count, and
    intervals allow for items that are in several pairs.

    Pairs with items that the model was trained on are left out, and said to be; without any
    others nothing is measured. pairlearn split makes tables without such items.

    With --stream the pairs stay in their Parquet file. All are checked, and a random sample
    of them, 262,144 at most, is measured with.

    Parameters
    ----------
    cost
        Costs of a false positive and of a false negative, as 1,5.
    choose_threshold
        Find the one with the least cost.
    sensitivity
        Show what a miscalibrated annotator would do.
    calibration
        Compare probabilities with judgements.
    labelled
        Items of known class, id and class: corrects the judgements' confidence.
    at_least
        Exit with 1 unless the accuracy's interval lies above this.

    For example:
      pairlearn evaluate model items.csv held_out.csv
      pairlearn evaluate model items.csv held.csv --cost 1,5 --choose-threshold
      pairlearn evaluate model items.csv held.csv --sensitivity \\
        --labelled known.csv
      pairlearn evaluate model items.csv held_out.csv --at-least 0.9 --quiet
    """  # noqa: D301
    from pairlearn.columns import check_share

    check_share("--at-least", at_least)
    if positive is not None and labelled is None:
        raise ValueError("--positive is a class of --labelled, which is not given")
    costs, (items, pairs) = _costs(cost), what.tables
    from pairlearn.estimators.measuring import HeldPairs
    from pairlearn.tables.read import read_labelled

    classifier, sample = what.classifier, what.sample(reading, stream=stream)
    both, files = labelled is not None, (items, pairs)
    held = HeldPairs.score(classifier, sample.items, sample.table, files, both=both)
    told = what.evaluated(held, costs)
    more: dict[str, Any] = dict.fromkeys(LINES)
    band = held.plausible(classifier, what.threshold, what.confidence)
    if labelled is not None:
        if positive is None and classifier.classes_.dtype.kind == "U":
            positive = str(classifier.classes_[1])
        mended = held.recalibrate(read_labelled(labelled, held.items, positive))
        if mended is None:
            raise ValueError(
                f"{labelled}: none of its items is in the pairs that are measured with"
            )
        band = held.plausible(classifier, what.threshold, what.confidence, mended)
        told_before, held = told.accuracy, replace(held, labels=mended.labels)
        told = what.evaluated(held, costs)
        more["recalibration"] = {
            "slope": mended.slope,
            "shift": mended.shift,
            "labels": mended.n,
            "accuracy_before": told_before,
        }
    options = held.options(what.confidence)
    if choose_threshold:
        more["chosen_threshold"] = _choice(held, costs or (1, 1), what.prior, options)
    if sensitivity:
        more["sensitivity"] = _band(held, options)
    if calibration:
        more["calibration"] = _curve(held, what.prior, options)
    text = [LINES[name].format(**found) for name, found in more.items() if found is not None]
    text += _bins(**more["calibration"]) if calibration else []
    warnings = what.doubts(held, told, reading)
    low = told.accuracy.low
    below = at_least is not None and not low >= at_least
    if below:
        text.append(f"the accuracy may be below {at_least:g}: its interval begins at {low:.3f}")
    data = {"model": what.model, "pairs": pairs, **told.to_dict(), "threshold": what.threshold}
    data["plausible"] = None if band is None else band.to_dict()
    drawn = sample.rows - sample.ignored > len(sample.table)
    data |= {
        "ignored": sample.ignored + held.ignored,
        "sampled_from": sample.rows if drawn else None,
        "seen": held.seen,
    }
    whole = f", drawn at random from the {sample.rows:,}" * drawn
    head = (
        f"{what.model} on {told.n:,} pairs{whole} of {pairs}, as the annotators see it; positive "
        f"above {what.threshold:g}"
    )
    headline = band and f"accuracy {band.words()};\n  {band.remedy()} (--labelled)"
    return Output(
        data | more | {"warnings": warnings},
        [*filter(None, [held.seen, headline]), head, _measures(told), *text]
        + [NO_RANGE] * (band is None),
        f"{told.accuracy.value:.4f}",
        warnings,
        code=1 if below else 0,
    )


def _choice(
    held: HeldPairs, cost: tuple[float, float], prior: float | None, options: dict[str, Any]
) -> dict[str, Any]:
    from pairlearn.evaluation import choose_threshold

    found = choose_threshold(*held.arguments, cost=cost, prior=prior, **options)
    chance = (1 + math.tanh(found.threshold / 2)) / 2
    return {"probability": chance, "log_odds": found.threshold, "expected_cost": found.cost}


def _band(held: HeldPairs, options: dict[str, Any]) -> dict[str, Any]:
    from pairlearn.evaluation import sensitivity

    found = sensitivity(*held.arguments, **options)
    slopes = [
        {"slope": k, "value": e.value, "low": e.low, "high": e.high} for k, _, e in found.estimates
    ]
    ends = {name: getattr(found, name) for name in ("low", "high", "low_end", "high_end", "n")}
    return ends | {"by_slope": slopes}


def _curve(held: HeldPairs, prior: float | None, options: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    from pairlearn.evaluation import calibration_curve

    p, p_prime = (1 + np.tanh(held.z.T / 2)) / 2
    found = calibration_curve(p, p_prime, held.labels, prior=prior, **options)
    return {name: getattr(found, name) for name in ("predicted", "implied", "shares")}


def _bins(predicted: Any, implied: Any, shares: Any) -> list[str]:
    return [
        f"  {one:.3f}  {rate.value:.3f} ({rate.low:.3f} to {rate.high:.3f})  {share:.0%} of the "
        "items"
        for one, rate, share in zip(predicted, implied, shares, strict=True)
    ]


def _costs(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        false_positive, false_negative = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"--cost must be two numbers, of a false positive and of a false negative, as in "
            f"1,5; got {text!r}"
        ) from None
    return false_positive, false_negative


def _measures(told: Evaluation) -> Any:
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, padding=(0, 2))
    for name in ("measure", "estimate", f"{told.confidence:.0%} interval"):
        grid.add_column(name, justify="left" if name == "measure" else "right")
    for name, found in told.rows().items():
        value = "–" if math.isnan(found.value) else f"{found.value:.3f}"
        grid.add_row(TITLES.get(name, name), value, f"{found.low:.3f} to {found.high:.3f}")
        if name == "accuracy":
            larger = max(told.prior.value, 1 - told.prior.value)
            grid.add_row("  always the larger class", f"{larger:.3f}")
    return grid


@dataclass(frozen=True, kw_only=True)
class Page(Measuring):
    """The same, and the page to write.

    Parameters
    ----------
    out
        The page to write: .html.
    """

    out: Annotated[Path, typer.Argument()]


@command("report", Page, Reading)
def report(what: Page, reading: Reading, *, force: bool = False) -> Output:
    """Write a page about a model for readers who do not know the method.

    Its accuracy without labels and what that means, rates, calibration, the judgements, the
    annotators, the training, warnings, a glossary. The page needs no network and nothing
    beside itself. Measure on pairs that the model was not fitted to.

    For example:
      pairlearn report model items.csv held_out.csv report.html
      pairlearn report model --items items.csv --pairs held_out.csv report.html \\
        --force
    """  # noqa: D301
    items, pairs = files = what.tables
    check_new_file(what.out, "reports", (".html",), inputs=[*files, what.ids], force=force)
    from pairlearn.estimators.measuring import HeldPairs
    from pairlearn.report import build_report, measure, write_page

    classifier, sample = what.classifier, what.sample(reading)
    held = HeldPairs.score(classifier, sample.items, sample.table, files)
    told = what.evaluated(held)
    seen = [] if held.seen is None else [held.seen]
    measured = measure(
        classifier,
        held.items,
        held.table,
        told,
        names=(what.model.resolve().name, pairs.name),
        source=items,
        threshold=what.threshold,
        prior=what.prior,
        band=held.plausible(classifier, what.threshold, what.confidence),
        warnings=(*seen, *what.doubts(held, told, reading)),
    )
    inputs = [*sorted(what.model.iterdir()), items, pairs]
    size = write_page(what.out, build_report(measured), inputs)
    data = measured.to_dict()
    line = (
        f"{what.out}: accuracy {told.accuracy} as the annotators see it, "
        f"{baseline(told.prior.value)}; {counted(len(data['warnings']), 'warning')}, "
        f"{size / 1e3:.0f} kB"
    )
    return Output({"path": what.out, "bytes": size, **data}, [line, *seen])
