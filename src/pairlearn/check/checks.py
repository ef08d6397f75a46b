"""What `check` looks for: one class for each finding, in the registry `CHECKS`.

The docstring of a class is its sentence, with the names of numbers in braces. To add a check, write
a class with such a sentence, that says what it is, what it means and what to do, with a code, a
severity and the method `look`; and add a table that has it and one that has not to the
tests. There is one code for each remedy: problems with the same remedy are one finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from pairlearn.check.view import LARGE, TableView, clear, distances
from pairlearn.columns import Floats, Indices, similar_id
from pairlearn.dependence import CLEAR, Dependence
from pairlearn.finding import Finding, Severity
from pairlearn.io.cells import list_names
from pairlearn.judgements import kinds
from pairlearn.judgements.answer_scale import LEAST_ANSWERS
from pairlearn.judgements.identification import needs_priors, not_told_apart
from pairlearn.labels import PairLabels

#: Rows, ids or columns that a finding names.
SHOWN = 5
#: Answers to one question that differ by more contradict each other: one level of five points.
DISAGREEMENT = 0.2
#: Distance from the feasible region that rounding to ten levels does not explain.
FAR = 0.1
#: Share of the rows up to which a fault is one of single rows, and not of the table.
RARE = 0.05
#: How far mean |c| may be above its bound: noise of σ = ½ raises it by 3%.
SLACK = 1.1

#: All checks by code, in the order of their findings.
CHECKS: dict[str, Check] = {}


class Check:
    """A check for one finding; its class is registered by its code."""

    code: ClassVar[str]
    severity: ClassVar[Severity]
    sentence: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "code" in vars(cls):
            cls.sentence = " ".join((cls.__doc__ or cls.code).split())
            CHECKS[cls.code] = cls()

    def look(self, view: TableView) -> Iterator[Finding]:
        """Yield the finding if the table has it; rows count from 0, among those about pairs."""
        raise NotImplementedError

    def found(
        self,
        rows: Any = (),
        ids: Any = (),
        *,
        severity: Severity | None = None,
        sentence: str | None = None,
        **numbers: Any,
    ) -> Finding:
        """Make the finding of some rows or ids; the other arguments override what is usual."""
        return Finding(
            severity or self.severity,
            self.code,
            sentence or self.sentence,
            len(rows) or len(ids),
            tuple(int(row) for row in rows[:SHOWN]),
            tuple(np.asarray(ids[:SHOWN]).tolist()),
            numbers,
        )


# ---- columns and items ------------------------------------------------------------------------


class SelfPair(Check):
    """Items are paired with themselves. Such a pair teaches nothing, and its two classes are
    not independent, although every estimator assumes that they are. Drop these rows.
    """

    code, severity = "self-pair", "error"

    def look(self, view: TableView) -> Iterator[Finding]:
        rows = np.flatnonzero(view.self_pairs)
        if len(rows):
            yield self.found(rows, view.ids[view.ends[rows, 0]])


class UnknownItem(Check):
    """{missing:,} of the ids are not among the {known:,} items: add these items, or drop the
    rows. Ids are compared exactly, spaces included.{hint}
    """

    code, severity = "unknown-item", "error"

    def look(self, view: TableView) -> Iterator[Finding]:
        absent = view.unknown_ids
        if view.item_ids is None or not len(absent):
            return
        rows = np.flatnonzero(np.isin(view.ids, absent)[view.ends].any(axis=1))
        near = similar_id(absent[0].item(), view.item_ids)
        hint = "" if near is None else f" The items have {near}: write both in the same way."
        yield self.found(rows, absent, missing=len(absent), known=len(view.item_ids), hint=hint)


class ConstantFeatures(Check):
    """All items have the same features ({features:,}), so a model cannot tell them apart.
    Give features that differ.
    """

    code, severity = "constant-features", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        if view.constant_features:
            yield self.found(features=len(view.feature_names))


class DependentEnds(Check):
    """The two items of a pair are {how} alike than pairs drawn at random (correlation
    {correlation:.2f}, mostly in {most}). The implied share of positives and an accuracy without
    labels can be far off{model}. Judge about 50 pairs drawn at random from all items, or give
    weights that undo how the pairs were chosen, and check the result on items of known class.
    """

    code, severity = "dependent-ends", "warning"
    harm = ", and so can the model, since no pair compares items that are far apart"

    def look(self, view: TableView) -> Iterator[Finding]:
        if view.correlation is None:
            return
        correlation, columns = view.correlation
        order = np.argsort(-np.sign(correlation) * columns)[:SHOWN]
        yield self.found(
            how="more" if correlation > 0 else "less",
            correlation=float(correlation),
            most=list_names([view.feature_names[column] for column in order], SHOWN),
            model=self.harm * bool(correlation > 0),
        )


# ---- meaning of the answers -------------------------------------------------------------------


def _questions(view: TableView) -> Iterator[tuple[str, Floats, int, Indices]]:
    """Each question with its answers, the least that is possible, and rows out of range."""
    for question, values, low in (
        ("similarity", view.stated_s, 0),
        ("difference", view.stated_c, -1),
    ):
        outside = np.flatnonzero((values < low) | (values > 1))
        if len(outside):
            yield question, values, low, outside


class OutOfRange(Check):
    """The {question} must lie in [{low}, 1], and row {row} is {value:g}. Correct it; if noise
    was added to the answers, pass noisy=True, or --noisy.
    """

    code, severity = "out-of-range", "error"

    def look(self, view: TableView) -> Iterator[Finding]:
        for question, values, low, rows in _questions(view):
            if view.scales[question] is None:
                row, value = int(view.rows[rows[0]]) + 1, float(values[rows[0]])
                yield self.found(rows, question=question, low=low, row=row, value=value)


class OtherScale(Check):
    """The {question} column is on another scale, {least:g} to {most:g}: give the lowest
    and the highest possible answer, as in --{question}-scale={scale}, or map the answers
    to [{low}, 1].
    """

    code, severity = "other-scale", "error"
    single = (
        "The {question} must lie in [{low}, 1], and row {row} is {value:g}: put it on the scale "
        "of the other rows."
    )

    def look(self, view: TableView) -> Iterator[Finding]:
        for question, values, low, rows in _questions(view):
            if (scale := view.scales[question]) is None:
                continue
            few = len(rows) <= RARE * (~np.isnan(values)).sum()
            far = int(np.nanargmax(np.abs(values)))
            yield self.found(
                rows,
                sentence=self.single if few else None,
                question=question,
                low=low,
                row=int(view.rows[far]) + 1,
                value=float(values[far]),
                least=float(np.nanmin(values)),
                most=float(np.nanmax(values)),
                scale=str(scale),
            )


class UpsideDown(Check):
    """Similarities{who} seem to be upside down: items that their {by} put in one class are judged
    different, and vice versa. 1 means “surely the same class”, 0 “surely different classes”.
    Pass --similarity-scale 1,0, or --similarity-scale 0,1 if they are correct as they are.
    """

    code, severity = "upside-down", "error"

    def look(self, view: TableView) -> Iterator[Finding]:
        names = [name for name in view.answer_scales if self.against_differences(view, name)]
        if names:
            all_names = len(names) == len(view.answer_scales)
            who = "" if all_names else f" by {list_names(names, SHOWN)}"
            severity: Severity = "error" if all_names else "warning"
            named = [name for name in names if name]
            yield self.found((), named, severity=severity, who=who, by="differences")
        elif self.against_features(view):
            yield self.found(severity="warning", who="", by="features")

    @staticmethod
    def against_differences(view: TableView, name: str) -> bool:
        """Whether similarities grow with |c|; where that is large, s is far off and 1 − s near."""
        rows = view.has_s & view.has_c & ~view.self_pairs & (view.names == name)
        s, c = view.s[rows], np.abs(view.c[rows])
        large = c >= LARGE
        if large.sum() < LEAST_ANSWERS:
            return False
        products = (s - s.mean()) * (c - c.mean())
        as_is, turned = (
            float(distances(PairLabels(v[large], c[large], noisy=True)).mean()) for v in (s, 1 - s)
        )
        rises = products.sum() > 0 and clear(products, view.ends[rows])
        return rises and as_is > 2 * max(FAR, turned)

    @staticmethod
    def against_features(view: TableView) -> bool:
        """Whether s falls with the product of deviations: s − ½ = (2r − 1)(2r' − 1)/2."""
        rows, left, right = view.compared
        judged = view.has_s[rows]
        if judged.sum() < LEAST_ANSWERS:
            return False
        x = np.stack([left, right])[:, judged]
        z, z_prime = (x - x.mean((0, 1))) / (x.std((0, 1)) + 1e-12)
        s = view.s[rows][judged]
        products = (s - s.mean()) * (z * z_prime).mean(1)
        return bool(products.sum() < 0) and clear(products, view.ends[rows][judged])


class Comparisons(Check):
    """The differences average {mean:.2f} in absolute value, more than the {most:.2f} that pairs of
    independent items can reach. If they only say which item is the more positive, rename their
    column to preference. If unlike pairs were chosen on purpose, give weights that undo this.
    """

    code, severity = "comparisons", "error"

    def look(self, view: TableView) -> Iterator[Finding]:
        rows = view.has_c & ~view.self_pairs
        if rows.sum() < LEAST_ANSWERS:
            return
        c, weight = np.abs(view.c[rows]), view.weight[rows] / view.weight[rows].sum()
        mean = float(weight @ c)
        variance = Dependence.of(view.ends[rows], len(c)).variance((c - mean) * weight)
        # Where there are similarities, another check compares the prior with them.
        stated = 0.5 if view.prior is None or view.has_s.any() else view.prior
        most = 2 * stated * (1 - stated)
        if mean - CLEAR * float(variance) ** 0.5 > SLACK * most:
            hard = bool(np.isin(c, (0, 1)).all())
            yield self.found(severity="error" if hard else "warning", mean=mean, most=most)


class Infeasible(Check):
    """{share:.1%} of the rows with both judgements have answers that no two posteriors produce.
    They are {off:.2f} away from feasible ones on average, {far:,} more than {limit:g}. In {above:,}
    the similarity is too high for the difference (s > 1 − |c|), in {below:,} too low (2s < 1 − c²).
    Noise causes both, and training corrects for noise that averages to zero. If one kind prevails,
    find out how annotators understood the question.
    """

    code, severity = "infeasible", "note"

    def look(self, view: TableView) -> Iterator[Finding]:
        wrong, both = view.infeasible, int((view.has_s & view.has_c).sum())
        if not len(wrong.rows):
            return
        far = int((wrong.distance > FAR).sum())
        yield self.found(
            wrong.rows,
            severity="warning" if far > RARE * both else "note",
            share=len(wrong.rows) / both,
            off=float(wrong.distance.mean()),
            far=far,
            limit=FAR,
            above=len(wrong.above),
            below=len(wrong.below),
        )


class ZeroDifference(Check):
    """Pairs judged unlike have a difference of exactly 0, which says that both items are equally
    likely to be positive. If you did not ask for the difference, leave it empty.
    """

    code, severity = "zero-difference", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        below = view.infeasible.below
        zero = below[view.c[below] == 0]
        if len(zero) > max(len(view.infeasible.rows) / 2, LEAST_ANSWERS - 1):
            yield self.found(zero)


class OpposedPreference(Check):
    """The preference names one item as the more positive, and the difference the other one. A
    difference above 0 says that the right item is the more positive.
    """

    code, severity = "opposed-preference", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        rows = np.flatnonzero(view.has_c & (view.preference * view.c < -DISAGREEMENT))
        if len(rows):
            yield self.found(rows)


# ---- repeated answers -------------------------------------------------------------------------


def _repeats(view: TableView) -> Iterator[tuple[Severity, str, Indices, Indices, list[Floats]]]:
    """Rows by severity and in words whose, with their groups of one pair and one annotator."""
    turned = view.orientation
    columns = [view.s, view.c * turned, (view.preference * turned).astype(np.float64)]
    named, who = view.names != "", np.unique(view.names, return_inverse=True)[1]
    groups = who * (view.pair.max(initial=0) + 1) + view.pair
    whom = "the same annotator", "annotators without a name, perhaps several"
    severities: tuple[Severity, Severity] = ("warning", "note")
    for mask, severity, words in zip((named, ~named), severities, whom, strict=True):
        rows = np.flatnonzero(mask)
        if len(rows):
            yield severity, words, rows, groups[rows], [column[rows] for column in columns]


class Contradiction(Check):
    """Pairs were judged more than once by {whom}, perhaps in reverse order, with answers more
    than {bound:g} apart. All of them count: drop those that are wrong. The rows listed are the
    first judgements.
    """

    code, severity = "contradiction", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        for severity, whom, rows, groups, columns in _repeats(view):
            order = np.argsort(groups, kind="stable")
            starts = np.flatnonzero(np.r_[True, np.diff(groups[order]) != 0])
            apart = np.zeros(len(starts), bool)
            # Preferences are −1, 0 for none, and 1: only left against right is a contradiction.
            for values, bound in zip(columns, (DISAGREEMENT, DISAGREEMENT, 1.5), strict=True):
                ordered = values[order]
                most = np.maximum.reduceat(np.where(np.isnan(ordered), -np.inf, ordered), starts)
                least = np.minimum.reduceat(np.where(np.isnan(ordered), np.inf, ordered), starts)
                apart |= most - least > bound
            first = np.sort(order[starts[apart]])
            if len(first):
                yield self.found(rows[first], severity=severity, whom=whom, bound=DISAGREEMENT)


class Duplicate(Check):
    """Rows repeat an answer to the same pair by {whom}. Each counts as a separate judgement:
    drop them if they are copies.
    """

    code, severity = "duplicate", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        for severity, whom, rows, groups, columns in _repeats(view):
            keys = np.stack(
                [groups.astype(np.float64), *(np.nan_to_num(v, nan=9) for v in columns)]
            )
            first = np.unique(keys, axis=1, return_index=True)[1]
            copies = np.setdiff1d(np.arange(len(groups)), first)
            if len(copies):
                yield self.found(rows[copies], severity=severity, whom=whom)


# ---- what can be learnt -----------------------------------------------------------------------


def _stated(view: TableView) -> str:
    """The kinds of statement in words."""
    *others, last = (str(kinds.kind(name)) for name in view.statements.kinds())
    return f"{', '.join(others)} and {last}" if others else last


class NeedsMajority(Check):
    """The table has only {kinds}, which show which items belong together, but not which class is
    the positive one. State the larger class (--majority).
    """

    code, severity = "needs-majority", "error"

    def look(self, view: TableView) -> Iterator[Finding]:
        known = view.majority is not None or view.prior not in (None, 0.5)
        if view.learnable == "classes up to a swap" and not known:
            yield self.found(kinds=_stated(view))


class NeedsPrior(Check):
    """The table has only {kinds}, which do not show how frequent the classes are. fit needs the
    class prior (--prior), or some judgements of similarity.
    """

    code, severity = "needs-prior", "error"

    def look(self, view: TableView) -> Iterator[Finding]:
        open_level = view.learnable in ("a ranking", "posteriors up to a shift")
        if open_level and view.prior is None:
            yield self.found(kinds=_stated(view))


class OneValue(Check):
    """All {kinds} are {value:g}, and there are no pairs: a model that gives every item {value:g}
    agrees with them. Add rows with other values, or judged pairs. If only positives are known, put
    them into the column positive and give the class prior (--prior).
    """

    code, severity = "one-value", "error"

    def look(self, view: TableView) -> Iterator[Finding]:
        if view.learnable == "nothing":
            yield self.found(kinds=_stated(view), value=float(view.statements.u[0]))


class FewPairs(Check):
    """There are {pairs:,} judged pairs, and fit holds out a fifth of them, {held_out:,}, to measure
    the accuracy: too few to say much. Judge a few dozen more; `pairlearn plan` says how many you
    need.
    """

    code, severity = "few-pairs", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        soft = ~(np.isnan(view.stated_s) & np.isnan(view.stated_c))
        pairs = len(np.unique(view.pair[soft] if soft.any() else view.pair))
        if pairs and (held_out := round(pairs / 5)) < LEAST_ANSWERS:
            yield self.found(pairs=pairs, held_out=held_out)


class NotMeasurable(Check):
    """No pair has a similarity or a difference, and only those give an accuracy without labels: fit
    trains a model but cannot measure it. Ask for similarities or differences of some pairs.
    """

    code, severity = "not-measurable", "note"

    def look(self, view: TableView) -> Iterator[Finding]:
        if len(view) and np.isnan(view.stated_s).all() and np.isnan(view.stated_c).all():
            yield self.found()


class NotToldApart(Check):
    """No statement tells these classes apart: {groups}. Their separate probabilities mean nothing.
    Ask about each of them (column about), or label some items of each.
    """

    code, severity = "not-told-apart", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        if alike := not_told_apart(view.statements):
            groups = "; ".join(", ".join(group) for group in alike)
            yield self.found(groups=groups)


class NeedsPriors(Check):
    """Some classes have differences only, which do not show how frequent they are.
    Give some similarities or labels, or in Python the shares of all classes (prior=).
    """

    code, severity = "needs-priors", "error"

    def look(self, view: TableView) -> Iterator[Finding]:
        if needs_priors(view.statements):
            yield self.found()


# ---- the prior, and how pairs were chosen -----------------------------------------------------


class TooUnlike(Check):
    """The similarities average {mean:.3f}, well below ½, which is impossible for random pairs of
    two classes. Perhaps there are three or more classes: ask about one class against the rest
    (“both are cats, or neither is”). Or unlike pairs were chosen on purpose: give weights that undo
    this. Or similarities are judged too low, or upside down (--similarity-scale).
    """

    code, severity = "too-unlike", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        if view.implied_prior is not None and view.too_unlike:
            yield self.found(mean=view.implied_prior.mean_similarity)


class PriorDisagrees(Check):
    """The stated prior {prior:g} is more than four standard errors from the {value:.3f} that the
    similarities imply (range {low:.3f} to {high:.3f}). Either it is not the prior of these pairs,
    or the annotators have another population in mind: see target_prior and annotator_prior.
    """

    code, severity = "prior-disagrees", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        implied, prior = view.clear_prior, view.prior
        if implied is None or prior is None or view.too_unlike:
            return
        if not implied.low <= prior <= implied.high:
            low, high, value = implied.low, implied.high, implied.value
            yield self.found(prior=prior, low=low, high=high, value=value)


class MajorityUnclear(Check):
    """The similarities allow for classes of equal size ({low:.3f} to {high:.3f}), and only the
    larger class tells which is which: the classes may come out swapped. Add more pairs, or some
    differences, preferences or known classes.
    """

    code, severity = "majority-unclear", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        implied, stated = view.implied_prior, view.majority or view.prior not in (None, 0.5)
        if implied is None or not stated or view.learnable != "classes up to a swap":
            return
        if implied.low <= 0.5 <= implied.high:
            yield self.found(low=implied.low, high=implied.high)


class OrderedPairs(Check):
    """The {side} item is the more positive one on average (mean difference {mean:+.3f}).
    Estimators with a prior assume that either item could stand on either side: shuffle left and
    right, reversing the sign of the difference with them, or find out why.
    """

    code, severity = "ordered-pairs", "warning"

    def look(self, view: TableView) -> Iterator[Finding]:
        rows = view.has_c & ~view.self_pairs
        c = view.c[rows]
        if len(c) >= LEAST_ANSWERS and clear(c, view.ends[rows]):
            yield self.found(side="right" if c.mean() > 0 else "left", mean=float(c.mean()))
