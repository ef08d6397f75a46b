"""The report as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pairlearn
from pairlearn.pages import Html, document, joined, percent, signed, tag
from pairlearn.pages.document import filters
from pairlearn.paper.grids import GRIDS
from pairlearn.paper.headline import Tally
from pairlearn.paper.page_charts import CHARTS, method_legend
from pairlearn.paper.page_heat import noise_figures, plane_figure
from pairlearn.paper.page_summary import GridSummary, summarize_grid
from pairlearn.paper.page_tables import cells_table, noted_seconds, runs_table
from pairlearn.paper.sources import Source, read_sources
from pairlearn.paper.summary import dataset_title
from pairlearn.style import SPREAD

__all__ = ["BenchReport", "Source", "build_report", "read_sources"]

_TITLES = {
    "accuracy": "Accuracy of every method",
    "gamma": "From ConfDiff to Sconf: the γ-curve",
    "limited": "With fewer pairs",
    "robustness": "Under a wrong class prior and noisy labels",
}
_WORDS = {
    "accuracy": "Each method on each data set and class prior. The dashed line is supervised "
    "training on the true classes of the same pairs, the star the annotator who judged them. "
    f"Bars are {SPREAD}; upright ticks are the published numbers, which were measured on the "
    "paper's test subset and stand in its figures only.",
    "gamma": "The risk γ·Sconf + (1 − γ)·ConfDiff for each correction. Squares are the convex "
    f"family; dash and fill tell the correction. Bands are {SPREAD}.",
    "limited": f"The same training with a part of the pairs. Bands are {SPREAD}.",
    "robustness": "The estimator is given ε·π₊ in place of π₊, and judgements are multiplied by "
    "numbers drawn from N(1, σ²). Every cell says its accuracy; colours have one scale for a "
    "data set. Of the published cells, those at σ = 0.01 and 0.1 repeat others to the last "
    "digit: they are shown and not counted.",
}


_CLAIMS = {
    "reproduced": "Of the published cells that can be compared, {} are reproduced within the "
    "tolerance. ",
    "published": "The pair likelihood with ABS is at or above the paper's best weakly supervised "
    "method in {}. ",
    "own": "Against the best of our own runs of the paper's methods it is at or above in {}.",
}


@dataclass(frozen=True)
class BenchReport:
    """A page, and what it says in counts.

    Parameters
    ----------
    page : str
        The HTML.
    runs, figures : int
        Runs behind it, and figures on it.
    grids : dict of str to dict
        Counts of each experiment, see `GridSummary.to_dict`.

    Examples
    --------
    >>> BenchReport("", 5, 1, {}).runs
    5
    """

    page: str
    runs: int
    figures: int
    grids: dict[str, dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Counts for JSON."""
        return {"runs": self.runs, "figures": self.figures, "grids": self.grids}


def build_report(sources: Sequence[Source]) -> BenchReport:
    """Lay out the report.

    Parameters
    ----------
    sources : sequence of Source
        The runs, see `read_sources`.

    Returns
    -------
    BenchReport

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairlearn.paper import Record, Run
    >>> run = Run(dataset="letter", prior=0.2, seed=0, method="supervised", pairs=9, epochs=1)
    >>> record = Record(run, {"paper": 0.97, "stratified": 0.96})
    >>> report = build_report([Source(Path("accuracy.jsonl"), "accuracy", (record,))])
    >>> report.grids["accuracy"]["compared"], report.figures
    (1, 3)
    """
    summaries = [
        summarize_grid(grid, [r for s in sources if s.grid == grid for r in s.records])
        for grid in GRIDS
        if any(source.grid == grid and source.records for source in sources)
    ]
    drawn = {summary.grid: _figures(summary) for summary in summaries}
    sections = [
        ("runs", "What ran, on what, for how long", joined([_ran(sources), runs_table(sources)])),
        *(
            (s.grid, _TITLES[s.grid], _section(s, drawn[s.grid]))
            for s in summaries
        ),
        ("plane", "The geometry of the labels", _plane()),
        ("reading", "How to read this page", _reading()),
    ]  # fmt: skip
    runs = sum(len(source.records) for source in sources)
    lead = joined([_lead(summaries, runs), _tiles(summaries, runs, sources)])
    foot = f"Made by pairlearn {pairlearn.__version__} from {runs:,} finished runs."
    title = "The SconfConfDiff benchmark: the paper’s numbers and ours"
    page = document(title, lead, sections, foot, _filters(summaries))
    figures = 1 + sum(map(len, drawn.values()))
    return BenchReport(page, runs, figures, {s.grid: s.to_dict() for s in summaries})


def _figures(summary: GridSummary) -> list[Html]:
    draw = CHARTS.get(summary.grid, noise_figures)
    return list(draw(summary))


def _section(summary: GridSummary, figures: list[Html]) -> Html:
    parts = [tag("p", _WORDS[summary.grid], class_="prose")]
    if summary.grid != "robustness":
        parts.append(method_legend(summary))
    parts.append(tag("div", *figures, class_="figures"))
    count = summary.to_dict()
    words = f"{len(summary.lines):,} cells"
    if count["compared"]:
        words += f", {count['compared']:,} with a published number that counts"
    if count["not_run"] and summary.grid in ("accuracy", "robustness"):
        words += f"; {count['not_run']:,} published cells were not run"
    parts += [tag("h3", "In numbers"), _scale()]
    parts.append(cells_table(summary, f"{_TITLES[summary.grid]}: {words}. Mean {SPREAD}."))
    return joined(parts)


def _scale() -> Html:
    marks = [
        tag("span", words, class_=f"key {name}")
        for name, words in (
            ("below-3", "▼ 0.015 or more below"),
            ("below-2", "▼ 0.006"),
            ("below-1", "▼ 0.002"),
            ("above-1", "▲ 0.002"),
            ("above-2", "▲ 0.006"),
            ("above-3", "▲ 0.015 or more above"),
        )
    ]
    return tag("p", "Ours less the published: ", *(joined([mark, " "]) for mark in marks),
               class_="scale")  # fmt: skip


def _ran(sources: Sequence[Source]) -> Html:
    records = [record for source in sources for record in source.records]
    noted = noted_seconds(records)
    where = sorted({str(r.notes["device"]) for r in records if "device" in r.notes})
    words = f"{len(records):,} trainings"
    if where:
        words += f" on {' and '.join(where)}"
    if noted:
        words += f". The time noted for {len(noted):,} of them is {sum(noted):,.0f} s together."
    else:
        words += ". Their stores note no times."
    return tag("p", words, class_="prose")


def _lead(summaries: Sequence[GridSummary], runs: int) -> Html:
    cells = sum(len(s.lines) for s in summaries)
    words = [
        f"{runs:,} trainings in {cells:,} cells, each a mean over seeds, beside the numbers that "
        "the SconfConfDiff paper printed. "
    ]
    for name, sentence in _CLAIMS.items():
        tallies = [s.tallies[name] for s in summaries if name in s.tallies]
        if cells := sum(tally.cells for tally in tallies):
            holds = sum(tally.holds for tally in tallies)
            words.append(
                sentence.format(f"{holds:,} of {cells:,} cells ({percent(holds / cells)})")
            )
    return tag("p", "".join(words), class_="lead")


def _tiles(summaries: Sequence[GridSummary], runs: int, sources: Sequence[Source]) -> Html:
    tiles = [("Trainings", f"{runs:,}", f"in {len(sources)} files")]
    for summary in summaries:
        tiles += [
            (
                f"{summary.grid.capitalize()}: {tally.claim}",
                f"{tally.holds:,} of {tally.cells:,}",
                _margins(tally),
            )
            for tally in summary.tallies.values()
        ]
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value), *([tag("dd", note)] if note else []))
            for name, value, note in tiles
        ),
        class_="tiles",
    )


def _margins(tally: Tally) -> str:
    """What stands below a count: how far it goes, and the worst that speaks against it."""
    words = (
        f"margins {signed(tally.least)} to {signed(tally.most)}, {tally.test_subset} test subset"
    )
    if tally.losses:
        name, margin = tally.losses[0]
        words += f"; not in {len(tally.losses):,}, at worst {name}, {signed(margin)}"
    return words


def _filters(summaries: Sequence[GridSummary]) -> Html:
    lines = [line for summary in summaries for line in summary.lines]
    datasets = dict.fromkeys(line.cell.config.dataset for line in lines)
    priors = sorted({line.cell.config.prior for line in lines})
    return filters(
        {
            "dataset": (
                "Data set",
                [("", "All data sets"), *((name, dataset_title(name)) for name in datasets)],
            ),
            "prior": (
                "Class prior π₊",
                [("", "All class priors"), *((f"{p:g}", f"{p:g}") for p in priors)],
            ),
            "subset": (
                "Test subset in figures",
                [("paper", "The paper's"), ("stratified", "Stratified")],
            ),
        }
    )


def _plane() -> Html:
    words = (
        "An annotator says two things of a pair: s, how likely both have the same class, and c, "
        "how much likelier the right one is positive. Posteriors r and r′ give a point in the "
        "shaded region. Every point of it comes from two pairs of posteriors, (r, r′) and "
        "(1 − r′, 1 − r), which are one on the parabola."
    )
    return joined(
        [tag("p", words, class_="prose"), tag("div", plane_figure(), class_="figures one")]
    )


def _reading() -> Html:
    terms = {
        "Test subsets": "Both have the class prior of the pairs. The paper's keeps one class "
        "whole and truncates the other, on image sets in the order of the original classes; "
        "stratified draws what is kept at random. Compare with published numbers on the first, "
        "believe the second.",
        "Tolerance": "0.006 + 2·√(σ²/n + σ_paper²/5), with n seeds of ours: rounding, small "
        "differences of protocol, and chance.",
        "Mean and ±": "Mean and population standard deviation over seeds of the accuracy, which "
        "is averaged over the last ten epochs.",
        "Colours": "A family of risks has a colour and a marker, everywhere. Solid and full is "
        "ABS, dashed and pale ReLU, dotted and hollow unbiased.",
        "Keyboard": "Tab reaches every chart; arrows go from mark to mark. Tab reaches the titles "
        "of columns; Enter or Space sorts.",
        "Cells that count": "CIFAR-10 is shown and not counted, since the paper's network is not "
        "known. Copies are not counted either. The likelihood takes no class prior, so its cells "
        "at several ε are one cell, which is held against the best published of all ε.",
        "Copies": "Published cells under noise that repeat those of another noise to the last "
        "digit. They say nothing about their own.",
    }
    return tag(
        "dl",
        *(tag("div", tag("dt", name), tag("dd", words)) for name, words in terms.items()),
        class_="glossary",
    )
