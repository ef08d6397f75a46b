"""Train models on one table of judgements: several risks at once, with averaged weights.

Exchanging the classes does not change a similarity. Where similarities outweigh the rest of a
table, as at a prior far from ½, training can settle on the side that the rest contradicts. If
exchanging the classes of a trained model lowers its objective, training continues from there.
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
from pairlearn.judgements.kinds import code, kind
from pairlearn.risks import Risk
from pairlearn.training import loop
from pairlearn.training.checkpoint import Checkpoint
from pairlearn.training.fleet import Fleet, Precision
from pairlearn.training.groups import Group, Member, PairStream

WORK = 2e8
"""Operations of a step for which another thread pays: 2 ms on one core."""


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
    """A trained module, the epoch that its weights are from, and the history of all epochs.

    ``sign`` is −1 where the module's outputs are the log-odds of the negative class, ``slope`` the
    best of the `slopes` on the held-out rows. ``outputs`` are those for all instances, where
    training computed them.
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
        Packed rows to learn from; with a `source` a sample of it, with at least one row of every
        kind, on which the sides are compared.
    risks, model, recipe
        Your own module trains with one risk.
    source : PairStream, optional
        Rows that do not fit into memory.
    held_out, slopes, earliest
        Held-out rows for early stopping, with one risk; see `EarlyStopping`.
    held_prior, guiding_prior : float, optional
        As in `Member`; risks with their own prior are not guided.
    callbacks, checkpoint : optional
        As in `run_epochs`, in addition to the callbacks that `recipe` implies.
    """
    risks, readings = zip(*(bind_risk(risk, rows) for risk in risks), strict=True)
    rows = readings[0]
    if rows.joint.any() and source is not None:
        joint = ", ".join(rows[rows.joint].kinds())
        raise ValueError(f"rows of kind {joint} need all rows in memory: fit without a stream")
    held_out = held_out and bind_risk(risks[0], held_out)[1]
    if held_out is not None and held_out.joint.any():  # their targets depend on training
        held_out = held_out[~held_out.joint] if not held_out.joint.all() else None
    fleet = Fleet(
        features,
        [_make_group(risks, readings, recipe, source, held_prior, guiding_prior)],
        model,
        batch_size=recipe.batch_size,
        device=recipe.device,
        precision=recipe.precision,
        compiled=False,  # compiling takes longer than most trainings of one table
    )

    def run(checkpoint: Checkpoint | None) -> list[Trained]:
        average = loop.Average()
        if held_out is not None:
            average = loop.EarlyStopping(held_out, recipe.patience, slopes, earliest)
        return _run_epochs(fleet, recipe, average, callbacks, checkpoint)

    first = run(checkpoint)
    gains, first = _gains_when_exchanged(fleet, features, rows[~rows.joint], first)
    mirrored = [
        member
        for member, gain in enumerate(gains)
        if gain > 0 and _can_tell_sides(rows.kinds(), risks[member])
    ]
    if not mirrored:
        return first
    # All members continue, so that one step serves them; only the mirrored results are used.
    signs = torch.ones(1, len(risks), 1)
    signs[0, mirrored] = -1
    fleet.objective.signs = signs.to(fleet.device, fleet.dtype)
    fleet.begin_again()
    second = run(checkpoint and checkpoint.after())
    return [
        _joined(before, after) if member in mirrored else before
        for member, (before, after) in enumerate(zip(first, second, strict=True))
    ]


def _make_group(
    risks: Sequence[Risk],
    readings: Sequence[Judgements],
    recipe: Recipe,
    source: PairStream | None,
    held_prior: float | None,
    guiding_prior: float | None,
) -> Group:
    """One member for each risk, on its reading of the rows or on a stream."""
    members = [
        Member(
            risk,
            reading.values if source is None else None,
            recipe.learning_rate,
            recipe.weight_decay,
            recipe.seed,
            held_prior,
            guiding_prior if is_guided(recipe.epochs) and not risk.needs_prior else None,
        )
        for risk, reading in zip(risks, readings, strict=True)
    ]
    rows, names = readings[0], readings[0].kinds()
    uniform = len(names) == 1 and bool((rows.weight == rows.weight[0]).all())
    columns = () if uniform or source is not None else rows.weight_columns(names)
    pairs = rows.ends if source is None else source
    return Group(pairs, members, recipe.seed, kinds=names, columns=columns)


def _joined(first: Trained, second: Trained) -> Trained:
    """The result of a second training with the classes exchanged, counted on from the first."""
    done = len(first.history)
    later = [row | {"epoch": row["epoch"] + done} for row in second.history]
    return replace(second, epoch=second.epoch + done, history=first.history + later, sign=-1)


def bind_risk(risk: Risk, rows: Judgements) -> tuple[Risk, Judgements]:
    """Bind a risk to a table, and return both: the rows as the risk reads them.

    Most risks read every kind of row unchanged. Those of `pairlearn.risks.SIBLINGS` read a few
    kinds only, each row as the populations that its items come from.
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
    """Whether a training is long enough for a guiding prior in its first epochs."""
    return epochs * loop.GUIDED >= 2


def _can_tell_sides(names: Sequence[str], risk: Risk) -> bool:
    """Whether a table distinguishes the sides, and training may have settled on the wrong one.

    Similarities alone do not distinguish them; where every row is read with a class prior, the
    prior does. With labels only, there is no other side to settle on.
    """
    if all(kind(name).single for name in names):
        return False
    if "side" not in frozenset().union(*(kind(name).fixes(False) for name in names)):
        return False
    return not (risk.needs_prior and len(names) == 1)


def _gains_when_exchanged(
    fleet: Fleet, features: Any, rows: Judgements, models: list[Trained]
) -> tuple[list[float], list[Trained]]:
    """By how much exchanging the classes lowers each objective, and the models with outputs."""
    if not len(rows):
        return [], models
    instances, ends = np.unique(rows.ends, return_inverse=True)
    chosen = np.asarray(features[instances])
    outputs = np.stack([module_logits(trained.module, chosen) for trained in models])
    z = torch.from_numpy(outputs[:, ends.reshape(-1, 2)]).to(fleet.device, fleet.dtype)
    gain = fleet.objective.of(rows, *z.unbind(-1)) - fleet.objective.of(rows, *(-z).unbind(-1))
    if len(instances) == len(features):
        models = [replace(trained, outputs=z) for trained, z in zip(models, outputs, strict=True)]
    return [fleet.ranks.agree(value, fleet.device) for value in gain.tolist()], models


def _run_epochs(
    fleet: Fleet,
    recipe: Recipe,
    average: loop.Average,
    more: Sequence[loop.Callback],
    checkpoint: Checkpoint | None,
) -> list[Trained]:
    """Train a fleet of one group, and give its members the best averaged weights."""
    cosine = [loop.Cosine()] if recipe.schedule == "cosine" else []
    callbacks = [*cosine, average, *more]
    work = ""
    if checkpoint is not None:
        held = average.rows if isinstance(average, loop.EarlyStopping) else None
        arrays = held and (held.ends, held.kind, held.values, held.weight)
        work = fleet.fingerprint(recipe, fleet.features.cpu().numpy(), *(arrays or ()))
    with at_most_threads(_useful_threads(fleet)):
        history = loop.run_epochs(fleet, recipe.epochs, callbacks, checkpoint=checkpoint, work=work)
    # The last epoch where there is no best one (no early stopping, or every risk was NaN).
    fleet.network.load_state_dict(average.best or average.weights)
    epoch = average.best_epoch or fleet.epoch
    return [
        Trained(fleet.module(0, m), epoch, list(history), slope=average.best_slope)
        for m in range(len(fleet.groups[0].members))
    ]


@contextmanager
def at_most_threads(count: int) -> Iterator[None]:
    """Limit torch's threads: more than are useful only wait, long on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, count))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _useful_threads(fleet: Fleet) -> int:
    """The number of threads that a step has work for."""
    if fleet.features.ndim != 2:
        return torch.get_num_threads()
    weights = sum(p.numel() for p in fleet.network.parameters())
    return 1 + int(6 * 2 * fleet.batch_size * weights / WORK)


def module_logits(module: nn.Module, features: NDArray[np.float32]) -> Floats:
    """Outputs of a module for instances, a chunk at a time, in float64."""
    parameter = next(module.parameters(), torch.zeros(()))
    rows = 8192 if parameter.is_cuda else 1024  # activations of more do not fit a CPU's cache
    parts = []
    benchmark = torch.backends.cudnn.benchmark
    # Trying algorithms on batches as large as these costs many times what the best one saves.
    torch.backends.cudnn.benchmark = False
    with torch.inference_mode():
        for start in range(0, len(features), rows):
            x = torch.from_numpy(features[start : start + rows]).to(parameter)
            parts.append(module(x).reshape(len(x)).double().cpu().numpy())
    torch.backends.cudnn.benchmark = benchmark
    return np.concatenate(parts)
