"""A kind of statement: what one sentence about items means.

Files, the objective, completion, simulation and counts iterate over the registry of kinds. A new
kind is a subclass of `Kind` and one line in the registry. Checks and measures of accuracy are about
similarities and differences, and name them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pairlearn.columns import (
    LISTED,
    MISSING_WORDS,
    Indices,
    RowError,
    TableError,
    first_rows,
    quote,
    whole_number,
    without_gaps,
)
from pairlearn.columns import Floats as Floats

if TYPE_CHECKING:  # files are read without torch
    from torch import Tensor

    from pairlearn.risks.base import Risk


#: Posteriors are clipped this far from 0 and 1 before their logarithm is taken.
TINY = 1e-7


@dataclass(frozen=True)
class Column:
    """One value of a statement: its name in files, its range, and words for its values.

    A column with words admits only their values. `place` is 0 for the statement's value u and 1
    for v; the values of `noisy` columns may lie outside the range where noise is admitted.

    Examples
    --------
    >>> preference = Column("preference", -1, 1, {"left": -1, "right": 1})
    >>> preference.read(["left", "", "right"])
    array([-1., nan,  1.])
    """

    name: str
    low: float
    high: float
    words: Mapping[str, float] = field(default_factory=dict)
    place: int = 0
    noisy: bool = False

    def __post_init__(self) -> None:
        for word, value in self.words.items():
            problem = ""
            if word.strip() != word or word.lower() in {"", *MISSING_WORDS}:
                problem = "is read as an empty cell or without its spaces: choose another word"
            elif not self.low <= value <= self.high:
                problem = f"is {value:g}, outside [{self.low:g}, {self.high:g}]"
            if problem:
                raise ValueError(f"column {self.name!r}: the word {word!r} {problem}")

    @property
    def named(self) -> dict[float, str]:
        """The first word of each value that has words."""
        first: dict[float, str] = {}
        for word, value in self.words.items():
            first.setdefault(value, word)
        return first

    def read(self, values: Any) -> Floats:
        """Numbers (n,) from numbers or words, NaN where missing."""
        array = np.asarray(values)
        if array.ndim != 1:
            raise TableError(f"{self.name} must have shape (n,); got {array.shape}")
        if not self.words:
            try:
                whole = without_gaps(array.astype(object)) if array.dtype.kind in "OU" else array
                return np.asarray(whole, dtype=np.float64)
            except (TypeError, ValueError, OverflowError) as error:
                raise TableError(f"{self.name} must be numbers: {error}") from None
        number_of: dict[str, float] = {"": np.nan, **self.words}
        for value in self.named:
            number_of |= dict.fromkeys((f"{value:g}", f"{value:.1f}"), value)
        cells = (str(whole_number(cell)).strip() for cell in array.tolist())
        numbers = np.array([number_of.get(cell, np.inf) for cell in cells], np.float64)
        if wrong := first_rows(np.isinf(numbers), LISTED):
            words = ", ".join(f"{word} ({value:g})" for value, word in self.named.items())
            bad = [(row, quote(array[row : row + 1].tolist()[0])) for row in wrong]
            raise RowError.listing(
                [(row, f"{self.name} is {cell}; give {words} or nothing") for row, cell in bad]
            )
        return numbers

    def mistakes(self, numbers: Floats, *, noisy: bool = False) -> Iterator[tuple[int, str]]:
        """The first invalid rows, with what is wrong."""
        for row in first_rows(np.isinf(numbers), LISTED):
            yield row, f"{self.name} is {quote(numbers[row].item())}, not a finite number"
        if (noisy and self.noisy) or self.words:
            return
        admitted = f"{self.name}_scale reads other scales, noisy=True admits labels with noise"
        outside = ((numbers < self.low) | (numbers > self.high)) & ~np.isinf(numbers)
        for row in first_rows(outside, LISTED):
            yield (
                row,
                f"{self.name} is {quote(numbers[row].item())}, outside "
                f"[{self.low:g}, {self.high:g}]{f' ({admitted})' * self.noisy}",
            )


class Kind:
    """What a statement means: its columns, its likelihood, what it determines.

    A statement is about an ordered pair (x, x') or, if `single`, about x alone, and has up
    to two values u and v. A model's posteriors are p and p', the true ones r and r'.

    Attributes
    ----------
    name, plural, singular : str
        Its name in counts, and in sentences about several and about one; by default "NAME
        statements", and the name.
    columns : tuple of Column
        The columns of a file that hold u and v.
    partial_risks : tuple of mappings
        What `make_table` takes for `table`; empty for the cross-entropies to u and v.
    single : bool
        Whether it is about one item. In training two such statements share a row, and `table`
        reads the value of the second as v.
    states : bool
        Whether u is the probability that the one item is positive: such statements count as known
        classes, and scikit-learn classifiers are trained on u itself.
    implied : bool
        Whether it holds for every item that no statement is about.
    means : tuple of str
        Columns of other kinds that could hold its values as well.
    joint : bool
        Whether `complete` takes all of its statements together, before each epoch; u and v are
        then the shifts of both items' log-odds.
    settles : frozenset of str
        What `fixes` returns, whether or not the prior is known.
    shared : int
        How many consecutive statements of an annotator are about the same x.
    opposite : tuple of int
        What makes statements about a class those about the other classes: the factors of u and v,
        and what is added to u. By default u is a probability, of which it makes 1 − u.
    about_all : bool
        Whether it may be about no set of classes: "the same class at all", or an item of any class.
    """

    name: ClassVar[str]
    plural: ClassVar[str] = ""
    singular: ClassVar[str] = ""
    columns: ClassVar[tuple[Column, ...]]
    partial_risks: ClassVar[tuple[Mapping[str, Sequence[float]], ...]] = ()
    single: ClassVar[bool] = False
    states: ClassVar[bool] = False
    implied: ClassVar[bool] = False
    means: ClassVar[tuple[str, ...]] = ()
    joint: ClassVar[bool] = False
    settles: ClassVar[frozenset[str]] = frozenset({"level", "side"})
    shared: ClassVar[int] = 1
    opposite: ClassVar[tuple[int, int, int]] = (-1, 1, 1)
    about_all: ClassVar[bool] = False

    @property
    def named(self) -> list[str]:
        """Names of its columns."""
        return [column.name for column in self.columns]

    def fixes(self, prior_known: bool) -> frozenset[str]:
        """What such statements determine: the "level" of the posteriors and their "side".

        Without a level the user must give the class prior; without a side, the larger class.
        Kinds that fix a "scale" but no level say how far apart posteriors are. `prior_known` is
        true for risks that have the prior.
        """
        return self.settles

    def table(self, risk: Risk) -> Tensor:
        """Coefficients (k, 8, 3) of the statement's partial risks under a risk."""
        from pairlearn.risks import Supervised, make_table

        return make_table(*self.partial_risks) if self.partial_risks else Supervised().table

    def completes(self, risk: Risk) -> bool:
        """Whether `table` reads `targets` instead of the values."""
        return self.joint

    def targets(self, left: Tensor, right: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Values for `table` that depend on the model's log-odds of both items.

        By default those of `complete`, which then has to take tensors as well.
        """
        if self.joint:
            return (left + u).sigmoid().detach(), (right + v).sigmoid().detach()
        complete: Any = self.complete
        first, second = complete(left.sigmoid().detach(), right.sigmoid().detach(), u, v)
        return first, second

    def outcomes(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Weights of (+, −) and (−, +) that the values alone imply."""
        return np.zeros_like(u), np.zeros_like(u)

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """What the sibling risks read: shares of positives in the populations of x and x'."""
        raise TypeError(f"kind {self.name!r} does not say what populations its items are from")

    def complement(self, values: Floats) -> Floats:
        """Values (n, 2) of the same statements about the other classes."""
        factor, factor_of_v, added = self.opposite
        return values * [factor, factor_of_v] + [added, 0]

    def mistakes(self, ends: Indices, u: Floats, v: Floats) -> Iterator[str]:
        """What is wrong with statements that contradict each other or are incomplete."""
        yield from ()

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Posteriors of x and x' given the statement, from the model's p and q = p'."""
        raise TypeError(f"kind {self.name!r} does not complete posteriors")

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """Divergence of the model from the statements, 0 where they agree.

        By default that of the model's posteriors from the completed ones.
        """
        ends = zip(self.complete(p, q, u, v), (p, q), strict=True)
        left, right = (divergence(t, m) + divergence(1 - t, 1 - m) for t, m in ends)
        return left + right

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Values (n, 2) that an honest annotator would give for posteriors r and q = r'."""
        raise TypeError(f"kind {self.name!r} cannot be simulated")

    def counted(self, count: int) -> str:
        """A number of such statements in words."""
        one = self.singular or (self.name if self.plural else f"{self.name} statement")
        return f"{count:,} {one if count == 1 else self}"

    def __str__(self) -> str:
        return self.plural or f"{self.name} statements"

    def __repr__(self) -> str:
        return f"<kind {self.name}>"


def divergence(share: Floats, model: Floats) -> Floats:
    """The term share · log(share/model) of one outcome, 0 for an empty share."""
    share = np.maximum(share, 0)
    some = share > 0
    ratio = np.where(some, share, 1) / np.maximum(model, TINY * TINY)
    return np.where(some, share, 0) * np.log(ratio)


def sums_by_number(number: Floats, *columns: Any) -> list[Floats]:
    """For each row, the sums of columns over all rows with its number."""
    group = np.unique(number, return_inverse=True)[1].ravel()
    return [np.bincount(group, column)[group].astype(np.float64) for column in columns]


def logarithm_guard(p: Floats) -> Floats:
    """Probabilities clipped away from 0, for their logarithm."""
    return np.maximum(p, TINY)


def without_v(u: Floats) -> Floats:
    """Values (n, 2) of statements that have u only."""
    return np.stack([u, np.zeros_like(u)], 1)
