from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from pairlearn.data import SPECS
from pairlearn.paper import GRIDS, summarize
from pairlearn.paper.cells import Cell
from pairlearn.paper.figures import (
    draw_figures,
    plot_accuracy,
    plot_gamma,
    plot_robustness_heatmap,
    save_figures,
)
from paper_results import made_up

OURS = "ours, coloured by method"


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
    one, two = (save_figures("gamma", cells, tmp_path / name, ["svg"])[0] for name in "ab")
    assert one.read_bytes() == two.read_bytes()


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
    assert figure.get_suptitle() == f"{origin}; bands ± one standard deviation over seeds"
    ((_, figure),) = draw_figures("robustness", fake_cells("robustness", datasets=("letter",)))
    assert figure.get_suptitle() == f"Letter, {origin}"


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
    perfect = [Cell(cells[0].config, "paper", 1.0, 0.0, (0,))]
    assert plot_accuracy(perfect, Figure().subplots()).get_xlim()[1] > 0
    # Published numbers stand beside the subset that they were measured on.
    stratified = [replace(cell, test_subset="stratified") for cell in cells]
    ax = plot_accuracy(stratified, Figure().subplots())
    assert set(ax.get_legend_handles_labels()[1]) == {OURS, "supervised, ours"}
