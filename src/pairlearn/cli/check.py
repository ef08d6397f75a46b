"""``pairlearn check``: look a table of judgements over before anything is learnt from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlearn.cli.command import Told, command, counted
from pairlearn.cli.options import FIGURES, Majority, check_suffix
from pairlearn.cli.reading import Columns, Reading

if TYPE_CHECKING:
    from pairlearn.check import CheckReport, Finding
    from pairlearn.tables import PairTable

_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}


@command("check", Reading, Columns, quiet="Print nothing: see exit code.")
def check(
    reading: Reading,
    columns: Columns,
    pairs: Path,
    *,
    items: Path | None = None,
    prior: float | None = None,
    majority: Majority | None = None,
    figure: Path | None = None,
) -> Told:
    """Check judgements: contradictions, impossible answers, annotators, prior, what they teach.

    Parameters
    ----------
    items
        Table of items, where every id should be found.
    prior
        Share of positives as you know it, to compare.
    figure
        Draw the judgements: .png, .svg or .pdf.

    \b
    Examples:
      pairlearn check pairs.csv
      pairlearn check pairs.csv --items items.csv --prior 0.3 --figure plane.png
      pairlearn check pairs.csv --similarity-scale 1,5 --difference-scale=-2,2
      pairlearn check pairs.parquet --json | jq '.findings[] | .code'

    Exit codes: 0 no errors, 1 errors were found, 2 wrong request or unreadable file.
    """  # noqa: D301
    from pairlearn.check import check as check_table
    from pairlearn.tables import read_items

    check_suffix("--figure", figure, *FIGURES)
    table = reading.table(pairs)  # all values out of range, not the first alone
    known = None if items is None else read_items(items, columns=columns.choice())
    report = check_table(table, items=known, prior=prior, majority=majority)
    report = reading.settled(report)
    text = [*_text(report, pairs.name), *(f"note: {note}" for note in reading.notes)]
    if figure is not None:
        _draw(table, figure)
        text.append(f"figure: {figure}")
    return Told(report.to_dict(), text, code=0 if report.ok else 1)


def _draw(table: PairTable, path: Path) -> None:
    from pairlearn.check import plot_plane
    from pairlearn.report.figures import save_figure, styled

    judged = table[table.judged]
    if not len(judged):
        raise ValueError("--figure shows similarities and differences: the table has none")
    with styled("--figure"):
        from matplotlib.figure import Figure

        drawing = Figure((5.2, 4.4), layout="constrained")
        plot_plane(judged.labels(), drawing.subplots())
    save_figure(drawing, path)


def _text(report: CheckReport, name: str) -> Iterator[Any]:
    from rich.table import Table
    from rich.text import Text

    from pairlearn.kinds import rows_by_kind

    told = report.summary
    by = f" by {counted(told.annotators, 'annotator')}" if told.annotators else ""
    judged, pairs = counted(told.rows, "judgement"), counted(told.pairs, "pair")
    yield Text.assemble((name, "bold"), f": {judged} of {pairs} of {told.items:,} items{by}")
    yield f"  {by_kind(rows_by_kind(report.said, told.rows))}"
    yield Text.assemble("  they can teach: ", (told.learnable, "bold"), "\n")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=7, no_wrap=True)
    grid.add_column()
    for found in report.findings:
        text = Text.assemble((found.code, "bold"), f" {found.message}", (where(found), "dim"))
        grid.add_row(Text(found.severity, _COLOURS[found.severity]), text)
    yield grid
    errors, warnings = (len(report.of(kind)) for kind in ("error", "warning"))
    verdict, colour = "fine", "green"
    if errors or warnings:
        verdict = "not usable as it is" if errors else "look at the warnings"
        colour = _COLOURS["error" if errors else "warning"]
    count = f"\n{counted(errors, 'error')}, {counted(warnings, 'warning')}: "
    yield Text.assemble(count, (verdict, colour))


def by_kind(counts: Mapping[str, Any]) -> str:
    """How many rows say what."""
    kinds = {"both answers": counts["both"]}
    kinds |= {name.replace("_", " "): n for name, n in counts.items() if name.endswith("_only")}
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)


def where(found: Finding) -> str:
    """The first of the rows and of the ids that a finding is about."""
    more = f", … of {found.count:,}" if found.count > len(found.rows) else ""
    where = [f"rows {', '.join(map(str, found.rows))}{more}"] if found.rows else []
    where += [", ".join(map(str, found.ids))] if found.ids else []
    return f" ({'; '.join(where)})" if where else ""
