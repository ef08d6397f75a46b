"""Commands that ``torchrun`` starts in several processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pairlearn.training import Ranks

__all__ = ["first_goes_first", "joined_ranks", "local_device"]


@contextmanager
def joined_ranks(device: str) -> Iterator[Ranks]:
    """Meet the other processes, if there are any, and part from them at the end.

    Parameters
    ----------
    device : str
        Where this process trains: NCCL between GPUs, gloo between CPUs.

    Yields
    ------
    Ranks
        The place of this process among them.

    Examples
    --------
    >>> with joined_ranks("cpu") as ranks:
    ...     ranks.size
    1
    """
    from torch import distributed

    from pairlearn.training import choose_device, current_ranks

    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ):
        yield current_ranks()
        return
    kind = choose_device(device).type
    distributed.init_process_group("nccl" if kind == "cuda" else "gloo")
    try:
        yield current_ranks()
    finally:
        distributed.destroy_process_group()


def local_device(device: str) -> str:
    """The device of that name for this process: each process of a machine has its own GPU.

    Examples
    --------
    >>> local_device("cpu")
    'cpu'
    """
    import torch

    from pairlearn.training import choose_device

    if "LOCAL_RANK" in os.environ and choose_device(device) == torch.device("cuda"):
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    return device


@contextmanager
def first_goes_first(ranks: Ranks) -> Iterator[None]:
    """Let the first rank do something before the others: what is wrong is then said once.

    When the first process ends with an error, ``torchrun`` ends the others, which wait.

    Examples
    --------
    >>> from pairlearn.training import Ranks
    >>> with first_goes_first(Ranks()):
    ...     print("looking at the files")
    looking at the files
    """
    from torch import distributed

    if ranks.size > 1 and not ranks.first:
        distributed.barrier()
    yield
    if ranks.size > 1 and ranks.first:
        distributed.barrier()
