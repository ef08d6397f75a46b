"""Train models on one table: risks side by side, averaged weights, the right side.

Similarities are the same with the classes exchanged. Where they say more than the rest of a
table, as at a prior far from ½, training can settle on the wrong side of what the rest says.
If exchanging the classes of a trained model lowers its objective, training goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pairlearn.columns import Floats
from pairlearn.judgements import Judgements
from pairlearn.kinds import code, kind
from pairlearn.risks import Risk
from pairlearn.training import loop
from pairlearn.training.checkpoint import Checkpoint
from pairlearn.training.fleet import Fleet, Precision
from pairlearn.training.groups import Group, Member, PairStream

WORK = 2e8
"""Operations of a step that are worth a thread: 2 ms on one core."""


@dataclass(frozen=True)
class Recipe:
    """How to train: everything but the data and the risk."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    patience: int
    device: str = "auto"
    precision: Precision = "float32"
    seed: int = 0
    schedule: str = "constant"


@dataclass(frozen=True)
class Trained:
    """A trained module, the epoch it is of, and the record of all epochs.

    ``sign`` is −1 where the module's outputs are the log-odds of the negative class, ``slope`` the
    best of the `slopes` for the rows that were held out. ``outputs`` are those for all instances,
    if they had to be computed.
    """

    module: nn.Module
    epoch: int
    history: loop.History
    sign: int = 1
    slope: float = 1.0
    outputs: Floats | None = None


def train(
    features: Any,
    rows: Judgements,
    risks: Sequence[Risk],
    model: str | nn.Module,
    recipe: Recipe,
    *,
    source: PairStream | None = None,
    held_out: Judgements | None = None,
    slopes: Sequence[float] = (1.0,),
    earliest: float = 0.0,
    held_prior: float | None = None,
    guiding_prior: float | None = None,
    callbacks: Sequence[loop.Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> list[Trained]:
    """Train one model for each risk, on the same rows, batches and initial weights.

    Parameters
    ----------
    features : array of shape (N, ...)
    rows : Judgements
        What to learn from, packed; with a `source` a sample of it, with one row of every
        kind at least, by which the sides are compared.
    risks, model, recipe
        A module of one's own trains with one risk.
    source : PairStream, optional
        Rows that do not fit into memory.
    held_out, slopes, earliest
        Rows to stop by, for one risk; see `EarlyStopping`.
    held_prior, guiding_prior : float, optional
        As in `Member`; risks with a prior of their own are not guided.
    callbacks, checkpoint : optional
        As in `run_epochs`, beside those that `recipe` asks for.
    """
    risks, readings = zip(*(bind_risk(risk, rows) for risk in risks), strict=True)
    rows = readings[0]
    held_out = held_out and bind_risk(risks[0], held_out)[1]
    if rows.joint.any() and source is not None:
        joint = ", ".join(rows[rows.joint].kinds())
        raise ValueError(f"rows of kind {joint} need all rows in memory: fit without a stream")
    if held_out is not None and held_out.joint.any():  # whose targets follow from training
        held_out = held_out[~held_out.joint] if not held_out.joint.all() else None
    names = rows.kinds()
    uniform = len(names) == 1 and bool((rows.weight == rows.weight[0]).all())
    members = [
        Member(
            risk,
            reading.values if source is None else None,
            recipe.learning_rate,
            recipe.weight_decay,
            recipe.seed,
            held_prior=held_prior,
            guiding_prior=guiding_prior
            if is_guided(recipe.epochs) and not risk.needs_prior
            else None,
        )
        for risk, reading in zip(risks, readings, strict=True)
    ]
    group = Group(
        rows.ends if source is None else source,
        members,
        recipe.seed,
        kinds=names,
        columns=() if uniform or source is not None else rows.weight_columns(names),
    )
    fleet = Fleet(
        features,
        [group],
        model,
        batch_size=recipe.batch_size,
        device=recipe.device,
        precision=recipe.precision,
        compiled=False,  # compiling takes longer than most trainings of one table
    )
    first = _epochs(fleet, recipe, held_out, (slopes, earliest), callbacks, checkpoint)
    gains, first = _gains_when_exchanged(fleet, features, rows[~rows.joint], first)
    mirrored = [
        member
        for member, gain in enumerate(gains)
        if gain > 0 and _can_tell_sides(names, risks[member])
    ]
    if not mirrored:
        return first
    # All go on, so that one step serves them; those on the right side are taken as they were.
    signs = torch.ones(1, len(risks), 1)
    signs[0, mirrored] = -1
    fleet.objective.signs = signs.to(fleet.device, fleet.dtype)
    fleet.begin_again()
    later = checkpoint and checkpoint.after()
    second = _epochs(fleet, recipe, held_out, (slopes, earliest), callbacks, later)
    found = list(first)
    for member in mirrored:
        done = len(first[member].history)
        after = [row | {"epoch": row["epoch"] + done} for row in second[member].history]
        found[member] = replace(
            second[member],
            epoch=second[member].epoch + done,
            history=first[member].history + after,
            sign=-1,
        )
    return found


def bind_risk(risk: Risk, rows: Judgements) -> tuple[Risk, Judgements]:
    """A risk that was told a table, and its rows as the risk reads them.

    Most risks read every kind of row as it is. Those of `pairlearn.risks.SIBLINGS` read some
    kinds only, each row as the populations that its items are from.
    """
    if not risk.kinds:
        return risk, rows
    others = [name for name in rows.kinds() if name not in risk.kinds]
    if others:
        raise ValueError(
            f"risk {str(risk)!r} reads {' and '.join(risk.kinds)}, and the table has "
            f"{' and '.join(others)} too: leave those rows out, or use risk='likelihood', which "
            "reads every kind"
        )
    prior: Any = risk.prior if risk.needs_prior else np.nan
    values = np.empty_like(rows.values)
    for name in rows.kinds():
        mask = rows.of(name)
        u, v = kind(name).reading(rows.u[mask], rows.v[mask], prior)
        values[mask] = np.stack([u, v], 1)
    read = replace(rows, kind=np.full(len(rows), code("both"), np.int8), values=values)
    return risk.over(values[:, 0], values[:, 1], rows.weight), read


def is_guided(epochs: int) -> bool:
    """Whether a training is long enough to be drawn to a guiding prior first."""
    return epochs * loop.GUIDED >= 2


def _can_tell_sides(names: Sequence[str], risk: Risk) -> bool:
    """Whether a table tells the sides apart, and training may yet have missed the right one.

    Similarities alone cannot tell them, and where every row is read with a class prior, that
    does. Labels have no other side that training could settle on.
    """
    if all(kind(name).single for name in names):
        return False
    if "side" not in frozenset().union(*(kind(name).fixes(False) for name in names)):
        return False
    return not (risk.needs_prior and len(names) == 1)


def _gains_when_exchanged(
    fleet: Fleet, features: Any, rows: Judgements, models: list[Trained]
) -> tuple[list[float], list[Trained]]:
    """How much less each model's objective is with the classes exchanged; models with outputs."""
    if not len(rows):
        return [], models
    instances, ends = np.unique(rows.ends, return_inverse=True)
    chosen = np.asarray(features[instances])
    outputs = np.stack([module_logits(one.module, chosen) for one in models])
    z = torch.from_numpy(outputs[:, ends.reshape(-1, 2)]).to(fleet.device, fleet.dtype)
    gain = fleet.objective.of(rows, *z.unbind(-1)) - fleet.objective.of(rows, *(-z).unbind(-1))
    if len(instances) == len(features):
        models = [replace(one, outputs=z) for one, z in zip(models, outputs, strict=True)]
    return [fleet.ranks.agree(one, fleet.device) for one in gain.tolist()], models


def _epochs(
    fleet: Fleet,
    recipe: Recipe,
    held_out: Judgements | None,
    choosing: tuple[Sequence[float], float],
    more: Sequence[loop.Callback],
    checkpoint: Checkpoint | None,
) -> list[Trained]:
    average = loop.Average()
    if held_out is not None:
        average = loop.EarlyStopping(held_out, recipe.patience, *choosing)
    callbacks: list[loop.Callback] = [loop.Cosine()] if recipe.schedule == "cosine" else []
    callbacks += [average, *more]
    work = ""
    if checkpoint is not None:
        held = held_out and (held_out.ends, held_out.kind, held_out.values, held_out.weight)
        work = fleet.fingerprint(recipe, fleet.features.cpu().numpy(), *(held or ()))
    with at_most_threads(_useful_threads(fleet)):
        history = loop.run_epochs(fleet, recipe.epochs, callbacks, checkpoint=checkpoint, work=work)
    # Without a best epoch (none was looked for, or every risk was NaN) the last one.
    fleet.network.load_state_dict(average.best or average.weights)
    epoch = average.best_epoch or fleet.epoch
    return [
        Trained(fleet.module(0, m), epoch, list(history), slope=average.best_slope)
        for m in range(len(fleet.groups[0].members))
    ]


@contextmanager
def at_most_threads(count: int) -> Iterator[None]:
    """No more threads than this: others only wait, long on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, count))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _useful_threads(fleet: Fleet) -> int:
    """How many threads a step has work for."""
    if fleet.features.ndim != 2:
        return torch.get_num_threads()
    weights = sum(one.numel() for one in fleet.network.parameters())
    return 1 + int(6 * 2 * fleet.batch_size * weights / WORK)


def module_logits(module: nn.Module, features: NDArray[np.float32]) -> Floats:
    """Outputs of a module for instances, a chunk at a time, in float64."""
    parameter = next(module.parameters(), torch.zeros(()))
    rows = 8192 if parameter.is_cuda else 1024  # activations of more leave the cache of a CPU
    parts = []
    trying = torch.backends.cudnn.benchmark
    # Trying algorithms on batches as large as these takes many times what the best one saves.
    torch.backends.cudnn.benchmark = False
    with torch.inference_mode():
        for start in range(0, len(features), rows):
            x = torch.from_numpy(features[start : start + rows]).to(parameter)
            parts.append(module(x).reshape(len(x)).double().cpu().numpy())
    torch.backends.cudnn.benchmark = trying
    return np.concatenate(parts)
