"""``pairlearn annotate ask``: a model judges the pairs of a project.

Exit codes: 0 every pair is judged, 1 the model or its endpoint failed, 2 the request was
wrong, 3 a limit ended the run before its last pair; judgements are kept in every case, and
the same command goes on from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairlearn.cli.options import JsonOption, ProjectArgument, QuietOption, tell, with_options
from pairlearn.cli.refusals import refusing
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.studio.ask import AnswerCache, Budget, ChatEndpoint, Pace
    from pairlearn.studio.judges import Judge
    from pairlearn.studio.store import Store

__all__ = ["ask"]

FAILED, LIMITED, INTERRUPTED = 1, 3, 130
CACHE = "model-answers.sqlite"


@dataclass(frozen=True)
class Asking:
    """What to ask: a function, or a model at an endpoint."""

    model: Annotated[str | None, typer.Option(help="A Python function, as module:function.")] = None
    endpoint: Annotated[
        str | None, typer.Option(help="Base URL of the chat protocol, such as https://…/v1.")
    ] = None
    model_name: Annotated[str | None, typer.Option(help="The model at the endpoint.")] = None
    key_env: Annotated[
        str | None, typer.Option(help="Environment variable with the endpoint's key.")
    ] = None
    per: Annotated[
        Literal["pair", "item"],
        typer.Option(help="Ask about pairs, in both orders; or items once, for less."),
    ] = "pair"
    least_mass: Annotated[
        float, typer.Option(help="Less probability of answers understood: “can't say”.")
    ] = 0.5
    alternatives: Annotated[int, typer.Option(help="Tokens to see (top_logprobs).")] = 20
    timeout: Annotated[float, typer.Option(help="Seconds for one request.")] = 60.0
    retries: Annotated[int, typer.Option(help="Of a request that failed.", min=0, max=20)] = 4
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Allow http:// beyond this machine.")
    ] = False

    def check(self) -> None:
        """Refuse what does not go together."""
        if (self.model is None) == (self.endpoint is None):
            raise ValueError("give either --model module:function or --endpoint URL")
        if self.endpoint is not None and self.model_name is None:
            raise ValueError("--endpoint needs --model-name, as the endpoint calls the model")
        for option, given in (("--model-name", self.model_name), ("--key-env", self.key_env)):
            if self.endpoint is None and given is not None:
                raise ValueError(f"{option} goes with --endpoint")

    def open_endpoint(self, cache: AnswerCache, budget: Budget, pace: Pace) -> ChatEndpoint:
        """The endpoint, with the key from the variable that holds it."""
        from pairlearn.studio.ask import ChatEndpoint

        key = None if self.key_env is None else os.environ.get(self.key_env, "").strip()
        if key == "":
            raise ValueError(f"--key-env {self.key_env}: no such variable, or it is empty")
        return ChatEndpoint(
            str(self.endpoint), str(self.model_name), cache, key=key, plain_http=self.plain_http,
            pace=pace, budget=budget, timeout=self.timeout, retries=self.retries,
            alternatives=self.alternatives,
        )  # fmt: skip

    def judge(
        self, store: Store, endpoint: ChatEndpoint | None, budget: Budget, pace: Pace
    ) -> Judge:
        """What judges the pairs of a store."""
        from pairlearn.studio import ask

        words, view = ask.Wording.of(store.project), store.items.view
        if endpoint is not None:
            if self.per == "pair":
                return ask.by_pairs(ask.chat_pair_model(endpoint, words, self.least_mass), view)
            return ask.by_items(ask.chat_item_model(endpoint, words, self.least_mass), view)
        function = _limited(ask.find_function(str(self.model)), budget, pace)
        if self.per == "pair":
            return ask.by_pairs(ask.pair_model(function), view)
        return ask.by_items(ask.item_model(function), view)


@with_options(Asking)
def ask(
    asking: Asking,
    project: ProjectArgument,
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
    cache: Annotated[
        Path | None, typer.Option(help=f"File of answers; PROJECT/{CACHE} if not given.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
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
    from pairlearn.studio import Project, Store
    from pairlearn.studio.ask import AnswerCache, Budget, Pace, Seat, fill

    with refusing("annotate ask"), ExitStack() as open_files:
        asking.check()
        budget = Budget(
            max_requests=max_requests, max_cost=max_cost, price_in=price_in, price_out=price_out
        )
        pace, endpoint = Pace(rpm), None
        store = open_files.enter_context(Store.open(Project.load(project)))
        who = name or asking.model_name or str(asking.model)
        seat = Seat(store, who)
        open_pairs = seat.open_pairs()
        if asking.endpoint is not None:
            answers = open_files.enter_context(AnswerCache(cache or project / CACHE))
            endpoint = asking.open_endpoint(answers, budget, pace)
        judge = asking.judge(store, endpoint, budget, pace)
        chosen = open_pairs if pairs is None else open_pairs[:pairs]
        with bar("judging", len(chosen)) as progress:
            filled = fill(
                chosen, judge, seat.keep, concurrent=concurrent or (4 if endpoint else 1),
                stop=pace.stop, progress=progress or (lambda done: None),
            )  # fmt: skip
    report = {
        "annotator": who,
        "per": asking.per,
        **filled.summary(),
        "left": len(open_pairs) - len(filled.judgements),
        "requests": budget.requests,
        "cached": 0 if endpoint is None else endpoint.cached,
        "retried": 0 if endpoint is None else endpoint.retried,
        "prompt_tokens": budget.prompt_tokens,
        "completion_tokens": budget.completion_tokens,
        "cost": budget.spent,
        "stopped": filled.stopped,
    }
    if as_json or not quiet:
        tell(report, as_json, _shown(report))
    if filled.error is not None:
        typer.echo(f"pairlearn annotate ask: {filled.error}", err=True)
        raise typer.Exit(FAILED)
    if filled.stopped:
        raise typer.Exit(INTERRUPTED if filled.stopped == "interrupted" else LIMITED)


def _limited(function: Callable[..., Any], budget: Budget, pace: Pace) -> Callable[..., Any]:
    """The function, each call counted and in its turn."""

    def call(*items: Any) -> Any:
        pace.turn()
        budget.settle(budget.reserve(0, 0), (0, 0))
        return function(*items)

    call.__name__ = getattr(function, "__name__", "the model")
    return call


def _shown(report: dict[str, Any]) -> str:
    line = "{annotator}: {judged:,} pairs judged, {cant_say:,} “can't say”, {left:,} left"
    if report["position_bias"] is not None:
        line += (
            "\n  position bias {position_bias:+.3f} towards the second item, averaged out; "
            "{infeasible:,} infeasible"
        )
    line += (
        "\n  {requests:,} requests, {cached:,} answers from disk, {retried:,} sent again, "
        "cost {cost:.4g}"
    )
    if report["stopped"]:
        line += "\n  stopped: {stopped}; the same command goes on from here"
    return line.format(**report)
