"""``pairlearn fit``: learn a classifier from judged pairs and write it as a model folder."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairlearn.cli.command import (
    INTERRUPTED,
    NO_RANGE,
    CommandError,
    Output,
    as_options,
    baseline,
    command,
    counted,
)
from pairlearn.cli.options import (
    Columns,
    OptionalCount,
    Reading,
    Training,
    check_new_model,
)
from pairlearn.cli.pairs import by_kind, where
from pairlearn.progress import hidden_bars

if TYPE_CHECKING:
    from pairlearn.check import CheckReport, Finding
    from pairlearn.estimators import PairClassifier

SHOWN = 3
FEW = 10
"""Pairs under which an accuracy says little."""
MANNER = ("answers", "guesses", "lean_same", "lean_right", "spread")
"""What is told of each annotator."""
RANGES = {"similarity-range", "difference-range"}
"""Findings that ``--noisy`` admits."""
TOLD_BY_LABELS = {
    "majority-unclear", "needs-majority", "needs-prior", "one-class", "one-value",
    "ranking-only",
}  # fmt: skip
"""Findings that some known classes, or shares of groups, settle."""
SAID_BY_FIT = {
    "PriorMismatchWarning": {"prior-disagrees", "majority-unclear"},
    "FewPairsWarning": {"few-pairs"},
}
"""Findings of which the training itself warns, with the remedy."""


@dataclass(frozen=True)
class Learning(Training):
    """How to learn: parameters of `PairClassifier`.

    Parameters
    ----------
    annotators
        Whether to learn how each of them answers; auto: where the pairs suggest it.
    model
        mlp-bn and mlp have three hidden layers; auto is mlp-bn, or linear where few pairs
        need no more and for texts, and for images resnet8, a small convolutional network.
    risk
        likelihood, sconfconfdiff, confdiff, sconf, convex-0.5, …
    correction
        abs, relu, none, or a slope.
    unjudged
        auto or ignore: whether to learn from items that no row is about.
    target_prior
        Share of positive items where it will be used. [default: as in the pairs]
    annotator_prior
        Share that the annotators had in mind. [default: as in the pairs]
    labelled_weight
        Share of --labelled in the objective; 0 to 1. [default: an item counts as a pair]
    batch_size
        Pairs in a step. [default: by their number]
    weight_decay
        Weight decay of Adam. [default: 0.00001]
    early_stopping
        Stop when the loss on held-out pairs no longer falls.
    """

    model: Literal["auto", "mlp-bn", "mlp", "linear"] = "auto"
    annotators: Literal["auto", "learn", "ideal"] = "auto"
    unjudged: str = "auto"
    risk: str = "likelihood"
    correction: str = "abs"
    target_prior: float | None = None
    annotator_prior: float | None = None
    labelled_weight: float | None = None
    batch_size: OptionalCount = None
    weight_decay: float | None = None
    early_stopping: bool = False

    def classifier(self) -> PairClassifier:
        """The classifier to fit, its parameters checked."""
        from pairlearn.estimators import PairClassifier
        from pairlearn.estimators.parameters import check_parameters
        from pairlearn.training.ranks import local_device

        given = self.given() | {"device": local_device(self.device)}
        with suppress(ValueError):
            given["correction"] = float(self.correction)
        made = PairClassifier(random_state=given.pop("seed"), **given)
        check_parameters(made)
        return made


@command(
    "fit", Learning, Reading, Columns, quiet="Print nothing.", exits="0 done, 1 training diverged"
)
def fit(
    how: Learning,
    reading: Reading,
    columns: Columns,
    items: Path,
    pairs: Path,
    *,
    out: Path,
    ids: Path | None = None,
    labelled: Path | None = None,
    positive: str | None = None,
    groups: Path | None = None,
    holdout: float = 0.2,
    noisy: bool = False,
    checkpoint_seconds: Annotated[float, typer.Option(min=0)] = 60.0,
    stream: bool = False,
    force: bool = False,
) -> Output | None:
    """Learn a classifier from judged pairs.

    ITEMS has an id and the features of each item, PAIRS the judgements: left, right,
    similarity, difference, and perhaps preference, weight and annotator. Features may be
    numbers, categories, yes and no, dates and free text, with gaps; ITEMS may be a folder of
    texts or images.

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

    Parameters
    ----------
    out
        Folder to write the model to.
    groups
        File with the columns group, share of positives and perhaps uncertainty; ITEMS then has
        a column group.
    holdout
        Share of the pairs to measure the accuracy with; 0: none.

    For example:
      pairlearn fit items.csv pairs.csv --out model
      pairlearn fit items.parquet pairs.parquet --out model --model linear
      pairlearn fit items.csv pairs.csv --out model --target-prior 0.1
      pairlearn fit items.csv pairs.csv --out model --labelled known.csv \\
        --positive spam
      pairlearn fit items.csv pairs.csv --out model --ignore name \\
        --kinds zip:category
      pairlearn fit items.npy pairs.parquet --out model --stream
    """  # noqa: D301
    begun = time.perf_counter()
    from pairlearn.columns import check_share

    check_share("--holdout", holdout, zero=True)
    if positive is not None and labelled is None:
        raise ValueError("--positive is a class of --labelled, which is not given")
    for option, given in (("--labelled", labelled), ("--groups", groups)):
        if stream and given is not None:
            raise ValueError(f"{option} is for pairs in memory: leave out --stream, or it")
    from pairlearn.check import check
    from pairlearn.estimators import measuring
    from pairlearn.estimators.pair_files import PairFile
    from pairlearn.estimators.parameters import model_of
    from pairlearn.estimators.streams import survey_for
    from pairlearn.estimators.table import Table
    from pairlearn.kinds import KINDS, rows_by_kind
    from pairlearn.tables import read_items
    from pairlearn.tables.read import read_groups, read_labelled
    from pairlearn.training.loop import DivergedError
    from pairlearn.training.ranks import joined_ranks

    classifier = how.classifier()
    kept = measuring.FitCheckpoints(out, checkpoint_seconds)
    with joined_ranks(how.device) as ranks, hidden_bars(not ranks.first):
        with ranks.first_goes_first():
            if ranks.first:
                check_new_model(out, force=force)
            if stream:
                scales, known = reading.stream_scales(), None
                known_items: Any = read_items(items, ids, columns=columns.choice(), mapped=True)
                file = PairFile(pairs, known_items, noisy=noisy, scales=scales)
                source: Any = survey_for(classifier, file, out.absolute().parent, shown=True)
                if selves := source.counts["self_pairs"]:
                    raise ValueError(
                        f"{pairs} cannot be used as it is: {selves:,} rows pair an item with "
                        "itself; drop them"
                    )
                table, rows, judged = source.sample(), file.rows, int(source.named.sum())
                statements = Counter({name: source.counts[name] for name in source.kinds})
                reading.notes.extend(file.notes)
            else:
                choice, told = columns.choice(), None
                if groups is not None:
                    told = read_groups(groups, items)
                    choice = replace(choice, ignore=(*choice.ignore, "group"))
                known_items = known = read_items(items, ids, columns=choice)
                table = reading.table(pairs)
                rows = len(table)
            found = check(
                table, items=known, prior=how.prior, majority=how.majority, precision=False
            )
            report, settled = reading.settled(found), RANGES if noisy else set()
            settled = settled | TOLD_BY_LABELS if labelled or groups else settled
            sample = f" (in a sample of {len(table):,} rows)" * (len(table) < rows)
            place = None if known is not None else sample  # whose rows are not the file's
            warned = [*known_items.notes, *reading.notes]
            doubts = _usable(report, settled, (items, pairs), place)
            if known is not None:
                classes = None if labelled is None else read_labelled(labelled, known, positive)
                source = Table.of_items(known, table.judgements(known), classes, told)
                judged, statements = len(table.numbered()[0]), Counter(report.statements)
                statements["label"] += 0 if classes is None else len(classes.rows)
                if told is not None:  # a group is one statement about its items
                    statements += Counter({name: len({*told.v}) for name in told.kinds()})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                measured = measuring.fit_and_measure(
                    classifier, source, kept, holdout=holdout, seed=how.seed, prior=how.prior
                )
            except DivergedError as error:
                raise CommandError(as_options(str(error))) from None
            except KeyboardInterrupt:
                raise CommandError(_interrupted(kept.folder), INTERRUPTED) from None
    if not ranks.first:
        return None
    for one in caught:
        for code in SAID_BY_FIT.get(one.category.__name__, ()):
            doubts.pop(code, None)
    if doubts:
        *_, last = doubts
        doubts[last] += f"; `pairlearn check {pairs} --items {items}` says what to do"
    warned += [*doubts.values(), *(as_options(str(one.message)) for one in caught)]
    encoder = known_items.encoder
    accuracy = measured.to_dict() if isinstance(measured, measuring.Measured) else None
    if accuracy is not None and accuracy["pairs"] < FEW:
        warned.append(
            f"the accuracy is measured on {counted(accuracy['pairs'], 'pair')}: so few say "
            "little, whatever the range; judge some dozens more"
        )
    data = {
        "model": str(out),
        "judgements": rows,
        "features": len(known_items.names),
        "items": judged,
        **rows_by_kind(statements, rows - (0 if stream else int(table.single.sum()))),
        "labelled": sum(statements[one.name] for one in KINDS if one.single and one.states),
        "statements": {name: count for name, count in statements.items() if count},
        "columns": None if encoder is None else {one.name: one.kind for one in encoder.columns},
        "trained": model_of(classifier),
        "classes": classifier.classes_.tolist(),
        "prior": classifier.prior_,
        "shift": classifier.shift_,
        "epochs": classifier.n_iter_,
        "loss": classifier.history_[classifier.n_iter_ - 1]["risk"],
        "seconds": sum(row["seconds"] for row in classifier.history_),
        "seconds_in_all": time.perf_counter() - begun,
        "unjudged": classifier.unjudged_,
        "accuracy": accuracy,
        "annotators": [
            {"annotator": one.name, "in_words": one.words()}
            | {name: getattr(one, name) for name in MANNER}
            for one in classifier.annotators_
        ],
        "not_measured": as_options(measured) if isinstance(measured, str) else None,
        "warnings": warned,
    }
    classifier.trained_on_ = {
        "items": items.name,
        "items_sha256": measuring.digest(items),
        "pairs": pairs.name,
        "pairs_sha256": measuring.digest(pairs),
        "accuracy": accuracy,
    }
    classifier.save(out, overwrite=force)
    kept.remove()
    text = _text(data, how)
    text[1:1] = [] if encoder is None else [f"  columns: {encoder}"]
    return Output(data, text, warnings=warned)


def _usable(
    report: CheckReport, settled: set[str], names: tuple[Path, Path], place: str | None
) -> dict[str, str]:
    """What was found in the judgements: an error if they cannot be used, else warnings in short.

    With `place` in place of the rows, if it is given.
    """

    def at(found: Finding) -> str:
        return where(found) if place is None else place

    errors = [found for found in report.of("error") if found.code not in settled]
    if errors:
        lines = [f"  {one.code}: {one.message}{at(one)}" for one in errors[:SHOWN]]
        lines += [f"  … and {len(errors) - SHOWN} more"] if len(errors) > SHOWN else []
        more = f"`pairlearn check {names[1]} --items {names[0]}` says more"
        raise ValueError("\n".join([f"{names[1]} cannot be used as it is:", *lines, more]))
    return {
        found.code: f"{found.code}: {found.message.split('. ')[0].rstrip('.')}{at(found)}"
        for found in report.of("warning")
        if found.code not in settled
    }


def _interrupted(folder: Path) -> str:
    if not folder.is_dir():
        return "interrupted before the first checkpoint: the same command starts from the beginning"
    return f"interrupted: the training so far is in {folder}; the same command goes on from there"


def _text(told: dict[str, Any], how: Learning) -> list[str]:
    listed = by_kind(told, told["statements"])
    shifted = "" if how.target_prior is None else f", shifted to {how.target_prior:g}"
    chosen = " (chosen by --model auto)" * (how.model == "auto")
    text = [
        f"learnt from {counted(told['judgements'], 'judgement')} of {told['items']:,} items with "
        f"{counted(told['features'], 'feature')}: {listed}",
        "  {trained}{chosen}, {epochs} epochs in {seconds:.1f} s; {seconds_in_all:.1f} s with "
        "reading, choosing and measuring".format(**told, chosen=chosen),
        "  loss {loss:.4f}, share of positives among the judged items {prior:.3f}".format(**told)
        + shifted,
    ]
    if told["unjudged"]:
        text.append("  and from {unjudged:,} items that nobody judged".format(**told))
    if told["accuracy"] is not None:
        found = told["accuracy"]
        dropped = "; {dropped:,} that have items of both left out" * bool(found["dropped"])
        capped = "; of a stream no more than that is held out" * found["capped"]
        range_ = found["plausible"]
        answers = "{held_out:,} answers about " * (found["pairs"] < found["held_out"])
        if range_ is not None:
            text.append("  accuracy {in_words};".format(**range_))
        line = (
            ("  accuracy " if range_ is None else "  ")
            + "{value:.3f} (95%: {low:.3f} to {high:.3f}) as the annotators see it,\n"
            f"  on {answers}{{pairs:,}} pairs of items held out from a model of {{training:,}} "
            f"others{dropped}{capped}; {baseline(told['prior'])}"
        )
        text.append(line.format(**found))
        text.append("  {remedy} (--labelled)".format(**range_) if range_ else f"  {NO_RANGE}")
    elif told["not_measured"]:
        text.append(f"  accuracy not measured: {told['not_measured']}")
    by_manner: dict[str, list[str]] = {}
    for one in told["annotators"]:
        by_manner.setdefault(one["in_words"], []).append(one["annotator"] or "the annotator")
    for words, names in by_manner.items():
        who = ", ".join(names) if len(names) <= SHOWN else f"{len(names)} annotators"
        text.append(f"  {who}: {words}")
    return [*text, f"model: {told['model']}"]
