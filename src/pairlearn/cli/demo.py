"""``pairlearn demo``: the main job on data that come with scikit-learn."""

from __future__ import annotations

import json
from pathlib import Path

from pairlearn.cli.command import Told, baseline, command
from pairlearn.cli.options import FIGURES, Seed, check_suffix
from pairlearn.progress import bar


@command("demo")
def demo(*, out: Path = Path("demo.png"), seed: Seed = 0) -> Told:
    """Learn even from odd digits from 400 judged pairs, and say how well, without labels.

    Parameters
    ----------
    out
        Where to write the figure.

    \b
    Examples:
      pairlearn demo --seed 1 --out demo.png
    """  # noqa: D301
    from pairlearn.paper.walkthrough import METHODS, PRIOR, draw_demo, run_demo
    from pairlearn.report.figures import save_figure

    check_suffix("--out", out, *FIGURES)
    with bar(f"training {len(METHODS)} models") as progress:
        found = run_demo(seed, progress)
    save_figure(draw_demo(found), out, json.dumps(found.to_dict()))
    rows = [f"{row.method:<20}  {row.accuracy:>13.3f}   {row.estimate}" for row in found.rows]
    return Told(
        found.to_dict() | {"figure": out},
        [
            "scikit-learn's digits, even against odd; pairs at prior 0.3, no labels in training",
            f"prior estimated from similarities: {found.prior.value:.3f} "
            f"(95% {found.prior.low:.3f} to {found.prior.high:.3f})\n",
            f"{'method':<20}  test accuracy   estimated without labels (95%)",
            *rows,
            baseline(PRIOR),
            f"\nfigure: {out}",
        ],
    )
