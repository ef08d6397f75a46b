"""Where and how precisely to compute."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

#: Precision of the matrix products; with "float64" of everything.
Precision = Literal["float64", "float32", "tf32", "bf16"]
CHECKED_ROWS = 1 << 16  # a chunk of some 16 MiB with 64 features
#: Operations of a step for which another thread pays: 2 ms on one core.
WORK = 2e8


def choose_device(device: str) -> torch.device:
    """The torch device for a name, ValueError if there is none; "auto" is CUDA where available."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device={device} is unknown; give auto, cpu or cuda") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device}: there is no CUDA here; give auto or cpu")
    return chosen


def local_device(device: str) -> str:
    """The device for this process, each with its own GPU."""
    if "LOCAL_RANK" in os.environ and choose_device(device) == torch.device("cuda"):
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    return device


def set_precision(precision: Precision) -> torch.dtype:
    """Set how CUDA multiplies float32 matrices; returns the type of everything else."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"  # on by default
    return torch.float64 if precision == "float64" else torch.float32


def features_on(device: torch.device, features: Any, dtype: torch.dtype) -> Tensor:
    """Features (N, ...) as a tensor on a device, checked; integers keep their type."""
    if isinstance(features, np.ndarray) and not features.flags.writeable:
        features = features.copy()  # torch warns of arrays that are not writable
    tensor = torch.as_tensor(features)
    if tensor.ndim < 2:
        raise ValueError(f"features must have shape (N, ...); got {tuple(tensor.shape)}")
    # In chunks: features mapped from a file may not fit into memory.
    for start in range(0, len(tensor), CHECKED_ROWS):
        finite = torch.isfinite(tensor[start : start + CHECKED_ROWS]).flatten(1).all(1)
        if not bool(finite.all()):
            row = start + int(finite.int().argmin())
            raise ValueError(f"features are NaN or infinite in row {row}")
    tensor = tensor.to(device)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


@contextmanager
def at_most_threads(count: int) -> Iterator[None]:
    """Limit torch's threads: more than are useful only wait, long on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, count))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def useful_threads(rows: int, weights: int) -> int:
    """The number of threads that a step of a fully connected network has work for."""
    return 1 + int(6 * rows * weights / WORK)
