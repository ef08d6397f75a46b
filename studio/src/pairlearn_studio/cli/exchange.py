"""Files in and out: ``annotate export``, ``import``, ``label-studio``, ``backup``, ``restore``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pairlearn.cli.command import Command, Output, counted, new_app
from pairlearn.cli.options import (
    DifferenceScale,
    Force,
    Json,
    SimilarityScale,
    argument,
    check_absent,
    check_new_file,
    option,
    parse_names,
)
from pairlearn.cli.reading import Reading, in_file

if TYPE_CHECKING:
    from pairlearn_studio import Store, StoredAnswer
    from pairlearn_studio.exchange import Statement

app = new_app()
ProjectFolder = Annotated[Path, argument("The project's folder.")]
OLD_LINKS = (
    "the links are those of the backup: a link that was renewed or ended since then works again; "
    "`pairlearn annotate link --renew` or `retire` ends it"
)


def opened(project: Path) -> Store:
    """Open the store of a project."""
    from pairlearn_studio import Project, Store

    return Store.open(Project.load(project))


@app.command(cls=Command)
def export(
    project: ProjectFolder,
    out: Annotated[
        Path,
        argument(
            "Table of pairs to write: .csv or .parquet; or .jsonl: every answer, “can't say” "
            "included, with its note, seconds and time."
        ),
    ],
    *,
    without: Annotated[
        str, option("Annotators whose answers are left out, such as ann,bob.", default=False)
    ] = "",
    force: Force = False,
    as_json: Json = False,
) -> Output:
    """Write the judgements as a table of pairs, which check and fit read.

    "Can't say" answers are left out and counted. Infeasible answers are written as given:
    `pairlearn check` reports them. Answers in words are in the column level, next to their
    numbers. Answers to known pairs are left out; where the supervisor settled a pair, that
    answer replaces the others.

    For example:
      pairlearn annotate export pumps pairs.csv
      pairlearn annotate export pumps pairs.csv --without bob

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn.atomic import replacing
    from pairlearn_studio import exchange

    check_new_file(out, "pairs", (".csv", ".parquet", ".jsonl"), inputs=[], force=force)
    as_lines = out.suffix.lower() == ".jsonl"
    with opened(project) as store:
        answers = store.answers()
        stored = store.drawn(answers)
        mixed_in = len(answers) - len(stored)
        asked, author = store.project.answers, store.adjudicator
    kept = _without(stored, without)
    answers = exchange.settled(kept, author)
    exported = exchange.export_table(answers)
    if as_lines:
        with replacing(out) as part, part.open("wb") as file:
            file.writelines(exchange.answer_lines(kept, answers))
    else:
        exported.write(out)
    data: dict[str, Any] = {
        "file": str(out),
        "rows": len(kept) if as_lines else len(exported.table),
        "cant_say": exported.cant_say,
        "infeasible": exported.infeasible,
        "mixed_in": mixed_in,
        "overruled": len(kept) - len(answers),
        "answers": asked,
    }
    return Output(data, [_export_summary(data)])


def _without(answers: list[StoredAnswer], names: str) -> list[StoredAnswer]:
    """The answers without those of the named annotators, who must have answered."""
    excluded = {*parse_names(names)}
    if unknown := sorted(excluded - {answer.annotator for answer in answers}):
        raise ValueError(f"--without {unknown[0]}: no annotator with this name has answered")
    kept = [answer for answer in answers if answer.annotator not in excluded]
    if answers and not kept:
        raise ValueError(f"--without {names}: these are all annotators with answers")
    return kept


def _export_summary(data: dict[str, Any]) -> str:
    line = (
        "{file}: {rows:,} rows, of which {infeasible:,} infeasible; {cant_say:,} “can't say” left "
        "out; {answers} answers"
    )
    if data["mixed_in"]:
        line += "; {mixed_in:,} answers to known pairs are left out"
    if data["overruled"]:
        line += "; {overruled:,} answers overruled by the supervisor"
    return line.format(**data)


@app.command("import", cls=Command)
def import_(
    project: ProjectFolder,
    file: Annotated[Path, argument("Table of pairs (.csv, .parquet), or Label Studio's .json.")],
    *,
    annotator: Annotated[
        str | None, option("Name of the annotator, if the table has none.")
    ] = None,
    similarity_scale: SimilarityScale = None,
    difference_scale: DifferenceScale = None,
    as_json: Json = False,
) -> Output:
    """Import judgements made elsewhere: all of a file or nothing.

    For example:
      pairlearn annotate import pumps judged.csv --annotator ann
      pairlearn annotate import pumps project-3.json
      pairlearn annotate import pumps survey.csv --annotator ann \\
        --similarity-scale 1,5

    Exit codes: 0 done, 2 wrong request or unusable file.
    """  # noqa: D301
    from pairlearn_studio.exchange import import_judgements

    reading = Reading(similarity_scale, difference_scale)
    with opened(project) as store, in_file(file):
        rows, left_out = _read(file, annotator, reading, [*store.project.classes] or None)
        count = import_judgements(store, rows)
    data = {"file": str(file), "judgements": len(rows), **count._asdict(), **left_out}
    text = [
        f"{counted(len(rows), 'judgement')}: {count.new:,} new, {count.revised:,} revised, "
        f"{count.same:,} there already; {counted(count.pairs_added, 'pair')} and "
        f"{counted(count.annotators_added, 'annotator')} added"
    ]
    if any(left_out.values()):
        counts = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items())
        text.append(f"  left out: {counts}")
    return Output(data, text)


@app.command(cls=Command)
def label_studio(
    project: ProjectFolder,
    out: Annotated[Path, argument("Folder for config.xml and tasks.json.")],
    *,
    prefix: Annotated[
        str,
        option("Prefix of the URLs of images; by default that of Label Studio's local storage."),
    ] = "/data/local-files/?d=",
    force: Force = False,
    as_json: Json = False,
) -> Output:
    """Write a labelling config and tasks for Label Studio; import reads its exports.

    For example:
      pairlearn annotate label-studio pumps studio/
      pairlearn annotate label-studio cats studio/ \\
        --prefix https://files.example/cats/

    Exit codes: 0 done, 2 wrong request or unusable file.
    """  # noqa: D301
    from pairlearn_studio.label_studio import write_label_studio

    check_absent(out, "config.xml", "tasks.json", force=force)
    with opened(project) as store:
        files = write_label_studio(out, store, prefix)
    names = [str(path) for path in files]
    return Output(names, names)


@app.command(cls=Command)
def backup(
    project: ProjectFolder,
    out: Annotated[
        Path | None,
        argument(
            "File to write; its folder is created if needed.",
            show_default="one in PROJECT/backups",
        ),
    ] = None,
    *,
    as_json: Json = False,
) -> Output:
    """Copy the answers into one file, even while people are answering.

    Do not copy answers.sqlite instead: the last answers may still be in its log. The backup
    is verified after writing. A copy is also made automatically every 200 answers, as
    auto.sqlite in PROJECT/backups.

    For example:
      pairlearn annotate backup pumps
      pairlearn annotate backup pumps /media/disk/pumps.sqlite

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn_studio import Project
    from pairlearn_studio.writer import back_up

    path, answers = back_up(Project.load(project), out)
    return Output({"file": path, "answers": answers}, [f"{path}: {answers:,} answers, checked"])


@app.command(cls=Command)
def restore(
    project: ProjectFolder,
    source: Annotated[Path | None, argument("The backup.", show_default="the newest one")] = None,
    *,
    as_json: Json = False,
) -> Output:
    """Replace the answers by those of a backup; the current ones are kept in another file.

    Links stay as they are, including those of people who joined, got a new link or retired
    since the backup. Stop the server first.

    For example:
      pairlearn annotate restore pumps
      pairlearn annotate restore pumps /media/disk/pumps.sqlite

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn_studio import Project, Store, writer

    description = Project.load(project)
    path = source or writer.newest_backup(description)
    done = writer.restore(description, path)
    Store.open(description).close()
    text = [f"{description.store_path}: {done.answers:,} answers, from {path}"]
    if done.replaced is not None:
        text.append(f"  the replaced answers are in {done.replaced}")
    if done.links:
        text.append(f"  links changed since the backup, and kept: {', '.join(done.links)}")
    warnings = [OLD_LINKS] if done.links is None else []
    return Output({"file": path} | done._asdict(), text, warnings=warnings)


def _read(
    file: Path, annotator: str | None, reading: Reading, classes: list[str] | None
) -> tuple[list[Statement], dict[str, int]]:
    """The judgements in a file, and counts of what was left out."""
    from pairlearn_studio.exchange import judgements_of
    from pairlearn_studio.label_studio import read_label_studio

    if file.suffix.lower() == ".json":
        if annotator is not None or reading.scales:
            raise ValueError("a Label Studio export names its annotators, and has no scales")
        return read_label_studio(file)
    if classes is None and reading.table(file).about is not None:
        raise ValueError("the project has two classes: leave out the column about")
    table = reading.checked(file, noisy=False, classes=classes)
    return judgements_of(table, annotator), {}
