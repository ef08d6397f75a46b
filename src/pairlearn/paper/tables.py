"""The paper's tables from finished runs: what stands where, apart from how it is written."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pairlearn.paper.methods import METHOD_GROUPS, Method
from pairlearn.paper.summary import Cell, dataset_title, index_cells


@dataclass(frozen=True)
class Entry:
    """A mean with its spread, perhaps the best of those it is compared with.

    Examples
    --------
    >>> print(Entry(0.978, 0.002))
    0.978 ± 0.002
    """

    mean: float
    std: float
    rival: bool = True
    best: bool = False

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.std:.3f}"


@dataclass(frozen=True)
class Row:
    """One line of a table: its labels, then an entry or None for each column.

    Examples
    --------
    >>> Row(("Supervised",), (Entry(0.99, 0.0, rival=False), None)).labels
    ('Supervised',)
    """

    labels: tuple[str, ...]
    entries: tuple[Entry | None, ...]


@dataclass(frozen=True)
class Table:
    """A table in blocks of groups of rows: a rule between blocks, a lighter one between groups.

    Parameters
    ----------
    caption : str
        What it shows.
    stubs : tuple of str
        Titles of the label columns; the first label stands once for its block.
    columns : tuple of str
        Titles of the other columns.
    blocks : tuple of tuple of tuple of Row
        Blocks, groups, rows.

    Examples
    --------
    >>> Table("nothing", ("Method",), ("MNIST",), ()).rows
    []
    """

    caption: str
    stubs: tuple[str, ...]
    columns: tuple[str, ...]
    blocks: tuple[tuple[tuple[Row, ...], ...], ...]

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [row for block in self.blocks for group in block for row in group]


Groups = Sequence[Sequence[Row]]


def best_in_columns(groups: Groups) -> tuple[tuple[Row, ...], ...]:
    """Mark the best rival of each column of a block, and those printed alike.

    Parameters
    ----------
    groups : sequence of sequence of Row
        A block.

    Returns
    -------
    tuple of tuple of Row

    Examples
    --------
    >>> rows = [Row(("a",), (Entry(0.9, 0.1),)), Row(("b",), (Entry(0.8, 0.1),))]
    >>> [row.entries[0].best for row in best_in_columns([rows])[0]]
    [True, False]
    """
    columns = list(zip(*(row.entries for group in groups for row in group), strict=True))
    tops = [_top(column) for column in columns]
    return tuple(tuple(_marked(row, tops) for row in group) for group in groups)


def best_in_rows(groups: Groups) -> tuple[tuple[Row, ...], ...]:
    """Mark the best rival of each row of a block, and those printed alike.

    Parameters
    ----------
    groups : sequence of sequence of Row
        A block.

    Returns
    -------
    tuple of tuple of Row

    Examples
    --------
    >>> row = Row(("a",), (Entry(0.9, 0.1), Entry(0.95, 0.1)))
    >>> [entry.best for entry in best_in_rows([[row]])[0][0].entries]
    [False, True]
    """
    return tuple(
        tuple(_marked(row, [_top(row.entries)] * len(row.entries)) for row in group)
        for group in groups
    )


def _top(entries: Iterable[Entry | None]) -> float | None:
    return max((round(e.mean, 3) for e in entries if e is not None and e.rival), default=None)


def _marked(row: Row, tops: Sequence[float | None]) -> Row:
    entries = tuple(
        entry and replace(entry, best=entry.rival and round(entry.mean, 3) == top)
        for entry, top in zip(row.entries, tops, strict=True)
    )
    return replace(row, entries=entries)


def accuracy_table(cells: Sequence[Cell]) -> Table:
    """Methods as rows, data sets as columns, a block for each class prior.

    The best weakly supervised method of each column of a block is marked.

    Parameters
    ----------
    cells : sequence of Cell
        Summary of an accuracy grid.

    Returns
    -------
    Table

    Examples
    --------
    >>> accuracy_table([]).stubs
    ('Class prior', 'Method')
    """
    datasets = _distinct(cell.config.dataset for cell in cells)
    placed = index_cells(cells, lambda c: (c.config.prior, c.config.method, c.config.dataset))

    def block(prior: float) -> tuple[tuple[Row, ...], ...]:
        methods = [method for at, method, _ in placed if at == prior]
        return best_in_columns(
            [
                [
                    Row(
                        (f"π₊ = {prior:g}", Method.parse(method).title),
                        tuple(_entry(placed.get((prior, method, name))) for name in datasets),
                    )
                    for method in group
                ]
                for group in _grouped(methods)
            ]
        )

    return Table(
        f"Accuracy (mean ± standard deviation over {_seeds(cells)}){_subset(cells)}",
        ("Class prior", "Method"),
        tuple(dataset_title(name) for name in datasets),
        tuple(block(prior) for prior in sorted({cell.config.prior for cell in cells})),
    )


def robustness_table(cells: Sequence[Cell]) -> Table:
    """The pairs (ε, σ) as rows, methods as columns, a block for each data set.

    The best method of each row is marked.

    Parameters
    ----------
    cells : sequence of Cell
        Summary of a robustness grid.

    Returns
    -------
    Table

    Examples
    --------
    >>> robustness_table([]).stubs
    ('Data set', '(ε, σ)')
    """
    return _crossed(
        cells,
        caption="Accuracy with the prior multiplied by ε and labels by N(1, σ²)",
        stubs=("Data set", "(ε, σ)"),
        block=lambda c: dataset_title(c.config.dataset),
        row=lambda c: (c.config.prior_factor, c.config.label_noise),
        row_title=lambda place: f"({place[0]:g}, {place[1]:g})",
        column=lambda c: c.config.method,
        column_title=lambda method: Method.parse(method).title,
    )


def gamma_table(cells: Sequence[Cell]) -> Table:
    """Corrections as columns, γ as rows, a block for each data set.

    Parameters
    ----------
    cells : sequence of Cell
        Summary of a γ grid.

    Returns
    -------
    Table

    Examples
    --------
    >>> gamma_table([]).stubs
    ('Data set', 'γ')
    """
    return _crossed(
        [cell for cell in cells if cell.gamma is not None],
        caption="Accuracy of γ·Sconf + (1 − γ)·ConfDiff",
        stubs=("Data set", "γ"),
        block=lambda c: dataset_title(c.config.dataset),
        row=lambda c: c.gamma,
        row_title=lambda gamma: f"{gamma:g}",
        column=lambda c: c.method.correction,
        column_title=lambda correction: Method("convex", None, correction).correction_title,
    )


def limited_table(cells: Sequence[Cell]) -> Table:
    """Fractions of the pairs as rows, methods as columns, a block for each set and prior.

    Parameters
    ----------
    cells : sequence of Cell
        Summary of a limited-data grid.

    Returns
    -------
    Table

    Examples
    --------
    >>> limited_table([]).stubs
    ('Data set', 'Pairs')
    """
    return _crossed(
        cells,
        caption="Accuracy with a part of the pairs",
        stubs=("Data set", "Pairs"),
        block=lambda c: f"{dataset_title(c.config.dataset)}, π₊ = {c.config.prior:g}",
        row=lambda c: (c.config.fraction, c.config.n_training_pairs),
        row_title=lambda place: str(place[1]),
        column=lambda c: c.config.method,
        column_title=lambda method: Method.parse(method).title,
    )


TABLES: dict[str, Callable[[Sequence[Cell]], Table]] = {
    "accuracy": accuracy_table,
    "gamma": gamma_table,
    "limited": limited_table,
    "robustness": robustness_table,
}
"""The table of each grid."""


def _crossed(
    cells: Sequence[Cell],
    *,
    caption: str,
    stubs: tuple[str, str],
    block: Callable[[Cell], str],
    row: Callable[[Cell], Any],
    row_title: Callable[[Any], str],
    column: Callable[[Cell], str],
    column_title: Callable[[str], str],
) -> Table:
    placed = index_cells(cells, lambda c: (block(c), row(c), column(c)))
    columns = _distinct(column(cell) for cell in cells)

    def rows(title: str) -> list[Row]:
        return [
            Row(
                (title, row_title(at)),
                tuple(_entry(placed.get((title, at, name))) for name in columns),
            )
            for at in sorted({at for where, at, _ in placed if where == title})
        ]

    return Table(
        f"{caption} (mean ± standard deviation over {_seeds(cells)}){_subset(cells)}",
        stubs,
        tuple(column_title(name) for name in columns),
        tuple(best_in_rows([rows(title)]) for title in _distinct(block(cell) for cell in cells)),
    )


def _entry(cell: Cell | None) -> Entry | None:
    return None if cell is None else Entry(cell.mean, cell.std, rival=cell.method.is_weak)


def _grouped(methods: Iterable[str]) -> list[list[str]]:
    """The methods in the order of the paper's tables, with those it does not have at the end."""
    group_of = {name: place for place, group in enumerate(METHOD_GROUPS) for name in group}
    order = {name: place for place, name in enumerate(group_of)}

    def group(name: str) -> int:
        return group_of.get(name, len(METHOD_GROUPS))

    ordered = sorted(set(methods), key=lambda name: (order.get(name, len(order)), name))
    return [list(names) for _, names in groupby(ordered, group)]


def _distinct(values: Iterable[Hashable]) -> list[Any]:
    return list(dict.fromkeys(values))


def _seeds(cells: Iterable[Cell]) -> str:
    counts = sorted({len(cell.seeds) for cell in cells})
    if counts == [1]:
        return "1 seed"
    return " ".join(["–".join(map(str, counts[:: max(1, len(counts) - 1)])), "seeds"]).strip()


def _subset(cells: Iterable[Cell]) -> str:
    subsets = _distinct(cell.test_subset for cell in cells)
    return f", {' and '.join(subsets)} test subset" if subsets else ""
