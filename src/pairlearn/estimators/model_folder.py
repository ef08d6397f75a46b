"""Fitted estimators as model folders; `folder_format` describes the files.

Everything is kept by kind, whatever the estimator calls it:

    parameters    those of the fit
    fitted        the attributes that end in "_": numbers, text, lists, records of `RECORDS`
    tensors       arrays of numbers as ``fitted.NAME``, the network's state as ``NAME.…``
    networks      how to build each network; for a user's own module the name of its class, of
                  which loading needs an instance

A scikit-learn model inside is refused: only pickle keeps its state, and unpickling executes code.
Keep such a model with ``skops``, or keep the table of pairs and fit again.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from pairlearn.annotators import Annotator, Annotators
from pairlearn.estimators.completion import CompletionRound
from pairlearn.estimators.folder_format import (
    ModelFolderError,
    check_tensors,
    kind_of,
    read_folder,
    write_folder,
)
from pairlearn.estimators.parameters import kept_parameters
from pairlearn.evaluation import Confidence
from pairlearn.io.encoder import Column, ItemEncoder
from pairlearn.models import CONVOLUTIONAL, MLP
from pairlearn.prior import PriorEstimate

RECORDS: dict[str, Any] = {
    record.__name__: record
    for record in (
        Annotator,
        Annotators,
        Column,
        CompletionRound,
        Confidence,
        ItemEncoder,
        PriorEstimate,
    )
}
TYPES: dict[str, type] = {"text": str, "object": object}
OBJECTS = ("preprocessor", "callbacks", "features")
"""Parameters that are never in a folder."""
DEEPEST = 1000  # layers: building more takes long and then fails


class Saved(msgspec.Struct):
    """The JSON part of a saved estimator."""

    estimator: str
    parameters: dict[str, Any]
    fitted: dict[str, Any]
    networks: dict[str, Any]


def save_classifier(estimator: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted estimator, one of whose attributes is its network, as a model folder."""
    name = type(estimator).__name__
    fitted, networks = {}, {}
    tensors: dict[str, Tensor] = {}
    for key, value in vars(estimator).items():
        if not key.endswith("_") or key.startswith("_"):
            continue
        if key == "features_":
            warnings.warn(
                f"features is {_full_name(value)}, which a model folder cannot keep: keep it "
                f"yourself, and pass it as {name}.load(path, features=...)",
                UserWarning,
                stacklevel=3,
            )
            continue
        if isinstance(value, nn.Module):
            networks[key] = _describe(value)
            for place, tensor in value.state_dict().items():
                if not isinstance(tensor, Tensor):
                    raise ModelFolderError(
                        f"{key}: {place!r:.80} in the state of {_full_name(value)} is a "
                        f"{type(tensor).__name__}, and a model folder keeps tensors only"
                    )
                tensors[f"{key}.{place}"] = tensor
        elif isinstance(value, Tensor) or (
            isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
        ):
            tensors[f"fitted.{key}"] = torch.as_tensor(value)
        else:
            fitted[key] = _encode(value, f"{name}.{key}")
    trained_with = getattr(estimator, "_trained_with", {})  # pickles of 0.2 have none
    parameters = estimator.get_params(deep=False) | trained_with
    encoded = {key: _encode_parameter(key, value) for key, value in parameters.items()}
    saved = Saved(name, encoded, fitted, networks)
    write_folder(path, tensors, msgspec.structs.asdict(saved), overwrite=overwrite)


def load_classifier(
    cls: Any, path: str | Path, module: nn.Module | None = None, features: Any = None
) -> Any:
    """Read an estimator that `save_classifier` wrote.

    For a user's own network, ``module`` is an instance of its class; it is copied. ``features`` is
    the fitted step, if the classifier was fitted with one.
    """
    try:
        return _load(cls, path, module, features)
    except RecursionError:
        raise ModelFolderError(f"{path}: its config is nested too deeply") from None


def _load(cls: Any, path: str | Path, module: nn.Module | None, features: Any) -> Any:
    tensors, config = read_folder(path)
    try:
        saved = msgspec.convert(config, Saved)
    except msgspec.ValidationError as error:
        raise ModelFolderError(f"{path}: config: {error!s:.200}") from None
    if saved.estimator != cls.__name__:
        raise ModelFolderError(f"{path}: holds a {saved.estimator:.80}, not a {cls.__name__}")
    if module is not None and not isinstance(module, nn.Module):
        raise TypeError(
            f"module must be an instance of nn.Module, such as MyNet(); got {module!r:.60}"
        )
    if not saved.networks:
        raise ModelFolderError(f"{path}: holds no network")
    estimator = _with_parameters(cls, saved.parameters, path, module)
    match saved.parameters.get("features"):
        case {"object": name}:
            if features is None:
                raise ModelFolderError(
                    f"{path}: its features are made by {name!s:.200}, which is not in the folder: "
                    f"pass it, {cls.__name__}.load(path, features=...), fitted if it is fitted"
                )
            estimator.features = estimator.features_ = features
        case _ if features is not None:
            raise ModelFolderError(f"{path}: it was fitted without features: leave them out")
    for key, description in saved.networks.items():
        state = _pop(tensors, f"{key}.")
        network = _build(description, state, f"{path}: network {key!r:.80}", cls.__name__, module)
        setattr(estimator, _attribute(cls, key, path), network)
    for key, tensor in _pop(tensors, "fitted.").items():
        setattr(estimator, _attribute(cls, key, path), _array(tensor, f"{path}: {key}"))
    for name in tensors:
        raise ModelFolderError(f"{path}: tensor {name!r:.80} belongs to nothing")
    for key, value in saved.fitted.items():
        setattr(estimator, _attribute(cls, key, path), _decode(value, f"{path}: {key}"))
    if not isinstance(getattr(estimator, "encoder_", None), ItemEncoder | None):
        raise ModelFolderError(f"{path}: encoder_ is no ItemEncoder")
    estimator._trained_with = kept_parameters(estimator)
    return estimator


def _with_parameters(
    cls: Any, saved: dict[str, Any], path: str | Path, module: nn.Module | None
) -> Any:
    known = cls().get_params(deep=False)
    for key in sorted(set(saved) - set(known)):
        raise ModelFolderError(f"{path}: {cls.__name__} has no parameter {key!r:.80}")
    parameters = {}
    for key, value in saved.items():
        if isinstance(value, dict) and "object" in value:
            # Objects are not in the folder: a module is passed again, the others are unset.
            is_module = key == "model" and module is not None
            parameters[key] = module if is_module else known[key]
        else:
            parameters[key] = _decode(value, f"{path}: parameter {key}")
    return cls(**parameters)


def _encode_parameter(key: str, value: Any) -> Any:
    """A parameter as JSON; of objects that loading needs again, the name of the class."""
    generator = isinstance(value, np.random.RandomState | np.random.Generator)
    function = callable(value) and not hasattr(value, "get_params")
    if generator or function or (key in OBJECTS and value is not None):
        return {"object": _full_name(value)}
    return _encode(value, f"parameter {key}")


def _describe(network: nn.Module) -> dict[str, Any]:
    # Exact types: a subclass may compute something else.
    if type(network) is MLP:
        return {"kind": "mlp", "widths": list(network.widths), "norm": network.norm}
    for kind, network_type in CONVOLUTIONAL.items():
        if type(network) is network_type:
            return {"kind": kind, "channels": network.stem.in_channels}
    return {"kind": "module", "class": _full_name(network)}


def _build(
    description: Any, state: dict[str, Tensor], where: str, owner: str, module: nn.Module | None
) -> nn.Module:
    """Build a network with this state, allocating no other tensors."""
    kind = description.get("kind") if isinstance(description, dict) else None
    if kind == "module":
        wanted = str(description.get("class"))[:200]
        if module is None:
            short = wanted.rsplit(".", 1)[-1]
            raise ModelFolderError(
                f"{where} is a module of your own, {wanted}, whose code is not in the folder: "
                f"pass an instance, {owner}.load(path, module={short}(...))"
            )
        network = copy.deepcopy(module)
    elif module is not None:
        raise ModelFolderError(f"{where} is a built-in {kind!r:.80}: leave module out")
    else:
        network = _build_known(description, where)
    if {tensor.dtype for tensor in state.values() if tensor.is_floating_point()} == {torch.float64}:
        network = network.double()
    kinds = {name: kind_of(tensor) for name, tensor in network.state_dict().items()}
    check_tensors(state, kinds, where, "the network wants")
    network.load_state_dict(state, assign=True)
    return network.eval()


def _build_known(description: Any, where: str) -> nn.Module:
    error = ModelFolderError(f"{where} cannot be built from {description!r:.200}")
    with torch.device("meta"):
        match description:
            case {"kind": "mlp", "widths": [*widths], "norm": "none" | "input" | "all" as norm}:
                # Up to 2**30 the bytes of a layer can still be counted in 64 bits.
                sizes = [width for width in widths if type(width) is int and 0 < width <= 2**30]
                if not sizes or len(sizes) < len(widths) or len(sizes) > DEEPEST:
                    raise error
                return MLP(sizes[0], sizes[1:], norm)
            case {"kind": str(kind), "channels": int(channels)} if (
                kind in CONVOLUTIONAL and 0 < channels < 2**16
            ):
                return CONVOLUTIONAL[kind](channels)
    raise error


def _encode(value: Any, where: str) -> Any:
    """A value as JSON, in which small objects stand for types that JSON lacks."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or value.dtype.kind not in "UO":
            raise ModelFolderError(
                f"{where} is an array of {value.dtype} {value.shape}: a model folder keeps numbers "
                "and lists of text"
            )
        kind = "text" if value.dtype.kind == "U" else "object"
        return {"array": [_encode(item, where) for item in value.tolist()], "type": kind}
    if isinstance(value, list | tuple):
        items = [_encode(item, f"{where}[{k}]") for k, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _encode(v, f"{where}[{key!r:.80}]") for key, v in value.items()}}
    kind = type(value).__name__
    if kind in RECORDS:
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"record": kind, "fields": _encode(fields, where)["dict"]}
    if hasattr(value, "get_params"):
        raise ModelFolderError(
            f"{where} is a scikit-learn {kind}, which only pickle could keep, and unpickling "
            "executes what a file says. Keep it with skops.io, or keep the pairs and fit again; "
            "models 'mlp' and 'linear' and networks of your own can be saved"
        )
    raise ModelFolderError(f"{where} is a {_full_name(value)}, which a model folder cannot keep")


def _decode(value: Any, where: str) -> Any:
    if isinstance(value, list):
        return [_decode(item, where) for item in value]
    if not isinstance(value, dict):
        return value
    try:
        match value:
            case {"number": "inf" | "-inf" | "nan" as number}:
                return float(number)
            case {"array": [*items], "type": "text" | "object" as kind}:
                array: Any = np.array([_decode(item, where) for item in items], TYPES[kind])
                if array.ndim != 1:
                    raise ValueError("a list inside an array")
                return array
            case {"tuple": [*items]}:
                return tuple(_decode(item, where) for item in items)
            case {"dict": dict(inner)}:
                return {key: _decode(v, where) for key, v in inner.items()}
            case {"record": str(kind), "fields": dict(fields)}:
                return RECORDS[kind](**{key: _decode(v, where) for key, v in fields.items()})
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFolderError(f"{where}: {value!r:.80} is not readable: {error!s:.200}") from None
    raise ModelFolderError(f"{where}: {value!r:.80} is not readable")


def _array(tensor: Tensor, where: str) -> Any:
    try:
        return tensor.numpy()
    except TypeError:
        raise ModelFolderError(f"{where} is {tensor.dtype}, which numpy has not") from None


def _attribute(cls: Any, name: str, path: str | Path) -> str:
    """Check that a name may be set on an estimator: a fitted attribute, not a method."""
    plain = name.isidentifier() and name.endswith("_") and not name.startswith("_")
    if not plain or hasattr(cls, name):
        raise ModelFolderError(f"{path}: {name!r:.80} is not a fitted attribute of {cls.__name__}")
    return name


def _pop(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}


def _full_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
