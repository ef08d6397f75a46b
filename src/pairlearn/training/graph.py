"""A training step recorded once and replayed: no launch overhead between kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["GraphedStep"]

WARM_UP = 3


class GraphedStep:
    """A step that is captured as a CUDA graph for each shape of its inputs.

    The first calls with a shape run the step itself, on a side stream as capture
    requires: they are steps like any other, so nothing is done twice.
    """

    def __init__(self, step: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.step = step
        self.recordings: dict[torch.Size, _Recording] = {}

    def __call__(self, chosen: Tensor, weight: Tensor) -> Tensor:
        """Run or replay the step on these inputs."""
        recording = self.recordings.get(chosen.shape)
        if recording is None:
            recording = self.recordings[chosen.shape] = _Recording(self.step, chosen, weight)
        return recording(chosen, weight)


class _Recording:
    """The step for one shape: inputs at a fixed place, and the graph once it exists."""

    def __init__(
        self, step: Callable[[Tensor, Tensor], Tensor], chosen: Tensor, weight: Tensor
    ) -> None:
        self.step = step
        self.chosen, self.weight = chosen.clone().contiguous(), weight.clone().contiguous()
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result = torch.empty(())

    def __call__(self, chosen: Tensor, weight: Tensor) -> Tensor:
        self.chosen.copy_(chosen)
        self.weight.copy_(weight)
        self.calls += 1
        if self.calls <= WARM_UP:
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.result = self.step(self.chosen, self.weight)
            torch.cuda.current_stream().wait_stream(side)
            return self.result
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.result = self.step(self.chosen, self.weight)
        self.graph.replay()
        return self.result
