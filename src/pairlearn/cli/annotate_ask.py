"""``pairlearn annotate ask``: a model judges the pairs of a project.

Exit codes: 0 every pair is judged, 1 the model or its endpoint failed, 2 the request was
wrong, 3 a limit ended the run before its last pair; judgements are kept in every case, and
the same command goes on from there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlearn.cli.refusals import refusing

if TYPE_CHECKING:
    from pairlearn.annotate.models import (
        Budget,
        ChatEndpoint,
        Filled,
        Pace,
        PairToJudge,
        Seat,
    )
    from pairlearn.annotate.models.judging import Judge
    from pairlearn.annotate.store import Store

__all__ = ["ask"]

FAILED, LIMITED, INTERRUPTED = 1, 3, 130
CACHE = "model-answers.sqlite"


class Per(StrEnum):
    """What is asked about."""

    pair = "pair"
    item = "item"


@dataclass(frozen=True)
class Asking:
    """What to ask: a function, or a model at an endpoint."""

    function: str | None
    endpoint: str | None
    model_name: str | None
    key_env: str | None
    per: Per
    least_mass: float
    alternatives: int
    timeout: float
    retries: int
    plain_http: bool

    def check(self) -> None:
        """Refuse what does not go together."""
        if (self.function is None) == (self.endpoint is None):
            raise ValueError("give either --model module:function or --endpoint URL")
        if self.endpoint is not None and self.model_name is None:
            raise ValueError("--endpoint needs --model-name, as the endpoint calls the model")
        for option, given in (("--model-name", self.model_name), ("--key-env", self.key_env)):
            if self.endpoint is None and given is not None:
                raise ValueError(f"{option} goes with --endpoint")

    def key(self) -> str | None:
        """The key, from the variable that holds it."""
        if self.key_env is None:
            return None
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            raise ValueError(f"--key-env {self.key_env}: no such variable, or it is empty")
        return key


def ask(
    project: Annotated[Path, typer.Argument(help="The project's folder.")],
    model: Annotated[
        str | None, typer.Option(help="A Python function, as module:function.")
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="Base URL of the chat protocol, such as https://…/v1.")
    ] = None,
    model_name: Annotated[str | None, typer.Option(help="The model at the endpoint.")] = None,
    key_env: Annotated[
        str | None, typer.Option(help="Environment variable with the endpoint's key.")
    ] = None,
    per: Annotated[
        Per, typer.Option(help="Ask about pairs, in both orders; or items once, for less.")
    ] = Per.pair,
    name: Annotated[
        str | None, typer.Option(help="Of the annotator; the model's if not given.")
    ] = None,
    pairs: Annotated[int | None, typer.Option(help="Judge at most so many now.", min=1)] = None,
    max_requests: Annotated[
        int | None, typer.Option(help="Ask at most so often in this run.", min=0)
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Spend at most so much in this run; needs prices.", min=0)
    ] = None,
    price_in: Annotated[float, typer.Option(help="Of a million prompt tokens.", min=0)] = 0.0,
    price_out: Annotated[float, typer.Option(help="Of a million answer tokens.", min=0)] = 0.0,
    rpm: Annotated[float | None, typer.Option(help="Requests per minute, at most.")] = None,
    concurrent: Annotated[
        int | None, typer.Option(help="At a time; 4, and 1 for a function.", min=1, max=256)
    ] = None,
    least_mass: Annotated[
        float, typer.Option(help="Less probability of answers understood: “can't say”.")
    ] = 0.5,
    alternatives: Annotated[int, typer.Option(help="Tokens to see (top_logprobs).")] = 20,
    timeout: Annotated[float, typer.Option(help="Seconds for one request.")] = 60.0,
    retries: Annotated[int, typer.Option(help="Of a request that failed.", min=0, max=20)] = 4,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Allow http:// beyond this machine.")
    ] = False,
    cache: Annotated[
        Path | None, typer.Option(help=f"File of answers; PROJECT/{CACHE} if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing: see exit code.")] = False,
) -> None:
    """Have a model judge the pairs of a project, as one of its annotators.

    Items are sent to the endpoint. Run again after an interruption or a limit: what is
    judged stays, and what an endpoint answered is not asked again.

    \b
    A function judges pairs or, with --per item, items. None is “can't say”.
      f(left, right) -> (similarity, difference)
      f(item) -> P(positive)

    \b
    What an item is depends on the project:
      table   dict(item.rows)["vibration"] is a cell, as text
      text    item.text
      image   item.image_path
      all     item.kind and item.title, its id

    \b
    Examples:
      pairlearn annotate ask pumps --model mymodel:judge
      pairlearn annotate ask pumps --endpoint http://127.0.0.1:8000/v1 --model-name small
      pairlearn annotate ask pumps --endpoint https://api.example.com/v1 --model-name large \\
        --key-env API_KEY --per item --rpm 60 --max-cost 2 --price-in 0.15 --price-out 0.6

    Exit codes: 0 all judged, 1 the model failed, 2 wrong request, 3 a limit was reached.
    """  # noqa: D301
    from pairlearn.annotate.models import Budget, Pace, Seat
    from pairlearn.annotate.project import Project
    from pairlearn.annotate.store import Store

    asking = Asking(
        model, endpoint, model_name, key_env, per, least_mass, alternatives, timeout, retries,
        plain_http,
    )  # fmt: skip
    with refusing("annotate ask"), ExitStack() as open_files:
        asking.check()
        budget = Budget(
            max_requests=max_requests, max_cost=max_cost, price_in=price_in, price_out=price_out
        )
        pace = Pace(rpm)
        store = open_files.enter_context(Store.open(Project.load(project)))
        who = name or model_name or str(model)
        seat = Seat(store, who)
        open_pairs = seat.open_pairs()
        chosen = open_pairs if pairs is None else open_pairs[:pairs]
        path = cache or project / CACHE
        judge, source = _judge(asking, store, budget, pace, path, open_files)
        filled = _run(chosen, judge, seat, pace, concurrent or (4 if source else 1))
    left = len(open_pairs) - len(filled.judgements)
    _show(_report(filled, who, per, left, budget, source), as_json, quiet)
    if filled.error is not None:
        typer.echo(f"pairlearn annotate ask: {filled.error}", err=True)
        raise typer.Exit(FAILED)
    if filled.stopped:
        raise typer.Exit(INTERRUPTED if filled.stopped == "interrupted" else LIMITED)


def _judge(
    asking: Asking,
    store: Store,
    budget: Budget,
    pace: Pace,
    cache: Path,
    open_files: ExitStack,
) -> tuple[Judge, ChatEndpoint | None]:
    from pairlearn.annotate import models

    view = store.items.view
    if asking.endpoint is None:
        function = _limited(models.find_function(str(asking.function)), budget, pace)
        if asking.per is Per.pair:
            return models.by_pairs(models.pair_model(function), view), None
        return models.by_items(models.item_model(function), view), None
    endpoint = models.ChatEndpoint(
        asking.endpoint,
        str(asking.model_name),
        open_files.enter_context(models.AnswerCache(cache)),
        key=asking.key(),
        plain_http=asking.plain_http,
        pace=pace,
        budget=budget,
        timeout=asking.timeout,
        retries=asking.retries,
        alternatives=asking.alternatives,
    )
    words = models.Wording.of(store.project)
    if asking.per is Per.pair:
        pair_model = models.chat_pair_model(endpoint, words, asking.least_mass)
        return models.by_pairs(pair_model, view), endpoint
    item_model = models.chat_item_model(endpoint, words, asking.least_mass)
    return models.by_items(item_model, view), endpoint


def _limited(function: Callable[..., Any], budget: Budget, pace: Pace) -> Callable[..., Any]:
    """The function, each call counted and in its turn."""

    def call(*items: Any) -> Any:
        pace.turn()
        budget.settle(budget.reserve(0, 0), (0, 0))
        return function(*items)

    call.__name__ = getattr(function, "__name__", "the model")
    return call


def _run(
    pairs: list[PairToJudge],
    judge: Judge,
    seat: Seat,
    pace: Pace,
    concurrent: int,
) -> Filled:
    from pairlearn.annotate.models import fill

    with _bar(len(pairs)) as progress:
        return fill(
            pairs, judge, seat.keep, concurrent=concurrent, stop=pace.stop, progress=progress
        )


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = "judging", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=total)
        yield lambda done: bars.update(task, completed=done)


def _report(
    filled: Filled, who: str, per: Per, left: int, budget: Budget, endpoint: ChatEndpoint | None
) -> dict[str, Any]:
    return {
        "annotator": who,
        "per": per.value,
        **filled.summary(),
        "left": left,
        "requests": budget.requests,
        "cached": 0 if endpoint is None else endpoint.cached,
        "retried": 0 if endpoint is None else endpoint.retried,
        "prompt_tokens": budget.prompt_tokens,
        "completion_tokens": budget.completion_tokens,
        "cost": budget.spent,
        "stopped": filled.stopped,
    }


def _show(report: dict[str, Any], as_json: bool, quiet: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report))
        return
    if quiet:
        return
    typer.echo(
        f"{report['annotator']}: {report['judged']:,} pairs judged, {report['cant_say']:,} "
        f"“can't say”, {report['left']:,} left"
    )
    if report["position_bias"] is not None:
        typer.echo(
            f"  position bias {report['position_bias']:+.3f} towards the second item, averaged "
            f"out; {report['infeasible']:,} infeasible"
        )
    typer.echo(
        f"  {report['requests']:,} requests, {report['cached']:,} answers from disk, "
        f"{report['retried']:,} sent again, cost {report['cost']:.4g}"
    )
    if report["stopped"]:
        typer.echo(f"  stopped: {report['stopped']}; the same command goes on from here")
