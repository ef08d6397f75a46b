"""Files in and out: ``annotate export``, ``import``, ``label-studio``, ``backup``, ``restore``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from pairlearn.cli.command import Output, command, counted
from pairlearn.cli.options import Reading, check_absent, check_new_file, in_file, parse_names

if TYPE_CHECKING:
    from pairlearn.annotators.crowd import Crowd
    from pairlearn_studio import Store, StoredAnswer
    from pairlearn_studio.exchange import PreferenceMeaning, Statement

OLD_LINKS = (
    "the links are those of the backup: one that was renewed or ended since opens again; "
    "`pairlearn annotate link --renew` or `retire` ends it"
)


def opened(project: Path) -> Store:
    """Open the store of a project."""
    from pairlearn_studio import Project, Store

    return Store.open(Project.load(project))


@command("annotate export")
def export(
    project: Path,
    out: Path,
    *,
    aggregate: Literal["mean", "median", "reliability"] | None = None,
    without: str = "",
    force: bool = False,
) -> Output:
    """Write the judgements as a table of pairs, which check and fit read.

    "Can't say" answers are left out and counted. Infeasible answers are written as given:
    `pairlearn check` reports them. Answers in words are in the column level, next to their
    numbers. Answers to known and repeated pairs are left out; where the supervisor settled
    a pair, that answer replaces the others.

    Parameters
    ----------
    out
        Table of pairs to write: .csv or .parquet; or .jsonl, every answer with its note,
        seconds and time, also “can't say”.
    aggregate
        One row per pair instead of one per judgement.
    without
        Annotators whose answers are left out, such as ann,bob.

    For example:
      pairlearn annotate export pumps pairs.csv
      pairlearn annotate export pumps pairs.parquet --aggregate reliability
      pairlearn annotate export pumps pairs.csv --without bob
    """
    from pairlearn.atomic import replacing
    from pairlearn_studio import exchange
    from pairlearn_studio.overview import crowd_of

    check_new_file(out, "pairs", (".csv", ".parquet", ".jsonl"), inputs=[], force=force)
    as_lines = out.suffix.lower() == ".jsonl"
    if as_lines and aggregate is not None:
        raise ValueError("--aggregate is for tables: a .jsonl file has every answer")
    with opened(project) as store:
        stored = exchange.exportable(store)
        mixed_in = len(store.answers()) - len(stored)
        asked, levels, author = store.project.answers, store.project.levels, store.adjudicator
    kept = _without(stored, without)
    answers = exchange.settled(kept, author)
    exported = exchange.export_table(answers, aggregate)
    if as_lines:
        with replacing(out) as part, part.open("wb") as file:
            file.writelines(exchange.answer_lines(kept, asked, author))
    else:
        exported.write(out)
    crowd = crowd_of(answers if aggregate else [])
    data: dict[str, Any] = {
        "file": str(out),
        "rows": len(kept) if as_lines else len(exported.table),
        "cant_say": exported.cant_say,
        "undecided": exported.undecided,
        "infeasible": exported.infeasible,
        "reliability": crowd.weights() if aggregate == "reliability" else {},
        "mixed_in": mixed_in,
        "overruled": len(kept) - len(answers),
        "answers": asked,
        "levels": levels if asked == "graded" else {},
    }
    numbers = sum(map(exchange.in_numbers, answers)) if asked == "graded" else 0
    warnings = [*_doubts(crowd, aggregate)]
    text = [_export_summary(data, numbers)]
    text += _reliabilities(crowd) if aggregate == "reliability" else []
    return Output(data | {"warnings": warnings}, text, warnings=warnings)


def _without(answers: list[StoredAnswer], names: str) -> list[StoredAnswer]:
    """The answers without those of the named annotators, who must have answered."""
    excluded = {*parse_names(names)}
    if unknown := sorted(excluded - {answer.annotator for answer in answers}):
        raise ValueError(f"--without {unknown[0]}: nobody of that name has answered")
    kept = [answer for answer in answers if answer.annotator not in excluded]
    if answers and not kept:
        raise ValueError(f"--without {names}: these are all who answered, and nothing is left")
    return kept


def _export_summary(data: dict[str, Any], numbers: int) -> str:
    line = (
        "{file}: {rows:,} rows; left out {cant_say:,} can't say, {undecided:,} undecided; "
        "{infeasible:,} rows are infeasible; {answers} answers"
    )
    if numbers:
        line += ", {numbers:,} of them given as numbers"
    if data["mixed_in"]:
        line += "; {mixed_in:,} answers to known or repeated pairs are left out"
    if data["overruled"]:
        line += "; {overruled:,} answers overruled by the supervisor"
    return line.format(numbers=numbers, **data)


def _doubts(crowd: Crowd, rule: str | None) -> Iterator[str]:
    """Warnings about annotators whom `status` marks, as far as the rule does not see to them."""
    doubts = {doubt.code: doubt for doubt in crowd.doubts()}
    if rivals := doubts.pop("rival-annotators", None):
        yield (
            f"annotators contradict each other, and either side could be right: {rivals.words}. "
            "They count the same; look at some of these pairs yourself, or have other people "
            "judge them"
        )
    if contrary := doubts.pop("contrary-annotators", None):
        yield (
            f"somebody has left and right exchanged: {contrary.words}. Ask who, and leave them "
            "out (--without)"
        )
    if copied := doubts.pop("copied-annotator", None):
        without = shlex.quote(",".join(copied.names))
        yield f"{copied.words}. The {rule} counts both: --without {without} leaves the copies out"
    names = [*dict.fromkeys(name for doubt in doubts.values() for name in doubt.names)]
    if names and rule != "reliability":
        yield (
            f"{crowd.described(names)}. The {rule} counts these answers like all others: "
            "--aggregate reliability counts them less, --without "
            f"{shlex.quote(','.join(names))} leaves them out"
        )


def _reliabilities(crowd: Crowd) -> Iterator[str]:
    from pairlearn.annotators.crowd import KNOWN

    doubted = {name for doubt in crowd.doubts() for name in doubt.names}
    for name, weight in crowd.weights().items():
        note = f"; {crowd.words(name)}" if name in doubted else ""
        if crowd.manners[name].answers < KNOWN:
            note = f" (under {KNOWN} answers, drawn towards the mean)"
        yield f"  reliability of {name}: {weight:.2f}{note}"


@command("annotate import", Reading)
def import_(
    reading: Reading,
    project: Path,
    file: Path,
    *,
    annotator: str | None = None,
    preference_column: str | None = None,
    preference_means: Literal["ties-half", "given-different", "side-only"] | None = None,
) -> Output:
    """Import judgements made elsewhere: all of a file or nothing.

    Parameters
    ----------
    file
        Table of pairs (.csv, .parquet), or Label Studio's .json.
    annotator
        Name of the annotator, if the table has none.
    preference_column
        Column of P(right is better), with --preference-means.
    preference_means
        ties-half: c = 2P − 1; given-different: c = (1 − s)(2P − 1), as Bradley-Terry;
        side-only: which one, not by how much.

    For example:
      pairlearn annotate import pumps judged.csv --annotator ann
      pairlearn annotate import pumps project-3.json
      pairlearn annotate import pumps wins.csv --annotator judge \\
        --preference-column p --preference-means ties-half
      pairlearn annotate import pumps survey.csv --annotator ann \\
        --similarity-scale 1,5
    """  # noqa: D301
    from pairlearn_studio.exchange import import_judgements

    if (preference_column is None) != (preference_means is None):
        raise ValueError(
            "--preference-column and --preference-means go together: what a probability of "
            "“better” says about classes is never guessed"
        )
    with opened(project) as store, in_file(file):
        rows, left_out = _read(file, annotator, preference_column, preference_means, reading)
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


@command("annotate label-studio")
def label_studio(
    project: Path, out: Path, *, prefix: str = "/data/local-files/?d=", force: bool = False
) -> Output:
    """Write a labelling config and tasks for Label Studio; import reads its exports.

    Parameters
    ----------
    out
        Folder for config.xml and tasks.json.
    prefix
        Prefix of the URLs of images; by default that of Label Studio's local storage.

    For example:
      pairlearn annotate label-studio pumps studio/
      pairlearn annotate label-studio cats studio/ \\
        --prefix https://files.example/cats/
    """  # noqa: D301
    from pairlearn_studio.label_studio import write_label_studio

    check_absent(out, "config.xml", "tasks.json", force=force)
    with opened(project) as store:
        files = write_label_studio(out, store, prefix)
    names = [str(path) for path in files]
    return Output(names, names)


@command("annotate backup")
def backup(project: Path, out: Path | None = None) -> Output:
    """Copy the answers into one file, also while people are answering.

    Do not copy answers.sqlite instead: the last answers may still be in its log. The backup
    is verified after writing. Every 200 answers a snapshot is taken automatically; the last
    three are in PROJECT/backups, too.

    Parameters
    ----------
    out
        File to write; its folder is created if needed. [default: one in PROJECT/backups]

    For example:
      pairlearn annotate backup pumps
      pairlearn annotate backup pumps /media/disk/pumps.sqlite
    """
    from pairlearn_studio import Project
    from pairlearn_studio.writer import back_up

    path, answers = back_up(Project.load(project), out)
    return Output({"file": path, "answers": answers}, [f"{path}: {answers:,} answers, checked"])


@command("annotate restore")
def restore(project: Path, source: Path | None = None) -> Output:
    """Replace the answers by those of a backup; the current ones are kept in another file.

    Links stay as they are, also those of people who joined, got a new link or retired since.
    Stop the server first.

    Parameters
    ----------
    source
        The backup. [default: the newest one]

    For example:
      pairlearn annotate restore pumps
      pairlearn annotate restore pumps /media/disk/pumps.sqlite
    """
    from pairlearn_studio import Project, Store, writer

    description = Project.load(project)
    path = source or writer.newest_backup(description)
    done = writer.restore(description, path)
    Store.open(description).close()
    text = [f"{description.store_path}: {done.answers:,} answers, from {path}"]
    if done.replaced is not None:
        text.append(f"  what was there before is in {done.replaced}")
    if done.links:
        text.append(f"  links changed since the backup, and left so: {', '.join(done.links)}")
    warnings = [OLD_LINKS] if done.links is None else []
    return Output({"file": path} | done._asdict(), text, warnings=warnings)


def _read(
    file: Path,
    annotator: str | None,
    column: str | None,
    meaning: PreferenceMeaning | None,
    reading: Reading,
) -> tuple[list[Statement], dict[str, int]]:
    """The judgements in a file, and counts of what was left out."""
    from pairlearn_studio.exchange import judgements_of, read_preferences
    from pairlearn_studio.label_studio import read_label_studio

    is_json = file.suffix.lower() == ".json"
    if (is_json or column is not None) and reading != Reading():
        raise ValueError("scales and meanings are for the columns similarity and difference")
    if is_json:
        if annotator is not None or column is not None:
            raise ValueError("a Label Studio export names its annotators and has no such column")
        return read_label_studio(file)
    if column is not None and meaning is not None:
        return judgements_of(read_preferences(file, column, meaning), annotator), {}
    table = reading.checked(file, noisy=False)
    for note in reading.notes:
        typer.echo(f"note: {note}", err=True)
    return judgements_of(table, annotator), {}
