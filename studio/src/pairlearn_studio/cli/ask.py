"""``pairlearn annotate ask``: a model judges the pairs of a project.

However a run ends, its judgements are kept, and the same command continues it.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pairlearn.cli.command import INTERRUPTED, Command, Output, new_app
from pairlearn.cli.options import Json, Quiet, option
from pairlearn.progress import bar
from pairlearn_studio.cli.exchange import ProjectFolder, opened

FAILED, LIMITED = 1, 3
CACHE = "model-answers.jsonl"
app = new_app()


@app.command(cls=Command)
def ask(
    project: ProjectFolder,
    *,
    model: Annotated[str | None, option("A Python function, as module:function.")] = None,
    endpoint: Annotated[
        str | None, option("Base URL of an OpenAI-compatible API, such as https://…/v1.")
    ] = None,
    model_name: Annotated[str | None, option("The model at the endpoint.")] = None,
    key_env: Annotated[str | None, option("Environment variable with the endpoint's key.")] = None,
    per: Annotated[
        Literal["pair", "item"],
        option("Ask about each pair, in both orders; or about each item once, which costs less."),
    ] = "pair",
    one_order: Annotated[
        bool,
        option(
            "Ask about each pair in one order only: half the cost, but the position bias remains.",
            "--one-order",
        ),
    ] = False,
    way: Annotated[
        Literal["logprobs", "stated", "samples"] | None,
        option(
            "How answers are read: from the probabilities of tokens, from probabilities that the "
            "model states, or from several samples.",
            default="the first that works",
        ),
    ] = None,
    samples: Annotated[
        int, option("Replies to each question, if answers are read from samples.", min=1, max=100)
    ] = 5,
    answer_tokens: Annotated[
        int, option("Maximum tokens of a reply longer than one word, reasoning included.", min=1)
    ] = 2000,
    timeout: Annotated[float, option("Seconds for one request.")] = 60.0,
    retries: Annotated[int, option("How often a failed request is repeated.", min=0, max=20)] = 4,
    plain_http: Annotated[
        bool, option("Allow http:// beyond this machine.", "--plain-http")
    ] = False,
    name: Annotated[str | None, option("Name of the annotator.", default="the model's")] = None,
    pairs: Annotated[int | None, option("Maximum number of pairs in this run.", min=1)] = None,
    max_requests: Annotated[
        int | None, option("Maximum number of requests in this run, without repeats.", min=0)
    ] = None,
    max_cost: Annotated[
        float | None, option("Maximum cost of this run; needs prices.", min=0)
    ] = None,
    price_in: Annotated[float, option("Price of a million prompt tokens.", min=0)] = 0.0,
    price_out: Annotated[float, option("Price of a million answer tokens.", min=0)] = 0.0,
    concurrent: Annotated[
        int | None,
        option("Requests at the same time.", default="4, and 1 for a function", min=1, max=256),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Output:
    """Have a model judge the pairs of a project, as one of its annotators.

    Items are sent to the endpoint. Run again after an interruption or a limit: judgements
    are kept, and no question that an endpoint answered is asked again. A pair that the model
    refuses or whose answer is not understood is skipped and listed. People still judge every
    pair, unless models_count is true in project.json.

    A function judges pairs or, with --per item, items. None means “can't say”.
      f(left, right) -> (similarity, difference)
      f(item) -> P(positive)
    In a project of several classes:
      f(left, right, about) -> (similarity, difference), or similarity where about is ""
      f(item) -> {class: probability}

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
        --max-cost 2 --price-in 0.15 --price-out 0.6

    Exit codes: 0 all judged or skipped, 1 the model failed, 2 wrong request or unusable file,
    3 a limit was reached.
    """  # noqa: D301
    from pairlearn_studio import ask as judging

    if (model is None) == (endpoint is None):
        raise ValueError("give either --model module:function or --endpoint URL")
    of_endpoints: dict[str, Any] = {"model-name": model_name, "key-env": key_env, "way": way}
    of_endpoints |= {"max-requests": max_requests, "max-cost": max_cost}
    for option_name, value in of_endpoints.items():
        if endpoint is None and value is not None:
            raise ValueError(f"--{option_name} goes with --endpoint")
    if endpoint is not None and model_name is None:
        raise ValueError("--endpoint needs --model-name, as the endpoint calls the model")
    key = None if key_env is None else os.environ.get(key_env, "").strip()
    if key == "":
        raise ValueError(f"--key-env {key_env}: no such variable, or it is empty")
    budget = judging.Budget(
        max_requests=max_requests, max_cost=max_cost, price_in=price_in, price_out=price_out
    )
    chat, by_pair = None, per == "pair"
    who = name or model_name or str(model)
    with opened(project) as store:
        seat = judging.Seat(store, who)
        open_pairs, view = seat.open_pairs(), store.items.view
        ask_model: Any
        if endpoint is not None:
            cache = judging.AnswerCache(project / CACHE)
            chat = judging.ChatEndpoint(
                endpoint, str(model_name), cache, key=key, plain_http=plain_http,
                budget=budget, timeout=timeout, retries=retries, way=way, samples=samples,
                answer_tokens=answer_tokens,
            )  # fmt: skip
            chat_model = judging.chat_pair_model if by_pair else judging.chat_item_model
            ask_model = chat_model(chat, judging.Wording.of(store.project, view))
        else:
            function = judging.find_function(str(model))
            ask_model = judging.pair_model(function)
            if not by_pair:
                ask_model = judging.item_model(function, store.project.classes)
        judge = judging.by_items(ask_model, view)
        if by_pair:
            judge = judging.by_pairs(ask_model, view, both_orders=not one_order)
        chosen = open_pairs if pairs is None else open_pairs[:pairs]
        with bar("judging", len(chosen)) as progress:
            filled = judging.fill(
                chosen, judge, seat.keep, seat.skip,
                concurrent=concurrent or (4 if chat else 1), proven=seat.proven,
                progress=progress or (lambda done: None),
            )  # fmt: skip
    report = {
        "annotator": who,
        "per": per,
        "way": None if chat is None else chat.way,
        **filled.summary(),
        "left": len(open_pairs) - filled.done,
        "requests": budget.requests,
        "cached": 0 if chat is None else chat.cached,
        "retried": 0 if chat is None else chat.retried,
        "prompt_tokens": budget.prompt_tokens,
        "completion_tokens": budget.completion_tokens,
        "cost": budget.spent,
        "stopped": filled.stopped,
    }
    if filled.error is not None:
        return Output(report, [_summary(report)], error=str(filled.error), code=FAILED)
    code = {"": 0, "interrupted": INTERRUPTED}.get(filled.stopped, LIMITED)
    return Output(report, [_summary(report)], code=code)


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
    line += "\n  {infeasible:,} infeasible"
    if report["way"]:
        line += (
            "; {requests:,} requests, {cached:,} answers from disk, {retried:,} sent again, "
            "cost {cost:.4g}"
        )
    if report["stopped"]:
        line += "\n  stopped: {stopped}; run the same command to continue"
    lines = [f"\n  skipped {one['left']}, {one['right']}: {one['reason']}" for one in skipped]
    return line.format(**report) + "".join(lines)
