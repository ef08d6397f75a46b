"""``pairlearn check``: look a table of judgements over before anything is learnt from it.

Exit codes: 0 no error found, 1 there are findings of severity error, 2 the request was
wrong or the file is no table of judgements.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from pairlearn.cli.options import JsonOption, MajorityOption, PairsArgument, with_options
from pairlearn.cli.reading import Reading
from pairlearn.cli.refusals import refusing
from pairlearn.extras import missing_extra

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from pairlearn.diagnostics import CheckReport, Finding
    from pairlearn.tables import PairTable

__all__ = ["check"]

FIGURES = (".png", ".svg", ".pdf")
_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}


@with_options(Reading)
def check(
    reading: Reading,
    pairs: PairsArgument,
    items: Annotated[
        Path | None, typer.Option(help="Table of items, where every id should be found.")
    ] = None,
    prior: Annotated[
        float | None, typer.Option(help="Share of positives as you know it, to compare.")
    ] = None,
    majority: MajorityOption = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the judgements: .png, .svg or .pdf.")
    ] = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing: see exit code.")] = False,
) -> None:
    """Check judgements: contradictions, impossible answers, annotators, prior, what they teach.

    \b
    Examples:
      pairlearn check pairs.csv
      pairlearn check pairs.csv --items items.csv --prior 0.3 --figure plane.png
      pairlearn check pairs.csv --similarity-scale 1,5 --difference-scale=-2,2
      pairlearn check pairs.parquet --json | jq '.findings[] | .code'

    Exit codes: 0 no errors, 1 errors were found, 2 wrong request or unreadable file.
    """  # noqa: D301
    from pairlearn.diagnostics import check as check_table
    from pairlearn.tables import read_items

    with refusing("check"):
        if figure is not None and figure.suffix not in FIGURES:
            raise ValueError(f"--figure {figure.name} must end in .png, .svg or .pdf")
        table = reading.table(pairs)  # all values out of range, not the first alone
        known = None if items is None else read_items(items)
        side = cast("Literal['positive', 'negative'] | None", majority and majority.value)
        report = check_table(table, items=known, prior=prior, majority=side)
        report = reading.settled(report)
        if figure is not None:
            _draw(table, figure)
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
    elif not quiet:
        _show(report, pairs.name)
        for text in reading.notes:
            typer.echo(f"note: {text}")
        if figure is not None:
            typer.echo(f"figure: {figure}")
    if not report.ok:
        raise typer.Exit(1)


def _draw(table: PairTable, path: Path) -> None:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("plot", "matplotlib", "--figure") from None
    from pairlearn.diagnostics import plot_plane
    from pairlearn.report.figures import save_figure
    from pairlearn.style import STYLE

    judged = table[table.judged]
    if not len(judged):
        raise ValueError("--figure shows similarities and differences: the table has none")
    with matplotlib.rc_context(STYLE):
        drawing = Figure((5.2, 4.4), layout="constrained")
        plot_plane(judged.labels(), drawing.subplots())
    save_figure(drawing, path)


def _show(report: CheckReport, name: str) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    _show_summary(console, report, name)
    console.print(_findings(report.findings))
    errors, warnings = len(report.of("error")), len(report.of("warning"))
    verdict = "not usable as it is" if errors else "look at the warnings" if warnings else "fine"
    console.print(
        f"\n{errors} {_plural('error', errors)}, {warnings} {_plural('warning', warnings)}: "
        f"[{'bold red' if errors else 'yellow' if warnings else 'green'}]{verdict}[/]"
    )


def _show_summary(console: Console, report: CheckReport, name: str) -> None:
    from rich.markup import escape

    told = report.summary
    by = f" by {told.annotators} {_plural('annotator', told.annotators)}" if told.annotators else ""
    console.print(
        f"[bold]{escape(name)}[/]: {told.rows:,} {_plural('judgement', told.rows)} of "
        f"{told.pairs:,} {_plural('pair', told.pairs)} of {told.items:,} items{by}"
    )
    kinds = {
        "both answers": told.both,
        "similarity only": told.similarity_only,
        "difference only": told.difference_only,
        "preference only": told.preference_only,
    }
    console.print("  " + ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count))
    console.print(f"  they can teach: [bold]{told.learnable}[/]\n")


def _findings(findings: tuple[Finding, ...]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=7, no_wrap=True)
    grid.add_column()
    for found in findings:
        where = []
        if found.rows:
            where.append(f"rows {_listed(found.rows, found.count)}")
        if found.ids:
            where.append(", ".join(map(str, found.ids)))
        text = f"[bold]{found.code}[/] {escape(found.message)}"
        if where:
            text += f" [dim]({escape('; '.join(where))})[/]"
        grid.add_row(f"[{_COLOURS[found.severity]}]{found.severity}[/]", text)
    return grid


def _listed(rows: tuple[int, ...], count: int) -> str:
    more = f", … of {count:,}" if count > len(rows) else ""
    return ", ".join(map(str, rows)) + more


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
