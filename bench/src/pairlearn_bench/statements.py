"""The statements of the grid "siblings": different questions about the same items.

Each is a table of n rows about n pairs of items, or about one item of each pair. Soft answers are
the annotator's posteriors r; hard answers follow from classes drawn from r, anew for each answer. A
method is a risk with the statements that it reads: "sd" reads "same", and "likelihood-same" is
the likelihood of the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pairlearn.columns import Floats, Indices, Mask
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import code, kind
from pairlearn.randomness import normal, permutation, stream, uniform
from pairlearn_bench.rivals import RIVALS, scored_rows


@dataclass(frozen=True)
class Items:
    """Pairs (n, 2) of items, with the annotator's posteriors of all items."""

    pairs: Indices
    posterior: Floats
    rng: np.random.Generator

    def draw_classes(self, items: Indices) -> Mask:
        """Draw classes of these items from their posteriors: true for positive."""
        return uniform(self.rng, items.size).reshape(items.shape) < self.posterior[items]

    def redraw_pairs(self, times: int = 1) -> Indices:
        """Draw other pairs of the same items, `times` as many."""
        orders = [permutation(self.rng, self.pairs.size) for _ in range(times)]
        return self.pairs.ravel()[np.concatenate(orders)].reshape(-1, 2)


def _rows(name: str, ends: Indices, u: Any = 0.0, v: Any = 0.0) -> Judgements:
    """Rows for training; those of a kind about single items hold a statement about each end."""
    values = np.stack(np.broadcast_arrays(u, v, np.empty(len(ends)))[:2], 1).astype(np.float64)
    return Judgements(ends, np.full(len(ends), code(name), np.int8), values)


def _simulated(name: str, items: Items) -> Judgements:
    """Answers of an honest annotator of one kind, about each pair or one item of each."""
    statement = kind(name)
    ends = items.pairs[:, [0, 0]] if statement.single else items.pairs
    r, r_prime = items.posterior[ends].T
    u, v = statement.simulate(r, r_prime, items.rng).T
    return _rows(name, ends, u, u if statement.single and not statement.joint else v)


def _same(items: Items) -> Judgements:
    left, right = items.draw_classes(items.pairs).T
    return _rows("similarity", items.pairs, left == right)


def _outcome(items: Items) -> Judgements:
    """Whether both are of one class, and if not, which one is positive."""
    left, right = items.draw_classes(items.pairs).T.astype(np.float64)
    return _rows("both", items.pairs, left == right, right - left)


def _confidences(items: Items) -> Judgements:
    """The posterior of each of the two items: twice as many answers as pairs."""
    return _rows("confidence", items.pairs, *items.posterior[items.pairs].T)


def _labels(items: Items) -> Judgements:
    """A class of each of the two items, drawn from its posterior."""
    return _rows("label", items.pairs, *items.draw_classes(items.pairs).T)


def _comparison(items: Items) -> Judgements:
    """Pairs whose first item is at least as positive, shown in either order."""
    pairs = items.redraw_pairs(times=4)
    left, right = items.draw_classes(pairs).T
    pairs = pairs[left >= right][: len(items.pairs)]
    turned = uniform(items.rng, len(pairs)) < 0.5
    return _rows("preference", np.where(turned[:, None], pairs[:, ::-1], pairs), 2.0 * turned - 1)


def _positive(items: Items) -> Judgements:
    """The positives among n items, and n other items unlabelled."""
    candidates, others = items.pairs.T
    half = len(candidates) // 2
    positive = np.resize(candidates[items.draw_classes(candidates)], (half, 2))
    unlabelled = others[: 2 * (len(candidates) - half)].reshape(-1, 2)
    known = _rows("positive", positive, 1, 1)
    return Judgements.concatenate([known, _rows("unlabelled", unlabelled, 1, 1)])


def _similar(items: Items) -> Judgements:
    """The similar ones of n pairs, and random unlabelled pairs instead of the others."""
    left, right = items.draw_classes(items.pairs).T
    similar = _rows("similarity", items.pairs[left == right], 1)
    others = items.redraw_pairs()[len(similar) :]
    return Judgements.concatenate([similar, _rows("unlabelled", others, 1, 1)])


def _certain(items: Items) -> Judgements:
    """The positives among n items, with the posterior of each."""
    candidates = items.pairs[:, 0]
    positive = np.resize(candidates[items.draw_classes(candidates)], len(candidates))
    r = items.posterior[positive]
    return _rows("confidence", np.stack([positive, positive], 1), r, r)


def _mixed(items: Items) -> Judgements:
    """A quarter each of soft pairs, hard pairs, comparisons and labels."""
    parts = [STATEMENTS[name].rows(items) for name in ("soft", "same", "comparison", "label")]
    n = len(items.pairs)
    return Judgements.concatenate(
        [part[n * k // 4 : n * (k + 1) // 4] for k, part in enumerate(parts)]
    )


def _scored(items: Items) -> Judgements:
    """Soft similarities as GLWS scores them."""
    different = 1 - _simulated("similarity", items).values[:, 0]
    return scored_rows(items.pairs, different, different)


def _directed(items: Items) -> Judgements:
    """Soft differences as GLWS scores them."""
    c = _simulated("difference", items).values[:, 1]
    return scored_rows(items.pairs, np.maximum(-c, 0), np.maximum(c, 0))


class Statement(NamedTuple):
    """A question to an annotator, and the rows made from the answers."""

    question: str
    rows: Callable[[Items], Judgements]


#: The questions by name.
STATEMENTS = {
    "label": Statement("Which class is it?", partial(_simulated, "label")),
    "confidence": Statement("How likely is it positive?", partial(_simulated, "confidence")),
    "confidences": Statement("How likely is each of the two positive?", _confidences),
    "labels": Statement("Which class is each of the two?", _labels),
    "soft": Statement(
        "How likely are they alike, and how much more positive is one?", partial(_simulated, "both")
    ),
    "similarity": Statement("How likely are they alike?", partial(_simulated, "similarity")),
    "difference": Statement("How much more positive is one?", partial(_simulated, "difference")),
    "outcome": Statement("Are they alike, and if not, which one is positive?", _outcome),
    "same": Statement("Are they alike?", _same),
    "comparison": Statement("Which one is more positive?", _comparison),
    "group": Statement(
        "How many of each of two groups are positive?", partial(_simulated, "group")
    ),
    "positive": Statement("Is it positive? (only yes is kept)", _positive),
    "similar": Statement("Are they alike? (only yes is kept)", _similar),
    "certain": Statement("Is it positive? If so, how likely would you say?", _certain),
    "scored": Statement("How likely are they alike?", _scored),
    "directed": Statement("How much more positive is one?", _directed),
    "mixed": Statement("A quarter each: soft pairs, alike or not, which one, labels", _mixed),
}

#: Those whose answers noise can multiply.
NOISY = ("confidence", "confidences", "soft", "similarity", "difference")

#: The statements that each unbiased risk reads.
READ_BY = {
    "sd": "same",
    "su": "similar",
    "pcomp": "comparison",
    "sdpcomp": "outcome",
    "nnpu": "positive",
    "uu": "group",
    "pconf": "certain",
}
#: The part of soft pairs that each of the paper's methods reads.
SOFT = {"sconfconfdiff": "soft", "sconf": "similarity", "confdiff": "difference"}

_NO_LIKELIHOOD = ("positive", "similar", "certain", "scored", "directed")
#: The likelihood of each question, except those of which only the answer yes is kept, and GLWS.
LIKELIHOODS = tuple(f"likelihood-{name}" for name in STATEMENTS if name not in _NO_LIKELIHOOD)

#: Baselines with an answer about each item of the pairs, which are twice as many answers.
OF_BOTH_ITEMS = ("likelihood-confidences", "likelihood-labels")

#: The methods of the grid: unbiased, with ABS where weights can be negative, nnPU as published.
SIBLING_METHODS = (
    *(method for method in LIKELIHOODS if method not in OF_BOTH_ITEMS),
    *(f"{f}-{c}" for f in (*SOFT, *READ_BY) for c in ("none", "abs") if f != "pconf"),
    *("nnpu-relu", "nnpu-ascent", "pconf-none", *RIVALS),
)

#: Methods that tell the classes apart only by a prior other than ½.
SIDELESS = ("likelihood-similarity", "likelihood-same")


def statements_of(method: str) -> str | None:
    """The key of `STATEMENTS` that a method reads, or None for soft pairs as in the paper."""
    family, _, rest = method.partition("-")
    if method in RIVALS:
        return RIVALS[method]
    return rest if method in LIKELIHOODS else READ_BY.get(family)


def question_of(method: str) -> str:
    """The key of `STATEMENTS` of the question whose answers a method reads."""
    return statements_of(method) or SOFT.get(method.partition("-")[0], "soft")


def make_statements(
    name: str, pairs: Indices, posterior: Any, seed: int, noise: float = 0.0
) -> Judgements:
    """Make the rows of one of `STATEMENTS` about these pairs.

    With noise, for one of `NOISY`, each answer is multiplied by a draw from N(1, noise²).
    """
    items = Items(pairs, np.asarray(posterior, np.float64), stream(seed, "asked", name))
    rows = STATEMENTS[name].rows(items)
    if not noise:
        return rows
    draws = normal(stream(seed, "label noise"), 2 * len(rows)).reshape(2, -1).T
    once = rows.ends[:, :1] == rows.ends  # a statement about one item is one answer
    return replace(rows, values=rows.values * (1 + noise * np.where(once, draws[:, :1], draws)))


def positive_share(rows: Judgements, prior: float) -> float | None:
    """The share of positives among the items of rows; None if the rows determine it themselves.

    It is not the class prior: items of a comparison, or known positives, have another one.
    """
    fixed = frozenset().union(*(kind(name).fixes(False) for name in rows.kinds()))
    if fixed >= {"level", "side"}:
        return None
    total = 0.0
    for name in rows.kinds():
        u, v = rows[rows.of(name)].values.T
        hard = name != "difference" and bool(np.isin(u, (-1, 0, 1)).all())
        shares = kind(name).reading(u, v, prior) if hard else (np.full_like(u, prior),) * 2
        total += float(sum(share.sum() for share in shares))
    return total / (2 * len(rows))
