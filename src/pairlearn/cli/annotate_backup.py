"""``pairlearn annotate backup`` and ``restore``: whole copies of the answers, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.cli.refusals import refusing

__all__ = ["backup", "restore"]

ProjectArgument = Annotated[Path, typer.Argument(help="The project's folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def backup(
    project: ProjectArgument,
    out: Annotated[
        Path | None, typer.Argument(help="File to write; in PROJECT/backups if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the answers into one file, also while people are answering.

    Use this, and not a copy of answers.sqlite: the last answers may still be in its log. The
    copy is checked after writing. Snapshots are taken by themselves, every 200 answers; the
    last three are in PROJECT/backups, too.

    \b
    Examples:
      pairlearn annotate backup pumps
      pairlearn annotate backup pumps /media/disk/pumps.sqlite

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.annotate import Project
    from pairlearn.annotate.backups import back_up

    with refusing("annotate backup"):
        path, answers = back_up(Project.load(project), out)
    if as_json:
        typer.echo(json.dumps({"file": str(path), "answers": answers}))
    else:
        typer.echo(f"{path}: {answers:,} answers, checked")


def restore(
    project: ProjectArgument,
    source: Annotated[
        Path | None, typer.Argument(help="The backup; the newest one if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put the answers of a backup in the place of those that are there, which are kept aside.

    Links that were made after the backup do not work any more. End the server first.

    \b
    Examples:
      pairlearn annotate restore pumps
      pairlearn annotate restore pumps /media/disk/pumps.sqlite

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.annotate import Project, Store, backups

    with refusing("annotate restore"):
        description = Project.load(project)
        path = source or backups.newest_backup(description)
        done = backups.restore(description, path)
        Store.open(description).close()
    kept = None if done.replaced is None else str(done.replaced)
    if as_json:
        typer.echo(json.dumps({"file": str(path), "answers": done.answers, "replaced": kept}))
        return
    typer.echo(f"{description.store_path}: {done.answers:,} answers, from {path}")
    if kept:
        typer.echo(f"  what was there before is in {kept}")
