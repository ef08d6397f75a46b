"""The paper's tables from cells: what stands where, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from pairlearn.paper.cells import Cell, index_cells, position
from pairlearn.paper.runs import Method, method_order
from pairlearn.paper.statements import SIBLING_METHODS, STATEMENTS, asked


@dataclass(frozen=True)
class Entry:
    """A mean with its spread (NaN: none), perhaps the best of those it is compared with."""

    mean: float
    std: float
    rival: bool = True
    best: bool = False

    def __str__(self) -> str:
        return f"{self.mean:.3f}" + f" ± {self.std:.3f}" * (self.std >= 0)


@dataclass(frozen=True)
class Row:
    """One line of a table: its labels, then an entry or None for each column."""

    labels: tuple[str, ...]
    entries: tuple[Entry | None, ...]


@dataclass(frozen=True)
class Table:
    """A table; ``stubs`` are the titles of its label columns."""

    caption: str
    stubs: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


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
    means: dict[tuple[str, str], list[Entry | None]] = {}
    for cell in sorted(cells, key=lambda cell: _by_question(cell.config.method)):
        means.setdefault((asked(cell.config.method), cell.config.method), [None] * len(sizes))
    for key, line in means.items():
        for k, size in enumerate(sizes):
            of = [c for c in cells if c.config.method == key[1]]
            here = [c for c in of if c.config.n_training_pairs == size]
            if here:
                std = fmean(c.std if len(c.seeds) > 1 else np.nan for c in here)
                line[k] = Entry(fmean(c.mean for c in here), std)
    labels = [entry.mean for entry in means.get(("label", "likelihood-label"), []) if entry]
    rows = [
        Row((ask.question, Method.parse(method).title, _worth(line, sizes, labels)), (*line,))
        for what, ask in STATEMENTS.items()
        for (name, method), line in means.items()
        if name == what
    ]
    origin = f"mean ± standard deviation over {_seeds(cells)}" if cells else "no cells"
    return Table(
        f"Accuracy by what was asked ({origin}; means over data sets and class priors)",
        ("Question", "Risk", "Worth in labels"),
        tuple(f"{size:,} answers" for size in sizes),
        tuple(rows),
    )


def _by_question(method: str) -> int:
    """Where a method stands among those of the siblings grid; others come last."""
    return SIBLING_METHODS.index(method) if method in SIBLING_METHODS else len(SIBLING_METHODS)


def _worth(line: Sequence[Entry | None], sizes: Sequence[int], labels: Sequence[float]) -> str:
    """Labels that teach as much as one statement, between those that were tried."""
    middle = len(sizes) // 2
    entry = line[middle] if line else None
    if entry is None or len(labels) < len(sizes):
        return "–"
    reached = np.maximum.accumulate(labels)
    if not reached[0] <= entry.mean <= reached[-1]:
        low = entry.mean < reached[0]
        return f"{'<' if low else '>'} {sizes[0 if low else -1] / sizes[middle]:.2g}"
    share = np.exp(np.interp(entry.mean, reached, np.log(sizes)))
    return f"{share / sizes[middle]:.2f}"


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
    """Cells by block, row and column.

    Blocks and rows are sorted, and end in their title.
    """
    placed = index_cells(cells, lambda c: (block(c), row(c), column(c)))
    columns = tuple(dict.fromkeys(map(column, cells)))
    rows: list[Row] = []
    for which in sorted({which for which, _, _ in placed}):
        at = sorted({at for other, at, _ in placed if other == which})
        entries = [[_entry(placed.get((which, key, name))) for name in columns] for key in at]
        if best_in_columns:
            entries = _transposed([_best_marked(line) for line in _transposed(entries)])
        else:
            entries = [_best_marked(line) for line in entries]
        labels = [(which[-1], key[-1]) for key in at]
        rows += [Row(own, tuple(line)) for own, line in zip(labels, entries, strict=True)]
    origin = f" (mean ± standard deviation over {_seeds(cells)})"
    if subsets := " and ".join(dict.fromkeys(cell.test_subset for cell in cells)):
        origin += f", {subsets} test subset"
    return Table(f"{caption}{origin}", stubs, columns, tuple(rows))


def _entry(cell: Cell | None) -> Entry | None:
    return None if cell is None else Entry(cell.mean, cell.std, rival=cell.method.is_weak)


def _best_marked(line: Sequence[Entry | None]) -> list[Entry | None]:
    """The entries with the best rival marked, and those printed alike."""
    best = max((round(entry.mean, 3) for entry in line if entry and entry.rival), default=None)
    return [
        entry and replace(entry, best=entry.rival and round(entry.mean, 3) == best)
        for entry in line
    ]


def _transposed(lines: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return list(map(list, zip(*lines, strict=True)))


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
    """Write a table in Markdown, the best entries in bold.

    Examples
    --------
    >>> print(to_markdown(Table("Nothing yet", ("Method",), ("MNIST",), ())))
    Nothing yet
    <BLANKLINE>
    | Method | MNIST |
    | ------ | ----- |
    """
    rows = [[*row.labels, *map(_text, row.entries)] for row in table.rows]
    return f"{table.caption}\n\n{aligned([*table.stubs, *table.columns], rows)}"


def _text(entry: Entry | None) -> str:
    return "–" if entry is None else f"**{entry}**" if entry.best else str(entry)
