"""``pairlearn split``: pairs to train on and pairs to measure with, without a common item."""

from __future__ import annotations

from pathlib import Path

from pairlearn.cli.command import Told, command
from pairlearn.cli.options import Seed, check_new_file, check_share


@command("split", quiet="Print nothing.")
def split(
    pairs: Path,
    training: Path,
    held_out: Path,
    *,
    share: float = 0.25,
    seed: Seed = 0,
    force: bool = False,
) -> Told:
    """Split judged pairs by their items.

    A model does better on items that it was trained on. So no item is in both files, and
    pairs with an item on each side are in neither. Where each item is in one pair none is
    lost. Where all items are connected most pairs can be: fit measures on items of its own
    (--holdout), and then fits all pairs.

    Other columns than those of judgements are left out.

    Parameters
    ----------
    training
        Pairs to fit to: .csv or .parquet.
    held_out
        Pairs to measure with: .csv or .parquet.
    share
        Share of the pairs that is held out.

    \b
    Examples:
      pairlearn split pairs.csv training.csv held_out.csv
      pairlearn split pairs.csv training.csv held_out.csv --share 0.1 --seed 1

    Exit codes: 0 written, 2 wrong request or unusable file.
    """  # noqa: D301
    import numpy as np

    from pairlearn.estimators.splits import hold_out_statements
    from pairlearn.tables import read_pairs, write_pairs

    check_share("--share", share)
    if training.absolute() == held_out.absolute():
        raise ValueError(f"{training} is given twice: the two parts are two files")
    for path in (training, held_out):
        check_new_file(path, "pairs", (".csv", ".parquet"), inputs=[pairs], force=force)
    table = read_pairs(pairs, noisy=True)
    right = np.where(table.single, table.left, table.right)
    ends = np.unique([table.left, right], return_inverse=True)[1].reshape(2, -1).T
    ends[table.single, 1] = -1
    masks = hold_out_statements(ends, share, seed)
    parts = list(zip((training, held_out), masks, strict=True))
    if not all(rows.any() for _, rows in parts):
        raise ValueError(
            f"{pairs}: its items recur too often to be split: use all pairs with "
            "`pairlearn fit`, which measures as well as can be, or give another --share"
        )
    told = []
    for path, rows in parts:
        write_pairs(table[rows], path)
        items = len(set(ends[rows].flat) - {-1})
        told.append({"path": str(path), "pairs": int(rows.sum()), "items": items})
    lost = len(table) - sum(int(rows.sum()) for _, rows in parts)
    return Told(
        {"pairs": len(table), "training": told[0], "held_out": told[1], "left_out": lost},
        [
            *("{path}: {pairs:,} pairs of {items:,} items".format(**part) for part in told),
            f"{lost:,} of {len(table):,} pairs have items of both and are left out",
        ],
    )
