"""Risks by name: family, its parameter if it has one, correction.

"likelihood-abs"   "convex-0.5-relu"   "sconfconfdiff-0.3-none"   "confdiff-slope=0.5"
"""

from __future__ import annotations

import inspect
import re

from pairlearn.risks.affine import ConfDiff, Convex, NonNegative, Sconf, SconfConfDiff
from pairlearn.risks.base import Risk
from pairlearn.risks.likelihood import PairLikelihood
from pairlearn.risks.siblings import SIBLINGS
from pairlearn.risks.supervised import Supervised

_MAIN: tuple[type[Risk], ...] = (
    Sconf,
    ConfDiff,
    Convex,
    SconfConfDiff,
    NonNegative,
    PairLikelihood,
    Supervised,
)
RISKS = {risk.family: risk for risk in _MAIN} | SIBLINGS

_BUILT_IN = frozenset(RISKS)

_NAME = re.compile(
    r"(?P<family>[a-z]+)"
    r"(-(?P<parameter>\d+(\.\d+)?|\.\d+))?"
    r"(-(?P<correction>none|relu|abs|ascent|slope=(?P<slope>-?\d*\.?\d+)))?"
)


def register_risk(risk: type[Risk]) -> type[Risk]:
    """Add a risk to the catalogue by its `family`; use it as the decorator of your class.

    Everything that takes a risk by name then takes it: `make_risk`, `PairClassifier`, the command
    line. `pairlearn.risks.check_risk` tests it.

    Raises
    ------
    TypeError, ValueError
        If it is not a class of risks, its family is not a word in lower-case letters, or a
        built-in risk has that family.

    Examples
    --------
    >>> from pairlearn.risks import AffineRisk
    >>> @register_risk
    ... class Halfway(AffineRisk):
    ...     family = "halfway"
    ...
    ...     def betas(self):
    ...         return -0.5, -0.5
    >>> make_risk("halfway-abs", prior=0.2)
    Halfway('halfway-abs', prior=0.2, loss='logistic')
    >>> del RISKS["halfway"]  # the example leaves nothing behind
    """
    if not (isinstance(risk, type) and issubclass(risk, Risk)):
        raise TypeError(f"register_risk takes a subclass of Risk; got {risk!r}")
    family = getattr(risk, "family", None)
    if not isinstance(family, str) or re.fullmatch("[a-z]+", family) is None:
        raise ValueError(f"{risk.__name__}: family must be lower-case letters; got {family!r}")
    if family in _BUILT_IN:
        raise ValueError(f"{risk.__name__}: family {family!r} is built in; choose another one")
    RISKS[family] = risk
    return risk


def make_risk(
    name: str,
    prior: float | None = None,
    loss: str = "logistic",
    *,
    correction: str | float | None = None,
) -> Risk:
    """Build a risk from its name, ``family[-parameter][-correction]``; `str(risk)` gives it back.

    Parameters
    ----------
    name : str
    prior : float, optional
        The class prior π₊: needed by the affine risks, ignored by the others.
    loss : str
        Margin loss of the affine and supervised risks.
    correction : str or float, optional
        The correction of a name without one; by default "none" ("relu" for nnpu, where "none" is
        uPU).

    Examples
    --------
    >>> make_risk("sconfconfdiff-abs", prior=0.2)
    SconfConfDiff('sconfconfdiff-abs', prior=0.2, loss='logistic')
    >>> str(make_risk("likelihood-abs"))
    'likelihood-abs'
    """
    match = _NAME.fullmatch(name)
    if match is None or match["family"] not in RISKS:
        raise ValueError(
            f"risk {name!r} is unknown; a name is family[-parameter][-correction], families: "
            f"{', '.join(RISKS)}; corrections: none, relu, abs, ascent, slope=NUMBER"
        )
    risk = RISKS[match["family"]]
    takes = inspect.signature(risk).parameters
    usual = risk.usual_correction if correction is None else correction
    arguments: dict[str, float | str] = {
        "correction": float(match["slope"]) if match["slope"] else match["correction"] or usual
    }
    if "prior" in takes:
        if prior is None:
            raise ValueError(f"risk {name!r} needs the class prior: make_risk({name!r}, prior=...)")
        arguments["prior"] = prior
    if "loss" in takes:
        arguments["loss"] = loss
    elif loss != "logistic":
        raise ValueError(f"risk {name!r} is a logistic likelihood; loss {loss!r} does not apply")
    number = next((key for key in ("gamma", "lam") if key in takes), None)
    if match["parameter"] is not None:
        if number is None:
            raise ValueError(f"risk {name!r}: {match['family']} takes no number")
        arguments[number] = float(match["parameter"])
    elif number == "gamma":
        raise ValueError(f"risk {name!r} needs its γ in the name, as in 'convex-0.5-abs'")
    return risk(**arguments)  # type: ignore[arg-type]
