"""The benchmarks by name: what each one is and how the paper trains on it.

Sizes and hyperparameters are those of the paper's data set tables; ``digits`` is
scikit-learn's bundled set, which needs no download and serves examples and quick checks.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

_DIGITS = "0 1 2 3 4 5 6 7 8 9"
_CLOTHES = "t-shirt trouser pullover dress coat sandal shirt sneaker bag ankle_boot"
_OBJECTS = "airplane automobile bird cat deer dog frog horse ship truck"
_EVEN = (0, 2, 4, 6, 8)


@dataclass(frozen=True)
class OpenML:
    """A data set on openml.org, by its id there.

    Examples
    --------
    >>> print(OpenML(554))
    https://www.openml.org/d/554
    """

    id: int

    def __str__(self) -> str:
        return f"https://www.openml.org/d/{self.id}"


@dataclass(frozen=True)
class ImageArchive:
    """A zip file of images, one folder a class.

    Examples
    --------
    >>> print(ImageArchive("https://example.org/digits.zip"))
    https://example.org/digits.zip
    """

    url: str

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True)
class ScikitLearn:
    """A data set bundled with scikit-learn, by the function that loads it.

    Examples
    --------
    >>> print(ScikitLearn("load_digits"))
    sklearn.datasets.load_digits
    """

    function: str

    def __str__(self) -> str:
        return f"sklearn.datasets.{self.function}"


Source: TypeAlias = OpenML | ImageArchive | ScikitLearn
Images: TypeAlias = Literal["proper", "published"]


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """One benchmark: its instances, its binary task and its training recipe.

    Use ``dataclasses.replace`` to describe a set of your own in the same file layout,
    with ``digest=None`` when there is no published content to compare with.

    Parameters
    ----------
    name : str
        Short name, also the stem of its files.
    title : str
        Name for tables and figures.
    shape : tuple of int
        Shape of one instance.
    class_names : tuple of str
        Names of the original classes, in label order.
    positive : tuple of int
        Original labels that make up the positive class.
    n_train, n_test : int
        Instances in each part. Where ``official_split`` is False they are pooled and
        divided anew for each seed.
    official_split : bool
        Whether the split into training and test part is part of the data.
    n_pairs : int
        Pairs sampled for training.
    scale : float
        What :func:`as_features` divides by: 255 for images; 1 for the tables of small
        integers, because the model normalises its input.
    source : OpenML, ImageArchive, ScikitLearn or None
        Where the data are published; None when they can only be put in place by hand.
    digest : str or None
        :func:`content_digest` of the published content, or None when it is not known.
    epochs, batch_size : int
        Training recipe.
    learning_rate, weight_decay : float
        Training recipe (Adam).
    model : {"mlp", "resnet34", "resnet32"}
        Architecture.
    images : {"proper", "published"}
        How :func:`as_features` and :func:`as_images` prepare colour images; see
        :func:`load`.

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


def _grey(name: str, title: str, classes: str, source: Source, digest: str) -> DatasetSpec:
    """A set of the size and layout of MNIST."""
    return DatasetSpec(
        name=name, title=title, shape=(28, 28), class_names=_names(classes), positive=_EVEN,
        n_train=60_000, n_test=10_000, official_split=True, n_pairs=15_000, scale=255.0,
        source=source, digest=digest,
    )  # fmt: skip


def _pooled(
    name: str, title: str, features: int, sizes: tuple[int, int], n_pairs: int, source: Source,
    digest: str, classes: str = _DIGITS, positive: tuple[int, ...] = _EVEN,
) -> DatasetSpec:  # fmt: skip
    """A table of small integers, divided anew for each seed."""
    return DatasetSpec(
        name=name, title=title, shape=(features,), class_names=_names(classes), positive=positive,
        n_train=sizes[0], n_test=sizes[1], official_split=False, n_pairs=n_pairs, scale=1.0,
        source=source, digest=digest,
    )  # fmt: skip


def _names(classes: str) -> tuple[str, ...]:
    return tuple(name.replace("_", " ") for name in classes.split())


_SPECS = (
    _grey(
        "mnist", "MNIST", _DIGITS, OpenML(554),
        "548f330c3b01d118e8d0d8274c01828d1adb73c7eb4f500a435b7b43508f640c",
    ),
    _grey(
        "kmnist", "Kuzushiji-MNIST", "o ki su tsu na ha ma ya re wo", OpenML(41_982),
        "137c1b27623b691dcf829bb24fc2e4d8c4eaadc8e9ea43c06ba479a184d0f000",
    ),
    _grey(
        "fashion-mnist", "Fashion-MNIST", _CLOTHES, OpenML(40_996),
        "877d538b6735cc8ed183fe53972709339e4860a071d352b1e540a255447f1f4d",
    ),
    DatasetSpec(
        name="cifar10", title="CIFAR-10", shape=(32, 32, 3), class_names=_names(_OBJECTS),
        positive=(2, 3, 4, 5, 6, 7), n_train=50_000, n_test=10_000, official_split=True,
        n_pairs=10_000, scale=255.0, source=OpenML(40_927), learning_rate=5e-4, batch_size=128,
        model="resnet34",
        digest="90ccaecdd173211c3beb4541ecb3c3f9465199aaf3ea8f76d0e3bff44dbc1222",
    ),
    _pooled(
        "optdigits", "Optdigits", 64, (4_495, 1_125), 1_200, OpenML(28),
        "be34cfc0aa63d2a9ea63a72ccb41c4533879d545822876df973c2aef65ad1939",
    ),
    _pooled(
        "pendigits", "Pendigits", 16, (8_793, 2_199), 2_500, OpenML(32),
        "2e34568383e5050e581cf4b286d7ebfe4aee1f621e20d121de9c0811e9dbc630",
    ),
    _pooled(
        "letter", "Letter", 16, (16_000, 4_000), 4_000, OpenML(6),
        "395188373f2667477b01ecc24a56080b15b201622023e8c18372e11e60bcee8b",
        " ".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), tuple(range(13)),
    ),
    DatasetSpec(
        name="pmu-ud", title="PMU-UD", shape=(28, 28), class_names=_names(_DIGITS),
        positive=_EVEN, n_train=4_144, n_test=1_036, official_split=False, n_pairs=1_000,
        scale=255.0,
        source=ImageArchive("https://archive.ics.uci.edu/static/public/469/pmu+ud.zip"),
    ),
    _pooled(
        "digits", "Digits", 64, (1_436, 361), 400, ScikitLearn("load_digits"),
        "029e98a5150def71d6fc036d804d8626c7f98849d6f3f4a588f3c61c6f3dd873",
    ),
)  # fmt: skip

SPECS: Mapping[str, DatasetSpec] = MappingProxyType({spec.name: spec for spec in _SPECS})
"""Every benchmark by name, in the order of the paper's tables."""


def get_spec(name: str) -> DatasetSpec:
    """The benchmark called ``name``.

    Parameters
    ----------
    name : str
        One of the keys of ``SPECS``.

    Returns
    -------
    DatasetSpec

    Raises
    ------
    ValueError
        If there is no benchmark of that name.

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
