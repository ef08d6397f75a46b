"""Classifiers from judged pairs in scikit-learn's manner."""

from typing import TYPE_CHECKING, Any

from pairlearn.estimators.classifier import PairClassifier
from pairlearn.estimators.guidance import KnownClassesWarning
from pairlearn.estimators.population import PriorMismatchWarning
from pairlearn.estimators.seen import SeenItemsWarning

if TYPE_CHECKING:
    from pairlearn.estimators.completion import complete_and_fit
    from pairlearn.estimators.cross_validation import ItemKFold
    from pairlearn.estimators.folder_format import ModelFolderError
    from pairlearn.estimators.onnx_export import export_onnx
    from pairlearn.estimators.pairwise import PairwiseTransformer
    from pairlearn.estimators.rewriting import rewrite_pairs
    from pairlearn.estimators.splits import Folds, hold_out_items, split_items
    from pairlearn.estimators.stream_fit import fit_file
    from pairlearn.estimators.streaming import predict_file

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
    "ItemKFold": "cross_validation",
    "ModelFolderError": "folder_format",
    "PairwiseTransformer": "pairwise",
    "complete_and_fit": "completion",
    "export_onnx": "onnx_export",
    "fit_file": "stream_fit",
    "Folds": "splits",
    "hold_out_items": "splits",
    "split_items": "splits",
    "predict_file": "streaming",
    "rewrite_pairs": "rewriting",
}


def __getattr__(name: str) -> Any:
    """What a classifier can do without is loaded when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
