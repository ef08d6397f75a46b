"""PairClassifier and PairwiseTransformer by scikit-learn's rules and among its functions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags

from pairlearn import Judgements, PairLabels
from pairlearn.estimators import PairClassifier, PairwiseTransformer, learning
from tables import pair_table
from test_classifier import LABELS, NAN, PAIRS, ROWS, R, X, agreement, draw, linear


def test_cross_validation_splits_arrays_with_gaps_and_pair_labels():
    array = LABELS.to_array().copy()
    array[::10, 0] = NAN
    model = linear(epochs=3)
    table = pair_table(*ROWS.T, *array.T)
    shuffled = KFold(3, shuffle=True, random_state=0)
    for labels, cv in ((array, 3), (LABELS, shuffled), (table, shuffled)):
        scores = cross_val_score(model, PAIRS, labels, cv=cv, error_score="raise")
        assert scores.shape == (3,) and (scores > 0.6).all()


def test_grid_search_chooses_by_accuracy_without_labels():
    grid = {"training__learning_rate": [1e-9, 2e-2]}
    search = GridSearchCV(linear(), grid, cv=3, error_score="raise")
    search.fit(PAIRS, LABELS.to_array())
    assert search.best_params_ == {"training__learning_rate": 2e-2}
    assert agreement(search.best_estimator_) > 0.95


def test_score_is_the_estimated_accuracy():
    classifier = linear().fit(PAIRS, LABELS)
    pairs, labels, r = draw(2000, seed=1)
    positive = classifier.predict_proba(pairs.reshape(-1, 3))[:, 1].reshape(-1, 2) > 0.5
    truth = np.where(positive, r, 1 - r).mean()
    estimate = classifier.estimate_accuracy(pairs, labels)
    assert classifier.score(pairs, labels) == estimate.value
    assert estimate.low < truth < estimate.high


# --- the parts around it --------------------------------------------------------------------


def test_a_scikit_learn_classifier_as_model():
    classifier = PairClassifier(model=LogisticRegression(), random_state=0, target_prior=0.1)
    classifier.fit(PAIRS, LABELS)
    assert classifier.n_iter_ == len(classifier.history_)
    assert [row["epoch"] for row in classifier.history_] == [*range(1, classifier.n_iter_ + 1)]
    assert classifier.predict_proba(X)[:, 1].mean() == pytest.approx(0.1, abs=1e-4)


@pytest.mark.filterwarnings("ignore:this is not an accuracy")
def test_evaluation_knows_of_weights_and_recurring_items():
    rng = np.random.default_rng(0)
    ends = rng.integers((0, 60), (60, 120), (600, 2))
    labels = PairLabels.from_posteriors(*R[ends].T)
    classifier = linear(preprocessor=X).fit(ROWS, LABELS)
    distinct = classifier.estimate_accuracy(ROWS, LABELS)
    recurring = classifier.estimate_accuracy(ends, labels)
    assert recurring.high - recurring.low > distinct.high - distinct.low
    weight = np.where(np.arange(600) < 300, 1.0, 0.0)
    weighted = classifier.score(ROWS, LABELS, sample_weight=weight)
    assert weighted == pytest.approx(classifier.score(ROWS[:300], LABELS[:300]), abs=1e-9)
    evaluation = classifier.evaluate(ROWS, Judgements.from_pairs(ROWS, LABELS))
    assert evaluation.accuracy.value == pytest.approx(distinct.value, abs=1e-6)


def test_weights_count_in_the_estimated_prior():
    """Weights that undo a selection by class bring the prior back."""
    pairs, labels, r = draw(3000, intercept=-3.0)
    weight = np.where(r.mean(1) > 0.3, 1.0, 3.0)
    classifier = linear(risk="confdiff-abs", epochs=1).fit(pairs, labels, sample_weight=weight)
    expected = np.average(labels.similarity, weights=weight)
    assert classifier.prior_ == pytest.approx((1 - np.sqrt(2 * expected - 1)) / 2, abs=1e-9)


def test_certain_probabilities_of_a_scikit_learn_model_have_finite_log_odds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2)).astype(np.float32) * 100
    pairs = np.arange(200).reshape(100, 2)
    labels = PairLabels.from_posteriors(*(x[:, 0] > 0).astype(float)[pairs].T)
    classifier = PairClassifier(
        model=LogisticRegression(C=1e6), preprocessor=x, random_state=0
    ).fit(pairs, labels)
    assert np.isfinite(classifier.decision_function(x)).all()


@pytest.mark.parametrize(
    ("odds", "count", "chosen"),
    [
        (lambda x: 4 * x[:, 0], 60, "linear"),
        (lambda x: 6 * x[:, 0] * x[:, 1], 60, "mlp-bn"),
        (lambda x: 6 * x[:, 0] * x[:, 1], 300, "mlp-bn"),
    ],
)
def test_few_pairs_have_the_model_that_they_need(odds, count, chosen, tmp_path, monkeypatch):
    trainings, train = [], learning.train
    monkeypatch.setattr(
        learning, "train", lambda *args, **options: trainings.append(1) or train(*args, **options)
    )
    x = np.random.default_rng(0).normal(size=(2 * count, 3))
    r = 1 / (1 + np.exp(-odds(x)))
    pairs, labels = x.reshape(-1, 2, 3), PairLabels.from_posteriors(r[::2], r[1::2])
    classifier = PairClassifier(random_state=0).fit(pairs, labels)
    assert len(trainings) == 1, "choosing trains no model"
    classifier.save(tmp_path / "model")
    assert PairClassifier.load(tmp_path / "model").model_ == chosen
    assert clone(classifier).set_params(epochs=1).fit(pairs, labels).model_ == "mlp-bn"


# --- transformers of pairs, beside the transformer of instances -------------------------------


ENDS = np.random.default_rng(0).normal(size=(30, 2, 4)) * [1, 2, 3, 4]


def test_both_ends_are_fitted_and_transformed_alike():
    transformed = PairwiseTransformer(StandardScaler()).fit_transform(ENDS)
    ends = np.concatenate([ENDS[:, 0], ENDS[:, 1]])
    assert transformed == pytest.approx((ENDS - ends.mean(0)) / ends.std(0))


def test_the_number_of_features_may_change_and_instances_pass_straight():
    reduce = PairwiseTransformer(PCA(2, random_state=0)).fit(ENDS)
    transformed = reduce.transform(ENDS)
    assert transformed.shape == (30, 2, 2)
    assert np.allclose(transformed[:, 1], reduce.transform(ENDS[:, 1]))
    assert reduce.n_features_in_ == 4


def test_sparse_output_becomes_pairs():
    pairs = np.array([[["a"], ["b"]], [["b"], ["b"]]])
    transformed = PairwiseTransformer(OneHotEncoder()).fit_transform(pairs)
    assert transformed.tolist() == [[[1, 0], [0, 1]], [[0, 1], [0, 1]]]


def test_a_pairwise_transformer_clones_searches_and_leaves_its_transformer_alone():
    scale = StandardScaler()
    both = PairwiseTransformer(scale).fit(ENDS)
    assert both.transformer is scale and not hasattr(scale, "mean_")
    copied = clone(both)
    assert not hasattr(copied, "transformer_")
    assert copied.set_params(transformer__with_mean=False).transformer.with_mean is False
    assert scale.with_mean is True
    assert get_tags(both).input_tags.three_d_array


def test_pipelines_that_put_out_data_frames_still_take_pairs():
    steps = make_pipeline(PairwiseTransformer(StandardScaler()), linear(epochs=1))
    steps.set_output(transform="pandas").fit(PAIRS, LABELS)
    assert len(steps.predict(PAIRS[:, 0])) == len(PAIRS)


def test_bad_input_of_a_transformer_is_named():
    both = PairwiseTransformer(StandardScaler())
    with pytest.raises(NotFittedError):
        both.transform(ENDS)
    with pytest.raises(ValueError, match=r"X must be pairs of shape \(n, 2, d\) or .*\(3, 3, 4\)"):
        both.fit(np.zeros((3, 3, 4)))
    both.fit(ENDS)
    for wrong in (ENDS[:, :, :3], ENDS[:, 0, :3]):
        with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
            both.transform(wrong)


def test_data_frames_keep_their_names():
    frame = pd.DataFrame(ENDS[:, 0], columns=list("abcd"))
    both = PairwiseTransformer(StandardScaler()).fit(frame)
    assert list(both.feature_names_in_) == list("abcd")
    assert both.transform(frame).shape == (30, 4)
