"""All checks of a table of judgements, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pairlearn.diagnostics.agreement import check_annotators
from pairlearn.diagnostics.columns import Columns
from pairlearn.diagnostics.graph import check_graph, pair_graph
from pairlearn.diagnostics.judgements import (
    Infeasible,
    check_answers,
    check_feasibility,
    check_ranges,
    check_repeats,
    find_infeasible,
)
from pairlearn.diagnostics.learnable import (
    Majority,
    check_comparisons,
    check_learnable,
    check_precision,
    check_prior,
    effective_rows,
    implied_prior,
    learnable,
)
from pairlearn.diagnostics.report import CheckReport, Finding, Summary, finding_at
from pairlearn.tables import ItemTable, PairTable

__all__ = ["check"]

_ORDER = {"error": 0, "warning": 1, "note": 2}


def check(
    table: PairTable,
    *,
    items: Any = None,
    prior: float | None = None,
    majority: Majority | None = None,
    precision: bool = True,
) -> CheckReport:
    """Look a table of judgements over before anything is learnt from it.

    Rows about a single item are counted only: there is nothing to compare them with.

    Parameters
    ----------
    table : PairTable
        The judgements.
    items : ItemTable or array of ids, optional
        Where every id of the table should be found.
    prior : float, optional
        The share of positives as you know it, to compare with what the judgements imply.
    majority : {"positive", "negative"}, optional
        Which class is the larger one, if you know it.
    precision : bool
        Also note how well an accuracy could be known, which takes a simulation.

    Returns
    -------
    CheckReport
        Findings (errors first) and the table in numbers.

    Examples
    --------
    >>> table = PairTable(["a", "b"], ["b", "c"], [0.9, 0.3], None)
    >>> for finding in check(table).findings:
    ...     print(finding.severity, finding.code)
    error needs-majority
    note recurring-items
    >>> check(table, majority="negative").ok
    True
    """
    if prior is not None and not 0 < prior < 1:
        raise ValueError(f"prior must lie in (0, 1); got {prior:g}")
    if majority not in (None, "positive", "negative"):
        raise ValueError(f"majority must be 'positive' or 'negative'; got {majority!r}")
    if prior is not None and majority is not None and prior != 0.5:
        side = "positive" if prior > 0.5 else "negative"
        if side != majority:
            raise ValueError(f"prior {prior:g} makes the {side} class the majority, not {majority}")
    about_pairs = np.flatnonzero(~table.single)
    alone = len(table) - len(about_pairs)
    table = table[about_pairs]
    if not len(table):
        raise ValueError("table has no pairs: there is nothing to check")
    columns = Columns.of(table)
    ranges = list(check_ranges(columns))
    # Of answers on another scale nothing more can be said than that.
    readable = not any(found.code.endswith("-scale") for found in ranges)
    infeasible = find_infeasible(columns) if readable else Infeasible.none()
    implied = implied_prior(columns, prior, majority) if readable else None
    graph = pair_graph(columns)
    findings: list[Finding] = [
        *_check_items(columns, items),
        *ranges,
        *check_answers(columns),
        *(_check_values(columns, infeasible) if readable else ()),
        *check_learnable(columns, prior, majority),
        *(check_prior(columns, implied, prior, majority) if readable else ()),
        *(check_comparisons(columns, prior) if readable else ()),
        *check_graph(columns, graph),
        *(check_precision(columns, implied) if precision and not ranges else ()),
    ]
    s, c, ranked = columns.has_s, columns.has_c, columns.preference != 0
    summary = Summary(
        rows=len(columns),
        pairs=int(columns.pair.max()) + 1,
        items=len(columns.ids),
        annotators=len(columns.annotators),
        both=int((s & c).sum()),
        similarity_only=int((s & ~c).sum()),
        difference_only=int((c & ~s).sum()),
        preference_only=int((ranked & ~s & ~c).sum()),
        preference=int(ranked.sum()),
        effective_rows=effective_rows(columns),
        infeasible=len(infeasible.rows),
        above_edge=len(infeasible.above),
        below_parabola=len(infeasible.below),
        infeasible_distance=infeasible.mean_distance,
        prior=implied,
        components=len(graph.sizes),
        largest_component=graph.largest,
        seen_once=int((graph.degree == 1).sum()),
        learnable=learnable(columns),
    )
    if alone:
        about = f"{alone:,} rows are about one item each: fit learns from them beside the pairs."
        findings.append(Finding("note", "single-items", about, alone))
        rows = about_pairs + 1
        findings = [replace(f, rows=tuple(int(rows[r - 1]) for r in f.rows)) for f in findings]
    # A stable sort: within one severity the order above stays.
    return CheckReport(tuple(sorted(findings, key=lambda f: _ORDER[f.severity])), summary)


def _check_values(columns: Columns, infeasible: Infeasible) -> Iterator[Finding]:
    """What takes the answers for probabilities."""
    yield from check_feasibility(columns, infeasible)
    yield from check_repeats(columns)
    yield from check_annotators(columns, infeasible)


def _check_items(columns: Columns, items: Any) -> Iterator[Finding]:
    if items is None:
        return
    known = np.asarray(items.ids if isinstance(items, ItemTable) else items)
    ids = columns.ids
    if known.dtype.kind != ids.dtype.kind:  # integers on one side only: compare as text
        known, ids = known.astype(np.str_), ids.astype(np.str_)
    missing = ~np.isin(ids, known)
    if missing.any():
        yield finding_at(
            "error",
            "unknown-item",
            f"{int(missing.sum()):,} ids are not among the {len(known):,} items. Ids are "
            "compared exactly, spaces included.",
            np.flatnonzero(missing[columns.ends].any(axis=1)),
            columns.ids[missing],
        )
    unused = int((~np.isin(known, ids)).sum())
    if unused:
        yield Finding(
            "note",
            "unjudged-items",
            f"{unused:,} of {len(known):,} items are in no pair. They can be predicted all the "
            "same.",
            unused,
        )
