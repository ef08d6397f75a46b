"""Tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

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
