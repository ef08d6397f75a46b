"""``pairlearn report``: a model as a page that anyone can read."""

from __future__ import annotations

from pathlib import Path

from pairlearn.cli.command import Told, as_options, baseline, command, counted
from pairlearn.cli.options import check_new_file, check_share
from pairlearn.cli.reading import Reading


@command("report", Reading)
def report(
    reading: Reading,
    model: Path,
    out: Path,
    *,
    items: Path,
    pairs: Path,
    ids: Path | None = None,
    threshold: float = 0.5,
    prior: float | None = None,
    confidence: float = 0.95,
    noisy: bool = False,
    force: bool = False,
) -> Told:
    """Write a page about a model for readers who do not know the method.

    Its accuracy without labels and what that means, rates, calibration, the judgements, the
    annotators, the training, warnings, a glossary. The page needs no network and nothing
    beside itself. Measure on pairs that the model was not fitted to.

    Parameters
    ----------
    out
        The page to write: .html.
    pairs
        Judged pairs that were held out: .csv or .parquet.

    \b
    Examples:
      pairlearn report model --items items.csv --pairs held_out.csv report.html
      pairlearn report model --items items.csv --pairs held_out.csv report.html \\
        --force

    Exit codes: 0 written, 2 wrong request or unusable file.
    """  # noqa: D301
    check_share("--threshold", threshold)
    check_new_file(out, "reports", (".html",), inputs=[items, pairs, ids], force=force)
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.held_pairs import HeldPairs, doubts_of
    from pairlearn.report import build_report, measure, write_page
    from pairlearn.tables import read_items

    classifier = PairClassifier.load(model)
    known = read_items(items, ids, columns=classifier.columns())
    table = reading.checked(pairs, noisy=noisy, prior=prior)
    held = HeldPairs.of(classifier, known, table, (items, pairs))
    told = held.evaluate(classifier, threshold, confidence, prior=prior)
    seen = [] if held.seen is None else [held.seen]
    doubts = [*known.notes, *reading.notes, *doubts_of(classifier, pairs, told, prior)]
    doubts += held.strangers(classifier)
    measured = measure(
        classifier,
        held.items,
        held.table,
        told,
        names=(model.resolve().name, pairs.name),
        source=items,
        threshold=threshold,
        prior=prior,
        band=held.plausible(classifier, threshold, confidence),
        warnings=(*seen, *doubts, *map(as_options, told.warnings)),
    )
    size = write_page(out, build_report(measured), [*sorted(model.iterdir()), items, pairs])
    data = measured.to_dict()
    line = (
        f"{out}: accuracy {told.accuracy} as the annotators see it, {baseline(told.prior.value)}; "
        f"{counted(len(data['warnings']), 'warning')}, {size / 1e3:.0f} kB"
    )
    return Told({"path": out, "bytes": size, **data}, [line, *seen])
