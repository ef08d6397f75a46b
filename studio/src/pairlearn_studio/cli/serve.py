"""``pairlearn annotate serve`` and ``demo``: the studio's web app."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated, Literal

import typer

from pairlearn.cli.command import Command, new_app
from pairlearn.cli.options import argument, option

app = new_app()
Port = Annotated[int, option("Port to listen on.", min=1, max=65535)]


@app.command(cls=Command)
def serve(
    projects: Annotated[list[Path], argument("Folders; each is served below its own name.")],
    *,
    host: Annotated[str, option("Address to listen on.")] = "127.0.0.1",
    port: Port = 8337,
    public: Annotated[
        bool,
        option(
            "Let other machines reach the app. A public address needs a proxy.",
            "--public",
        ),
    ] = False,
    url: Annotated[
        str | None,
        option(
            "Address that people use, such as https://studio.example or, below a path, "
            "https://example.org/studio.",
            default="where it listens",
        ),
    ] = None,
    webhook: Annotated[
        str | None,
        option("Address that receives a JSON object when all pairs of a project are answered."),
    ] = None,
    webhook_key_env: Annotated[
        str | None,
        option("Environment variable with the key that signs messages to the webhook."),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        option("Address of a proxy whose X-Forwarded-For is trusted; may be given several times."),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        option("Lowest level that is logged; info logs requests."),
    ] = "warning",
    log_json: Annotated[bool, option("Log lines of JSON.", "--log-json")] = False,
) -> None:
    """Serve the web app, to this machine only unless --public is given.

    A project has one server at a time; all other commands can run next to it.

    For example:
      pairlearn annotate serve pumps
      pairlearn annotate serve pumps valves --webhook https://ci.example/judged
      pairlearn annotate serve pumps --host 0.0.0.0 --public \\
        --url https://studio.example

    Exit codes: 0 ended by an interrupt, 2 wrong request or unusable file.
    """  # noqa: D301
    from pairlearn_studio import Project
    from pairlearn_studio.server import serve as run

    loaded = [Project.load(folder) for folder in projects]
    key = "" if webhook_key_env is None else os.environ.get(webhook_key_env, "")
    if webhook_key_env is not None and not key:
        raise ValueError(f"--webhook-key-env {webhook_key_env}: no such variable, or it is empty")

    def ready(address: str) -> None:
        for project in loaded:
            typer.echo(f"{project.title}: {address}/{project.folder.resolve().name}", err=True)
        typer.echo(
            "  each annotator has their own link: `pairlearn annotate link PROJECT NAME` makes it, "
            "and --renew replaces it; end with Ctrl-C",
            err=True,
        )

    run(
        projects, host, port, public=public, url=url, webhook=webhook, webhook_key=key,
        trusted_proxies=trusted_proxy or (), log_level=log_level, log_json=log_json, ready=ready,
    )  # fmt: skip


@app.command(cls=Command)
def demo(
    project: Annotated[Path, argument("Folder to make; an existing one is served again.")] = Path(
        "studio-demo"
    ),
    *,
    port: Port = 8337,
    show: Annotated[
        bool, option("Open the annotator's page in the browser.", "--open/--no-open")
    ] = True,
) -> None:
    """Try the studio: judge handwritten digits, with definitions, practice and known pairs.

    For example:
      pairlearn annotate demo

    Exit codes: 0 ended by an interrupt, 2 wrong request or unusable file.
    """
    from pairlearn_studio import Project, Store
    from pairlearn_studio.creating import make_demo
    from pairlearn_studio.server import serve as run

    if not (project / "project.json").exists():
        with Store.open(make_demo(project)) as store:
            store.add_annotator("you")
    with Store.open(Project.load(project)) as store:
        you = f"a/{store.renew_token(1)}"
        links = {"you": you, "supervisor": f"s/{store.renew_supervisor_token()}"}

    def ready(address: str) -> None:
        typer.echo(f"the project is in {project}; end with Ctrl-C", err=True)
        for name, link in links.items():
            typer.echo(f"  {name}  {address}/{project.resolve().name}/{link}", err=True)
        if show:
            webbrowser.open(f"{address}/{project.resolve().name}/{you}")

    run(project, port=port, ready=ready)
