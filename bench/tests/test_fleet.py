"""The fleet as a whole: who learns what from whom, evaluation, precision, refusals."""

import numpy as np
import pytest
import torch

from pairlearn import PairLabels, make_risk, models
from pairlearn.risks import SIBLINGS
from pairlearn.training.ranks import ALONE
from pairlearn_bench.fleet import Fleet, Group, Member, TestSet
from pairlearn_bench.fleet.objective import FleetObjective

DIM, PAIRS = 5, 60


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Narrow networks."""
    for name, norm in (("mlp", "input"), ("mlp-bn", "all")):
        monkeypatch.setitem(models.PERCEPTRONS, name, ((18, 18), norm))


def draw(seed=0, pairs=PAIRS):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * pairs, DIM)).astype(np.float32)
    ends = rng.permutation(2 * pairs).reshape(pairs, 2)
    r = 1 / (1 + np.exp(-4 * x[:, 0]))
    return x, ends, PairLabels.from_posteriors(*r[ends].T).to_array()


X, ENDS, LABELS = draw()
ABS = make_risk("likelihood-abs")


def member(name="likelihood-abs", prior=0.4, labels=LABELS, **rates):
    return Member(make_risk(name, prior=prior), labels, **rates)


def flat(model):
    values = [t for t in model.state_dict().values() if t.is_floating_point()]
    return torch.cat([t.flatten() for t in values])


def trained(groups, model="mlp", epochs=3, batch_size=16, precision="float64", **options):
    fleet = Fleet(X, groups, model, batch_size=batch_size, precision=precision, device="cpu")
    fleet.fit(epochs, **options)
    return fleet


# --- members ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # of a CPU without bfloat16
def test_equal_fleets_are_equal_to_the_last_bit():
    for precision in ("float32", "float64", "bf16"):
        first, second = (
            trained([Group(ENDS, [member(), member("sconf-abs")])], precision=precision)
            for _ in range(2)
        )
        for m in range(2):
            assert torch.equal(flat(first.module(0, m)), flat(second.module(0, m)))


def test_residual_networks_learn_together_what_each_learns_alone():
    images = np.random.default_rng(4).normal(size=(2 * PAIRS, 3, 8, 8)).astype(np.float32)
    groups = [
        Group(ENDS, [member(seed=1), member("sconfconfdiff-abs", seed=2)], seed=3),
        Group(ENDS[::-1].copy(), [member("confdiff-none", seed=1)], seed=4),
    ]
    options = {"batch_size": 16, "precision": "float64", "device": "cpu"}
    together = Fleet(images, groups, "resnet8", **options)
    together.fit(2)
    for g, group in enumerate(groups):
        for m, one in enumerate(group.members):
            alone = Fleet(images, [Group(group.pairs, [one], group.seed)], "resnet8", **options)
            alone.fit(2)
            torch.testing.assert_close(flat(together.module(g, m)), flat(alone.module()))
            logits = together.logits(np.arange(20))[g, m]
            torch.testing.assert_close(logits, alone.logits(np.arange(20))[0, 0])
    slower = [Group(ENDS, [member(), member(learning_rate=0.1)])]
    with pytest.raises(ValueError, match="train together with the same rates only"):
        Fleet(images, slower, "resnet8", **options)


def test_a_fleet_of_siblings_is_each_alone():
    g = torch.Generator().manual_seed(0)
    u, v = torch.rand(2, 30, generator=g, dtype=torch.float64)
    z, z_prime = torch.randn(2, len(SIBLINGS), 30, generator=g, dtype=torch.float64)
    risks = [make_risk(f"{name}-abs", prior=0.3) for name in SIBLINGS]
    labels = torch.stack([u, v], 1).numpy()
    group = Group(np.zeros((30, 2), int), [Member(risk, labels) for risk in risks])
    columns = (t.expand(1, len(risks), 30) for t in (u, v))
    share = torch.full((30,), 1 / 30, dtype=torch.float64)
    fleet = FleetObjective.of_groups([group])(
        z[None], z_prime[None], *columns, share, total=ALONE.sum
    )
    alone = [risk(z[k], z_prime[k], u, v) for k, risk in enumerate(risks)]
    torch.testing.assert_close(fleet[0], torch.stack(alone))


# --- evaluation ----------------------------------------------------------------------------


def test_accuracy_is_counted_right():
    rng = np.random.default_rng(3)
    tests = [
        TestSet(
            rng.permutation(120)[:50],
            rng.random(50) < 0.4,
            {"first": np.arange(20), "odd ones": rng.permutation(50)[:7]},
            {"odd ones": 0.4},
        )
        for _ in range(2)
    ]
    fleet = trained(
        [
            Group(ENDS, [member(), member("sconf-abs")], test=tests[0]),
            Group(ENDS, [member()], 1, tests[1]),
        ],
        "mlp-bn",
    )
    accuracy = fleet.accuracy()
    assert list(accuracy) == ["first", "odd ones"]
    assert np.isnan(accuracy["first"]).tolist() == [[False] * 2, [False, True]], "an idle place"
    for g, test in enumerate(tests):
        for m in range(len(fleet.groups[g].members)):
            module = fleet.module(g, m)
            with torch.no_grad():
                logits = module(torch.as_tensor(X[test.rows]).double()).numpy()
            for name, subset in test.subsets.items():
                threshold = 0.4 if name == "odd ones" else 0.0
                right = [(logits[i] > threshold) == test.positive[i] for i in subset]
                assert accuracy[name][g, m] == pytest.approx(sum(right) / len(right), abs=1e-12)


def test_evaluation_in_parts_is_evaluation(monkeypatch):
    fleet = trained([Group(ENDS, [member()])], "mlp-bn")
    whole = fleet.logits(np.arange(120))
    monkeypatch.setattr("pairlearn_bench.fleet.fleet.EVALUATION_ROWS", 7)
    torch.testing.assert_close(fleet.logits(np.arange(120)), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("epochs", "window", "length"), [(5, 3, 3), (2, 10, 2)])
def test_history_is_of_the_last_epochs(epochs, window, length):
    test = TestSet(np.arange(40), X[:40, 0] > 0)
    group = Group(ENDS, [member(learning_rate=0.01)], test=test)
    fleet = Fleet(X, [group], "mlp", batch_size=16, device="cpu")
    history = fleet.fit(epochs, window=window)
    assert history["all"].shape == (length, 1, 1)
    one_by_one = Fleet(X, [group], "mlp", batch_size=16, device="cpu")
    expected = []
    for epoch in range(1, epochs + 1):
        one_by_one.fit(epoch, window=0)
        expected.append(one_by_one.accuracy()["all"])
    np.testing.assert_array_equal(history["all"], expected[-length:])


def test_no_test_set_no_history():
    test = TestSet(np.arange(40), X[:40, 0] > 0)
    assert Fleet(X, [Group(ENDS, [member()])], "linear").fit(1) == {}
    half = Fleet(X, [Group(ENDS, [member()], test=test), Group(ENDS, [member()])], "linear")
    assert half.fit(1) == {}


def test_progress_tells_epoch_and_mean_risk():
    """The risk reported is the mean over steps and members of the risk before each step."""
    risk = make_risk("sconfconfdiff-abs", prior=0.4)
    still = [Member(risk_of_member, LABELS, 0.0, 0.0) for risk_of_member in (risk, ABS)]
    seen = []
    ragged = [Group(ENDS, still), Group(ENDS, still[:1])]
    fleet = Fleet(X, ragged, "linear", batch_size=60, device="cpu", precision="float64")
    fleet.fit(3, progress=lambda *report: seen.append(report))
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    model = fleet.module().train()
    logits = model(torch.as_tensor(X[ENDS.T.ravel()]).double()).reshape(2, -1)
    labels = torch.as_tensor(LABELS).T
    expected = (2 * risk(*logits, *labels) + ABS(*logits, *labels)) / 3
    assert seen[0][1] == pytest.approx(expected.item(), rel=1e-6)


# --- precision -----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # of a CPU without bfloat16
def test_bf16_is_near_float32():
    """Products have 8 bits: logits agree to a few hundredths after a few epochs."""
    groups = [Group(ENDS, [member(), member(seed=1)])]
    full, half = (trained(groups, precision=p) for p in ("float32", "bf16"))
    difference = (full.logits(np.arange(120)) - half.logits(np.arange(120))).abs()
    assert 0 < difference.max() < 0.05
    assert half.network.weights[1].shape[-2:] == (32, 32), "18 units are made 32"
    assert half.module().layers[0].weight.shape == (18, DIM), "no padding in a module"
    assert {p.dtype for p in half.network.parameters()} == {torch.float32}
    assert trained(groups).logits([0]).dtype == torch.float64


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.int64])
def test_features_of_any_type(dtype):
    x = (X * 10 + 50).astype(dtype)
    for model in ("linear", "mlp"):
        fleet = Fleet(x, [Group(ENDS, [member()])], model, device="cpu")
        fleet.fit(1)
        assert bool(fleet.logits(np.arange(120)).isfinite().all())


# --- bad input never trains ----------------------------------------------------------------


def changed(array, value):
    array = array.astype(np.float32)
    array[3, 1] = value
    return array


HINGE = make_risk("confdiff", prior=0.4, loss="hinge")
ROWS, POSITIVE = np.arange(120), X[:, 0] > 0
ALL = TestSet(ROWS, POSITIVE)


def labelled(labels, name="likelihood-abs"):
    return [Group(ENDS, [member(), member(name, labels=labels)])]


def measured(*tests):
    return [Group(ENDS, [member()], test=test) for test in tests]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"groups": []}, "at least one group"),
        ({"groups": [Group(ENDS, [member()]), Group(ENDS, [])]}, "a group at least one member"),
        ({"groups": [Group(ENDS.ravel(), [member()])]}, r"shape \(120, 2\).*got \(120,\)"),
        ({"groups": [Group(ENDS[:0], [member()])]}, r"group 0 must have shape \(0, 2\), n > 0"),
        ({"groups": [Group(ENDS.astype(float), [member()])]}, "0 must be integers; got float64"),
        ({"groups": [Group(ENDS - 1, [member()])]}, "group 0 point outside the 120 instances"),
        (
            {"groups": [Group(ENDS, [member()]), Group(ENDS[1:], [member(labels=LABELS[1:])])]},
            r"pairs of group 1 must have shape \(60, 2\), n > 0; got \(59, 2\)",
        ),
        (
            {"groups": labelled(LABELS[1:], "sconf-abs")},
            r"labels of sconf-abs in group 0 must have shape \(60, 2\); got \(59, 2\)",
        ),
        ({"groups": labelled(LABELS[:, 0])}, r"must have shape \(60, 2\); got \(60,\)"),
        (
            {"groups": labelled(changed(LABELS, np.nan), "supervised")},
            r"labels of supervised are missing \(NaN\) in row 3",
        ),
        ({"groups": labelled(changed(LABELS, np.inf))}, "likelihood-abs are infinite in row 3"),
        ({"groups": [Group(ENDS, [member(), Member(HINGE, LABELS)])]}, "must share one loss"),
        ({"features": changed(X, np.nan)}, "features are NaN or infinite in row 3"),
        ({"features": X[:, 0]}, r"features must have shape \(N, ...\); got \(120,\)"),
        ({"model": "mpl"}, "model 'mpl' is unknown; choose one of mlp, mlp-bn"),
        ({"precision": "half"}, r"precision must be one of .*; got 'half'"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1; got 0"),
    ],
)
def test_bad_input_is_named(wrong, message):
    arguments = {"features": X, "groups": measured(ALL), "model": "linear", "device": "cpu"} | wrong
    with pytest.raises(ValueError, match=message):
        Fleet(**arguments)


def test_read_only_and_image_features_are_fine():
    x = np.zeros((120, 2, 3), np.float32)
    x[:, 0, 0] = X[:, 0]
    x.flags.writeable = False
    assert Fleet(x, measured(ALL), "linear", device="cpu").fit(1)["all"].shape == (1, 1, 1)
