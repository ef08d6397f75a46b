"""Export of a trained network as an ONNX file, to run without torch.

The graph takes raw features ``x``, standardises them, runs the network and shifts the log-odds to
the target prior:

    logit = sign · g((x − mean)/scale) + shift,    probability = σ(logit)

The file is checked by running it: onnxruntime and torch must agree.

Features are numbers: categories, dates, texts and gaps are for an `ItemEncoder`, whose rules an
ONNX graph cannot follow to the last character. Encode such columns first.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pairlearn.atomic import replacing
from pairlearn.extras import missing_extra

TOLERANCE = 1e-4
"""Of probabilities, and of logits relative to their size: float32 differs by a hundredth of it."""


class _Scored(nn.Module):
    """Standardisation, network and shift as one module with two outputs."""

    mean: Tensor
    scale: Tensor

    def __init__(
        self, module: nn.Module, sign: float, shift: float, mean: Tensor, scale: Tensor
    ) -> None:
        super().__init__()
        self.module, self.sign, self.shift = module, sign, shift
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        # In double precision, as in training: features may be large and differ little.
        ready = ((x.double() - self.mean) / self.scale).float()
        z = self.module(ready).flatten()
        logit = self.sign * z + self.shift
        return logit, torch.sigmoid(logit)


def export_onnx(
    module: nn.Module,
    path: str | Path,
    example_shape: Sequence[int],
    standardisation: tuple[Any, Any] | None = None,
    shift: float = 0.0,
    *,
    sign: float = 1,
) -> float:
    """Write a network as ONNX and check that it gives the same answers.

    Parameters
    ----------
    module : nn.Module
        Maps instances (n, ...) to logits (n,) or (n, 1). It is copied, not changed.
    path, example_shape : str or Path, sequence of int
        The file, written whole or not at all, and the shape of one instance.
    standardisation : (mean, scale), optional
        Two arrays that broadcast to an instance.
    shift, sign : float
        Logits become sign · z + shift; the sign is negative where the classes are exchanged.

    Returns
    -------
    float
        The largest difference between onnxruntime and torch over random instances, in
        probability, and in logit relative to max(1, |logit|).

    Raises
    ------
    RuntimeError
        If they differ by more than 1e-4; nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.models import make_model
    >>> file = Path(tempfile.mkdtemp(), "model.onnx")
    >>> export_onnx(make_model("linear", (4,), seed=0), file, (4,)) < 1e-5
    True
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401  (needed by the check at the end)
    except ImportError as error:
        raise missing_extra("onnx", str(error.name), "ONNX") from None
    shape = tuple(int(size) for size in example_shape)
    if not shape or min(shape) < 1:
        raise ValueError(
            f"example_shape must be positive sizes of one instance; got {example_shape!r}"
        )
    scored = _make_scored(module, shape, standardisation, shift, sign)
    with replacing(Path(path)) as part:
        _trace(scored, shape, part)
        onnx.checker.check_model(str(part), full_check=True)
        difference = _largest_difference(scored, shape, part)
        if not difference <= TOLERANCE:
            raise RuntimeError(
                f"the exported file differs from torch by {difference:.2g}, more than "
                f"{TOLERANCE:g}: the module does something that tracing does not see, such as a "
                "branch on its data or a size taken from the example"
            )
    return difference


def _make_scored(
    module: nn.Module,
    shape: tuple[int, ...],
    standardisation: tuple[Any, Any] | None,
    shift: float,
    sign: float,
) -> _Scored:
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be an nn.Module; got {type(module).__name__}")
    if not np.isfinite(shift):
        raise ValueError(f"shift must be finite; got {shift}")
    if not (math.isfinite(sign) and sign):
        raise ValueError(f"sign must be a finite number other than 0; got {sign}")
    numbers = []
    for name, values in zip(("mean", "scale"), standardisation or (0.0, 1.0), strict=True):
        array = np.asarray(values, dtype=np.float64)
        try:
            numbers.append(torch.tensor(np.broadcast_to(array, shape)))
        except ValueError:
            raise ValueError(
                f"standardisation {name} has shape {array.shape}, which does not broadcast to an "
                f"instance of shape {shape}"
            ) from None
        if not np.isfinite(array).all() or (name == "scale" and not array.all()):
            raise ValueError(f"standardisation {name} must be finite, and scale not 0")
    plain = copy.deepcopy(module).cpu().float()
    return _Scored(plain, float(sign), float(shift), *numbers).eval()


def _trace(scored: _Scored, shape: tuple[int, ...], file: Path) -> None:
    names = ["logit", "probability"]
    with warnings.catch_warnings(), torch.no_grad():
        # The newer exporter takes ten times as long for the same graph and logs about packages
        # that are not needed; torch warns that the older one is deprecated.
        for message in ("You are using the legacy TorchScript", "The feature will be removed"):
            warnings.filterwarnings("ignore", message=message, category=DeprecationWarning)
        torch.onnx.export(
            scored,
            (torch.zeros(2, *shape),),
            str(file),
            dynamo=False,
            input_names=["x"],
            output_names=names,
            dynamic_axes={name: {0: "batch"} for name in ("x", *names)},
        )


def _largest_difference(scored: _Scored, shape: tuple[int, ...], file: Path) -> float:
    """Over random instances, and over all-zero ones and ones far from the mean."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise RuntimeError(f"onnxruntime cannot run the graph ({error!s:.200})") from None
    rng = torch.Generator().manual_seed(0)
    largest = 0.0
    for size in (1, 2, 33):  # a graph that is fixed to one of them fails at another
        noise = torch.randn(size, *shape, generator=rng)
        noise[2:4] *= 50  # far beyond what training saw
        x = (scored.mean + 2 * scored.scale * noise).float()
        x[1:2] = 0.0
        with torch.no_grad():
            expected = [output.numpy() for output in scored(x)]
        for wanted, output in zip(expected, session.run(None, {"x": x.numpy()}), strict=True):
            if wanted.shape != (size,) or output.shape != wanted.shape:
                raise RuntimeError(
                    f"{size} instances give logits of shape {wanted.shape} in torch and "
                    f"{output.shape} in the exported file: the module must map (n, ...) to (n,)"
                )
            relative = abs(wanted - output) / np.maximum(1, abs(wanted))
            largest = max(largest, float(relative.max()))
    return largest
