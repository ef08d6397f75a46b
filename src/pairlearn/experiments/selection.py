"""A part of an experiment, chosen by the user."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from pairlearn.data import SPECS, get_spec
from pairlearn.experiments.grids import Grid
from pairlearn.experiments.methods import canonical_name
from pairlearn.experiments.records import Record
from pairlearn.experiments.spec import Run

__all__ = ["Selection"]

COLOUR = [name for name, spec in SPECS.items() if len(spec.shape) == 3]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Values that runs are restricted to; None is no restriction.

    Parameters
    ----------
    datasets : tuple of str, optional
        Names of benchmarks.
    priors : tuple of float, optional
        Class priors.
    seeds : tuple of int, optional
        Seeds.
    methods : tuple of str, optional
        Names for :func:`pairlearn.make_risk`, in any spelling.
    epochs : int, optional
        Length of the training.
    model, annotator, images : str, optional
        Architecture, annotator, and how colour images are prepared.

    Examples
    --------
    >>> from pairlearn.experiments import get_grid
    >>> choice = Selection(datasets=("letter",), seeds=(0,), epochs=20)
    >>> len(choice.of(get_grid("gamma")).runs())
    33
    """

    datasets: tuple[str, ...] | None = None
    priors: tuple[float, ...] | None = None
    seeds: tuple[int, ...] | None = None
    methods: tuple[str, ...] | None = None
    epochs: int | None = None
    model: str | None = None
    annotator: str | None = None
    images: str | None = None

    def __post_init__(self) -> None:
        for name in self.datasets or ():
            get_spec(name)
        if self.methods is not None:
            object.__setattr__(self, "methods", tuple(map(canonical_name, self.methods)))

    @classmethod
    def parse(
        cls,
        datasets: str | None = None,
        priors: str | None = None,
        seeds: str | None = None,
        methods: str | None = None,
        *,
        epochs: int | None = None,
        model: str | None = None,
        annotator: str | None = None,
        images: str | None = None,
    ) -> Selection:
        """Read lists as one types them, separated by commas.

        For seeds a single number is how many, and ``3-5`` is a range.

        Examples
        --------
        >>> Selection.parse(priors="0.2,0.8", seeds="3").seeds
        (0, 1, 2)
        """
        return cls(
            datasets=_words(datasets),
            priors=_numbers(priors),
            seeds=_seeds(seeds),
            methods=_words(methods),
            epochs=epochs,
            model=model,
            annotator=annotator,
            images=images,
        )

    def of(self, grid: Grid) -> Grid:
        """The grid with these values in place of its own."""
        chosen = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return grid.select(**chosen)

    def records(self, grid: Grid, records: Iterable[Record]) -> list[Record]:
        """The finished runs that belong to the grid and to this selection.

        A run belongs to the grid by its noise and its share of the pairs: other data sets
        or methods than the grid's own were asked for by whoever ran them.
        """
        return [r for r in records if self._covers(r.run) and _belongs(r.run, grid)]

    def _covers(self, run: Run) -> bool:
        lists = (
            (self.datasets, run.dataset),
            (self.priors, run.prior),
            (self.seeds, run.seed),
            (self.methods, run.method),
        )
        single = (
            (self.epochs, run.epochs),
            (self.model, run.model),
            (self.annotator, run.annotator),
            (self.images if run.dataset in COLOUR else None, run.images),
        )
        return all(wanted is None or value in wanted for wanted, value in lists) and all(
            wanted is None or value == wanted for wanted, value in single
        )


def _belongs(run: Run, grid: Grid) -> bool:
    return (
        run.prior_factor in grid.prior_factors
        and run.label_noise in grid.label_noises
        and run.fraction in grid.fractions
    )


def _words(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(filter(None, map(str.strip, text.split(","))))


def _numbers(text: str | None) -> tuple[float, ...] | None:
    try:
        return None if text is None else tuple(map(float, text.split(",")))
    except ValueError:
        raise ValueError(f"priors {text!r} are not a list of numbers such as 0.2,0.5") from None


def _seeds(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        if "-" in text:
            first, last = map(int, text.split("-"))
            seeds = tuple(range(first, last + 1))
        else:
            seeds = tuple(map(int, text.split(","))) if "," in text else tuple(range(int(text)))
    except ValueError:
        seeds = ()
    if not seeds:
        raise ValueError(
            f"seeds {text!r} are neither a number of seeds, a range 0-4 nor a list 0,2"
        )
    return seeds
