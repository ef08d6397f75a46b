"""``pairlearn annotate ask``: a model judges the pairs of a project.

However a run ends, its judgements are kept, and the same command continues it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairlearn.cli.command import INTERRUPTED, Output, command
from pairlearn.cli.options import OptionalCount
from pairlearn.progress import bar
from pairlearn_studio.cli.exchange import opened

if TYPE_CHECKING:
    from pairlearn_studio.ask import AnswerCache, Budget, ChatEndpoint, Pace
    from pairlearn_studio.judges import Judge
    from pairlearn_studio.store import Store

FAILED, LIMITED = 1, 3
CACHE = "model-answers.sqlite"
Price = Annotated[float, typer.Option(min=0)]


@dataclass(frozen=True)
class Asking:
    """The model to ask: a function, or a model at an endpoint.

    Parameters
    ----------
    model
        A Python function, as module:function.
    endpoint
        Base URL of the chat protocol, such as https://…/v1.
    model_name
        The model at the endpoint.
    key_env
        Environment variable with the endpoint's key.
    per
        Ask about each pair, in both orders; or about each item once, which costs less.
    one_order
        Ask about each pair in one order only: half the cost, and the position bias stays.
    way
        How answers are read: from the probabilities of tokens, from probabilities that the model
        states, or from several samples. [default: the first that works]
    samples
        Replies to each question, if answers are read from samples.
    answer_tokens
        Most tokens of a reply that is not one word, thinking included.
    least_mass
        Below this probability of recognised answers, a pair is skipped.
    timeout
        Seconds for one request.
    retries
        How often a failed request is sent again.
    plain_http
        Allow http:// beyond this machine.
    """

    model: str | None = None
    endpoint: str | None = None
    model_name: str | None = None
    key_env: str | None = None
    per: Literal["pair", "item"] = "pair"
    one_order: bool = False
    way: Literal["logprobs", "stated", "samples"] | None = None
    samples: Annotated[int, typer.Option(min=1, max=100)] = 5
    answer_tokens: Annotated[int, typer.Option(min=1)] = 2000
    least_mass: Annotated[float, typer.Option(min=0, max=1)] = 0.5
    timeout: float = 60.0
    retries: Annotated[int, typer.Option(min=0, max=20)] = 4
    plain_http: bool = False

    def check(self) -> None:
        """Refuse contradicting options."""
        if (self.model is None) == (self.endpoint is None):
            raise ValueError("give either --model module:function or --endpoint URL")
        if self.endpoint is not None and self.model_name is None:
            raise ValueError("--endpoint needs --model-name, as the endpoint calls the model")
        for option, value in (("--model-name", self.model_name), ("--key-env", self.key_env)):
            if self.endpoint is None and value is not None:
                raise ValueError(f"{option} goes with --endpoint")

    def open_endpoint(self, cache: AnswerCache, budget: Budget, pace: Pace) -> ChatEndpoint:
        """The endpoint, with the key from its environment variable."""
        from pairlearn_studio.ask import ChatEndpoint

        key = None if self.key_env is None else os.environ.get(self.key_env, "").strip()
        if key == "":
            raise ValueError(f"--key-env {self.key_env}: no such variable, or it is empty")
        return ChatEndpoint(
            str(self.endpoint), str(self.model_name), cache, key=key, plain_http=self.plain_http,
            pace=pace, budget=budget, timeout=self.timeout, retries=self.retries, way=self.way,
            samples=self.samples, answer_tokens=self.answer_tokens,
        )  # fmt: skip

    def judge(
        self, store: Store, endpoint: ChatEndpoint | None, budget: Budget, pace: Pace
    ) -> Judge:
        """The judge of a store's pairs."""
        from pairlearn_studio import ask

        by_pair, view = self.per == "pair", store.items.view
        model: Any
        if endpoint is not None:
            chat_model = ask.chat_pair_model if by_pair else ask.chat_item_model
            model = chat_model(endpoint, ask.Wording.of(store.project, view), self.least_mass)
        else:
            function = ask.find_function(str(self.model))
            model = (ask.pair_model if by_pair else ask.item_model)(function)
            model = _limited(model, budget, pace)
        if by_pair:
            return ask.by_pairs(model, view, both_orders=not self.one_order)
        return ask.by_items(model, view)


@command(
    "annotate ask",
    Asking,
    quiet="Print nothing.",
    exits="0 all judged or skipped, 1 the model failed, 3 a limit was reached",
)
def ask(
    asking: Asking,
    project: Path,
    *,
    name: str | None = None,
    pairs: OptionalCount = None,
    max_requests: Annotated[int | None, typer.Option(min=0)] = None,
    max_cost: Annotated[float | None, typer.Option(min=0)] = None,
    price_in: Price = 0.0,
    price_out: Price = 0.0,
    rpm: float | None = None,
    concurrent: Annotated[int | None, typer.Option(min=1, max=256)] = None,
    cache: Path | None = None,
) -> Output:
    """Have a model judge the pairs of a project, as one of its annotators.

    Items are sent to the endpoint. Run again after an interruption or a limit: judgements
    are kept, and no question that an endpoint answered is asked again. A pair that the model
    refuses or whose answer is not understood is skipped and listed. People still judge every
    pair, unless the project counts models (init --models-count).

    Parameters
    ----------
    name
        Name of the annotator. [default: the model's]
    pairs
        Pairs to judge in this run, at most.
    max_requests
        Requests in this run, at most, without those sent again.
    max_cost
        Cost of this run, at most; needs prices.
    price_in
        Price of a million prompt tokens.
    price_out
        Price of a million answer tokens.
    rpm
        Requests per minute, at most.
    concurrent
        Requests at a time. [default: 4, and 1 for a function]
    cache
        File that keeps the answers. [default: PROJECT/model-answers.sqlite]

    A function judges pairs or, with --per item, items. None means “can't say”.
      f(left, right) -> (similarity, difference)
      f(item) -> P(positive)

    Items depend on the project:
      table   dict(item.rows)["vibration"] is a cell, as text
      text    item.text
      image   item.image_path
      all     item.kind and item.title, its id

    For example:
      pairlearn annotate ask pumps --model mymodel:judge
      pairlearn annotate ask pumps --model-name small \\
        --endpoint http://127.0.0.1:8000/v1
      pairlearn annotate ask pumps --model-name large \\
        --endpoint https://api.example.com/v1 --key-env API_KEY --per item \\
        --rpm 60 --max-cost 2 --price-in 0.15 --price-out 0.6
    """  # noqa: D301
    from pairlearn_studio.ask import AnswerCache, Budget, Pace, Seat, fill

    asking.check()
    budget = Budget(
        max_requests=max_requests, max_cost=max_cost, price_in=price_in, price_out=price_out
    )
    pace, endpoint = Pace(rpm), None
    who = name or asking.model_name or str(asking.model)
    with ExitStack() as open_files:
        store = open_files.enter_context(opened(project))
        seat = Seat(store, who)
        open_pairs = seat.open_pairs()
        if asking.endpoint is not None:
            answers = open_files.enter_context(AnswerCache(cache or project / CACHE))
            endpoint = asking.open_endpoint(answers, budget, pace)
        judge = asking.judge(store, endpoint, budget, pace)
        chosen = open_pairs if pairs is None else open_pairs[:pairs]
        with bar("judging", len(chosen)) as progress:
            filled = fill(
                chosen, judge, seat.keep, seat.skip,
                concurrent=concurrent or (4 if endpoint else 1), proven=seat.proven,
                stop=pace.stop, progress=progress or (lambda done: None),
            )  # fmt: skip
    report = {
        "annotator": who,
        "per": asking.per,
        "way": None if endpoint is None else endpoint.way,
        **filled.summary(),
        "left": len(open_pairs) - filled.done,
        "requests": budget.requests,
        "cached": 0 if endpoint is None else endpoint.cached,
        "retried": 0 if endpoint is None else endpoint.retried,
        "prompt_tokens": budget.prompt_tokens,
        "completion_tokens": budget.completion_tokens,
        "cost": budget.spent,
        "stopped": filled.stopped,
    }
    if filled.error is not None:
        return Output(report, [_summary(report)], error=str(filled.error), code=FAILED)
    code = {"": 0, "interrupted": INTERRUPTED}.get(filled.stopped, LIMITED)
    return Output(report, [_summary(report)], code=code)


def _limited(model: Callable[..., Any], budget: Budget, pace: Pace) -> Callable[..., Any]:
    """A model that keeps to the budget and the pace."""

    def call(*items: Any) -> Any:
        pace.turn()
        budget.settle(budget.reserve(0, 0), (0, 0))
        return model(*items)

    return call


def _summary(report: dict[str, Any]) -> str:
    skipped, orders = report["skipped"], report["orders"]
    line = (
        f"{{annotator}}: {{judged:,}} pairs judged, {{cant_say:,}} “can't say”, {len(skipped):,} "
        "skipped, {left:,} left"
    )
    if report["way"]:
        line += "; answers read from {way}"
    if orders:
        line += (
            "\n  {agreement:.0%} of {pairs:,} pairs judged alike in both orders; position bias "
            "{bias:+.3f} ± {standard_error:.3f} towards the second item (p = {p_value:.2g}), "
            "averaged out"
        ).format(**orders)
    line += (
        "\n  {infeasible:,} infeasible; {requests:,} requests, {cached:,} answers from disk, "
        "{retried:,} sent again, cost {cost:.4g}"
    )
    if report["stopped"]:
        line += "\n  stopped: {stopped}; the same command goes on from here"
    lines = [f"\n  skipped {one['left']}, {one['right']}: {one['reason']}" for one in skipped]
    return line.format(**report) + "".join(lines)
