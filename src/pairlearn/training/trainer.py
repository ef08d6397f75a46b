"""Train one model on a table of judgements, with averaged weights.

Exchanging the classes does not change a similarity. Where similarities outweigh the rest of a
table, as at a prior far from ½, training can settle on the side that the rest contradicts. If
exchanging the classes of a trained model lowers its objective, training continues from there.
With K classes "the same class at all" is the same for every order of the classes; training
continues from the order that the statements about single classes fit best.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from pairlearn.training.devices import at_most_threads, useful_threads
from pairlearn.training.learner import Learner, Recipe
from pairlearn.training.objective import Objective, member_tensor


@dataclass(frozen=True)
class Trained:
    """A trained module, the epoch that its weights are from, and the history of all epochs.

    ``sign`` is −1 where the module's outputs are the log-odds of the negative class, ``slope`` the
    best of the `slopes` on the held-out rows. ``outputs`` are those for all instances, where
    training computed them. With K classes ``order`` (K,) is the output of each.
    """

    module: nn.Module
    epoch: int
    history: loop.History
    sign: int = 1
    slope: float = 1.0
    outputs: Floats | None = None
    order: tuple[int, ...] | None = None


def train(
    features: Any,
    rows: Judgements,
    risk: Risk,
    model: str | nn.Module,
    recipe: Recipe,
    *,
    held_out: Judgements | None = None,
    slopes: Sequence[float] = (1.0,),
    earliest: float = 0.0,
    held_prior: float | Sequence[float] | None = None,
    guiding_prior: float | None = None,
    callbacks: Sequence[loop.Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Train a model.

    Parameters
    ----------
    features : array of shape (N, ...)
    rows : Judgements
        Packed rows to learn from.
    risk, model, recipe
    held_out, slopes, earliest
        Held-out rows for early stopping; see `EarlyStopping`.
    held_prior, guiding_prior : float, optional
        As in `Objective`; risks with their own prior are not guided.
    callbacks, checkpoint : optional
        As in `run_epochs`, in addition to the callbacks that `recipe` implies.
    """
    risk, rows = bind_risk(risk, rows)
    held_out = held_out and bind_risk(risk, held_out)[1]
    if held_out is not None and held_out.joint.any():  # their targets depend on training
        held_out = held_out[~held_out.joint] if not held_out.joint.all() else None
    guided = loop.is_guided(recipe.epochs) and not risk.needs_prior
    objective = Objective(
        risk.over(rows.u, rows.v, rows.weight),
        rows.kinds(),
        held_prior=held_prior,
        guiding_prior=guiding_prior if guided else None,
    )
    learner = Learner(features, rows, objective, model, recipe)

    def run(checkpoint: Checkpoint | None) -> Trained:
        average = loop.Average()
        if held_out is not None:
            average = loop.EarlyStopping(held_out, recipe.patience, slopes, earliest)
        return _run_epochs(learner, average, held_out, callbacks, checkpoint)

    first = run(checkpoint)
    if rows.classes is not None:
        order = _order(learner, rows)
        first = replace(first, order=tuple(order))
        if order == sorted(order):
            return first
        places = np.argsort(order).tolist()
        learner.rows = replace(rows, classes=tuple(rows.classes[k] for k in places))
        held_out = held_out and replace(held_out, classes=learner.rows.classes)
        learner.members = member_tensor(learner.rows, learner.device)
        learner.begin_again()
        return _continued(first, run(checkpoint and checkpoint.after()))
    gain, first = _gain_when_exchanged(learner, features, rows[~rows.joint], first)
    if not (gain > 0 and _can_tell_sides(rows, risk)):
        return first
    learner.objective.sign = -1
    learner.begin_again()
    return replace(_continued(first, run(checkpoint and checkpoint.after())), sign=-1)


def _continued(first: Trained, second: Trained) -> Trained:
    """A training that went on after a first one, with the history of both."""
    done = len(first.history)
    later = [row | {"epoch": row["epoch"] + done} for row in second.history]
    history = first.history + later
    return replace(second, epoch=second.epoch + done, history=history, order=first.order)


def _order(learner: Learner, rows: Judgements) -> list[int]:
    """The output that fits the statements about each class best, each output for one class.

    Where all statements are about sets, they have determined it.
    """
    from scipy.optimize import linear_sum_assignment

    classes, members = rows.classes or (), rows.members()
    costs = np.zeros((len(classes), len(classes)))
    if members.any(1).all():
        return list(range(len(classes)))
    for k in range(len(classes)):
        of_k = rows[members[:, k] & (members.sum(1) == 1) & ~rows.joint]
        if not len(of_k):
            continue
        left, right = learner.logits(of_k.ends.T.reshape(-1)).chunk(2)
        for j in range(len(classes)):
            at = [k, j]
            swapped = torch.arange(len(classes), device=left.device)
            swapped[at] = swapped[at[::-1]]
            risk = learner.objective.of(of_k, left[:, swapped], right[:, swapped])
            costs[k, j] = float(risk) * of_k.weight.sum()
    costs = np.array([[learner.ranks.agree(c, learner.device) for c in row] for row in costs])
    return [int(k) for k in linear_sum_assignment(costs)[1]]


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
            f"risk {str(risk)!r} reads {' and '.join(risk.kinds)}, and the table also "
            f"has {' and '.join(others)}: leave those rows out, or use risk='likelihood', which "
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


def _can_tell_sides(rows: Judgements, risk: Risk) -> bool:
    """Whether a table distinguishes the sides, and training may have settled on the wrong one.

    Similarities alone do not distinguish them; where every row is read with a class prior, the
    prior does. With labels only, there is no other side to settle on.
    """
    single = all(kind(name).single for name in rows.kinds())
    read_with_prior = risk.needs_prior and len(rows.kinds()) == 1
    return "side" in rows.fixed() and not (single or read_with_prior)


def _gain_when_exchanged(
    learner: Learner, features: Any, rows: Judgements, trained: Trained
) -> tuple[float, Trained]:
    """By how much exchanging the classes lowers the objective, and the model with its outputs."""
    if not len(rows):
        return 0.0, trained
    instances, ends = np.unique(rows.ends, return_inverse=True)
    outputs = module_logits(trained.module, np.asarray(features[instances]))
    z = torch.from_numpy(outputs[ends.reshape(-1, 2).T]).to(learner.device, learner.dtype)
    gain = float(learner.objective.of(rows, *z) - learner.objective.of(rows, *-z))
    if len(instances) == len(features):
        trained = replace(trained, outputs=outputs)
    return learner.ranks.agree(gain, learner.device), trained


def _run_epochs(
    learner: Learner,
    average: loop.Average,
    held_out: Judgements | None,
    more: Sequence[loop.Callback],
    checkpoint: Checkpoint | None,
) -> Trained:
    """Run the epochs of the recipe, and give the module the best averaged weights."""
    recipe = learner.recipe
    cosine = [loop.Cosine()] if recipe.schedule == "cosine" else []
    callbacks = [*cosine, average, *more]
    work = "" if checkpoint is None else learner.fingerprint(held_out)
    threads = torch.get_num_threads()
    if learner.features.ndim == 2:
        weights = sum(p.numel() for p in learner.module.parameters())
        threads = useful_threads(2 * learner.batch_size, weights)
    with at_most_threads(threads):
        history = loop.run_epochs(
            learner, recipe.epochs, callbacks, checkpoint=checkpoint, work=work
        )
    # The last epoch where there is no best one (no early stopping, or every risk was NaN).
    learner.module.load_state_dict(average.best or average.weights)
    epoch = average.best_epoch or learner.epoch
    return Trained(learner.module.eval(), epoch, history, slope=average.best_slope)


def module_logits(module: nn.Module, features: NDArray[np.float32]) -> Floats:
    """Outputs (n,), or (n, K), of a module for instances, a chunk at a time, in float64."""
    parameter = next(module.parameters(), torch.zeros(()))
    rows = 8192 if parameter.is_cuda else 1024  # activations of more do not fit a CPU's cache
    parts = []
    benchmark = torch.backends.cudnn.benchmark
    # Trying algorithms on batches as large as these costs many times what the best one saves.
    torch.backends.cudnn.benchmark = False
    with torch.inference_mode():
        for start in range(0, len(features), rows):
            x = torch.from_numpy(features[start : start + rows]).to(parameter)
            outputs = module(x).reshape(len(x), -1).squeeze(-1)
            parts.append(outputs.double().cpu().numpy())
    torch.backends.cudnn.benchmark = benchmark
    return np.concatenate(parts)
