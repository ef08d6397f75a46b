"""Bad input never trains: each is refused with what is wrong and where."""

import warnings

import numpy as np
import pandas as pd
import pyarrow
import pytest
from sklearn.linear_model import LogisticRegression
from torch import nn

from pairlearn import Judgements, PairLabels
from pairlearn.check import check
from pairlearn.estimators import PairClassifier
from pairlearn.estimators import TrainingOptions as options
from pairlearn.io import ItemTable, TableError
from pairlearn.simulation import simulate
from tables import pair_ids, pair_table

RNG = np.random.default_rng(0)
PAIRS = RNG.normal(size=(20, 2, 3))
X = PAIRS.reshape(-1, 3)
ENDS = np.arange(40).reshape(20, 2)
R = 1 / (1 + np.exp(-PAIRS[:, :, 0]))
LABELS = PairLabels.from_posteriors(R[:, 0], R[:, 1]).to_array()
NAN = np.nan
TWICE = pd.DataFrame(X).iloc[[*range(40), 0]]


class Sparse:
    def toarray(self):
        return PAIRS

    tocsr = toarray


def changed(array, value, *place):
    array = np.array(array, dtype=float)
    array[place] = value
    return array


def fit(pairs=PAIRS, labels=LABELS, arguments=None, **parameters):
    parameters = {"model": "linear", "epochs": 1, "random_state": 0} | parameters
    return PairClassifier(**parameters).fit(pairs, labels, **(arguments or {}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": PAIRS[:, :1]}, r"pairs must have shape \(n, 2, d, ...\)"),
        ({"pairs": PAIRS[:0]}, "pairs is empty"),
        ({"pairs": PAIRS[..., :0]}, "pairs has instances without features: there is nothing"),
        (
            {"pairs": np.where(ENDS == 7, None, ENDS), "preprocessor": pd.DataFrame(X)},
            "an id is missing in row 3: drop the row",
        ),
        ({"pairs": np.where(ENDS == 7, NAN, ENDS), "preprocessor": X}, "an id is missing in row 3"),
        (
            {"pairs": ENDS, "preprocessor": pd.DataFrame(X, columns=[*"aba"])},
            "two columns are named 'a': give each its own name",
        ),
        ({"pairs": [[[1, 2], [3]]]}, "pairs has rows of several lengths: give all the same"),
        ({"pairs": ENDS, "preprocessor": TWICE}, "row 41: index 0 is in row 1 already"),
        (
            {"pairs": ENDS, "preprocessor": TWICE.assign(id=TWICE.index)},
            "row 41: id 0 is in row 1 already",
        ),
        ({"pairs": changed(PAIRS, NAN, 4, 1, 0)}, "pairs hold NaN or infinity in row 4"),
        ({"pairs": changed(PAIRS, -1e39, 4, 1, 0)}, "pairs are too large for float32 in row 4"),
        ({"pairs": PAIRS.astype(str)[:, :, :1].astype(object) + "x"}, "pairs must be numbers"),
        ({"pairs": PAIRS + 1j}, "pairs must be numbers: complex"),
        ({"pairs": ENDS}, "are ids and need a preprocessor"),
        ({"pairs": ENDS + 1, "preprocessor": X}, "id 40 is not among the 40 rows"),
        (
            {"pairs": np.where(ENDS == 7, 7.5, ENDS), "preprocessor": ItemTable(np.arange(40), X)},
            r"id 7\.5 is not among the ids",
        ),
        ({"pairs": ENDS + 0.5, "preprocessor": X}, r"id 0\.5 is not among the 40 rows"),
        ({"pairs": ENDS, "preprocessor": X[0]}, r"preprocessor must have shape \(m, d, ...\)"),
        ({"pairs": ENDS, "preprocessor": "x.csv"}, "a table with ids or a function; got str"),
        ({"pairs": ENDS, "preprocessor": lambda i: X[:3]}, "for 40 ids it gave .* \\(3, 3\\)"),
        ({"pairs": ENDS, "preprocessor": changed(X, NAN, 7, 1)}, "in the row of id 7"),
        ({"labels": LABELS[:5]}, "labels has 5 rows and pairs has 20"),
        ({"labels": pair_table(*ENDS.T, *LABELS.T)[:5]}, "labels has 5 rows and pairs has 20"),
        ({"labels": LABELS[:, 0]}, r"shape \(n, 2\), columns similarity and difference"),
        (
            {"labels": changed(LABELS, 5, 3, 0)},
            r"lie in \[0, 1\]; row 3 is 5: map answers on another scale",
        ),
        ({"labels": changed(LABELS, np.inf, 3, 1)}, "difference is infinite in row 3"),
        ({"labels": changed(LABELS, NAN, 3)}, "neither similarity nor difference in row 3: drop"),
        (
            {"labels": None, "arguments": {"preference": ["right", ""] * 10}},
            "in row 1, and there is no preference: drop",
        ),
        ({"labels": np.full((20, 2), "a")}, "labels must be numbers"),
    ],
)
def test_pairs_and_labels(changes, message):
    with pytest.raises(ValueError, match=message):
        fit(**changes)


def test_sparse_pairs_and_models_of_no_kind():
    with pytest.raises(TypeError, match="pairs is sparse, and dense data is required"):
        fit(pairs=Sparse())
    for model, kind in ((3, "int"), (X, "ndarray"), (None, "NoneType")):
        with pytest.raises(TypeError, match=rf"model must be one of mlp, .* got {kind}"):
            fit(model=model)
    with pytest.raises(TypeError, match=r"model must make an nn.Module; it made a int"):
        fit(model=lambda d: d)
    with pytest.raises(TypeError, match=r"the class LogisticRegression: pass .* as in Logistic"):
        fit(model=LogisticRegression)
    with pytest.raises(ValueError, match="The 'risk' parameter of PairClassifier must be"):
        fit(risk=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": np.ones(3)}, "sample_weight has 3 rows and pairs has 20"),
        ({"sample_weight": -np.ones(20)}, "finite and at least 0; row 0 is -1"),
        ({"sample_weight": changed(np.ones(20), NAN, 6)}, "finite and at least 0; row 6 is nan"),
        ({"sample_weight": np.zeros(20)}, "sample_weight is zero for every pair"),
        ({"sample_weight": np.ones((20, 1))}, r"sample_weight must have shape \(n,\)"),
        ({"preference": ["left"]}, "preference has 1 rows and pairs has 20"),
        ({"preference": ["up"] * 20}, "row 0: preference is 'up'; give left"),
        ({"preference": [1, 0] * 10}, "row 1: preference is 0; give left"),
        ({"preference": np.full(20, 2)}, "row 0: preference is 2; give left"),
        ({"labelled": X}, r"labelled must be \(X, y\)"),
        ({"labelled": (X[:, :2], np.ones(40))}, r"have shape \(2,\) each, and those of the pairs"),
        ({"labelled": (X, np.ones(3))}, r"labelled classes must have shape \(40,\)"),
        ({"labelled": (X[:2], ["a", "a"])}, "give items of both classes"),
        ({"labelled": (X[:2], [1.0, NAN])}, "labelled classes are missing in row 1"),
        ({"labelled": (X[:2], np.array([1, None]))}, "labelled classes are missing in row 1"),
        ({"labelled": (changed(X, NAN, 3, 0), np.arange(40) % 2)}, "NaN or infinity in row 3"),
    ],
)
def test_what_else_fit_takes(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit(arguments=arguments)


@pytest.mark.parametrize("name", ["sample_weight", "preference", "annotator"])
def test_tables_have_columns_of_their_own(name):
    judged = Judgements.from_pairs(ENDS, LABELS)
    with pytest.raises(ValueError, match=f"labels are Judgements, .*: leave out {name}"):
        fit(X, judged, {name: np.ones(20)})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"risk": "best"}, "risk 'best' is unknown"),
        ({"risk": "confdiff-some"}, "risk 'confdiff-some' is unknown"),
        ({"training": {"batch_size": 5}}, "The 'training' parameter of PairClassifier must be"),
        ({"prior": 1.5}, "The 'prior' parameter of PairClassifier must be"),
        ({"annotator_prior": 0.5}, "needs target_prior to shift to"),
        (
            {"training": options(weight_decay=NAN)},
            "The 'weight_decay' parameter of TrainingOptions",
        ),
        (
            {"training": options(learning_rate=0)},
            "The 'learning_rate' parameter of TrainingOptions",
        ),
        (
            {"training": options(batch_size=0)},
            "The 'batch_size' parameter of TrainingOptions",
        ),
        ({"epochs": 1.5}, "The 'epochs' parameter of PairClassifier must be"),
        (
            {"training": options(precision="float16")},
            "The 'precision' parameter of TrainingOptions",
        ),
        (
            {"training": options(device="tpu")},
            "device=tpu is unknown; give auto, cpu or",
        ),
        ({"model": "tree"}, "model 'tree' is unknown; choose one of auto, mlp"),
        ({"model": nn.Linear(3, 2)}, r"one logit for each instance; .* shape \(2, 2\)"),
        ({"model": nn.Linear(4, 1)}, r"model does not take instances of shape \(3,\)"),
        ({"model": LogisticRegression(), "risk": "sconf"}, "trained by the pair likelihood"),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(**parameters)


def test_predict_checks_instances_in_scikit_learns_words():
    classifier = fit()
    with pytest.raises(ValueError, match="X has 2 features, but PairClassifier is expecting 3"):
        classifier.predict(X[:, :2])
    with pytest.raises(ValueError, match=r"X has shape \(3,\).* Reshape your data"):
        classifier.predict(X[0])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        classifier.predict(changed(X, NAN, 0, 0))
    for large in (1e39, 1e300):
        with pytest.raises(ValueError, match=r"row 5 of X gets log-odds of .*: its features are"):
            classifier.predict_proba(changed(X, large, 5))
    with pytest.raises(ValueError, match="dim 3"):
        classifier.predict(PAIRS)
    with pytest.raises(ValueError, match=r"instances of shape \(2,\), but PairClassifier"):
        classifier.score(PAIRS[:, :, :2], LABELS)


@pytest.mark.parametrize("value", [10**400, -(10**6000)], ids=["large", "unprintable"])
def test_integers_beyond_floating_point_are_refused(value):
    rows, frame = [[0, 0, 0], [0, value, 1]], pd.DataFrame(X, columns=[*"abc"])
    new = pd.DataFrame(rows, columns=[*"abc"], dtype=object)  # pandas 2.2 converts otherwise
    with pytest.raises(OverflowError):
        fit().predict_proba(rows)
    with pytest.raises(OverflowError):
        fit(ENDS, preprocessor=frame).predict_proba(new)
    gaps = frame.assign(c=[None, *X[1:, 2]])
    with pytest.raises(ValueError, match=r"'b': .* too large"):
        fit(ENDS, preprocessor=gaps).predict_proba(new)
    with pytest.raises(ValueError, match=r"pairs must be numbers: .*too large"):
        fit([[[0], [1]], [[value], [0]]], LABELS[:2])
    with pytest.raises(ValueError, match=r"labels must be numbers: .*too large"):
        fit(PAIRS[:2], [[0.5, 0], [value, 0]])
    with pytest.raises(ValueError, match=r"sample_weight must be numbers: .*too large"):
        fit(PAIRS[:2], LABELS[:2], {"sample_weight": [1, value]})
    with pytest.raises(TableError, match="similarity must be numbers: int too large"):
        pair_table([1], [2], [value], None)


def test_columns_of_data_frames_are_found_by_name():
    pairs = pd.DataFrame(ENDS, columns=["left", "right"])
    labels = pd.DataFrame(LABELS, columns=["similarity", "difference"])
    expected = fit(ENDS, preprocessor=X).predict_proba(X)
    arrow = pyarrow.Table.from_pandas
    for turned in (lambda frame: frame.iloc[:, ::-1], lambda frame: arrow(frame.iloc[:, ::-1])):
        actual = fit(turned(pairs), turned(labels), preprocessor=X).predict_proba(X)
        assert np.array_equal(actual, expected)
    both = pd.concat([pairs, labels], axis=1)
    for judged in (pair_table(*ENDS.T, *LABELS.T), both, arrow(both), both.to_dict("list")):
        for given in ((None, judged), (judged, None)):
            actual = fit(*given, preprocessor=X).predict_proba(X)
            assert np.array_equal(actual, expected)


def test_ids_without_a_preprocessor_are_told_of_it(tmp_path):
    data = simulate(pairs=30)
    classifier = PairClassifier(model="linear", epochs=2, preprocessor=data.items, random_state=0)
    classifier.fit(pair_ids(data.pairs), data.pairs).save(tmp_path / "model")
    loaded = PairClassifier.load(tmp_path / "model")
    for ids in (data.items.ids, data.items.ids.tolist(), ["a", "b"]):
        with pytest.raises(ValueError, match=r"ids, .* preprocessor=items to load or set_params"):
            loaded.predict(ids)
    wanted = classifier.predict(data.items.ids)
    assert np.array_equal(loaded.predict(data.items), wanted)
    given = PairClassifier.load(tmp_path / "model", preprocessor=data.items)
    for knowing in (loaded.set_params(preprocessor=data.items), given):
        assert np.array_equal(knowing.predict(data.items.ids), wanted)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_an_array_after_a_fit_with_names_is_taken_in_their_order_with_a_warning():
    data = simulate(pairs=30)
    options = {"model": "linear", "epochs": 2, "random_state": 0}
    named = PairClassifier(**options, preprocessor=data.items).fit(pair_ids(data.pairs), data.pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wanted = named.predict(data.items)
    with pytest.warns(UserWarning, match=r"valid feature names"):
        assert np.array_equal(named.predict(data.items.features), wanted)
    with pytest.raises(ValueError, match="X has 1 features, but PairClassifier is expecting 2"):
        named.predict(data.items.features[:, :1])
    ends = data.pairs.located(data.items.ids).ends
    plain = PairClassifier(**options, preprocessor=data.items.features).fit(ends, data.pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain.predict(data.items.features)


@pytest.mark.parametrize(
    "known",
    [
        X,
        pd.DataFrame(X, columns=[*"abc"]),
        pd.DataFrame(X, columns=[*"abc"]).assign(id=np.arange(40.0)),
        ItemTable(np.arange(40.0), X),
    ],
)
def test_whole_numbers_of_any_type_are_the_same_ids(known):
    """pandas makes them floating numbers, or objects, where a column has gaps."""
    expected = fit(ENDS, preprocessor=known).predict_proba([3, 5])
    for ids in (
        ENDS * 1.0,
        ENDS.astype(np.float16),
        ENDS.astype(object),
        (ENDS * 1.0).astype(object),
    ):
        model = fit(ids, preprocessor=known)
        np.testing.assert_array_equal(model.predict_proba(ids[1:3, 1]), expected)
        assert not model.unseen(np.array([[0, 1]]), X[:2], np.array(["0", "1"])).any()


def test_ids_are_text_if_any_is():
    names = np.array([*range(39), "x"], dtype=object)
    model = fit(names[ENDS], preprocessor=ItemTable(names, X))
    np.testing.assert_array_equal(model.predict_proba(["x"]), model.predict_proba(names[-1:]))
    framed = fit(names[ENDS], preprocessor=pd.DataFrame(X, index=pd.Index(names, dtype=object)))
    some = np.array([3.0, "x"], dtype=object)
    np.testing.assert_allclose(framed.predict_proba(some), model.predict_proba(some), rtol=1e-6)


def test_missing_values_of_pandas_are_gaps():
    frame = pd.DataFrame(changed(LABELS, NAN, 3, 0), columns=["similarity", "difference"])
    gaps = frame.astype("Float64")
    assert gaps.iloc[3, 0] is pd.NA
    expected = fit(labels=frame).predict_proba(X)
    np.testing.assert_array_equal(fit(labels=gaps).predict_proba(X), expected)
    assert pair_table(*ENDS.T, **gaps) == pair_table(*ENDS.T, **frame)


def test_what_is_no_table_is_not_checked():
    with pytest.raises(TypeError, match=r"table must be Judgements, .*; got DataFrame"):
        check(pd.DataFrame({"left": [1], "right": [2]}))


def test_statements_that_name_items_are_about_these_items():
    """Whatever the order of the rows; an array without ids must have a row for each name."""
    order = RNG.permutation(40)
    items = ItemTable([f"i{k}" for k in order], X[order])
    named = pair_table(*(np.char.add("i", ENDS.astype(str)).T), *LABELS.T)
    expected = fit(X, Judgements.from_pairs(ENDS, LABELS)).predict_proba(X)
    fitted = fit(items.features, named.located(items.ids))
    np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-3)
    with pytest.raises(ValueError, match=r"labels name 40 items, and pairs has 41: .*located"):
        fit(X[[*range(40), 0]], named)


@pytest.mark.parametrize("columns", [["a"], ["a", "b"]])
def test_an_empty_frame_is_refused_in_scikit_learns_words(columns):
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "yes", "no")})[columns]
    classifier = fit(ENDS, preprocessor=frame)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        classifier.predict(frame[:0])
    with pytest.raises(TableError, match=f"X lacks .*'{columns[-1]}' that the model was fitted to"):
        classifier.predict(pd.DataFrame())
