"""``pairlearn annotate``: make projects and links, and steer what is under way."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pairlearn.cli.command import Command, Output, counted, new_app
from pairlearn.cli.options import Json, Seed, argument, option, parse_names
from pairlearn_studio.cli import ask, exchange, serve
from pairlearn_studio.cli.exchange import ProjectFolder, opened

if TYPE_CHECKING:
    from pairlearn_studio import Store
    from pairlearn_studio.overview import AnnotatorOverview
    from pairlearn_studio.records import Annotator

app = new_app(
    name="annotate",
    help="Collect judgements of pairs from people and models.",
    no_args_is_help=True,
)
ADDRESS = "http://127.0.0.1:8337"
COLUMNS = (
    "don't fit: s and c that no posteriors produce; drift: mean s of the last third less that of "
    "the first, in standard errors; within ±3 it can be chance; (!): deserves a look"
)


@app.command(cls=Command)
def init(
    project: Annotated[Path, argument("Folder to create; it must not exist.")],
    items: Annotated[Path, argument("Table (.csv, .parquet), or folder of images or texts.")],
    *,
    pairs: Annotated[int | None, option("Pairs to judge.", default="500", min=1)] = None,
    annotators: Annotated[str, option("Names, separated by commas.", default=False)] = "",
    kind: Annotated[
        Literal["table", "image", "text"] | None,
        option("Kind of the items, if a folder has several."),
    ] = None,
    overlap: Annotated[
        float, option("Annotators per pair; 1.2 gives every fifth pair two.", min=1, max=1000)
    ] = 1,
    title: Annotated[str, option("Title of the pages.", default="the names of the classes")] = "",
    positive: Annotated[str, option("Name of the positive class.", default="positive")] = "",
    negative: Annotated[str, option("Name of the negative class.", default="negative")] = "",
    columns: Annotated[
        str, option("Columns of a table to show, separated by commas.", default="all")
    ] = "",
    answers: Annotated[
        Literal["graded", "each", "exact"],
        option(
            "graded: ten answers in words; each: how likely each of the two is; exact: "
            "similarity and difference, as two numbers."
        ),
    ] = "graded",
    hide_ids: Annotated[
        bool, option("Do not show the ids of items to annotators.", "--hide-ids")
    ] = False,
    positive_means: Annotated[
        str, option("Definition of the positive class, which annotators read.", default=False)
    ] = "",
    negative_means: Annotated[
        str, option("Definition of the negative class, which annotators read.", default=False)
    ] = "",
    class_: Annotated[
        list[str] | None,
        option(
            "A class, as NAME or NAME=DEFINITION; repeat it for each of three or more classes.",
            "--class",
        ),
    ] = None,
    about: Annotated[
        list[str] | None,
        option("A set of classes to ask about, such as cat|dog.", default="proposed by a model"),
    ] = None,
    same: Annotated[
        float, option("Share of pairs asked “of the same kind?”, with classes.", min=0, max=1)
    ] = 0.0,
    labels: Annotated[
        bool, option("Let annotators also name the classes of both items.", "--labels")
    ] = False,
    language: Annotated[
        Literal["en", "de", "fr"], option("Language of the annotator's page.")
    ] = "en",
    seed: Seed = 0,
    address: Annotated[str, option("URL of the app.")] = ADDRESS,
    as_json: Json = False,
) -> Output:
    """Make a project from items: the pairs to judge, the questions, an empty store.

    For example:
      pairlearn annotate init pumps pumps.csv --pairs 300 --positive "will fail"
      pairlearn annotate init cats photos/ --overlap 2 --annotators ann,bob,cy
      pairlearn annotate init mails letters/ --positive angry --negative calm \\
        --positive-means "The writer wants something to change."
      pairlearn annotate init birds photos/ --class "tit=small, short bill" \\
        --class "finch=small, thick bill" --class sparrow

    Exit codes: 0 done, 2 wrong request or unusable file.
    """  # noqa: D301
    from pairlearn_studio import Store
    from pairlearn_studio.changes import check_name
    from pairlearn_studio.creating import create_project, describe_fit, files_left_out

    names, address = parse_names(annotators), _check_address(address)
    for name in names:
        check_name(name)
        if names.count(name) > 1:
            raise ValueError(f"--annotators names {name!r} twice: give each annotator one name")
    named = [one.partition("=") for one in class_ or ()]
    made, token = create_project(
        project, items, kind=kind, pairs=pairs, seed=seed, overlap=overlap,
        title=title, positive_name=positive, negative_name=negative,
        columns=tuple(parse_names(columns)), answers=answers, hide_ids=hide_ids,
        positive_means=positive_means, negative_means=negative_means,
        language=language, about=tuple(about or ()), same_share=same, labels=labels,
        classes={one.strip(): means.strip() for one, _, means in named},
    )  # fmt: skip
    with Store.open(made) as store:
        added = store.add_annotators(names) if names else []
        count = len(store.items)
    address = f"{address}/{made.folder.resolve().name}"
    links = {who.name: f"{address}/a/{key}" for who, key in added}
    data = {
        "project": str(made.folder),
        "kind": made.kind,
        "items": count,
        "pairs": made.plan.pairs,
        "overlap": made.overlap,
        "supervisor": f"{address}/s/{token}",
        "links": links,
        "fit": describe_fit(made),
    }
    text = [
        f"{made.folder}: {count:,} items, {made.plan.pairs:,} pairs, overlap {made.overlap:g}; "
        f"the questions are in {made.path}",
        f"  supervisor  {data['supervisor']}",
        *(f"  {name}  {link}" for name, link in links.items()),
        "keep these links: they are shown only once; `pairlearn annotate serve` opens the app",
        data["fit"],
    ]
    warnings: list[str] = []
    means = made.classes.values() or (made.positive_means, made.negative_means)
    if not all(means):
        options = "--class NAME=…" if made.classes else "--positive-means and --negative-means"
        warnings.append(
            f"the classes have no definitions: give {options}, or write them into {made.path}"
        )
    if others := files_left_out(items, made):
        listed = ", ".join(f"{number} {suffix}" for suffix, number in others.items())
        warnings.append(f"files in {items} that are no items of kind {made.kind}: {listed}")
    return Output(data, text, warnings=warnings)


@app.command(cls=Command)
def link(
    project: ProjectFolder,
    names: Annotated[list[str] | None, argument("Annotators: new ones, or see --renew.")] = None,
    *,
    renew: Annotated[bool, option("New links for existing annotators.", "--renew")] = False,
    supervisor: Annotated[bool, option("A new link for the supervisor.", "--supervisor")] = False,
    days: Annotated[
        float | None,
        option("Days after which these links expire.", default="never", min=0),
    ] = None,
    quota: Annotated[
        int | None,
        option("Maximum number of pairs for each of these annotators.", default="no limit", min=1),
    ] = None,
    address: Annotated[str | None, option("URL of the app.", default="where it is served")] = None,
    as_json: Json = False,
) -> Output:
    """Add annotators and print their links; each link is shown only once.

    Links begin with the address at which the project is served, or was last served. They end
    when they are renewed, with `retire`, or after --days.

    For example:
      pairlearn annotate link pumps ann bob
      pairlearn annotate link pumps ann --renew
      pairlearn annotate link pumps --supervisor --address https://studio.example

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from datetime import timedelta

    from pairlearn_studio.changes import now
    from pairlearn_studio.writer import served_at

    if not names and not supervisor:
        raise ValueError("give names of annotators, or --supervisor")
    folder = project.resolve().name
    address = served_at(project) if address is None else f"{_check_address(address)}/{folder}"
    address = address or f"{ADDRESS}/{folder}"
    expires_at = None if days is None else now(timedelta(days=days))
    links = {}
    with opened(project) as store:
        if names and renew:
            for who in [_find(store, name) for name in names]:
                token = store.renew_token(who.id, expires_at=expires_at, quota=quota)
                links[who.name] = f"{address}/a/{token}"
        elif names:
            for who, token in store.add_annotators(names, expires_at=expires_at, quota=quota):
                links[who.name] = f"{address}/a/{token}"
        if supervisor:
            links["supervisor"] = (
                f"{address}/s/{store.renew_supervisor_token(expires_at=expires_at)}"
            )
    return Output(links, [f"{name}  {link}" for name, link in links.items()])


@app.command(cls=Command)
def known(
    project: ProjectFolder,
    file: Annotated[
        Path,
        argument(
            "Table (.csv, .parquet) with the columns left, right and answer (such as “left "
            "surely” or “alike”), and optionally use (example, practice or, by default, check) "
            "and why."
        ),
    ],
    *,
    share: Annotated[
        float, option("Share of checks among the pairs that annotators judge.", min=0.001, max=1)
    ] = 0.05,
    as_json: Json = False,
) -> Output:
    """Set the pairs whose answers are known, replacing those set before.

    For example:
      pairlearn annotate known pumps known.csv
      pairlearn annotate known pumps known.csv --share 0.1

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn_studio import Store
    from pairlearn_studio.items import read_columns
    from pairlearn_studio.records import read_known

    columns = read_columns(file, "known pairs", "left", "right", "answer")
    cells = zip(*columns.values(), strict=True)
    rows = [{name: cell for name, cell in zip(columns, row, strict=True) if cell} for row in cells]
    with opened(project) as store:
        pairs = read_known(rows, f"{file}, row")
        for row, pair in enumerate(pairs, 1):
            store.check_items(pair.left, pair.right, place=f"{file}, row {row}: ")
        changed = replace(store.project, known=pairs, known_share=share)
    Store.open(changed).close()  # adds the checks to the pairs
    changed.save()
    counts = {use: len(changed.known_for(use)) for use in ("example", "practice", "check")}
    text = ", ".join(f"{number} {use}" for use, number in counts.items())
    return Output(counts, [f"{changed.path}: {text}; restart a running server to use them"])


@app.command(cls=Command)
def retire(
    project: ProjectFolder,
    names: Annotated[list[str], argument("Annotators.")],
) -> None:
    """Retire annotators: their answers are kept, and their open pairs go to the others.

    For example:
      pairlearn annotate retire pumps bob

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    with opened(project) as store:
        people = [_find(store, name) for name in dict.fromkeys(names)]
        for who in people:
            if not who.active:
                raise ValueError(f"{who.name!r} has retired already")
        for who in people:
            store.retire(who.id)


@app.command(cls=Command)
def assign(
    project: ProjectFolder,
    file: Annotated[
        Path | None,
        argument("Table (.csv, .parquet) of left, right and annotator.", show_default="show them"),
    ] = None,
    *,
    as_json: Json = False,
) -> Output:
    """Show who judges which pairs, or give pairs of the plan to annotators.

    Annotators get their pairs of the file first and keep them. All other open pairs are
    reassigned, so that all annotators have about equally many.

    For example:
      pairlearn annotate assign pumps > who.csv
      pairlearn annotate assign pumps who.csv

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn.cli.reading import in_file
    from pairlearn_studio.items import read_columns

    with opened(project) as store:
        if file is not None:
            columns = read_columns(file, "assignments", "left", "right", "annotator")
            named = (columns[name] for name in ("left", "right", "annotator"))
            with in_file(file):
                store.assign(list(zip(*named, strict=True)))
        rows = store.assignments()
    names = ("left", "right", "annotator", "answered")
    data = [dict(zip(names, (*row[:3], bool(row[3])), strict=True)) for row in rows]
    if file is not None:
        return Output(data, [f"{counted(len(columns['left']), 'pair')} assigned"])
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([names, *(one.values() for one in data)])
    return Output(data, [lines.getvalue().rstrip("\n")])


@app.command(cls=Command)
def extend(
    project: ProjectFolder,
    *,
    pairs: Annotated[int, option("Pairs to add.", min=1)] = 50,
    as_json: Json = False,
) -> Output:
    """Add random pairs to a project, even while people are answering.

    New pairs go to the annotators with the fewest; earlier assignments do not change.

    For example:
      pairlearn annotate extend pumps --pairs 50

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    with opened(project) as store:
        planned = store.extend(pairs)
    data = {"project": str(project), "added": pairs, "pairs": planned}
    return Output(data, [f"{project}: {pairs:,} pairs added, {planned:,} in all"])


@app.command(cls=Command)
def pause(project: ProjectFolder) -> None:
    """Give annotators no further pairs; the pair that they are judging is still stored.

    For example:
      pairlearn annotate pause pumps

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    with opened(project) as store:
        store.pause(True)


@app.command(cls=Command)
def resume(project: ProjectFolder) -> None:
    """Continue a project that was paused.

    For example:
      pairlearn annotate resume pumps

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    with opened(project) as store:
        store.pause(False)


@app.command(cls=Command)
def status(
    project: ProjectFolder,
    *,
    as_json: Json = False,
) -> Output:
    """Show the progress of a project, how its annotators work, and the stored forecast.

    The forecast and how annotators answer are learnt while the project is served.

    For example:
      pairlearn annotate status pumps
      pairlearn annotate status pumps --json | jq '.annotators[] | .words'

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn.annotators import in_words

    with opened(project) as store:
        data = store.status(store.answers())
    line = (
        "{title}: {answers:,} answers to {pairs_answered:,} of {pairs:,} pairs of {items:,} items, "
        "{cant_say:,} can't say, {infeasible:,} infeasible"
    )
    text = [line.format(**data) + ("; paused" if data["paused"] else "")]
    text += [_overview(data["annotators"])] if data["annotators"] else []
    for row in data["annotators"]:
        notes = [in_words([phrase]) for phrase in row.flags]
        counts = f"{row.right} of {row.known} known pairs right"
        if row.known and not any(counts in note for note in notes):
            notes.insert(0, counts)
        if notes:
            text.append(f"{row.annotator.name}: {'; '.join(notes)}")
    if (alpha := data["agreement"]["difference"]) == alpha:
        text.append(f"agreement on shared pairs: Krippendorff's alpha {alpha:.2f} for c")
    if data["agreement"]["kappas"]:
        text.append("least agreement: {}, {}: kappa {:.2f}".format(*data["agreement"]["kappas"][0]))
    if outlook := data["forecast"]:
        text.append(_outlook(outlook, data["forecast_is_current"]))
    return Output(data, text)


def _outlook(outlook: dict[str, Any], current: bool) -> str:
    """The stored forecast as a line."""
    if "needs" in outlook:
        return f"forecast: {outlook['needs']}"
    (value, low, high), gain = outlook["now"], 100 * outlook["gain"]
    return (
        f"forecast{'' if current else ' (of an earlier state)'}: accuracy {value:.1%} "
        f"({low:.1%} to {high:.1%}) with {outlook['pairs']} pairs; the next 50 are expected to add "
        f"{f'{gain:.1f} points' if gain >= 0.05 else 'nothing'}. {outlook['sentence']}"
    )


def _overview(rows: list[AnnotatorOverview]) -> Any:
    from rich.table import Table

    from pairlearn_studio.overview import format_number

    table = Table(box=None, header_style="bold", pad_edge=False, caption=COLUMNS)
    table.caption_justify, table.caption_style = "left", ""
    # Two-line headers, so that the table fits a terminal of 80 columns.
    table.add_column("annotator")
    for name in ("done", "can't\nsay", "seconds", "don't\nfit", "drift"):
        table.add_column(name, justify="right")
    table.add_column("how they answer")
    for row in rows:
        table.add_row(
            row.annotator.name + (f" ({row.annotator.note})" if row.annotator.note else ""),
            f"{row.done}/{row.total}",
            str(row.cant_say),
            format_number(row.median_seconds, ".1f"),
            format_number(row.infeasible, ".0%"),
            format_number(row.drift_z, "+.1f"),
            row.words + (" (!)" if row.doubt else ""),
        )
    return table


def _check_address(address: str) -> str:
    """The URL that links begin with."""
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"--address is {address!r}: give one such as https://studio.example")
    return address.rstrip("/")


def _find(store: Store, name: str) -> Annotator:
    annotators = {annotator.name: annotator for annotator in store.annotators()}
    if name not in annotators:
        names = ", ".join(annotators) or "none"
        raise ValueError(f"there is no annotator {name!r}; there are {names}")
    return annotators[name]


for part in (serve, exchange, ask):
    app.add_typer(part.app)
