"""Published numbers, and ours against them cell by cell."""

from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from pairlearn_bench import (
    PAPER_DATASETS,
    Contest,
    Record,
    Run,
    compare_with_published,
    get_grid,
    headline_counts,
    published_accuracy,
    published_robustness,
    summarize,
)
from pairlearn_bench.cells import PUBLISHED, Cell, _rows
from pairlearn_bench.data import SPECS
from pairlearn_bench.runs import METHODS

BASE = Run(dataset="mnist", prior=0.2, seed=0, method="supervised", pairs=15000, epochs=200)


def cell(method: str, mean: float, std: float = 0.0, **fields: object) -> Cell:
    annotator = fields.pop("annotator", None)
    config = replace(BASE, method=method, **fields)
    off = std * (5 / 4) ** 0.5
    values = tuple(mean + off * sign for sign in (1, 1, -1, -1, 0))
    annotators = () if annotator is None else (annotator,) * 5
    return Cell(config, "paper", values, (0, 1, 2, 3, 4), annotators)  # type: ignore[arg-type]


def test_published_accuracy_is_whole() -> None:
    cells = published_accuracy()
    assert len(cells) == 360
    priors = {0.2: 19, 0.5: 7, 0.8: 19}
    assert Counter((c.dataset, c.prior) for c in cells) == {
        (name, prior): count for name in PAPER_DATASETS for prior, count in priors.items()
    }
    assert {c.method.name for c in cells} < set(METHODS)
    assert all(0 < c.mean < 1 and 0 <= c.std < 0.4 for c in cells)
    # SconfConfDiff has no negative weight at ½, so that nothing is corrected.
    rows = Counter(
        (c.dataset, c.mean, c.std)
        for c in cells
        if c.prior == 0.5 and c.method.risk == "sconfconfdiff"
    )
    assert set(rows.values()) == {3}


def test_published_robustness_is_whole_and_its_copies_are_flagged() -> None:
    cells = published_robustness()
    assert len(cells) == 600
    assert Counter(c.dataset for c in cells) == dict.fromkeys(PAPER_DATASETS, 75)
    columns = defaultdict(list)
    for c in cells:
        columns[c.dataset, c.label_noise].append((c.prior_factor, c.method, c.mean, c.std))
    for c in cells:
        earlier = [n for n in (0.0, 0.01, 0.05, 0.1, 0.5) if n < c.label_noise]
        same = [n for n in earlier if columns[c.dataset, n] == columns[c.dataset, c.label_noise]]
        assert [c.copy_of] == (same or [None])


def test_published_recipes_are_those_of_the_registry() -> None:
    recipes = _rows("datasets.csv")
    assert [row["dataset"] for row in recipes] == list(PAPER_DATASETS)
    names = {name: f"n_{name}" for name in ("train", "test", "pairs", "features", "classes")}
    names |= {name: name for name in ("epochs", "batch_size", "learning_rate", "weight_decay")}
    names |= {"model": "model"}
    for row in recipes:
        for column, name in names.items():
            value = getattr(SPECS[row["dataset"]], name)
            assert type(value)(row[column]) == value


@pytest.mark.parametrize("grid", PUBLISHED)
def test_every_published_cell_is_run_by_its_grid(grid: str) -> None:
    cells = summarize([Record(run, {"paper": 0.5}) for run in get_grid(grid).runs()], "paper")
    assert compare_with_published(cells, PUBLISHED[grid]()).absent == 0


def test_cells_by_hand() -> None:
    # Published: supervised 0.990 ± 0.000, SconfConfDiff-ABS 0.978 ± 0.002, Sconf-ABS 0.960 ± 0.004.
    comparison = compare_with_published(
        [
            cell("supervised", 0.989, 0.001),  # 0.001 off, and 0.001 allowed
            cell("sconfconfdiff-abs", 0.975, 0.001),  # 0.003 off; 0.001 + 0.002
            cell("sconf-abs", 0.966, 0.001),  # 0.006 off; 0.001 + 0.004
            cell("sconfconfdiff-none", 0.95, 0.02),  # 0.056 off; 0.02 + 0.043
            cell("likelihood-abs", 0.99),  # never published
            cell("supervised", 0.1, fraction=0.5),  # nor this
        ],
        published_accuracy(),
    )
    assert comparison.absent == 356
    verdicts = {"SconfConfDiff-ABS": True, "Sconf-ABS": False, "Supervised": True}
    verdicts["SconfConfDiff-Unbiased"] = True
    assert {c.method: c.ok for c in comparison.cells} == verdicts
    assert [c.tolerance for c in comparison.cells] == pytest.approx([0.063, 0.003, 0.005, 0.001])
    assert comparison.within("reproduced") == (2, 3)
    assert comparison.within("uncorrected") == (1, 1)
    assert not comparison.ok


@pytest.mark.parametrize(
    ("method", "off", "ok"),
    [
        ("sconf-abs", 0.0, True),
        ("sconf-abs", 0.004, True),  # published ± 0.004
        ("sconf-abs", 0.0041, False),
        ("sconf-relu", 0.3, True),  # counted apart
    ],
)
def test_all_cells_with_abs_and_supervised_have_to_agree(method: str, off: float, ok: bool) -> None:
    cells = [
        cell(name, c.mean - off * (name == method), dataset=c.dataset, prior=c.prior)
        for c in published_accuracy()
        for name in [c.method.name]
        if c.dataset == "mnist" and c.prior == 0.2
    ]
    assert compare_with_published(cells, published_accuracy()).ok == ok


def test_a_wide_published_spread_is_counted_apart() -> None:
    wide = {c.method.name for c in published_accuracy() if c.std > 0.05 and c.dataset == "mnist"}
    assert wide
    cells = [cell(name, 0.5) for name in sorted(wide)]
    comparison = compare_with_published(cells, published_accuracy())
    assert comparison.within("wide")[1] > 0 == comparison.within("reproduced")[1]


def test_copied_cells_count_for_nothing() -> None:
    noisy = {"prior_factor": 0.8, "label_noise": 0.01}
    cells = [cell("sconfconfdiff-abs", 0.5, **noisy), cell("sconfconfdiff-abs", 0.978)]
    comparison = compare_with_published(cells, published_robustness())
    assert {(c.is_copy, c.ok) for c in comparison.cells} == {(True, False), (False, True)}
    assert (comparison.within("reproduced"), comparison.ok) == ((1, 1), True)
    text = str(comparison)
    assert "| MNIST    | 0.2 | 0.8 | 0.01 | SconfConfDiff-ABS | 0.974" in text
    assert "| copy |" in text
    assert "Left out, published numbers copied from a smaller noise: 1 cells" in text


@pytest.mark.parametrize(("mean", "verdict"), [(0.985, "ahead"), (0.978, "level"), (0.9, "behind")])
def test_likelihood_against_the_best_published(mean: float, verdict: str) -> None:
    # Best published on MNIST at 0.2: SconfConfDiff-ABS, 0.978 ± 0.002.
    runs = [
        Record(replace(BASE, method="likelihood-abs", seed=seed), {"paper": mean + off})
        for seed, off in enumerate((0.001, -0.001, 0.0, 0.001, -0.001))
    ]
    contest = headline_counts("accuracy", runs)["published"]
    assert isinstance(contest, Contest) and contest.verdicts == (verdict,)
    assert contest.mean == pytest.approx(mean - 0.978)


def test_other_images_are_shown_and_not_counted() -> None:
    foreign = [cell(name, 0.99, dataset="cifar10") for name in ("likelihood-abs", "supervised")]
    comparison = compare_with_published(foreign, published_accuracy())
    assert (len(comparison.cells), comparison.evidence, comparison.ok) == (1, (), True)
    assert "Left out, published on other images: 1 cells" in str(comparison)


def test_report_in_words() -> None:
    cells = [
        cell("supervised", 0.99),
        cell("sconf-abs", 0.93),
        cell("likelihood-abs", 0.985, annotator=0.986),
    ]
    comparison = compare_with_published(cells, published_accuracy())
    assert str(comparison) == (
        """\
| data set | π₊  | method     | published | ours   | difference | tolerance | ok  |
| -------- | --- | ---------- | --------- | ------ | ---------- | --------- | --- |
| MNIST    | 0.2 | Sconf-ABS  | 0.960     | 0.9300 | -0.0300    | 0.0040    | NO  |
| MNIST    | 0.2 | Supervised | 0.990     | 0.9900 | +0.0000    | 0.0000    | yes |

Within tolerance, ABS and supervised: 1 of 2 cells
Published cells without runs of ours: 358"""
    )
    data = comparison.to_dict()
    assert data["cells"][0]["changes"] == ()
    assert data["ok"] is comparison.ok is False
    assert data["within_tolerance"]["reproduced"] == (1, 2)
