"""What `check` returns: the findings about a table, and the table in numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pairlearn.annotators import Annotators
from pairlearn.finding import Finding, Severity
from pairlearn.prior import PriorEstimate

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Summary:
    """A table of judgements in numbers.

    Attributes
    ----------
    rows, pairs, items, annotators : int
        Judgements, distinct unordered pairs, distinct items, and annotators with a name.
    both, similarity_only, difference_only, preference_only : int
        Rows by what they say.
    infeasible : int
        Rows with both judgements that no posteriors produce.
    prior : PriorEstimate or None
        What the similarities imply, on the side of ½ that is known, and else on the lower side.
    majority_known : bool
        Whether the arguments or known classes determine that side.
    prior_caveats : tuple of str
        Reasons why that share may lie outside its interval.
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
    infeasible: int
    prior: PriorEstimate | None
    majority_known: bool
    prior_caveats: tuple[str, ...]
    learnable: str

    def prior_words(self) -> list[str]:
        """The implied share of positives in words, with its caveats; empty if there is none."""
        if self.prior is None:
            return []
        value, low, high = self.prior.value, self.prior.low, self.prior.high
        one_side = self.majority_known or round(value, 3) == 0.5
        high = high if self.majority_known or not one_side else 1 - low
        text = f"share of positives: {value:.3f} (95% interval {low:.3f} to {high:.3f})"
        if not one_side:
            text += (
                f", or {1 - value:.3f} ({1 - high:.3f} to {1 - low:.3f}) if positives are the "
                "majority"
            )
        source = f"from {self.prior.n:,} similarities, mean {self.prior.mean_similarity:.3f}"
        return [f"{text}, {source}", *(f"it may be off: {text}" for text in self.prior_caveats)]


@dataclass(frozen=True)
class CheckReport:
    """The result of `check`: errors first, then warnings, then notes; and the table in numbers.

    ``people`` is how the annotators answer, where that is known, and ``statements`` counts
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
    people: Annotators | None = None
    statements: Mapping[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.of("error")

    def of(self, *severities: Severity) -> list[Finding]:
        """The findings of some severities."""
        return [finding for finding in self.findings if finding.severity in severities]

    def without(self, codes: Collection[str]) -> CheckReport:
        """The report less the findings of some codes."""
        return replace(self, findings=tuple(f for f in self.findings if f.code not in codes))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "ok": self.ok,
            "findings": [finding.to_dict() for finding in self.findings],
            "summary": asdict(self.summary),
        }
