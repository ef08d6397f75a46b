"""The benchmarks by name, and a benchmark in memory: its split, features and digest.

Sizes and hyperparameters are those of the paper's data set tables; ``digits``, bundled with
scikit-learn, needs no download and serves examples and quick checks.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlearn_bench.data.sources import Arrays, OpenML, bundled

# Keeps this stream of random numbers apart from others started from the same seed.
_SPLIT_STREAM = int.from_bytes(b"split", "big")


Source: TypeAlias = OpenML | Callable[[], Arrays]
Images: TypeAlias = Literal["proper", "published"]


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """One benchmark: its instances, its binary task and its training recipe.

    Use ``dataclasses.replace`` to describe your own data in the same file layout, with
    ``digest=None`` if there is no published content to compare with.

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
        Whether the split is part of the data; otherwise it is drawn for each seed.
    n_pairs : int
        Pairs sampled for training.
    scale : float
        Divisor in :func:`as_features`: 255 for images; 1 for the tables of small integers,
        because the model normalises its input.
    source : OpenML, callable or None
        Where the data are published, or a function that returns the arrays of the file; None if
        there is only a file.
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
    model: str = "mlp"
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
    "sklearn": lambda function: partial(bundled, function),
}


def _read_specs() -> Iterator[tuple[str, DatasetSpec]]:
    text = resources.files("pairlearn_bench.data").joinpath("benchmarks.toml").read_text("utf-8")
    for name, entry in tomllib.loads(text).items():
        source = [_SOURCES[kind](place) for kind, place in entry.pop("source", {}).items()]
        entry |= {field: tuple(entry[field]) for field in ("shape", "class_names", "positive")}
        yield name, DatasetSpec(name=name, source=source[0] if source else None, **entry)


_SPECS = dict(_read_specs())
_BUILT_IN = frozenset(_SPECS)
#: Those of the paper.
PAPER_DATASETS: tuple[str, ...] = tuple(name for name in _SPECS if name != "digits")
#: Every benchmark by name, in the order of the paper's tables, then those that were registered.
SPECS: Mapping[str, DatasetSpec] = MappingProxyType(_SPECS)


def register_dataset(spec: DatasetSpec) -> DatasetSpec:
    """Add a data set to `SPECS`; `load` and ``pairlearn bench … --datasets`` then know its name.

    Raises
    ------
    ValueError
        If a built-in data set has its name, or the name cannot be that of a file.

    Examples
    --------
    >>> from dataclasses import replace
    >>> large = replace(get_spec("digits"), name="large-digits", positive=(5, 6, 7, 8, 9))
    >>> register_dataset(large) is get_spec("large-digits")
    True
    """
    if spec.name in _BUILT_IN:
        raise ValueError(f"data set {spec.name!r} is built in; choose another name")
    if re.fullmatch(r"[\w-]+", spec.name) is None:
        raise ValueError(f"name must be letters, digits, _ and -; got {spec.name!r}")
    _SPECS[spec.name] = spec
    return spec


def get_spec(name: str) -> DatasetSpec:
    """The benchmark called ``name``, a key of ``SPECS``; ValueError if there is none.

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


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Instances ``x`` with their original multi-class labels ``y``, in their original order.

    Both are uint8, labels from 0 to ``spec.n_classes - 1``. If the data have an official split,
    the first ``spec.n_train`` rows are the training part and the rest is the test part.
    """

    spec: DatasetSpec
    x: NDArray[np.uint8]
    y: NDArray[np.uint8]

    def __post_init__(self) -> None:
        spec, n = self.spec, len(self.y)
        for name, array, shape in (("x", self.x, (n, *spec.shape)), ("y", self.y, (n,))):
            if array.dtype != np.uint8 or array.shape != shape:
                raise ValueError(
                    f"{name} of {spec.name} is {array.dtype} of shape {array.shape}; "
                    f"give uint8 of shape {shape}"
                )
        if n != spec.n_instances:
            raise ValueError(
                f"{spec.name} has {n} instances; give {spec.n_instances} "
                f"({spec.n_train} for training and {spec.n_test} for testing)"
            )
        if n and int(self.y.max()) >= spec.n_classes:
            raise ValueError(
                f"y of {spec.name} has the label {int(self.y.max())}; "
                f"give labels 0 to {spec.n_classes - 1}"
            )

    def __repr__(self) -> str:
        return (
            f"<Dataset {self.spec.name}: {len(self.y)} instances of shape {self.spec.shape}, "
            f"{self.spec.n_classes} classes>"
        )


def split_indices(
    dataset: Dataset, seed: int
) -> tuple[slice, slice] | tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of the training and of the test part.

    An official split is kept, whatever the seed (non-negative), with rows in their original order,
    as slices. A pooled set is split 80/20 within the positive and within the negative class; in
    both parts the positives come first, each class in random order. A seed gives the same instances
    on every machine and for every row order, so that a file and a download of the same data agree.

    Examples
    --------
    >>> from pairlearn_bench.data import load
    >>> train, test = split_indices(load("digits"), seed=0)
    >>> len(train), len(test), len(set(train) & set(test))
    (1436, 361, 0)
    """
    if seed < 0:
        raise ValueError(f"seed={seed} is negative; give a seed of 0 or more")
    spec = dataset.spec
    if spec.official_split:
        return slice(0, spec.n_train), slice(spec.n_train, spec.n_instances)
    order = canonical_order(dataset.x, dataset.y)
    # numpy guarantees the raw PCG64 stream across versions, but not Generator.permutation.
    stream = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(_SPLIT_STREAM,)))
    order = order[np.argsort(stream.random_raw(len(order)), kind="stable")]
    positive = spec.is_positive(dataset.y)[order]
    parts = (order[positive], order[~positive])
    # Four fifths of each *binary* class, rounded down: splitting by original class, over all rows
    # or with other rounding does not give the published 4,495 rows of Optdigits.
    cuts = [len(part) * 4 // 5 for part in parts]
    train = np.concatenate([part[:cut] for part, cut in zip(parts, cuts, strict=True)])
    test = np.concatenate([part[cut:] for part, cut in zip(parts, cuts, strict=True)])
    return train, test


def as_features(x: NDArray[np.uint8], spec: DatasetSpec) -> NDArray[np.float32]:
    """Instances (n, ...) of uint8 as rows of float32 (n, spec.n_features), over ``spec.scale``.

    Images are scaled to [0, 1], except "published" ones (see :func:`load`). The integers of the
    UCI tables are not scaled, because the model normalises its input.

    Examples
    --------
    >>> from pairlearn_bench.data import get_spec
    >>> float(as_features(np.full((2, 28, 28), 255, np.uint8), get_spec("mnist")).max())
    1.0
    """
    if x.shape[1:] != spec.shape:
        raise ValueError(
            f"x has the shape {x.shape}; instances of {spec.name} have (n, *{spec.shape})"
        )
    features = x.reshape(len(x), spec.n_features).astype(np.float32)
    if spec.images == "proper":
        features /= np.float32(spec.scale)
    return features


def as_images(x: NDArray[np.uint8], spec: DatasetSpec) -> NDArray[np.float32]:
    """Images with the channels first, divided by ``spec.scale``, for convolutional models.

    From uint8 (n, height, width[, channels]) to float32 (n, channels, height, width). With
    ``spec.images="published"`` the values are reshaped in their order and not scaled: see
    :func:`load`.

    Examples
    --------
    >>> from pairlearn_bench.data import get_spec
    >>> as_images(np.zeros((2, 32, 32, 3), np.uint8), get_spec("cifar10")).shape
    (2, 3, 32, 32)
    """
    if len(spec.shape) == 1:
        raise ValueError(f"{spec.name} has no images; use as_features for its feature vectors")
    height, width, channels = (*spec.shape, 1)[:3]
    features = as_features(x, spec)
    if spec.images == "published":
        return features.reshape(-1, channels, height, width)
    channels_last = features.reshape(-1, height, width, channels)
    return np.ascontiguousarray(channels_last.transpose(0, 3, 1, 2))


def canonical_order(x: NDArray[np.uint8], y: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Order of the rows by label, then by their values from the first to the last.

    Copies of a data set with rows in different orders agree after sorting by it: tied rows are
    equal in every value.
    """
    columns = x.reshape(len(x), -1).T
    return np.lexsort((*columns[::-1], y))


def content_digest(x: NDArray[np.uint8], y: NDArray[np.uint8], *, pooled: bool = False) -> str:
    """SHA-256 of a data set's content: type, shape and bytes of ``x``, then of ``y``.

    With ``pooled`` the rows are sorted first: sources of the pooled sets differ in their row
    order, which has a meaning only in an official split.
    """
    if pooled:
        order = canonical_order(x, y)
        x, y = x[order], y[order]
    digest = hashlib.sha256()
    for array in (x, y):
        digest.update(f"{array.dtype.name} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
