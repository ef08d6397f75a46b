"""Cells over seeds, and the tables and figures of them."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from pairlearn_bench import (
    GRIDS,
    Record,
    accuracy_table,
    gamma_table,
    limited_table,
    result_rows,
    robustness_table,
    summarize,
    to_csv,
    to_markdown,
)
from pairlearn_bench.cells import Cell
from pairlearn_bench.data import SPECS
from pairlearn_bench.figures import (
    draw_figures,
    plot_accuracy,
    plot_gamma,
    plot_robustness_heatmap,
    save_figures,
)
from pairlearn_bench.tables import to_latex
from paper_results import accurate, made_up

OURS = "ours, coloured by method"
TINY = [
    *accurate("supervised", 0.98, 0.96, dataset="letter"),
    *accurate("likelihood-abs", 0.95, 0.97),
    *accurate("convex-0.5-abs", 0.9, 0.92),
    *accurate("sconfconfdiff-none", 0.7, 0.8, dataset="letter"),
    *accurate("sconfconfdiff-none", 0.9604, 0.9604),
    *accurate("supervised", 0.99, 0.99),
    *accurate("confdiff-abs", 0.5, prior=0.5),
]


def test_summary_is_over_seeds_and_nothing_else() -> None:
    (cell,) = summarize(accurate("supervised", 0.2, 0.4, 0.4, 0.4, 0.5, 0.5, 0.7, 0.9), "paper")
    assert (cell.mean, cell.std) == pytest.approx((0.5, 0.2)), "the population's"
    cells = summarize(TINY, "paper")
    assert len(cells) == 7
    (cell,) = (c for c in cells if c.config.method == "likelihood-abs")
    assert (round(cell.mean, 12), round(cell.std, 12), cell.seeds) == (0.96, 0.01, (0, 1))
    assert len(summarize([*TINY, *accurate("likelihood-abs", 0.5, epochs=300)], "paper")) == 8
    with pytest.raises(ValueError, match="'test'"):
        summarize(TINY, "test")


def test_summary_knows_the_annotator_only_if_every_run_does() -> None:
    runs = accurate("supervised", 0.9, 0.8)
    runs[1].results["annotator_paper"] = 0.94
    assert summarize(runs, "paper")[0].annotator == pytest.approx(0.96)
    assert summarize([runs[0], Record(runs[1].run, {"paper": 0.8})], "paper")[0].annotator is None


def test_accuracy_table_in_every_format() -> None:
    cells = summarize(TINY, "paper")
    assert to_markdown(accuracy_table(cells)) == (
        """\
Accuracy (mean ± standard deviation over 1–2 seeds), paper test subset; † level with the best

| Class prior | Method                 | MNIST             | Letter            |
| ----------- | ---------------------- | ----------------- | ----------------- |
| π₊ = 0.2    | SconfConfDiff-Unbiased | **0.960 ± 0.000** | **0.750 ± 0.050** |
| π₊ = 0.2    | Convex(γ=0.5)-ABS      | 0.910 ± 0.010†    | –                 |
| π₊ = 0.2    | Likelihood-ABS         | 0.960 ± 0.010†    | –                 |
| π₊ = 0.2    | Supervised             | 0.990 ± 0.000     | 0.970 ± 0.010     |
| π₊ = 0.5    | ConfDiff-ABS           | **0.500**         | –                 |"""
    )
    # A file has the published columns, and its origin.
    assert to_csv(result_rows("accuracy", cells)) == (
        """\
dataset,prior,risk,gamma,correction,accuracy_mean,accuracy_std,seeds,epochs,model,images,test_subset
mnist,0.2,sconfconfdiff,,none,0.9604,0.0,2,200,mlp,proper,paper
mnist,0.2,convex,0.5,abs,0.91,0.01,2,200,mlp,proper,paper
mnist,0.2,likelihood,,abs,0.96,0.01,2,200,mlp,proper,paper
mnist,0.2,supervised,,none,0.99,0.0,2,200,mlp,proper,paper
mnist,0.5,confdiff,,abs,0.5,0.0,1,200,mlp,proper,paper
letter,0.2,sconfconfdiff,,none,0.75,0.05,2,200,mlp,proper,paper
letter,0.2,supervised,,none,0.97,0.01,2,200,mlp,proper,paper
"""
    )


def test_marks_are_paired_tests_against_the_best() -> None:
    """Over five seeds 0.02 behind in each is behind; 0.001 to and fro is level; one seed is not."""
    best = [0.90, 0.91, 0.92, 0.93, 0.94]
    cells = [
        *accurate("likelihood-abs", *best),
        *accurate("confdiff-abs", *(a - 0.02 for a in best)),
        *accurate("sconf-abs", *(a + d for a, d in zip(best, (1e-3, -2e-3) * 3, strict=False))),
        *accurate("sconfconfdiff-abs", 0.5),
    ]
    table = accuracy_table(summarize(cells, "stratified"))
    marks = {row[1]: ("**" in row[2], "†" in row[2]) for row in table.rows}
    assert marks == {
        "SconfConfDiff-ABS": (False, False),
        "ConfDiff-ABS": (False, False),
        "Sconf-ABS": (False, True),
        "Likelihood-ABS": (True, False),
    }
    latex = to_latex(table)
    assert latex.count(r"\textbf") == 1 and latex.count(r"$^\dagger$") == 2  # one in the caption
    assert all(sign not in latex for sign in "π₊±†**")


def test_robustness_table_and_file() -> None:
    noisy = [
        *accurate("sconfconfdiff-abs", 0.9, prior_factor=0.8),
        *accurate("likelihood-abs", 0.95, prior_factor=0.8),
        *accurate("sconfconfdiff-abs", 0.8, prior_factor=0.8, label_noise=0.05),
        *accurate("sconfconfdiff-abs", 0.7, dataset="letter", prior_factor=1.2, label_noise=0.5),
    ]
    cells = summarize(noisy, "paper")
    assert to_markdown(robustness_table(cells)) == (
        """\
Accuracy with the prior multiplied by ε and labels by N(1, σ²) (one seed), paper test subset

| Data set | (ε, σ)      | SconfConfDiff-ABS | Likelihood-ABS |
| -------- | ----------- | ----------------- | -------------- |
| MNIST    | (0.8, 0)    | 0.900             | **0.950**      |
| MNIST    | (0.8, 0.05) | **0.800**         | –              |
| Letter   | (1.2, 0.5)  | **0.700**         | –              |"""
    )
    assert to_csv(result_rows("robustness", cells)).splitlines()[::2] == [
        "dataset,prior_factor,label_noise_std,correction,accuracy_mean,accuracy_std,"
        "risk,seeds,epochs,model,images,test_subset",
        "mnist,0.8,0.0,abs,0.95,0.0,likelihood,1,200,mlp,proper,paper",
        "letter,1.2,0.5,abs,0.7,0.0,sconfconfdiff,1,200,mlp,proper,paper",
    ]


def test_gamma_table_puts_confdiff_and_sconf_at_the_ends() -> None:
    values = {"sconf-relu": 0.9, "convex-0.3-relu": 0.3, "confdiff-abs": 0.8, "confdiff-relu": 0.7}
    cells = summarize([r for item in values.items() for r in accurate(*item)], "paper")
    table = gamma_table(cells)
    assert table.header == ("Data set", "γ", "ReLU", "ABS")
    assert [row[1:] for row in table.rows] == [
        ["0", "0.700", "**0.800**"],
        ["0.3", "**0.300**", "–"],
        ["1", "**0.900**", "–"],
    ]
    gammas = {(row["risk"], row["gamma"]) for row in result_rows("gamma", cells)}
    assert gammas == {("confdiff", 0.0), ("convex", 0.3), ("sconf", 1.0)}


def test_limited_table_counts_pairs() -> None:
    parts = [r for part in (0.1, 1.0) for r in accurate("sconf-abs", 0.7, fraction=part)]
    cells = summarize(parts, "paper")
    labels = [row[:2] for row in limited_table(cells).rows]
    assert labels == [["MNIST, π₊ = 0.2", "1500"], ["MNIST, π₊ = 0.2", "15000"]]
    assert [row["fraction"] for row in result_rows("limited", cells)] == [0.1, 1.0]


def test_cells_that_would_hide_each_other_are_an_error() -> None:
    both = TINY + accurate("likelihood-abs", 0.5, epochs=300)
    with pytest.raises(ValueError, match="epochs 200 and 300: choose one by --epochs"):
        accuracy_table(summarize(both, "paper"))
    # A file tells epochs and models apart by columns, but not numbers of pairs.
    assert len(result_rows("accuracy", summarize(both, "paper"))) == 8
    other = [Record(replace(TINY[0].run, model="mlp-bn"), {"paper": 0.5})]
    assert len(result_rows("accuracy", summarize([*TINY, *other], "paper"))) == 8
    fewer = [Record(replace(TINY[0].run, pairs=7), {"paper": 0.5})]
    with pytest.raises(ValueError, match="pairs 7 and 15000: leave a file out"):
        result_rows("accuracy", summarize([*TINY, *fewer], "paper"))


# --- figures --------------------------------------------------------------------------------------


def fake_cells(grid: str, **selection: Any) -> list[Cell]:
    return summarize(made_up(grid, **selection), "paper")


@pytest.mark.parametrize(
    ("grid", "names"),
    [
        ("accuracy", ["accuracy-0.2", "accuracy-0.5", "accuracy-0.8"]),
        ("gamma", ["gamma-0.2"]),
        ("limited", ["limited-0.2", "limited-0.5", "limited-0.8"]),
        ("robustness", ["robustness-letter"]),
    ],
)
def test_every_figure_is_drawn_and_saved(grid: str, names: list[str], tmp_path: Path) -> None:
    files = save_figures(grid, fake_cells(grid, datasets=("letter",)), tmp_path)
    assert [file.name for file in files] == [
        f"{name}.{e}" for name in names for e in ("png", "svg")
    ]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert all(file.stat().st_size > 5_000 for file in files)


def test_every_grid_has_figures_that_are_the_same_every_time(tmp_path: Path) -> None:
    assert all(draw_figures(grid, []) == [] for grid in GRIDS)
    cells = fake_cells("gamma", datasets=("letter",))
    first, second = (save_figures("gamma", cells, tmp_path / name, ["svg"])[0] for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_panels_name_the_data_sets_and_one_legend_the_lines() -> None:
    sets = ("letter", "mnist", "kmnist", "optdigits", "pendigits")
    for chosen, shape in ((sets, (2, 3)), ((*sets, "fashion-mnist"), (2, 3)), (sets[:1], (1, 1))):
        ((_, figure),) = draw_figures("gamma", fake_cells("gamma", datasets=chosen))
        titles = [ax.get_title() for ax in figure.axes if ax.get_visible()]
        assert titles == [spec.title for name, spec in SPECS.items() if name in chosen]
        assert figure.axes[0].get_gridspec().get_geometry() == shape
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["Unbiased", "ReLU", "ABS"]
        assert all(ax.get_legend() is None for ax in figure.axes)
    origin = "prior 0.2, paper test subset"
    title = f"{origin}; bands ± one standard deviation over seeds"
    assert figure.get_suptitle().replace("\n", " ") == title
    ((_, figure),) = draw_figures("robustness", fake_cells("robustness", datasets=("letter",)))
    assert figure.get_suptitle() == f"Letter, {origin}"


@pytest.mark.parametrize("grid", ["accuracy", "gamma", "limited"])
def test_a_single_panel_has_room_for_its_titles_and_labels(grid: str) -> None:
    fields: dict[str, Any] = {"model": "resnet32", "images": "published", "epochs": 40}
    cells = fake_cells(grid, datasets=("cifar10",), priors=(0.2,), **fields)
    ((_, figure),) = draw_figures(grid, cells)
    figure.draw_without_rendering()
    (ax,) = figure.axes
    texts = [figure.texts[0], ax.title, ax.xaxis.label, ax.yaxis.label]
    for extent in (text.get_window_extent() for text in texts if text.get_text()):
        assert figure.bbox.x0 <= extent.x0 <= extent.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= extent.y0 <= extent.y1 <= figure.bbox.y1
    assert ax.get_window_extent().height > 0.45 * figure.bbox.height
    one_seed = [replace(cell, seeds=(0,)) for cell in cells]
    ((_, figure),) = draw_figures(grid, one_seed)
    assert "over seeds" not in figure.get_suptitle()


def test_labels_side_by_side_have_room_between() -> None:
    # Errors from 0.0017 to 0.09, as on Pendigits: 0.995 and 0.998 would nearly touch.
    cells = fake_cells("accuracy", datasets=("mnist", "letter", "pendigits"), priors=(0.2,))
    cells = [
        replace(c, values=(0.998 - 0.07 * (i % 2),) * len(c.seeds)) for i, c in enumerate(cells)
    ]
    ((_, figure),) = draw_figures("accuracy", cells)
    figure.draw_without_rendering()
    for ax in figure.axes:
        labels = [label.get_window_extent() for label in ax.get_xticklabels()]
        assert len(labels) >= 3
        for left, right in itertools.pairwise(labels):
            assert right.x0 - left.x1 > 0.25 * right.width


def test_methods_are_named_on_every_panel_unless_all_have_the_same() -> None:
    def left_labels(cells: Sequence[Cell]) -> list[bool]:
        ((_, figure),) = draw_figures("accuracy", cells)
        return [ax.yaxis.get_tick_params()["labelleft"] for ax in figure.axes]

    cells = fake_cells("accuracy", datasets=("mnist", "letter"), priors=(0.5,))
    assert left_labels(cells) == [True, False]
    assert left_labels(cells[:-3]) == [True, True]


def test_gamma_curve_shows_means_at_their_gamma() -> None:
    cells = fake_cells("gamma", datasets=("letter",))
    ax = plot_gamma(cells, Figure().subplots())
    line = next(line for line in ax.get_lines() if line.get_label() == "ReLU")
    expected = sorted((c.gamma, 1 - c.mean) for c in cells if c.method.correction == "relu")
    assert line.get_xydata() == pytest.approx(np.array(expected))
    # On a scale of errors that holds every band, with accuracies as its labels.
    assert ax.get_yscale() == "log" and ax.get_ylim()[0] > ax.get_ylim()[1]
    assert all(0.1 < float(t.get_text()) < 1 for t in ax.get_yticklabels())
    assert len(ax.collections) == 3, "a band for each line"


def test_heat_map_prints_every_accuracy_and_leaves_gaps_empty() -> None:
    cells = fake_cells("robustness", datasets=("letter",), methods=("likelihood-abs",))
    ax = plot_robustness_heatmap(cells, Figure().subplots())
    assert [text.get_text() for text in ax.texts] == [f"{cell.mean:.3f}" for cell in cells]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "0.01", "0.05", "0.1", "0.5"]
    assert len(plot_robustness_heatmap(cells[1:], Figure().subplots()).texts) == 24


def test_accuracy_shows_ours_the_published_and_the_supervised() -> None:
    cells = fake_cells("accuracy", datasets=("letter",), priors=(0.2,))
    ax = plot_accuracy(cells, Figure().subplots())
    assert set(ax.get_legend_handles_labels()[1]) == {OURS, "published", "supervised, ours"}
    assert len(ax.containers) == 22 + 18 + 1, "the annotator is the last row"
    assert ax.get_yticklabels()[-1].get_text() == "Annotator"
    perfect = [Cell(cells[0].config, "paper", (1.0,), (0,))]
    assert plot_accuracy(perfect, Figure().subplots()).get_xlim()[1] > 0
    # Published numbers stand beside the subset that they were measured on.
    stratified = [replace(cell, test_subset="stratified") for cell in cells]
    ax = plot_accuracy(stratified, Figure().subplots())
    assert set(ax.get_legend_handles_labels()[1]) == {OURS, "supervised, ours"}
