"""Bad input never trains: each is refused with what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from pairlearn import make_risk
from pairlearn.models import MLP
from pairlearn.training import Fleet, Group, Member, TestSet

X = np.linspace(-1, 1, 40, dtype=np.float32).reshape(20, 2)
PAIRS = np.arange(20).reshape(10, 2)
LABELS = np.full((10, 2), 0.25)
POSITIVE = X[:, 0] > 0


def fleet(
    x=X, pairs=PAIRS, labels=LABELS, test=None, batch_size=4, second=None,
    model="linear", precision="float32", **rates,
) -> Fleet:  # fmt: skip
    groups = [Group(pairs, [Member(make_risk("likelihood"), labels, **rates)], test=test)]
    if second is not None:
        groups.append(Group(PAIRS, [Member(make_risk("likelihood"), LABELS)], test=second))
    return Fleet(x, groups, model, batch_size=batch_size, device="cpu", precision=precision)


def changed(array: np.ndarray, value: float) -> np.ndarray:
    array = array.astype(np.float32)
    array[3, 1] = value
    return array


ALL = TestSet(np.arange(20), POSITIVE)
NAMED = TestSet(np.arange(20), POSITIVE, {"half": np.arange(10)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": PAIRS.astype(float)}, "pairs of group 0 must be integers; got float64"),
        ({"pairs": PAIRS - 1}, "pairs of group 0 point outside the 20 instances"),
        ({"pairs": PAIRS[:0]}, r"pairs of group 0 must have shape \(0, 2\), n > 0"),
        ({"labels": changed(LABELS, np.nan)}, r"likelihood-none are missing \(NaN\) in row 3"),
        ({"labels": changed(LABELS, np.inf)}, "likelihood-none are infinite in row 3"),
        ({"labels": LABELS[:, 0]}, r"must have shape \(10, 2\); got \(10,\)"),
        ({"x": changed(X, np.nan)}, "features are NaN or infinite in row 3"),
        ({"model": MLP(2), "second": ALL}, "train one at a time"),
        ({"precision": "half"}, r"precision must be one of .*; got 'half'"),
        ({"model": "mpl"}, "model 'mpl' is unknown"),
        ({"x": X[:, 0]}, r"features must have shape \(N, ...\); got \(20,\)"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be a number of at least 0; got -1.0"),
        ({"weight_decay": np.nan}, "weight_decay must be a number of at least 0; got nan"),
        ({"test": TestSet(np.arange(20), 2 * POSITIVE - 1)}, "must be booleans of shape"),
        ({"test": TestSet(np.arange(20) + 1, POSITIVE)}, "test rows of group 0 point outside"),
        ({"test": TestSet(np.arange(19), POSITIVE)}, r"booleans of shape \(19,\)"),
        ({"test": TestSet(np.arange(20), POSITIVE, {"none": []})}, "subset 'none' .* is empty"),
        ({"test": TestSet(np.arange(20), POSITIVE, {"far": [20]})}, "'far' .* point outside"),
        ({"test": ALL, "second": NAMED}, r"group 1 20 and \['half'\]"),
        (
            {"test": ALL, "second": TestSet(np.arange(5), POSITIVE[:5])},
            r"group 0 has 20 rows and subsets \[\], group 1 5",
        ),
    ],
)
def test_bad_input_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fleet(**arguments)  # type: ignore[arg-type]


def test_read_only_and_image_features_are_fine() -> None:
    x = np.zeros((20, 2, 3), np.float32)
    x[:, 0, 0] = X[:, 0]
    x.flags.writeable = False
    assert fleet(x=x, test=ALL).fit(1)["all"].shape == (1, 1, 1)
