"""``pairlearn prior``: the share of positives that the similarities imply."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from pairlearn.cli.command import Told, command
from pairlearn.cli.options import Majority
from pairlearn.cli.reading import Reading


@command("prior", Reading, quiet="Print the number alone.")
def prior(
    reading: Reading,
    pairs: Path,
    *,
    majority: Majority | None = None,
    confidence: float = 0.95,
) -> Told:
    """Estimate the share of positive items from similarities.

    Weights count, and the interval allows for items that are in several pairs.

    Parameters
    ----------
    majority
        The larger class; similarities cannot tell.

    \b
    Examples:
      pairlearn prior pairs.csv
      pairlearn prior pairs.csv --majority negative --json

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.prior import estimate_prior
    from pairlearn.tables import read_pairs

    table = reading.table(pairs) if reading.given else read_pairs(pairs)
    table = table[~table.single]
    found = estimate_prior(
        table.similarity,
        majority or "negative",
        confidence=confidence,
        weight=table.weight,
        items=table.ids(),
    )
    other = {"value": 1 - found.value, "low": 1 - found.high, "high": 1 - found.low}
    equal = majority is None and f"{found.value:.3f}" == "0.500"  # the same on both sides of ½
    high = other["high"] if equal else found.high
    span = f"{confidence:.0%} interval {found.low:.3f} to {high:.3f}"
    text = [f"share of positives: {found.value:.3f} ({span})"]
    if majority is None and not equal:
        text.append(
            "               or: {value:.3f} ({low:.3f} to {high:.3f}) if positives are the "
            "majority".format(**other)
        )
    text.append(f"from {found.n:,} similarities with mean {found.mean_similarity:.3f}")
    unclear = ValueError("--quiet prints one number: say --majority positive or negative")
    return Told(
        {"majority": majority, **asdict(found), "if_reversed": other},
        text,
        unclear if majority is None else f"{found.value:.6g}",
    )
