"""Standardisation of features by the weighted instances of the training pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["feature_scale", "standardised"]

CHUNK = 1 << 22  # numbers at a time, so that no second copy of a large table is made

Floats = NDArray[np.float64]


def feature_scale(features: NDArray[Any], weight: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each feature; of each channel of images (N, C, H, W).

    Constant features get the scale one. Instances without channels but with several
    axes, (N, H, W), are standardised as a whole.

    Examples
    --------
    >>> mean, scale = feature_scale(np.array([[1.0, 5.0], [3.0, 5.0]]), np.ones(2))
    >>> mean, scale
    (array([2., 5.]), array([1., 1.]))
    """
    channels = 1 if features.ndim == 3 else features.shape[1]
    view = features.reshape(len(features), channels, -1)
    total = weight.sum() * view.shape[2]

    def mean_of(power: int, about: Floats) -> Floats:
        result = np.zeros(channels)
        for part in _chunks(view):
            centred = view[part] - about[:, None]
            result += weight[part] @ (centred**power).sum(-1)
        mean: Floats = result / total
        return mean

    about = view[int((weight > 0).argmax())].mean(-1, dtype=np.float64)
    mean = about + mean_of(1, about)
    scale = np.sqrt(mean_of(2, mean))
    scale[scale <= 10 * np.finfo(np.float64).eps * np.abs(mean)] = 1.0
    shape = (channels,) + (1,) * (features.ndim - 2)
    return mean.reshape(shape), scale.reshape(shape)


def standardised(features: NDArray[Any], mean: Floats, scale: Floats) -> NDArray[np.float32]:
    """(features − mean)/scale in float32, computed in float64.

    Examples
    --------
    >>> standardised(np.array([[1.0], [3.0]]), np.array([2.0]), np.array([1.0]))
    array([[-1.],
           [ 1.]], dtype=float32)
    """
    result = np.empty(features.shape, dtype=np.float32)
    for part in _chunks(features):
        result[part] = (features[part] - mean) / scale
    return result


def _chunks(features: NDArray[Any]) -> list[slice]:
    rows = max(1, CHUNK // max(1, int(np.prod(features.shape[1:]))))
    return [slice(start, start + rows) for start in range(0, len(features), rows)]
