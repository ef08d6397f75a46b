"""Files that commands read: all tables of items and judgements come through here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlearn.cli.options import parse_names

if TYPE_CHECKING:
    from pairlearn.io.cells import ColumnChoice
    from pairlearn.judgements import Judgements
    from pairlearn.judgements.scales import Scale

RANGES = {"out-of-range"}
"""Findings that ``--noisy`` admits."""
MEANING = {*RANGES, "other-scale", "comparisons", "upside-down"}
"""Findings about what the numbers mean, which stop every command."""


def column_choice(columns: str | None, ignore: str | None, kinds: str | None) -> ColumnChoice:
    """The options --columns, --ignore and --kinds as the library takes them."""
    from pairlearn.io.cells import ColumnChoice

    chosen: dict[str, Any] = {}
    for part in parse_names(kinds):
        name, mark, kind = part.rpartition(":")
        if not mark:
            raise ValueError(f"--kinds must be as in zip:category; got {part!r}")
        chosen[name.strip()] = kind.strip()
    return ColumnChoice(parse_names(columns), parse_names(ignore), chosen)


@contextmanager
def in_file(path: Path) -> Iterator[None]:
    """Add the file to errors that begin with a row or the like."""
    try:
        yield
    except ValueError as error:
        if re.match(r"(row|task|triplet|group) \d", str(error)):
            raise ValueError(f"{path}, {error}") from None
        raise


@dataclass
class Reading:
    """How to read judgements: --similarity-scale, --difference-scale and --difference-means.

    Scales that are not given are those that the model ``remembers`` from its fit.
    """

    similarity_scale: str | None = None
    difference_scale: str | None = None
    difference_means: str | None = None
    notes: list[str] = field(default_factory=list, init=False)
    remembers: Mapping[str, Scale] = field(default_factory=dict, init=False)

    def scales(self) -> list[Scale | None]:
        """The scales of similarities and of differences, where they are given."""
        from pairlearn.judgements.scales import Scale

        scales: list[Scale | None] = []
        for name in ("similarity", "difference"):
            text = getattr(self, f"{name}_scale")
            try:
                parsed = text and Scale.parse(text, either=name == "similarity")
                scales.append(parsed or self.remembers.get(name))
            except ValueError as error:
                raise ValueError(f"--{name}-scale: {error}") from None
        return scales

    def table(self, path: Path) -> Judgements:
        """Read judgements on their scale; those out of range are for `check` to find."""
        from pairlearn.io import read_pairs

        similarity, difference = self.scales()
        table = read_pairs(
            path, noisy=True, similarity_scale=similarity, difference_scale=difference
        )
        if self.difference_means == "preference":
            with in_file(path):
                table, ties = table.as_comparisons()
            if ties:
                self.notes.append(f"{ties:,} differences of 0 prefer neither item and are left out")
        return table

    def checked(self, path: Path, *, noisy: bool, prior: float | None = None) -> Judgements:
        """Read judgements, and refuse those whose numbers mean something else."""
        from pairlearn.check import check
        from pairlearn.io import read_pairs

        table, settled = self.table(path), self.settled(noisy=noisy)
        errors = check(table, prior=prior, codes=MEANING - settled).of("error")
        for finding in errors:
            if finding.code not in RANGES:
                raise ValueError(f"{path}: {finding.code}: {finding.message}")
        if errors:
            read_pairs(path)  # which names the line of the first value out of range
        return table

    def settled(self, *, noisy: bool = False) -> set[str]:
        """Codes of findings that the options answer."""
        codes = set(RANGES) if noisy else set()
        codes |= {"comparisons"} if self.difference_means is not None else set()
        return codes | ({"upside-down"} if self.scales()[0] is not None else set())
