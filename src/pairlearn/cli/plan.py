"""``pairlearn plan``: how many judged pairs an accuracy within ±x takes.

Exit codes: 0 all is well, 2 the request was wrong.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairlearn.cli.options import JsonOption
from pairlearn.cli.refusals import refusing

if TYPE_CHECKING:
    from pairlearn.planning import PairPlan

__all__ = ["plan"]


class ErrorKind(StrEnum):
    """Where the classifier errs."""

    symmetric = "symmetric"
    misses = "misses"
    alarms = "alarms"


def plan(
    within: Annotated[float, typer.Option(help="Wanted half width of the interval.")],
    accuracy: Annotated[
        float | None, typer.Option(help="Of the classifier, as a guess (not with --model).")
    ] = None,
    prior: Annotated[float | None, typer.Option(help="Share of positives.")] = None,
    strength: Annotated[
        float | None,
        typer.Option(
            help="Of the annotator: 3 is right about 93%, 4 about 98%, 5 about 99.4% of "
            "balanced instances; 5 if not given."
        ),
    ] = None,
    errors: Annotated[ErrorKind, typer.Option(help="Where the classifier errs.")] = (
        ErrorKind.symmetric
    ),
    pilot: Annotated[
        Path | None, typer.Option(help="Pairs judged already: they tell prior and strength.")
    ] = None,
    items: Annotated[Path | None, typer.Option(help="Items of the pilot, for --model.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="Folder of a model, to plan by its own interval.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Coverage of the interval.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the simulated tables.", min=0)] = 0,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the number alone.")] = False,
) -> None:
    """How many pairs, held out from training, tell an accuracy within ±WITHIN.

    From assumptions, from a pilot table, or from a pilot table and a model.

    \b
    Examples:
      pairlearn plan --within 0.02 --accuracy 0.95 --prior 0.2
      pairlearn plan --within 0.02 --accuracy 0.95 --pilot pairs.csv
      pairlearn plan --within 0.01 --pilot held_out.csv --items items.csv --model model

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    with refusing("plan"):
        if model is not None:
            if pilot is None or items is None:
                raise ValueError("--model needs --pilot, the judged pairs, and --items")
            if accuracy is not None or prior is not None or strength is not None:
                raise ValueError("--model tells its accuracy: leave out the assumptions")
            found = _by_model(within, pilot, items, model, confidence, seed)
        else:
            if items is not None:
                raise ValueError("--items is for --model, which predicts them")
            if accuracy is None:
                raise ValueError("say --accuracy, as a guess, or --model with --pilot and --items")
            found = _by_assumptions(
                within, accuracy, prior, strength, errors, pilot, confidence, seed
            )
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
    elif quiet:
        typer.echo(str(found.pairs))
    else:
        _show(found)


def _by_assumptions(
    within: float,
    accuracy: float,
    prior: float | None,
    strength: float | None,
    errors: ErrorKind,
    pilot: Path | None,
    confidence: float,
    seed: int,
) -> PairPlan:
    from pairlearn.planning import annotator_strength
    from pairlearn.planning import plan as make_plan

    if pilot is not None:
        from pairlearn.prior import estimate_prior
        from pairlearn.tables import read_pairs

        table = read_pairs(pilot)
        if prior is None:
            implied = estimate_prior(table.similarity, "negative", weight=table.weight)
            prior = min(max(implied.value, 0.02), 0.98)
        if strength is None:
            strength = annotator_strength(table[table.judged].labels(), prior)
    if prior is None:
        raise ValueError("say --prior, or --pilot with judged pairs that tell it")
    return make_plan(
        within,
        accuracy=accuracy,
        prior=prior,
        strength=5.0 if strength is None else strength,
        errors=errors.value,
        confidence=confidence,
        seed=seed,
    )


def _by_model(
    within: float, pilot: Path, items: Path, model: Path, confidence: float, seed: int
) -> PairPlan:
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.prediction import log_odds
    from pairlearn.planning import plan_from_pilot
    from pairlearn.tables import read_items, read_pairs

    classifier = PairClassifier.load(model)
    table = read_pairs(pilot)
    table = table[table.judged]
    known = read_items(items)
    rows = table.positions(known)
    logits = log_odds(classifier, known, items)
    return plan_from_pilot(
        within,
        logits[rows[:, 0]],
        logits[rows[:, 1]],
        table.labels(),
        weight=table.weight,
        items=table.ids(),
        confidence=confidence,
        seed=seed,
    )


def _show(found: PairPlan) -> None:
    told = found.assumptions
    typer.echo(f"{found.pairs:,} pairs for an accuracy within ±{found.half_width:g}")
    if told["from"] == "pilot":
        typer.echo(f"as the pilot suggests, between {found.low:,} and {found.high:,}")
        typer.echo(
            f"pilot: {told['pairs']:,} pairs, accuracy {told['accuracy']:.3f} "
            f"({found.confidence:.0%}: {told['low']:.3f} to {told['high']:.3f}); they count in"
        )
    else:
        typer.echo(f"tables differ: nine in ten take between {found.low:,} and {found.high:,}")
        typer.echo(
            f"assumed: accuracy {told['accuracy']:g}, prior {told['prior']:.3g}, annotator of "
            f"strength {told['strength']:.3g} (right about {told['annotator_accuracy']:.1%}), "
            f"{told['errors']} errors, independent pairs with both judgements"
        )
    typer.echo("for measuring only: keep these pairs out of training")
