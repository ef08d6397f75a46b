"""Tables as data: what stands where, apart from how it is written."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pairlearn.experiments.summary import Cell

__all__ = ["Entry", "Row", "Table", "best_in_columns", "best_in_rows", "index_cells"]


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


def index_cells(cells: Iterable[Cell], place: Callable[[Cell], Hashable]) -> dict[Any, Cell]:
    """Cells by their place; two in one place is an error, since a table would hide one.

    Parameters
    ----------
    cells : iterable of Cell
        What to place.
    place : callable
        Where a cell goes.

    Returns
    -------
    dict

    Examples
    --------
    >>> index_cells([], lambda cell: cell.config.dataset)
    {}
    """
    placed: dict[Any, Cell] = {}
    for cell in cells:
        other = placed.setdefault(place(cell), cell)
        if other is not cell:
            ours, theirs = cell.config.fields(), other.config.fields()
            different = {
                name: (theirs[name], ours[name])
                for name in ours
                if name != "seed" and ours[name] != theirs[name]
            }
            choices = "; ".join(f"{name} {a} and {b}" for name, (a, b) in different.items())
            raise ValueError(
                f"two cells of {cell.config.dataset}, {cell.config.method}, would stand in one "
                f"place, with {choices}: choose one"
            )
    return placed


def _top(entries: Iterable[Entry | None]) -> float | None:
    return max((round(e.mean, 3) for e in entries if e is not None and e.rival), default=None)


def _marked(row: Row, tops: Sequence[float | None]) -> Row:
    entries = tuple(
        entry and replace(entry, best=entry.rival and round(entry.mean, 3) == top)
        for entry, top in zip(row.entries, tops, strict=True)
    )
    return replace(row, entries=entries)
