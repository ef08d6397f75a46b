"""Similarity and difference of pairs, as an annotator states them.

For a pair (x, x') with posteriors r = P(y=+1|x) and r' = P(y'=+1|x'), drawn
independently, an annotator states

    similarity  s = P(y = y')  = r r' + (1 − r)(1 − r')      in [0, 1]
    difference  c = r' − r                                   in [−1, 1]

Both together are one distribution over three events,

    a = P(+, −) = (1 − s − c)/2,   b = P(−, +) = (1 − s + c)/2,   s = P(same),

and the posteriors follow from it up to one reflection (r, r') ↔ (1 − r', 1 − r).
Arrays are numpy or torch, like the input; nothing is copied unless its type has to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from pairlearn.columns import first_rows, is_tensor

__all__ = ["PairLabels"]

#: Tolerance of the feasibility test: exact labels with r + r' = 1 lie on the edge.
TOLERANCE = 1e-6


class PairLabels:
    """Similarity and difference of n pairs; NaN means "not given".

    Parameters
    ----------
    similarity, difference : array of shape (n,), or None
        Judgements in [0, 1] and [−1, 1]. None stands for a column of NaN, but
        every pair needs at least one of the two.
    noisy : bool, default False
        Admit finite values outside the ranges, as label noise produces them.

    See Also
    --------
    pairlearn.judgements.Judgements : Answers of every kind, with annotators and weights.

    Examples
    --------
    >>> labels = PairLabels.from_posteriors([0.9, 0.2], [0.4, 0.7])
    >>> labels.similarity.round(2), labels.difference.round(2)
    (array([0.42, 0.38]), array([-0.5,  0.5]))
    >>> labels.outcomes().round(2)
    array([[0.54, 0.04, 0.42],
           [0.06, 0.56, 0.38]])
    """

    similarity: Any
    difference: Any

    def __init__(self, similarity: Any, difference: Any, *, noisy: bool = False) -> None:
        if similarity is None and difference is None:
            raise ValueError("similarity and difference are both None: give at least one of them")
        similarity, difference = _columns(similarity=similarity, difference=difference)
        _check_finite("similarity", similarity)
        _check_finite("difference", difference)
        if not noisy:
            hint = ": map answers on another scale to it; PairLabels(..., noisy=True) admits noise"
            _check_range("similarity", similarity, 0.0, 1.0, hint)
            _check_range("difference", difference, -1.0, 1.0, hint)
        xp = _namespace(similarity)
        for row in first_rows(xp.isnan(similarity) & xp.isnan(difference)):
            raise ValueError(
                f"similarity and difference are both missing (NaN) in row {row}: "
                "drop pairs without any judgement"
            )
        self.similarity, self.difference = similarity, difference

    @classmethod
    def from_posteriors(cls, r: Any, r_prime: Any) -> PairLabels:
        """Labels of an annotator with posteriors r and r'.

        Examples
        --------
        >>> PairLabels.from_posteriors([1.0], [1.0])
        PairLabels(n=1, similarity=[1.], difference=[0.])
        """
        if r is None or r_prime is None:
            raise ValueError("r and r_prime must both be given")
        r, r_prime = _columns(r=r, r_prime=r_prime)
        for name, values in (("r", r), ("r_prime", r_prime)):
            for row in first_rows(_namespace(values).isnan(values)):
                raise ValueError(f"{name} is missing (NaN) in row {row}")
            _check_range(name, values, 0.0, 1.0)
        # With float32 posteriors the similarity may round to just outside [0, 1].
        similarity = (r * r_prime + (1 - r) * (1 - r_prime)).clip(0, 1)
        return cls(similarity, r_prime - r)

    @classmethod
    def from_array(cls, array: Any, *, noisy: bool = False) -> PairLabels:
        """Read an (n, 2) array whose columns are similarity and difference."""
        if not is_tensor(array):
            array = np.asarray(array)
        if array.ndim != 2 or array.shape[1] != 2:
            raise ValueError(
                f"labels must have shape (n, 2), columns similarity and difference; "
                f"got {tuple(array.shape)}"
            )
        return cls(array[:, 0], array[:, 1], noisy=noisy)

    @classmethod
    def concatenate(cls, parts: Sequence[PairLabels]) -> PairLabels:
        """Join several sets of labels, in order."""
        if not parts:
            raise ValueError("parts is empty: give at least one PairLabels")
        arrays = [part.to_array() for part in parts]
        xp = _namespace(next(filter(is_tensor, arrays), None))
        return cls._trusted(*xp.concatenate([xp.asarray(array) for array in arrays]).T)

    @classmethod
    def _trusted(cls, similarity: Any, difference: Any) -> PairLabels:
        """Build from columns that have been checked."""
        labels = cls.__new__(cls)
        labels.similarity, labels.difference = similarity, difference
        return labels

    def outcomes(self) -> Any:
        """Probabilities (n, 3) of the events (+, −), (−, +) and same class."""
        s, c = self.similarity, self.difference
        return _namespace(s).stack([(1 - s - c) / 2, (1 - s + c) / 2, s], -1)

    def feasible(self) -> Any:
        """Mask of the labels that some pair of posteriors implies.

        Where both are given, 0 ≤ s ≤ 1 − |c| and c² ≥ 1 − 2s must hold within 1e-6; a single
        label only has to lie in its range.

        Examples
        --------
        >>> PairLabels([0.5, 0.9, 0.2], [0.0, 0.5, 0.1]).feasible()
        array([ True, False, False])
        """
        s, c = self.similarity, self.difference
        xp = _namespace(s)
        no_s, no_c = xp.isnan(s), xp.isnan(c)
        s_alone = (s >= -TOLERANCE) & (s <= 1 + TOLERANCE)
        c_alone = abs(c) <= 1 + TOLERANCE
        outcomes = (s <= 1 - abs(c) + TOLERANCE) & s_alone
        independent = c * c >= 1 - 2 * s - TOLERANCE
        return xp.where(no_c, s_alone, xp.where(no_s, c_alone, outcomes & independent))

    def posteriors(self) -> tuple[Any, Any]:
        """Both solutions for (r, r'), the one with the larger sum first.

        r + r' = 1 ± √(c² + 2s − 1). Rows that are infeasible or lack a label are NaN; `project`
        makes infeasible rows feasible.

        Examples
        --------
        >>> upper, lower = PairLabels.from_posteriors([0.9], [0.6]).posteriors()
        >>> upper.round(2), lower.round(2)
        (array([[0.9, 0.6]]), array([[0.4, 0.1]]))
        """
        s, c = self.similarity, self.difference
        xp = _namespace(s)
        root = xp.sqrt((c * c + 2 * s - 1).clip(0, None))
        root = xp.where(self.feasible(), root, xp.nan)

        def solve(total: Any) -> Any:
            return xp.stack([(total - c) / 2, (total + c) / 2], -1).clip(0, 1)

        return solve(1 + root), solve(1 - root)

    def project(self) -> PairLabels:
        """The nearest feasible labels, by Euclidean distance in the (c, s) plane.

        The feasible region lies between the parabola s = (1 − c²)/2 and the two edges
        s = 1 − |c|; it is not convex. On the axis c = 0 below s = −½ two points are equally
        near, and the one with c > 0 is taken. A label given alone is clipped to its range.

        Examples
        --------
        >>> PairLabels([0.9], [0.5]).project()
        PairLabels(n=1, similarity=[0.7], difference=[0.3])
        """
        s, c = self.similarity, self.difference
        xp = _namespace(s)
        no_s, no_c = xp.isnan(s), xp.isnan(c)
        near_c, near_s = _nearest_feasible(xp, abs(c), s)
        near_c = xp.where(c < 0, -near_c, near_c)
        keep = self.feasible()
        near_s = xp.where(keep | no_s, s, xp.where(no_c, s.clip(0, 1), near_s))
        near_c = xp.where(keep | no_c, c, xp.where(no_s, c.clip(-1, 1), near_c))
        return self._trusted(near_s, near_c)

    def to_array(self) -> Any:
        """Columns similarity and difference as one (n, 2) array."""
        return _namespace(self.similarity).stack([self.similarity, self.difference], -1)

    def __len__(self) -> int:
        return int(self.similarity.shape[0])

    def __getitem__(self, index: Any) -> PairLabels:
        similarity, difference = self.similarity[index], self.difference[index]
        if similarity.ndim == 0:
            similarity, difference = similarity.reshape(1), difference.reshape(1)
        if similarity.ndim > 1:
            raise IndexError(f"labels are indexed by pair, with one axis; got {index!r}")
        return self._trusted(similarity, difference)

    def __iter__(self) -> Iterator[PairLabels]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        def show(values: Any) -> str:
            if is_tensor(values):
                values = values.detach().cpu().numpy()
            return np.array2string(values, threshold=6, precision=4)

        return (
            f"PairLabels(n={len(self)}, similarity={show(self.similarity)}, "
            f"difference={show(self.difference)})"
        )


def _namespace(array: Any) -> ModuleType:
    """The module numpy or torch; both have the functions used here."""
    if not is_tensor(array):
        return np
    import torch

    return torch


def _columns(**arguments: Any) -> tuple[Any, Any]:
    """Two columns of one array type, float type and length; None becomes a column of NaN."""
    present = {name: values for name, values in arguments.items() if values is not None}
    columns = {name: _floats(name, values) for name, values in present.items()}
    for name, values in columns.items():
        if values.ndim != 1:
            raise ValueError(f"{name} must have shape (n,); got {tuple(values.shape)}")
    lengths = [len(values) for values in columns.values()]
    if len({*lengths}) > 1:
        (name, other), (n, m) = columns, lengths
        raise ValueError(
            f"{name} has {n} rows and {other} has {m}: "
            "they describe the same pairs and need the same length"
        )
    tensor: Any = next(filter(is_tensor, columns.values()), None)
    xp = _namespace(tensor)
    if tensor is not None:
        columns = {name: xp.as_tensor(v, device=tensor.device) for name, v in columns.items()}
    like = next(iter(columns.values()))
    first, second = (
        columns[name] if name in columns else xp.full_like(like, xp.nan) for name in arguments
    )
    if first.dtype != second.dtype:
        wider = xp.promote_types(first.dtype, second.dtype)
        first, second = xp.asarray(first, dtype=wider), xp.asarray(second, dtype=wider)
    return first, second


def _floats(name: str, values: Any) -> Any:
    """Values as a float32 or float64 array, not copied where they are one."""
    if is_tensor(values):
        half = values.is_floating_point() and values.itemsize == 2
        return values.float() if half else values if values.is_floating_point() else values.double()
    try:
        array = np.asarray(values)
        if array.dtype in (np.float32, np.float64):
            return array
        return array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from None


def _check_finite(name: str, values: Any) -> None:
    for row in first_rows(_namespace(values).isinf(values)):
        raise ValueError(f"{name} is infinite in row {row}: use NaN where it is not given")


def _check_range(name: str, values: Any, low: float, high: float, hint: str = "") -> None:
    for row in first_rows((values < low) | (values > high)):
        raise ValueError(
            f"{name} must lie in [{low:g}, {high:g}]; row {row} is {float(values[row]):g}{hint}"
        )


def _nearest_feasible(xp: ModuleType, c: Any, s: Any) -> tuple[Any, Any]:
    """Nearest feasible point of infeasible (c ≥ 0, s); symmetry gives c < 0.

    Above the region it is the foot on the edge c + s = 1. Below it the distance
    to (t, (1 − t²)/2) is stationary where t³ + (1 + 2s)t − 2c = 0, which changes
    sign exactly once on t > 0, from − to +: bisection finds the place.
    """
    low, high = 0 * c, 0 * c + 1
    for _ in range(60):
        middle = (low + high) / 2
        below = middle**3 + (1 + 2 * s) * middle - 2 * c < 0
        low, high = xp.where(below, middle, low), xp.where(below, high, middle)
    foot = ((c - s + 1) / 2).clip(0, 1)
    above = c + s > 1
    return xp.where(above, foot, high), xp.where(above, 1 - foot, (1 - high * high) / 2)
