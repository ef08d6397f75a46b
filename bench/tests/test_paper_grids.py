"""Runs, methods, grids, and the part of one that a user chooses."""

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pairlearn.risks import RISKS
from pairlearn_bench import GRIDS, PAPER_DATASETS, Method, Record, Run, Selection, get_grid
from pairlearn_bench import execute as execute_module
from pairlearn_bench.cells import published_accuracy
from pairlearn_bench.data import SPECS, Dataset
from pairlearn_bench.runs import PAPER_RISKS

RUN = Run(dataset="letter", prior=0.2, seed=0, method="convex-0.5-abs", pairs=4000, epochs=200)


def test_key_is_stable_across_releases_and_spellings() -> None:
    # Stores on people's disks hold this very text: a change loses their runs.
    assert RUN.key() == (
        '{"annotator":"paper","batch_size":256,"dataset":"letter","epochs":200,"fraction":1.0,'
        '"label_noise":0.0,"learning_rate":0.001,"method":"convex-0.5-abs","model":"mlp",'
        '"pairs":4000,"prior":0.2,"prior_factor":1.0,"seed":0,"weight_decay":1e-05,"window":10}'
    )
    same = replace(RUN, method="convex-.50-abs", prior_factor=1, label_noise=0, pairs=4000.0)
    assert same.key() == RUN.key() and same == RUN
    published = replace(RUN, images="published")
    assert json.loads(published.key()) == json.loads(RUN.key()) | {"images": "published"}
    assert Run.from_fields(json.loads(published.key())) == published
    assert Run.from_fields(RUN.fields()) == RUN
    with pytest.raises(ValueError, match="momentum"):
        Run.from_fields({**RUN.fields(), "momentum": 0.9})


BAD = {
    "dataset": [3],
    "prior": [0.0, "0.2", float("nan")],
    "seed": [-1, 0.5, True],
    "method": ["conv-abs"],
    "fraction": [0, 1.1],
    **dict.fromkeys(("model", "annotator", "images"), ("odd",)),
    **dict.fromkeys(("prior_factor", "learning_rate", "pairs", "epochs", "batch_size"), (0,)),
    **dict.fromkeys(("label_noise", "weight_decay", "window"), (-1,)),
}


@pytest.mark.parametrize(("field", "value"), [(name, v) for name in BAD for v in BAD[name]])
def test_bad_field_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=str(value) if field == "method" else field):
        replace(RUN, **{field: value})


def test_method_undefined_at_the_estimators_prior_is_refused() -> None:
    with pytest.raises(ValueError, match=r"defined at the prior 0\.5"):
        replace(RUN, prior=0.5, method="sconf-abs")
    with pytest.raises(ValueError, match=r"defined at the prior 1\.2"):
        replace(RUN, prior=0.8, prior_factor=1.5, method="confdiff-abs")
    # With a wrong prior the estimator exists again.
    assert replace(RUN, prior=0.5, prior_factor=1.1, method="sconf-abs").estimator_prior == 0.55


def test_fractions_of_the_pairs_are_whole() -> None:
    pairs = [replace(RUN, pairs=1200, fraction=i / 10).n_training_pairs for i in range(1, 11)]
    assert pairs == [120 * i for i in range(1, 11)]


def test_the_guided_likelihood_is_a_method_outside_the_grids() -> None:
    guided = Method.parse("likelihood-guided")
    assert (guided.name, guided.title) == ("likelihood-guided", "Likelihood-ABS, guided")
    assert all("likelihood-guided" not in grid.methods for grid in GRIDS.values())
    (run,) = (
        Selection(methods=(guided.name,), datasets=("letter",), priors=(0.5,), seeds=(0,))
        .of(GRIDS["accuracy"])
        .runs()
    )
    assert run.method == guided.name


KNOWN = (*PAPER_RISKS, "nonnegative", "likelihood", "supervised")
NEW = [f"{name}-abs" for name, risk in RISKS.items() if name not in KNOWN and not risk.kinds]
"""Risks that somebody has added to the catalogue."""


@pytest.mark.parametrize(
    ("grid", "datasets", "per_dataset"),
    [
        ("accuracy", 8, (23 + 11 + 23 + 3 * len(NEW)) * 5),
        ("gamma", 7, 11 * 3 * 5),
        ("limited", 7, 10 * (5 + 3 + 5) * 5),
        ("robustness", 8, 5 * 5 * 4 * 5),
    ],
)
def test_grids_have_the_runs_of_the_paper(grid: str, datasets: int, per_dataset: int) -> None:
    runs = get_grid(grid).runs()
    counts = {name: sum(run.dataset == name for run in runs) for name in PAPER_DATASETS}
    assert sorted(counts.values())[-datasets:] == [per_dataset] * datasets
    assert len({run.key() for run in runs}) == len(runs) == datasets * per_dataset
    at_half = {run.method for run in runs if run.prior == 0.5}
    assert not any(method.startswith(("sconf-", "convex-")) for method in at_half), "undefined"


def test_accuracy_grid_is_the_papers_and_ours_with_the_recipe_of_each_data_set() -> None:
    papers = {cell.method.name for cell in published_accuracy()}
    assert len(papers) == 19
    ours = set(GRIDS["accuracy"].methods) - papers
    likelihoods = {"likelihood-none", "likelihood-relu", "likelihood-abs"}
    assert ours == {*likelihoods, "nonnegative-none", *NEW}
    runs = get_grid("accuracy").runs()
    names = ("epochs", "batch_size", "learning_rate", "weight_decay", "model")
    for run in runs:
        spec = SPECS[run.dataset]
        assert run.pairs == spec.n_pairs
        assert all(getattr(run, name) == getattr(spec, name) for name in names)
    places = [(run.dataset, run.prior, run.seed) for run in runs]
    changes = sum(a != b for a, b in itertools.pairwise(places))
    assert changes == len(set(places)) - 1, "runs with the same pairs stand together"
    ends = [run for run in get_grid("gamma").runs() if not run.method.startswith("convex")]
    assert {Method.parse(run.method).risk for run in ends} == {"confdiff", "sconf"}
    assert set(ends) <= set(runs)


def test_selection_restricts_a_grid() -> None:
    choice = Selection.parse(
        datasets="digits", priors="0.2,0.5", seeds="2", methods="confdiff,sconf-abs", epochs=3
    )
    runs = choice.of(get_grid("accuracy")).runs()
    assert [(run.prior, run.seed, run.method) for run in runs] == [
        *((0.2, seed, name) for seed in (0, 1) for name in ("confdiff-none", "sconf-abs")),
        *((0.5, seed, "confdiff-none") for seed in (0, 1)),
    ]
    assert {run.epochs for run in runs} == {3}
    parts = Selection.parse(
        datasets="digits", priors="0.2", seeds="1", methods="confdiff", fractions="0.05,0.5,0.5"
    )
    few = parts.of(get_grid("limited")).runs()
    assert [(run.fraction, run.n_training_pairs) for run in few] == [(0.05, 20), (0.5, 200)]
    records = [Record(run, {"paper": 0.5}) for run in few]
    assert parts.records(get_grid("limited"), records) == records
    assert Selection().records(get_grid("limited"), records) == records
    assert Selection().records(get_grid("accuracy"), records) == [], "it has all pairs"
    with pytest.raises(ValueError, match="accuracy, gamma, limited, robustness"):
        get_grid("speed")


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", (0, 1, 2)), ("3-5", (3, 4, 5)), ("7-7", (7,)), ("4,2", (4, 2))]
)
def test_seeds_as_one_types_them(text: str, seeds: tuple[int, ...]) -> None:
    assert Selection.parse(seeds=text).seeds == seeds


@pytest.mark.parametrize(
    ("fields", "variant"),
    [
        ({}, ""),
        ({"epochs": 40}, ""),
        ({"model": "resnet32"}, "ResNet-32"),
        ({"images": "published"}, "published images, ResNet-34"),
        (
            {"images": "published", "model": "resnet32", "epochs": 40},
            "published images, ResNet-32, 40 epochs",
        ),
    ],
)
def test_tables_name_images_network_and_epochs(fields: dict[str, Any], variant: str) -> None:
    run = Selection(datasets=("cifar10",), seeds=(0,)).of(GRIDS["accuracy"]).runs()[0]
    assert replace(run, **fields).variant == variant


def test_published_images_are_for_colour_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = Selection(datasets=("cifar10", "letter"), images="published", seeds=(0,))
    runs = choice.of(GRIDS["accuracy"]).runs()
    images = {(run.dataset, run.images) for run in runs}
    assert images == {("cifar10", "published"), ("letter", "proper")}
    records = [Record(run, {"paper": 0.5}) for run in (*runs, replace(runs[0], images="proper"))]
    found = choice.records(GRIDS["accuracy"], records)
    assert found == [record for record in records if record.run.images == "published"]
    with pytest.raises(ValueError, match="colour images: letter"):
        replace(choice, datasets=("letter",)).of(GRIDS["accuracy"])

    spec = replace(SPECS["cifar10"], shape=(8, 8, 3), n_train=24, n_test=8, digest=None)
    x = np.random.default_rng(0).integers(0, 256, (32, 8, 8, 3)).astype(np.uint8)
    seen = []

    def load(name: str, data: object, images: Any = "proper") -> Dataset:
        seen.append(images)
        return Dataset(replace(spec, images=images), x, (np.arange(32) % 4).astype(np.uint8))

    monkeypatch.setattr(execute_module, "load", load)
    run = replace(RUN, dataset="cifar10", model="resnet32", pairs=6, epochs=1, method="supervised")
    both = [run, replace(run, images="published")]
    assert set(dict(execute_module.execute(both, device="cpu", workers=1))) == set(both)
    assert seen == ["proper", "published"], "they train on what they say"
