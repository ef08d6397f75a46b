"""An `ItemEncoder` as an ONNX graph: one input for each column, of n values.

Numbers, and yes and no as 1 and 0, are float32 with NaN for a gap; dates are float64, days since
1970-01-01, as ONNX knows no dates; categories and texts are strings, "" for a gap. Texts are cut
into words by the operator ``com.microsoft.Tokenizer``, which every onnxruntime has and others
may not. Images are float32 (n, 3, 32, 32), from 0 to 1: making them that small is left to the
caller.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.tables.cells import PIXELS
from pairlearn.tables.encoder import PERIODS, Column, ItemEncoder

FEATURES = "features of columns"
TOKEN = r"[\p{L}\p{N}_]{2,}"
"""Words as scikit-learn has them, in the notation of RE2."""
LOCALE = "C.UTF-8"
"""In which text becomes lower case; a system without it cannot run the graph."""


class _Graph:
    """Nodes and constants, with names that no column has."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = itertools.count()

    def add(self, kind: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """The output of a node; inputs are names, and arrays are constants."""
        from onnx import helper, numpy_helper

        names = []
        for one in inputs:
            if not isinstance(one, str):
                self.constants.append(numpy_helper.from_array(np.asarray(one), self._name()))
                one = self.constants[-1].name
            names.append(one)
        output = self._name()
        self.nodes.append(helper.make_node(kind, names, [output], domain=domain, **attributes))
        return output

    def _name(self) -> str:
        return f"/{next(self._count)}/"


def with_columns(network: Any, encoder: ItemEncoder) -> Any:
    """An ONNX model of features ``x`` as one of columns."""
    from onnx import TensorProto, compose, helper

    taken = {output.name for output in network.graph.output}
    for name in taken.intersection(encoder.names):
        raise ValueError(f"column {name!r} has the name of an output of the graph: rename it")
    graph = _Graph()
    parts = [part for column in encoder.columns for part in _encoded(graph, column)]
    graph.add("Concat", *parts, axis=1)
    graph.nodes[-1].output[0] = FEATURES
    types = {"date": TensorProto.DOUBLE} | dict.fromkeys(("category", "text"), TensorProto.STRING)
    columns = helper.make_graph(
        graph.nodes,
        "columns",
        [
            helper.make_tensor_value_info(
                one.name,
                types.get(one.kind, TensorProto.FLOAT),
                ["batch", *(PIXELS if one.kind == "image" else ())],
            )
            for one in encoder.columns
        ],
        [
            helper.make_tensor_value_info(
                FEATURES, TensorProto.FLOAT, ["batch", len(encoder.outputs)]
            )
        ],
        graph.constants,
    )
    versions = [(one.domain, one.version) for one in network.opset_import]
    versions += [("ai.onnx.ml", 2), ("com.microsoft", 1)]
    first = helper.make_model(
        columns,
        opset_imports=[helper.make_opsetid(*one) for one in versions],
        ir_version=network.ir_version,
    )
    second = compose.add_prefix(network, "network/", rename_outputs=False)
    return compose.merge_models(first, second, io_map=[(FEATURES, "network/x")])


def _encoded(graph: _Graph, column: Column) -> list[str]:
    """The features of a column, in parts (n, k)."""
    from onnx import TensorProto

    add = graph.add

    def upright(vector: str) -> str:
        return add("Unsqueeze", add("Cast", vector, to=TensorProto.FLOAT), np.array([1]))

    if column.kind == "image":
        return [add("Flatten", column.name)]
    if column.kind == "category":
        count = len(column.words)
        code = add(
            "LabelEncoder",
            column.name,
            domain="ai.onnx.ml",
            keys_strings=column.words,
            values_int64s=range(count),
            default_int64=count,
        )
        hot = add("OneHot", code, np.array(count + 1), np.array([0, 1], np.float32))
        return [hot if column.other else add("Gather", hot, np.arange(count), axis=1)]
    if column.kind == "text":
        low = add("StringNormalizer", column.name, case_change_action="LOWER", locale=LOCALE)
        words = add(
            "Tokenizer",
            low,
            domain="com.microsoft",
            mark=0,
            pad_value="",
            mincharnum=1,
            tokenexp=TOKEN,
        )
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
        weighed = add("Mul", damped, np.array(column.weights, np.float32))
        length = add("Sqrt", add("ReduceSum", add("Mul", weighed, weighed), np.array([1])))
        return [add("Div", weighed, add("Max", length, np.array(1e-12, np.float32)))]
    known, gap = column.name, None
    if column.fill is not None:
        gap = add("IsNaN", known)
        dtype = np.float64 if column.kind == "date" else np.float32
        known = add("Where", gap, np.array(column.fill, dtype), known)
    parts = [known]
    for period in column.periods:
        turns = add("Div", known, np.array(PERIODS[period]))
        part = add("Sub", turns, add("Floor", turns))
        angle = add("Cast", add("Mul", part, np.array(2 * np.pi)), to=TensorProto.FLOAT)
        parts += [add("Sin", angle), add("Cos", angle)]
    return [upright(part) for part in (parts if gap is None else [*parts, gap])]


def random_values(encoder: ItemEncoder, size: int, seed: int) -> dict[str, NDArray[Any]]:
    """Values of columns like those that an encoder was fitted to, gaps and new words included."""
    rng = np.random.default_rng(seed)
    found: dict[str, NDArray[Any]] = {}
    for one in encoder.columns:
        if one.kind == "image":
            found[one.name] = rng.random((size, *PIXELS), np.float32)
            continue
        if one.kind in ("category", "text"):
            words = [*one.words, "Unknown"]
            counts = np.ones(size, int) if one.kind == "category" else rng.integers(0, 20, size)
            cells = [rng.choice(words, count).tolist() for count in counts]
            texts = ["; ".join(word.upper() if k % 3 == 1 else word for k, word in enumerate(cell))
                     for cell in cells]  # fmt: skip
            found[one.name] = np.array(texts, dtype=object)
            continue
        values: NDArray[Any] = rng.normal(one.fill or 0, 1 + abs(one.fill or 0), size)
        if one.kind == "date":
            values = rng.uniform(0, 20_000, size) if one.times else rng.integers(0, 20_000, size)
        elif one.kind == "boolean":
            values = rng.integers(0, 2, size)
        gaps = rng.random(size) < (0 if one.fill is None else 0.3)
        dtype = np.float64 if one.kind == "date" else np.float32
        found[one.name] = np.where(gaps, np.nan, values).astype(dtype)
    return found
