"""Which classes statements tell apart, and whether they fix how frequent these are.

A statement about a set S shows P(S | x), the posteriors p summed over S. Together with Σ_k p_k = 1
these are linear equations, and the solutions of the homogeneous ones are left open: classes with a
share in one cannot be told apart. "The same class at all" leaves the order of the classes
open, apart from classes whose sets differ. It determines posteriors only if some items surely are
of each class (Huang, Sidiropoulos and Swami 2014). A difference shows P(S | x) up to a constant:
where nothing else is said about S, the priors must be given.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space

from pairlearn.columns import Floats
from pairlearn.judgements.kinds import kind
from pairlearn.judgements.table import Judgements


def not_told_apart(rows: Judgements) -> list[tuple[str, ...]]:
    """Classes that no statement tells apart, in groups; empty if all are determined.

    Examples
    --------
    >>> about = ["cat", "cow|dog"]
    >>> rows = Judgements.from_pairs([[0, 1], [2, 3]], [[0.5, 0.1]] * 2, about=about)
    >>> not_told_apart(rows.of_classes())
    [('cow', 'dog')]
    """
    names, members = np.asarray(rows.classes or ()), rows.members()
    sets = np.unique(members[members.any(1)], axis=0)
    columns = np.unique(sets, axis=1, return_inverse=True)[1].reshape(-1)
    groups = [tuple(names[columns == number].tolist()) for number in np.unique(columns)]
    alike = [group for group in groups if len(group) > 1]
    if alike or (~members.any(1) & rows.has("similarity")).any():
        return alike
    left_open = np.abs(null_space(_with_sum(sets))).max(1, initial=0.0) > 1e-9
    return [tuple(names[left_open].tolist())] if left_open.any() else []


def needs_priors(rows: Judgements) -> bool:
    """Whether the priors of the classes must be given."""
    members = rows.members()
    fixing = np.zeros(len(rows), bool)
    for name in rows.kinds():
        fixing[rows.of(name)] = "level" in kind(name).fixes(prior_known=False)
    whole = ~members.any(1) & ~rows.says_nothing
    if whole.any():
        return False
    fixed, stated = (_with_sum(np.unique(m, axis=0)) for m in (members[fixing], members))
    return bool(np.linalg.matrix_rank(fixed) < np.linalg.matrix_rank(stated))


def _with_sum(sets: np.ndarray) -> Floats:
    """Sets as equations, with the one that posteriors sum to one."""
    return np.concatenate([np.ones((1, sets.shape[1])), sets.astype(np.float64)])
