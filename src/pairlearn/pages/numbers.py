"""Numbers as a page shows them."""

from __future__ import annotations

import math

__all__ = ["interval", "percent", "signed", "spread"]


def spread(mean: float, std: float) -> str:
    """A mean with its standard deviation.

    Examples
    --------
    >>> spread(0.978, 0.0021)
    '0.978 ± 0.002'
    """
    return f"{mean:.3f} ± {std:.3f}"


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign, a real minus and no negative zero.

    Examples
    --------
    >>> signed(0.012), signed(-0.0301), signed(-0.0001)
    ('+0.012', '−0.030', '0.000')
    """
    text = f"{abs(value):.{digits}f}"
    sign = "" if float(text) == 0 else "+" if value > 0 else "−"
    return f"{sign}{text}"


def percent(share: float) -> str:
    """A share in percent, with a decimal where it is close to none or all.

    Examples
    --------
    >>> percent(0.934), percent(0.9871), percent(math.nan)
    ('93%', '98.7%', '–')
    """
    if math.isnan(share):
        return "–"
    return f"{share:.1%}" if 0 < share < 0.015 or 0.985 < share < 1 else f"{share:.0%}"


def interval(low: float, high: float) -> str:
    """The ends of an interval of shares.

    Examples
    --------
    >>> interval(0.91, 0.9512)
    '0.910 to 0.951'
    """
    return f"{low:.3f} to {high:.3f}"
