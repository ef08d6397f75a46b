"""``pairlearn annotate``: collect judgements of pairs from people and models.

Exit codes: 0 all is well, 2 the request was wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairlearn.cli.annotate_ask import ask
from pairlearn.cli.annotate_exchange import backup, export, import_, label_studio, restore
from pairlearn.cli.options import JsonOption, ProjectArgument, SeedOption, tell
from pairlearn.cli.refusals import refusing
from pairlearn.extras import missing_extra

if TYPE_CHECKING:
    from pairlearn.studio import Store
    from pairlearn.studio.agreement import AnnotatorOverview

__all__ = ["app"]

app = typer.Typer(
    name="annotate",
    help="Collect judgements of pairs from people and models.",
    no_args_is_help=True,
)

ADDRESS = "http://127.0.0.1:8337"
NOT_RANDOM = (
    "pairs are chosen by a model, not at random: estimates need the inclusion weights, "
    "which `pairlearn annotate export` writes"
)


AddressOption = Annotated[
    str | None, typer.Option(help="Where the app is reached; as it is served if not given.")
]


@app.command()
def init(
    project: Annotated[Path, typer.Argument(help="Folder to make; it must not be there.")],
    items: Annotated[
        Path, typer.Argument(help="Table (.csv, .parquet), folder of images, or of texts.")
    ],
    pairs: Annotated[int | None, typer.Option(help="Pairs to judge; 500.", min=1)] = None,
    overlap: Annotated[int, typer.Option(help="Annotators of each pair.", min=1)] = 1,
    annotators: Annotated[str, typer.Option(help="Names, separated by commas.")] = "",
    title: Annotated[str, typer.Option(help="Of the pages.")] = "Which pairs are alike?",
    positive: Annotated[str, typer.Option(help="The positive class.")] = "positive",
    negative: Annotated[str, typer.Option(help="The negative class.")] = "negative",
    question_similarity: Annotated[str, typer.Option(help="In the annotator's words.")] = "",
    question_difference: Annotated[str, typer.Option(help="In the annotator's words.")] = "",
    help_text: Annotated[str, typer.Option(help="What annotators should know.")] = "",
    columns: Annotated[str, typer.Option(help="Of a table, to show; separated by commas.")] = "",
    kind: Annotated[
        Literal["table", "image", "text"] | None, typer.Option(help="Where a folder has both.")
    ] = None,
    mode: Annotated[
        Literal["uniform", "information"], typer.Option(help="How pairs are chosen.")
    ] = "uniform",
    seed: SeedOption = 0,
    address: Annotated[str, typer.Option(help="Where the app is reached.")] = ADDRESS,
    as_json: JsonOption = False,
) -> None:
    """Make a project from items: the pairs to judge, the questions, an empty store.

    \b
    Examples:
      pairlearn annotate init pumps pumps.csv --pairs 300 --positive "will fail"
      pairlearn annotate init cats photos/ --overlap 2 --annotators ann,bob,cy
      pairlearn annotate init mails letters/ --question-similarity "Both angry, or neither?"

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.studio import Store
    from pairlearn.studio.changes import check_name
    from pairlearn.studio.creating import create_project

    with refusing("annotate init"):
        people = list(dict.fromkeys(_names(annotators)))
        for name in people:
            check_name(name)
        made, token = create_project(
            project, items, kind=kind, pairs=pairs, seed=seed, mode=mode, overlap=overlap,
            title=title, positive_name=positive, negative_name=negative,
            question_similarity=question_similarity, question_difference=question_difference,
            help=help_text, columns=tuple(_names(columns)),
        )  # fmt: skip
        with Store.open(made) as store:
            added = store.add_annotators(people) if people else []
            count = len(store.items)
    links = {who.name: f"{address}/a/{key}" for who, key in added}
    report = {
        "project": str(made.folder),
        "kind": made.kind,
        "items": count,
        "pairs": made.plan.pairs,
        "overlap": made.overlap,
        "supervisor": f"{address}/s/{token}",
        "links": links,
    }
    if mode == "information" and not as_json:
        typer.echo(f"warning: {NOT_RANDOM}", err=True)
    tell(
        report, as_json,
        f"{made.folder}: {count:,} items, {made.plan.pairs:,} pairs, overlap {made.overlap}; "
        f"the questions are in {made.path}",
        f"  supervisor  {report['supervisor']}",
        *(f"  {name}  {one}" for name, one in links.items()),
        "keep these links, they are shown once; `pairlearn annotate serve` opens the app",
    )  # fmt: skip


@app.command()
def serve(
    project: ProjectArgument,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at.", min=1, max=65535)] = 8337,
    public: Annotated[
        bool, typer.Option("--public", help="Let other machines reach it; links stay secret.")
    ] = False,
    url: Annotated[
        str | None, typer.Option(help="Address that people use, such as https://studio.example.")
    ] = None,
) -> None:
    """Open the web app, on this machine alone unless --public says otherwise.

    A project has one server at a time; all other commands may run beside it.

    \b
    Examples:
      pairlearn annotate serve pumps
      pairlearn annotate serve pumps --host 0.0.0.0 --public --url https://studio.example

    Exit codes: 0 ended by an interrupt, 2 wrong request.
    """  # noqa: D301
    from pairlearn.studio import Project

    with refusing("annotate serve"):
        from pairlearn.studio.endpoint import is_loopback

        try:
            from pairlearn.studio.server import serve as run
        except ImportError as error:
            raise missing_extra("annotate", str(error.name), "the studio") from None
        if not public and not is_loopback(host):
            raise ValueError(f"--host {host} can be reached from other machines: add --public")
        description = Project.load(project)
        if description.plan.mode == "information":
            typer.echo(f"warning: {NOT_RANDOM}", err=True)
        run(
            project,
            host,
            port,
            public=public,
            url=url,
            ready=lambda address: typer.echo(
                f"{description.title}: {address}\n"
                "  each annotator needs a link: `pairlearn annotate link`; end with Ctrl-C",
                err=True,
            ),
        )


@app.command()
def link(
    project: ProjectArgument,
    names: Annotated[
        list[str] | None, typer.Argument(help="Annotators: new ones, or see --renew.")
    ] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="New links for annotators that are there.")
    ] = False,
    supervisor: Annotated[
        bool, typer.Option("--supervisor", help="A new link for the supervisor.")
    ] = False,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add annotators and print their links; each is shown once.

    Links have the address at which the project is being served, or was the last time.

    \b
    Examples:
      pairlearn annotate link pumps ann bob
      pairlearn annotate link pumps ann --renew
      pairlearn annotate link pumps --supervisor --address https://studio.example

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.studio import Project, Store
    from pairlearn.studio.backups import served_at

    with refusing("annotate link"):
        if not names and not supervisor:
            raise ValueError("give names of annotators, or --supervisor")
        address = (address or served_at(project) or ADDRESS).rstrip("/")
        with Store.open(Project.load(project)) as store:
            links = {}
            if names and renew:
                numbers = [_find(store, name) for name in names]
                for name, number in zip(names, numbers, strict=True):
                    links[name] = f"{address}/a/{store.renew_token(number)}"
            elif names:
                for who, token in store.add_annotators(names):
                    links[who.name] = f"{address}/a/{token}"
            if supervisor:
                links["supervisor"] = f"{address}/s/{store.renew_supervisor_token()}"
    tell(links, as_json, *(f"{name}  {one}" for name, one in links.items()))


@app.command()
def retire(
    project: ProjectArgument, names: Annotated[list[str], typer.Argument(help="Annotators.")]
) -> None:
    """End the part of annotators: their answers stay, their open pairs go to the others.

    \b
    Examples:
      pairlearn annotate retire pumps bob

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.studio import Project, Store

    with refusing("annotate retire"), Store.open(Project.load(project)) as store:
        for number in [_find(store, name) for name in names]:
            store.retire(number)


@app.command()
def status(project: ProjectArgument, as_json: JsonOption = False) -> None:
    """How far a project is, and how its annotators work.

    \b
    Examples:
      pairlearn annotate status pumps
      pairlearn annotate status pumps --json | jq '.annotators[] | .agreement'

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    import msgspec

    from pairlearn.studio import Project, Store
    from pairlearn.studio.export import judgements

    with refusing("annotate status"), Store.open(Project.load(project)) as store:
        rows, pairs, answers = store.overview(), store.pairs(), store.answers()
        said = [one for one in answers if not one.cant_say]
        report: dict[str, Any] = {
            "title": store.project.title,
            "kind": store.project.kind,
            "items": len(store.items),
            "pairs": len(pairs),
            "overlap": store.project.overlap,
            "mode": store.project.plan.mode,
            "answers": len(answers),
            "cant_say": len(answers) - len(said),
            "infeasible": judgements(said).infeasible if said else 0,
            "pairs_answered": len({one.pair for one in answers}),
            "annotators": msgspec.json.decode(msgspec.json.encode(rows)),  # NaN becomes null
        }
    tell(
        report, as_json,
        "{title}: {answers:,} answers to {pairs_answered:,} of {pairs:,} pairs of {items:,} items, "
        "{cant_say:,} can't say, {infeasible:,} infeasible".format(**report),
    )  # fmt: skip
    if rows and not as_json:
        _show(rows)


app.command()(backup)
app.command()(restore)
app.command()(export)
app.command("import")(import_)
app.command("label-studio")(label_studio)
app.command()(ask)


def _show(rows: list[AnnotatorOverview]) -> None:
    from rich.console import Console
    from rich.table import Table

    from pairlearn.studio.agreement import figure

    table = Table(box=None, header_style="bold", pad_edge=False)
    # In two lines, so that the table fits a terminal of 80 columns.
    names = ("done", "can't\nsay", "seconds", "don't\nfit", "|Δs|", "|Δc|", "same\nside", "drift")
    table.add_column("annotator")
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.annotator.name + (f" ({row.annotator.note})" if row.annotator.note else ""),
            f"{row.done}/{row.total}",
            str(row.cant_say),
            figure(row.median_seconds, ".1f"),
            figure(row.infeasible, ".0%"),
            figure(row.agreement.similarity_gap, ".2f"),
            figure(row.agreement.difference_gap, ".2f"),
            figure(row.agreement.same_sign, ".0%"),
            figure(row.drift.similarity_z, "+.1f"),
        )
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(
        "don't fit: s and c that no posteriors produce; |Δs|, |Δc|, same side: against others on "
        "the same pairs; drift: mean s of the last third less that of the first, in standard "
        "errors; within ±3 it can be chance"
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _find(store: Store, name: str) -> int:
    known = {one.name: one.id for one in store.annotators()}
    if name not in known:
        raise ValueError(f"there is no annotator {name!r}; there are {', '.join(known) or 'none'}")
    return known[name]
