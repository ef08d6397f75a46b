"""A kind: what one sentence about items means.

Files, the objective, completion, simulation and counts go over the registry of kinds. A new kind is
a subclass of `Kind` and one line in the registry. Checks and measures of accuracy are about
similarities and differences, and ask for those by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pairlearn.columns import Floats as Floats
from pairlearn.columns import Indices, RowError, TableError, first_rows, quote

if TYPE_CHECKING:  # files are read without torch
    from torch import Tensor

    from pairlearn.risks.base import Risk


TINY = 1e-7
"""Posteriors stay this far from 0 and 1 where their logarithm is asked for."""


@dataclass(frozen=True)
class Column:
    """One number that a statement has: its name in files, its range, and words for values.

    A column with words has no other values than theirs. `place` is 0 for the statement's value u
    and 1 for v; `noisy` columns may leave their range where noise is admitted.

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

    @property
    def signed(self) -> bool:
        """Whether there are words, and 0 is none of their values: 0 then says nothing."""
        return bool(self.words) and 0 not in self.words.values()

    @property
    def named(self) -> dict[float, str]:
        """The values that have words, each with the first of them."""
        first: dict[float, str] = {}
        for word, value in self.words.items():
            first.setdefault(value, word)
        return first

    def read(self, values: Any) -> Floats:
        """Numbers (n,) from numbers or words, NaN where nothing is said."""
        array = np.asarray(values)
        if array.ndim != 1:
            raise TableError(f"{self.name} must have shape (n,); got {array.shape}")
        if not self.words:
            try:
                return np.asarray(values, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise TableError(f"{self.name} must be numbers: {error}") from None
        if array.dtype.kind in "UO":
            given = array if array.dtype.kind == "U" else np.array([*map(self._word, array)], "U")
            meant: dict[Any, float] = {"": np.nan, **self.words}
            given, expected = np.char.strip(given), f"{', '.join(self.words)} or nothing"
        elif array.dtype.kind in "iuf":
            meant = {value: value for value in self.named}
            listed = ", ".join(f"{value:g} ({word})" for value, word in self.named.items())
            given, expected = array, f"{listed} or {0 if self.signed else 'NaN'}"
            meant |= {0: np.nan} if self.signed else {}
        else:
            raise TableError(f"{self.name} must be numbers or text; got {array.dtype}")
        numbers = np.full(len(array), np.inf)
        for value, number in meant.items():
            numbers[given == value] = number
        if array.dtype.kind == "f":
            numbers[np.isnan(array)] = np.nan
        for row in first_rows(np.isinf(numbers)):
            value = array[row] if array.dtype.kind == "O" else array[row].item()
            raise RowError(row, f"{self.name} is {quote(value)}; give {expected}")
        return numbers

    def _word(self, value: Any) -> str:
        """A value among values of all sorts as the word that it stands for."""
        if value is None or value != value or (self.signed and value == 0):
            return ""
        if isinstance(value, (str, bool)):
            return str(value)
        return next((word for word, number in self.words.items() if number == value), str(value))

    def mistakes(self, numbers: Floats, *, noisy: bool = False) -> Iterator[tuple[int, str]]:
        """Rows whose number cannot be, the first of each sort, and what is wrong with them."""
        for row in first_rows(np.isinf(numbers)):
            yield row, f"{self.name} is {quote(numbers[row].item())}, not a finite number"
        if (noisy and self.noisy) or self.words:
            return
        advice = " (noisy=True admits labels with noise)" * self.noisy
        outside = ((numbers < self.low) | (numbers > self.high)) & ~np.isinf(numbers)
        percent = (numbers >= 100 * self.low) & (numbers <= 100 * self.high)
        for rows, hint in ((percent, "; looks like percent: divide by 100"), (~percent, "")):
            for row in first_rows(outside & rows):
                yield (
                    row,
                    f"{self.name} is {quote(numbers[row].item())}, outside "
                    f"[{self.low:g}, {self.high:g}]{hint}{advice}",
                )


class Kind:
    """What a statement means: the columns it fills, its likelihood, what it leaves open.

    A statement is about an ordered pair (x, x') or, if `single`, about x alone, and has up
    to two values u and v. p and p' are the posteriors of a model, r and r' the true ones.

    Attributes
    ----------
    name, plural : str
        As in counts, and in sentences about several; the name with "statements" by default.
    columns : tuple of Column
        The file's columns that hold u and v.
    single : bool
        About one item. In training two such statements share a row, and `table` reads the value
        of the second as v.
    states : bool
        Whether u says that one item is positive (1) or not (0).
    implied : bool
        Whether it holds of every item that no statement is about.
    means : tuple of str
        Columns of other kinds that its values could stand in as well.
    joint : bool
        Whether `complete` is called for all of its statements together before each epoch; u and v
        are then how much the log-odds of both items moved.
    settles : frozenset of str
        What `fixes` says, whether or not the prior is known.
    shared : int
        How many statements, one after another, are about one x, as an annotator makes them.
    """

    name: ClassVar[str]
    plural: ClassVar[str] = ""
    columns: ClassVar[tuple[Column, ...]]
    single: ClassVar[bool] = False
    states: ClassVar[bool] = True
    implied: ClassVar[bool] = False
    means: ClassVar[tuple[str, ...]] = ()
    joint: ClassVar[bool] = False
    settles: ClassVar[frozenset[str]] = frozenset({"level", "side"})
    shared: ClassVar[int] = 1

    @property
    def named(self) -> list[str]:
        """Names of its columns."""
        return [column.name for column in self.columns]

    def fixes(self, prior_known: bool) -> frozenset[str]:
        """What such statements settle: the "level" of the posteriors, and their "side".

        Without a level the class prior must be given; without a side, the larger class. Of kinds
        that fix no level, those that fix a "scale" say how far apart posteriors are. `prior_known`
        is true for risks that have the prior.
        """
        return self.settles

    def table(self, risk: Risk) -> Tensor:
        """Coefficients (k, 8, 3) of the statement's partial risks under a risk.

        By default the cross-entropies to u and v, or to what `targets` makes of them.
        """
        from pairlearn.risks.supervised import Supervised

        return Supervised().table

    def completes(self, risk: Risk) -> bool:
        """Whether `table` reads what `targets` makes of the values, and not the values."""
        return self.joint

    def targets(self, left: Tensor, right: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Values for `table` that depend on the model's log-odds of both items."""
        return (left + u).sigmoid().detach(), (right + v).sigmoid().detach()

    def outcomes(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Weights of (+, −) and (−, +) that follow from the values without a model."""
        return np.zeros_like(u), np.zeros_like(u)

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """What the sibling risks read: shares of positives where x and x' come from."""
        raise TypeError(f"kind {self.name!r} does not say what populations its items are from")

    def mistakes(self, ends: Indices, u: Floats, v: Floats) -> Iterator[str]:
        """What is wrong with statements that do not go together."""
        yield from ()

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Targets of x and x': the model's posteriors p and q = p' given the statement."""
        raise TypeError(f"kind {self.name!r} does not complete posteriors")

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """How far the model is from the statements, 0 where they agree.

        By default of the completed posteriors from the model's.
        """
        ends = zip(self.complete(p, q, u, v), (p, q), strict=True)
        left, right = (divergence(t, m) + divergence(1 - t, 1 - m) for t, m in ends)
        return left + right

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Values (n, 2) that an honest annotator would give for posteriors r and q = r'."""
        raise TypeError(f"kind {self.name!r} cannot be simulated")

    def __str__(self) -> str:
        return self.plural or f"{self.name} statements"

    def __repr__(self) -> str:
        return f"<kind {self.name}>"


def divergence(share: Floats, model: Floats) -> Floats:
    """Of one outcome: share · log(share/model), 0 for an empty share."""
    share = np.maximum(share, 0)
    some = share > 0
    ratio = np.where(some, share, 1) / np.maximum(model, TINY * TINY)
    return np.where(some, share, 0) * np.log(ratio)


def sums_by_number(number: Floats, *columns: Any) -> list[Floats]:
    """For each row, the sums of columns over all rows that have its number."""
    of = np.unique(number, return_inverse=True)[1].ravel()
    return [np.bincount(of, column)[of].astype(np.float64) for column in columns]


def logarithm_guard(p: Floats) -> Floats:
    """Probabilities kept from 0, whose logarithm is asked for."""
    return np.maximum(p, TINY)
