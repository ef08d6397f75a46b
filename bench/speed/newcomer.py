"""Thirteen tables that newcomers bring, with known truth: no figure may be silent and wrong.

For each table `check`, `fit` and `evaluate` are run as one would type them. The headline, an
accuracy with its interval, must hold the true accuracy of the saved model on new items, or a
warning or a refusal must name the reason. The last column says which it was.

    python bench/speed/newcomer.py            # about two minutes on one core
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typer.testing import CliRunner

from pairlearn import Judgements, PairClassifier, PairLabels
from pairlearn.cli.root import app
from pairlearn.io import ItemTable, read_items, read_pairs, write_items, write_pairs

Floats = NDArray[np.float64]
FEATURES = 5


@dataclass
class Case:
    """A newcomer's table, and the options of their commands."""

    name: str
    reasons: tuple[str, ...]
    """What a warning or a refusal must say, one of them; empty: the figure must be right."""
    table: Judgements
    held_out: Judgements
    posterior: Callable[[Floats], Floats]
    features: Floats
    options: tuple[str, ...] = ()
    known: NDArray[np.bool_] | None = None
    write: Callable[[Floats, Path], Any] = lambda x, path: write_items(ItemTable(None, x), path)
    rows: list[str] = field(default_factory=list)


def posterior(slope: float, shift: float) -> Callable[[Floats], Floats]:
    """P(positive) of items: a logistic function of the first feature."""
    return lambda x: 1 / (1 + np.exp(-slope * (x[:, 0] - shift)))


def hard(x: Floats) -> Floats:
    """A class boundary in many dimensions, which a few items do not teach."""
    return 1 / (1 + np.exp(-40 * x.mean(1) * np.sqrt(x.shape[1])))


def any_columns(x: Floats, path: Path) -> None:
    """Write items with text, categories, dates, yes and no, and gaps in place of numbers."""
    rng = np.random.default_rng(len(x))
    words = np.array(["awful", "poor", "fair", "good", "great"])[
        np.digitize(x[:, 0], [-1, -0.3, 0.3, 1])
    ]
    gaps = rng.random((len(x), 2)) < 0.1
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "size", "maker", "sealed", "bought", "note"])
        for k, (a, b, c, d, *_) in enumerate(x):
            size, maker = f"{a + rng.normal():.2f}", "Acme" if b > 0 else "Bolt"
            day = date(2024, 1, 1) + timedelta(int(100 * d))
            note = " ".join(
                ["it", "looks", words[k], *rng.choice(["by", "day", "and", "night"], 3)]
            )
            cells = ["" if gaps[k, 0] else size, "" if gaps[k, 1] else maker]
            rows.writerow([k, *cells, "yes" if c > 0 else "no", day, note])


def cases() -> list[Case]:
    """The thirteen tables."""
    rng = np.random.default_rng(0)

    def answers(r: Floats, ends: Any) -> tuple[Floats, Floats]:
        labels = PairLabels.from_posteriors(*r[ends].T)
        return np.asarray(labels.similarity), np.asarray(labels.difference)

    def case(
        name: str,
        reasons: tuple[str, ...],
        change: Callable[[Floats, Floats], tuple[Any, Any]],
        *options: str,
        r: Callable[[Floats], Floats] = posterior(2.5, 0.4),  # noqa: B008
        recur: int = 0,
        known: bool = False,
        features: int = FEATURES,
    ) -> Case:
        items = recur or 1200
        x = rng.normal(size=(items, features))
        if recur:
            ends = np.array([rng.choice(recur, 2, replace=False) for _ in range(500)])
        else:
            ends = np.arange(items).reshape(-1, 2)
        s, c = change(*answers(r(x), ends))
        columns = {"left": ends[:, 0], "right": ends[:, 1], "similarity": s, "difference": c}
        table = read_pairs(columns, noisy=True)
        classes = rng.random(items) < r(x) if known else None
        held = table[400:]
        return Case(name, reasons, table[:400], held, r, x, options, classes)

    def same(s: Floats, c: Floats) -> tuple[Any, Any]:
        return s, c

    def which(s: Floats, c: Floats) -> tuple[Any, Any]:
        return None, np.sign(c) * (np.abs(c) > 0.1)

    balanced = posterior(2.5, 0.0)
    prior = float(posterior(2.5, 0.4)(rng.normal(size=(100_000, 1))).mean())
    return [
        case("soft answers, as meant", (), same),
        case("nearly certain answers", (), same, r=posterior(20, 0.4)),
        case("similarities only, --majority", (), lambda s, c: (s, None),
             "--majority", "negative", r=posterior(4, 1.0)),
        case("80 items, 500 pairs, split by rows", ("trained on items",), same,
             r=hard, recur=80, features=120),
        case("comparisons as differences", ("comparisons",), which, "--prior", f"{prior:.3f}"),
        case("similarity 1 to 5", ("similarity-scale",),
             lambda s, c: (np.round(1 + 4 * s), c), "--noisy"),
        case("similarity 0 to 10", ("similarity-scale",),
             lambda s, c: (np.round(10 * s), c), "--noisy"),
        case("difference -2 to 2", ("difference-scale",),
             lambda s, c: (s, np.round(2 * c)), "--noisy"),
        case("percentages", ("similarity-scale",), lambda s, c: (100 * s, 100 * c), "--noisy"),
        case("known classes exchanged", ("known classes contradict",), same, known=True),
        case("--majority at equal classes", ("come out swapped",), lambda s, c: (s, None),
             "--majority", "negative", r=balanced),
        case("similarities and known classes", (), lambda s, c: (s, None), known=True, r=balanced),
        replace(case("text, categories, dates and gaps", (), same), write=any_columns),
    ]  # fmt: skip


def typed(*line: object) -> tuple[int, str]:
    """Run a command; return its exit code and output."""
    result = CliRunner().invoke(app, [str(part) for part in line])
    return result.exit_code, " ".join(result.output.split())


def run(case: Case, folder: Path) -> bool:
    """Run the commands and print a line for each; return whether none was silent and wrong."""
    case.write(case.features, folder / "items.csv")
    write_pairs(case.table, folder / "pairs.csv")
    write_pairs(case.held_out, folder / "held_out.csv")
    checked = [o for o in case.options if o != "--noisy"]
    fit: list[object] = [*case.options]
    if case.known is not None:
        wrong = "exchanged" in case.name
        lines = [f"{k},{int(case.known[k] != wrong)}" for k in range(40)]
        (folder / "known.csv").write_text("\n".join(["id,class", *lines]) + "\n")
        fit += ["--labelled", folder / "known.csv"]
        checked += (
            ["--majority", "negative"]
            if not np.isfinite(case.table.labels().difference).any()
            else []
        )
    outputs = {
        "check": typed("check", folder / "pairs.csv", *checked),
        "fit": typed("fit", folder / "items.csv", folder / "pairs.csv", "--out",
                     folder / "model", "--model", "mlp" if "80" in case.name else "linear",
                     "--epochs", 60, *fit, "--json"),
    }  # fmt: skip
    truth = float("nan")
    if outputs["fit"][0] == 0:
        model = PairClassifier.load(folder / "model")
        x = np.random.default_rng(9).normal(size=(20_000, case.features.shape[1]))
        r = case.posterior(x)
        case.write(x, folder / "new.csv")
        new = read_items(folder / "new.csv", columns=model.columns())
        truth = float(np.where(model.decision_function(new) > 0, r, 1 - r).mean())
        noisy = ["--noisy"] if "--noisy" in case.options else []
        stated = [o for o in case.options if o not in ("--noisy", "--majority", "negative")]
        outputs["evaluate"] = typed("evaluate", folder / "model", folder / "items.csv",
                                 folder / "held_out.csv", *stated, *noisy, "--json")  # fmt: skip
    good = True
    for command, (code, text) in outputs.items():
        named = next((reason for reason in case.reasons if reason in text), None)
        figure, verdict = "", "says so" if named else "nothing to say"
        if command != "check" and code == 0:
            estimate = json.loads(text[text.index("{") : text.rindex("}") + 1])["accuracy"]
            if estimate is not None:
                figure = (
                    f"{estimate['value']:.3f} ({estimate['low']:.3f} to {estimate['high']:.3f})"
                )
                holds = estimate["low"] <= truth <= estimate["high"]
                verdict = "holds" if holds else "warned" if named else "SILENT AND WRONG"
            else:
                verdict = "no figure"
        elif command != "check":
            verdict = "refused, says so" if named else "refused"
            good &= named is not None or "similarities only" in text
        good &= verdict != "SILENT AND WRONG"
        shown = "" if command != "fit" or np.isnan(truth) else f"{truth:.3f}"
        print(f"{case.name:<36} {command:<9} {code}  {figure:<24} {shown:<6} {verdict}")
    return good


def main() -> int:
    """Run all; 1 if some figure is silent and wrong."""
    print(f"{'table':<36} {'command':<9} rc {'headline':<24} {'truth':<6} verdict")
    good = True
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            good &= run(case, Path(folder))
    print("none is silent and wrong" if good else "SOME ARE SILENT AND WRONG")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
