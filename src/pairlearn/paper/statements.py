"""What can be asked about the same items: the statements of the grid "siblings".

Each is a table of n rows about n pairs of items, or about one item of each pair. Soft answers are
the annotator's posteriors r; hard ones are those of classes drawn from r, anew for each answer. A
method is a risk with the statements that it reads: "sd" reads "same", and "likelihood-same" is
the likelihood of the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pairlearn.columns import Floats, Indices, Mask
from pairlearn.judgements import Judgements
from pairlearn.kinds import code, kind
from pairlearn.randomness import permutation, stream, uniform


@dataclass(frozen=True)
class Items:
    """Pairs (n, 2) of items, and the annotator's posteriors of all items."""

    pairs: Indices
    posterior: Floats
    rng: np.random.Generator

    def drawn(self, items: Indices) -> Mask:
        """Classes of these items, drawn from their posteriors: true for positive."""
        chances = uniform(self.rng, items.size).reshape(items.shape)
        return chances < self.posterior[items]

    def redrawn(self, times: int = 1) -> Indices:
        """Other pairs of the same items, `times` as many."""
        orders = [permutation(self.rng, self.pairs.size) for _ in range(times)]
        return self.pairs.ravel()[np.concatenate(orders)].reshape(-1, 2)


def _rows(name: str, ends: Indices, u: Any = 0.0, v: Any = 0.0) -> Judgements:
    """Rows for training; of a kind about single items both ends have been said something of."""
    values = np.stack(np.broadcast_arrays(u, v, np.empty(len(ends)))[:2], 1).astype(np.float64)
    return Judgements(ends, np.full(len(ends), code(name), np.int8), values)


def _told(name: str) -> Callable[[Items], Judgements]:
    """Each pair, or one item of each, by a kind as an honest annotator answers it."""

    def said(items: Items) -> Judgements:
        ends = items.pairs[:, [0, 0]] if kind(name).single else items.pairs
        r, q = items.posterior[ends].T
        u, v = kind(name).simulate(r, q, items.rng).T
        return _rows(name, ends, u, u if kind(name).single and not kind(name).joint else v)

    return said


def _same(items: Items) -> Judgements:
    left, right = items.drawn(items.pairs).T
    return _rows("similarity", items.pairs, left == right)


def _outcome(items: Items) -> Judgements:
    """Same; or which one is positive."""
    left, right = items.drawn(items.pairs).T.astype(np.float64)
    return _rows("both", items.pairs, left == right, right - left)


def _comparison(items: Items) -> Judgements:
    """Pairs whose first item is at least as positive, shown in either order."""
    pairs = items.redrawn(times=4)
    left, right = items.drawn(pairs).T
    pairs = pairs[left >= right][: len(items.pairs)]
    turned = uniform(items.rng, len(pairs)) < 0.5
    return _rows("preference", np.where(turned[:, None], pairs[:, ::-1], pairs), 2.0 * turned - 1)


def _positive(items: Items) -> Judgements:
    """The positives among n items that were asked for, and the n other items unlabelled."""
    asked, others = items.pairs.T
    half = len(asked) // 2
    known = np.resize(asked[items.drawn(asked)], (half, 2))
    unknown = others[: 2 * (len(asked) - half)].reshape(-1, 2)
    return Judgements.concatenate(
        [_rows("positive", known, 1, 1), _rows("unlabelled", unknown, 1, 1)]
    )


def _similar(items: Items) -> Judgements:
    """The similar ones of n pairs, and in place of the others pairs of any items."""
    left, right = items.drawn(items.pairs).T
    alike = items.pairs[left == right]
    others = items.redrawn()[len(alike) :]
    return Judgements.concatenate(
        [_rows("similarity", alike, 1), _rows("unlabelled", others, 1, 1)]
    )


def _certain(items: Items) -> Judgements:
    """The positives among n items, and how likely each is positive."""
    asked = items.pairs[:, 0]
    known = np.resize(asked[items.drawn(asked)], len(asked))
    r = items.posterior[known]
    return _rows("confidence", np.stack([known, known], 1), r, r)


def _mixed(items: Items) -> Judgements:
    """A quarter each of soft pairs, hard pairs, comparisons and labels."""
    parts = [STATEMENTS[name].rows(items) for name in ("soft", "same", "comparison", "label")]
    n = len(items.pairs)
    return Judgements.concatenate(
        [part[n * k // 4 : n * (k + 1) // 4] for k, part in enumerate(parts)]
    )


class Statement(NamedTuple):
    """What an annotator is asked, and the rows that are made of the answers."""

    question: str
    rows: Callable[[Items], Judgements]


STATEMENTS = {
    "label": Statement("Which class is it?", _told("label")),
    "confidence": Statement("How likely is it positive?", _told("confidence")),
    "soft": Statement(
        "How likely are they alike, and how much more positive is one?", _told("both")
    ),
    "similarity": Statement("How likely are they alike?", _told("similarity")),
    "difference": Statement("How much more positive is one?", _told("difference")),
    "outcome": Statement("Are they alike, and if not, which one is positive?", _outcome),
    "same": Statement("Are they alike?", _same),
    "comparison": Statement("Which one is more positive?", _comparison),
    "group": Statement("How many of each of two groups are positive?", _told("group")),
    "positive": Statement("Is it positive? (only yes is kept)", _positive),
    "similar": Statement("Are they alike? (only yes is kept)", _similar),
    "certain": Statement("Is it positive? If so, how likely would you say?", _certain),
    "mixed": Statement("A quarter each: soft pairs, alike or not, which one, labels", _mixed),
}
"""What can be asked, by name."""

READ_BY = {
    "sd": "same",
    "su": "similar",
    "pcomp": "comparison",
    "sdpcomp": "outcome",
    "nnpu": "positive",
    "uu": "group",
    "pconf": "certain",
}
SOFT = {"sconfconfdiff": "soft", "sconf": "similarity", "confdiff": "difference"}
"""What the paper's own methods read of soft pairs."""

LIKELIHOODS = tuple(
    f"likelihood-{name}" for name in STATEMENTS if name not in ("positive", "similar", "certain")
)
"""The likelihood of each, but of answers of which only one is kept: those need a risk."""


SIBLING_METHODS = (
    *LIKELIHOODS,
    *(f"{f}-{c}" for f in (*SOFT, *READ_BY) for c in ("none", "abs") if f != "pconf"),
    *("nnpu-relu", "pconf-none"),
)
"""The methods of the grid: unbiased, with ABS where weights can be negative, nnPU as published."""

SIDELESS = ("likelihood-similarity", "likelihood-same")
"""Which only a prior other than ½ tells which class is which."""


def statements_of(method: str) -> str | None:
    """What a method reads: a name of `STATEMENTS`, or None for soft pairs as in the paper."""
    family, _, rest = method.partition("-")
    return rest if method in LIKELIHOODS else READ_BY.get(family)


def asked(method: str) -> str:
    """The question whose answers a method reads."""
    return statements_of(method) or SOFT.get(method.partition("-")[0], "soft")


def stated(name: str, pairs: Indices, posterior: Any, seed: int) -> Judgements:
    """The rows that are asked for, about these pairs."""
    items = Items(pairs, np.asarray(posterior, np.float64), stream(seed, "asked", name))
    return STATEMENTS[name].rows(items)


def held_share(rows: Judgements, prior: float) -> float | None:
    """The share of positives among the items of rows that leave level or side open, else None.

    Not the class prior: of an item of a comparison, or of a known positive, it is another.
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
