"""PairwiseTransformer against the transformer itself on instances below each other."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import VarianceThreshold
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils import get_tags

from pairlearn.estimators import PairwiseTransformer

RNG = np.random.default_rng(0)
PAIRS = RNG.normal(size=(30, 2, 4)) * [1, 2, 3, 4]


def test_both_ends_are_fitted_and_transformed_alike() -> None:
    found = PairwiseTransformer(StandardScaler()).fit_transform(PAIRS)
    ends = np.concatenate([PAIRS[:, 0], PAIRS[:, 1]])
    assert found == pytest.approx((PAIRS - ends.mean(0)) / ends.std(0))


def test_the_number_of_features_may_change_and_instances_pass_straight() -> None:
    reduce = PairwiseTransformer(PCA(2, random_state=0)).fit(PAIRS)
    transformed = reduce.transform(PAIRS)
    assert transformed.shape == (30, 2, 2)
    assert np.allclose(transformed[:, 1], reduce.transform(PAIRS[:, 1]))
    assert list(reduce.get_feature_names_out()) == ["pca0", "pca1"]
    assert reduce.n_features_in_ == 4


def test_sparse_output_becomes_pairs() -> None:
    pairs = np.array([[["a"], ["b"]], [["b"], ["b"]]])
    found = PairwiseTransformer(OneHotEncoder()).fit_transform(pairs)
    assert found.tolist() == [[[1, 0], [0, 1]], [[0, 1], [0, 1]]]


def test_it_clones_searches_and_leaves_its_transformer_alone() -> None:
    scale = StandardScaler()
    both = PairwiseTransformer(scale).fit(PAIRS)
    assert both.transformer is scale and not hasattr(scale, "mean_")
    copied = clone(both)
    assert not hasattr(copied, "transformer_")
    assert copied.set_params(transformer__with_mean=False).transformer.with_mean is False
    assert scale.with_mean is True
    assert get_tags(both).input_tags.three_d_array


def test_feature_names_only_where_the_transformer_has_them() -> None:
    plain = PairwiseTransformer(FunctionTransformer())
    assert not hasattr(plain, "get_feature_names_out")
    selected = PairwiseTransformer(VarianceThreshold(5)).fit(PAIRS)
    assert list(selected.get_feature_names_out(["a", "b", "c", "d"])) == ["c", "d"]


def test_bad_input_is_named() -> None:
    both = PairwiseTransformer(StandardScaler())
    with pytest.raises(NotFittedError):
        both.transform(PAIRS)
    with pytest.raises(ValueError, match=r"X must be pairs of shape \(n, 2, d\) or .*\(3, 3, 4\)"):
        both.fit(np.zeros((3, 3, 4)))
    both.fit(PAIRS)
    for wrong in (PAIRS[:, :, :3], PAIRS[:, 0, :3]):
        with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
            both.transform(wrong)


def test_data_frames_keep_their_names() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(PAIRS[:, 0], columns=list("abcd"))
    both = PairwiseTransformer(StandardScaler()).fit(frame)
    assert list(both.feature_names_in_) == list("abcd")
    assert both.transform(frame).shape == (30, 4)
