"""Classifiers from judged pairs in scikit-learn's manner."""

from typing import TYPE_CHECKING, Any

from pairlearn.estimators.classifier import PairClassifier
from pairlearn.estimators.instances import SeenItemsWarning
from pairlearn.estimators.population import KnownClassesWarning, PriorMismatchWarning
from pairlearn.estimators.prediction import predict_file
from pairlearn.estimators.splits import Folds, ItemKFold, hold_out_items, split_items

if TYPE_CHECKING:
    from pairlearn.estimators.completion import complete_and_fit
    from pairlearn.estimators.folder_format import ModelFolderError
    from pairlearn.estimators.onnx_export import export_onnx
    from pairlearn.estimators.pair_files import rewrite_pairs
    from pairlearn.estimators.pairwise import PairwiseTransformer
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

_MODULES = {
    "ModelFolderError": "folder_format",
    "PairwiseTransformer": "pairwise",
    "complete_and_fit": "completion",
    "export_onnx": "onnx_export",
    "fit_file": "streams",
    "rewrite_pairs": "pair_files",
}


def __getattr__(name: str) -> Any:
    """What a classifier can do without is loaded when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
