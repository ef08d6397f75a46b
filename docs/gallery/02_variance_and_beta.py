"""
One family of estimators, and the member of least variance
==========================================================

A weight that is affine in the judgements and unbiased for its loss term is ConfDiff's plus β times
a term T whose mean is zero. For a given classifier the variance of the estimated risk is a parabola
in β, so the data determine which member has the least variance.

Line and star: the closed form, from one table of 2,000 judged pairs. Points: the spread
observed over 400 other tables of 200 pairs. β is the same for positive and negative
terms; ConfDiff is β = 0 and SconfConfDiff β = −1. Where the star lies depends on the classifier
and on the data.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from pairlearn import PairLabels
from pairlearn.losses import make_loss
from pairlearn.risks import affine_table, contract, pair_moments
from pairlearn.style import BLUE, ORANGE, STYLE, label_axes, method_style

plt.rcParams.update(STYLE)
prior, betas, draw = 0.3, np.linspace(-2, 1.5, 15), torch.Generator().manual_seed(0)


def risks_of_tables(count: int, n: int, beta: np.ndarray) -> np.ndarray:
    """The risk of one classifier, by each member β from each of some tables of n pairs."""
    positive = torch.rand(2, count, n, generator=draw) < prior
    x = torch.randn(2, count, n, generator=draw) + 2 * positive  # two Gaussians, 2 apart
    r = torch.sigmoid(2 * x - 2 + np.log(prior / (1 - prior)))
    labels = PairLabels.from_posteriors(*r.flatten(1))
    judgements = (v.view(count, n) for v in (labels.similarity, labels.difference))
    moments = pair_moments(*(x - 2.5), *judgements, make_loss("logistic"))  # it is x − 2.5
    return np.stack([contract(affine_table(prior, b, b), moments).sum(-1) for b in beta])


single = risks_of_tables(2000, 1, np.array([0, -1]))  # tables of one pair
(a, b), (_, c) = np.cov(single[0], single[0] - single[1]) / 200
tables, fine = risks_of_tables(400, 200, betas), np.linspace(-2, 1.5, 100)
fig, ax = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
ax.plot(fine, np.sqrt(a + 2 * b * fine + c * fine**2), color=BLUE, label="closed form")
ax.plot(betas, tables.std(1, ddof=1), "o", color=BLUE, ms=4, label="400 tables of 200 pairs")
ax.plot(-b / c, np.sqrt(a - b**2 / c), "*", color=ORANGE, ms=12, label=f"best: β = {-b / c:.2f}")
for name, beta in (("confdiff", 0), ("sconfconfdiff", -1)):
    spread = np.sqrt(a + 2 * b * beta + c * beta**2)
    ax.plot(beta, spread, ls="", ms=8, label=name, **method_style(f"{name}-abs").points())
label_axes(ax, "β", "standard deviation of the risk (nats)").legend()
