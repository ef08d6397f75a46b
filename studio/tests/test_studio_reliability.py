"""What `annotate export` says about annotators who disagree."""

from __future__ import annotations

import pytest

from pairlearn.annotators import Annotator, AnnotatorFinding, Annotators
from pairlearn_studio.cli import exchange as annotate_exchange
from pairlearn_studio.overview import People


@pytest.mark.parametrize("rule", ["mean", "reliability"])
def test_findings_are_warned_of_by_every_rule(rule: str) -> None:
    found = AnnotatorFinding("copied-annotator", ("bob",), "bob's answers equal those of ann")
    people = People(Annotators((Annotator("ann", 40), Annotator("bob", 40))), (found,))
    assert [*annotate_exchange._doubts(people, rule)] == [found.sentence]


def test_a_mean_counts_guesses_like_other_answers() -> None:
    guessing = Annotator("cy", 40, guesses=0.5, guesses_error=0.05)
    people = People(Annotators((Annotator("ann", 40), guessing)))
    (words,) = annotate_exchange._doubts(people, "mean")
    assert words.startswith("cy: half of the answers are guesses")
    assert words.endswith("--without cy leaves them out")
    assert [*annotate_exchange._doubts(people, "reliability")] == []
    weights = people.reliability()
    assert 0 < weights["cy"] < weights["ann"] / 2  # guesses are fewer, and vary more
