"""All checks of a table of judgements, one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from pairlearn import kinds
from pairlearn.check import answers
from pairlearn.check.answers import DISAGREEMENT, Columns, Infeasible
from pairlearn.check.findings import CheckReport, Finding, Severity, Summary, finding
from pairlearn.check.planning import annotator_accuracy, annotator_strength, expected_half_width
from pairlearn.columns import Floats, Indices, check_share, find_rows, similar_id
from pairlearn.dependence import Dependence
from pairlearn.evaluation.judged import end_correlation, stands_out
from pairlearn.labels import PairLabels
from pairlearn.prior import PriorEstimate
from pairlearn.tables import ItemTable, PairTable

Majority = Literal["positive", "negative"]

FEW = 10
"""Pairs of which a fifth are too few to measure anything with."""
MOST_ROWS = 20_000
"""Rows whose items are compared, evenly from the whole table."""


def check(
    table: PairTable,
    *,
    items: Any = None,
    prior: float | None = None,
    majority: Majority | None = None,
    precision: bool = True,
) -> CheckReport:
    """Check a table of judgements before anything is learnt from it.

    Rows about a single item are counted: there is nothing to compare them with.

    Parameters
    ----------
    table : PairTable
    items : ItemTable or array of ids, optional
        Where every id of the table should be found. Features also tell whether the two items of a
        pair are alike more often than by chance, and whose answers have to do with the items.
    prior : float, optional
        The share of positives as you know it, to compare with what the judgements imply.
    majority : {"positive", "negative"}, optional
        Which class is the larger one, if you know it.
    precision : bool
        Also simulate how well an accuracy could be known.

    Examples
    --------
    >>> table = PairTable(["a", "b"], ["b", "c"], [0.9, 0.3], None)
    >>> for found in check(table).findings:
    ...     print(found.severity, found.code)
    error needs-majority
    warning few-pairs
    note recurring-items
    """
    check_share("prior", prior)
    if majority not in (None, "positive", "negative"):
        raise ValueError(f"majority must be 'positive' or 'negative'; got {majority!r}")
    if prior is not None and majority is not None and prior != 0.5:
        side = "positive" if prior > 0.5 else "negative"
        if side != majority:
            raise ValueError(f"prior {prior:g} makes the {side} class the majority, not {majority}")
    if not len(table):
        raise ValueError("table has no rows: there is nothing to check")
    columns = Columns.of(table)
    columns = replace(columns, features=_features(columns, items))
    ranges = list(answers.check_ranges(columns))
    # Of answers on another scale nothing more can be said than that.
    readable = not any(found.code.endswith("-scale") for found in ranges)
    infeasible = columns.infeasible() if readable else Infeasible()
    implied = None
    if readable and columns.comparable.sum() >= answers.LEAST_ANSWERS:
        usual: Majority = "positive" if prior is not None and prior > 0.5 else "negative"
        implied = columns.implied_prior(majority or usual)
    findings = [*_items(columns, items), *ranges]
    if columns.itself.any():
        rows = np.flatnonzero(columns.itself)
        findings.append(finding("self-pair", rows, columns.ids[columns.ends[rows, 0]]))
    if readable:
        findings += answers.check_feasibility(columns, infeasible)
        findings += _repeats(columns)
        findings += answers.check_annotators(columns)
    findings += _learnable(columns, prior, majority)
    if readable:
        findings += _prior(columns, implied, prior, majority)
        findings += answers.check_comparisons(columns, prior)
    if len(columns):
        findings += _graph(columns)
        if len(columns) < FEW:
            findings.append(finding("few-pairs", pairs=len(columns)))
    if precision and not ranges:
        findings += _precision(columns, implied)
    findings += (
        finding("ignored-column", column=name, count=rows) for name, rows in table.ignored.items()
    )
    if alone := len(table) - len(columns):
        findings.append(finding("single-items", count=alone))
        numbers = columns.rows + 1
        findings = [replace(f, rows=tuple(int(numbers[r - 1]) for r in f.rows)) for f in findings]
    # A stable sort: within one severity the order above stays.
    findings.sort(key=lambda found: ("error", "warning", "note").index(found.severity))
    crowd = columns.crowd if readable and len(columns.annotators) else None
    return CheckReport(
        tuple(findings), _summary(columns, infeasible, implied), crowd, columns.said.counts()
    )


def _summary(columns: Columns, infeasible: Infeasible, implied: PriorEstimate | None) -> Summary:
    s, c, ranked = columns.has_s, columns.has_c, columns.preference != 0
    sizes = np.bincount(columns.component)
    return Summary(
        rows=len(columns),
        pairs=int(columns.pair.max(initial=-1)) + 1,
        items=len(columns.ids),
        annotators=len(columns.annotators),
        both=int((s & c).sum()),
        similarity_only=int((s & ~c).sum()),
        difference_only=int((c & ~s).sum()),
        preference_only=int((~s & ~c).sum()),
        preference=int(ranked.sum()),
        effective_rows=columns.effective_rows,
        infeasible=len(infeasible.rows),
        above_edge=len(infeasible.above),
        below_parabola=len(infeasible.below),
        infeasible_distance=infeasible.mean_distance,
        prior=implied,
        components=len(sizes),
        largest_component=float(sizes.max(initial=0) / max(sizes.sum(), 1)),
        seen_once=int((columns.degree == 1).sum()),
        learnable=columns.learnable,
    )


def _features(columns: Columns, items: Any) -> Any:
    """Features of the items in pairs; None where there are none, not of all, or all the same."""
    if not isinstance(items, ItemTable) or not len(columns) or _constant(items):
        return None
    rows = find_rows(columns.ids, items.ids)
    return items.features[rows] if (rows >= 0).all() else None


def _constant(items: ItemTable) -> bool:
    """Whether there are several items, and all have the same features."""
    first, parts = items.features[:1], range(1, len(items), MOST_ROWS)
    return len(parts) > 0 and all((items.features[k : k + MOST_ROWS] == first).all() for k in parts)


def _items(columns: Columns, items: Any) -> Iterator[Finding]:
    """Ids that are not among the items, items in no row, and pairs of items that are alike."""
    if items is None:
        return
    known = np.asarray(items.ids if isinstance(items, ItemTable) else items)
    places, alone = (find_rows(ids, known) for ids in (columns.ids, columns.alone))
    missing = places < 0
    if missing.any():
        rows = np.flatnonzero(missing[columns.ends].any(axis=1))
        absent = columns.ids[missing]
        number = "1 id is" if len(absent) == 1 else f"{len(absent):,} ids are"
        near = similar_id(absent[0].item(), known)
        hint = "" if near is None else f" The items have {near}: write ids alike in both files."
        yield finding("unknown-item", rows, absent, missing=number, known=len(known), hint=hint)
    if unused := len(np.unique(known)) - len({*places.tolist(), *alone.tolist()} - {-1}):
        yield finding("unjudged-items", count=unused, known=len(known))
    if isinstance(items, ItemTable) and _constant(items):
        yield finding("constant-features", features=len(items.names))
    if columns.features is not None:
        yield from _dependence(columns, columns.features)


def _dependence(columns: Columns, features: Any) -> Iterator[Finding]:
    """Pairs of items that were chosen for being alike, or unlike."""
    rows = np.flatnonzero(~columns.itself)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(int)]
    if len(rows) < answers.LEAST_ANSWERS:
        return
    ends = columns.ends[rows]
    left, right = (np.asarray(features[column], np.float64) for column in ends.T)
    dependence = Dependence.of(ends, len(ends))
    alike, error = end_correlation(left, right, columns.weight[rows], dependence)
    if stands_out(alike, error):
        how = "more alike" if alike > 0 else "less alike"
        yield finding("dependent-ends", how=how, alike=alike)
    # An honest similarity goes up with the product of deviations: s − ½ = (2r − 1)(2r' − 1)/2.
    given = columns.has_s[rows]
    if given.sum() >= answers.LEAST_ANSWERS and not list(answers.check_upside_down(columns)):
        both = np.stack([left, right])[:, given]
        one, two = (both - both.mean((0, 1))) / (both.std((0, 1)) + 1e-12)
        s = columns.s[rows][given]
        products = (s - s.mean()) * (one * two).mean(1) / len(s)
        error = math.sqrt(float(Dependence.of(ends[given], len(s)).variance(products)))
        if products.sum() < -4 * error:
            yield finding("upside-down", severity="warning")


def _repeats(columns: Columns) -> Iterator[Finding]:
    """Check pairs that one annotator judged more than once, in either order."""
    turned = (columns.s, columns.c * columns.turn, (columns.preference * columns.turn) / 1.0)
    usual: tuple[Severity, Severity] = ("warning", "note")
    whoever = ("the same annotator", "annotators without a name, perhaps several")
    named, who = columns.names != "", np.unique(columns.names, return_inverse=True)[1]
    for mask, severity, whom in zip((named, ~named), usual, whoever, strict=True):
        rows = np.flatnonzero(mask)
        if len(rows) < 2:
            continue
        whose = who[rows] * (int(columns.pair.max()) + 1) + columns.pair[rows]
        given = [values[rows] for values in turned]
        for code, found in (
            ("contradiction", _contradictions(whose, given)),
            ("duplicate", _copies(whose, given)),
        ):
            if len(found):
                yield finding(code, rows[found], severity=severity, whom=whom, bound=DISAGREEMENT)


def _contradictions(whose: Indices, given: list[Floats]) -> Indices:
    """The first row of each group of equal `whose` with answers that are too far apart."""
    order = np.argsort(whose, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(whose[order]) != 0])
    unlike = np.zeros(len(starts), bool)
    # Preferences are −1, 0 for none, and 1: only left against right is a contradiction.
    for values, bound in zip(given, (DISAGREEMENT, DISAGREEMENT, 1.5), strict=True):
        ordered = values[order]
        most = np.maximum.reduceat(np.where(np.isnan(ordered), -np.inf, ordered), starts)
        least = np.minimum.reduceat(np.where(np.isnan(ordered), np.inf, ordered), starts)
        unlike |= most - least > bound
    return np.sort(order[starts[unlike]])


def _copies(whose: Indices, given: list[Floats]) -> Indices:
    """Rows after the first of those with equal `whose` and equal answers."""
    keys = np.stack([whose.astype(np.float64), *(np.nan_to_num(v, nan=9.0) for v in given)])
    first = np.unique(keys, axis=1, return_index=True)[1]
    return np.setdiff1d(np.arange(len(whose)), first)


def _learnable(
    columns: Columns, prior: float | None, majority: Majority | None
) -> Iterator[Finding]:
    """Say what is missing for training, or that nothing is."""
    kind, stated = columns.learnable, [kinds.kind(name) for name in columns.said.kinds()]
    what = " and ".join(map(str, stated))
    if kind == "classes up to a swap":
        known = "prior" if prior is not None and prior != 0.5 else "majority" if majority else None
        told = f"your {known} tells that" if known else "say which is the larger (--majority)"
        yield finding("needs-majority", severity="note" if known else None, told=told, what=what)
    elif kind == "posteriors up to a shift":
        told = "give the class prior (--prior)" if prior is None else "your prior settles that"
        yield finding(
            "needs-prior", severity=None if prior is None else "note", told=told, what=what
        )
    elif kind == "a ranking":
        yield finding("ranking-only", what=what)
    elif kind == "nothing":
        value = float(columns.said.u[0])
        if columns.said.of("label").all():
            yield finding("one-class", side="positive" if value else "negative")
        else:
            yield finding("one-value", what=what, value=value)
    else:
        usual = "similarities together with differences or preferences"
        told = what if any(one.single for one in stated) else usual
        yield finding("learnable", what=told[0].upper() + told[1:])
        missing = ~(columns.has_s & columns.has_c)
        if missing.any():
            yield finding("missing", np.flatnonzero(missing), share=missing.mean())


def _prior(
    columns: Columns,
    implied: PriorEstimate | None,
    prior: float | None,
    majority: Majority | None,
) -> Iterator[Finding]:
    """Compare the implied prior with the stated one, and look for signs of selection."""
    if implied is not None:
        low, high, mean = implied.low, implied.high, implied.mean_similarity
        text = _in_words(implied, prior is not None or majority is not None)
        yield finding("implied-prior", mean=mean, implied=text)
        if prior is not None and not low <= prior <= high:
            yield finding("prior-disagrees", prior=prior, low=low, high=high, value=implied.value)
        if low == high == 0.5:
            yield finding("too-unlike", mean=mean)
        told = majority is not None or (prior is not None and prior != 0.5)
        if told and low <= 0.5 <= high and columns.learnable == "classes up to a swap":
            yield finding("majority-unclear", low=low, high=high)
    c = columns.c[columns.has_c]
    if len(c) >= 30:
        mean, error = float(c.mean()), float(c.std(ddof=1)) / math.sqrt(len(c))
        if abs(mean) > 4 * error and abs(mean) > 0.02:
            yield finding("ordered-pairs", side="right" if mean > 0 else "left", mean=mean)
    worth, rows = columns.effective_rows, len(columns)
    if worth < 0.9 * rows:
        severity: Severity = "warning" if worth < 0.25 * rows else "note"
        yield finding("weights", severity=severity, judgements=rows, worth=worth)


def _in_words(implied: PriorEstimate, known: bool) -> str:
    """What the similarities say of the prior, once where both sides of ½ are the same."""
    value, low, high = (f"{x:.3f}" for x in (implied.value, implied.low, implied.high))
    if value == "0.500":
        span = f"{low} to {high}" if known else f"{low} to {1 - implied.low:.3f}"
        return f"classes of equal size, a share of positives of 0.500 (95%: {span})"
    text = f"a share of positives of {value} (95%: {low} to {high})"
    if known:
        return text
    return (
        f"{text}, or {1 - implied.value:.3f} if the positive class is the majority, which "
        "similarities cannot tell"
    )


def _graph(columns: Columns) -> Iterator[Finding]:
    """Say how connected the pairs are, and what that means."""
    sizes, items = np.bincount(columns.component), len(columns.ids)
    once = int((columns.degree == 1).sum())
    if once == items:
        yield finding("independent-pairs")
    else:
        whole = "All items hang together"
        if len(sizes) > 1:
            whole = f"Pairs form {len(sizes):,} components, the largest of {sizes.max():,} items"
        degree = columns.degree.mean()
        yield finding("recurring-items", whole=whole, degree=degree, once=once, items=items)
    # Components in which nothing tells the classes apart, though it does elsewhere.
    tells = (columns.has_c & (columns.c != 0)) | (columns.preference != 0)
    oriented = np.zeros(len(sizes), bool)
    oriented[columns.component[columns.ends[tells, 0]]] = True
    lost = ~oriented[columns.component[columns.ends[:, 0]]]
    if tells.any() and lost.any():
        rows, apart = np.flatnonzero(lost), int((~oriented).sum())
        yield finding("unoriented-component", rows, lost=apart, components=len(oriented))


def _precision(columns: Columns, implied: PriorEstimate | None) -> Iterator[Finding]:
    """How well an accuracy could be known from these pairs."""
    both = columns.has_s & columns.has_c & columns.useful
    n = int(both.sum() * columns.effective_rows / max(len(columns), 1))
    if implied is None or n < 30 or not (columns.s[both] < 1).any():
        return
    prior = min(max(implied.value, 0.02), 0.98)
    strength = annotator_strength(PairLabels(columns.s[both], columns.c[both], noisy=True), prior)
    accuracy = min(0.95, annotator_accuracy(strength, prior))
    if accuracy > 0.55:
        width = expected_half_width(n, accuracy=accuracy, prior=prior, strength=strength)
        yield finding("precision", pairs=n, accuracy=accuracy, width=width)
