"""Models that a command loads."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier

__all__ = ["load_model", "require_estimators"]


def require_estimators() -> None:
    """Refuse to begin where a package is missing that fitted models need.

    Examples
    --------
    >>> require_estimators()
    """
    for package, name in (("sklearn", "scikit-learn"), ("safetensors", "safetensors")):
        if find_spec(package) is None:
            raise ImportError(f'{name} is needed: pip install "pairlearn[estimators]"')


def load_model(path: Path) -> PairClassifier:
    """Read a model folder.

    Examples
    --------
    >>> load_model(Path("no/such/model"))
    Traceback (most recent call last):
    pairlearn.estimators.folder_format.ModelFolderError: no/such/model: there is no such folder
    """
    require_estimators()
    from pairlearn.estimators import PairClassifier

    return PairClassifier.load(path)
