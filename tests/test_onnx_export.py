"""ONNX files, run by onnxruntime and compared with numbers worked out by hand and by torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pairlearn.annotators import Annotators
from pairlearn.estimators.fitted import Fitted
from pairlearn.estimators.onnx_export import export_onnx
from pairlearn.models import MLP

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def learnt(module: nn.Module, shape: tuple[int, ...], mean: Any = 0, scale: Any = 1) -> Fitted:
    """A fit with this network, which takes instances as they are."""
    return Fitted(
        module=module, model="own", parameters={}, classes=np.array([-1, 1]), instance_shape=shape,
        mean=np.asarray(mean, float), scale=np.asarray(scale, float), flat=False, prior=0.5,
        training_items=np.empty((0, 2), np.int64), annotators=Annotators(),
    )  # fmt: skip


def run(file: Path, x: Any) -> tuple[Any, Any]:
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    logit, probability = session.run(["logit", "probability"], {"x": np.asarray(x, np.float32)})
    return logit, probability


def test_standardisation_network_and_shift_by_hand(tmp_path: Path) -> None:
    """z = 2(x₁ − 1)/4 − 3(x₂ + 1)/2 + ½ + shift."""
    linear = nn.Linear(2, 1)
    linear.load_state_dict({"weight": torch.tensor([[2.0, -3.0]]), "bias": torch.tensor([0.5])})
    file = tmp_path / "model.onnx"
    fitted = replace(learnt(linear, (2,), [1.0, -1.0], [4.0, 2.0]), shift=0.25)
    difference = export_onnx(fitted, file)
    logit, probability = run(file, [[5.0, 1.0], [1.0, -1.0], [1.0, 3.0]])
    assert difference < 1e-6
    assert logit == pytest.approx([-0.25, 0.75, -5.25], abs=1e-6)
    assert probability == pytest.approx(1 / (1 + np.exp([0.25, -0.75, 5.25])), abs=1e-6)
    export_onnx(replace(fitted, sign=-1), file)
    assert run(file, [[5.0, 1.0], [1.0, -1.0]])[0] == pytest.approx([0.75, -0.25], abs=1e-6)


IMAGES = nn.Sequential(
    nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 1)
)


@pytest.mark.parametrize(
    ("module", "shape"), [(MLP(5, (8, 8), norm="all").double(), (5,)), (IMAGES, (3, 8, 8))]
)
def test_the_graph_is_named_and_free_in_its_batch(
    module: nn.Module, shape: tuple[int, ...], tmp_path: Path
) -> None:
    file, module = tmp_path / "deep" / "model.onnx", module.train()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    mean, scale = (np.full((shape[0], *(1,) * (len(shape) - 1)), v) for v in (0.5, 0.25))
    assert export_onnx(learnt(module, shape, mean, scale), str(file)) < 1e-4
    graph = onnx.load(file).graph
    (x,) = graph.input
    assert x.name == "x" and [one.name for one in graph.output] == ["logit", "probability"]
    batch, *sizes = x.type.tensor_type.shape.dim
    assert batch.dim_param and tuple(size.dim_value for size in sizes) == shape
    after = module.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    values = torch.rand(100, *shape)
    ready = ((values - 0.5) / 0.25).to(next(module.parameters()).dtype)
    with torch.no_grad():
        wanted = module.eval()(ready).flatten().numpy()
    assert run(file, values)[0] == pytest.approx(wanted, abs=1e-4)
    assert list(file.parent.iterdir()) == [file]


class Branch(nn.Module):
    """Takes a decision that tracing cannot see."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0] * (1.0 if len(x) < 30 else -1.0)


def test_a_file_that_disagrees_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("the old one")
    with (
        pytest.warns(torch.jit.TracerWarning),
        pytest.raises(RuntimeError, match=r"differs from torch by .* a branch on its data"),
    ):
        export_onnx(learnt(Branch(), (2,)), tmp_path / "model.onnx")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["the old one"]


def test_without_onnx_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(
        ImportError, match=r"needs onnxruntime: in a clone of pairlearn, pip install"
    ):
        export_onnx(learnt(nn.Linear(2, 1), (2,)), tmp_path / "model.onnx")
