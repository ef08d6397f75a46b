"""How the commands read judgements: on which scale, and what a difference means."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pairlearn.diagnostics import CheckReport
    from pairlearn.tables import PairTable
    from pairlearn.tables.scales import Scale

__all__ = ["Meaning", "Reading"]


class Meaning(StrEnum):
    """What the numbers in the column ``difference`` say."""

    difference = "difference"
    preference = "preference"


@dataclass
class Reading:
    """Options about the meaning of judgements, and the tables that they give."""

    similarity_scale: Annotated[
        str | None,
        typer.Option(help="Lowest and highest similarity that could be given, as 1,5 or 0,100."),
    ] = None
    difference_scale: Annotated[
        str | None,
        typer.Option(help="Lowest and highest difference, as in --difference-scale=-2,2."),
    ] = None
    difference_means: Annotated[
        Meaning | None,
        typer.Option(help="preference: which one, not by how much; difference: as it is, surely."),
    ] = None

    notes: Annotated[list[str], "no option"] = field(default_factory=list, init=False)

    @property
    def given(self) -> bool:
        """Whether some option is."""
        options = (self.similarity_scale, self.difference_scale, self.difference_means)
        return any(option is not None for option in options)

    def scales(self) -> list[Scale | None]:
        """The scales of similarities and of differences, where they are given."""
        from pairlearn.tables.scales import Scale

        scales = []
        for name in ("similarity_scale", "difference_scale"):
            text = getattr(self, name)
            try:
                scales.append(None if text is None else Scale.parse(text))
            except ValueError as error:
                raise ValueError(f"--{name.replace('_', '-')}: {error}") from None
        return scales

    def stream_scales(self) -> list[Scale | None]:
        """The scales, for pairs that stay in their file."""
        if self.difference_means is not None:
            raise ValueError("--difference-means is for pairs in memory: leave out --stream")
        return self.scales()

    def table(self, path: Path) -> PairTable:
        """Read judgements on their scale; those out of range are for `check` to find."""
        from pairlearn.columns import placed
        from pairlearn.tables import read_pairs
        from pairlearn.tables.scales import as_comparisons, on_scales

        try:
            with placed():
                table = on_scales(read_pairs(path, noisy=True), *self.scales())
            if self.difference_means is Meaning.preference:
                table, ties = as_comparisons(table)
                if ties:
                    self.notes.append(
                        f"{ties:,} differences of 0 prefer neither item and are left out"
                    )
        except ValueError as error:
            if str(error).startswith("row "):  # as a reader names the place
                raise ValueError(f"{path}, {error}") from None
            raise
        return table

    def checked(self, path: Path, *, noisy: bool, prior: float | None = None) -> PairTable:
        """Read judgements, and refuse those whose numbers mean something else."""
        from pairlearn.diagnostics.columns import Columns
        from pairlearn.diagnostics.judgements import check_ranges
        from pairlearn.diagnostics.learnable import check_comparisons
        from pairlearn.tables import read_pairs

        table = self.table(path)
        columns = Columns.of(table)
        ranges = list(check_ranges(columns))
        for found in (*ranges, *(() if ranges else check_comparisons(columns, prior))):
            if found.code == "comparisons" and self.difference_means is not None:
                continue
            if found.severity == "error" and not found.code.endswith("-range"):
                raise ValueError(f"{path}: {found.code}: {found.message}")
        if ranges and not noisy:
            read_pairs(path)  # which names the line of the first value out of range
        return table

    def settled(self, report: CheckReport) -> CheckReport:
        """A report without what the options settle."""
        from dataclasses import replace

        if self.difference_means is None:
            return report
        rest = [found for found in report.findings if found.code != "comparisons"]
        return replace(report, findings=tuple(rest))
