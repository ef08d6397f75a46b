"""``pairlearn fit``: learn a classifier from judged pairs and write it as a model folder.

Exit codes: 0 all is well, 1 training diverged, 2 the request or a file was wrong.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from pairlearn.cli.options import (
    ForceOption,
    IdsOption,
    ItemsArgument,
    JsonOption,
    MajorityOption,
    Model,
    NoisyOption,
    PairsArgument,
    PositiveOption,
    PriorOption,
    QuietOption,
    SeedOption,
    StreamOption,
    with_options,
)
from pairlearn.cli.reading import Reading
from pairlearn.cli.refusals import check_new_model, refusing
from pairlearn.progress import training_bar

if TYPE_CHECKING:
    from pairlearn.cli.streaming import StreamInputs
    from pairlearn.cli.training import FitCheckpoints, Inputs, Measured, Unmeasured
    from pairlearn.estimators import PairClassifier

__all__ = ["fit"]

FAILED = 1


@with_options(Reading)
def fit(
    reading: Reading,
    items: ItemsArgument,
    pairs: PairsArgument,
    out: Annotated[Path, typer.Option(help="Folder to write the model to.")],
    ids: IdsOption = None,
    labelled: Annotated[
        Path | None, typer.Option(help="Items of known class, id and class: .csv or .parquet.")
    ] = None,
    positive: PositiveOption = None,
    model: Annotated[
        Model, typer.Option(help="mlp-bn and mlp have three hidden layers.")
    ] = Model.mlp_bn,
    risk: Annotated[
        str, typer.Option(help="likelihood, sconfconfdiff, confdiff, sconf, convex-0.5, …")
    ] = "likelihood",
    correction: Annotated[str, typer.Option(help="abs, relu, none, or a slope.")] = "abs",
    prior: PriorOption = None,
    majority: MajorityOption = None,
    target_prior: Annotated[
        float | None, typer.Option(help="Share of positive items where it will be used.")
    ] = None,
    annotator_prior: Annotated[
        float | None, typer.Option(help="Share that the annotators had in mind.")
    ] = None,
    labelled_weight: Annotated[
        float | None, typer.Option(help="Share of --labelled in the objective; 0 to 1.")
    ] = None,
    holdout: Annotated[
        float, typer.Option(help="Share of the pairs to measure the accuracy with; 0: none.")
    ] = 0.2,
    epochs: Annotated[int | None, typer.Option(help="Passes over the pairs.", min=1)] = None,
    batch_size: Annotated[int | None, typer.Option(help="Pairs in a step.", min=1)] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of Adam.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Of Adam.")] = None,
    early_stopping: Annotated[
        bool, typer.Option("--early-stopping", help="Stop when held-out pairs say so.")
    ] = False,
    noisy: NoisyOption = False,
    seed: SeedOption = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, …")] = "auto",
    checkpoint_seconds: Annotated[
        float, typer.Option(help="How often the state of training is kept.", min=0)
    ] = 60.0,
    stream: StreamOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Learn a classifier from judged pairs.

    ITEMS has an id and the features of each item, PAIRS the judgements: left, right,
    similarity, difference, and perhaps preference, weight and annotator.

    The accuracy that is printed needs no labels. A first model is fitted without the pairs
    of some items and measured on those (--holdout, about a fifth of the pairs). The model
    that is saved is then fitted to all pairs. It is accuracy as the annotators see it.

    A training that was interrupted goes on when the same command is given again: its state
    is in the folder OUT.checkpoint until the model is saved. torchrun … -m pairlearn fit …
    trains one model in several processes.

    With --stream pairs are read from a Parquet file again and again, block by block, so that
    memory holds the items alone; see the guide on streaming.

    Scikit-learn classifiers cannot be saved without pickle and are not offered here: use
    PairClassifier(model=...) in Python.

    \b
    Examples:
      pairlearn fit items.csv pairs.csv --out model
      pairlearn fit items.parquet pairs.parquet --out model --model linear --seed 1
      pairlearn fit items.csv pairs.csv --out model --target-prior 0.1
      pairlearn fit items.csv pairs.csv --out model --labelled known.csv --positive spam
      pairlearn fit items.npy pairs.parquet --out model --stream

    Exit codes: 0 done, 1 training diverged, 2 wrong request or unusable file.
    """  # noqa: D301
    with refusing("fit"):
        from pairlearn.cli.ranks import first_goes_first, joined_ranks, local_device
        from pairlearn.cli.training import DivergedError, FitCheckpoints

        if not 0 <= holdout < 1:
            raise ValueError(f"--holdout must lie in [0, 1); got {holdout:g}")
        if positive is not None and labelled is None:
            raise ValueError("--positive is a class of --labelled, which is not given")
        if stream and labelled is not None:
            raise ValueError("--labelled is for pairs in memory: leave out --stream, or it")
        classifier = _classifier(
            model=model.value,
            risk=risk,
            correction=_slope(correction),
            prior=prior,
            majority=None if majority is None else majority.value,
            target_prior=target_prior,
            annotator_prior=annotator_prior,
            labelled_weight=labelled_weight,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            early_stopping=early_stopping,
            random_state=seed,
            device=local_device(_usable(device)),
        )
        side = cast("Literal['positive', 'negative'] | None", majority and majority.value)
        with joined_ranks(device) as ranks:
            silent = as_json or quiet or not ranks.first
            with first_goes_first(ranks):
                if ranks.first:
                    check_new_model(out, force=force)
                inputs, warned = _inputs(
                    classifier,
                    (items, ids, pairs),
                    reading,
                    stream=stream,
                    known=(labelled, positive),
                    prior=prior,
                    majority=side,
                    noisy=noisy,
                    out=out,
                    shown=not silent,
                )
            kept = FitCheckpoints(out, checkpoint_seconds)
            try:
                measured, more = _train(classifier, inputs, holdout, seed, prior, kept, silent)
            except DivergedError as error:
                typer.echo(f"pairlearn fit: {error}", err=True)
                raise typer.Exit(FAILED) from None
            if not ranks.first:
                return
            report = _report(classifier, inputs, measured, out, [*warned, *more])
            _remember(classifier, inputs, items, pairs, report)
            classifier.save(out)
            kept.remove()
    if as_json:
        typer.echo(json.dumps(report))
    elif not quiet:
        _show(report, target_prior)


def _inputs(
    classifier: PairClassifier,
    files: tuple[Path, Path | None, Path],
    reading: Reading,
    *,
    stream: bool,
    known: tuple[Path | None, str | None],
    prior: float | None,
    majority: Literal["positive", "negative"] | None,
    noisy: bool,
    out: Path,
    shown: bool,
) -> tuple[Inputs | StreamInputs, list[str]]:
    """What there is to learn from, read or left in its files, and warnings about it."""
    if stream:
        from pairlearn.cli.streaming import open_streamed

        return open_streamed(
            classifier,
            files,
            prior=prior,
            majority=majority,
            noisy=noisy,
            scales=reading.stream_scales(),
            out=out,
            shown=shown,
        )
    from pairlearn.cli.labelled import read_labelled
    from pairlearn.cli.training import Inputs, diagnose
    from pairlearn.diagnostics import check
    from pairlearn.tables import read_items

    items, ids, pairs = files
    rows, table = read_items(items, ids), reading.table(pairs)
    warned = diagnose(
        reading.settled(check(table, items=rows, prior=prior, majority=majority, precision=False)),
        noisy=noisy,
        labelled=known[0] is not None,
        names=(str(items), str(pairs)),
    )
    labelled = None if known[0] is None else read_labelled(known[0], rows, known[1])
    said = table.judgements(rows)
    return Inputs(rows, said, len(table), labelled), [*reading.notes, *warned]


def _classifier(**given: Any) -> PairClassifier:
    """With the parameters that were given, checked, and its own defaults for the others."""
    from pairlearn.cli.training import as_options
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.parameters import check_parameters

    classifier = PairClassifier(**{k: value for k, value in given.items() if value is not None})
    try:
        check_parameters(classifier)
    except ValueError as error:
        raise ValueError(as_options(str(error))) from None
    return classifier


def _slope(correction: str) -> str | float:
    try:
        return float(correction)
    except ValueError:
        return correction


def _usable(device: str) -> str:
    import torch

    from pairlearn.training import choose_device

    try:
        kind = choose_device(device).type
    except RuntimeError:
        raise ValueError(f"--device {device} is unknown; say auto, cpu or cuda") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"--device {device}: there is no CUDA here; say auto or cpu")
    return device


def _train(
    classifier: PairClassifier,
    inputs: Inputs | StreamInputs,
    holdout: float,
    seed: int,
    prior: float | None,
    kept: FitCheckpoints,
    silent: bool,
) -> tuple[Measured | Unmeasured | None, list[str]]:
    """Measure if that was asked for, then fit to everything; also what was warned of."""
    from sklearn.base import clone

    from pairlearn.cli.streaming import StreamInputs, fit_streamed, measure_streamed
    from pairlearn.cli.training import fit_pairs, measure

    measured = None
    if holdout:
        with training_bar("1/2 to measure", shown=not silent) as progress:
            first, options = clone(classifier), (holdout, seed, prior, progress, kept.measure)
            if isinstance(inputs, StreamInputs):
                measured = measure_streamed(first, inputs, *options)
            else:
                measured = measure(first, inputs, *options)
    with training_bar("2/2 to save" if holdout else "to save", shown=not silent) as progress:
        if isinstance(inputs, StreamInputs):
            return measured, fit_streamed(classifier, inputs, progress, checkpoint=kept.fit)
        return measured, fit_pairs(classifier, inputs, progress, checkpoint=kept.fit)


def _report(
    classifier: PairClassifier,
    inputs: Inputs | StreamInputs,
    measured: Measured | Unmeasured | None,
    out: Path,
    warned: list[str],
) -> dict[str, Any]:
    """What was learnt, as JSON has it."""
    from pairlearn.cli.streaming import StreamInputs, count_streamed
    from pairlearn.cli.training import Measured, Unmeasured, count_kinds

    accuracy = None
    if isinstance(measured, Measured):
        accuracy = {name: getattr(measured.accuracy, name) for name in ("value", "low", "high")}
        accuracy |= {
            "held_out": measured.held_out,
            "training": measured.training,
            "dropped": measured.dropped,
            "capped": measured.capped,
        }
    return {
        "model": str(out),
        **(count_streamed(inputs) if isinstance(inputs, StreamInputs) else count_kinds(inputs)),
        "classes": classifier.classes_.tolist(),
        "prior": classifier.prior_,
        "shift": classifier.shift_,
        "epochs": classifier.n_iter_,
        "loss": classifier.history_[classifier.n_iter_ - 1]["risk"],
        "seconds": sum(row["seconds"] for row in classifier.history_),
        "accuracy": accuracy,
        "not_measured": measured.reason if isinstance(measured, Unmeasured) else None,
        "warnings": warned,
    }


def _remember(
    classifier: PairClassifier,
    inputs: Inputs | StreamInputs,
    items: Path,
    pairs: Path,
    told: dict[str, Any],
) -> None:
    """Keep in the model what it was fitted to; `evaluate` warns of the same items."""
    from pairlearn.cli.training import Inputs, digest
    from pairlearn.estimators.instances import fingerprints

    if isinstance(inputs, Inputs):  # it was fitted with rows as ids
        known = inputs.items[inputs.used]
        classifier.training_items_ = fingerprints(known.features, known.ids)
    classifier.trained_on_ = {
        "items": items.name,
        "items_sha256": digest(items),
        "pairs": pairs.name,
        "pairs_sha256": digest(pairs),
        "accuracy": told["accuracy"],
    }


def _show(told: dict[str, Any], target_prior: float | None) -> None:
    kinds = {
        "both answers": told["both"],
        "similarity only": told["similarity_only"],
        "difference only": told["difference_only"],
        "preference only": told["preference_only"],
        "known classes": told["labelled"],
    }
    listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
    typer.echo(
        f"learnt from {told['judgements']:,} judgements of {told['items']:,} items with "
        f"{told['features']:,} features: {listed}"
    )
    typer.echo(f"  {told['epochs']} epochs in {told['seconds']:.1f} s")
    typer.echo(
        f"  loss {told['loss']:.4f}, share of positives {told['prior']:.3f}"
        + ("" if target_prior is None else f", shifted to {target_prior:g}")
    )
    found = told["accuracy"]
    if found is not None:
        typer.echo(
            f"  accuracy {found['value']:.3f} (95%: {found['low']:.3f} to {found['high']:.3f}) as "
            f"the annotators see it,\n  on {found['held_out']:,} pairs of items held out from a "
            f"model of {found['training']:,} others"
            + (f"; {found['dropped']:,} that have items of both left out" * bool(found["dropped"]))
            + "; of a stream no more than that is held out" * found["capped"]
        )
    elif told["not_measured"]:
        typer.echo(f"  accuracy not measured: {told['not_measured']}")
    typer.echo(f"model: {told['model']}")
    for text in told["warnings"]:
        typer.echo(f"warning: {text}", err=True)
