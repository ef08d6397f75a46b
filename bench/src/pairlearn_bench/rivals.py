"""Published rivals that are neither a risk nor a likelihood of the catalogue.

    mcl              hard "alike or not": meta classification likelihood of two classes,
                     without a prior (Hsu et al., ICLR 2019)
    glws-similarity  soft similarities by expectation maximisation (Chen et al., ICML 2024)
    glws-difference  soft differences by expectation maximisation (the same)

GLWS multiplies the model's probability of each pair of classes by a score of the answer: for a
similarity s for equal classes and 1 − s for different ones; for a difference, |c| for the pair of
classes that it points to, 0 for its reverse and 1 − |c| for equal ones. (P(different) is more than
|c| unless the classes are certain; its public code does the same.) With w these scores, p_t the
model before the step and W the classes that an answer allows, the loss is

    −Σ_W w(W) log P(W) − ½ Σ_ends Σ_y Q(y) log p(y),     Q ∝ p_t(y, y') w(y, y').

The gradient of the first term is that of a cross-entropy to the classes given W, so that both are
one cross-entropy to soft targets. Run beside ours on 1,000 random pairs, the public code gives the
same P(W) and Q to 1e-15, but for three slips that we do not repeat: Q of x' leaves out the
similarity; the first term of a difference rounds (1 − |c|)/2 down to 0; and it takes |c| before it
asks for the sign of c, so that a negative answer points to the wrong classes.

None of them knows which class is which, so accuracies are those of the better assignment of names,
as in the papers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import Column, Kind, code, register_kind
from pairlearn.risks import Risk

#: The statements that each reads, a key of `STATEMENTS`.
RIVALS = {"mcl": "same", "glws-similarity": "scored", "glws-difference": "directed"}


class Scored(Kind):
    """Scores of (+, −) and of (−, +); that of equal classes is one less the larger."""

    name = "scored"
    columns = (Column("score_left", 0, 1), Column("score_right", 0, 1, place=1))

    def completes(self, risk: Risk) -> bool:
        """Always: the targets are posteriors given the answer."""
        return True

    def complete(self, p: Any, q: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Targets of both items, from the model's p and q = p' and the scores."""
        different = (u + v + abs(u - v)) / 2
        both, neither = p * q, (1 - p) * (1 - q)
        left, right = p * (1 - q) * u, (1 - p) * q * v
        equal = (1 - different) * both / (both + neither + _TINY)
        towards = different / (left + right + _TINY)
        total = (1 - different) * (both + neither) + left + right + _TINY
        step = (1 - different) * both / total
        # The likelihood counts once a pair, the M-step once an item: two to one.
        return (
            (2 * (equal + towards * left) + step + left / total) / 3,
            (2 * (equal + towards * right) + step + right / total) / 3,
        )

    def simulate(self, r: Any, q: Any, rng: np.random.Generator) -> Any:
        """The scores of the exact difference."""
        return np.stack([np.maximum(r - q, 0), np.maximum(q - r, 0)], 1)


_TINY = 1e-12  # no division by zero where the model excludes what was answered

register_kind(Scored())


def scored_rows(ends: Any, left: Any, right: Any) -> Judgements:
    """Rows of the scores of (+, −) and (−, +)."""
    scores = np.stack([left, right], 1)
    return Judgements(ends, np.full(len(ends), code("scored"), np.int8), scores)
