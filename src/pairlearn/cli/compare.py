"""``pairlearn compare``: rank risks and corrections on one's own pairs, without labels."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pairlearn.atomic import replacing
from pairlearn.cli.command import Told, baseline, command
from pairlearn.cli.options import Columns, Reading, Training, check_suffix
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.comparison import Comparison


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
