"""Draw pairs and test sets at a class prior."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Indices, Mask, check_integer, check_share
from pairlearn.randomness import permutation, stream
from pairlearn.simulation import draw_at_prior

__all__ = ["TestSubset", "sample_pairs", "subset_at_prior"]

TestSubset = Literal["paper", "stratified"]


def sample_pairs(positive: Any, n: int, prior: float, seed: int) -> Indices:
    """Draw n pairs (n, 2) from 2n distinct instances, ⌊2n π₊⌋ of which are positive.

    ``positive`` is a mask of the positive instances, used only to meet the prior.

    Examples
    --------
    >>> pairs = sample_pairs([True] * 10 + [False] * 10, n=5, prior=0.3, seed=0)
    >>> pairs.shape, len(np.unique(pairs)), int((pairs < 10).sum())
    ((5, 2), 10, 3)
    """
    positive = _mask("positive", positive)
    check_integer("n", n, 1)
    check_share("prior", prior)
    shuffled = draw_at_prior(positive, 2 * n, prior, stream(seed, "pairs"), f"{n} pairs")
    return np.stack([shuffled[:n], shuffled[n:]], axis=1)


def subset_at_prior(
    positive: Any,
    prior: float,
    kind: TestSubset = "stratified",
    *,
    classes: Any = None,
    seed: int = 0,
) -> Indices:
    """Rows of a test set reduced to a class prior.

    One class is kept whole and the other is reduced to meet the prior: at 0.2 to a quarter of the
    first, at 0.5 to its size. "stratified" draws the rows to keep at random, in equal shares from
    the original classes. "paper" truncates instead: in order of `classes` if given, as the
    published experiments on images did, so that at prior 0.2 on MNIST the test positives are the
    zeros and some twos. That raises accuracies on MNIST by 0.008 (0.2) to 0.015 (0.8), less
    elsewhere; use it only to reproduce published numbers.

    ``positive`` (m,) is a mask of the positive instances, and ``classes`` (m,) are their original
    classes: the strata, or the order of truncation. ``seed`` is that of the draw.

    Examples
    --------
    >>> subset_at_prior([True, True, True, False, False], 0.5, "paper")
    array([0, 1, 3, 4])
    """
    positive = _mask("positive", positive)
    check_share("prior", prior)
    if kind not in ("stratified", "paper"):
        raise ValueError(f"test subset must be 'stratified' or 'paper'; got {kind!r}")
    plus, minus = np.flatnonzero(positive), np.flatnonzero(~positive)
    if not (len(plus) and len(minus)):
        raise ValueError("positive must have instances of both classes: a prior needs both")
    odds = prior / (1 - prior)
    n_plus = min(len(plus), max(1, int(len(minus) * odds + 1e-9)))
    n_minus = min(len(minus), max(1, int(len(plus) / odds + 1e-9)))
    strata = np.zeros(len(positive), np.int64) if classes is None else np.asarray(classes)
    rng = stream(seed, "test subset")
    kept = []
    for members, size in ((plus, n_plus), (minus, n_minus)):
        if kind == "paper":
            kept.append(members[np.argsort(strata[members], kind="stable")][:size])
        else:
            kept.append(_stratified(members, strata[members], size, rng))
    return np.sort(np.concatenate(kept))


def _stratified(
    members: Indices, strata: NDArray[Any], size: int, rng: np.random.Generator
) -> Indices:
    """Draw `size` members, from every stratum its share to within one."""
    names, counts = np.unique(strata, return_counts=True)
    shares, remainders = np.divmod(size * counts, len(members))
    ties = permutation(rng, len(names))
    largest = ties[np.argsort(-remainders[ties], kind="stable")]
    shares[largest[: size - shares.sum()]] += 1
    order = permutation(rng, len(members))
    drawn: list[Indices] = [
        order[strata[order] == name][:share] for name, share in zip(names, shares, strict=True)
    ]
    return members[np.concatenate(drawn)]


def _mask(name: str, values: Any) -> Mask:
    mask = np.asarray(values)
    if mask.ndim != 1 or mask.dtype != np.bool_:
        raise ValueError(
            f"{name} must be a boolean array of shape (m,); got {mask.dtype} {mask.shape}"
        )
    return mask
