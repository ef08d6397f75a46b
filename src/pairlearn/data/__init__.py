"""The benchmarks: their descriptions, their data, and their binary tasks.

>>> from pairlearn.data import as_features, load, split
>>> digits = load("digits")
>>> part = split(digits, seed=0)
>>> as_features(part.x_train, digits.spec).shape
(1436, 64)
"""

from pairlearn.data.dataset import (
    Dataset,
    Split,
    as_features,
    as_images,
    content_digest,
    split,
    split_indices,
)
from pairlearn.data.loading import (
    DatasetNotFoundError,
    cache_folder,
    data_folder,
    load,
    load_cifar10h,
    write_npz_atomically,
)
from pairlearn.data.registry import (
    SPECS,
    DatasetSpec,
    ImageArchive,
    OpenML,
    ScikitLearn,
    get_spec,
)
from pairlearn.data.sources import DatasetCorruptError

__all__ = [
    "SPECS", "Dataset", "DatasetCorruptError", "DatasetNotFoundError", "DatasetSpec",
    "ImageArchive", "OpenML", "ScikitLearn", "Split", "as_features", "as_images",
    "cache_folder", "content_digest", "data_folder", "get_spec", "load", "load_cifar10h",
    "split", "split_indices", "write_npz_atomically",
]  # fmt: skip
