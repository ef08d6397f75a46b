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
        self.calls: dict[torch.Size, int] = {}
        self.graphs: dict[torch.Size, tuple[torch.cuda.CUDAGraph, Tensor, Tensor, Tensor]] = {}

    def __call__(self, chosen: Tensor, weight: Tensor) -> Tensor:
        """Run or replay the step on these inputs."""
        shape = chosen.shape
        if shape not in self.graphs:
            self.calls[shape] = self.calls.get(shape, 0) + 1
            if self.calls[shape] <= WARM_UP:
                return self._on_side_stream(chosen, weight)
            self._capture(chosen, weight)
        graph, static_chosen, static_weight, result = self.graphs[shape]
        static_chosen.copy_(chosen)
        static_weight.copy_(weight)
        graph.replay()
        return result

    def _on_side_stream(self, chosen: Tensor, weight: Tensor) -> Tensor:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            result = self.step(chosen, weight)
        torch.cuda.current_stream().wait_stream(side)
        return result

    def _capture(self, chosen: Tensor, weight: Tensor) -> None:
        static_chosen, static_weight = chosen.clone(), weight.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = self.step(static_chosen, static_weight)
        self.graphs[chosen.shape] = (graph, static_chosen, static_weight, result)
