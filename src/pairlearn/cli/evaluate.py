"""``evaluate`` and ``compare``: how good models and methods are, from judged pairs alone."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pairlearn.atomic import replacing
from pairlearn.cli.command import Told, as_options, baseline, command
from pairlearn.cli.options import Columns, Reading, Training, check_share, check_suffix
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.comparison import Comparison
    from pairlearn.estimators.held_pairs import HeldPairs
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


@command("evaluate", Reading, quiet="Print the accuracy alone.")
def evaluate(
    reading: Reading,
    model: Path,
    items: Path,
    pairs: Path,
    *,
    ids: Path | None = None,
    threshold: float = 0.5,
    cost: str | None = None,
    choose_threshold: bool = False,
    sensitivity: bool = False,
    calibration: bool = False,
    labelled: Path | None = None,
    positive: str | None = None,
    prior: float | None = None,
    confidence: float = 0.95,
    at_least: float | None = None,
    noisy: bool = False,
    stream: bool = False,
) -> Told:
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
        Of a false positive and of a false negative, as 1,5.
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

    \b
    Examples:
      pairlearn evaluate model items.csv held_out.csv
      pairlearn evaluate model items.csv held.csv --cost 1,5 --choose-threshold
      pairlearn evaluate model items.csv held.csv --sensitivity \\
        --labelled known.csv
      pairlearn evaluate model items.csv held_out.csv --at-least 0.9 --quiet

    Exit codes: 0 done, 1 the accuracy does not reach --at-least, 2 wrong request or
    unusable file.
    """  # noqa: D301
    check_share("--threshold", threshold)
    if at_least is not None:
        check_share("--at-least", at_least)
    if positive is not None and labelled is None:
        raise ValueError("--positive is a class of --labelled, which is not given")
    costs = _costs(cost)
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.held_pairs import HeldPairs, Sampled, doubts_of, sample_pairs_of
    from pairlearn.estimators.pair_files import open_items
    from pairlearn.tables import read_items
    from pairlearn.tables.read import read_labelled

    classifier = PairClassifier.load(model)
    if stream:
        scales = reading.stream_scales()
        known = open_items(items, ids, columns=classifier.columns())
        sample = sample_pairs_of(known, pairs, noisy=noisy, scales=scales)
    else:
        table = reading.checked(pairs, noisy=noisy, prior=prior)
        known_items = read_items(items, ids, columns=classifier.columns())
        sample = Sampled(known_items, table, len(table))
    both, files = labelled is not None, (items, pairs)
    held = HeldPairs.of(classifier, sample.items, sample.table, files, both=both)
    told = held.evaluate(classifier, threshold, confidence, cost=costs, prior=prior)
    more: dict[str, Any] = dict.fromkeys(LINES)
    band = held.plausible(classifier, threshold, confidence)
    if labelled is not None:
        if positive is None and classifier.classes_.dtype.kind == "U":
            positive = str(classifier.classes_[1])
        mended = held.recalibrated(read_labelled(labelled, held.items, positive))
        if mended is None:
            raise ValueError(
                f"{labelled}: none of its items is in the pairs that are measured with"
            )
        band = held.plausible(classifier, threshold, confidence, mended)
        told_before, held = told.accuracy, replace(held, labels=mended.labels)
        told = held.evaluate(classifier, threshold, confidence, cost=costs, prior=prior)
        more["recalibration"] = {
            "slope": mended.slope,
            "shift": mended.shift,
            "labels": mended.n,
            "accuracy_before": told_before,
        }
    options = held.options(confidence)
    if choose_threshold:
        more["chosen_threshold"] = _choice(held, costs or (1, 1), prior, options)
    if sensitivity:
        more["sensitivity"] = _band(held, options)
    if calibration:
        more["calibration"] = _curve(held, prior, options)
    text = [LINES[name].format(**found) for name, found in more.items() if found is not None]
    text += _bins(**more["calibration"]) if calibration else []
    warnings = [*sample.items.notes, *reading.notes, *doubts_of(classifier, pairs, told, prior)]
    warnings += held.strangers(classifier)
    warnings += map(as_options, told.warnings)
    low = told.accuracy.low
    below = at_least is not None and not low >= at_least
    if below:
        text.append(f"the accuracy may be below {at_least:g}: its interval begins at {low:.3f}")
    data = {"model": model, "pairs": pairs, **told.to_dict(), "threshold": threshold}
    data["plausible"] = None if band is None else band.to_dict()
    drawn = sample.rows - sample.ignored > len(sample.table)
    data |= {
        "ignored": sample.ignored + held.ignored,
        "sampled_from": sample.rows if drawn else None,
        "seen": held.seen,
    }
    whole = f", drawn at random from the {sample.rows:,}" * drawn
    head = (
        f"{model} on {told.n:,} pairs{whole} of {pairs}, as the annotators see it; positive above "
        f"{threshold:g}"
    )
    headline = band and f"accuracy {band.words()};\n  {band.remedy()} (--labelled)"
    return Told(
        data | more | {"warnings": warnings},
        [*filter(None, [held.seen, headline]), head, _measures(told), *text],
        f"{told.accuracy.value:.4f}",
        warnings,
        code=1 if below else 0,
    )


def _choice(
    held: HeldPairs, cost: tuple[float, float], prior: float | None, options: dict[str, Any]
) -> dict[str, Any]:
    from pairlearn.evaluation import choose_threshold

    found = choose_threshold(*held.given, cost=cost, prior=prior, **options)
    chance = (1 + math.tanh(found.threshold / 2)) / 2
    return {"probability": chance, "log_odds": found.threshold, "expected_cost": found.cost}


def _band(held: HeldPairs, options: dict[str, Any]) -> dict[str, Any]:
    from pairlearn.evaluation import sensitivity

    found = sensitivity(*held.given, **options)
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


@dataclass(frozen=True)
class Comparing(Training):
    """How to compare.

    Parameters
    ----------
    model
        The network.
    folds
        Parts that the items are split into.
    repeats
        Splits; more are steadier and slower.
    """

    model: Literal["mlp-bn", "mlp", "linear"] = "mlp-bn"
    folds: int = 5
    repeats: int = 1
    confidence: float = 0.95


@command("compare", Comparing, Reading, Columns, quiet="Print the best method alone.")
def compare(
    how: Comparing,
    reading: Reading,
    columns: Columns,
    items: Path,
    pairs: Path,
    *,
    methods: str | None = None,
    noisy: bool = False,
    out: Path | None = None,
) -> Told:
    """Which method? Rank all of them on your own pairs by cross-validation, without labels.

    Accuracies are as the annotator sees them, on pairs that no model was trained on. The
    intervals of the differences hold all together; methods whose interval contains 0 are ties.

    Parameters
    ----------
    methods
        Names, with commas between; 'sconf' is all corrections. [default: all]
    out
        Write the ranking: .csv.

    \b
    Examples:
      pairlearn compare items.csv pairs.csv
      pairlearn compare items.csv pairs.csv --model linear --out ranking.csv
      pairlearn compare items.csv pairs.csv --methods likelihood,sconf --json

    Exit codes: 0 done, 2 wrong request or unreadable file.
    """  # noqa: D301
    import numpy as np

    from pairlearn.tables import read_items

    check_suffix("--out", out, ".csv")
    from pairlearn.comparison import compare as run

    known = read_items(items, columns=columns.choice())
    table = reading.checked(pairs, noisy=noisy, prior=how.prior)
    with bar("training") as progress:
        found = run(
            known.like(np.arange(len(known)), known.features),  # judgements refer to rows
            None,
            table.judgements(known),
            methods=None if methods is None else [m.strip() for m in methods.split(",")],
            progress=progress,
            **how.given(),
        )
    if out is not None:
        _write(found, out)
    warnings = [*known.notes, *reading.notes, *found.warnings]
    return Told(found.to_dict(), list(_text(found, out)), found.best.name, warnings)


def _write(found: Comparison, path: Path) -> None:
    names = [f"{what}{end}" for what in ("accuracy", "difference") for end in ("", "_low", "_high")]
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["method", *names, "tie"])
        for row in found.rows:
            ends = [end for one in (row.accuracy, row.difference) for end in astuple(one)[:3]]
            rows.writerow([row.name, *ends, str(row.tie).lower()])


def _text(found: Comparison, out: Path | None) -> Iterator[Any]:
    from rich.table import Table

    grid = Table("method", "accuracy", "less than the best by")
    for cells, row in zip(found.table(), found.distinct.values(), strict=True):
        best = row is found.best
        grid.add_row(*cells, style="bold" if best else "" if row.tie else "dim")
    yield grid
    lost = f", {found.dropped:,} lost between folds" if found.dropped else ""
    prior = ""
    if found.prior is not None:
        prior = f"; class prior {found.prior:.3f}, {baseline(found.prior)}"
    yield (
        f"{found.pairs:,} judgements, {found.tested:,} held out in {found.folds} folds × "
        f"{found.repeats}{lost}{prior}.\nAccuracy as the annotator sees it; {found.confidence:.0%} "
        "intervals, those of the differences all together."
    )
    yield found.verdict
    if out is not None:
        yield f"ranking: {out}"
