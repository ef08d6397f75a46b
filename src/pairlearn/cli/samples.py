"""``demo`` and ``simulate``: a walkthrough, and data to experiment with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pairlearn.cli import options as opt
from pairlearn.cli.command import Command, Output, baseline, new_app
from pairlearn.cli.options import FIGURES, argument, check_absent, option, parse_shares
from pairlearn.cli.reading import parse_classes
from pairlearn.progress import bar

app = new_app()
Source = Literal["gaussians", "moons", "digits", "breast-cancer"]


@app.command(cls=Command)
def demo(
    *,
    out: Annotated[Path, option("Where to write the figure.")] = Path("demo.png"),
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> Output:
    """Learn to tell even from odd digits, and measure the accuracy without labels.

    For example:
      pairlearn demo --seed 1 --out demo.png

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn.demo import METHODS, PRIOR, draw_demo, run_demo
    from pairlearn.io.sources import suffix_of
    from pairlearn.report.figures import save_figure

    suffix_of(out, "figures", FIGURES)
    with bar(f"training {len(METHODS)} models") as progress:
        result = run_demo(seed, progress)
    save_figure(draw_demo(result), out, json.dumps(result.to_dict()))
    rows = [
        f"{method:<20}  {accuracy:>13.3f}   {estimate}"
        for method, (accuracy, estimate) in result.accuracies.items()
    ]
    return Output(
        result.to_dict() | {"figure": out},
        [
            "scikit-learn's digits, even against odd; pairs at prior 0.3, no labels in training",
            f"prior estimated from similarities: {result.prior.value:.3f} "
            f"(95% interval {result.prior.low:.3f} to {result.prior.high:.3f})\n",
            f"{'method':<20}  test accuracy   estimated without labels (95% interval)",
            *rows,
            baseline(PRIOR),
            f"\nfigure: {out}",
        ],
    )


@app.command(cls=Command)
def simulate(
    folder: Annotated[Path, argument("Folder for the files, created if needed.")],
    *,
    source: Annotated[Source, option("Source of the items.", "--from")] = "gaussians",
    pairs: Annotated[int, option("Pairs to judge.", min=1)] = 1000,
    items: Annotated[
        int | None,
        option("Items; if fewer than two per pair, they recur.", default="two per pair", min=2),
    ] = None,
    prior: Annotated[float, option("Share of positive items.")] = 0.3,
    overlap: Annotated[
        float | None,
        option("Error of the best classifier at equal class frequencies.", default="the source's"),
    ] = None,
    annotators: Annotated[int, option("Number of annotators.", min=1)] = 1,
    annotator_prior: Annotated[
        float | None, option("Class prior that annotators assume.", default="the true one")
    ] = None,
    noise: Annotated[float, option("σ: judgements are multiplied by N(1, σ²) and clipped.")] = 0.0,
    missing: Annotated[float, option("Share of pairs with only one of the two answers.")] = 0.0,
    preference: Annotated[float, option("Share with only the likelier item named.")] = 0.0,
    repeated: Annotated[float, option("Share of pairs judged by a second annotator.")] = 0.0,
    also: Annotated[
        list[str] | None,
        option("KIND=SHARE: further statements, such as label=0.1; can be repeated."),
    ] = None,
    classes: Annotated[
        str | None,
        option(
            "Names of more than two classes, separated by commas, or their number.", default="two"
        ),
    ] = None,
    seed: opt.Seed = 0,
    format: Annotated[Literal["csv", "parquet"], option("Format of the tables.")] = "csv",
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> Output:
    """Simulate items and judged pairs, with the truth to compare with.

    Writes items, pairs and truth.csv (id, class, posterior) to FOLDER.

    For example:
      pairlearn simulate try
      pairlearn simulate moons --from moons --pairs 500 --prior 0.2 --noise 0.2
      pairlearn simulate cancer --from breast-cancer --annotators 3 --repeated 0.3
      pairlearn simulate animals --classes cat,dog,horse

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    import numpy as np

    from pairlearn.simulation import simulate as make

    check_absent(folder, f"items.{format}", f"pairs.{format}", "truth.csv", force=force)
    made = make(
        source, pairs=pairs, items=items, prior=prior, overlap=overlap, annotators=annotators,
        annotator_prior=annotator_prior, noise=noise, missing=missing, preference=preference,
        repeated=repeated, also=parse_shares(",".join(also)) if also else {},
        classes=_names(classes), seed=seed,
    )  # fmt: skip
    files = made.write(folder, format)
    p = made.posterior
    best = (p if made.names else np.stack([p, 1 - p], 1)).max(1)
    data: dict[str, Any] = {
        "files": [str(path) for path in files],
        "items": len(made.items),
        "judgements": len(made.pairs),
        "positive": None if made.names else int(made.positive.sum()),
        "classes": list(made.names),
        "best_accuracy": float(best.mean()),
    }
    of_two = " ({positive:,} positive)" * (not made.names)
    text = f"{{items:,}} items{of_two}, {{judgements:,}} judgements; the best possible accuracy is "
    text += "about {best_accuracy:.1%}"
    return Output(data, [text.format(**data), *(f"  {path}" for path in files)])


def _names(text: str | None) -> list[str] | tuple[str, ...]:
    """Names of classes, made up where there is a number of them."""
    from pairlearn.judgements.sets import groups

    names = parse_classes(text)
    return groups(names) if isinstance(names, int) else names or []
