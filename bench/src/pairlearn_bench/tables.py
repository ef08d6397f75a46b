"""The tables of the paper, made from cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from pairlearn_bench.cells import Cell, format_cell, index_cells, table_order
from pairlearn_bench.data import SPECS
from pairlearn_bench.runs import Method, grouped, method_order
from pairlearn_bench.statements import SIBLING_METHODS, STATEMENTS, question_of
from pairlearn_bench.statistics import paired, verdicts

LEVEL_MARK = "†"


@dataclass(frozen=True)
class Table:
    """A table of text, the best entries in bold."""

    caption: str
    header: tuple[str, ...]
    rows: list[list[str]]


def accuracy_table(cells: Sequence[Cell]) -> Table:
    """Methods as rows, data sets as columns, a block for each class prior.

    The best weakly supervised method in each column of a block is bold.
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

    The best method of each row is bold.
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
    """The worth of a statement: questions and risks as rows, numbers of statements as columns.

    An entry is the mean over data sets and class priors. Worth is the number of labels of single
    items that teach as much as one such statement, by the accuracies at the middle number of them.
    """
    sizes = sorted({cell.config.n_training_pairs for cell in cells})
    groups = grouped(cells, lambda cell: (cell.config.method, cell.config.n_training_pairs))
    means = {key: fmean(cell.mean for cell in group) for key, group in groups.items()}

    def entry(key: tuple[str, int]) -> str:
        if key not in groups:
            return "–"
        spread = [cell.std for cell in groups[key] if len(cell.seeds) > 1]
        several = len(spread) == len(groups[key])
        return f"{means[key]:.3f} ± {fmean(spread):.3f}" if several else f"{means[key]:.3f}"

    def order(method: str) -> tuple[int, int]:
        known = method in SIBLING_METHODS
        place = SIBLING_METHODS.index(method) if known else len(SIBLING_METHODS)
        return list(STATEMENTS).index(question_of(method)), place

    origin = _seeds(cells)
    rows = []
    for method in sorted(dict.fromkeys(method for method, _ in groups), key=order):
        question, title = STATEMENTS[question_of(method)].question, Method.parse(method).title
        entries = [entry((method, size)) for size in sizes]
        rows.append([question, title, _worth(method, sizes, means), *entries])
    return Table(
        f"Accuracy by what was asked ({origin}; means over data sets and class priors)",
        ("Question", "Risk", "Worth in labels", *(f"{size:,} answers" for size in sizes)),
        rows,
    )


ALL_ITEMS = "all items"


def classes_table(cells: Sequence[Cell]) -> Table:
    """What was learnt from as rows, numbers of pairs as columns, a block for each data set.

    The best method about pairs in each column of a block is bold.
    """

    def size(cell: Cell) -> str:
        spec, pairs = SPECS.get(cell.config.dataset), cell.config.pairs
        return ALL_ITEMS if spec and pairs == spec.n_train // 2 else f"{pairs:,} pairs"

    return _crossed(
        sorted(cells, key=lambda cell: (size(cell) == ALL_ITEMS, cell.config.pairs)),
        "Accuracy with all classes of the data",
        ("Data set", "Learnt from"),
        block=_by_dataset,
        row=lambda c: (method_order(c.config.method), c.method.title),
        column=size,
        best_in_columns=True,
    )


def _worth(method: str, sizes: Sequence[int], means: Mapping[tuple[str, int], float]) -> str:
    """Labels that teach as much as one statement, interpolated between the sizes."""
    labels = [means.get(("likelihood-label", size)) for size in sizes]
    middle = sizes[len(sizes) // 2]
    mean = means.get((method, middle))
    if mean is None or None in labels:
        return "–"
    reached = np.maximum.accumulate(np.array(labels, np.float64))
    if mean < reached[0]:
        return f"< {sizes[0] / middle:.2g}"
    if mean > reached[-1]:
        return f"> {sizes[-1] / middle:.2g}"
    return f"{np.exp(np.interp(mean, reached, np.log(sizes))) / middle:.2f}"


#: The table of each grid.
TABLES: dict[str, Callable[[Sequence[Cell]], Table]] = {
    "accuracy": accuracy_table,
    "gamma": gamma_table,
    "limited": limited_table,
    "robustness": robustness_table,
    "siblings": siblings_table,
    "classes": classes_table,
}


def _by_dataset(cell: Cell) -> tuple[Any, ...]:
    return *table_order(cell.config)[:2], cell.dataset_title


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
    """Arrange cells by block, row and column, with the best of each row or block's column in bold.

    Those level with it (paired t-tests over seeds, Holm's correction) have a mark. ``block`` and
    ``row`` return sort keys that end in a title. Supervised training does not compete.
    """
    indexed = index_cells(cells, lambda c: (block(c), row(c), column(c)))
    columns = tuple(dict.fromkeys(map(column, cells)))
    weak = [key for key, cell in indexed.items() if cell.method.is_weak]
    marks: dict[Any, str] = {}
    for rivals in grouped(weak, lambda key: (key[0], key[2 if best_in_columns else 1])).values():
        best = max(rivals, key=lambda key: indexed[key].mean)
        gaps = {key: paired(indexed[key].by_seed, indexed[best].by_seed) for key in rivals}
        tested = {key: gap for key, gap in gaps.items() if gap and key != best}
        words = zip(tested, verdicts(tested.values()), strict=True)
        marks |= {key: LEVEL_MARK for key, word in words if word == "level"} | {best: "best"}

    def entry(key: tuple[Any, Any, str]) -> str:
        text, mark = format_cell(indexed.get(key)), marks.get(key, "")
        return f"**{text}**" if mark == "best" else f"{text}{mark}"

    rows = [
        [block_key[-1], row_key[-1], *(entry((block_key, row_key, name)) for name in columns)]
        for block_key, row_key in sorted({key[:2] for key in indexed})
    ]
    origin = f" ({_seeds(cells)})"
    if subsets := " and ".join(dict.fromkeys(cell.test_subset for cell in cells)):
        origin += f", {subsets} test subset"
    if LEVEL_MARK in marks.values():
        origin += f"; {LEVEL_MARK} level with the best"
    return Table(f"{caption}{origin}", (*stubs, *columns), rows)


def _seeds(cells: Sequence[Cell]) -> str:
    counts = sorted({len(cell.seeds) for cell in cells})
    if counts in ([], [1]):
        return "one seed" if counts else "no cells"
    several = "–".join(map(str, counts[:: max(1, len(counts) - 1)]))
    return f"mean ± standard deviation over {several} seeds"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table whose columns are aligned in plain text."""
    widths = [max(3, *map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(texts: Sequence[str]) -> str:
        padded = (text.ljust(width) for text, width in zip(texts, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join(map(line, [header, ["-" * width for width in widths], *rows]))


_IN_LATEX = str.maketrans(
    {
        "π": r"$\pi$",
        "₊": "$_+$",
        "ε": r"$\varepsilon$",
        "σ": r"$\sigma$",
        "γ": r"$\gamma$",
        "λ": r"$\lambda$",
        "²": "$^2$",
        "±": r"$\pm$",
        "·": r"$\cdot$",
        "−": "$-$",
        "–": "--",
        LEVEL_MARK: r"$^\dagger$",
        "%": r"\%",
        "&": r"\&",
        "_": r"\_",
        "#": r"\#",
    }
)


def to_latex(table: Table) -> str:
    r"""Write a table in LaTeX, for the package booktabs.

    Examples
    --------
    >>> print(to_latex(Table("Nothing yet", ("Method", "σ"), [["ABS", "**0.9 ± 0.1**"]])))
    % Nothing yet
    \begin{tabular}{ll}
    \toprule
    Method & $\sigma$ \\
    \midrule
    ABS & \textbf{0.9 $\pm$ 0.1} \\
    \bottomrule
    \end{tabular}
    """

    def written(text: str) -> str:
        text = text.translate(_IN_LATEX)
        return re.sub(r"\*\*(.*?)\*\*", r"\\textbf{\1}", text)

    header, *body = (rf"{' & '.join(map(written, row))} \\" for row in [table.header, *table.rows])
    begin = rf"\begin{{tabular}}{{{'l' * len(table.header)}}}"
    lines = [begin, r"\toprule", header, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([f"% {written(table.caption)}", *lines])


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
