"""Random numbers determined by a seed and a purpose, equal on every machine.

numpy guarantees the raw numbers of PCG64 and its seeding, but not the results of
`Generator.permutation` and the like (NEP 19), so these functions use the raw numbers only.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["normal", "permutation", "stream", "uniform"]

Indices = NDArray[np.int64]


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """Independent random numbers for each purpose of one seed.

    Examples
    --------
    >>> permutation(stream(0, "pairs"), 5), permutation(stream(0, "noise"), 5)
    (array([4, 3, 1, 0, 2]), array([1, 4, 3, 0, 2]))
    """
    keys = [zlib.crc32(p.encode()) if isinstance(p, str) else p for p in purpose]
    # As a spawn key, because as entropy (0, 1) and (0, 1, 0) would be the same.
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=keys)))


def permutation(rng: np.random.Generator, n: int) -> Indices:
    """The numbers 0 to n − 1 in random order, the same in every version of numpy.

    Examples
    --------
    >>> permutation(stream(0, "pairs"), 5)
    array([4, 3, 1, 0, 2])
    """
    return np.argsort(rng.bit_generator.random_raw(n), kind="stable")


def uniform(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Draw n times from [0, 1), the same in every version of numpy.

    Examples
    --------
    >>> uniform(stream(0, "noise"), 3).round(4)
    array([0.8098, 0.1962, 0.9129])
    """
    bits = rng.bit_generator.random_raw(n) >> np.uint64(11)
    draws: NDArray[np.float64] = bits.astype(np.float64) * 2.0**-53
    return draws


def normal(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Draw n times from N(0, 1), the same in every version of numpy up to rounding.

    By Box and Muller: √(−2 log u) cos 2πv of uniform u in (0, 1] and v in [0, 1).

    Examples
    --------
    >>> normal(stream(0, "noise"), 3).round(4)
    array([-0.3141, -0.493 , -1.7614])
    """
    u, v = uniform(rng, 2 * n).reshape(2, n)
    draws: NDArray[np.float64] = np.sqrt(-2 * np.log(1 - u)) * np.cos(2 * np.pi * v)
    return draws
