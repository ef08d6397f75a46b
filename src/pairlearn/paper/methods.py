"""Methods as the tables name them: risk, γ and correction of a name of the catalogue.

A method is a risk of the catalogue, or one with something beside it: "likelihood-guided" is
"likelihood-abs" with the guiding prior that :class:`~pairlearn.PairClassifier` uses, and
"likelihood-label" is "likelihood-abs" of other statements (:mod:`pairlearn.paper.statements`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from pairlearn.paper.statements import LIKELIHOODS, SIDELESS
from pairlearn.risks import RISKS, Risk, make_risk

CORRECTIONS = ("none", "relu", "abs")
GUIDED = "likelihood-guided"
BESIDE = (GUIDED, *LIKELIHOODS)

_CORRECTION_TITLES = {"none": "Unbiased", "relu": "ReLU", "abs": "ABS", "guided": "ABS, guided"}
_NAME = re.compile(r"(?P<family>[a-z]+)(-(?P<number>\d*\.?\d+))?(-(?P<correction>[a-z].*))?")
# Where every risk is defined: a name that cannot be built here is wrong, not just undefined.
_ORDINARY_PRIOR = 0.3


@dataclass(frozen=True)
class Method:
    """The three columns by which the paper's tables tell methods apart.

    Parameters
    ----------
    risk : str
        Family of the risk; with its number for families other than convex.
    gamma : float or None
        γ of the convex combination.
    correction : str
        "none", "relu", "abs", "slope=NUMBER" or "guided".

    Examples
    --------
    >>> Method.parse("convex-0.5-abs")
    Method(risk='convex', gamma=0.5, correction='abs')
    >>> Method.parse("convex-0.5-abs").title
    'Convex(γ=0.5)-ABS'
    >>> Method.parse("supervised").title
    'Supervised'
    """

    risk: str
    gamma: float | None
    correction: str

    @classmethod
    def parse(cls, name: str) -> Method:
        """Take a name of the catalogue apart."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"method {name!r} is not a name of make_risk")
        family, number, correction = match["family"], match["number"], match["correction"] or "none"
        if number is None:
            return cls(family, None, correction)
        if family == "convex":
            return cls(family, float(number), correction)
        return cls(f"{family}-{number}", None, correction)

    @property
    def name(self) -> str:
        """The name for :func:`pairlearn.make_risk`."""
        if self.risk == "supervised":
            return self.risk
        number = "" if self.gamma is None else f"-{self.gamma:g}"
        return f"{self.risk}{number}-{self.correction}"

    @property
    def title(self) -> str:
        """The name for tables and figures, in the paper's words where it has one."""
        if self.risk == "supervised":
            return self.family_title
        _, _, number = self.risk.partition("-")
        weight = f"(λ={number})" if number else ""
        share = "" if self.gamma is None else f"(γ={self.gamma:g})"
        return f"{self.family_title}{weight}{share}-{self.correction_title}"

    @property
    def family_title(self) -> str:
        """The family alone, as its risk is titled."""
        family = self.risk.partition("-")[0]
        return RISKS[family].title if family in RISKS else family

    @property
    def correction_title(self) -> str:
        """The correction in the paper's words."""
        return _CORRECTION_TITLES.get(self.correction, self.correction)

    @property
    def is_weak(self) -> bool:
        """Whether it learns from pairs only."""
        return self.risk != "supervised"


def convex_method(gamma: float, correction: str) -> str:
    """The name of the convex combination at γ; at its ends, of the method that it is there.

    Examples
    --------
    >>> [convex_method(gamma, "abs") for gamma in (0, 0.3, 1)]
    ['confdiff-abs', 'convex-0.3-abs', 'sconf-abs']
    """
    ends = {0.0: "confdiff", 1.0: "sconf"}
    family = ends.get(gamma, f"convex-{gamma:g}")
    return f"{family}-{correction}"


def risk_of(method: str, prior: float) -> Risk:
    """The risk that a method trains with; ValueError if there is none at this prior."""
    if method in SIDELESS and prior == 0.5:
        raise ValueError(f"{method}: at prior ½ nothing tells which class is which")
    return make_risk("likelihood-abs" if method in BESIDE else method, prior=prior)


@cache
def canonical_name(method: str) -> str:
    """The one spelling of a method's name; ValueError if there is no such risk."""
    return method if method in BESIDE else str(risk_of(method, _ORDINARY_PRIOR))


@cache
def is_defined(method: str, prior: float) -> bool:
    """Whether a method exists at the prior that its estimator is given."""
    canonical_name(method)
    if not 0 < prior < 1:
        raise ValueError(f"prior must lie in (0, 1); got {prior}")
    try:
        risk_of(method, prior)
    except ValueError:
        return False
    return True


_OURS = ("nonnegative", "likelihood")
_TABULATED = ("sconf", "confdiff", "convex", "sconfconfdiff", *_OURS, "supervised")

METHOD_GROUPS: tuple[tuple[str, ...], ...] = (
    tuple(f"sconfconfdiff-{correction}" for correction in CORRECTIONS),
    *(
        tuple(convex_method(gamma, correction) for gamma in (0, 0.2, 0.5, 0.8, 1))
        for correction in CORRECTIONS
    ),
    ("nonnegative-none", *(f"likelihood-{correction}" for correction in CORRECTIONS), GUIDED),
    tuple(
        f"{family}-abs"
        for family, risk in RISKS.items()
        if family not in _TABULATED and not risk.kinds
    ),
    ("supervised",),
)
"""The rows of the accuracy tables in their order, with a rule between the groups.

A further risk of the catalogue that reads soft judgements has a group of its own, with ABS.
"""

PAPER_METHODS: tuple[str, ...] = (*(m for group in METHOD_GROUPS[:4] for m in group), "supervised")
"""The methods of the paper's tables."""

_GROUP = {name: number for number, group in enumerate(METHOD_GROUPS) for name in group}
_ORDER = {name: number for number, name in enumerate(_GROUP)}


def method_group(method: str) -> int:
    """The number of a method's group in the tables; those the paper does not have come last."""
    return _GROUP.get(method, len(METHOD_GROUPS))


def method_order(method: str) -> int:
    """Where a method stands among the rows of the tables."""
    return _ORDER.get(method, len(_ORDER))
