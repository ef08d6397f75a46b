"""The benchmarks: their descriptions, their data, and their binary tasks.

>>> from pairlearn.datasets import as_features, load, split
>>> digits = load("digits")
>>> part = split(digits, seed=0)
>>> as_features(part.x_train, digits.spec).shape
(1436, 64)
"""

from pairlearn.datasets.dataset import Dataset as Dataset
from pairlearn.datasets.dataset import Split as Split
from pairlearn.datasets.dataset import as_features as as_features
from pairlearn.datasets.dataset import as_images as as_images
from pairlearn.datasets.dataset import split as split
from pairlearn.datasets.dataset import split_indices as split_indices
from pairlearn.datasets.digests import content_digest as content_digest
from pairlearn.datasets.errors import DatasetCorruptError as DatasetCorruptError
from pairlearn.datasets.errors import DatasetNotFoundError as DatasetNotFoundError
from pairlearn.datasets.folders import cache_folder as cache_folder
from pairlearn.datasets.folders import data_folder as data_folder
from pairlearn.datasets.loading import load as load
from pairlearn.datasets.registry import SPECS as SPECS
from pairlearn.datasets.registry import DatasetSpec as DatasetSpec
from pairlearn.datasets.registry import get_spec as get_spec
from pairlearn.datasets.storage import write_npz_atomically as write_npz_atomically
