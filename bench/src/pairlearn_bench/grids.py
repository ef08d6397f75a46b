"""The paper's experiments as grids of runs, and selections from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any

from pairlearn import PairClassifier
from pairlearn.estimators.parameters import recipe_of
from pairlearn.models import CONVOLUTIONAL, PERCEPTRONS
from pairlearn_bench.data import SPECS, get_spec
from pairlearn_bench.data.dataset import PAPER_DATASETS as PAPER_DATASETS
from pairlearn_bench.runs import (
    CLASSES,
    CORRECTIONS,
    GUIDED,
    METHODS,
    SCONFCONFDIFF,
    Record,
    Run,
    canonical_name,
    check_field,
    convex_method,
    is_defined,
)
from pairlearn_bench.statements import SIBLING_METHODS

_MLP_DATASETS = tuple(name for name in PAPER_DATASETS if SPECS[name].model == "mlp")
_TENTHS = tuple(round(i / 10, 1) for i in range(11))


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All combinations of a few lists of values, except methods undefined at a prior.

    Parameters
    ----------
    name, description : str
    methods : tuple of str
        Names for :func:`pairlearn.make_risk`.
    datasets, priors, prior_factors, label_noises, fractions, seeds : tuple
        Values of those fields of :class:`Run`.
    pairs, epochs, model, annotator, images : optional
        Replace the recipe of each benchmark; as in :class:`Run`.

    Examples
    --------
    >>> grid = GRIDS["accuracy"].select(datasets=["mnist"])
    >>> len(grid.runs())
    285
    >>> run = grid.runs()[0]
    >>> run.method, run.prior, run.pairs, run.epochs
    ('sconfconfdiff-none', 0.2, 15000, 200)
    """

    name: str
    description: str
    methods: tuple[str, ...]
    datasets: tuple[str, ...] = PAPER_DATASETS
    priors: tuple[float | None, ...] = (0.2,)
    prior_factors: tuple[float, ...] = (1.0,)
    label_noises: tuple[float, ...] = (0.0,)
    fractions: tuple[float, ...] = (1.0,)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    pairs: int | None = None
    epochs: int | None = None
    model: str | None = None
    annotator: str = "paper"
    images: str = "proper"

    def select(self, **chosen: Any) -> Grid:
        """Return the grid with other values of its fields; None leaves a field unchanged.

        Values need not be in the grid: ``datasets=["digits"]`` is a quick trial.
        """
        changes: dict[str, Any] = {k: v for k, v in chosen.items() if v is not None}
        if "methods" in changes:
            changes["methods"] = map(canonical_name, changes["methods"])
        for name in {"datasets", "priors", "seeds", "methods", "fractions"}.intersection(changes):
            changes[name] = tuple(dict.fromkeys(changes[name]))  # a repeated value repeats runs
        return replace(self, **changes)

    def runs(self) -> list[Run]:
        """Expand to runs; those with the same pairs are adjacent."""
        varied = self.priors, self.seeds, self.prior_factors, self.label_noises, self.fractions
        return [
            Run(
                dataset=dataset,
                prior=prior,
                seed=seed,
                method=method,
                prior_factor=factor,
                label_noise=noise,
                fraction=fraction,
                annotator=self.annotator,
                model=self.model or spec.model,
                pairs=self.pairs or spec.n_pairs,
                epochs=self.epochs or spec.epochs,
                batch_size=spec.batch_size,
                learning_rate=spec.learning_rate,
                weight_decay=spec.weight_decay,
                images=self.images if len(spec.shape) == 3 else "proper",
            )
            for dataset in self.datasets
            for spec in [get_spec(dataset)]
            for prior, seed, factor, noise, fraction, method in product(*varied, self.methods)
            if is_defined(method, None if prior is None else round(factor * prior, 12))
        ]


@dataclass(frozen=True, kw_only=True)
class ClassesGrid(Grid):
    """A grid over numbers of pairs, up to half of a data set's training items.

    Each number has the recipe that `PairClassifier` chooses for so many rows.
    """

    sizes: tuple[int, ...]

    def runs(self) -> list[Run]:
        """Expand to runs, the smallest numbers of pairs first."""
        runs = []
        for dataset in self.datasets:
            for size in (self.pairs,) if self.pairs else self.sizes:
                pairs = min(size, get_spec(dataset).n_train // 2)
                recipe = recipe_of(PairClassifier(), self.model, pairs, 0)
                own: dict[str, Any] = {"epochs": self.epochs or recipe.epochs, "window": 1}
                own |= {"batch_size": recipe.batch_size, "learning_rate": recipe.learning_rate}
                grid = Grid(**{k: v for k, v in vars(self).items() if k != "sizes"})
                grid = replace(grid, datasets=(dataset,), pairs=pairs)
                runs += [replace(run, **own) for run in grid.runs()]
        return list(dict.fromkeys(runs))


_GRIDS = (
    Grid(
        name="accuracy",
        description="every method of the paper and ours, at three class priors",
        methods=tuple(method for method in METHODS if method != GUIDED),
        priors=(0.2, 0.5, 0.8),
    ),
    Grid(
        name="gamma",
        description="the convex combination from ConfDiff (γ = 0) to Sconf (γ = 1)",
        methods=tuple(convex_method(g, c) for c, g in product(CORRECTIONS, _TENTHS)),
        datasets=_MLP_DATASETS,
    ),
    Grid(
        name="limited",
        description="a tenth of the pairs up to all of them",
        methods=(
            *("sconfconfdiff-abs", "convex-0.5-abs", "sconf-abs"),
            *("confdiff-abs", "likelihood-abs"),
        ),
        datasets=_MLP_DATASETS,
        priors=(0.2, 0.5, 0.8),
        fractions=_TENTHS[1:],
    ),
    Grid(
        name="robustness",
        description="a wrong class prior and noisy labels",
        methods=(*SCONFCONFDIFF, "likelihood-abs"),
        prior_factors=(0.8, 0.9, 1.0, 1.1, 1.2),
        label_noises=(0.0, 0.01, 0.05, 0.1, 0.5),
    ),
    Grid(
        name="siblings",
        description="as many statements of every kind about the same items",
        methods=SIBLING_METHODS,
        datasets=("optdigits", "pendigits", "letter"),
        priors=(0.2, 0.5, 0.8),
        fractions=(0.1, 0.3, 1.0),
        pairs=1000,
        annotator="calibrated",
    ),
    ClassesGrid(
        name="classes",
        description="questions about a data set's own classes, at their own priors",
        methods=tuple(CLASSES),
        datasets=_MLP_DATASETS,
        priors=(None,),
        sizes=(300, 1000, 3000, 10_000, 30_000),
        model="mlp-bn",
    ),
)

#: The experiments by name.
GRIDS: Mapping[str, Grid] = MappingProxyType({grid.name: grid for grid in _GRIDS})


def get_grid(name: str) -> Grid:
    """The experiment called ``name``, a key of ``GRIDS``.

    Examples
    --------
    >>> get_grid("gamma").description
    'the convex combination from ConfDiff (γ = 0) to Sconf (γ = 1)'
    """
    if name not in GRIDS:
        raise ValueError(f"grid {name!r} is unknown; choose one of {', '.join(GRIDS)}")
    return GRIDS[name]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Values to which runs are restricted; None is no restriction.

    Methods are names for :func:`pairlearn.make_risk`, in any spelling. "published" images are
    refused where no chosen data set has colours; of a grid, the others are "proper".

    Examples
    --------
    >>> from pairlearn_bench import get_grid
    >>> choice = Selection(datasets=("letter",), seeds=(0,), epochs=20)
    >>> len(choice.of(get_grid("gamma")).runs())
    33
    """

    datasets: tuple[str, ...] | None = None
    priors: tuple[float, ...] | None = None
    seeds: tuple[int, ...] | None = None
    methods: tuple[str, ...] | None = None
    fractions: tuple[float, ...] | None = None
    pairs: int | None = None
    epochs: int | None = None
    model: str | None = None
    annotator: str | None = None
    images: str | None = None

    def __post_init__(self) -> None:
        for name in self.datasets or ():
            get_spec(name)
        if self.methods is not None:
            object.__setattr__(self, "methods", tuple(map(canonical_name, self.methods)))
        for name in ("priors", "seeds", "fractions"):
            for value in getattr(self, name) or ():
                check_field(name.removesuffix("s"), value, name)
        for name in ("pairs", "epochs", "model", "annotator", "images"):
            if (value := getattr(self, name)) is not None:
                check_field(name, value)

    @classmethod
    def parse(cls, **given: Any) -> Selection:
        """Parse the texts of fields that are lists, separated by commas; take others as they are.

        For seeds a single number is their count, and ``3-5`` is a range.

        Examples
        --------
        >>> Selection.parse(priors="0.2,0.8", seeds="3").seeds
        (0, 1, 2)
        """
        lists = {k: v for k, v in given.items() if k in _PARSERS and v is not None}
        return cls(**given | {name: _PARSERS[name](text, name) for name, text in lists.items()})

    def of(self, grid: Grid) -> Grid:
        """Return the grid with these values."""
        chosen = grid.select(**vars(self))
        shapes = {name: get_spec(name).shape for name in chosen.datasets}
        if self.images == "published" and all(len(shape) < 3 for shape in shapes.values()):
            raise ValueError(f"images='published' is for colour images: {', '.join(shapes)}")
        without = [name for name, shape in shapes.items() if len(shape) == 1]
        if self.model in CONVOLUTIONAL and without:
            others = ", ".join(PERCEPTRONS)
            raise ValueError(
                f"{self.model} needs images, and there are none in {', '.join(without)}; "
                f"the models for any data set are {others}"
            )
        return chosen

    def records(self, grid: Grid, records: Iterable[Record]) -> list[Record]:
        """The finished runs that belong to the grid and to this selection.

        A run belongs to the grid by its noise, and by its share of the pairs unless the grid varies
        it; other values outside the grid were chosen by the user who ran them.
        """
        some = len(grid.fractions) > 1 or self.fractions is not None

        def belongs(run: Run) -> bool:
            noise = run.prior_factor in grid.prior_factors and run.label_noise in grid.label_noises
            return noise and (some or run.fraction in grid.fractions)

        return [r for r in records if self.covers(r.run) and belongs(r.run)]

    def covers(self, run: Run) -> bool:
        """Whether a run has these values."""
        chosen = {name: value for name, value in vars(self).items() if value is not None}
        return all(
            getattr(run, name.removesuffix("s")) in value
            if isinstance(value, tuple)
            else getattr(run, name) == value
            for name, value in chosen.items()
        )


def _words(text: str, name: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


def _numbers(text: str, name: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise ValueError(f"{name} {text!r} are not a list of numbers such as 0.2,0.5") from None


def _seeds(text: str, name: str) -> tuple[int, ...]:
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
            f"{name} {text!r} are neither a number of seeds, a range 0-4 nor a list 0,2"
        )
    return seeds


_PARSERS: dict[str, Callable[[str, str], tuple[Any, ...]]] = {
    **dict.fromkeys(("datasets", "methods"), _words),
    **dict.fromkeys(("priors", "fractions"), _numbers),
    "seeds": _seeds,
}
