"""Classifiers g: plain `nn.Module`s that map instances to one logit, or to one for each class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["CONVOLUTIONAL", "MLP", "ResNet", "ResNet8", "ResNet32", "ResNet34"]
__all__ += ["make_model", "register_model"]

Norm = Literal["none", "input", "all"]


class MLP(nn.Module):
    """Fully connected ReLU network.

    Parameters
    ----------
    features : int
        Number of inputs.
    hidden : sequence of int
        Widths of the hidden layers; none for a linear model.
    norm : {"input", "all", "none"}
        Batch norm on the input only (as in the published experiments), on the input and before
        every ReLU, or nowhere.
    outputs : int
        One for two classes, otherwise the number of classes.

    Examples
    --------
    >>> MLP(16)(torch.zeros(4, 16)).shape
    torch.Size([4])
    """

    widths: list[int]
    norm: Norm

    def __init__(
        self,
        features: int,
        hidden: Sequence[int] = (300, 300, 300),
        norm: Norm = "input",
        outputs: int = 1,
    ) -> None:
        super().__init__()
        if norm not in ("none", "input", "all"):
            raise ValueError(f"norm must be 'none', 'input' or 'all'; got {norm!r}")
        widths = [features, *hidden]
        if min(widths) < 1:
            raise ValueError(f"every width must be at least 1; got {widths}")
        self.widths, self.norm, self.outputs = widths, norm, outputs
        self.norms = nn.ModuleList()
        if norm != "none":
            normed = widths if norm == "all" else widths[:1]
            self.norms.extend(nn.BatchNorm1d(width) for width in normed)
        self.layers = nn.ModuleList(
            nn.Linear(*sizes) for sizes in zip(widths, [*hidden, outputs], strict=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n,), or (n, outputs), of instances (n, features)."""
        if self.norm != "none":
            x = self.norms[0](x)
        for depth, layer in enumerate(self.layers[:-1], start=1):
            x = layer(x)
            x = F.relu(self.norms[depth](x) if self.norm == "all" else x, inplace=True)
        logits: Tensor = self.layers[-1](x)
        return logits.squeeze(-1) if self.outputs == 1 else logits


class _Block(nn.Module):
    """Two 3×3 convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, groups: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, groups=groups, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, groups=groups, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, groups=groups, bias=False),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(out)) + self.shortcut(x))


class ResNet(nn.Module):
    """A residual network for small images: a 3×3 stem, no pooling before the stages.

    Parameters
    ----------
    channels : int
        Channels of an image.
    stages : sequence of (int, int)
        Width and number of blocks of each stage; all but the first halve height and width.
    copies : int
        Independent networks side by side: each has its own channels of the images and of all
        layers, so that its weights are a part of the first axis of every parameter.
    outputs : int
        Outputs of the one network: one for two classes, otherwise the number of classes.
    """

    def __init__(
        self,
        channels: int,
        stages: Sequence[tuple[int, int]],
        copies: int = 1,
        outputs: int = 1,
    ) -> None:
        super().__init__()
        self.stages, self.copies, self.outputs = tuple(stages), copies, outputs
        inputs = copies * stages[0][0]
        self.stem = nn.Conv2d(copies * channels, inputs, 3, 1, 1, groups=copies, bias=False)
        self.norm = nn.BatchNorm2d(inputs)
        blocks: list[nn.Module] = []
        for stage, (width, count) in enumerate(stages):
            for index in range(count):
                stride = 2 if stage > 0 and index == 0 else 1
                blocks.append(_Block(inputs, copies * width, stride, groups=copies))
                inputs = copies * width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(stages[-1][0], max(copies, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n,) of images (n, channels, 32, 32); (n, k) of several copies or outputs."""
        x = self.blocks(F.relu(self.norm(self.stem(x)))).mean((2, 3))
        logits: Tensor
        if self.copies == 1:
            logits = self.head(x)
            logits = logits.squeeze(-1) if self.head.out_features == 1 else logits
        else:
            logits = (x.view(len(x), self.copies, -1) * self.head.weight).sum(-1) + self.head.bias
        return logits


class ResNet34(ResNet):
    """ResNet-34 for 32×32 images: a 3×3 stem, no pooling before the stages."""

    def __init__(self, channels: int = 3, outputs: int = 1) -> None:
        super().__init__(channels, ((64, 3), (128, 4), (256, 6), (512, 3)), outputs=outputs)


class ResNet32(ResNet):
    """ResNet-32 for 32×32 images, as in the public ConfDiff code: 0.47 million parameters.

    Three stages of five blocks with 16, 32 and 64 channels, 1×1 convolutions as shortcuts where
    the shape changes, and convolutions that start from N(0, 2 / (9 · outputs)), the 1×1 ones from
    N(0, 2 / outputs).
    """

    def __init__(self, channels: int = 3, outputs: int = 1) -> None:
        super().__init__(channels, ((16, 5), (32, 5), (64, 5)), outputs=outputs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


class ResNet8(ResNet):
    """A residual network for small datasets: three stages of one block, 20,000 parameters."""

    def __init__(self, channels: int = 3, outputs: int = 1) -> None:
        super().__init__(channels, ((8, 1), (16, 1), (32, 1)), outputs=outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n,) of images (n, channels, height, width), or of rows of 32×32 pixels."""
        rows = x.ndim == 2
        return super().forward(x.reshape(-1, self.stem.in_channels, 32, 32) if rows else x)


#: Models for images by name.
CONVOLUTIONAL = {"resnet34": ResNet34, "resnet32": ResNet32, "resnet8": ResNet8}
#: Fully connected models by name: widths of the hidden layers, and where batch norm is.
PERCEPTRONS: dict[str, tuple[Sequence[int], Norm]] = {
    "mlp": ((300, 300, 300), "input"),
    "mlp-bn": ((300, 300, 300), "all"),
    "mlp-small": ((100, 100), "input"),
    "linear": ((), "input"),
}
_BUILT_IN = frozenset({*PERCEPTRONS, *CONVOLUTIONAL})


def register_model(name: str, hidden: Sequence[int], norm: Norm = "input") -> None:
    """Name an `MLP` of these hidden layers, for `PairClassifier` and for the grids of the bench.

    Other modules need no name: pass them to `PairClassifier`.

    Raises
    ------
    ValueError
        If there is no such network, or a built-in model has the name.

    Examples
    --------
    >>> register_model("wide", hidden=(1000,))
    >>> make_model("wide", (16,)).widths
    [16, 1000]
    """
    if name in _BUILT_IN:
        raise ValueError(f"model {name!r} is built in; choose another name")
    MLP(1, hidden, norm)  # which checks them
    PERCEPTRONS[name] = (tuple(hidden), norm)


def make_model(
    name: str, shape: Sequence[int], seed: int | None = None, outputs: int = 1
) -> nn.Module:
    """Make a model by name for instances of this shape, initialised from the seed.

    Parameters
    ----------
    name : {"mlp", "mlp-bn", "mlp-small", "linear", "resnet34", "resnet32", "resnet8"}
        The paper's network, the same with batch norm on every layer, one with two hidden
        layers of 100, a linear model, the paper's network for 32×32 colour images, the smaller
        one of the public code, or one for small datasets of images; or a registered name.
    shape : sequence of int
        Shape of one instance.
    seed : int, optional
        Seed of the initial weights; None draws on torch's global generator.
    outputs : int
        One for two classes, otherwise the number of classes.

    Examples
    --------
    >>> sum(p.numel() for p in make_model("linear", (16,), seed=0).parameters())
    49
    """
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        if name in CONVOLUTIONAL:
            return CONVOLUTIONAL[name](shape[0] if len(shape) > 1 else 3, outputs)
        if name in PERCEPTRONS:
            return MLP(math.prod(shape), *PERCEPTRONS[name], outputs)
    known = ", ".join((*PERCEPTRONS, *CONVOLUTIONAL))
    raise ValueError(f"model {name!r} is unknown; choose one of {known}")
