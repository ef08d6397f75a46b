"""The benchmarks: their descriptions, their data, and their binary tasks.

>>> from pairlearn_bench.data import as_features, load, split_indices
>>> digits = load("digits")
>>> train, test = split_indices(digits, seed=0)
>>> as_features(digits.x[train], digits.spec).shape
(1436, 64)
"""

from pairlearn_bench.data.dataset import SPECS as SPECS
from pairlearn_bench.data.dataset import Dataset as Dataset
from pairlearn_bench.data.dataset import DatasetSpec as DatasetSpec
from pairlearn_bench.data.dataset import as_features as as_features
from pairlearn_bench.data.dataset import as_images as as_images
from pairlearn_bench.data.dataset import content_digest as content_digest
from pairlearn_bench.data.dataset import get_spec as get_spec
from pairlearn_bench.data.dataset import register_dataset as register_dataset
from pairlearn_bench.data.dataset import split_indices as split_indices
from pairlearn_bench.data.loading import DatasetNotFoundError as DatasetNotFoundError
from pairlearn_bench.data.loading import cache_folder as cache_folder
from pairlearn_bench.data.loading import data_folder as data_folder
from pairlearn_bench.data.loading import load as load
from pairlearn_bench.data.loading import load_cifar10h as load_cifar10h
from pairlearn_bench.data.loading import write_npz_atomically as write_npz_atomically
from pairlearn_bench.data.sources import DatasetCorruptError as DatasetCorruptError
from pairlearn_bench.data.sources import OpenML as OpenML
