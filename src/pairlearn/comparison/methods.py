"""The methods to compare, by name."""

from __future__ import annotations

from collections.abc import Sequence

from pairlearn.risks import CORRECTIONS, make_risk

__all__ = ["default_methods", "full_names"]

FAMILIES = ("likelihood", "sconfconfdiff", "confdiff", "sconf", "convex-0.5", "nonnegative")


def default_methods() -> tuple[str, ...]:
    """Every family of risks with every correction.

    Examples
    --------
    >>> default_methods()[:3], len(default_methods())
    (('likelihood-abs', 'likelihood-relu', 'likelihood-none'), 18)
    """
    return tuple(f"{family}-{name}" for family in FAMILIES for name in reversed(CORRECTIONS))


def full_names(methods: Sequence[str]) -> list[str]:
    """Names in full: one without a correction stands for all of them.

    Examples
    --------
    >>> full_names(["likelihood", "sconf-abs", "likelihood-abs"])
    ['likelihood-abs', 'likelihood-relu', 'likelihood-none', 'sconf-abs']
    """
    if isinstance(methods, str):
        raise ValueError(f"methods must be a sequence of names; got {methods!r}: put it in a list")
    names: list[str] = []
    for method in methods:
        if method.startswith("supervised"):
            raise ValueError("method 'supervised' reads classes, not judgements: leave it out")
        risk = make_risk(method, prior=0.3)  # any will do to find out whether there is one
        told = method.endswith(tuple(CORRECTIONS)) or "slope=" in method
        family = str(risk).removesuffix("-none")
        names += [str(risk)] if told else [f"{family}-{name}" for name in reversed(CORRECTIONS)]
    if not names:
        raise ValueError("methods is empty: name at least one, or leave it out for all")
    return list(dict.fromkeys(names))
