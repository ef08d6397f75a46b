"""Whole figures of the theory, and the files of tables and figures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pairlearn.atomic import replacing
from pairlearn.experiments.figure_files import save_figure
from pairlearn.experiments.render import to_csv
from pairlearn.experiments.theory.error_bounds import draw_bounds
from pairlearn.experiments.theory.figures_variance import draw_variance
from pairlearn.experiments.theory.geometry import draw_geometry
from pairlearn.experiments.theory.numbers import Row
from pairlearn.experiments.theory.prior_error import draw_prior
from pairlearn.extras import missing_extra
from pairlearn.style import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_theory", "save_theory"]


def draw_theory(tables: Mapping[str, Sequence[Row]]) -> list[tuple[str, Figure]]:
    """The four figures of the theory, with names for their files.

    Parameters
    ----------
    tables : mapping of str to sequence of dict
        Of `compute_theory`.

    Returns
    -------
    list of tuple of str and matplotlib Figure

    Examples
    --------
    >>> from pairlearn.experiments.theory import TheorySettings, compute_theory
    >>> tables = compute_theory(TheorySettings((0.2,), (30,), 5, 10, (30,), 1))
    >>> [name for name, _ in draw_theory(tables)]
    ['geometry', 'prior', 'variance', 'bounds']
    """
    try:
        import matplotlib
    except ImportError:
        raise missing_extra("plot", "matplotlib", "a figure") from None
    with matplotlib.rc_context(STYLE):
        return [
            ("geometry", draw_geometry(tables["geometry"])),
            ("prior", draw_prior(tables["prior"])),
            ("variance", draw_variance(tables)),
            ("bounds", draw_bounds(tables["bounds"])),
        ]


def save_theory(tables: Mapping[str, Sequence[Row]], folder: str | os.PathLike[str]) -> list[Path]:
    """Write every table as CSV and every figure as PNG; each file is whole or is not there.

    Parameters
    ----------
    tables : mapping of str to sequence of dict
        Of `compute_theory`.
    folder : path-like
        Where the files go.

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.experiments.theory import TheorySettings, compute_theory
    >>> tables = compute_theory(TheorySettings((0.2,), (30,), 5, 10, (30,), 1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(save_theory(tables, folder))
    11
    """
    figures = draw_theory(tables)
    files = []
    for name, rows in tables.items():
        files.append(Path(folder, f"{name}.csv"))
        with replacing(files[-1]) as part:
            part.write_text(to_csv(rows), encoding="utf-8")
    return files + [save_figure(figure, Path(folder, f"{name}.png")) for name, figure in figures]
