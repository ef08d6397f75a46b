"""Classifiers from judged pairs in scikit-learn's manner."""

from pairlearn.estimators.classifier import PairClassifier
from pairlearn.estimators.completion import complete_and_fit
from pairlearn.estimators.features import PairwiseTransformer
from pairlearn.estimators.folder_format import ModelFolderError
from pairlearn.estimators.instances import SeenItemsWarning
from pairlearn.estimators.onnx_export import export_onnx
from pairlearn.estimators.pair_files import rewrite_pairs
from pairlearn.estimators.population import KnownClassesWarning, PriorMismatchWarning
from pairlearn.estimators.prediction import predict_file
from pairlearn.estimators.splits import Folds, ItemKFold, hold_out_items, split_items
from pairlearn.estimators.streams import fit_file

__all__ = [
    "Folds",
    "ItemKFold",
    "KnownClassesWarning",
    "ModelFolderError",
    "PairClassifier",
    "PairwiseTransformer",
    "PriorMismatchWarning",
    "SeenItemsWarning",
    "complete_and_fit",
    "export_onnx",
    "fit_file",
    "hold_out_items",
    "predict_file",
    "rewrite_pairs",
    "split_items",
]
