"""Training one model in several processes: differentiable sums over ranks.

Corrections are not linear, so N processes with parts of a batch cannot correct their own risks and
average the gradients. Moments are summed over the processes first, and so are the means and
variances of batch norm. Let L = F(Σ_r m_r(θ)) on every rank r. The adjoint of a sum over ranks is
a sum over ranks, so each rank's gradient is N ∂F/∂m · ∂m_r/∂θ. Their mean, which
``DistributedDataParallel`` computes, is the gradient of L.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn

from pairlearn.risks import Risk
from pairlearn.training.devices import choose_device


class _Sum(torch.autograd.Function):
    """The sum over ranks, whose adjoint is the same sum."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        total = x.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Nothing to keep: the sum is linear."""

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        return _Sum.apply(slope)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Ranks:
    """The number of this process among those that train together, and how many there are.

    Examples
    --------
    >>> ALONE.sum(torch.ones(2)), ALONE.part(10)
    (tensor([1., 1.]), slice(0, 10, None))
    >>> [Ranks(rank, 3).part(7) for rank in range(3)]
    [slice(0, 3, None), slice(3, 5, None), slice(5, 7, None)]
    """

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that prints and writes."""
        return self.rank == 0

    def sum(self, x: Tensor) -> Tensor:
        """Differentiable sum over the ranks."""
        if self.size == 1:
            return x
        total: Tensor = _Sum.apply(x)  # type: ignore[no-untyped-call]
        return total

    def part(self, count: int) -> slice:
        """The part of `count` things that this rank takes; the first ranks may take one more."""
        each, more = divmod(count, self.size)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))

    @contextmanager
    def first_goes_first(self) -> Iterator[None]:
        """Run a block on the first rank before the others, so that errors are reported once.

        When the first process fails, ``torchrun`` ends the others, which wait.
        """
        if self.size > 1 and not self.first:
            distributed.barrier()
        yield
        if self.size > 1 and self.first:
            distributed.barrier()

    def agree(self, value: float, device: torch.device) -> float:
        """The first rank's value: decisions of the ranks must agree to the last bit."""
        if self.size == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=device)
        distributed.broadcast(shared, 0)
        return float(shared)


ALONE = Ranks()
BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d


def current_ranks() -> Ranks:
    """The rank of this process in ``torch.distributed``; `ALONE` if that was not started."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return ALONE
    return Ranks(distributed.get_rank(), distributed.get_world_size())


def batch_norm(
    x: Tensor, weight: Tensor, axes: list[int], eps: float, ranks: Ranks
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm over all ranks without its affine part, with mean and unbiased variance.

    ``weight``, which broadcasts to ``x``, is one, or zero for padding.
    """
    count = ranks.sum(weight.sum(axes, keepdim=True))
    share = weight / count
    mean = ranks.sum((x * share).sum(axes, keepdim=True))
    centred = x - mean
    var = ranks.sum((centred.square() * share).sum(axes, keepdim=True))
    unbiased = var * (count / (count - 1))
    return centred * torch.rsqrt(var + eps), mean.detach(), unbiased.detach()


class RankNorm:
    """Make a batch norm compute over all ranks until `release`; it keeps its own tensors.

    ``row_weight`` (R,) is one for each row of the next batch, zero for padding.
    """

    def __init__(self, norm: BatchNorm, ranks: Ranks) -> None:
        self.norm, self.ranks = norm, ranks
        self.row_weight: Tensor | None = None
        self._plain = type(norm).forward
        norm.forward = self.forward  # type: ignore[method-assign, assignment]

    def release(self) -> None:
        """Restore the layer's own method."""
        del self.norm.forward

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output, with the mean and variance of the whole batch."""
        norm = self.norm
        if not (norm.training or norm.running_mean is None):
            plain: Tensor = self._plain(norm, x)
            return plain
        norm._check_input_dim(x)
        values = x.to(torch.promote_types(x.dtype, torch.float32))
        weight = values.new_ones(len(x)) if self.row_weight is None else self.row_weight
        weight = weight.to(values.dtype).view(-1, *[1] * (x.ndim - 1)).expand_as(values[:, :1])
        axes = [axis for axis in range(x.ndim) if axis != 1]
        out, mean, var = batch_norm(values, weight, axes, norm.eps, self.ranks)
        if norm.training and norm.track_running_stats:
            self._absorb(mean.flatten(), var.flatten())
        if norm.affine:
            per_channel = (1, -1, *[1] * (x.ndim - 2))
            out = out * norm.weight.view(per_channel) + norm.bias.view(per_channel)
        return out.to(x.dtype)

    def _absorb(self, mean: Tensor, var: Tensor) -> None:
        norm = self.norm
        assert norm.running_mean is not None and norm.running_var is not None
        assert norm.num_batches_tracked is not None
        count = norm.num_batches_tracked.add_(1)
        # Without a momentum the running statistics are plain averages over all batches.
        rate = 1.0 / count.to(mean.dtype) if norm.momentum is None else norm.momentum
        for running, value in ((norm.running_mean, mean), (norm.running_var, var)):
            running.add_(rate * (value.to(running.dtype) - running))


@contextmanager
def norms_over_ranks(module: nn.Module, ranks: Ranks) -> Iterator[list[RankNorm]]:
    """Make the batch norms of a module compute over all ranks within a block.

    ``nn.SyncBatchNorm`` needs CUDA. Other layers that mix rows see this rank's part only.
    """
    parts = module.modules() if ranks.size > 1 else ()
    norms = [RankNorm(part, ranks) for part in parts if isinstance(part, BatchNorm)]
    try:
        yield norms
    finally:
        for norm in norms:
            norm.release()


def sum_over_ranks(x: Tensor) -> Tensor:
    """Differentiable sum of a tensor over all processes of ``torch.distributed``."""
    return current_ranks().sum(x)


def risk_over_ranks(
    risk: Risk, logits: Tensor, logits_prime: Tensor, u: Tensor, v: Tensor
) -> Tensor:
    """The risk of a batch of which every process has a part, for your own training loop.

    The value is the same on all ranks. Averaged over the ranks, as ``DistributedDataParallel``
    does, the gradients are those of one process with the whole batch. The tensors (n,) are this
    rank's part; parts may differ in size, but none may be empty.

    Examples
    --------
    >>> from pairlearn import make_risk
    >>> zero = torch.zeros(4)
    >>> risk_over_ranks(make_risk("likelihood-abs"), zero, zero, zero, zero)
    tensor(0.6931)
    """
    ranks, n = current_ranks(), logits.shape[0]
    if ranks.size == 1:
        whole: Tensor = risk(logits, logits_prime, u, v)
        return whole
    moments = risk.moments(logits, logits_prime, u, v)
    count = torch.full((1,), float(n), dtype=moments.dtype, device=moments.device)
    sums = ranks.sum(torch.cat([(moments * n).flatten(), count]))
    return risk.from_moments((sums[:-1] / sums[-1]).view(moments.shape))


@contextmanager
def joined_ranks(device: str) -> Iterator[Ranks]:
    """Connect to the other processes that ``torchrun`` started, if any, within a block.

    NCCL connects GPUs, gloo CPUs.
    """
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ):
        yield current_ranks()
        return
    on_cuda = choose_device(device).type == "cuda"
    distributed.init_process_group("nccl" if on_cuda else "gloo")
    try:
        yield current_ranks()
    finally:
        distributed.destroy_process_group()
