"""The paper's tables from cells: what stands where, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from pairlearn.paper.cells import Cell, index_cells, position
from pairlearn.paper.runs import Method, grouped, method_order
from pairlearn.paper.statements import SIBLING_METHODS, STATEMENTS, asked


@dataclass(frozen=True)
class Table:
    """A table as it is written, the best entries in bold."""

    caption: str
    header: tuple[str, ...]
    rows: list[list[str]]


def accuracy_table(cells: Sequence[Cell]) -> Table:
    """Methods as rows, data sets as columns, a block for each class prior.

    The best weakly supervised method of each column of a block is marked.
    """
    return _crossed(
        cells,
        "Accuracy",
        ("Class prior", "Method"),
        block=lambda c: (c.config.prior, f"π₊ = {c.config.prior:g}"),
        row=lambda c: (method_order(c.config.method), c.config.method, c.method.title),
        column=lambda c: c.dataset_title,
        best_in_columns=True,
    )


def robustness_table(cells: Sequence[Cell]) -> Table:
    """The pairs (ε, σ) as rows, methods as columns, a block for each data set.

    The best method of each row is marked.
    """
    return _crossed(
        cells,
        "Accuracy with the prior multiplied by ε and labels by N(1, σ²)",
        ("Data set", "(ε, σ)"),
        block=_by_dataset,
        row=lambda c: (
            *(c.config.prior_factor, c.config.label_noise),
            f"({c.config.prior_factor:g}, {c.config.label_noise:g})",
        ),
        column=lambda c: c.method.title,
    )


def gamma_table(cells: Sequence[Cell]) -> Table:
    """Corrections as columns, γ as rows, a block for each data set."""
    return _crossed(
        [cell for cell in cells if cell.gamma is not None],
        "Accuracy of γ·Sconf + (1 − γ)·ConfDiff",
        ("Data set", "γ"),
        block=_by_dataset,
        row=lambda c: (c.gamma, f"{c.gamma:g}"),
        column=lambda c: c.method.correction_title,
    )


def limited_table(cells: Sequence[Cell]) -> Table:
    """Numbers of pairs as rows, methods as columns, a block for each data set and class prior."""
    return _crossed(
        cells,
        "Accuracy with a part of the pairs",
        ("Data set", "Pairs"),
        block=lambda c: (
            *(*_by_dataset(c)[:-1], c.config.prior),
            f"{c.dataset_title}, π₊ = {c.config.prior:g}",
        ),
        row=lambda c: (c.config.fraction, str(c.config.n_training_pairs)),
        column=lambda c: c.method.title,
    )


def siblings_table(cells: Sequence[Cell]) -> Table:
    """What a statement is worth: questions and risks as rows, numbers of statements as columns.

    An entry is the mean over data sets and class priors. Worth is how many labels of single items
    teach as much as one such statement, by the accuracies with the middle number of them.
    """
    sizes = sorted({cell.config.n_training_pairs for cell in cells})
    found = grouped(cells, lambda cell: (cell.config.method, cell.config.n_training_pairs))
    means = {at: fmean(cell.mean for cell in here) for at, here in found.items()}

    def text(at: tuple[str, int]) -> str:
        spread = [cell.std for cell in found.get(at, ()) if len(cell.seeds) > 1]
        if at not in found or len(spread) < len(found[at]):
            return f"{means[at]:.3f}" if at in found else "–"
        return f"{means[at]:.3f} ± {fmean(spread):.3f}"

    def worth(method: str) -> str:
        """Labels that teach as much as one statement, between those that were tried."""
        labels = [means.get(("likelihood-label", size)) for size in sizes]
        middle = sizes[len(sizes) // 2]
        mean = means.get((method, middle))
        if mean is None or None in labels:
            return "–"
        reached = np.maximum.accumulate(np.array(labels, np.float64))
        if not reached[0] <= mean <= reached[-1]:
            low = mean < reached[0]
            return f"{'<' if low else '>'} {sizes[0 if low else -1] / middle:.2g}"
        return f"{np.exp(np.interp(mean, reached, np.log(sizes))) / middle:.2f}"

    questions, known = list(STATEMENTS), [*SIBLING_METHODS]
    methods = sorted(
        dict.fromkeys(method for method, _ in found),
        key=lambda m: (questions.index(asked(m)), known.index(m) if m in known else len(known)),
    )
    origin = f"mean ± standard deviation over {_seeds(cells)}" if cells else "no cells"
    return Table(
        f"Accuracy by what was asked ({origin}; means over data sets and class priors)",
        ("Question", "Risk", "Worth in labels", *(f"{size:,} answers" for size in sizes)),
        [
            [
                *(STATEMENTS[asked(method)].question, Method.parse(method).title, worth(method)),
                *(text((method, size)) for size in sizes),
            ]
            for method in methods
        ],
    )


TABLES: dict[str, Callable[[Sequence[Cell]], Table]] = {
    "accuracy": accuracy_table,
    "gamma": gamma_table,
    "limited": limited_table,
    "robustness": robustness_table,
    "siblings": siblings_table,
}
"""The table of each grid."""


def _by_dataset(cell: Cell) -> tuple[Any, ...]:
    return *position(cell.config)[:2], cell.dataset_title


def _crossed(
    cells: Sequence[Cell],
    caption: str,
    stubs: tuple[str, str],
    *,
    block: Callable[[Cell], tuple[Any, ...]],
    row: Callable[[Cell], tuple[Any, ...]],
    column: Callable[[Cell], str],
    best_in_columns: bool = False,
) -> Table:
    """Cells by block, row and column, the best of each row, or of a block's column, in bold.

    Blocks and rows are sorted, and end in their title. Supervised training does not compete.
    """
    placed = index_cells(cells, lambda c: (block(c), row(c), column(c)))
    columns = tuple(dict.fromkeys(map(column, cells)))
    rivals = grouped(
        [at for at, cell in placed.items() if cell.method.is_weak],
        lambda at: (at[0], at[2 if best_in_columns else 1]),
    )
    best = {line: max(round(placed[at].mean, 3) for at in here) for line, here in rivals.items()}

    def text(at: tuple[Any, Any, str]) -> str:
        if at not in placed:
            return "–"
        cell, rival = placed[at], best.get((at[0], at[2 if best_in_columns else 1]))
        words = f"{cell.mean:.3f} ± {cell.std:.3f}"
        return f"**{words}**" if cell.method.is_weak and round(cell.mean, 3) == rival else words

    rows = [
        [which[-1], key[-1], *(text((which, key, name)) for name in columns)]
        for which, key in sorted({at[:2] for at in placed})
    ]
    origin = f" (mean ± standard deviation over {_seeds(cells)})"
    if subsets := " and ".join(dict.fromkeys(cell.test_subset for cell in cells)):
        origin += f", {subsets} test subset"
    return Table(f"{caption}{origin}", (*stubs, *columns), rows)


def _seeds(cells: Sequence[Cell]) -> str:
    counts = sorted({len(cell.seeds) for cell in cells})
    if counts == [1]:
        return "1 seed"
    return " ".join(["–".join(map(str, counts[:: max(1, len(counts) - 1)])), "seeds"]).strip()


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up as plain text too."""
    widths = [max(3, *map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(texts: Sequence[str]) -> str:
        padded = (text.ljust(width) for text, width in zip(texts, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join(map(line, [header, ["-" * width for width in widths], *rows]))


def to_markdown(table: Table) -> str:
    """Write a table in Markdown.

    Examples
    --------
    >>> print(to_markdown(Table("Nothing yet", ("Method", "MNIST"), [])))
    Nothing yet
    <BLANKLINE>
    | Method | MNIST |
    | ------ | ----- |
    """
    return f"{table.caption}\n\n{aligned(table.header, table.rows)}"
