"""Export of a trained network as an ONNX file, to run without torch.

The graph takes raw features ``x``, standardises them, runs the network and shifts the log-odds to
the target prior:

    logit = sign · g((x − mean)/scale) + shift,    probability = σ(logit)

The file is checked by running it: onnxruntime and torch must agree.

If columns are not plain numbers, the graph has one input of n values for each column. Numbers, and
yes and no as 1 and 0, are float32 with NaN for a gap; dates are float64, days since 1970-01-01, as
ONNX has no dates; categories and texts are strings, "" for a gap. Texts are cut into words by the
operator ``com.microsoft.Tokenizer``, which every onnxruntime has and others may not. Images are
float32 (n, 3, 32, 32), from 0 to 1, resized by the caller.
"""

from __future__ import annotations

import copy
import itertools
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
from pairlearn.extras import missing_extra
from pairlearn.io.cells import PIXELS
from pairlearn.io.encoder import PERIODS, Column, ItemEncoder

TOLERANCE = 1e-4
BATCHES = (1, 2, 33)
"""Batch sizes of the check: a graph that is fixed to one of them fails at another."""


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
        # In double precision, as in training: features may be large and differ little.
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
    path, example_shape : str or Path, sequence of int
        The file, written whole or not at all, and the shape of one instance.
    standardisation : (mean, scale), optional
        Two arrays that broadcast to an instance.
    shift, sign : float
        Logits become sign · z + shift; the sign is negative where the classes are exchanged.
    encoder : ItemEncoder, optional
        Makes the features of columns: the graph then has an input for each column in place of
        ``x``, as described in `pairlearn.estimators.onnx_export`.

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
        import onnxruntime  # noqa: F401  (needed by the check at the end)
    except ImportError as error:
        raise missing_extra("onnx", str(error.name), "ONNX") from None
    shape = tuple(int(size) for size in example_shape)
    if not shape or min(shape) < 1:
        raise ValueError(
            f"example_shape must be positive sizes of one instance; got {example_shape!r}"
        )
    scored = _make_scored(module, shape, standardisation, shift, sign)
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


def _make_scored(
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
        array = np.asarray(values, dtype=np.float64)
        try:
            numbers.append(torch.tensor(np.broadcast_to(array, shape)))
        except ValueError:
            raise ValueError(
                f"standardisation {name} has shape {array.shape}, which does not broadcast to an "
                f"instance of shape {shape}"
            ) from None
        if not np.isfinite(array).all() or (name == "scale" and not array.all()):
            raise ValueError(f"standardisation {name} must be finite, and scale not 0")
    plain = copy.deepcopy(module).cpu().float()
    return _Scored(plain, float(sign), float(shift), *numbers).eval()


def _trace(scored: _Scored, shape: tuple[int, ...], file: Path) -> None:
    names = ["logit", "probability"]
    with warnings.catch_warnings(), torch.no_grad():
        # The newer exporter takes ten times as long for the same graph and logs about packages
        # that are not needed; torch warns that the older one is deprecated.
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
        columns = encoder.columns if encoder else ()
        texts = ", ".join(repr(column.name) for column in columns if column.kind == "text")
        cause = f", because of the text {texts}: fit without it" * bool(texts)
        raise RuntimeError(f"onnxruntime cannot run the graph{cause} ({error!s:.200})") from None
    rng = torch.Generator().manual_seed(0)
    largest = 0.0
    for size in BATCHES:
        x = (scored.mean + 2 * scored.scale * torch.randn(size, *shape, generator=rng)).float()
        inputs: dict[str, Any] = {"x": x.numpy()}
        if encoder is not None:
            inputs = random_values(encoder, size, seed=size)
            x = torch.as_tensor(encoder.encode(inputs))
        with torch.no_grad():
            expected = [output.numpy() for output in scored(x)]
        for wanted, output in zip(expected, session.run(None, inputs), strict=True):
            if wanted.shape != (size,) or output.shape != wanted.shape:
                raise RuntimeError(
                    f"{size} instances give logits of shape {wanted.shape} in torch and "
                    f"{output.shape} in the exported file: the module must map (n, ...) to (n,)"
                )
            relative = abs(wanted - output) / np.maximum(1, abs(wanted))
            largest = max(largest, float(relative.max()))
    return largest


FEATURES = "features of columns"
TOKEN = r"[\p{L}\p{N}_]{2,}"
"""Words as in scikit-learn, in the notation of RE2."""
LOCALE = "C.UTF-8"
"""Locale of the conversion to lower case; a system without it cannot run the graph."""


class _Graph:
    """Nodes and constants, with names that no column has."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = itertools.count()

    def add(self, kind: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output; inputs that are arrays are constants."""
        from onnx import helper

        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        output = self._name()
        self.nodes.append(helper.make_node(kind, names, [output], domain=domain, **attributes))
        return output

    def _constant(self, value: Any) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.asarray(value), self._name()))
        return str(self.constants[-1].name)

    def _name(self) -> str:
        return f"/{next(self._count)}/"


def with_columns(network: Any, encoder: ItemEncoder) -> Any:
    """Make an ONNX model of columns from one of features ``x``."""
    from onnx import TensorProto, compose, helper

    outputs = {output.name for output in network.graph.output}
    for name in outputs.intersection(encoder.names):
        raise ValueError(f"column {name!r} has the name of an output of the graph: rename it")
    graph = _Graph()
    parts = [part for column in encoder.columns for part in _encode(graph, column)]
    graph.add("Concat", *parts, axis=1)
    graph.nodes[-1].output[0] = FEATURES
    types = {"date": TensorProto.DOUBLE} | dict.fromkeys(("category", "text"), TensorProto.STRING)
    inputs = [
        helper.make_tensor_value_info(
            column.name,
            types.get(column.kind, TensorProto.FLOAT),
            ["batch", *(PIXELS if column.kind == "image" else ())],
        )
        for column in encoder.columns
    ]
    features = helper.make_tensor_value_info(
        FEATURES, TensorProto.FLOAT, ("batch", len(encoder.outputs))
    )
    columns = helper.make_graph(graph.nodes, "columns", inputs, [features], graph.constants)
    versions = [(opset.domain, opset.version) for opset in network.opset_import]
    versions += [("ai.onnx.ml", 2), ("com.microsoft", 1)]
    first = helper.make_model(
        columns,
        opset_imports=[helper.make_opsetid(*version) for version in versions],
        ir_version=network.ir_version,
    )
    second = compose.add_prefix(network, "network/", rename_outputs=False)
    return compose.merge_models(first, second, io_map=[(FEATURES, "network/x")])


def _encode(graph: _Graph, column: Column) -> list[str]:
    """Add the encoding of a column; names of its features, in parts (n, k)."""
    if column.kind == "image":
        return [graph.add("Flatten", column.name)]
    if column.kind == "category":
        return [_encode_category(graph, column)]
    if column.kind == "text":
        return [_encode_text(graph, column)]
    return _encode_number(graph, column)


def _encode_category(graph: _Graph, column: Column) -> str:
    count = len(column.words)
    code = graph.add(
        "LabelEncoder",
        column.name,
        domain="ai.onnx.ml",
        keys_strings=column.words,
        values_int64s=range(count),
        default_int64=count,
    )
    hot = graph.add("OneHot", code, np.array(count + 1), np.array([0, 1], np.float32))
    return hot if column.other else graph.add("Gather", hot, np.arange(count), axis=1)


def _encode_text(graph: _Graph, column: Column) -> str:
    """TF-IDF with sublinear counts, normed to length one."""
    add = graph.add
    lower = add("StringNormalizer", column.name, case_change_action="LOWER", locale=LOCALE)
    options: Any = {"domain": "com.microsoft", "mark": 0, "pad_value": "", "mincharnum": 1}
    words = add("Tokenizer", lower, tokenexp=TOKEN, **options)
    counts = add(
        "TfIdfVectorizer",
        words,
        mode="TF",
        min_gram_length=1,
        max_gram_length=1,
        max_skip_count=0,
        ngram_counts=[0],
        ngram_indexes=range(len(column.words)),
        pool_strings=column.words,
    )
    one = np.array(1, np.float32)
    damped = add("Add", add("Log", add("Max", counts, one)), add("Min", counts, one))
    weighted = add("Mul", damped, np.array(column.weights, np.float32))
    length = add("Sqrt", add("ReduceSum", add("Mul", weighted, weighted), np.array([1])))
    return add("Div", weighted, add("Max", length, np.array(1e-12, np.float32)))


def _encode_number(graph: _Graph, column: Column) -> list[str]:
    """A number, date or yes and no: its value, sine and cosine of its periods, and its gaps."""
    from onnx import TensorProto

    add, value, gaps = graph.add, column.name, []
    if column.fill is not None:
        gaps = [add("IsNaN", value)]
        value = add("Where", *gaps, np.array(column.fill, _dtype(column)), value)
    parts = [value]
    for period in column.periods:
        turns = add("Div", value, np.array(PERIODS[period]))
        part = add("Sub", turns, add("Floor", turns))
        angle = add("Cast", add("Mul", part, np.array(2 * np.pi)), to=TensorProto.FLOAT)
        parts += [add("Sin", angle), add("Cos", angle)]
    floats = [add("Cast", part, to=TensorProto.FLOAT) for part in parts + gaps]
    return [add("Unsqueeze", part, np.array([1])) for part in floats]


def _dtype(column: Column) -> Any:
    return np.float64 if column.kind == "date" else np.float32


def random_values(encoder: ItemEncoder, size: int, seed: int) -> dict[str, NDArray[Any]]:
    """Random values like those that an encoder was fitted to, with gaps and new words."""
    rng = np.random.default_rng(seed)
    return {column.name: _random_column(column, size, rng) for column in encoder.columns}


def _random_column(column: Column, size: int, rng: np.random.Generator) -> NDArray[Any]:
    if column.kind == "image":
        return rng.random((size, *PIXELS), np.float32)
    if column.kind in ("category", "text"):
        counts = np.ones(size, int) if column.kind == "category" else rng.integers(0, 20, size)
        cells = [rng.choice([*column.words, "Unknown"], count).tolist() for count in counts]
        texts = ["; ".join(word.upper() if k % 3 == 1 else word for k, word in enumerate(cell))
                 for cell in cells]  # fmt: skip
        return np.array(texts, dtype=object)
    if column.kind == "boolean":
        values: NDArray[Any] = rng.integers(0, 2, size)
    elif column.kind == "date":
        values = rng.uniform(0, 20_000, size) if column.times else rng.integers(0, 20_000, size)
    else:
        values = rng.normal(column.fill or 0, 1 + abs(column.fill or 0), size)
    gaps = rng.random(size) < (0 if column.fill is None else 0.3)
    return np.where(gaps, np.nan, values).astype(_dtype(column))
