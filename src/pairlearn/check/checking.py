"""`check`: look a table of judgements over before anything is learnt from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from pairlearn.check.annotators import check_annotators, prior_caveats, too_unlike
from pairlearn.check.answers import (
    DISAGREEMENT,
    LEAST_ANSWERS,
    Answers,
    Infeasible,
    check_comparisons,
    check_feasibility,
    check_ranges,
    check_upside_down,
)
from pairlearn.check.findings import CheckReport, Finding, Severity, Summary, finding
from pairlearn.check.planning import annotator_accuracy, annotator_strength, expected_half_width
from pairlearn.columns import Floats, Indices, check_share, find_rows, similar_id
from pairlearn.dependence import Dependence
from pairlearn.evaluation.ends import correlated_ends
from pairlearn.io import ItemTable
from pairlearn.io.cells import list_names
from pairlearn.judgements import Judgements, kinds
from pairlearn.labels import PairLabels
from pairlearn.prior import PriorEstimate

Majority = Literal["positive", "negative"]

FEW = 10
"""Pairs below which there is nothing to learn from, or to measure with."""
HELD_OUT = 0.2
"""Share of the pairs that `fit` measures with."""
SHOWN = 3
"""Columns that a finding names."""
ASSUMED = " That assumes the share of positives above, which may be wrong."
MOST_ROWS = 20_000
"""Rows whose items are compared, spread evenly over the table."""


def check(
    table: Judgements,
    *,
    items: Any = None,
    prior: float | None = None,
    majority: Majority | None = None,
    precision: bool = True,
) -> CheckReport:
    """Check a table of judgements before anything is learnt from it.

    Rows about a single item are counted, and known classes tell who has left and right exchanged.

    Parameters
    ----------
    table : Judgements
    items : ItemTable or array of ids, optional
        Where every id of the table should be found. Features also show whether the two items of a
        pair are alike more often than by chance, and whose answers are related to the items.
    prior : float, optional
        The known share of positives, to compare with what the judgements imply.
    majority : {"positive", "negative"}, optional
        The larger class, if known.
    precision : bool
        Also simulate how precisely an accuracy could be measured.

    Examples
    --------
    >>> table = Judgements.from_pairs([[0, 1], [1, 2]], [[0.9, np.nan], [0.3, np.nan]])
    >>> for finding in check(table).findings:
    ...     print(finding.severity, finding.code)
    error needs-majority
    warning few-pairs
    note recurring-items
    """
    _check_arguments(table, prior, majority)
    answers = Answers.of(table)
    answers = replace(answers, features=_features(answers, items))
    ranges = list(check_ranges(answers))
    # On another scale, no other check of the values means anything.
    readable = not any(finding.code.endswith("-scale") for finding in ranges)
    infeasible = answers.infeasible() if readable else Infeasible()
    findings = [*_items(answers, items), *ranges]
    dependent = any(finding.code == "dependent-ends" for finding in findings)
    implied, caveats = None, []
    if readable and answers.comparable.sum() >= LEAST_ANSWERS:
        told = majority or answers.larger_class or "negative"
        if majority is None and prior is not None:
            told = "positive" if prior > 0.5 else "negative"
        implied = answers.implied_prior(told)
        caveats = prior_caveats(answers, implied, dependent=dependent)
    if answers.self_pairs.any():
        rows = np.flatnonzero(answers.self_pairs)
        findings.append(finding("self-pair", rows, answers.ids[answers.ends[rows, 0]]))
    if readable:
        findings += check_feasibility(answers, infeasible)
        findings += _repeats(answers)
        findings += check_annotators(answers)
    findings += _learnable(answers, prior, majority)
    if readable:
        findings += _prior(answers, implied, caveats, prior, majority)
        findings += check_comparisons(answers, prior)
    if len(answers):
        findings += _graph(answers, dependent)
        findings += _few(answers)
    if precision and not ranges:
        findings += _precision(answers, implied, caveats)
    if single := int(table.single.sum()):
        findings.append(finding("single-items", count=single))
    # Rows so far count those about pairs alone.
    findings = [
        replace(f, rows=tuple(int(answers.rows[k - 1]) + 1 for k in f.rows)) for f in findings
    ]
    # A stable sort: within one severity the order above stays.
    findings.sort(key=lambda f: ("error", "warning", "note").index(f.severity))
    return CheckReport(
        tuple(findings),
        _summary(answers, infeasible, implied),
        crowd=answers.crowd if readable and len(answers.annotators) else None,
        statements=answers.statements.counts(),
    )


def _check_arguments(table: Any, prior: float | None, majority: str | None) -> None:
    if not isinstance(table, Judgements):
        kind = type(table).__name__
        raise TypeError(f"table must be Judgements, as read_pairs returns; got {kind}")
    check_share("prior", prior)
    if majority not in (None, "positive", "negative"):
        raise ValueError(f"majority must be 'positive' or 'negative'; got {majority!r}")
    if prior is not None and majority is not None and prior != 0.5:
        side = "positive" if prior > 0.5 else "negative"
        if side != majority:
            raise ValueError(f"prior {prior:g} makes the {side} class the majority, not {majority}")
    if not len(table):
        raise ValueError("table has no rows: there is nothing to check")


def _summary(answers: Answers, infeasible: Infeasible, implied: PriorEstimate | None) -> Summary:
    s, c = answers.has_s, answers.has_c
    sizes = np.bincount(answers.component)
    return Summary(
        rows=len(answers),
        pairs=int(answers.pair.max(initial=-1)) + 1,
        items=len(answers.ids),
        annotators=len(answers.annotators),
        both=int((s & c).sum()),
        similarity_only=int((s & ~c).sum()),
        difference_only=int((c & ~s).sum()),
        preference_only=int((~s & ~c & (answers.preference != 0)).sum()),
        preference=int((answers.preference != 0).sum()),
        effective_rows=answers.effective_rows,
        infeasible=len(infeasible.rows),
        above_edge=len(infeasible.above),
        below_parabola=len(infeasible.below),
        infeasible_distance=infeasible.mean_distance,
        prior=implied,
        components=len(sizes),
        largest_component=float(sizes.max(initial=0) / max(sizes.sum(), 1)),
        seen_once=int((answers.degree == 1).sum()),
        learnable=answers.learnable,
    )


def _features(answers: Answers, items: Any) -> Any:
    """Features of the items, those in pairs first; None where they are missing or all the same."""
    if not isinstance(items, ItemTable) or not len(answers) or _constant(items):
        return None
    rows = find_rows(np.concatenate([answers.ids, answers.other_ids]), items.ids)
    return items.features[rows] if (rows >= 0).all() else None


def _constant(items: ItemTable) -> bool:
    """Whether there are several items, and all have the same features."""
    first, parts = items.features[:1], range(1, len(items), MOST_ROWS)
    return len(parts) > 0 and all((items.features[k : k + MOST_ROWS] == first).all() for k in parts)


def _items(answers: Answers, items: Any) -> Iterator[Finding]:
    """Unknown ids, items in no row, and what the features show."""
    if items is None:
        return
    known = np.asarray(items.ids if isinstance(items, ItemTable) else items)
    places, alone = (find_rows(ids, known) for ids in (answers.ids, answers.single_ids))
    missing = places < 0
    absent = np.union1d(answers.ids[missing], answers.single_ids[alone < 0])
    if len(absent):
        rows = np.flatnonzero(missing[answers.ends].any(axis=1))
        number = "1 id is" if len(absent) == 1 else f"{len(absent):,} ids are"
        near = similar_id(absent[0].item(), known)
        hint = "" if near is None else f" The items have {near}: write ids alike in both files."
        yield finding("unknown-item", rows, absent, missing=number, known=len(known), hint=hint)
    if unused := len(np.unique(known)) - len({*places.tolist(), *alone.tolist()} - {-1}):
        yield finding("unjudged-items", count=unused, known=len(known))
    if isinstance(items, ItemTable) and _constant(items):
        yield finding("constant-features", features=len(items.names))
    if answers.features is not None:
        yield from _dependence(answers, answers.features, items.names)


def _dependence(answers: Answers, features: Any, names: Sequence[str]) -> Iterator[Finding]:
    """Pairs chosen for being alike or unlike, and similarities that run against the features."""
    rows = np.flatnonzero(~answers.self_pairs)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(int)]
    if len(rows) < LEAST_ANSWERS:
        return
    ends = answers.ends[rows]
    left, right = (np.asarray(features[column], np.float64) for column in ends.T)
    dependence = Dependence.of(ends, len(ends))
    if (found := correlated_ends(left, right, answers.weight[rows], dependence)) is not None:
        correlation, columns = found
        order = np.argsort(-np.sign(correlation) * columns)[:SHOWN]
        most = list_names([names[column] for column in order], SHOWN)
        code = "alike-ends" if correlation > 0 else "unlike-ends"
        yield finding(code, name="dependent-ends", alike=correlation, most=most)
    # An honest similarity goes up with the product of deviations: s − ½ = (2r − 1)(2r' − 1)/2.
    judged = answers.has_s[rows]
    if judged.sum() >= LEAST_ANSWERS and not list(check_upside_down(answers)):
        x = np.stack([left, right])[:, judged]
        z, z_prime = (x - x.mean((0, 1))) / (x.std((0, 1)) + 1e-12)
        s = answers.s[rows][judged]
        products = (s - s.mean()) * (z * z_prime).mean(1) / len(s)
        error = math.sqrt(float(Dependence.of(ends[judged], len(s)).variance(products)))
        if products.sum() < -4 * error:
            yield finding("upside-down", severity="warning")


def _repeats(answers: Answers) -> Iterator[Finding]:
    """Check pairs that one annotator judged more than once, in either order."""
    oriented = [
        answers.s,
        answers.c * answers.orientation,
        (answers.preference * answers.orientation).astype(np.float64),
    ]
    named, who = answers.names != "", np.unique(answers.names, return_inverse=True)[1]
    groups = who * (answers.pair.max(initial=0) + 1) + answers.pair
    severity: Severity
    for mask, severity, whom in (
        (named, "warning", "the same annotator"),
        (~named, "note", "annotators without a name, perhaps several"),
    ):
        rows = np.flatnonzero(mask)
        values = [column[rows] for column in oriented]
        for code, repeats in (
            ("contradiction", _contradictions(groups[rows], values)),
            ("duplicate", _copies(groups[rows], values)),
        ):
            if len(repeats):
                yield finding(code, rows[repeats], severity=severity, whom=whom, bound=DISAGREEMENT)


def _contradictions(groups: Indices, columns: list[Floats]) -> Indices:
    """The first row of each group with answers that are too far apart."""
    if not len(groups):
        return groups
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(groups[order]) != 0])
    unlike = np.zeros(len(starts), bool)
    # Preferences are −1, 0 for none, and 1: only left against right is a contradiction.
    for values, bound in zip(columns, (DISAGREEMENT, DISAGREEMENT, 1.5), strict=True):
        ordered = values[order]
        most = np.maximum.reduceat(np.where(np.isnan(ordered), -np.inf, ordered), starts)
        least = np.minimum.reduceat(np.where(np.isnan(ordered), np.inf, ordered), starts)
        unlike |= most - least > bound
    return np.sort(order[starts[unlike]])


def _copies(groups: Indices, columns: list[Floats]) -> Indices:
    """Rows that repeat the answers of an earlier row of their group."""
    keys = np.stack([groups.astype(np.float64), *(np.nan_to_num(v, nan=9.0) for v in columns)])
    first = np.unique(keys, axis=1, return_index=True)[1]
    return np.setdiff1d(np.arange(len(groups)), first)


def _learnable(
    answers: Answers, prior: float | None, majority: Majority | None
) -> Iterator[Finding]:
    """What is missing for training, if anything."""
    stated = [kinds.kind(name) for name in answers.statements.kinds()]
    names = _listed(stated)
    if answers.learnable == "classes up to a swap":
        known = "prior" if prior is not None and prior != 0.5 else "majority" if majority else None
        remedy = f"your {known} tells that" if known else "say which is the larger (--majority)"
        severity: Severity | None = "note" if known else None
        yield finding("needs-majority", severity=severity, remedy=remedy, kinds=names)
    elif answers.learnable == "posteriors up to a shift":
        remedy = "give the class prior (--prior)" if prior is None else "your prior settles that"
        severity = None if prior is None else "note"
        yield finding("needs-prior", severity=severity, remedy=remedy, kinds=names)
    elif answers.learnable == "a ranking":
        remedy = "Your prior tells fit where to cut"
        if prior is None:
            remedy = "fit needs the class prior, to know where to cut (--prior)"
        yield finding("ranking-only", kinds=names, remedy=remedy)
    elif answers.learnable == "nothing":
        value = float(answers.statements.u[0])
        if answers.statements.of("label").all():
            yield finding("one-class", side="positive" if value else "negative")
        else:
            yield finding("one-value", kinds=names, value=value)
    else:
        names = _listed([kind for kind in stated if kind.fixes(False)])
        if {kind.name for kind in stated} <= {"both", "similarity", "difference", "preference"}:
            names = "similarities together with differences or preferences"
        yield finding("learnable", kinds=names[0].upper() + names[1:])
        soft = answers.has_s | answers.has_c
        # Rows of other kinds, such as comparisons, lack nothing.
        missing = (soft | (answers.preference != 0)) & ~(answers.has_s & answers.has_c)
        if len(answers) and not soft.any():
            yield finding("not-measurable")
        elif missing.any():
            share = missing.sum() / (len(answers) + len(answers.single_ids))
            yield finding("missing", np.flatnonzero(missing), share=share)


def _listed(stated: Sequence[kinds.Kind]) -> str:
    """Kinds of statement in a sentence."""
    *others, last = map(str, stated)
    return f"{', '.join(others)} and {last}" if others else last


def _prior(
    answers: Answers,
    implied: PriorEstimate | None,
    caveats: Sequence[str],
    prior: float | None,
    majority: Majority | None,
) -> Iterator[Finding]:
    """The implied prior, whether it agrees with the stated one, and signs of selection."""
    if implied is not None:
        low, high, mean = implied.low, implied.high, implied.mean_similarity
        side_known = (prior, majority, answers.larger_class) != (None, None, None)
        if too_unlike(implied):
            yield finding("too-unlike", mean=mean)
        else:
            words, but = _in_words(implied, side_known), "".join(f" But {t}." for t in caveats)
            yield finding("implied-prior", mean=mean, implied=words, caveats=but)
            if prior is not None and not low <= prior <= high:
                value = implied.value
                yield finding("prior-disagrees", prior=prior, low=low, high=high, value=value)
        relied_on = majority is not None or (prior is not None and prior != 0.5)
        if relied_on and low <= 0.5 <= high and answers.learnable == "classes up to a swap":
            yield finding("majority-unclear", low=low, high=high)
    c = answers.c[answers.has_c]
    if len(c) >= 30:
        mean, error = float(c.mean()), float(c.std(ddof=1)) / math.sqrt(len(c))
        if abs(mean) > 4 * error and abs(mean) > 0.02:
            yield finding("ordered-pairs", side="right" if mean > 0 else "left", mean=mean)
    worth, rows = answers.effective_rows, len(answers)
    if worth < 0.9 * rows:
        severity: Severity = "warning" if worth < 0.25 * rows else "note"
        yield finding("weights", severity=severity, judgements=rows, worth=worth)


def _in_words(implied: PriorEstimate, side_known: bool) -> str:
    """The implied prior, on both sides of ½ if the side is not known."""
    value, low, high = (f"{x:.3f}" for x in (implied.value, implied.low, implied.high))
    if value == "0.500":
        span = f"{low} to {high}" if side_known else f"{low} to {1 - implied.low:.3f}"
        return f"classes of equal size, a share of positives of 0.500 (95%: {span})"
    text = f"a share of positives of {value} (95%: {low} to {high})"
    if side_known:
        return text
    return (
        f"{text}, or {1 - implied.value:.3f} if the positive class is the majority, which "
        "similarities cannot tell"
    )


def _graph(answers: Answers, dependent: bool) -> Iterator[Finding]:
    """How pairs share items, and what that means."""
    sizes, items = np.bincount(answers.component), len(answers.ids)
    once = int((answers.degree == 1).sum())
    if once == items and not dependent:
        yield finding("independent-pairs")
    elif once < items:
        whole = "All items hang together"
        if len(sizes) > 1:
            whole = f"Pairs form {len(sizes):,} components, the largest of {sizes.max():,} items"
        degree = answers.degree.mean()
        yield finding("recurring-items", whole=whole, degree=degree, once=once, items=items)
    # Components without a direction, though others have one.
    oriented = np.zeros(len(sizes), bool)
    oriented[answers.component[_directed(answers.statements).ends[:, 0]]] = True
    lost = ~oriented[answers.component[answers.ends[:, 0]]]
    if oriented.any() and lost.any():
        rows, apart = np.flatnonzero(lost), int((~oriented).sum())
        yield finding("unoriented-component", rows, lost=apart, components=len(oriented))


def _few(answers: Answers) -> Iterator[Finding]:
    """Too few pairs to learn from, or to measure the model with."""
    if len(answers) < FEW:
        yield finding("few-pairs", pairs=len(answers))
        return
    pairs = len(np.unique(answers.pair[answers.has_s | answers.has_c]))
    if 0 < (held_out := round(HELD_OUT * pairs)) < FEW:
        yield finding("few-to-measure", pairs=pairs, held_out=held_out)


def _directed(statements: Judgements) -> Judgements:
    """Statements about pairs that tell the classes apart: they move posteriors of one half."""
    moves = np.zeros(len(statements), bool)
    for name in statements.kinds():
        kind, rows = kinds.kind(name), statements.of(name) & ~statements.single
        half = np.full(int(rows.sum()), 0.5)
        try:
            ends = kind.complete(half, half, *statements.values[rows].T)
        except TypeError:  # it completes nothing
            moves[rows] = "side" in kind.fixes(False)
        else:
            moves[rows] = (abs(np.stack(ends) - half) > 1e-12).any(0)
    return statements[moves]


def _precision(
    answers: Answers, implied: PriorEstimate | None, caveats: Sequence[str]
) -> Iterator[Finding]:
    """How precisely an accuracy could be measured with these pairs."""
    both = answers.whole & answers.comparable
    n = int(both.sum() * answers.effective_rows / max(len(answers), 1))
    if implied is None or too_unlike(implied) or n < 30 or not (answers.s[both] < 1).any():
        return
    prior = min(max(implied.value, 0.02), 0.98)
    strength = annotator_strength(PairLabels(answers.s[both], answers.c[both], noisy=True), prior)
    accuracy = min(0.95, annotator_accuracy(strength, prior))
    if accuracy > 0.55:
        width = expected_half_width(n, accuracy=accuracy, prior=prior, strength=strength)
        distinct, fewer = len(np.unique(answers.pair[both])), ASSUMED * bool(caveats)
        if distinct < n:
            fewer += (
                f" The {distinct:,} here, with several answers to some, tell it less precisely."
            )
        yield finding("precision", pairs=n, accuracy=accuracy, width=width, fewer=fewer)
