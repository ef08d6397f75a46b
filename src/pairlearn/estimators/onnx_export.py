"""A trained network as an ONNX file, to run where there is no torch.

The graph takes raw features ``x``, standardises them, runs the network and shifts the
log-odds to the prior of use:

    logit = sign · g((x − mean)/scale) + shift,    probability = σ(logit)

Columns that are no plain numbers are inputs of their own, which `onnx_columns` encodes. The file
is checked by running it: onnxruntime and torch have to agree.
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
from numpy.typing import NDArray
from torch import Tensor, nn

from pairlearn.atomic import replacing
from pairlearn.estimators.onnx_columns import random_values, with_columns
from pairlearn.extras import missing_extra
from pairlearn.tables.encoder import ItemEncoder

TOLERANCE = 1e-4
BATCHES = (1, 2, 33)
"""Batch sizes of the check: a graph that was fixed to one of them fails at another."""


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
        # In double precision, as in training: a feature of a million and one, less a million.
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
    encoder: ItemEncoder | None = None,
) -> float:
    """Write a network as ONNX and check that it gives the same answers.

    Parameters
    ----------
    module : nn.Module
        Maps instances (n, ...) to logits (n,) or (n, 1). It is copied, not changed.
    path : str or Path
        The file; written whole or not at all.
    example_shape : sequence of int
        Shape of one instance, without the batch axis.
    standardisation : (mean, scale), optional
        Two arrays that broadcast to an instance.
    shift, sign : float
        Logits become sign · z + shift; the sign is negative where the classes are exchanged.
    encoder : ItemEncoder, optional
        Makes the features of columns: the graph then has an input for each column, as
        `pairlearn.estimators.onnx_columns` says, in place of ``x``.

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
        import onnxruntime  # noqa: F401  (the check below needs it: better told before the work)
    except ImportError as error:
        raise missing_extra("onnx", str(error.name), "ONNX") from None
    shape = _checked_shape(example_shape)
    scored = _scored(module, shape, standardisation, shift, sign)
    with replacing(Path(path)) as part:
        _trace(scored, shape, part)
        if encoder is not None:
            onnx.save(with_columns(onnx.load(str(part)), encoder), str(part))
        # Operators of onnxruntime have no shapes that the full check could infer.
        onnx.checker.check_model(str(part), full_check=encoder is None)
        difference = _largest_difference(scored, shape, part, encoder)
        if not difference <= TOLERANCE:
            raise RuntimeError(
                f"the exported file differs from torch by {difference:.2g}, more than "
                f"{TOLERANCE:g}: the module does something that tracing does not see, such as a "
                "branch on its data or a size taken from the example"
            )
    return difference


def _scored(
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
        number = torch.as_tensor(np.array(values, dtype=np.float64))
        try:
            number = number.broadcast_to(shape).clone()
        except RuntimeError:
            raise ValueError(
                f"standardisation {name} has shape {tuple(number.shape)}, which does not "
                f"broadcast to an instance of shape {shape}"
            ) from None
        if not bool(torch.isfinite(number).all()) or (
            name == "scale" and bool((number == 0).any())
        ):
            raise ValueError(f"standardisation {name} must be finite, and scale not 0")
        numbers.append(number)
    plain = copy.deepcopy(module).cpu().float()
    return _Scored(plain, float(sign), float(shift), *numbers).eval()


def _trace(scored: _Scored, shape: tuple[int, ...], file: Path) -> None:
    names = ["logit", "probability"]
    with warnings.catch_warnings(), torch.no_grad():
        # The newer exporter takes ten times as long for the same graph and logs about
        # packages that are not needed; torch announces the older one as deprecated.
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


def _largest_difference(
    scored: _Scored, shape: tuple[int, ...], file: Path, encoder: ItemEncoder | None
) -> float:
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    except Exception as error:
        texts = [one.name for one in encoder.columns if one.kind == "text"] if encoder else []
        which = f", because of the text {', '.join(map(repr, texts))}: fit without it" * bool(texts)
        raise RuntimeError(f"onnxruntime cannot run the graph{which} ({error!s:.200})") from None
    rng = torch.Generator().manual_seed(0)
    largest = 0.0
    for size in BATCHES:
        x = (scored.mean + 2 * scored.scale * torch.randn(size, *shape, generator=rng)).float()
        given: dict[str, Any] = {"x": x.numpy()}
        if encoder is not None:
            given = random_values(encoder, size, seed=size)
            x = torch.as_tensor(encoder.encode(given))
        with torch.no_grad():
            expected = [output.numpy() for output in scored(x)]
        found: list[NDArray[np.float32]] = session.run(None, given)
        for one, other in zip(expected, found, strict=True):
            if one.shape != (size,) or other.shape != one.shape:
                raise RuntimeError(
                    f"{size} instances give logits of shape {one.shape} in torch and "
                    f"{other.shape} in the exported file: the module must map (n, ...) to (n,)"
                )
            relative = abs(one - other) / np.maximum(1, abs(one))
            largest = max(largest, float(relative.max()))
    return largest


def _checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in shape)
    if not sizes or min(sizes) < 1:
        raise ValueError(f"example_shape must be positive sizes of one instance; got {shape!r}")
    return sizes
