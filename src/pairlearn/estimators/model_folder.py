"""Fitted models as folders; `folder_format` describes the files.

The JSON part is one `Model` with the sections below, whose names and types are the format: what the
classes of pairlearn call their attributes may change. Tensors are ``mean``, ``scale``,
``training_items``, ``held_items``, ``held_log_odds``, and the network's state as ``network.NAME``.

A scikit-learn model is refused: only pickle keeps its state, and unpickling executes code. Keep
such a model with ``skops``, or keep the table of pairs and fit again.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from pairlearn.annotators import Annotator, Annotators
from pairlearn.estimators.fitted import Fitted
from pairlearn.estimators.folder_format import ModelFolderError, read_folder, write_folder
from pairlearn.estimators.parameters import TrainingOptions
from pairlearn.io import encoder
from pairlearn.io.cells import ColumnKind
from pairlearn.judgements.scales import Scale
from pairlearn.models import CONVOLUTIONAL, MLP
from pairlearn.risks import Risk, make_risk

ARRAYS = ("mean", "scale", "training_items", "held_items", "held_log_odds")


class Section(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A part of the JSON."""


class RiskOf(Section):
    """A risk that was given as an object."""

    name: str
    prior: float | None = None
    loss: str = "logistic"


class TrainingSection(Section):
    """How the network was trained."""

    batch_size: int | str
    learning_rate: float | str
    schedule: str
    weight_decay: float
    labelled_weight: float | str
    device: str
    precision: str


class Parameters(Section):
    """Parameters of the fit; None and "auto" for objects of the user."""

    risk: RiskOf | str
    prior: float | str | list[float] | dict[str, float]
    majority: Literal["positive", "negative"] | None
    target_prior: float | None
    annotator_prior: float | None
    annotators: str
    unjudged: str
    model: str
    epochs: int | str
    random_state: int | None
    verbose: int
    training: TrainingSection
    classes: int | list[bool | int | float | str] | None = None


class ColumnSection(Section):
    """What an encoder has learnt about a column."""

    name: str
    kind: ColumnKind
    fill: float | None
    words: list[str]
    weights: list[float]
    other: bool


class Instances(Section):
    """What the model takes, and which classes it tells apart."""

    shape: list[int]
    flat: bool
    classes: list[bool | int | float | str]
    names: list[str] | None
    columns: list[ColumnSection] | None


class Network(Section):
    """How to build the network; a user's own has the name of its class only."""

    kind: str
    widths: list[int] = []
    outputs: int = 1
    norm: Literal["none", "input", "all"] = "none"
    channels: int = 1
    own: str = ""


class OutputSection(Section):
    """From the network's outputs to log-odds, and their mean probability."""

    sign: Literal[-1, 1]
    slope: float
    shift: float
    prior: float | tuple[float, ...]
    order: tuple[int, ...] | None = None


class Person(Section):
    """How one annotator answers."""

    name: str
    answers: int
    guesses: float
    guesses_error: float
    borrowed: float
    leans: tuple[float, float]
    lean_errors: tuple[float, float]
    spreads: tuple[float, float]
    spread_errors: tuple[float, float]
    knowledge: float
    scale: Literal["soft", "levels", "hard"]
    levels: tuple[tuple[float, ...], tuple[float, ...]]


class Model(Section):
    """The JSON part of a model folder."""

    parameters: Parameters
    instances: Instances
    network: Network
    output: OutputSection
    annotators: list[Person]
    scales: dict[str, tuple[float, float]]
    model: str
    epoch: int
    history: list[dict[str, float]]
    unjudged: int
    trained_on: dict[str, Any] | None = None


def save_model(fitted: Fitted, path: str | Path, *, overwrite: bool = False) -> None:
    """Write what a classifier has learnt as a model folder."""
    if fitted.module is None:
        raise ModelFolderError(
            f"the model is a scikit-learn {type(fitted.estimator).__name__}, which only pickle "
            "could keep, and unpickling can execute any code. Keep it with skops.io, or keep "
            "the pairs and fit again; models 'mlp' and 'linear' and networks of your own can be "
            "saved"
        )
    tensors = {name: torch.as_tensor(getattr(fitted, name)) for name in ARRAYS}
    for place, tensor in fitted.module.state_dict().items():
        if not isinstance(tensor, Tensor):
            raise ModelFolderError(
                f"{place!r:.80} in the state of {_full_name(fitted.module)} is a "
                f"{type(tensor).__name__}, and a model folder keeps tensors only"
            )
        tensors[f"network.{place}"] = tensor
    columns, features = fitted.encoder, fitted.feature_names_in
    known = None if columns is None else [_section(ColumnSection, c) for c in columns.columns]
    given = fitted.parameters["model"]
    parameters = {**fitted.parameters, "model": given if isinstance(given, str) else "auto"}
    model = Model(
        parameters=Parameters(**parameters),
        instances=Instances(
            shape=[*fitted.instance_shape],
            flat=fitted.flat,
            classes=fitted.classes.tolist(),
            names=None if features is None else features.tolist(),
            columns=known,
        ),
        network=_describe(fitted.module),
        output=_section(OutputSection, fitted),
        annotators=[_section(Person, person) for person in fitted.annotators.people],
        scales={name: (scale.low, scale.high) for name, scale in fitted.scales.items()},
        model=fitted.model if isinstance(fitted.model, str) else "own",
        epoch=fitted.n_iter,
        history=fitted.history,
        unjudged=fitted.unjudged,
        trained_on=None if fitted.trained_on is None else dict(fitted.trained_on),
    )
    try:
        config = msgspec.to_builtins(model, enc_hook=_plain, str_keys=True)
    except TypeError as error:
        raise ModelFolderError(f"a model folder cannot keep it: {error!s:.200}") from None
    write_folder(path, tensors, config, overwrite=overwrite)


def load_model(path: str | Path, module: nn.Module | None = None) -> Fitted:
    """Read what `save_model` wrote.

    For a user's own network, ``module`` is an instance of its class; it is copied.
    """
    if module is not None and not isinstance(module, nn.Module):
        raise TypeError(
            f"module must be an instance of nn.Module, such as MyNet(); got {module!r:.60}"
        )
    tensors, config = read_folder(path)
    try:
        model = msgspec.convert(config, Model)
        return _fitted(model, tensors, module)
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(f"{path}: {error!s:.400}") from None


def _fitted(model: Model, tensors: dict[str, Tensor], module: nn.Module | None) -> Fitted:
    """The value that a folder holds."""
    known, output = model.instances, model.output
    arrays = {name: _array(tensors, name) for name in ARRAYS}
    state = {
        name.removeprefix("network."): tensors.pop(name)
        for name in [*tensors]
        if name.startswith("network.")
    }
    for name in tensors:
        raise ValueError(f"tensor {name!r:.80} belongs to no part of the model")
    columns = known.columns and tuple(
        encoder.ItemColumn(**_fields(one) | {"words": (*one.words,), "weights": (*one.weights,)})
        for one in known.columns
    )
    count = 2 if output.order is None else len(output.order)
    if len(known.classes) != count or (output.order and {*output.order} != {*range(count)}):
        raise ValueError(f"there are {count} classes; got {known.classes!r:.80}")
    network = _build(model.network, state, module)
    parameters = _fields(model.parameters) | {
        "training": TrainingOptions(**_fields(model.parameters.training)),
    }
    risk = model.parameters.risk
    if isinstance(risk, RiskOf):
        parameters["risk"] = make_risk(risk.name, risk.prior, risk.loss)
    if model.network.own:
        parameters["model"] = module
    return Fitted(
        **_fields(output),
        **arrays,
        module=network,
        model=module if model.network.own else model.model,
        parameters=parameters,
        classes=np.asarray(known.classes),
        instance_shape=tuple(known.shape),
        flat=known.flat,
        feature_names_in=None if known.names is None else np.array(known.names, object),
        encoder=encoder.ItemEncoder(columns) if columns else None,
        annotators=Annotators(tuple(Annotator(**_fields(one)) for one in model.annotators)),
        scales={name: Scale.of(ends) for name, ends in model.scales.items()},
        n_iter=model.epoch,
        history=model.history,
        unjudged=model.unjudged,
        trained_on=model.trained_on,
    )


def _section(section: Any, value: Any) -> Any:
    """A section with the attributes of these names."""
    return section(**{name: getattr(value, name) for name in section.__struct_fields__})


def _fields(section: Section) -> dict[str, Any]:
    return msgspec.structs.asdict(section)


def _plain(value: Any) -> Any:
    """What JSON holds of an object; None for a state of random numbers."""
    match value:
        case np.generic() | np.ndarray():
            return value.tolist()
        case Risk():
            loss = getattr(value.loss, "name", "logistic") if value.needs_prior else "logistic"
            return {"name": str(value), "prior": value.prior, "loss": loss}
        case TrainingOptions():
            return value.get_params()
        case np.random.RandomState():
            return None
    raise TypeError(f"{_full_name(value)} is not JSON")


def _describe(network: nn.Module) -> Network:
    # Exact types: a subclass may compute something else.
    if type(network) is MLP:
        widths, outputs = [*network.widths], network.outputs
        return Network(kind="mlp", widths=widths, norm=network.norm, outputs=outputs)
    for kind, network_type in CONVOLUTIONAL.items():
        if type(network) is network_type:
            channels = network.stem.in_channels
            return Network(kind=kind, channels=channels, outputs=network.outputs)
    return Network(kind="module", own=_full_name(network))


def _build(wanted: Network, state: dict[str, Tensor], module: nn.Module | None) -> nn.Module:
    """Build a network with this state, allocating no other tensors."""
    if wanted.kind == "module":
        if module is None:
            raise ValueError(
                f"network is a module of your own, {wanted.own:.200}, whose code is not in the "
                "folder: pass an instance, PairClassifier.load(path, "
                f"module={wanted.own.rsplit('.', 1)[-1]:.200}(...))"
            )
        network = copy.deepcopy(module)
    elif module is not None:
        raise ValueError(f"network is a built-in {wanted.kind!r:.80}: leave module out")
    else:
        network = _build_known(wanted, len(state))
    if {tensor.dtype for tensor in state.values() if tensor.is_floating_point()} == {torch.float64}:
        network = network.double()
    expected = network.state_dict()
    for name in sorted(set(state) | set(expected)):
        has, wants = (_kind_of(tensors.get(name)) for tensors in (state, expected))
        if has != wants:
            raise ValueError(f"the tensor {name!r:.80} is {has}, and the network wants {wants}")
    network.load_state_dict(state, assign=True)
    return network.eval()


def _build_known(wanted: Network, layers: int) -> nn.Module:
    # Up to 2**30 the bytes of a layer can still be counted in 64 bits; each layer has tensors.
    sizes = (*wanted.widths, wanted.outputs, wanted.channels)
    if all(0 < size <= 2**30 for size in sizes) and len(wanted.widths) <= layers:
        with torch.device("meta"):
            if wanted.kind == "mlp" and wanted.widths:
                return MLP(wanted.widths[0], wanted.widths[1:], wanted.norm, wanted.outputs)
            if wanted.kind in CONVOLUTIONAL:
                return CONVOLUTIONAL[wanted.kind](wanted.channels, wanted.outputs)
    raise ValueError(f"network cannot be built from {wanted!r:.200}")


def _kind_of(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else f"{tensor.dtype} {[*tensor.shape]}"


def _array(tensors: dict[str, Tensor], name: str) -> Any:
    if name not in tensors or tensors[name].dtype is torch.bfloat16:
        raise ValueError(f"the tensor {name!r} is missing, or of a type that numpy lacks")
    return tensors.pop(name).numpy()


def _full_name(value: Any) -> str:
    kind = type(value) if not hasattr(value, "__qualname__") else value
    return f"{kind.__module__}.{kind.__qualname__}"
