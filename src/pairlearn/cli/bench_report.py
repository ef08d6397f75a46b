"""``pairlearn bench report``: the benchmark as one page.

Exit codes: 0 written, 2 the request or a file was wrong.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.cli.options import ForceOption, JsonOption
from pairlearn.cli.outputs import check_new_file
from pairlearn.cli.refusals import refusing

__all__ = ["report"]


def report(
    out: Annotated[Path, typer.Argument(help="The page to write: .html.")],
    store: Annotated[
        list[Path] | None,
        typer.Option(help="File of finished runs, .jsonl or .parquet, or a folder; repeatable."),
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder of published results, with runs/*.parquet.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one page with the paper's numbers and ours: tables, figures, what ran.

    The page needs no network and nothing beside itself. Without --store and --results it is
    made from the stores in the folder runs.

    \b
    Examples:
      pairlearn bench report bench.html
      pairlearn bench report bench.html --store runs/accuracy.jsonl --store runs/gamma.jsonl
      pairlearn bench report bench.html --results results/

    Exit codes: 0 written, 2 wrong request or unusable file.
    """  # noqa: D301
    with refusing("bench report"):
        from pairlearn.experiments.report import build_report, read_sources
        from pairlearn.pages import write_page

        paths = [*(store or []), *([results] if results is not None else [])] or [Path("runs")]
        check_new_file(out, "reports", (".html",), inputs=paths, force=force)
        made = build_report(read_sources(paths))
        size = write_page(out, made.page)
    told = {"path": str(out), "bytes": size, **made.to_dict()}
    if as_json:
        typer.echo(json.dumps(told))
    else:
        typer.echo(f"{out}: {made.runs:,} runs, {made.figures} figures, {size / 1e6:.1f} MB")
