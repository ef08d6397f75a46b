"""``pairlearn split``: pairs to train on and pairs to measure with, without a common item.

Exit codes: 0 written, 2 the request or a file was wrong.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.cli.options import ForceOption, JsonOption, PairsArgument, QuietOption, SeedOption
from pairlearn.cli.refusals import check_new_file, refusing

__all__ = ["split"]


def split(
    pairs: PairsArgument,
    training: Annotated[Path, typer.Argument(help="Pairs to fit to: .csv or .parquet.")],
    held_out: Annotated[Path, typer.Argument(help="Pairs to measure with: .csv or .parquet.")],
    share: Annotated[float, typer.Option(help="Share of the pairs that is held out.")] = 0.25,
    seed: SeedOption = 0,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Split judged pairs by their items.

    A model does better on items that it was trained on. So no item is in both files, and
    pairs with an item on each side are in neither. Where each item is in one pair none is
    lost. Where all items are connected most pairs can be: fit measures on items of its own
    (--holdout), and then fits all pairs.

    Other columns than those of judgements are left out.

    \b
    Examples:
      pairlearn split pairs.csv training.csv held_out.csv
      pairlearn split pairs.parquet training.parquet held_out.parquet --share 0.1 --seed 1

    Exit codes: 0 written, 2 wrong request or unusable file.
    """  # noqa: D301
    with refusing("split"):
        import numpy as np

        from pairlearn.estimators.splits import hold_out_items
        from pairlearn.tables import read_pairs, write_pairs

        if not 0 < share < 1:
            raise ValueError(f"--share must lie in (0, 1); got {share:g}")
        if training.absolute() == held_out.absolute():
            raise ValueError(f"{training} is given twice: the two parts are two files")
        for path in (training, held_out):
            check_new_file(path, "pairs", (".csv", ".parquet"), inputs=[pairs], force=force)
        table = read_pairs(pairs, noisy=True)
        # A row about one item goes where the item is.
        right = np.where(table.single, table.left, table.right)
        ends = np.unique([table.left, right], return_inverse=True)[1].reshape(2, -1).T
        masks = np.zeros((2, len(table)), bool)
        masks[:, ~table.single] = hold_out_items(ends[~table.single], share, seed)
        apart = np.isin(ends[:, 0], ends[masks[1]])
        masks |= table.single & [~apart, apart]
        parts = dict(zip((training, held_out), masks, strict=True))
        told: dict[str, object] = {"pairs": len(table)}
        for name, (path, rows) in zip(("training", "held_out"), parts.items(), strict=True):
            told[name] = {
                "path": str(path),
                "pairs": int(rows.sum()),
                "items": len(np.unique(ends[rows])),
            }
        if not all(rows.any() for rows in parts.values()):
            raise ValueError(
                f"{pairs}: its items recur too often to be split: use all pairs with "
                "`pairlearn fit`, which measures as well as can be, or give another --share"
            )
        for path, rows in parts.items():
            write_pairs(table[rows], path)
        lost = len(table) - sum(int(rows.sum()) for rows in parts.values())
        told["left_out"] = lost
    if as_json:
        typer.echo(json.dumps(told))
    elif not quiet:
        for name in ("training", "held_out"):
            typer.echo("{path}: {pairs:,} pairs of {items:,} items".format(**told[name]))  # type: ignore[arg-type]
        typer.echo(f"{lost:,} of {len(table):,} pairs have items of both and are left out")
