"""Sources of data sets: OpenML and scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pairlearn_bench.data.dataset import DatasetSpec

Arrays: TypeAlias = dict[str, NDArray[np.generic]]


class DatasetCorruptError(ValueError):
    """A file or a download is damaged or holds other data than it should."""


@dataclass(frozen=True)
class OpenML:
    """A data set on openml.org, by its id there."""

    id: int

    def __str__(self) -> str:
        return f"https://www.openml.org/d/{self.id}"

    def fetch(self, spec: DatasetSpec) -> Arrays:
        """Download the data set with scikit-learn."""
        from sklearn.datasets import fetch_openml

        # Our cache keeps the result, so a second copy in scikit-learn's would be waste;
        # liac-arff is the parser that needs no pandas.
        bunch = fetch_openml(data_id=self.id, as_frame=False, parser="liac-arff", cache=False)
        x = np.asarray(bunch.data)
        if x.ndim != 2 or x.shape[1] != spec.n_features:
            raise DatasetCorruptError(
                f"{self} has the shape {x.shape}; {spec.name} has {spec.n_features} features"
            )
        x = x.reshape(-1, *spec.shape)
        if len(spec.shape) == 3:
            # OpenML keeps CIFAR's own order: the whole red plane, then green, then blue.
            height, width, channels = spec.shape
            x = x.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
        # Labels are written as "7" or as "A".
        codes = {name: code for code, name in enumerate(spec.class_names)}
        codes |= {str(code): code for code in range(spec.n_classes)}
        names, rows = np.unique(np.asarray(bunch.target).astype(str), return_inverse=True)
        unknown = [str(name) for name in names if name not in codes]
        if unknown:
            raise DatasetCorruptError(f"{self} has labels unknown to {spec.name}: {unknown[:5]}")
        return {"x": x, "y": np.array([codes[name] for name in names], dtype=np.uint8)[rows]}


def bundled(function: str) -> Arrays:
    """A data set of scikit-learn, by the function that loads it."""
    from sklearn import datasets

    x, y = getattr(datasets, function)(return_X_y=True)
    return {"x": x, "y": y}
