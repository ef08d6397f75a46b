"""The pair likelihood: a proper scoring rule for the judgements that needs no prior.

The classifier's posteriors p = σ(g(x)), p' = σ(g(x')) predict the three outcomes
of a pair; the judgements state their probabilities a, b and s. The cross-entropy

    −[ a log p(1 − p') + b log (1 − p)p' + s log(pp' + (1 − p)(1 − p')) ] / 2

is least at the true posteriors and needs no class prior. It is linear in (s, c), so
zero-mean label noise leaves it unbiased, and the usual corrections apply to its three
partial risks, one for each outcome. For one kind of judgement at a time, maximum
likelihood by expectation-maximisation is known (Chen et al., ICML 2024).
"""

from __future__ import annotations

from pairlearn.risks.base import Risk, make_table


class PairLikelihood(Risk):
    """Negative log-likelihood of the three outcomes, halved; no prior enters.

    Use ``correction="abs"`` for noisy judgements, where a or b can be negative. `SconfConfDiff` is
    the affine risk that uses both judgements.

    Examples
    --------
    >>> import torch
    >>> risk = PairLikelihood(correction="abs")
    >>> zero, half = torch.zeros(1), torch.tensor([0.5])
    >>> risk(zero, zero, half, zero)  # (log 4 + log 2)/4
    tensor(0.5199)
    """

    family = "likelihood"
    title = "Likelihood"

    def __init__(self, *, correction: str | float = "none") -> None:
        # −log of each outcome's probability is a sum of loss terms; its weight is linear in s, c.
        a, b = (0.25, -0.25, -0.25), (0.25, -0.25, +0.25)  # (1 − s ∓ c)/2, halved
        table = make_table(
            {"positive": a, "negative_prime": a},
            {"negative": b, "positive_prime": b},
            {"log_same": (0.0, -0.5, 0.0)},
        )
        super().__init__(table, correction=correction)
