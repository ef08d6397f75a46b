"""How an annotator answers, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairlearn.annotators.scale import LEAST_LEAN

if TYPE_CHECKING:
    from pairlearn.annotators.manner import Manner, Phrase

WIDE, WIDE_FROM_NONE = 0.5, 0.15
"""Widths of an interval of the share of guesses from which on it is not reported: of any, and of
one that begins at none."""
FEW = 0.02
"""Share of guesses that is as good as none."""
FIXED = {
    "similarity": "always gives the same similarity",
    "difference": "always gives the same difference",
}


def phrases_of(manner: Manner) -> list[Phrase]:
    """Parts of the sentence, as keys of the tables of translations."""
    if manner.constant:
        return [("gives one answer to everything", {})]
    if manner.against:
        return [("runs against {others}", {"others": ", ".join(manner.against)})]
    if manner.exchanged:
        return [("has left and right exchanged", {})]
    low = max(manner.guesses - 1.96 * manner.guesses_error, 0)
    high = min(manner.guesses + 1.96 * manner.guesses_error, 1)
    phrases: list[Phrase] = [(FIXED[manner.fixed], {})] if manner.fixed else []
    some = manner.guesses >= FEW
    wide = WIDE_FROM_NONE if some and low < FEW else WIDE
    if manner.random_error and high - low > wide:
        phrases.append(("too little to tell how many of the answers are guesses", {}))
    elif manner.guesses >= 0.8:
        return [*phrases, ("answers are hardly related to the pairs", {})]
    elif some:
        values = {"share": _share(manner.guesses), "low": low, "high": high}
        text = "{share} of the answers are guesses"
        if manner.random_error:
            text = "{share} of the answers are guesses ({low:.0%} to {high:.0%})"
        phrases.append((text, values))
    same = "says “same” {lean} too much", "says “different” {lean} too much"
    right = "favours the right one by {lean}", "favours the left one by {lean}"
    for lean, error, (more, less) in (
        (manner.lean_same, manner.same_error, same),
        (manner.lean_right, manner.right_error, right),
    ):
        if abs(lean) >= LEAST_LEAN / 2:
            amount = f"{abs(lean):.2f}" + f" ± {1.96 * error:.2f}" * bool(error)
            phrases.append((more if lean > 0 else less, {"lean": amount}))
    if manner.confidence != 1:
        text = "more confident than the others (log-odds × {factor:.1f})"
        if manner.confidence < 1:
            text = "less confident than the others (log-odds × {factor:.1f})"
        phrases.append((text, {"factor": manner.confidence}))
    if manner.spread >= 0.05:
        phrases.append(("answers vary by {spread:.2f}", {"spread": manner.spread}))
    return phrases or [("nothing to correct", {})]


def _share(value: float) -> str:
    for share, word in ((0.2, "a fifth"), (0.25, "a quarter"), (1 / 3, "a third"), (0.5, "half")):
        if abs(value - share) < 0.02:
            return word
    return f"{value:.0%}"
