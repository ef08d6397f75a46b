"""Whether an estimator of pairs keeps scikit-learn's conventions.

``sklearn.utils.estimator_checks.check_estimator`` skips nearly all of its checks for
estimators whose input is not two-dimensional. `check_pair_estimator` runs their
equivalents on pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pairlearn.estimators import check_functions

__all__ = ["check_pair_estimator", "pair_checks"]

Check = Callable[[Any], None]


def pair_checks() -> list[Check]:
    """All checks: functions of an unfitted estimator, which fail with an AssertionError.

    For a test of one's own: ``@pytest.mark.parametrize("check", pair_checks())``.

    Examples
    --------
    >>> [check.__name__ for check in pair_checks()][:2]
    ['check_init_keeps_parameters', 'check_fit_keeps_parameters']
    """
    return [member for name, member in vars(check_functions).items() if name.startswith("check_")]


def check_pair_estimator(estimator: Any) -> None:
    """Run all checks on an estimator that fits on pairs and predicts instances.

    It must have ``fit(pairs, labels, sample_weight=None)`` with pairs (n, 2, d) and labels
    (n, 2), similarity and difference; ``predict``, ``predict_proba`` and
    ``decision_function`` of instances (m, d); ``score(pairs, labels)``. It is fitted some
    sixty times to 120 pairs: give one that trains quickly.

    Parameters
    ----------
    estimator : estimator
        An instance; it is cloned and not changed.

    Raises
    ------
    AssertionError
        With a line for each check that failed.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> check_pair_estimator(LogisticRegression())
    Traceback (most recent call last):
        ...
    AssertionError: LogisticRegression fails ... of ... checks:
    ...
    """
    if isinstance(estimator, type):
        raise TypeError(f"give an instance, such as {estimator.__name__}(), not the class")
    checks = pair_checks()
    failures = []
    for check in checks:
        try:
            check(estimator)
        except Exception as error:
            kind = "" if type(error) is AssertionError else f"{type(error).__name__}: "
            first = str(error).strip().splitlines() or ["no message"]
            failures.append(f"  {check.__name__}: {kind}{first[0]}")
    if failures:
        raise AssertionError(
            f"{type(estimator).__name__} fails {len(failures)} of {len(checks)} checks:\n"
            + "\n".join(failures)
        )
