"""Files in and out: ``annotate export``, ``import``, ``label-studio``, ``backup``, ``restore``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairlearn.cli.options import (
    ForceOption,
    JsonOption,
    ProjectArgument,
    tell,
    with_options,
)
from pairlearn.cli.reading import Reading
from pairlearn.cli.refusals import refusing

if TYPE_CHECKING:
    from pairlearn.studio.exchange import Reading as PreferenceReading
    from pairlearn.studio.exchange import Statement

__all__ = ["backup", "export", "import_", "label_studio", "restore"]


def export(
    project: ProjectArgument,
    out: Annotated[Path, typer.Argument(help="Table of pairs to write: .csv or .parquet.")],
    aggregate: Annotated[
        Literal["mean", "median", "reliability"] | None,
        typer.Option(help="One judgement a pair; else one row a judgement."),
    ] = None,
    weights: Annotated[
        bool | None,
        typer.Option("--weights/--no-weights", help="Inclusion weights; where they differ."),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write the judgements as a table of pairs, which check and fit read.

    Answers "can't say" are left out and counted. Infeasible answers are written as given:
    `pairlearn check` reports them.

    \b
    Examples:
      pairlearn annotate export pumps pairs.csv
      pairlearn annotate export pumps pairs.parquet --aggregate reliability

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.studio import Project, Store
    from pairlearn.studio.agreement import reliabilities
    from pairlearn.studio.export import aggregated, judgements, weighed
    from pairlearn.tables import write_pairs

    with refusing("annotate export"):
        if out.exists() and not force:
            raise ValueError(f"{out} is there already: choose another name, or --force")
        with Store.open(Project.load(project)) as store:
            answers = weighed(store.answers(), store.pairs(), len(store.items.ids))
        uneven = any(abs(one.weight - 1) > 1e-9 for one in answers)
        weighted = uneven if weights is None else weights
        if aggregate is None:
            exported = judgements(answers, weights=weighted)
        else:
            exported = aggregated(answers, aggregate, weights=weighted)
        write_pairs(exported.table, out)
        trust = reliabilities(answers) if aggregate == "reliability" else {}
    if uneven and not weighted:
        typer.echo("warning: these pairs were not drawn at random; weights are left out", err=True)
    report: dict[str, Any] = {
        "file": str(out),
        "rows": len(exported.table),
        "cant_say": exported.cant_say,
        "undecided": exported.undecided,
        "infeasible": exported.infeasible,
        "weights": weighted,
        "reliability": trust,
    }
    tell(
        report, as_json,
        "{file}: {rows:,} rows; left out {cant_say:,} can't say, {undecided:,} undecided; "
        "{infeasible:,} rows are infeasible".format(**report),
        *(f"  reliability of {name}: {weight:.2f}" for name, weight in trust.items()),
    )  # fmt: skip


@with_options(Reading)
def import_(
    meaning: Reading,
    project: ProjectArgument,
    file: Annotated[
        Path, typer.Argument(help="Table of pairs (.csv, .parquet), or Label Studio's .json.")
    ],
    annotator: Annotated[
        str | None, typer.Option(help="Who judged, where the table does not say.")
    ] = None,
    preference_column: Annotated[
        str | None, typer.Option(help="Column of P(right is better), with --preference-means.")
    ] = None,
    preference_means: Annotated[
        Literal["ties-half", "given-different", "side-only"] | None,
        typer.Option(
            help="ties-half: c = 2P − 1; given-different: c = (1 − s)(2P − 1), as Bradley-Terry; "
            "side-only: which one, not by how much."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Take judgements in from elsewhere, all of a file or nothing.

    \b
    Examples:
      pairlearn annotate import pumps judged.csv --annotator ann
      pairlearn annotate import pumps project-3.json
      pairlearn annotate import pumps wins.csv --annotator judge \\
        --preference-column p --preference-means ties-half
      pairlearn annotate import pumps survey.csv --annotator ann --similarity-scale 1,5

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.studio import Project, Store
    from pairlearn.studio.exchange import import_judgements

    with refusing("annotate import"):
        if (preference_column is None) != (preference_means is None):
            raise ValueError(
                "--preference-column and --preference-means go together: what a probability of "
                "“better” says about classes is never guessed"
            )
        description = Project.load(project)
        rows, left_out = _read(file, annotator, preference_column, preference_means, meaning)
        with Store.open(description) as store:
            count = import_judgements(store, rows)
    report = {"file": str(file), "judgements": len(rows), **count._asdict(), **left_out}
    told = ", ".join(f"{number:,} {what}" for what, number in left_out.items())
    tell(
        report, as_json,
        "{judgements:,} judgements: {new:,} new, {revised:,} revised, {same:,} there already; "
        "{pairs_added:,} pairs and {annotators_added:,} annotators added".format(**report),
        *([f"  left out: {told}"] if any(left_out.values()) else []),
    )  # fmt: skip


def label_studio(
    project: ProjectArgument,
    out: Annotated[Path, typer.Argument(help="Folder for config.xml and tasks.json.")],
    prefix: Annotated[
        str, typer.Option(help="What comes before the names of images.")
    ] = "/data/local-files/?d=",
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a labelling config and tasks for Label Studio; import reads what it exports.

    \b
    Examples:
      pairlearn annotate label-studio pumps studio/
      pairlearn annotate label-studio cats studio/ --prefix https://files.example/cats/

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.studio import Project, Store
    from pairlearn.studio.label_studio import write_label_studio

    with refusing("annotate label-studio"):
        there = [name for name in ("config.xml", "tasks.json") if Path(out, name).exists()]
        if there and not force:
            raise ValueError(f"{Path(out, there[0])} is there already: another folder, or --force")
        with Store.open(Project.load(project)) as store:
            files = write_label_studio(out, store.project, store.items, store.pairs(), prefix)
    names = [str(path) for path in files]
    tell(names, as_json, *names)


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
    from pairlearn.studio import Project
    from pairlearn.studio.backups import back_up

    with refusing("annotate backup"):
        path, answers = back_up(Project.load(project), out)
    report = {"file": str(path), "answers": answers}
    tell(report, as_json, f"{path}: {answers:,} answers, checked")


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
    from pairlearn.studio import Project, Store, backups

    with refusing("annotate restore"):
        description = Project.load(project)
        path = source or backups.newest_backup(description)
        done = backups.restore(description, path)
        Store.open(description).close()
    kept = None if done.replaced is None else str(done.replaced)
    tell(
        {"file": str(path), "answers": done.answers, "replaced": kept}, as_json,
        f"{description.store_path}: {done.answers:,} answers, from {path}",
        *([f"  what was there before is in {kept}"] if kept else []),
    )  # fmt: skip


def _read(
    file: Path,
    annotator: str | None,
    column: str | None,
    reading: PreferenceReading | None,
    meaning: Reading,
) -> tuple[list[Statement], dict[str, int]]:
    """Judgements of a file, and counts of what was left out of it."""
    from pairlearn.studio.exchange import judgements_of, read_preferences
    from pairlearn.studio.label_studio import read_label_studio

    if (file.suffix.lower() == ".json" or column is not None) and meaning.given:
        raise ValueError("scales and meanings are for the columns similarity and difference")
    if file.suffix.lower() == ".json":
        if annotator is not None or column is not None:
            raise ValueError("a Label Studio export names its annotators and has no such column")
        found = read_label_studio(file)
        counts = {name: getattr(found, name) for name in ("cancelled", "empty", "superseded")}
        return found.judgements, counts
    if column is not None and reading is not None:
        return judgements_of(read_preferences(file, column, reading), annotator), {}
    table = meaning.checked(file, noisy=False)
    for text in meaning.notes:
        typer.echo(f"note: {text}", err=True)
    return judgements_of(table, annotator), {}
