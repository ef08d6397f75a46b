"""``demo`` and ``simulate``: a walkthrough, and data to experiment with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairlearn.cli.command import Output, baseline, command
from pairlearn.cli.options import FIGURES, Count, Seed, check_absent, check_suffix
from pairlearn.progress import bar


@command("demo")
def demo(*, out: Path = Path("demo.png"), seed: Seed = 0) -> Output:
    """Learn even from odd digits from 400 judged pairs, and say how well, without labels.

    Parameters
    ----------
    out
        Where to write the figure.

    For example:
      pairlearn demo --seed 1 --out demo.png
    """
    from pairlearn.demo import METHODS, PRIOR, draw_demo, run_demo
    from pairlearn.report.figures import save_figure

    check_suffix("--out", out, *FIGURES)
    with bar(f"training {len(METHODS)} models") as progress:
        result = run_demo(seed, progress)
    save_figure(draw_demo(result), out, json.dumps(result.to_dict()))
    rows = [f"{row.method:<20}  {row.accuracy:>13.3f}   {row.estimate}" for row in result.rows]
    return Output(
        result.to_dict() | {"figure": out},
        [
            "scikit-learn's digits, even against odd; pairs at prior 0.3, no labels in training",
            f"prior estimated from similarities: {result.prior.value:.3f} "
            f"(95% {result.prior.low:.3f} to {result.prior.high:.3f})\n",
            f"{'method':<20}  test accuracy   estimated without labels (95%)",
            *rows,
            baseline(PRIOR),
            f"\nfigure: {out}",
        ],
    )


@dataclass(frozen=True)
class Simulated:
    """Options of a simulation: parameters of `pairlearn.simulation.simulate`.

    Parameters
    ----------
    pairs
        Pairs to judge.
    items
        Items; with fewer than two per pair they recur. [default: two per pair]
    prior
        Share of positive items.
    overlap
        Error of the best classifier at equal class frequencies. [default: the source's]
    annotators
        Number of annotators.
    annotator_prior
        Class prior that annotators assume. [default: the true one]
    noise
        σ: judgements are multiplied by N(1, σ²) and clipped.
    missing
        Share with only one of the two answers.
    preference
        Share with only a preference.
    repeated
        Share judged by a second annotator.
    """

    pairs: Count = 1000
    items: Annotated[int | None, typer.Option(min=2)] = None
    prior: float = 0.3
    overlap: float | None = None
    annotators: Count = 1
    annotator_prior: float | None = None
    noise: float = 0.0
    missing: float = 0.0
    preference: float = 0.0
    repeated: float = 0.0
    seed: Seed = 0


@command("simulate", Simulated, quiet="Print nothing.")
def simulate(
    options: Simulated,
    folder: Path,
    *,
    source: Annotated[
        Literal["gaussians", "moons", "digits", "breast-cancer"], typer.Option("--from")
    ] = "gaussians",
    also: list[str] | None = None,
    format: Literal["csv", "parquet"] = "csv",
    force: bool = False,
) -> Output:
    """Make items, judged pairs and, for checking, the truth.

    Writes items, pairs and truth.csv (id, class, posterior) to FOLDER.

    Parameters
    ----------
    folder
        Folder for the files; it is created.
    source
        Source of the items.
    also
        KIND=SHARE: further statements, such as label=0.1; may be repeated.
    format
        Format of the tables.

    For example:
      pairlearn simulate try
      pairlearn simulate moons --from moons --pairs 500 --prior 0.2 --noise 0.2
      pairlearn simulate cancer --from breast-cancer --pairs 200 \\
        --annotators 3 --repeated 0.3
    """  # noqa: D301
    from pairlearn.simulation import simulate as make

    check_absent(folder, f"items.{format}", f"pairs.{format}", "truth.csv", force=force)
    made = make(source, also=_shares(also or []), **vars(options))
    files = made.write(folder, format)
    best = float((made.posterior.clip(min=0.5) + (1 - made.posterior).clip(min=0.5) - 0.5).mean())
    data: dict[str, Any] = {
        "files": [str(path) for path in files],
        "items": len(made.items),
        "judgements": len(made.pairs),
        "positive": int(made.positive.sum()),
        "best_accuracy": best,
    }
    text = (
        "{items:,} items ({positive:,} positive), {judgements:,} judgements; the best accuracy is "
        "about {best_accuracy:.3f}"
    )
    return Output(data, [text.format(**data), *(f"  {path}" for path in files)])


def _shares(options: list[str]) -> dict[str, float]:
    """Shares by kind, from KIND=SHARE."""
    try:
        return {
            name: float(share) for name, _, share in (option.partition("=") for option in options)
        }
    except ValueError:
        raise ValueError(
            f"--also takes KIND=SHARE, such as label=0.1; got {', '.join(options)!r}"
        ) from None
