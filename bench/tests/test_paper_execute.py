"""From runs to results: recomputed by hand, whatever else is asked for, and after kills."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

import pairlearn
from pairlearn import make_risk
from pairlearn.models import make_model
from pairlearn.randomness import normal, permutation, stream
from pairlearn_bench import GRIDS, Run, RunStore
from pairlearn_bench import benchmark as trainer
from pairlearn_bench import execute as module
from pairlearn_bench.data import Dataset, as_features, get_spec, load, split_indices
from pairlearn_bench.data.sampling import sample_pairs, subset_at_prior
from pairlearn_bench.execute import Checkpoints, execute, plan_fleets
from pairlearn_bench.fleet import Fleet

SUBSETS = ("paper", "stratified", "paper_shifted", "stratified_shifted")
ACCURACIES = {*SUBSETS, *(f"annotator_{name}" for name in SUBSETS)}


def blobs(official: bool) -> Dataset:
    """Ten classes around ten centres, overlapping."""
    rng = np.random.default_rng(0)
    spec = replace(
        get_spec("digits"), shape=(6,), n_train=320, n_test=80, n_pairs=40, digest=None,
        official_split=official, batch_size=32,
    )  # fmt: skip
    y = np.repeat(np.arange(10), 40)[rng.permutation(400)].astype(np.uint8)
    centres = rng.integers(60, 190, (10, 6))
    x = np.clip(centres[y] + rng.normal(0, 25, (400, 6)), 0, 255).astype(np.uint8)
    return Dataset(spec, x, y)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """The set of that name, in place of the one in the registry."""
    sets = {"digits": blobs(official=False), "mnist": blobs(official=True)}
    monkeypatch.setattr(module, "load", lambda name, _data, images: sets[name])
    return sets


def make(method="likelihood-abs", **fields):
    fields = {"dataset": "digits", "prior": 0.2, "seed": 0, "model": "linear"} | fields
    fields = {"pairs": 40, "epochs": 3, "batch_size": 16, "window": 2} | fields
    return Run(method=method, **fields)


def results(runs, **options):
    finished = execute(runs, **{"device": "cpu", "workers": 1} | options)
    return {run.key(): accuracies for run, accuracies in finished}


# --- what a result is ----------------------------------------------------------------------


def by_steps(model, rows, loss, *, seed, epochs, rate=1e-3, after=lambda: None):
    """Train a model the ordinary way, on the loss of batches of so many rows."""
    adam = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=1e-5)
    for epoch in range(epochs):
        model.train()
        order = permutation(stream(seed, "batches", epoch), rows)
        for batch in np.split(order, range(16, rows, 16)):
            adam.zero_grad()
            loss(batch).backward()
            adam.step()
        model.eval()
        with torch.no_grad():
            after()


def by_hand(data: Dataset, run: Run) -> dict[str, float]:
    """The same run as a plain script, from the data to the four accuracies."""
    spec, everything = data.spec, np.arange(400)
    x = torch.as_tensor(as_features(data.x, spec)).double()
    train, test = (everything[part] for part in split_indices(data, run.seed))
    positive = np.isin(data.y, spec.positive)

    # The annotator: ten epochs of ordinary training on the whole training split.
    half = len(train) // 2
    ends = train[permutation(stream(run.seed, "annotator"), len(train))].reshape(2, half)
    if run.annotator == "calibrated":
        n = int(min(positive[train].sum() / run.prior, (~positive[train]).sum() / (1 - run.prior)))
        half = (n - 1) // 2
        ends = train[sample_pairs(positive[train], half, run.prior, run.seed)].T
    target = torch.as_tensor(positive).double()

    annotator = make_model(run.model, x.shape[1:], run.seed).double()

    def cross_entropy(rows):
        batch = torch.as_tensor(ends[:, rows].ravel())
        return F.binary_cross_entropy_with_logits(annotator(x[batch]), target[batch])

    by_steps(annotator, half, cross_entropy, seed=run.seed, epochs=10)
    with torch.no_grad():
        # Posteriors are handed on as float32.
        r = torch.sigmoid(annotator(x)).float().double().numpy()

    # Judgements of the pairs, with their noise.
    n = run.n_training_pairs
    pairs = train[sample_pairs(positive[train], n, run.prior, run.seed)]
    left, right = r[pairs].T
    factors = 1 + run.label_noise * normal(stream(run.seed, "label noise"), 2 * n).reshape(2, n)
    u = (left * right + (1 - left) * (1 - right)) * factors[0]
    v = (right - left) * factors[1]
    if run.method == "supervised":
        u, v = positive[pairs].T.astype(float)
    u, v = torch.as_tensor(u), torch.as_tensor(v)
    risk = make_risk(run.method, prior=run.prior_factor * run.prior)

    # Training, and the mean accuracy after each of the last epochs.
    classes = data.y[test]
    in_order = classes if spec.official_split else None
    subsets = {
        "paper": subset_at_prior(positive[test], run.prior, "paper", classes=in_order),
        "stratified": subset_at_prior(
            positive[test], run.prior, "stratified", classes=classes, seed=run.seed
        ),
    }
    natural = run.prior if run.annotator == "calibrated" else positive[train].mean()

    def accuracies(posterior):
        """As they are, and with Bayes' rule moving them to the class prior of the pairs."""
        plus = posterior * run.prior / natural
        minus = (1 - posterior) * (1 - run.prior) / (1 - natural)
        decisions = {"": posterior > 0.5, "_shifted": plus > minus}
        return {
            f"{name}{suffix}": (decided == positive[test])[rows].mean()
            for name, rows in subsets.items()
            for suffix, decided in decisions.items()
        }

    model = make_model(run.model, x.shape[1:], run.seed).double()
    measured = []

    def risk_of(rows):
        return risk(*model(x[pairs[rows].T.ravel()]).reshape(2, -1), u[rows], v[rows])

    by_steps(
        model, n, risk_of, seed=run.seed, epochs=run.epochs, rate=run.learning_rate,
        after=lambda: measured.append(accuracies(torch.sigmoid(model(x[test])).numpy())),
    )  # fmt: skip
    expected = {k: np.mean([m[k] for m in measured[-run.window :]]) for k in SUBSETS}
    return expected | {f"annotator_{k}": value for k, value in accuracies(r[test]).items()}


@pytest.mark.parametrize(
    "run",
    [
        make(),
        make("supervised", dataset="mnist", prior=0.8, seed=2),
        make("sconfconfdiff-abs", prior_factor=1.2, label_noise=0.5, learning_rate=0.03),
        make("convex-0.5-relu", dataset="mnist", fraction=0.5, epochs=1, window=10),
        make("confdiff-none", prior=0.5, annotator="calibrated", model="mlp-bn"),
    ],
    ids=lambda run: run.method,
)
def test_a_result_is_what_a_plain_script_gives(run, tiny):
    ((same, measured),) = execute([run], device="cpu", precision="float64", workers=1)
    assert same == run
    assert set(measured) == ACCURACIES
    assert measured == pytest.approx(by_hand(tiny[run.dataset], run), abs=1e-12)


# --- whatever else is asked for ------------------------------------------------------------

MIXED = [
    *(make(name, seed=s) for name in ("likelihood-abs", "sconf-none") for s in (0, 1)),
    *(
        make(name, seed=s, prior=0.5)
        for name in ("likelihood-abs", "confdiff-none")
        for s in (0, 1)
    ),
    make("supervised", annotator="calibrated"),
    make("likelihood-abs", annotator="calibrated", prior=0.8),
    make("sconf-abs", epochs=2),
    make("sconf-abs", fraction=0.5, learning_rate=0.01),
    make("sconf-abs", batch_size=8),
    make("supervised", model="mlp"),
    make("likelihood-none", dataset="mnist", label_noise=0.1),
]


class Exact(trainer.Fleet):
    """A fleet whose "accuracy" shows a change of the last bit of any weight."""

    def accuracy(self):
        values = torch.sigmoid(self.logits(np.arange(400)).double()).mean(-1).numpy()
        return {"paper": values, "stratified": values}


def test_every_run_has_a_result_and_repeats(tiny):
    seen = []
    first = results(MIXED, progress=lambda *report: seen.append(report))
    assert set(first) == {run.key() for run in MIXED}
    assert all(set(measured) == ACCURACIES for measured in first.values())
    assert all(0 <= value <= 1 for measured in first.values() for value in measured.values())
    assert results(MIXED[::-1]) == first
    done, totals, words = zip(*seen, strict=True)
    assert list(done) == sorted(done)
    assert {done[-1], *totals} == {sum(run.epochs for run in MIXED)}
    assert "digits" in words[0]


def test_a_result_does_not_depend_on_the_other_runs(monkeypatch):
    """What is left after a kill must come out as it would have: to the last bit."""
    monkeypatch.setattr(trainer, "Fleet", Exact)
    monkeypatch.setitem(pairlearn.models.PERCEPTRONS, "mlp", ((40, 40), "input"))
    mixed = [replace(run, model="mlp") for run in dict.fromkeys(MIXED) if run.model == "linear"]
    everything = results(mixed)
    shuffled = random.Random(0).sample(mixed, len(mixed))
    half = len(mixed) // 2
    assert results(shuffled[:half]) | results(shuffled[half:]) == everything
    for run in mixed[:2]:
        assert results([run])[run.key()] == everything[run.key()]


def test_what_a_risk_does_not_read_is_not_trained_again(monkeypatch):
    sizes = []

    class Counted(trainer.Fleet):
        def __init__(self, features, groups, *rest, **options):
            sizes.append([len(group.members) for group in groups])
            super().__init__(features, groups, *rest, **options)

    monkeypatch.setattr(trainer, "Fleet", Counted)
    runs = [make("likelihood-abs", prior_factor=f, label_noise=0.1) for f in (0.8, 1.0, 1.2)]
    runs += [make("supervised", label_noise=n) for n in (0.0, 0.5)]
    runs += [make("confdiff-abs", prior_factor=f) for f in (0.8, 1.2)]
    measured = results(runs)
    assert sizes == [[1]] * 4, "on a CPU each alone"
    assert set(measured) == {run.key() for run in runs}
    for same in (runs[:3], runs[3:5]):
        assert len({str(measured[run.key()]) for run in same}) == 1
    assert results(runs[2:3])[runs[2].key()] == measured[runs[2].key()]


def test_processes_give_the_same_and_results_come_as_they_finish():
    runs = MIXED[:4]
    assert results(runs, workers=2) == results(runs)
    under_way = execute(runs, device="cpu", workers=1)
    assert next(under_way)[0] == runs[0]
    under_way.close()


# --- plans ---------------------------------------------------------------------------------

runs = st.builds(
    make,
    st.sampled_from(["likelihood-abs", "likelihood-none", "confdiff-abs", "supervised"]),
    prior=st.sampled_from([0.2, 0.5]),
    seed=st.integers(0, 3),
    pairs=st.sampled_from([40, 20]),
    fraction=st.sampled_from([1.0, 0.5]),
    label_noise=st.sampled_from([0.0, 0.1]),
    epochs=st.sampled_from([1, 2]),
    model=st.sampled_from(["linear", "resnet32"]),
)


@settings(max_examples=200)
@given(chosen=st.lists(runs, min_size=1, max_size=40), limit=st.integers(1, 50))
def test_plans_have_every_run_once_and_keep_to_the_limit(chosen, limit):
    fleets = plan_fleets(chosen, limit)
    assert Counter(r for fleet in fleets for group in fleet for r in group) == Counter(chosen)
    for fleet in fleets:
        members = [run for group in fleet for run in group]
        assert all(fleet) and fleet
        assert len(fleet) * max(map(len, fleet)) <= limit, "idle places included"
        if members[0].model == "resnet32":
            assert all(len(group) == 1 for group in fleet), "no idle places"
        alike = {(r.n_training_pairs, r.batch_size, r.epochs, r.window, r.model) for r in members}
        assert len(alike) == 1
        for group in fleet:
            assert len({(run.prior, run.seed) for run in group}) == 1


def test_the_mnist_grid_is_one_fleet_without_idle_places():
    grid = GRIDS["accuracy"].select(datasets=["mnist"]).runs()
    (fleet,) = plan_fleets(grid, 1024)
    assert len(grid) == 285
    places = len(fleet) * max(map(len, fleet))
    assert places < 1.15 * len(grid)


# --- killed and started again --------------------------------------------------------------

COMMAND = (
    *("-m", "pairlearn", "bench", "run", "accuracy", "--datasets", "digits", "--seeds", "2"),
    *("--priors", "0.2", "--epochs", "4", "--model", "linear", "--device", "cpu"),
    *("--methods", "likelihood-abs,sconfconfdiff-abs,confdiff-none,supervised"),
)


def start(store: Path) -> subprocess.Popen[bytes]:
    source = str(Path(pairlearn.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, *COMMAND, "--store", str(store), "--checkpoint-seconds", "0"],
        env=os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL),
        start_new_session=True,
    )


def wait_for_the_end_of(session: int) -> None:
    """No worker outlives the process that was killed."""
    deadline = time.monotonic() + 120
    while True:
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return
        if time.monotonic() > deadline:
            os.killpg(session, signal.SIGKILL)
            pytest.fail("workers are left behind")
        time.sleep(0.05)


@pytest.mark.long
def test_killed_a_hundred_times(tmp_path):
    """At any moment of a whole run; whenever the grid is done, it is begun anew."""
    rng, kills, ends = random.Random(7), 0, 0
    begin, undisturbed = time.monotonic(), RunStore(tmp_path / "whole.jsonl")
    assert start(undisturbed.path).wait(timeout=300) == 0
    length, path = time.monotonic() - begin, tmp_path / "killed.jsonl"
    while kills < 100:
        process = start(path)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=rng.uniform(0, 1.1 * length))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        wait_for_the_end_of(process.pid)
        assert process.returncode in (0, -signal.SIGKILL)
        rows = RunStore(path).rows() if path.exists() else []
        assert set(rows) <= set(undisturbed.rows()), "a row that is there is a whole one"
        if len(rows) == len(undisturbed):
            path.unlink()
            shutil.rmtree(path.with_suffix(".checkpoints"), ignore_errors=True)
            ends += 1
    assert ends >= 3, "what a kill leaves behind must count"
    assert start(path).wait(timeout=300) == 0
    assert RunStore(path).rows() == undisturbed.rows()
    assert not path.with_suffix(".checkpoints").exists()


def test_a_fleet_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    runs = [make("likelihood-abs", epochs=6), make("supervised", epochs=6)]
    expected = dict(execute(runs, device="cpu", workers=1))
    train_epoch, epochs = Fleet.train_epoch, []

    def killed(self, between=None, **options):
        if self.groups[0].test is not None:  # else it is an annotator's
            if len(epochs) == 3:
                raise KeyboardInterrupt
            epochs.append(self.epoch)
        return train_epoch(self, between, **options)

    kept = Checkpoints(tmp_path / "kept", 0.0)
    monkeypatch.setattr(Fleet, "train_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        dict(execute(runs, device="cpu", workers=1, checkpoints=kept))
    assert list((tmp_path / "kept").iterdir())
    epochs[:] = [None] * 4
    (kept_file,) = (path for path in (tmp_path / "kept").iterdir() if path.suffix != ".before")
    assert kept_file.stat().st_size
    assert dict(execute(runs, device="cpu", workers=1, checkpoints=kept)) == expected
    assert epochs[4:6] == [3, 4], "the first fleet went on after its third epoch"
    assert not list((tmp_path / "kept").iterdir())


def test_guided_training_is_not_mirrored_where_the_unguided_is(monkeypatch):
    monkeypatch.setattr(module, "load", load)
    few = {"prior": 0.1, "pairs": 100, "epochs": 40, "batch_size": 32, "model": "mlp"}
    alone, guided = (make(f"likelihood-{kind}", **few) for kind in ("abs", "guided"))
    measured = results([alone, guided])
    assert measured[alone.key()]["stratified"] < 0.3
    assert measured[guided.key()]["stratified"] > 0.9
