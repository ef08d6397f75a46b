"""How the commands read items and judgements: which columns, on which scale, meaning what."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pairlearn.check import CheckReport
    from pairlearn.tables import PairTable
    from pairlearn.tables.cells import ColumnChoice
    from pairlearn.tables.scales import Scale


@dataclass(frozen=True)
class Columns:
    """Which columns of the items to learn from.

    Parameters
    ----------
    columns
        Names, with commas between. [default: all but id]
    ignore
        Columns to leave out, with commas between.
    kinds
        What columns hold, if not what it seems, as in zip:category,notes:text.
    """

    columns: str | None = None
    ignore: str | None = None
    kinds: str | None = None

    def choice(self) -> ColumnChoice:
        """As the library takes it."""
        from pairlearn.tables.cells import ColumnChoice

        def names(text: str | None) -> list[str]:
            return [name.strip() for name in (text or "").split(",") if name.strip()]

        kinds: dict[str, Any] = {}
        for part in names(self.kinds):
            name, mark, kind = part.rpartition(":")
            if not mark:
                raise ValueError(f"--kinds must be as in zip:category; got {part!r}")
            kinds[name.strip()] = kind.strip()
        return ColumnChoice(names(self.columns), names(self.ignore), kinds)


@dataclass
class Reading:
    """Options about the meaning of judgements, and the tables that they give.

    Parameters
    ----------
    similarity_scale
        Lowest and highest similarity that could be given, as 1,5 or 0,100.
    difference_scale
        Lowest and highest difference, with an equals sign: =-2,2.
    difference_means
        preference: which one, not by how much; difference: as it is, surely.
    """

    similarity_scale: str | None = None
    difference_scale: str | None = None
    difference_means: Literal["difference", "preference"] | None = None
    notes: list[str] = field(default_factory=list, init=False)

    @property
    def given(self) -> bool:
        """Whether some option is."""
        return (self.similarity_scale, self.difference_scale, self.difference_means) != (None,) * 3

    def scales(self) -> list[Scale | None]:
        """The scales of similarities and of differences, where they are given."""
        from pairlearn.tables.scales import Scale

        scales = []
        for name in ("similarity", "difference"):
            text = getattr(self, f"{name}_scale")
            try:
                scales.append(None if text is None else Scale.parse(text))
            except ValueError as error:
                raise ValueError(f"--{name}-scale: {error}") from None
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
            if self.difference_means == "preference":
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
        from pairlearn.check.answers import check_meaning
        from pairlearn.tables import read_pairs

        table = self.table(path)
        doubts = check_meaning(table, prior)
        for found in doubts:
            settled = found.code == "comparisons" and self.difference_means is not None
            if found.severity == "error" and not found.code.endswith("-range") and not settled:
                raise ValueError(f"{path}: {found.code}: {found.message}")
        if not noisy and any(found.code.endswith("-range") for found in doubts):
            read_pairs(path)  # which names the line of the first value out of range
        return table

    def settled(self, report: CheckReport) -> CheckReport:
        """A report without what the options settle."""
        if self.difference_means is None:
            return report
        rest = tuple(found for found in report.findings if found.code != "comparisons")
        return replace(report, findings=rest)
