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

_DIGITS = tuple("0123456789")
_LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_KUZUSHIJI = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
_CLOTHES = (
    *("t-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
_OBJECTS = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
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
    model : {"mlp", "resnet34"}
        Architecture.

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
    model: Literal["mlp", "resnet34"] = "mlp"

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


_SPECS = (
    DatasetSpec(
        name="mnist",
        title="MNIST",
        shape=(28, 28),
        class_names=_DIGITS,
        positive=_EVEN,
        n_train=60_000,
        n_test=10_000,
        official_split=True,
        n_pairs=15_000,
        scale=255.0,
        source=OpenML(554),
        digest="548f330c3b01d118e8d0d8274c01828d1adb73c7eb4f500a435b7b43508f640c",
    ),
    DatasetSpec(
        name="kmnist",
        title="Kuzushiji-MNIST",
        shape=(28, 28),
        class_names=_KUZUSHIJI,
        positive=_EVEN,
        n_train=60_000,
        n_test=10_000,
        official_split=True,
        n_pairs=15_000,
        scale=255.0,
        source=OpenML(41_982),
        digest="137c1b27623b691dcf829bb24fc2e4d8c4eaadc8e9ea43c06ba479a184d0f000",
    ),
    DatasetSpec(
        name="fashion-mnist",
        title="Fashion-MNIST",
        shape=(28, 28),
        class_names=_CLOTHES,
        positive=_EVEN,
        n_train=60_000,
        n_test=10_000,
        official_split=True,
        n_pairs=15_000,
        scale=255.0,
        source=OpenML(40_996),
        digest="877d538b6735cc8ed183fe53972709339e4860a071d352b1e540a255447f1f4d",
    ),
    DatasetSpec(
        name="cifar10",
        title="CIFAR-10",
        shape=(32, 32, 3),
        class_names=_OBJECTS,
        positive=(2, 3, 4, 5, 6, 7),
        n_train=50_000,
        n_test=10_000,
        official_split=True,
        n_pairs=10_000,
        scale=255.0,
        source=OpenML(40_927),
        digest="90ccaecdd173211c3beb4541ecb3c3f9465199aaf3ea8f76d0e3bff44dbc1222",
        learning_rate=5e-4,
        batch_size=128,
        model="resnet34",
    ),
    DatasetSpec(
        name="optdigits",
        title="Optdigits",
        shape=(64,),
        class_names=_DIGITS,
        positive=_EVEN,
        n_train=4_495,
        n_test=1_125,
        official_split=False,
        n_pairs=1_200,
        scale=1.0,
        source=OpenML(28),
        digest="be34cfc0aa63d2a9ea63a72ccb41c4533879d545822876df973c2aef65ad1939",
    ),
    DatasetSpec(
        name="pendigits",
        title="Pendigits",
        shape=(16,),
        class_names=_DIGITS,
        positive=_EVEN,
        n_train=8_793,
        n_test=2_199,
        official_split=False,
        n_pairs=2_500,
        scale=1.0,
        source=OpenML(32),
        digest="2e34568383e5050e581cf4b286d7ebfe4aee1f621e20d121de9c0811e9dbc630",
    ),
    DatasetSpec(
        name="letter",
        title="Letter",
        shape=(16,),
        class_names=_LETTERS,
        positive=tuple(range(13)),
        n_train=16_000,
        n_test=4_000,
        official_split=False,
        n_pairs=4_000,
        scale=1.0,
        source=OpenML(6),
        digest="395188373f2667477b01ecc24a56080b15b201622023e8c18372e11e60bcee8b",
    ),
    DatasetSpec(
        name="pmu-ud",
        title="PMU-UD",
        shape=(28, 28),
        class_names=_DIGITS,
        positive=_EVEN,
        n_train=4_144,
        n_test=1_036,
        official_split=False,
        n_pairs=1_000,
        scale=255.0,
        source=ImageArchive("https://archive.ics.uci.edu/static/public/469/pmu+ud.zip"),
    ),
    DatasetSpec(
        name="digits",
        title="Digits",
        shape=(64,),
        class_names=_DIGITS,
        positive=_EVEN,
        n_train=1_436,
        n_test=361,
        official_split=False,
        n_pairs=400,
        scale=1.0,
        source=ScikitLearn("load_digits"),
        digest="029e98a5150def71d6fc036d804d8626c7f98849d6f3f4a588f3c61c6f3dd873",
    ),
)

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
