"""``pairlearn annotate serve`` and ``demo``: the studio's web app."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from pairlearn.cli.command import command
from pairlearn.extras import missing_extra


@command("annotate serve", has_json=False, exits="0 ended by an interrupt")
def serve(
    projects: list[Path],
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8337,
    public: bool = False,
    url: str | None = None,
    webhook: str | None = None,
    webhook_key_env: str | None = None,
    trusted_proxy: list[str] | None = None,
    log_level: Literal["debug", "info", "warning", "error"] = "warning",
    log_json: bool = False,
    show: Annotated[bool, typer.Option("--open")] = False,
) -> None:
    """Serve the web app, to this machine only unless --public is given.

    A project has one server at a time; all other commands can run next to it.

    Parameters
    ----------
    projects
        Folders; each is served below its own name.
    host
        Address to listen at.
    public
        Let other machines reach it; links stay secret. A public address needs a proxy.
    url
        Address that people use, such as https://studio.example or, below a path,
        https://example.org/studio. [default: where it listens]
    webhook
        Address that is sent a JSON object when all pairs of a project are answered.
    webhook_key_env
        Environment variable with the key that signs what the webhook is sent.
    trusted_proxy
        Address of a proxy whose X-Forwarded-For is believed; may be given several times.
    log_level
        Least level that is logged; info logs requests.
    log_json
        Log lines of JSON.
    show
        Also print temporary links, which end with the server, and open the supervisor's.

    For example:
      pairlearn annotate serve pumps
      pairlearn annotate serve pumps --open
      pairlearn annotate serve pumps valves --webhook https://ci.example/judged
      pairlearn annotate serve pumps --host 0.0.0.0 --public \\
        --url https://studio.example
    """  # noqa: D301
    from pairlearn_studio import Project

    run = _server()
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

    def invite(links: dict[str, str]) -> None:
        _print_links(links)
        webbrowser.open(next(iter(links.values())))  # the supervisor's

    run(
        projects, host, port, public=public, url=url, webhook=webhook, webhook_key=key,
        trusted_proxies=trusted_proxy or (), log_level=log_level, log_json=log_json, ready=ready,
        invite=invite if show else None,
    )  # fmt: skip


def _server() -> Callable[..., None]:
    try:
        from pairlearn_studio.server import serve as run
    except ImportError as error:
        raise missing_extra("annotate", str(error.name), "the studio") from None
    return run


def _print_links(links: dict[str, str]) -> None:
    for name, link in links.items():
        typer.echo(f"  {name}  {link}", err=True)


@command("annotate demo", has_json=False, exits="0 ended by an interrupt")
def demo(
    project: Path = Path("studio-demo"),
    *,
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8337,
    show: Annotated[bool, typer.Option("--open/--no-open")] = True,
) -> None:
    """Try the studio: judge handwritten digits, with definitions, practice and known pairs.

    Parameters
    ----------
    project
        Folder to make; an existing one is served again.
    show
        Open the annotator's page in the browser.

    For example:
      pairlearn annotate demo
    """
    from pairlearn_studio import Store
    from pairlearn_studio.creating import make_demo

    run = _server()
    if not (project / "project.json").exists():
        with Store.open(make_demo(project)) as store:
            store.add_annotator("you")

    def invite(links: dict[str, str]) -> None:
        typer.echo(f"the project is in {project}; end with Ctrl-C", err=True)
        _print_links(links)
        if show:
            webbrowser.open(next(link for name, link in links.items() if name.endswith(" you")))

    run(project, port=port, invite=invite)
