"""``check``, ``split`` and ``plan``: judged pairs before anything is learnt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pairlearn.cli import options as opt
from pairlearn.cli.command import Command, Output, counted, new_app
from pairlearn.cli.options import (
    argument,
    check_new_file,
    check_positive,
    option,
)
from pairlearn.cli.reading import Reading, column_choice, parse_classes

if TYPE_CHECKING:
    from pairlearn.check import CheckReport, Finding
    from pairlearn.check.planning import PairPlan

_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}
app = new_app()


@app.command(cls=Command)
def check(
    pairs: opt.Pairs,
    *,
    items: Annotated[
        Path | None,
        option("Table of items, which should contain every id; their features allow more checks."),
    ] = None,
    classes: opt.Classes = None,
    labelled: opt.Labelled = None,
    positive: opt.Positive = None,
    prior: opt.Prior = None,
    majority: opt.Majority = None,
    columns: opt.Columns = None,
    ignore: opt.Ignore = None,
    kinds: opt.Kinds = None,
    similarity_scale: opt.SimilarityScale = None,
    difference_scale: opt.DifferenceScale = None,
    notes: Annotated[bool, option("Show notes as well.", "--notes")] = False,
    as_json: opt.Json = False,
    quiet: Annotated[bool, option("Print nothing; see the exit code.", "--quiet")] = False,
) -> Output:
    """Check judgements for errors and contradictions, and show what a model can learn from them.

    The summary gives the share of positives that the similarities imply.

    For example:
      pairlearn check pairs.csv --notes
      pairlearn check pairs.csv --items items.csv --prior 0.3
      pairlearn check pairs.csv --items items.csv --labelled known.csv
      pairlearn check pairs.csv --similarity-scale 1,5 --difference-scale=-2,2
      pairlearn check pairs.parquet --json | jq '.findings[] | .code'

    Exit codes: 0 no errors, 1 errors were found, 2 wrong request or unusable file.
    """
    from pairlearn.check import check as check_table
    from pairlearn.io import read_items
    from pairlearn.judgements import Judgements

    check_positive(positive, labelled)
    if labelled is not None and items is None:
        raise ValueError("--labelled gives the classes of items: pass --items as well")
    reading = Reading(similarity_scale, difference_scale)
    known = (
        None if items is None else read_items(items, columns=column_choice(columns, ignore, kinds))
    )
    table, labels, _ = reading.task(pairs, parse_classes(classes), labelled, known, positive)
    if labels is not None:
        table = Judgements.concatenate([table, labels[0]])
    report = check_table(table, items=known, prior=prior, majority=majority)
    report = report.without(reading.settled())
    text = [*_text(report, pairs.name, notes=notes)]
    return Output(report.to_dict(), text, code=0 if report.ok else 1)


def _text(report: CheckReport, name: str, *, notes: bool) -> Iterator[Any]:
    from rich.table import Table
    from rich.text import Text

    summary = report.summary
    by = f" by {counted(summary.annotators, 'annotator')}" if summary.annotators else ""
    judged, pairs = counted(summary.rows, "judgement"), counted(summary.pairs, "pair")
    head = f"{judged} of {pairs} of {summary.items:,} items{by}" if summary.rows else "no pairs"
    yield Text.assemble((name, "bold"), f": {head}")
    yield f"  {by_kind(report.statements)}"
    few = any(finding.code == "few-pairs" for finding in report.findings)
    teaches = "hardly anything, as there are too few" if few else summary.learnable
    yield Text.assemble("  a model can learn: ", (teaches, "bold"))
    yield from (f"  {line}" for line in summary.prior_words())
    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=7, no_wrap=True)
    grid.add_column()
    shown = [finding for finding in report.findings if notes or finding.severity != "note"]
    for finding in shown:
        code, place = (finding.code, "bold"), (where(finding, finding.message), "dim")
        text = Text.assemble(code, f": {finding.message}", place)
        grid.add_row(Text(finding.severity, _COLOURS[finding.severity]), text)
    if shown:
        yield ""
        yield grid
    errors, warnings = len(report.of("error")), len(report.of("warning"))
    verdict, colour = "fine", "green"
    if errors or warnings:
        verdict = "not usable as it is" if errors else "usable, but read the warnings"
        colour = _COLOURS["error" if errors else "warning"]
    hidden = len(report.findings) - len(shown)
    more = f" ({counted(hidden, 'note')}: --notes)" if hidden else ""
    count = f"\n{counted(errors, 'error')}, {counted(warnings, 'warning')}: "
    yield Text.assemble(count, (verdict, colour), more)


def by_kind(statements: Mapping[str, int]) -> str:
    """The number of statements of each kind, in words."""
    from pairlearn.judgements.kinds import kind

    return ", ".join(kind(name).counted(count) for name, count in statements.items())


def where(finding: Finding, text: str) -> str:
    """The first rows and ids of a finding; not the annotators that a text has named already."""
    rows, more = ", ".join(map(str, finding.rows)), finding.count > len(finding.rows)
    places = []
    if rows:
        several = "rows" if finding.count > 1 else "row"
        places.append(f"{finding.count:,} rows: {rows}, …" if more else f"{several} {rows}")
    if finding.ids and (rows or not all(str(name) in text for name in finding.ids)):
        places.append(", ".join(map(str, finding.ids)))
    return f" ({'; '.join(places)})" if places else ""


LOST = (
    "a smaller --share drops fewer; `pairlearn fit` measures on some of the pairs (--holdout) and "
    "then trains on all of them"
)


@app.command(cls=Command)
def split(
    pairs: opt.Pairs,
    training: Annotated[Path, argument("Pairs to fit to: .csv or .parquet.")],
    held_out: Annotated[Path, argument("Pairs to measure with: .csv or .parquet.")],
    *,
    share: Annotated[float, option("Share of the pairs that is held out.")] = 0.25,
    seed: opt.Seed = 0,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> Output:
    """Split judged pairs by their items.

    A model does better on items that it was trained on, so no item is in both files, and
    pairs that straddle the split are dropped. If each item is in one pair, none is dropped.
    If all items are connected, most pairs may be. `pairlearn fit` holds out items itself
    (--holdout), and then fits the final model to all pairs.

    Columns other than those of judgements are dropped.

    For example:
      pairlearn split pairs.csv training.csv held_out.csv
      pairlearn split pairs.csv training.csv held_out.csv --share 0.1 --seed 1

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn.columns import check_share
    from pairlearn.estimators.splits import hold_out_positions, keep_whole
    from pairlearn.io import read_pairs, write_pairs

    check_share("--share", share)
    if training.absolute() == held_out.absolute():
        raise ValueError(f"{training} is given twice: write the two parts to two files")
    for path in (training, held_out):
        check_new_file(path, "pairs", (".csv", ".parquet"), inputs=[pairs], force=force)
    table = read_pairs(pairs, noisy=True)
    ends = table.ends
    masks = hold_out_positions(ends, share, seed)
    keep_whole(masks, table)
    if not all(mask.any() for mask in masks):
        raise ValueError(
            f"{pairs}: its items recur too often to be split: give all pairs to "
            "`pairlearn fit`, which holds out as many pairs as it can, or choose another --share"
        )
    parts = {"training": (training, masks[0]), "held_out": (held_out, masks[1])}
    data: dict[str, Any] = {"pairs": len(table)}
    text = []
    for name, (path, mask) in parts.items():
        write_pairs(table[mask], path)
        items = len(set(ends[mask].flat) - {-1})
        data[name] = {"path": str(path), "pairs": int(mask.sum()), "items": items}
        text.append("{path}: {pairs:,} rows about {items:,} items".format(**data[name]))
    lost = data["left_out"] = len(table) - int(sum(mask.sum() for mask in masks))
    text.append(f"{lost:,} of {len(table):,} rows have items in both parts and were dropped")
    return Output(data, text + [LOST] * bool(lost))


@app.command(cls=Command)
def plan(
    *,
    within: Annotated[float, option("Half width of the interval that you want.")],
    accuracy: Annotated[float, option("Your guess of the classifier's accuracy.")],
    prior: Annotated[float | None, option("Share of positives.", default="that of --pilot")] = None,
    strength: Annotated[
        float | None,
        option(
            "Strength of the annotator: 3 is right on about 93% of balanced items, 4 on 98% and "
            "5 on 99.4%.",
            default="that of --pilot, or 5",
        ),
    ] = None,
    classes: Annotated[
        int | None, option("Number of classes, if more than two.", default="those of --pilot")
    ] = None,
    errors: Annotated[
        Literal["symmetric", "misses", "alarms"], option("Where the classifier errs.")
    ] = "symmetric",
    pilot: Annotated[
        Path | None, option("Pairs already judged, to estimate prior and strength from.")
    ] = None,
    confidence: opt.Confidence = 0.95,
    similarity_scale: opt.SimilarityScale = None,
    difference_scale: opt.DifferenceScale = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    quiet: opt.QuietNumber = False,
) -> Output:
    """Plan how many labels, or held-out pairs, measure an accuracy within ±WITHIN.

    It follows from assumptions, some of which a pilot table can replace.

    For example:
      pairlearn plan --within 0.02 --accuracy 0.95 --prior 0.2
      pairlearn plan --within 0.02 --accuracy 0.95 --pilot pairs.csv
      pairlearn plan --within 0.05 --accuracy 0.8 --classes 5

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn.check import check, planning
    from pairlearn.check.view import TableView

    if not 0 < within < 0.5:
        raise ValueError(f"--within must lie in (0, 0.5); got {within:g}")
    warnings: list[str] = []
    if pilot is not None:
        table = Reading(similarity_scale, difference_scale).checked(pilot, noisy=False)
        classes = classes or len(table.classes or ())
    if (classes or 2) > 2:
        if prior is not None or errors != "symmetric":
            raise ValueError(f"--prior and --errors are for two classes, and there are {classes}")
        given = {} if strength is None else {"strength": strength}
        several: Any = {"classes": classes, "accuracy": accuracy, **given}
        plan = planning.plan_classes(within, **several, confidence=confidence, seed=seed)
        return _planned(plan, f"{classes} equally frequent classes, asked about equally often", [])
    if pilot is not None:
        if prior is None:
            summary = check(table).summary
            if summary.prior is None:
                raise ValueError(f"{pilot}: too few similarities for the prior: pass --prior")
            prior = min(max(summary.prior.value, 0.02), 0.98)
            warnings = [f"the prior may be off: {text}" for text in summary.prior_caveats]
        if strength is None:
            strength = planning.annotator_strength(TableView.of(table).labels, prior)
    if prior is None:
        raise ValueError("pass --prior, or --pilot with judged pairs to estimate it from")
    assumed: Any = {"accuracy": accuracy, "prior": prior, "errors": errors}
    assumed |= {} if strength is None else {"strength": strength}
    plan = planning.plan(within, **assumed, confidence=confidence, seed=seed)
    return _planned(plan, f"prior {prior:.3g}, {errors} errors", warnings)


def _planned(plan: PairPlan, assumed: str, warnings: list[str]) -> Output:
    """A plan in words; `assumed` is what it holds for besides accuracy and strength."""
    known = plan.assumptions
    pairs = (
        f"{plan.pairs:,} pairs measure the accuracy within ±{plan.half_width:g} if the annotators "
        "knew everything that the model uses"
    )
    if plan.pairs_independent is not None:
        pairs += f", {plan.pairs_independent:,} if their mistakes are unrelated to the model's"
    text = [
        pairs,
        f"{plan.labels:,} labelled items, drawn at random, do so whatever the annotators knew",
        f"assumptions: accuracy {known['accuracy']:g}, {assumed}, annotator of "
        f"strength {known['strength']:.3g} (right on {known['annotator_accuracy']:.1%}), "
        "independent pairs with both judgements",
        "These pairs are for measuring only: keep them out of training.",
    ]
    return Output(plan.to_dict(), text, str(plan.pairs), warnings)
