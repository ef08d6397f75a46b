"""Soft labels of unjudged items from their neighbours, where held-out pairs show that they help.

With few pairs and many items, posteriors are spread over a graph of nearest neighbours: each item
takes over the mean of its neighbours, and items in statements keep their completed targets (label
propagation: Zhou et al., NeurIPS 2003). The result joins the statements as soft labels. Measured by
`bench/speed/unjudged.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.special import softmax

from pairlearn.columns import Floats
from pairlearn.estimators.completion import SMALL, Targets
from pairlearn.estimators.fit_input import Table
from pairlearn.estimators.fitted import probabilities
from pairlearn.estimators.parameters import risk_of
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import kind
from pairlearn.judgements.kinds.statement import TINY
from pairlearn.judgements.sets import join_set
from pairlearn.randomness import permutation, stream

if TYPE_CHECKING:
    from pairlearn.estimators.learning import Training

#: Parts of the statements: each model sees three quarters of them.
FOLDS = 4
#: Neighbours of an item, as in scikit-learn's classifiers of neighbours.
NEIGHBOURS = 5
#: Shares of its own posterior that an item keeps in each round; the best one is chosen.
KEPT = (0.05, 0.2, 0.5)
#: Factors of the log-odds at which posteriors are compared: propagated ones are less confident.
SHARPER = (0.25, 0.5, 1.0, 2.0)
#: Rounds of propagation: an item keeps 5% of its own in each, so that 0.6% of the start is left.
ROUNDS = 100
#: Weight of all unjudged items, in units of all statements.
WEIGHT = 4.0
#: Fewest statements that allow a check, and most that leave something to gain.
LEAST, MOST = 30, 1000
#: Fewest unjudged items for each judged one.
SPARE = 4
#: Most unjudged items in the graph, drawn at random from more.
ITEMS = 20_000


def with_unjudged(training: Training, table: Table, rows: Judgements) -> tuple[Judgements, int]:
    """Add rows about unjudged items to the statements; return them and the number of rows added.

    A risk that reads certain kinds takes unjudged items without labels, if it reads them at all.
    So do others if the prior must be stated and no statement is about a pair.
    """
    orientation = training.orientation
    reads = risk_of(training.settings, orientation.prior).kinds
    held = orientation.need == "prior" and bool(rows.single.all())
    if reads or held:
        unlabelled = held or any(kind(name).implied for name in reads)
        added = Judgements.silent(table.spare) if unlabelled else None
    elif training.settings.unjudged == "ignore":
        added = None
    else:
        added = soft_labels(training, table, rows)
    return (rows, 0) if added is None else (Judgements.concatenate([rows, added]), len(added))


def soft_labels(training: Training, table: Table, rows: Judgements) -> Judgements | None:
    """Soft labels of unjudged items; None if there are too few or they do not help.

    Models of parts of the statements give posteriors of the items. The statements that a model has
    not seen show whether its posteriors are better after propagation.
    """
    judged = rows.used()
    if not LEAST <= len(rows) <= MOST or len(table.spare) < SPARE * len(judged):
        return None
    rng = stream(table.seed, "neighbours")
    chosen = table.spare[permutation(rng, len(table.spare))[:ITEMS]]
    items = np.concatenate([judged, chosen])
    place = np.full(len(table.features) + 1, -1)  # the last one is that of no item
    place[items] = np.arange(len(items))
    local = replace(rows, ends=place[rows.ends])
    x = np.asarray(table.features[items], np.float64)
    graph = neighbour_graph(x.reshape(len(x), -1))
    fold = permutation(rng, len(rows)) % FOLDS
    rare = np.bincount(rows.kind)[rows.kind] < 2 * FOLDS
    fold[rare] = FOLDS  # in all trainings

    def posteriors(part: Judgements, number: int) -> Floats:
        z = training.trial(part, number).log_odds(table.features[items])
        return probabilities(z).clip(TINY, 1 - TINY)

    average, misfit = np.zeros(()), np.zeros((1 + len(KEPT), len(SHARPER)))
    for held in range(FOLDS):
        p = posteriors(rows[fold != held], held)
        average = average + p / (FOLDS + 1)
        rest, unseen = local[fold != held], local[fold == held]
        propagated = [propagate(graph, rest, p, kept, without=unseen) for kept in KEPT]
        misfit += [
            [_misfit(unseen, softmax(factor * np.log(q), 1)) for factor in SHARPER]
            for q in (p, *propagated)
        ]
    original, *smoothed = misfit.min(1)
    if original <= min(smoothed):
        return None
    average += posteriors(rows, FOLDS) / (FOLDS + 1)
    best = propagate(graph, local, average, KEPT[int(np.argmin(smoothed))])[len(judged) :]
    weight = np.full(len(chosen), WEIGHT * rows.weight.sum() / (len(chosen) / 2))
    if rows.classes is None:
        return Judgements.about_items("label", chosen, best[:, 1], weight)
    place, k = np.nonzero(best > SMALL)
    sets = np.array([join_set([name]) for name in rows.classes])
    weight = weight[place] * best[place, k]
    return Judgements.about_items("label", chosen[place], np.ones(len(k)), weight, about=sets[k])


def neighbour_graph(x: Floats) -> sparse.csr_array:
    """Weights of the neighbours of each item, in either direction, which sum to one."""
    from sklearn.neighbors import NearestNeighbors  # whose import takes a tenth of a second

    neighbours = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(x)
    graph = sparse.csr_array(neighbours.kneighbors_graph(mode="distance"))
    scale = np.maximum(graph.max(axis=1).toarray().ravel(), 1e-12)
    graph.data = np.exp(-((graph.data / np.repeat(scale, NEIGHBOURS)) ** 2))
    graph = graph.maximum(graph.T)
    return sparse.csr_array(sparse.diags(1 / graph.sum(axis=1)) @ graph)


def propagate(
    graph: sparse.csr_array,
    rows: Judgements,
    posterior: Floats,
    kept: float,
    without: Judgements | None = None,
) -> Floats:
    """Propagate posteriors (m, K) over the graph; items in statements keep their completed targets.

    Items of the statements `without` are treated as unjudged.
    """
    hidden = np.empty(0, np.int64) if without is None else without.doubled().ends
    targets = Targets(rows.doubled())
    weights = targets.complete(posterior[targets.items])[0]
    start, own = posterior.copy(), np.full((len(posterior), 1), kept)
    start[targets.items] = (weights / np.maximum(weights.sum(0), 1e-12)).T
    own[targets.items] = 1.0
    start[hidden], own[hidden] = posterior[hidden], kept
    result = start
    for _ in range(ROUNDS):
        result = own * start + (1 - own) * (graph @ result)
    return result


def _misfit(rows: Judgements, posterior: Floats) -> float:
    """Sum of squared distances of posteriors from their completed targets."""
    targets = Targets(rows.doubled())
    p = posterior[targets.items]
    return float(((targets.complete(p)[1] - targets.predicted(p)) ** 2).sum())
