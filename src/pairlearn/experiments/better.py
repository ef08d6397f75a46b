"""Whether the pair likelihood beats what was published, and reaches what it could reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pairlearn.experiments.compare import NOT_COMPARABLE
from pairlearn.experiments.published import PublishedCell
from pairlearn.experiments.summary import Cell

__all__ = ["Improvement", "improvements"]

CHALLENGER = "likelihood-abs"
CEILING_MARGIN = 0.003
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Improvement:
    """The likelihood beside the best published method, and below its ceiling.

    It learns from the annotator, so the annotator's own accuracy bounds what it can
    reach; so does, at the same number of pairs, training on their true classes.

    Parameters
    ----------
    dataset : str
        Name of the benchmark.
    prior, label_noise : float
        Class prior and σ.
    ours : float
        Mean accuracy of the pair likelihood with ABS.
    best : float
        The best published mean of a weakly supervised method, with whatever ε.
    best_method : str
        Its title.
    supervised, annotator : float or None
        Those of the same runs; None where there are none.

    Examples
    --------
    >>> it = Improvement("mnist", 0.2, 0.0, 0.985, 0.978, "Sconf-ABS", 0.99, 0.986)
    >>> it.beats_best, it.ceiling, it.reaches_ceiling
    (True, 0.986, True)
    """

    dataset: str
    prior: float
    label_noise: float
    ours: float
    best: float
    best_method: str
    supervised: float | None = None
    annotator: float | None = None

    @property
    def beats_best(self) -> bool:
        """Whether it is at or above the best published method."""
        return self.ours >= self.best - _ROUNDING

    @property
    def ceiling(self) -> float | None:
        """The lesser of supervised and annotator; None unless both are known."""
        if self.supervised is None or self.annotator is None:
            return None
        return min(self.supervised, self.annotator)

    @property
    def reaches_ceiling(self) -> bool | None:
        """Whether it is at most 0.003 below the ceiling; None where there is none."""
        if self.ceiling is None:
            return None
        return self.ours >= self.ceiling - CEILING_MARGIN - _ROUNDING

    @property
    def ok(self) -> bool:
        """Whether nothing that could be checked failed."""
        return self.beats_best and self.reaches_ceiling is not False


def improvements(cells: Sequence[Cell], published: Sequence[PublishedCell]) -> list[Improvement]:
    """The likelihood wherever ours has runs of it and the published tables have numbers.

    The likelihood takes no prior, so its cells at one σ and five ε are one and the same; it is
    counted once and has to beat the best of the five. Published copies of a smaller noise, and
    data sets that cannot be compared, are left out.

    Parameters
    ----------
    cells : sequence of Cell
        Ours, on one test subset.
    published : sequence of PublishedCell
        :func:`published_accuracy` or :func:`published_robustness`.

    Returns
    -------
    list of Improvement

    Examples
    --------
    >>> from pairlearn.experiments import published_accuracy
    >>> improvements([], published_accuracy())
    []
    """
    ours = {_place(c): c for c in cells if c.config.method == CHALLENGER}
    supervised = {_place(c): c for c in cells if not c.method.is_weak}
    return [
        Improvement(
            *place,
            ours=ours[place].mean,
            best=best.mean,
            best_method=best.method.title,
            supervised=supervised[place].mean if place in supervised else None,
            annotator=ours[place].annotator,
        )
        for place, best in _best(published).items()
        if place in ours
    ]


def _place(cell: Cell | PublishedCell) -> tuple[str, float, float]:
    """What the likelihood depends on: data set, prior and σ."""
    source = cell.config if isinstance(cell, Cell) else cell
    return source.dataset, source.prior, source.label_noise


def _best(published: Sequence[PublishedCell]) -> dict[tuple[str, float, float], PublishedCell]:
    best: dict[tuple[str, float, float], PublishedCell] = {}
    for cell in published:
        if not cell.method.is_weak or cell.copy_of is not None or cell.dataset in NOT_COMPARABLE:
            continue
        place = _place(cell)
        if place not in best or cell.mean > best[place].mean:
            best[place] = cell
    return best
