"""Classifiers from judged pairs in scikit-learn's manner."""

from pairlearn.estimators.classifier import PairClassifier as PairClassifier
from pairlearn.estimators.features import PairwiseTransformer as PairwiseTransformer
from pairlearn.estimators.files import predict_file as predict_file
from pairlearn.estimators.folder_format import ModelFolderError as ModelFolderError
from pairlearn.estimators.instances import SeenItemsWarning as SeenItemsWarning
from pairlearn.estimators.parameters import TrainingOptions as TrainingOptions
from pairlearn.estimators.splits import ItemKFold as ItemKFold
from pairlearn.estimators.splits import hold_out_items as hold_out_items
from pairlearn.estimators.splits import split_items as split_items
