"""Scikit-learn transformers on both ends of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


def _names_features(self: PairwiseTransformer) -> bool:
    getattr(self.transformer, "get_feature_names_out")  # noqa: B009  (its error says what lacks)
    return True


class PairwiseTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Apply a transformer of instances to pairs of them, and to instances as they are.

    Fits on the 2n instances of pairs (n, 2, d), so that x and x' are treated the same. Transforms
    pairs to (n, 2, d') and single instances (m, d) to (m, d'): a `Pipeline` with it in front of a
    `PairClassifier` fits on pairs and predicts on instances.

    Parameters
    ----------
    transformer : scikit-learn transformer
        For instance StandardScaler or PCA. It is cloned; the fitted one is ``transformer_``.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> pairs = np.array([[[0.0], [2.0]], [[4.0], [2.0]]])
    >>> scale = PairwiseTransformer(StandardScaler()).fit(pairs)
    >>> scale.transform(pairs).shape, scale.transform([[2.0]])
    ((2, 2, 1), array([[0.]]))
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> PairwiseTransformer:
        """Fit the transformer to all ends of pairs (n, 2, d), or to instances (m, d).

        ``y`` is ignored: labels of pairs are none of their ends.
        """
        flat, _ = _instances(X)
        self.transformer_ = clone(self.transformer).fit(flat)
        self.n_features_in_ = flat.shape[1]
        if hasattr(self.transformer_, "feature_names_in_"):
            self.feature_names_in_ = self.transformer_.feature_names_in_
        return self

    def transform(self, X: Any) -> Any:
        """Transform pairs (n, 2, d) to (n, 2, d'), instances (m, d) to (m, d')."""
        check_is_fitted(self)
        flat, paired = _instances(X)
        if flat.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {flat.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        transformed = self.transformer_.transform(flat)
        if not paired:
            return transformed
        dense = transformed.toarray() if hasattr(transformed, "toarray") else transformed
        return np.asarray(dense).reshape(-1, 2, dense.shape[1])

    @available_if(_names_features)  # type: ignore[untyped-decorator]
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the features of each end, by the transformer."""
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = True
        return tags


def _instances(X: Any) -> tuple[Any, bool]:
    """The instances of X below each other, and whether X was pairs."""
    if hasattr(X, "columns"):  # a DataFrame of instances keeps its column names
        return X, False
    array = np.asarray(X)
    if array.ndim == 2:
        return array, False
    if array.ndim == 3 and array.shape[1] == 2:
        return array.reshape(-1, array.shape[2]), True
    raise ValueError(
        f"X must be pairs of shape (n, 2, d) or instances of shape (m, d); got {array.shape}"
    )
