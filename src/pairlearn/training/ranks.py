"""Several processes that train one model: sums over all of them, with gradients.

A correction is not linear, so N processes with a part of the batch each cannot correct their own
risks and average gradients: moments are summed over the processes first, and so are the means and
variances of batch norm. Let L = F(Σ_r m_r(θ)) on every rank r. The adjoint of a sum over ranks is
a sum over ranks, so each rank's gradient is N ∂F/∂m · ∂m_r/∂θ, and the mean of the ranks'
gradients, which is what ``DistributedDataParallel`` takes, is the gradient of L.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn

from pairlearn.risks import Risk


class _Sum(torch.autograd.Function):
    """The sum over ranks; so is its adjoint."""

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
    """A process among those that train together, by its number and how many there are.

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
        """Whether this is the one that prints and writes."""
        return self.rank == 0

    def sum(self, x: Tensor) -> Tensor:
        """The sum over the ranks, through which gradients flow."""
        if self.size == 1:
            return x
        total: Tensor = _Sum.apply(x)  # type: ignore[no-untyped-call]
        return total

    def part(self, count: int) -> slice:
        """Which of `count` things are this rank's; the first ranks have one more if need be."""
        each, more = divmod(count, self.size)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))

    @torch.no_grad()
    def average(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Means over the ranks, all in one message, in float32 at least."""
        if self.size == 1:
            return list(tensors)
        kinds = [torch.promote_types(tensor.dtype, torch.float32) for tensor in tensors]
        flat = torch.cat([t.to(kind).flatten() for t, kind in zip(tensors, kinds, strict=True)])
        distributed.all_reduce(flat)
        parts = torch.split(flat / self.size, [tensor.numel() for tensor in tensors])
        return [
            part.view(tensor.shape).to(tensor.dtype)
            for part, tensor in zip(parts, tensors, strict=True)
        ]

    @torch.no_grad()
    def copy_first(self, module: nn.Module) -> None:
        """Give a module the parameters and buffers that it has on the first rank."""
        if self.size > 1:
            for tensor in module.state_dict().values():
                whole = tensor.contiguous()
                distributed.broadcast(whole, 0)
                tensor.copy_(whole)

    @contextmanager
    def first_goes_first(self) -> Iterator[None]:
        """Let the first rank do something before the others: what is wrong is then said once.

        When the first process ends with an error, ``torchrun`` ends the others, which wait.
        """
        if self.size > 1 and not self.first:
            distributed.barrier()
        yield
        if self.size > 1 and self.first:
            distributed.barrier()

    def agree(self, value: float, device: torch.device) -> float:
        """The first rank's value: what ranks decide on must be the same to the last bit."""
        if self.size == 1:
            return value
        told = torch.tensor(value, dtype=torch.float64, device=device)
        distributed.broadcast(told, 0)
        return float(told)


ALONE = Ranks()


def current_ranks() -> Ranks:
    """The place of this process in ``torch.distributed``; alone where that was not started."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return ALONE
    return Ranks(distributed.get_rank(), distributed.get_world_size())


def sum_over_ranks(x: Tensor) -> Tensor:
    """The sum of a tensor over all processes of ``torch.distributed``, with gradients."""
    return current_ranks().sum(x)


def risk_over_ranks(
    risk: Risk, logits: Tensor, logits_prime: Tensor, u: Tensor, v: Tensor
) -> Tensor:
    """The risk of a batch of which every process has a part, for a training loop of your own.

    The value is the same on all ranks. Average the gradients over them, as
    ``DistributedDataParallel`` does: they are then those of one process with the whole batch. The
    tensors (n,) are this rank's part; parts may differ in size, but none may be empty.

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
    """Meet the other processes that ``torchrun`` started, if there are any; part at the end.

    NCCL connects GPUs, gloo CPUs.
    """
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ):
        yield current_ranks()
        return
    from pairlearn.training.fleet import choose_device

    kind = choose_device(device).type
    distributed.init_process_group("nccl" if kind == "cuda" else "gloo")
    try:
        yield current_ranks()
    finally:
        distributed.destroy_process_group()


def local_device(device: str) -> str:
    """The device of that name for this process, each with its own GPU; ValueError if none."""
    from pairlearn.training.fleet import choose_device

    try:
        chosen = choose_device(device)
    except RuntimeError:
        raise ValueError(f"device={device} is unknown; say auto, cpu or cuda") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device}: there is no CUDA here; say auto or cpu")
    if "LOCAL_RANK" in os.environ and chosen == torch.device("cuda"):
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    return device
