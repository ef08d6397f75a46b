"""PairClassifier on problems small enough to know the answer."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from torch import nn

from pairlearn import PairLabels
from pairlearn.estimators import PairClassifier, TrainingOptions
from pairlearn.io import ItemTable
from pairlearn.judgements import Judgements
from pairlearn.models import MLP
from pairlearn.simulation import simulate
from tables import pair_ids, pair_table

SLOPE = np.array([3.0, -2.0, 0.0])
NAN = np.nan


def linear(**options):
    training = {"learning_rate": 5e-2, "batch_size": 128}
    usual = {"epochs": 30} | {f"training__{name}": value for name, value in training.items()}
    return PairClassifier(model="linear", random_state=0).set_params(**(usual | options))


def draw(n=600, seed=0, intercept=-1.0):
    """Pairs (n, 2, 3) with linear log-odds, their judgements, and the posteriors."""
    pairs = np.random.default_rng(seed).normal(size=(n, 2, 3)) * [1, 5, 0.1] + [0, 3, 1]
    z = (pairs - [0, 3, 1]) / [1, 5, 0.1] @ SLOPE + intercept
    r = 1 / (1 + np.exp(-z))
    return pairs, PairLabels.from_posteriors(r[:, 0], r[:, 1]), r


PAIRS, LABELS, POSTERIORS = draw()
X = PAIRS.reshape(-1, 3)
R = POSTERIORS.reshape(-1)


def error(classifier):
    """Mean distance of the learnt posteriors from the true ones."""
    return np.abs(classifier.predict_proba(X)[:, 1] - R).mean()


def agreement(classifier):
    return ((classifier.predict(X) == classifier.classes_[1]) == (R > 0.5)).mean()


# --- what can be learnt from ----------------------------------------------------------------


S, C = LABELS.similarity, LABELS.difference
HALF = np.arange(600) % 2 == 0
SAME = (POSTERIORS > 0.5)[:, 0] == (POSTERIORS > 0.5)[:, 1]
PREFERRED = np.where(C > 0, "right", "left")
PRIOR = {"prior": float(R.mean())}
KNOWN = {"labelled": (X[:20], np.where(R[:20] > 0.5, "yes", "no")), "positive": "yes"}
CASES = {  # similarity and difference, parameters, what else `fit` takes, and the largest error
    "both": (S, C, {}, {}, 0.02),
    "one of the two": (np.where(HALF, S, NAN), np.where(HALF, NAN, C), {}, {}, 0.02),
    "similarity, majority": (S, NAN, {"majority": "negative"}, {}, 0.02),
    "difference, prior": (NAN, C, PRIOR, {}, 0.02),
    "preference, prior": (NAN, NAN, PRIOR, {"preference": PREFERRED}, 0.12),
    "some preferences": (S, NAN, {}, {"preference": np.where(HALF, PREFERRED, None)}, 0.02),
    "hard similarity, labels": (SAME, NAN, {}, KNOWN, 0.2),
}


@pytest.mark.parametrize("model", ["linear", LogisticRegression(C=1e4)], ids=["net", "completion"])
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_judgement_teaches_the_posteriors(case, model):
    s, c, options, more, most = CASES[case]
    labels = np.stack(np.broadcast_arrays(s, c, np.empty(600))[:2], 1)
    classifier = linear(**options).set_params(model=model).fit(PAIRS, labels, **more)
    assert error(classifier) < most and agreement(classifier) > 0.95
    assert classifier.prior_ == pytest.approx(R.mean(), abs=0.03)
    assert classifier.classes_.tolist() == (["no", "yes"] if more is KNOWN else [-1, 1])
    proba = classifier.predict_proba(X)
    assert np.allclose(proba.sum(1), 1)
    assert np.array_equal(classifier.decision_function(X) > 0, proba[:, 1] > 0.5)
    assert np.array_equal(classifier.predict(X), classifier.classes_[(proba[:, 1] > 0.5) * 1])
    if case.startswith(("difference", "preference")) and model == "linear":
        assert proba[:, 1].mean() == pytest.approx(R.mean(), abs=1e-6)


def test_what_judgements_leave_open_has_to_be_told():
    alike, apart = PairLabels(S, None), PairLabels(None, C)
    with pytest.raises(ValueError, match="the same with the two classes exchanged"):
        linear().fit(PAIRS, alike)
    with pytest.raises(
        ValueError, match="do not show how frequent the classes are: state the share"
    ):
        linear().fit(PAIRS, apart)
    assert agreement(linear(majority="positive").fit(PAIRS, alike)) < 0.05


@pytest.mark.parametrize(
    "risk", ["sconfconfdiff-abs", "confdiff-none", "convex-0.5-abs", "sconf-abs"]
)
def test_affine_risks_with_the_estimated_prior(risk):
    pairs, labels, r = draw(1500, intercept=-3.0)
    classifier = linear(risk=risk).fit(pairs, labels)
    assert classifier.prior_ == pytest.approx(r.mean(), abs=0.03)
    predicted = classifier.predict(pairs.reshape(-1, 3)) > 0
    assert (predicted == (r.reshape(-1) > 0.5)).mean() > 0.9


def test_affine_risks_that_cannot_know_the_prior():
    alone = PairLabels(LABELS.similarity, None)
    with pytest.raises(ValueError, match="up to an exchange of the classes"):
        linear(risk="sconf-abs").fit(PAIRS, alone)
    with pytest.raises(ValueError, match="estimated from similarities, and labels have none"):
        linear(risk="confdiff-abs").fit(PAIRS, PairLabels(None, LABELS.difference))
    with pytest.raises(ValueError, match="undefined at prior ½"):
        linear(risk="sconf-abs", prior=0.5).fit(PAIRS, alone)
    with pytest.raises(ValueError, match="reads classes"):
        linear(risk="supervised").fit(PAIRS, LABELS)


# --- weights and repeated judgements ---------------------------------------------------------


def test_weights_count_rows():
    """Weight zero drops a pair; a uniform weight changes nothing."""
    wrong = LABELS.to_array().copy()
    wrong[:, 1] *= np.where(np.arange(len(PAIRS)) < 300, 1, -1)
    weight = (np.arange(len(PAIRS)) < 300) * 2.0
    weighted = linear().fit(PAIRS, wrong, sample_weight=weight)
    dropped = linear().fit(PAIRS[:300], wrong[:300])
    assert np.allclose(weighted.decision_function(X), dropped.decision_function(X), atol=1e-4)
    assert np.allclose(weighted.mean_, X[:600].mean(0))
    assert error(weighted) < 0.05


# --- populations ----------------------------------------------------------------------------


def test_log_odds_are_shifted_to_the_target_prior():
    """From the annotator's prior where it is known; else so that mean P(y = +1 | x) is there."""
    plain = linear(epochs=3).fit(PAIRS, LABELS)
    shifted = linear(epochs=3, target_prior=0.1, annotator_prior=0.5).fit(PAIRS, LABELS)
    difference = shifted.decision_function(X) - plain.decision_function(X)
    assert np.allclose(difference, np.log(1 / 9), atol=1e-5)
    weight = np.random.default_rng(0).random(len(PAIRS)) + 0.1
    classifier = linear(epochs=3, target_prior=0.1).fit(PAIRS, LABELS, sample_weight=weight)
    p = classifier.predict_proba(X)[:, 1].reshape(-1, 2).mean(1)
    assert np.average(p, weights=weight) == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize("prior", [0.05, 0.9])
def test_the_majority_is_found_where_the_likelihood_is_reflected(prior):
    """Far from ½ the linear likelihood may learn all posteriors reflected; its ranking tells."""
    for seed in range(2):
        data = simulate(pairs=300, prior=prior, seed=seed)
        pairs = data.items.features[data.pairs.located(data.items.ids).ends]
        classifier = linear(risk="confdiff-abs", epochs=1).fit(pairs, data.pairs)
        assert classifier.prior_ == pytest.approx(prior, abs=0.05)


# --- models ---------------------------------------------------------------------------------


def test_a_module_is_copied_and_trained_from_its_weights():
    module = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    classifier = linear().set_params(model=module).fit(PAIRS, LABELS)
    assert error(classifier) < 0.05
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    untrained = linear(epochs=1, training__learning_rate=1e-9).set_params(model=module)
    untrained.fit(PAIRS, LABELS)
    standard = torch.from_numpy((X - X.mean(0)) / X.std(0)).float()
    expected = untrained.sign_ * module(standard).detach().numpy()[:, 0]
    assert np.allclose(untrained.decision_function(X), expected, atol=1e-5)


def dropout(d):
    return nn.Sequential(nn.Linear(d, 8), nn.Dropout(0.5), nn.Linear(8, 1))


@pytest.mark.parametrize("model", [MLP, dropout, dropout(3)])
def test_modules_follow_the_seed_and_leave_the_global_generator_alone(model):
    state = torch.get_rng_state()
    one, two = (
        linear(epochs=2).set_params(model=model).fit(PAIRS, LABELS).decision_function(X)
        for _ in range(2)
    )
    assert np.array_equal(one, two)
    assert torch.equal(torch.get_rng_state(), state)


def test_images_are_standardised_by_channel():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2, 2, 4, 4)) * np.array([1.0, 20.0])[:, None, None] + 5
    r = 1 / (1 + np.exp(-8 * (x[:, :, 0].mean((-1, -2)) - 5)))
    labels = PairLabels.from_posteriors(r[:, 0], r[:, 1])
    module = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Flatten(), nn.Linear(16, 1))
    for model in (module, "linear"):
        classifier = linear(epochs=30, training__learning_rate=1e-2).set_params(model=model)
        classifier.fit(x, labels)
        assert classifier.mean_.shape == classifier.scale_.shape == (2, 1, 1)
        assert classifier.scale_.ravel() == pytest.approx([1, 20], rel=0.1)
        assert classifier.n_features_in_ == 32
        right = (classifier.predict(x.reshape(600, 2, 4, 4)) > 0) == (r.reshape(-1) > 0.5)
        assert right.mean() > 0.8
        with pytest.raises(ValueError, match=r"instances of shape \(2, 4, 5\)"):
            classifier.predict(np.zeros((1, 2, 4, 5)))


# --- ids ------------------------------------------------------------------------------------


NAMES = ["one", "two", "three"]
IDS = np.array([f"item{i}" for i in range(1200)])
ROWS = np.arange(1200).reshape(600, 2)


@pytest.mark.filterwarnings("ignore:this is not an accuracy")
@pytest.mark.parametrize(
    ("pairs", "preprocessor", "named"),
    [
        (ROWS, X, False),
        (ROWS, lambda ids: X[ids], False),
        (IDS[ROWS], ItemTable(IDS[::-1], X[::-1], NAMES), True),
        (IDS[ROWS], pd.DataFrame(X, IDS, NAMES), True),
        (ROWS + 7, ItemTable(np.arange(7, 1207), X, NAMES), True),
    ],
)
def test_ids_are_the_same_as_features(pairs, preprocessor, named):
    plain = linear(epochs=3).fit(PAIRS, LABELS)
    by_id = linear(epochs=3, preprocessor=preprocessor).fit(pairs, LABELS)
    assert by_id.n_features_in_ == 3
    assert hasattr(by_id, "feature_names_in_") == named
    expected = plain.decision_function(X[:5])
    log_odds = by_id.decision_function(pairs.ravel()[:5])
    assert np.allclose(log_odds, expected, atol=1e-4)
    assert by_id.score(pairs, LABELS) == pytest.approx(plain.score(PAIRS, LABELS), abs=1e-3)


def test_statements_are_the_same_as_pairs_and_labels():
    judged, plain = Judgements.from_pairs(ROWS, LABELS), linear(epochs=3).fit(PAIRS, LABELS)
    for pairs, preprocessor in ((X, None), (PAIRS, None), (None, X)):
        other = linear(epochs=3, preprocessor=preprocessor).fit(pairs, judged)
        assert np.allclose(other.decision_function(X), plain.decision_function(X), atol=1e-4)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_table_of_pairs_is_used_with_all_its_columns():
    row, (left, right) = np.arange(200), IDS[ROWS[:200]].T
    alone = row >= 150
    table = pair_table(
        left,
        np.where(alone, "", right),
        np.where(row < 100, S[:200], NAN),
        np.where(row < 50, C[:200], NAN),
        preference=np.where(alone, "", PREFERRED[:200]),
        weight=1.0 + row % 3,
        annotator=np.where(row % 2, "ann", "bob"),
        same=np.where((row < 100) | alone, NAN, SAME[:200]),
        label=np.where(alone, R[:400:2] > 0.5, NAN),
    )
    statements, items = table.located(IDS), ItemTable(IDS, X)
    others = linear().fit(PAIRS[300:], LABELS[300:])
    score = others.score(X, statements)
    model = linear(epochs=3, annotators="learn", unjudged="ignore").fit(X, statements)
    ends = np.where(statements.single[:, None], statements.ends[:, :1], statements.ends)
    for pairs, preprocessor in ((None, items), (pair_ids(table), items), (X[ends], None)):
        other = clone(model).set_params(preprocessor=preprocessor).fit(pairs, table)
        assert np.allclose(other.decision_function(X), model.decision_function(X), atol=1e-3)
        assert [person.name for person in other.annotators_.people] == ["ann", "bob"]
        others.set_params(preprocessor=preprocessor)
        assert others.score(pairs, table) == pytest.approx(score, abs=1e-6)
        assert others.evaluate(pairs, table).accuracy.value == pytest.approx(score, abs=1e-6)


def test_features_of_a_table_are_found_by_their_names():
    items = ItemTable(IDS, X, NAMES)
    classifier = linear(epochs=1, preprocessor=items).fit(IDS[ROWS], LABELS)
    assert classifier.feature_names_in_.tolist() == NAMES
    assert np.array_equal(classifier.predict(items), classifier.predict(IDS))
    turned = ItemTable(IDS, X[:, ::-1], NAMES[::-1])
    assert np.array_equal(classifier.predict(turned), classifier.predict(IDS))
    with pytest.raises(ValueError, match="not read by the model's rules"):
        classifier.predict(ItemTable(IDS, X[:, 1:], NAMES[1:]))


# --- training -------------------------------------------------------------------------------


def test_the_history_has_a_row_for_each_epoch():
    plain = linear(epochs=4).fit(PAIRS, LABELS)
    assert plain.n_iter_ == 4
    assert [row["epoch"] for row in plain.history_] == [1, 2, 3, 4]
    assert all(row["seconds"] > 0 and row["risk"] > 0 for row in plain.history_)


@pytest.mark.filterwarnings("ignore:All 60 answers have")
def test_where_nothing_can_be_held_out_all_rows_train():
    """As where all are about one pair."""
    one = PairClassifier(model="linear", preprocessor=X, random_state=0)
    one.fit(np.tile([0, 1], (60, 1)), np.tile([0.0, 1.0], (60, 1)))  # hard answers
    assert one.predict(X[:2]).tolist() == [-1, 1]


def test_constant_features_and_large_offsets_do_no_harm():
    wide = np.concatenate([PAIRS + 1e7, np.full((600, 2, 1), 3.7)], -1)
    classifier = linear().fit(wide, LABELS)
    assert classifier.scale_[3] == 1
    expected = linear().fit(PAIRS, LABELS).decision_function(X)
    log_odds = classifier.decision_function(wide.reshape(-1, 4))
    assert np.corrcoef(log_odds, expected)[0, 1] > 0.999


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_pairs_train(n):
    classifier = PairClassifier(epochs=2).fit(PAIRS[:n], LABELS[:n])
    assert np.isfinite(classifier.predict_proba(X)).all()


def test_labels_alone_train_for_as_many_epochs_as_asked():
    """A linear model that ten steps leave on the wrong side does not begin once more."""
    labels = Judgements.about_items("label", np.arange(60), X[:60, 0] > 0)
    for seed in range(4):
        training = TrainingOptions(learning_rate=1e-4)
        classifier = PairClassifier(
            model="linear", epochs=10, training=training, random_state=seed
        ).fit(X[:60], labels)
        assert classifier.n_iter_ == len(classifier.history_) == 10


@pytest.mark.parametrize("prior", [0.05, 0.1, 0.9])
def test_a_linear_model_finds_the_right_side_whatever_the_seed(prior):
    """Similarities are the same with the classes exchanged, and at these priors they weigh most."""
    data = simulate(pairs=300, prior=prior, seed=4)
    ends = data.items.features[data.pairs.located(data.items.ids).ends]
    for seed in range(2):
        classifier = PairClassifier(model="linear", epochs=40, random_state=seed)
        classifier.fit(ends, data.pairs.labels())
        right = classifier.predict(data.items.features) == np.where(data.positive, 1, -1)
        assert right.mean() > 0.9, (prior, seed)
