"""The benchmarks: their descriptions, their data, and their binary tasks.

>>> from pairlearn.data import as_features, load, split
>>> digits = load("digits")
>>> part = split(digits, seed=0)
>>> as_features(part.x_train, digits.spec).shape
(1436, 64)
"""

from pairlearn.data.dataset import SPECS as SPECS
from pairlearn.data.dataset import Dataset as Dataset
from pairlearn.data.dataset import DatasetSpec as DatasetSpec
from pairlearn.data.dataset import Split as Split
from pairlearn.data.dataset import as_features as as_features
from pairlearn.data.dataset import as_images as as_images
from pairlearn.data.dataset import content_digest as content_digest
from pairlearn.data.dataset import get_spec as get_spec
from pairlearn.data.dataset import split as split
from pairlearn.data.dataset import split_indices as split_indices
from pairlearn.data.loading import DatasetNotFoundError as DatasetNotFoundError
from pairlearn.data.loading import cache_folder as cache_folder
from pairlearn.data.loading import data_folder as data_folder
from pairlearn.data.loading import load as load
from pairlearn.data.loading import load_cifar10h as load_cifar10h
from pairlearn.data.loading import write_npz_atomically as write_npz_atomically
from pairlearn.data.sources import DatasetCorruptError as DatasetCorruptError
from pairlearn.data.sources import ImageArchive as ImageArchive
from pairlearn.data.sources import OpenML as OpenML
from pairlearn.data.sources import ScikitLearn as ScikitLearn
