"""``pairlearn plan``: how many judged pairs an accuracy within ±x takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pairlearn.cli.command import Told, command
from pairlearn.cli.options import Seed

if TYPE_CHECKING:
    from pairlearn.check import PairPlan


@command("plan", quiet="Print the number alone.")
def plan(
    *,
    within: float,
    accuracy: float | None = None,
    prior: float | None = None,
    strength: float | None = None,
    errors: Literal["symmetric", "misses", "alarms"] = "symmetric",
    pilot: Path | None = None,
    items: Path | None = None,
    model: Path | None = None,
    confidence: float = 0.95,
    seed: Seed = 0,
) -> Told:
    """How many pairs, held out from training, tell an accuracy within ±WITHIN.

    From assumptions, from a pilot table, or from a pilot table and a model.

    Parameters
    ----------
    within
        Wanted half width of the interval.
    accuracy
        Of the classifier, as a guess (not with --model).
    prior
        Share of positives. [default: that of --pilot]
    strength
        Of the annotator: 3 is right about 93%, 4 about 98%, 5 about 99.4% of balanced
        instances. [default: that of --pilot, or 5]
    errors
        Where the classifier errs.
    pilot
        Pairs judged already: they tell prior and strength.
    items
        Items of the pilot, for --model.
    model
        Folder of a model, to plan by its own interval.
    confidence
        Coverage of the interval.
    seed
        Of the simulated tables.

    \b
    Examples:
      pairlearn plan --within 0.02 --accuracy 0.95 --prior 0.2
      pairlearn plan --within 0.02 --accuracy 0.95 --pilot pairs.csv
      pairlearn plan --within 0.01 --pilot held_out.csv --items items.csv \\
        --model model

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.check import planning
    from pairlearn.tables import read_items, read_pairs

    if model is not None:
        if pilot is None or items is None:
            raise ValueError("--model needs --pilot, the judged pairs, and --items")
        if (accuracy, prior, strength) != (None, None, None):
            raise ValueError("--model tells its accuracy: leave out the assumptions")
        from pairlearn.estimators import PairClassifier
        from pairlearn.estimators.held_pairs import HeldPairs

        classifier = PairClassifier.load(model)
        known = read_items(items, columns=classifier.columns())
        held = HeldPairs.of(classifier, known, read_pairs(pilot), (items, pilot))
        options = held.options(confidence) | {"seed": seed}
        return _told(planning.plan_from_pilot(within, *held.given, **options))
    if items is not None:
        raise ValueError("--items is for --model, which predicts them")
    if accuracy is None:
        raise ValueError("say --accuracy, as a guess, or --model with --pilot and --items")
    if pilot is not None:
        from pairlearn.prior import estimate_prior

        table = read_pairs(pilot)
        if prior is None:
            implied = estimate_prior(table.similarity, "negative", weight=table.weight)
            prior = min(max(implied.value, 0.02), 0.98)
        if strength is None:
            strength = planning.annotator_strength(table[table.judged].labels(), prior)
    if prior is None:
        raise ValueError("say --prior, or --pilot with judged pairs that tell it")
    found = planning.plan(
        within,
        accuracy=accuracy,
        prior=prior,
        strength=5.0 if strength is None else strength,
        errors=errors,
        confidence=confidence,
        seed=seed,
    )
    return _told(found)


def _told(found: PairPlan) -> Told:
    told = found.assumptions
    if told["from"] == "pilot":
        text = [
            f"as the pilot suggests, between {found.low:,} and {found.high:,}",
            f"pilot: {told['pairs']:,} pairs, accuracy {told['accuracy']:.3f} "
            f"({found.confidence:.0%}: {told['low']:.3f} to {told['high']:.3f}); they count in",
        ]
    else:
        text = [
            f"tables differ: nine in ten take between {found.low:,} and {found.high:,}",
            f"assumed: accuracy {told['accuracy']:g}, prior {told['prior']:.3g}, annotator of "
            f"strength {told['strength']:.3g} (right about {told['annotator_accuracy']:.1%}), "
            f"{told['errors']} errors, independent pairs with both judgements",
        ]
    head = f"{found.pairs:,} pairs for an accuracy within ±{found.half_width:g}"
    end = "for measuring only: keep these pairs out of training"
    return Told(found.to_dict(), [head, *text, end], str(found.pairs))
