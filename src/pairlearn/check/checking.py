"""`check`: look a table of judgements over before anything is learnt from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pairlearn.annotators import SENTENCES
from pairlearn.check.checks import CHECKS
from pairlearn.check.people import UNRELIABLE, AnnotatorCheck
from pairlearn.check.summary import SEVERITIES, CheckReport, Summary
from pairlearn.check.view import TableView
from pairlearn.columns import check_share
from pairlearn.judgements import Judgements
from pairlearn.prior import Majority

#: Reasons why the implied share of positives may be wrong, and the findings that show them.
CAVEATS = {
    "annotators lean, guess or contradict each other": UNRELIABLE,
    "many answers are infeasible": {"infeasible"},
    "the items of a pair were not drawn independently": {"dependent-ends"},
    "similarities of random pairs cannot average well below ½": {"too-unlike"},
}


#: Findings about more than two classes.
CLASSES = {"not-told-apart", "needs-priors"}
#: Findings that are looked for with more than two classes: others are about the one of two.
OF_CLASSES = CLASSES | {
    "self-pair", "unknown-item", "constant-features", "out-of-range", "other-scale", "few-pairs",
    "not-measurable", *SENTENCES, "levels", "similar-names", "outlying-annotator",
    "leaning-annotator",
}  # fmt: skip


def check(
    table: Judgements,
    *,
    items: Any = None,
    prior: float | Mapping[str, float] | None = None,
    majority: Majority | None = None,
    codes: Collection[str] | None = None,
) -> CheckReport:
    """Check a table of judgements before anything is learnt from it.

    Parameters
    ----------
    table : Judgements
    items : ItemTable or array of ids, optional
        Where every id of the table should be found. Features also show whether the two items of a
        pair are alike more often than by chance, and whose answers are related to the items.
    prior : float, or mapping of str to float, optional
        The known share of positives, to compare with what the judgements imply; with more than two
        classes that of each.
    majority : {"positive", "negative"}, optional
        The larger class, if known.
    codes : collection of str, optional
        Look for these findings only.

    Examples
    --------
    >>> table = Judgements.from_pairs([[0, 1], [1, 2]], [[0.9, np.nan], [0.3, np.nan]])
    >>> for finding in check(table).findings:
    ...     print(finding.severity, finding.code)
    error needs-majority
    warning few-pairs
    """
    share = prior if isinstance(prior, (int, float)) else None
    _check_arguments(table, share, majority)
    if table.classes is None:
        table = table.of_classes()
    several = table.classes is not None
    view = TableView.of(table, items, share, majority)
    wanted = set(CHECKS if codes is None else codes)
    wanted = wanted & OF_CLASSES if several else wanted - CLASSES
    wanted -= {"needs-priors"} if prior is not None else set()
    answered = view.readable and len(view) > 0
    found = [
        finding
        for code, look_for in CHECKS.items()
        if code in wanted and (answered or not isinstance(look_for, AnnotatorCheck))
        for finding in look_for.look(view)
    ]
    # Rows so far count those about pairs alone.
    found = [replace(f, rows=tuple(int(view.rows[row]) + 1 for row in f.rows)) for f in found]
    # A stable sort: within one severity the order above stays.
    found.sort(key=lambda f: SEVERITIES.index(f.severity))
    warned = {finding.code for finding in found if finding.severity != "note"}
    caveats = tuple(text for text, codes in CAVEATS.items() if warned & codes)
    return CheckReport(
        tuple(found),
        _summary(view, () if several else caveats),
        people=view.people if codes is None and answered and len(view.annotators) else None,
        statements=view.statements.counts(),
    )


def _check_arguments(table: Any, prior: float | None, majority: str | None) -> None:
    if not isinstance(table, Judgements):
        kind = type(table).__name__
        raise TypeError(f"table must be Judgements, as read_pairs returns; got {kind}")
    check_share("prior", prior)
    if majority not in (None, "positive", "negative"):
        raise ValueError(f"majority must be 'positive' or 'negative'; got {majority!r}")
    if prior is not None and majority is not None and prior != 0.5:
        larger = "positive" if prior > 0.5 else "negative"
        if larger != majority:
            raise ValueError(
                f"prior {prior:g} makes the {larger} class the majority, not {majority}"
            )
    if not len(table):
        raise ValueError("table has no rows: there is nothing to check")


def _summary(view: TableView, caveats: tuple[str, ...]) -> Summary:
    s, c = ~np.isnan(view.stated_s), ~np.isnan(view.stated_c)
    return Summary(
        rows=len(view),
        pairs=int(view.pair.max(initial=-1)) + 1,
        items=len(view.ids),
        annotators=len(view.annotators),
        both=int((s & c).sum()),
        similarity_only=int((s & ~c).sum()),
        difference_only=int((c & ~s).sum()),
        preference_only=int((~s & ~c & (view.preference != 0)).sum()),
        infeasible=len(view.infeasible.rows),
        prior=None if view.statements.classes else view.implied_prior,
        majority_known=view.known_majority is not None,
        prior_caveats=caveats,
        learnable=view.learnable,
    )
