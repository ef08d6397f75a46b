"""Export of a trained network as an ONNX file, to run without torch.

The graph takes raw features ``x``, standardises them, runs the network and shifts the log-odds to
the target prior:

    logit = sign · g((x − mean)/scale) + shift,    probability = σ(logit)

With more than two classes both have a column for each, and the probabilities are softmax(logit).
The file is checked by running it: onnxruntime and torch must agree.

Features are numbers: categories, dates, texts and gaps are for an `ItemEncoder`, whose rules an
ONNX graph cannot follow to the last character. Encode such columns first.
"""

from __future__ import annotations

import copy
import math
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from pairlearn.atomic import replacing
from pairlearn.estimators.fitted import Fitted
from pairlearn.extras import missing_extra

#: Of probabilities, and of logits relative to their size: float32 differs by a hundredth of it.
TOLERANCE = 1e-4


class _Scored(nn.Module):
    """Standardisation, network and shift as one module with two outputs."""

    mean: Tensor
    scale: Tensor
    order: Tensor | None

    def __init__(self, fitted: Fitted) -> None:
        super().__init__()
        self.module = copy.deepcopy(fitted.module).cpu().float()  # type: ignore[union-attr]
        self.factor, self.shift = float(fitted.factor), float(fitted.shift)
        order = None if fitted.order is None else torch.tensor(fitted.order)
        self.register_buffer("order", order)
        shape = fitted.instance_shape
        self.shape = (math.prod(shape),) if fitted.flat else shape
        for name, values in (("mean", fitted.mean), ("scale", fitted.scale)):
            each = np.broadcast_to(values, shape).reshape(self.shape)
            self.register_buffer(name, torch.tensor(each, dtype=torch.float64))
        self.eval()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        # In double precision, as in training: features may be large and differ little.
        ready = ((x.double() - self.mean) / self.scale).float()
        z = self.module(ready)
        if self.order is not None:
            logit = self.factor * z.index_select(1, self.order)
            return logit, torch.softmax(logit, 1)
        logit = self.factor * z.flatten() + self.shift
        return logit, torch.sigmoid(logit)


def export_onnx(fitted: Fitted, path: str | Path) -> float:
    """Write the network of a fit as ONNX; return by how much onnxruntime and torch differ at most.

    The difference is that of random instances, in probability, and in logit relative to
    max(1, |logit|). Raises RuntimeError if it is more than 1e-4; nothing is written then.
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401  (needed by the check at the end)
    except ImportError as error:
        raise missing_extra("onnx", str(error.name), "ONNX") from None
    _check_exportable(fitted)
    scored = _Scored(fitted)
    with replacing(Path(path)) as part:
        _trace(scored, part)
        onnx.checker.check_model(str(part), full_check=True)
        difference = _largest_difference(scored, part)
        if not difference <= TOLERANCE:
            raise RuntimeError(
                f"the exported file differs from torch by {difference:.2g}, more than "
                f"{TOLERANCE:g}: the module does something that tracing does not see, such as a "
                "branch on its data or a size taken from the example"
            )
    return difference


def _check_exportable(fitted: Fitted) -> None:
    if fitted.module is None:
        raise TypeError(
            f"the model is a scikit-learn {type(fitted.estimator).__name__}: export it with "
            "skl2onnx; this method exports networks"
        )
    if fitted.encoder is not None and not fitted.encoder.reads("image"):
        raise ValueError(
            f"the model reads {fitted.encoder}, and an ONNX file takes numbers: encode the items "
            "with encoder_, an ItemEncoder, and fit to its features, or predict with pairlearn"
        )


def _trace(scored: _Scored, file: Path) -> None:
    names = ["logit", "probability"]
    with warnings.catch_warnings(), torch.no_grad():
        # The newer exporter takes ten times as long for the same graph and logs about packages
        # that are not needed; torch warns that the older one is deprecated.
        for message in ("You are using the legacy TorchScript", "The feature will be removed"):
            warnings.filterwarnings("ignore", message=message, category=DeprecationWarning)
        torch.onnx.export(
            scored,
            (torch.zeros(2, *scored.shape),),
            str(file),
            dynamo=False,
            input_names=["x"],
            output_names=names,
            dynamic_axes={name: {0: "batch"} for name in ("x", *names)},
        )


def _largest_difference(scored: _Scored, file: Path) -> float:
    """Over random instances, and over all-zero ones and ones far from the mean."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise RuntimeError(f"onnxruntime cannot run the graph ({error!s:.200})") from None
    rng = torch.Generator().manual_seed(0)
    largest = 0.0
    for size in (1, 2, 33):  # a graph that is fixed to one of them fails at another
        noise = torch.randn(size, *scored.shape, generator=rng)
        noise[2:4] *= 50  # far beyond what training saw
        x = (scored.mean + 2 * scored.scale * noise).float()
        x[1:2] = 0.0
        with torch.no_grad():
            expected = [output.numpy() for output in scored(x)]
        for wanted, output in zip(expected, session.run(None, {"x": x.numpy()}), strict=True):
            if output.shape != wanted.shape:
                return math.inf
            relative = abs(wanted - output) / np.maximum(1, abs(wanted))
            largest = max(largest, float(relative.max()))
    return largest
