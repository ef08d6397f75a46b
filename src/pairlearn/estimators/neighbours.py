"""Items that nobody judged: what their neighbours are, where held-out pairs say that this pays.

With few pairs and many items, posteriors are spread over a graph of nearest neighbours: each
item takes over the mean of its neighbours, items in statements keep what these say (label
propagation: Zhou et al., NeurIPS 2003). The result joins the statements as soft labels.
Measured by `benchmarks/unjudged.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from pairlearn.columns import Floats
from pairlearn.estimators.completion import Targets
from pairlearn.estimators.cross_fitting import trial
from pairlearn.estimators.parameters import model_of
from pairlearn.estimators.table import Table
from pairlearn.judgements import Judgements
from pairlearn.kinds import kind
from pairlearn.kinds.base import TINY
from pairlearn.randomness import permutation, stream

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier


FOLDS = 4
FULL = 1 / 3
"""Share of a model of all statements among those of the folds."""
NEIGHBOURS = 5
KEPT = (0.05, 0.2, 0.5)
"""How much of its own posterior an item keeps in each round: what fits best is taken."""
SHARPER = (0.25, 0.5, 1.0, 2.0)
"""Factors of the log-odds at which posteriors are compared: spread ones are less confident."""
ROUNDS = 100
WEIGHT = 4.0
"""Of all items that nobody judged, in units of all statements."""
LEAST, MOST = 30, 1000
"""Statements under which nothing can be checked, and from which on there is little to gain."""
SPARE = 4
"""Least number of items that nobody judged, for each item that somebody did."""
ITEMS = 20_000
"""Most items of the graph, drawn at random from more."""


def with_unjudged(
    classifier: PairClassifier, table: Table, rows: Judgements, need: str, reads: Sequence[str]
) -> tuple[Judgements, int]:
    """Statements, and what is to be learnt of items that none is about; how many these are.

    A risk that `reads` certain kinds takes them as they are, if it reads such items at all.
    Where the prior has to be known and no statement is about a pair, they have its mean.
    """
    held = need == "prior" and bool(rows.single.all())
    if reads or held:
        some = held or any(kind(name).implied for name in reads)
        more = Judgements.silent(table.spare) if some else None
    else:
        more = spread(classifier, table, rows)
    return (rows, 0) if more is None else (Judgements.concatenate([rows, more]), len(more))


def spread(classifier: PairClassifier, table: Table, rows: Judgements) -> Judgements | None:
    """Soft labels of items that nobody judged; None where there are few or they do not pay.

    Models of parts of the statements say how likely the items are positive, and the statements
    that a model did not see whether its posteriors are better spread than as they are.
    """
    judged = np.unique(rows.ends[rows.ends >= 0])
    few = LEAST <= len(rows) <= MOST and len(table.spare) >= SPARE * len(judged)
    if classifier.unjudged == "ignore" or classifier.early_stopping or not few:
        return None
    rng, seed = stream(table.seed, "neighbours"), table.seed
    chosen = table.spare[permutation(rng, len(table.spare))[:ITEMS]]
    items = np.concatenate([judged, chosen])
    place = np.full(len(table.features), -1)
    place[items] = np.arange(len(items))
    local = Judgements(
        np.where(rows.ends < 0, -1, place[rows.ends]), rows.kind, rows.values, rows.weight
    )
    x = np.asarray(table.features[items], np.float64)
    graph = neighbour_graph(x.reshape(len(x), -1))
    fold = permutation(rng, len(rows)) % FOLDS
    rare = np.bincount(rows.kind)[rows.kind] < 2 * FOLDS
    fold[rare] = FOLDS  # every model sees them
    posterior, misfit = np.zeros(len(items)), np.zeros((1 + len(KEPT), len(SHARPER)))
    for held in range(FOLDS):
        rest, unseen = local[fold != held], local[fold == held]
        p = _posteriors(classifier, x, rest, seed + held)
        posterior += p / FOLDS
        smooth = [propagate(graph, rest, p, kept, without=unseen) for kept in KEPT]
        misfit += [
            [_misfit(unseen, expit(sharper * logit(one))) for sharper in SHARPER]
            for one in (p, *smooth)
        ]
    own, *spread_out = misfit.min(1)
    if own <= min(spread_out):
        return None
    posterior += (_posteriors(classifier, x, local, seed + FOLDS) - posterior) * FULL
    found = propagate(graph, local, posterior, KEPT[int(np.argmin(spread_out))])[len(judged) :]
    weight = np.full(len(chosen), WEIGHT * rows.weight.sum() / (len(chosen) / 2))
    return Judgements.about_items("label", chosen, found, weight)


def neighbour_graph(x: Floats) -> sparse.csr_array:
    """Weights of the neighbours of each item, in either direction, which sum to one."""
    from sklearn.neighbors import NearestNeighbors  # a tenth of a second

    found = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(x)
    graph = sparse.csr_array(found.kneighbors_graph(mode="distance"))
    scale = np.maximum(graph.max(axis=1).toarray().ravel(), 1e-12)
    graph.data = np.exp(-((graph.data / np.repeat(scale, NEIGHBOURS)) ** 2))
    graph = graph.maximum(graph.T)
    return sparse.csr_array(sparse.diags_array(1 / graph.sum(axis=1)) @ graph)


def propagate(
    graph: sparse.csr_array,
    rows: Judgements,
    posterior: Floats,
    kept: float,
    without: Judgements | None = None,
) -> Floats:
    """Posteriors spread over the graph; items in statements keep what these make of them.

    Items of the statements `without` are treated as if nobody had judged them.
    """
    out = np.empty(0, np.int64) if without is None else without.doubled().ends
    targets = Targets(rows.doubled())
    positive, negative = targets.complete(posterior[targets.items])[0]
    start, own = posterior.copy(), np.full(len(posterior), kept)
    start[targets.items] = positive / np.maximum(positive + negative, 1e-12)
    own[targets.items] = 1.0
    start[out], own[out] = posterior[out], kept
    found = start
    for _ in range(ROUNDS):
        found = own * start + (1 - own) * (graph @ found)
    return found


def _misfit(rows: Judgements, posterior: Floats) -> float:
    """How far posteriors must move to agree with statements, squared and summed."""
    targets = Targets(rows.doubled())
    p = posterior[targets.items]
    stated = np.concatenate([np.concatenate(targets.ends(part, p)) for _, part in targets.parts])
    return float(((targets.complete(p)[1] - stated) ** 2).sum())


def _posteriors(classifier: PairClassifier, x: Any, rows: Judgements, seed: int) -> Floats:
    """Of all items, by a model of some statements."""
    model = trial(classifier, x, rows, seed, model=model_of(classifier))
    p: Floats = np.clip(model.predict_proba(x)[:, 1].astype(np.float64), TINY, 1 - TINY)
    return p
