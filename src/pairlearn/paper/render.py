"""Tables as Markdown, LaTeX and CSV, and the comparison with the paper in words and as data."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pairlearn.paper.against_published import (
    CEILING_MARGIN,
    REQUIRED_SHARE,
    WORST_ALLOWED,
    ComparedCell,
    Comparison,
    Improvement,
)
from pairlearn.paper.summary import dataset_title
from pairlearn.paper.tables import Entry, Table

_LATEX = str.maketrans(
    {
        "&": r"\&",
        "%": r"\%",
        "_": r"\_",
        "#": r"\#",
        "γ": r"$\gamma$",
        "λ": r"$\lambda$",
        "ε": r"$\epsilon$",
        "σ": r"$\sigma$",
        "π": r"$\pi$",
        "₊": r"$_+$",
        "²": "$^2$",
        "±": r"$\pm$",
        "−": "$-$",
        "·": r"$\cdot$",
        "–": "--",
    }
)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up as plain text too.

    Parameters
    ----------
    header : sequence of str
        Titles.
    rows : sequence of sequence of str
        Texts, as many as titles.

    Returns
    -------
    str

    Examples
    --------
    >>> print(aligned(["set", "ok"], [["mnist", "yes"]]))
    | set   | ok  |
    | ----- | --- |
    | mnist | yes |
    """
    widths = [max(3, *map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(texts: Sequence[str]) -> str:
        padded = (text.ljust(width) for text, width in zip(texts, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join(map(line, [header, ["-" * width for width in widths], *rows]))


def to_markdown(table: Table) -> str:
    """Write a table in Markdown, the best entries in bold.

    Parameters
    ----------
    table : Table
        What to write.

    Returns
    -------
    str

    Examples
    --------
    >>> print(to_markdown(Table("Nothing yet", ("Method",), ("MNIST",), ())))
    Nothing yet
    <BLANKLINE>
    | Method | MNIST |
    | ------ | ----- |
    """

    def text(entry: Entry | None) -> str:
        if entry is None:
            return "–"
        return f"**{entry}**" if entry.best else str(entry)

    rows = [[*row.labels, *map(text, row.entries)] for row in table.rows]
    return f"{table.caption}\n\n{aligned([*table.stubs, *table.columns], rows)}"


def to_latex(table: Table) -> str:
    r"""Write a table in LaTeX for the booktabs package, the best entries in bold.

    Parameters
    ----------
    table : Table
        What to write.

    Returns
    -------
    str

    Examples
    --------
    >>> print(to_latex(Table("Nothing yet", ("Method",), ("MNIST",), ())))
    \begin{table}
    \caption{Nothing yet}
    \centering
    \begin{tabular}{lc}
    \toprule
    Method & MNIST \\
    \midrule
    \bottomrule
    \end{tabular}
    \end{table}
    """
    width = len(table.stubs) + len(table.columns)
    # The first label stands once for its block, so lighter rules leave its column out.
    light = f"\\cmidrule(lr){{{2 if len(table.stubs) > 1 else 1}-{width}}}"
    blocks = []
    for block in table.blocks:
        named: set[str] = set()
        groups = []
        for group in block:
            lines = []
            for row in group:
                first, *others = row.labels
                label = "" if first in named and others else _escaped(first)
                named.add(first)
                texts = [label, *map(_escaped, others), *map(_latex_entry, row.entries)]
                lines.append(f"{' & '.join(texts)} \\\\")
            groups.append("\n".join(lines))
        blocks.append(f"\n{light}\n".join(groups))
    body = ["\n\\midrule\n".join(blocks)] if blocks else []
    return "\n".join(
        [
            r"\begin{table}",
            f"\\caption{{{_escaped(table.caption)}}}",
            r"\centering",
            f"\\begin{{tabular}}{{{'l' * len(table.stubs)}{'c' * len(table.columns)}}}",
            r"\toprule",
            f"{' & '.join(map(_escaped, [*table.stubs, *table.columns]))} \\\\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows with the same columns as CSV.

    Parameters
    ----------
    rows : sequence of mapping
        What to write; None is an empty field.

    Returns
    -------
    str
        With a newline at the end.

    Examples
    --------
    >>> print(to_csv([{"dataset": "mnist", "gamma": None}]), end="")
    dataset,gamma
    mnist,
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _latex_entry(entry: Entry | None) -> str:
    if entry is None:
        return "--"
    text = f"{entry.mean:.3f} $\\pm$ {entry.std:.3f}"
    return f"\\textbf{{{text}}}" if entry.best else text


def _escaped(text: str) -> str:
    # Neighbouring pieces of mathematics become one.
    return text.translate(_LATEX).replace("$$", "")


_OK = {True: "yes", False: "NO", None: "–"}


def passes(comparison: Comparison, improved: Sequence[Improvement]) -> bool:
    """Whether nothing that was compared failed.

    Parameters
    ----------
    comparison : Comparison
        Ours against the published.
    improved : sequence of Improvement
        The likelihood against the best published.

    Returns
    -------
    bool

    Examples
    --------
    >>> passes(Comparison((), absent=360), [])
    True
    """
    return (comparison.ok or not comparison.evidence) and all(item.ok for item in improved)


def report_text(comparison: Comparison, improved: Sequence[Improvement]) -> str:
    """Cell by cell as Markdown tables, with a summary below.

    Parameters
    ----------
    comparison : Comparison
        Ours against the published.
    improved : sequence of Improvement
        The likelihood against the best published.

    Returns
    -------
    str

    Examples
    --------
    >>> print(report_text(Comparison((), absent=360), []))
    Published cells without runs of ours: 360
    """
    parts = []
    if comparison.cells:
        parts.append(_cell_table(comparison.cells))
    if improved:
        parts.append(_improvement_table(improved))
    return "\n\n".join([*parts, "\n".join(_summary(comparison, improved))])


def report_data(comparison: Comparison, improved: Sequence[Improvement]) -> dict[str, Any]:
    """The same as plain data, for JSON.

    Parameters
    ----------
    comparison : Comparison
        Ours against the published.
    improved : sequence of Improvement
        The likelihood against the best published.

    Returns
    -------
    dict

    Examples
    --------
    >>> report_data(Comparison((), absent=360), [])["share_within_tolerance"] is None
    True
    """
    worst = comparison.worst
    return {
        "ok": passes(comparison, improved),
        "share_within_tolerance": comparison.share,
        "worst_steady": None if worst is None else _cell_data(worst),
        "absent": comparison.absent,
        "cells": [_cell_data(cell) for cell in comparison.cells],
        "improvements": [
            asdict(item) | {"beats_best": item.beats_best, "reaches_ceiling": item.reaches_ceiling}
            for item in improved
        ],
    }


def _cell_data(cell: ComparedCell) -> dict[str, Any]:
    return asdict(cell) | {"difference": cell.difference, "ok": cell.ok}


def _cell_table(cells: Sequence[ComparedCell]) -> str:
    noisy = _is_noisy(cells)
    header = [
        *_condition_header(noisy),
        *("method", "published", "ours", "difference", "tolerance", "ok"),
    ]
    rows = [
        [
            *_condition_texts(cell, noisy),
            cell.method,
            f"{cell.published:.3f}",
            f"{cell.ours:.4f}",
            f"{cell.difference:+.4f}",
            f"{cell.tolerance:.4f}",
            "copy" if cell.is_copy else _OK[cell.ok if cell.counts else None],
        ]
        for cell in cells
    ]
    return aligned(header, rows)


def _improvement_table(improved: Sequence[Improvement]) -> str:
    noisy = any(item.label_noise for item in improved)
    header = [
        *("data set", "π₊", *(["σ"] if noisy else [])),
        *("likelihood-abs", "best published", "at or above", "ceiling", "reached"),
    ]
    rows = [
        [
            *(dataset_title(item.dataset), f"{item.prior:g}"),
            *([f"{item.label_noise:g}"] if noisy else []),
            f"{item.ours:.4f}",
            f"{item.best:.3f} {item.best_method}",
            _OK[item.beats_best],
            "–" if item.ceiling is None else f"{item.ceiling:.4f}",
            _OK[item.reaches_ceiling],
        ]
        for item in improved
    ]
    return aligned(header, rows)


def _summary(comparison: Comparison, improved: Sequence[Improvement]) -> list[str]:
    lines = []
    if comparison.share is not None:
        agreeing = sum(cell.ok for cell in comparison.evidence)
        lines.append(
            f"Within tolerance: {agreeing} of {len(comparison.evidence)} cells, "
            f"{comparison.share:.1%} (at least {REQUIRED_SHARE:.0%} wanted)"
        )
    if copies := sum(cell.is_copy for cell in comparison.cells):
        lines.append(f"Left out, published numbers copied from a smaller noise: {copies} cells")
    if others := sum(not (cell.is_copy or cell.counts) for cell in comparison.cells):
        lines.append(f"Left out, published with another network: {others} cells")
    if worst := comparison.worst:
        lines.append(
            f"Furthest supervised or ABS cell: {worst.difference:+.4f}, "
            f"{', '.join([*_condition_texts(worst, _is_noisy([worst])), worst.method])} "
            f"(at most {WORST_ALLOWED:g} wanted)"
        )
    if improved:
        above = sum(item.beats_best for item in improved)
        lines.append(f"Likelihood-ABS at or above the best published: {above} of {len(improved)}")
    if known := [item for item in improved if item.reaches_ceiling is not None]:
        reached = sum(bool(item.reaches_ceiling) for item in known)
        lines.append(
            f"Likelihood-ABS at most {CEILING_MARGIN:g} below the lesser of supervised and "
            f"annotator: {reached} of {len(known)}"
        )
    if comparison.absent:
        lines.append(f"Published cells without runs of ours: {comparison.absent}")
    return lines


def _is_noisy(items: Sequence[ComparedCell]) -> bool:
    return any((item.prior_factor, item.label_noise) != (1.0, 0.0) for item in items)


def _condition_header(noisy: bool) -> list[str]:
    return ["data set", "π₊", *(["ε", "σ"] if noisy else [])]


def _condition_texts(item: ComparedCell, noisy: bool) -> list[str]:
    noise = [f"{item.prior_factor:g}", f"{item.label_noise:g}"] if noisy else []
    return [dataset_title(item.dataset), f"{item.prior:g}", *noise]
