"""Findings about a table of judgements, their rules, and the report.

``rules.toml`` has for each code its usual severity, and a message that says what it is, what it
means and what to do. The checks compute the values that fill the messages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from pairlearn.annotators.answers import listed
from pairlearn.annotators.crowd import Crowd
from pairlearn.prior import PriorEstimate

Severity = Literal["error", "warning", "note"]
SHOWN = 5
"""Rows or ids that a finding names."""


RULES: dict[str, dict[str, Any]] = tomllib.loads(
    files("pairlearn.check").joinpath("rules.toml").read_text("utf-8")
)
"""Usual severity and message of each finding."""


@dataclass(frozen=True)
class Finding:
    """One thing to know about a table.

    Attributes
    ----------
    severity : {"error", "warning", "note"}
        An error keeps the table from being used; a warning is probably a mistake.
    code : str
        A short name that stays the same from version to version.
    message : str
        What it is, what it means and what to do.
    count : int
        How many rows (or items, or annotators) it is about; 0 for the whole table.
    rows, ids : tuple
        The first of the rows, counted from 1 without the header, and of the items or annotators.
    """

    severity: Severity
    code: str
    message: str
    count: int = 0
    rows: tuple[int, ...] = ()
    ids: tuple[int | str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """A table of judgements in numbers.

    Attributes
    ----------
    rows, pairs, items, annotators : int
        Judgements, distinct unordered pairs, distinct items, and annotators with a name.
    both, similarity_only, difference_only, preference_only, preference : int
        Rows by what they say; `preference` counts all that have one, alone or not.
    effective_rows : float
        (Σw)²/Σw² of the weights.
    infeasible, above_edge, below_parabola, infeasible_distance
        Rows with both judgements that no posteriors produce, on which side, and their mean distance
        to the feasible region in the (c, s) plane.
    prior : PriorEstimate or None
        What the similarities imply, on the side of ½ that is stated, and else on the lower side.
    components, largest_component, seen_once
        Components of the graph of pairs, the share of the items in the largest, and items in one
        pair.
    learnable : str
        What the table can teach.
    """

    rows: int
    pairs: int
    items: int
    annotators: int
    both: int
    similarity_only: int
    difference_only: int
    preference_only: int
    preference: int
    effective_rows: float
    infeasible: int
    above_edge: int
    below_parabola: int
    infeasible_distance: float
    prior: PriorEstimate | None
    components: int
    largest_component: float
    seen_once: int
    learnable: str


@dataclass(frozen=True)
class CheckReport:
    """The result of `check`: errors first, then warnings, then notes; and the table in numbers.

    ``crowd`` describes how the annotators answer, where that is known, and ``statements`` counts
    the statements of each kind.

    Examples
    --------
    >>> from pairlearn.check import check
    >>> from pairlearn import Judgements
    >>> report = check(Judgements.from_pairs([[1, 2], [1, 1]], [[0.5, 0.1], [1.0, 0.0]]))
    >>> report.ok, report.of("error")[0].code
    (False, 'self-pair')
    """

    findings: tuple[Finding, ...]
    summary: Summary
    crowd: Crowd | None = None
    statements: Mapping[str, int] = field(default_factory=dict)

    @property
    def said(self) -> Mapping[str, int]:
        """The old name of `statements`."""
        return self.statements

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.of("error")

    def of(self, severity: Severity) -> list[Finding]:
        """The findings of one severity."""
        return [finding for finding in self.findings if finding.severity == severity]

    def without(self, codes: Collection[str]) -> CheckReport:
        """The report less the findings of some codes."""
        return replace(self, findings=tuple(f for f in self.findings if f.code not in codes))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "ok": self.ok,
            "findings": [asdict(finding) for finding in self.findings],
            "summary": asdict(self.summary),
        }


def finding(
    code: str,
    rows: Any = (),
    ids: Any = (),
    *,
    count: int | None = None,
    severity: Severity | None = None,
    name: str | None = None,
    **values: Any,
) -> Finding:
    """Fill the rule of a code with values; rows count from 0.

    ``count``, ``severity`` and ``name`` override the number of rows, the rule's severity and the
    code.
    """
    rule = RULES[code]
    count = len(rows) if count is None else count
    return Finding(
        severity or rule["severity"],
        name or code,
        rule["message"].format(**values, count=count),
        count,
        rows=tuple(int(row) + 1 for row in rows[:SHOWN]),
        ids=tuple(np.asarray(ids[:SHOWN]).tolist()),
    )


def about_people(code: str, names: Sequence[str], **values: Any) -> Finding:
    """A finding about some annotators."""
    known = [name for name in names if name]
    who = listed(known) if known else ""
    return finding(code, ids=known, count=len(known), names=who, **values)
