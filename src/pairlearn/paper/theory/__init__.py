"""The theory in numbers and pictures: class prior, variance, bounds beside errors.

Functions named ``*_rows`` are pure and return dictionaries with stable columns; what they draw
at random follows from their seed alone. Those named ``plot_*`` draw such rows into given axes
and return them. `compute_theory` gathers all rows into tables, `summarize_theory` says in a few
numbers what they show, and `save_theory` writes tables and figures.

Colours are those of Okabe and Ito; what a colour tells, a marker or a line style tells too.
"""

from __future__ import annotations

from pairlearn.paper.theory.error_bounds import TwoGaussians as TwoGaussians
from pairlearn.paper.theory.error_bounds import bound_rows as bound_rows
from pairlearn.paper.theory.error_bounds import plot_bounds as plot_bounds
from pairlearn.paper.theory.prior_error import limiting_prior_error as limiting_prior_error
from pairlearn.paper.theory.prior_error import plot_prior_coverage as plot_prior_coverage
from pairlearn.paper.theory.prior_error import plot_prior_error as plot_prior_error
from pairlearn.paper.theory.prior_error import prior_rows as prior_rows
from pairlearn.paper.theory.rows import Row as Row
from pairlearn.paper.theory.rows import Tables as Tables
from pairlearn.paper.theory.rows import log_log_slope as log_log_slope
from pairlearn.paper.theory.run import FULL as FULL
from pairlearn.paper.theory.run import QUICK as QUICK
from pairlearn.paper.theory.run import Progress as Progress
from pairlearn.paper.theory.run import TheorySettings as TheorySettings
from pairlearn.paper.theory.run import compute_theory as compute_theory
from pairlearn.paper.theory.run import draw_theory as draw_theory
from pairlearn.paper.theory.run import save_theory as save_theory
from pairlearn.paper.theory.run import summarize_theory as summarize_theory
from pairlearn.paper.theory.variance import SmallWorld as SmallWorld
from pairlearn.paper.theory.variance import beta_rows as beta_rows
from pairlearn.paper.theory.variance import lambda_rows as lambda_rows
from pairlearn.paper.theory.variance import member_rows as member_rows
from pairlearn.paper.theory.variance import plane_rows as plane_rows
from pairlearn.paper.theory.variance import plot_beta_plane as plot_beta_plane
from pairlearn.paper.theory.variance import plot_beta_variance as plot_beta_variance
from pairlearn.paper.theory.variance import (
    plot_lambda_variance as plot_lambda_variance,
)
