"""The benchmarks by name: what each one is and how the paper trains on it.

Sizes and hyperparameters are those of the paper's data set tables; ``digits`` is
scikit-learn's bundled set, which needs no download and serves examples and quick checks.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class OpenML:
    """A data set on openml.org, by its id there."""

    id: int

    def __str__(self) -> str:
        return f"https://www.openml.org/d/{self.id}"


@dataclass(frozen=True)
class ImageArchive:
    """A zip file of images, one folder a class."""

    url: str

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True)
class ScikitLearn:
    """A data set bundled with scikit-learn, by the function that loads it."""

    function: str

    def __str__(self) -> str:
        return f"sklearn.datasets.{self.function}"


Source: TypeAlias = OpenML | ImageArchive | ScikitLearn
Images: TypeAlias = Literal["proper", "published"]


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """One benchmark: its instances, its binary task and its training recipe.

    Use ``dataclasses.replace`` to describe a set of your own in the same file layout, with
    ``digest=None`` when there is no published content to compare with.

    Parameters
    ----------
    name, title : str
        Short name, also the stem of its files, and the name for tables and figures.
    shape : tuple of int
        Shape of one instance.
    class_names : tuple of str
        Names of the original classes, in label order.
    positive : tuple of int
        Original labels that make up the positive class.
    n_train, n_test : int
        Instances in each part.
    official_split : bool
        Whether the split is part of the data; else instances are divided anew for each seed.
    n_pairs : int
        Pairs sampled for training.
    scale : float
        What :func:`as_features` divides by: 255 for images; 1 for the tables of small
        integers, because the model normalises its input.
    source : OpenML, ImageArchive, ScikitLearn or None
        Where the data are published; None when they can only be put in place by hand.
    digest : str or None
        :func:`content_digest` of the published content, or None when it is not known.
    epochs, batch_size, learning_rate, weight_decay, model
        Training recipe, with Adam.
    images : {"proper", "published"}
        How colour images are prepared; see :func:`load`.

    Examples
    --------
    >>> spec = get_spec("letter")
    >>> spec.n_features, spec.n_classes, spec.n_pairs
    (16, 26, 4000)
    >>> spec.is_positive([0, 12, 13])
    array([ True,  True, False])
    """

    name: str
    title: str
    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    positive: tuple[int, ...]
    n_train: int
    n_test: int
    official_split: bool
    n_pairs: int
    scale: float
    source: Source | None = None
    digest: str | None = None
    epochs: int = 200
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    batch_size: int = 256
    model: Literal["mlp", "resnet34", "resnet32"] = "mlp"
    images: Images = "proper"

    @property
    def n_classes(self) -> int:
        """Number of original classes."""
        return len(self.class_names)

    @property
    def n_features(self) -> int:
        """Number of values in one instance."""
        return math.prod(self.shape)

    @property
    def n_instances(self) -> int:
        """Number of instances, both parts together."""
        return self.n_train + self.n_test

    def is_positive(self, y: ArrayLike) -> NDArray[np.bool_]:
        """Binary labels: whether each original label belongs to the positive class."""
        return np.isin(np.asarray(y), self.positive)


_SOURCES: dict[str, Callable[[Any], Source]] = {
    "openml": OpenML,
    "archive": ImageArchive,
    "sklearn": ScikitLearn,
}


def _read() -> Iterator[tuple[str, DatasetSpec]]:
    text = resources.files("pairlearn.data").joinpath("benchmarks.toml").read_text("utf-8")
    for name, entry in tomllib.loads(text).items():
        ((kind, place),) = entry.pop("source").items()
        entry |= {field: tuple(entry[field]) for field in ("shape", "class_names", "positive")}
        yield name, DatasetSpec(name=name, source=_SOURCES[kind](place), **entry)


SPECS: Mapping[str, DatasetSpec] = MappingProxyType(dict(_read()))
"""Every benchmark by name, in the order of the paper's tables."""


def get_spec(name: str) -> DatasetSpec:
    """The benchmark called ``name``, one of the keys of ``SPECS``; ValueError if there is none.

    Examples
    --------
    >>> get_spec("cifar10").model
    'resnet34'
    """
    if name in SPECS:
        return SPECS[name]
    close = difflib.get_close_matches(str(name), SPECS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(SPECS)}"
    raise ValueError(f"name={name!r} is not a benchmark: {hint}")
