"""A risk is a table of coefficients and a slope.

Every estimator in this package reads a batch only through its *moments*, the means
of (loss term × basis function) over the pairs:

    terms   ℓ(g(x), +1), ℓ(g(x), −1), ℓ(g(x'), +1), ℓ(g(x'), −1),
            log P(same), log P(different), log P(not +,−), log P(not −,+)
    basis   1, u, v      the two values of a judgement: similarity and difference
                         (the two classes for `Supervised`)

A partial risk is the contraction of a table of coefficients (terms × basis) with the moments, and
a risk is the sum of its corrected partial risks. Moments are linear in the pairs, so they may be
accumulated over micro-batches or averaged over workers before the correction, and a fleet of
different estimators is one batched contraction. Only the terms that a table uses are computed: four
for the affine risks, five for the pair likelihood, all where a table mixes kinds of statement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pairlearn.losses import Loss, in_full_precision, make_loss

TERMS = (
    "positive",
    "negative",
    "positive_prime",
    "negative_prime",
    "log_same",
    "log_different",
    "log_not_left",
    "log_not_right",
)
BASIS = ("one", "u", "v")


def pair_terms(logits: Tensor, logits_prime: Tensor, loss: Loss, count: int = 5) -> Tensor:
    """The first `count` loss terms (..., count, n) of n pairs, in the order of `TERMS`.

    For every margin loss the logarithms are those of the logistic model p = σ(g(x)), p' = σ(g(x')),
    computed without differences of large numbers.
    """
    z = torch.stack([in_full_precision(logits), in_full_precision(logits_prime)], -2)
    both = loss.both(z)
    terms = both.flatten(-3, -2)
    if count <= 4:
        return terms
    logistic = both if loss.name == "logistic" else make_loss("logistic").both(z)
    # −ℓ(z, ±1) of the logistic loss is log σ(±z), so that sums over the ends are log P(±, ±).
    parts = [terms, torch.logsumexp(-logistic.sum(-3), -2, keepdim=True)]
    if count > 5:
        plus, minus, plus_prime, minus_prime = (-logistic).flatten(-3, -2).unbind(-2)
        parts.append(
            torch.stack(
                [
                    torch.logaddexp(plus + minus_prime, minus + plus_prime),
                    torch.logaddexp(minus, plus + plus_prime),
                    torch.logaddexp(minus_prime, plus_prime + plus),
                ],
                -2,
            )
        )
    return torch.cat(parts, -2)


def pair_moments(
    logits: Tensor,
    logits_prime: Tensor,
    u: Tensor,
    v: Tensor,
    loss: Loss,
    *,
    terms: int = 5,
    share: Tensor | None = None,
    same: Tensor | None = None,
) -> Tensor:
    """Means over pairs of each loss term times each basis function, (..., terms, 3).

    Parameters
    ----------
    logits, logits_prime, u, v : Tensor of shape (..., n)
        Classifier outputs and judgements of n pairs; leading dimensions are
        independent batches and broadcast.
    loss : Loss
        The margin loss ℓ.
    terms : int
        How many of `TERMS` to compute.
    share : Tensor of shape (n,) or (..., n), optional
        Weights of the pairs in the mean, 1/n by default. The moments of parts of a batch, whose
        shares sum to one together, add up to those of the batch.
    same : Tensor of shape (..., 2, n), optional
        log P(same) and log P(different) of the pairs whose statement is about all classes, in place
        of those of two classes; NaN for the others.
    """
    values = pair_terms(logits, logits_prime, loss, terms)
    if same is not None:
        own = values[..., 4:6, :].where(same.isnan(), same)
        values = torch.cat([values[..., :4, :], own, values[..., 6:, :]], -2)
    basis = torch.stack([torch.ones_like(u), u, v], -2).to(values.dtype)
    basis = basis / u.shape[-1] if share is None else basis * share.unsqueeze(-2)
    return (values.unsqueeze(-2) * basis.unsqueeze(-3)).sum(-1)


def contract(table: Tensor, moments: Tensor) -> Tensor:
    """Partial risks (..., k) of tables (..., k, 8, 3) at moments (..., terms, 3).

    The coefficients of terms that were not computed must be zero.
    """
    batched = moments.unsqueeze(-3) if moments.ndim > 2 else moments
    return (table[..., : moments.shape[-2], :] * batched).sum((-1, -2))


def make_table(*partial_risks: Mapping[str, Sequence[float]]) -> Tensor:
    """Make a table (k, 8, 3) from the coefficients over 1, u, v of each partial risk's terms.

    Examples
    --------
    >>> make_table({"log_same": (0, -0.5, 0)}, {"log_different": (-0.5, 0.5, 0)}).shape
    torch.Size([2, 8, 3])
    """
    table = torch.zeros(len(partial_risks), len(TERMS), len(BASIS), dtype=torch.float64)
    for k, weights in enumerate(partial_risks):
        for term, weight in weights.items():
            table[k, TERMS.index(term)] = torch.tensor(weight, dtype=torch.float64)
    return table


def terms_used(table: Tensor) -> int:
    """How many of the first `TERMS` a table (..., 8, 3) needs: 4, 5 or all."""
    used = table.ne(0).any(-1).reshape(-1, table.shape[-2]).any(0).nonzero()
    last = int(used.max()) + 1 if len(used) else 0
    return 4 if last <= 4 else 5 if last == 5 else len(TERMS)


class Risk(nn.Module):
    """A risk estimator: `table` (k, 8, 3), a `correction` and a `loss`.

    Subclasses only compute the table. Calling the risk gives a scalar to minimise:

        risk(logits, logits_prime, similarity, difference)

    It is computed on the device of the logits, and at least in float32, also under autocast. NaN
    judgements are an error, since their mean would be NaN.
    """

    family: ClassVar[str]
    #: Whether the table depends on the class prior, which is then the attribute `prior`.
    needs_prior: ClassVar[bool] = False
    #: Its name in tables and figures, by default that of the class.
    title: ClassVar[str]
    #: Its colours on a white and a dark page, and its marker; None for those of the style.
    look: ClassVar[tuple[str, str, str] | None] = None
    judgements: ClassVar[tuple[str, str]] = ("similarity", "difference")
    #: The kinds of statement that it reads, by `Kind.reading`; empty for all kinds unchanged.
    kinds: ClassVar[tuple[str, ...]] = ()
    #: The correction of a name without one.
    usual_correction: ClassVar[str] = "none"
    #: The number in the risk's name, for families with one.
    parameter: float | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.title = cls.__dict__.get("title", cls.__name__)

    def __init__(
        self, table: Tensor, *, correction: str | float = "none", loss: str = "logistic"
    ) -> None:
        super().__init__()
        self.slope = correction_slope(correction)
        self.loss = make_loss(loss)
        self.table = table.double()
        self.terms = terms_used(self.table)
        self._tables: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def over(self, u: Any, v: Any, weight: Any = None) -> Self:
        """The risk for a table with these values; by default it does not depend on the table."""
        return self

    def forward(self, logits: Tensor, logits_prime: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """The corrected risk of the batch, a scalar."""
        risk = self._for_batch(u, v)
        return risk.from_moments(risk.moments(logits, logits_prime, u, v))

    def partial_risks(self, logits: Tensor, logits_prime: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """The partial risks before correction, shape (k,)."""
        risk = self._for_batch(u, v)
        moments = risk.moments(logits, logits_prime, u, v)
        return contract(risk._table_like(moments), moments)

    def _for_batch(self, u: Tensor, v: Tensor) -> Self:
        return self

    def moments(self, logits: Tensor, logits_prime: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """The moments (terms, 3) of a batch, through which alone the risk reads it."""
        batch = self._checked(logits, logits_prime, u, v)
        return pair_moments(*batch, self.loss, terms=self.terms)

    def from_moments(self, moments: Tensor) -> Tensor:
        """The corrected risk from moments, which may be averaged over workers."""
        partial_risks = contract(self._table_like(moments), moments)
        return correct(partial_risks, self.slope).sum(-1)

    def _table_like(self, moments: Tensor) -> Tensor:
        key = (moments.dtype, moments.device)
        if key not in self._tables:
            self._tables[key] = self.table.to(moments)
        return self._tables[key]

    def _checked(self, *batch: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        # Models may return (n, 1), which would otherwise broadcast silently.
        logits, logits_prime, u, v = [t.squeeze(-1) if t.ndim == 2 else t for t in batch]
        if not logits.shape == logits_prime.shape == u.shape == v.shape or logits.ndim != 1:
            shapes = ", ".join(str(tuple(t.shape)) for t in batch)
            names = ", ".join(("logits", "logits_prime", *self.judgements))
            raise ValueError(f"{names} must share one shape (n,) or (n, 1); got {shapes}")
        if not len(logits):
            raise ValueError("the batch is empty: a risk is a mean over at least one pair")
        # One sum reveals a NaN anywhere; while compiling, values are unknown.
        if not torch.compiler.is_compiling() and math.isnan(float((u + v).sum())):
            for name, column in zip(self.judgements, (u, v), strict=True):
                if bool(torch.isnan(column).any()):
                    row = int(torch.isnan(column).int().argmax())
                    raise ValueError(
                        f"{name} is missing (NaN) in row {row}: "
                        "a risk needs both judgements of every pair"
                    )
        return logits, logits_prime, u, v

    @property
    def correction(self) -> str:
        """Name of the correction."""
        return correction_name(self.slope)

    @property
    def name(self) -> str:
        """The name from which `make_risk` makes this risk."""
        middle = "" if self.parameter is None else f"-{self.parameter:g}"
        return f"{self.family}{middle}-{self.correction}"

    def __str__(self) -> str:
        return self.name

    def extra_repr(self) -> str:
        """The text between the parentheses of `repr`."""
        return f"{self.name!r}, loss={self.loss.name!r}"


CORRECTIONS: dict[str, float] = {"none": -1.0, "relu": 0.0, "abs": 1.0, "ascent": math.inf}


def correction_slope(correction: str | float) -> float:
    """The slope τ of a correction, from its name or number.

    Examples
    --------
    >>> correction_slope("abs"), correction_slope(0.5)
    (1.0, 0.5)
    """
    if isinstance(correction, str):
        if correction not in CORRECTIONS:
            raise ValueError(
                f"correction {correction!r} is unknown; choose one of "
                f"{', '.join(CORRECTIONS)}, or a slope of at least -1"
            )
        return CORRECTIONS[correction]
    slope = float(correction)
    if not slope >= -1:
        raise ValueError(f"correction must be a slope of at least -1; got {correction}")
    return slope


def correction_name(slope: float) -> str:
    """The name of a slope, as at the end of a risk's name."""
    names = {value: name for name, value in CORRECTIONS.items()}
    return names.get(slope, f"slope={slope:g}")


def correct(partial_risks: Tensor, slope: float | Tensor) -> Tensor:
    """Correct each partial risk by f_τ(z) = max(z, −τz); τ may be a tensor that broadcasts.

    τ = ∞, "ascent", is the step of nnPU as published (Kiryo et al., 2017, algorithm 1): while a
    partial risk is negative, only −z of the negative ones is minimised.

    Examples
    --------
    >>> import torch
    >>> correct(torch.tensor([-2.0, 3.0]), 0.5)
    tensor([1., 3.])
    """
    if isinstance(slope, Tensor):
        ascent = slope.isinf()
        slope = slope.masked_fill(ascent, 1.0)
        left_out = ascent & (partial_risks < 0).any(-1, keepdim=True) & (partial_risks >= 0)
        partial_risks = partial_risks.masked_fill(left_out, 0.0)
        return torch.where(partial_risks < 0, -slope * partial_risks, partial_risks)
    if slope == math.inf:
        return correct(partial_risks, torch.full_like(partial_risks[..., :1], slope))
    return F.leaky_relu(partial_risks, -slope)
