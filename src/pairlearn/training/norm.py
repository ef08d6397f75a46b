"""Batch norm of a module over a batch that several ranks have parts of.

``nn.SyncBatchNorm`` does this on CUDA alone, and knows no rows that only fill up a batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pairlearn.training.ranks import Ranks

__all__ = ["RankNorm", "batch_norms"]

BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d


def batch_norms(module: nn.Module) -> list[BatchNorm]:
    """The batch norms in a module.

    Examples
    --------
    >>> batch_norms(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))[0].num_features
    3
    """
    return [part for part in module.modules() if isinstance(part, BatchNorm)]


class RankNorm:
    """Has a batch norm compute over all ranks until `release`; its tensors stay its own.

    Parameters
    ----------
    norm : BatchNorm1d, BatchNorm2d or BatchNorm3d
        The layer.
    ranks : Ranks
        Those that have parts of the batch.

    Attributes
    ----------
    row_weight : Tensor of shape (R,), or None
        One for each row of the next batch, zero for those that only fill it up.
    """

    def __init__(self, norm: BatchNorm, ranks: Ranks) -> None:
        self.norm, self.ranks = norm, ranks
        self.row_weight: Tensor | None = None
        self._plain = type(norm).forward
        norm.forward = self.forward  # type: ignore[method-assign, assignment]

    def release(self) -> None:
        """Give the layer its own method back."""
        del self.norm.forward

    def forward(self, x: Tensor) -> Tensor:
        """What the layer does, with the mean and variance of the whole batch."""
        norm = self.norm
        if not (norm.training or norm.running_mean is None):
            plain: Tensor = self._plain(norm, x)
            return plain
        norm._check_input_dim(x)
        kind = torch.promote_types(x.dtype, torch.float32)
        axes = [axis for axis in range(x.ndim) if axis != 1]
        spread = (-1,) + (1,) * (x.ndim - 1)
        along = (1, -1) + (1,) * (x.ndim - 2)
        weight = x.new_ones(len(x), dtype=kind) if self.row_weight is None else self.row_weight
        values = x.to(kind)
        share = weight.to(kind).view(spread).expand_as(values[:, :1])
        count = self.ranks.sum(share.sum())
        share = share / count
        mean = self.ranks.sum((values * share).sum(axes))
        centred = values - mean.view(along)
        var = self.ranks.sum((centred.square() * share).sum(axes))
        if norm.training and norm.track_running_stats:
            self._absorb(mean.detach(), (var * count / (count - 1)).detach())
        out = centred * torch.rsqrt(var + norm.eps).view(along)
        if norm.affine:
            out = out * norm.weight.view(along) + norm.bias.view(along)
        return out.to(x.dtype)

    def _absorb(self, mean: Tensor, var: Tensor) -> None:
        norm = self.norm
        assert norm.running_mean is not None and norm.running_var is not None
        assert norm.num_batches_tracked is not None
        norm.num_batches_tracked.add_(1)
        # Without a momentum it is the plain average of all batches.
        rate = 1.0 / norm.num_batches_tracked.to(mean.dtype)
        if norm.momentum is not None:
            rate = torch.full_like(rate, norm.momentum)
        norm.running_mean.add_(rate * (mean.to(norm.running_mean.dtype) - norm.running_mean))
        norm.running_var.add_(rate * (var.to(norm.running_var.dtype) - norm.running_var))
