"""Methods, the full description of one training, and the record of a finished one.

A method is a risk of the catalogue or a variant of one: "likelihood-guided" is "likelihood-abs"
with the guiding prior of :class:`~pairlearn.PairClassifier`, and "likelihood-label" is
"likelihood-abs" trained on other statements (:mod:`pairlearn_bench.statements`).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from typing import Any, TypeAlias, TypeVar

from pairlearn.models import CONVOLUTIONAL, PERCEPTRONS
from pairlearn.risks import RISKS, Risk, make_risk
from pairlearn_bench.data import SPECS
from pairlearn_bench.rivals import RIVALS
from pairlearn_bench.statements import LIKELIHOODS, NOISY, SIDELESS, statements_of

CORRECTIONS = ("none", "relu", "abs")
GUIDED = "likelihood-guided"
PUBLISHED_IMAGES = "published images"
#: Methods for a data set's own classes, and their titles.
CLASSES = {
    "classes-true": "2n true classes",
    "classes-labels": "2n drawn labels",
    "classes-label": "n drawn labels",
    "classes-confidences": "2n soft labels",
    "classes-all": "every class, soft",
    "classes-all-hard": "every class, hard",
    "classes-proposed": "a proposed class, soft",
    "classes-proposed-hard": "a proposed class, hard",
    "classes-random": "a random class, soft",
    "classes-random-hard": "a random class, hard",
    "classes-half": "a random half, soft",
    "classes-half-hard": "a random half, hard",
    "classes-same": "same alone, soft",
    "classes-same-hard": "same alone, hard (MCL)",
    "classes-same-true": "same alone, true classes (MCL)",
}
#: Methods that learn from answers about single items.
OF_ITEMS = ("supervised", *list(CLASSES)[:4])
VARIANTS = (GUIDED, *LIKELIHOODS, *RIVALS, *CLASSES)

_CORRECTION_TITLES = {
    "none": "Unbiased",
    "relu": "ReLU",
    "abs": "ABS",
    "ascent": "ascent",
    "guided": "ABS, guided",
}
_NAME = re.compile(r"(?P<family>[a-z]+)(-(?P<number>\d*\.?\d+))?(-(?P<correction>[a-z].*))?")
_ORDINARY_PRIOR = 0.3  # where every risk is defined, so that only a wrong name is refused


@dataclass(frozen=True)
class Method:
    """A method in the three columns of the paper's tables.

    ``risk`` is the family, with its number for families other than convex; ``gamma`` is the γ of
    the convex combination, else None; ``correction`` is "none", "relu", "abs", "slope=NUMBER" or
    "guided".

    Examples
    --------
    >>> Method.parse("convex-0.5-abs")
    Method(risk='convex', gamma=0.5, correction='abs')
    >>> Method.parse("convex-0.5-abs").title, Method.parse("supervised").title
    ('Convex(γ=0.5)-ABS', 'Supervised')
    """

    risk: str
    gamma: float | None
    correction: str

    @classmethod
    def parse(cls, name: str) -> Method:
        """Parse a name of the catalogue."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"method {name!r} is not a name of make_risk")
        family, number, correction = match["family"], match["number"], match["correction"] or "none"
        if number is None:
            return cls(family, None, correction)
        if family == "convex":
            return cls(family, float(number), correction)
        return cls(f"{family}-{number}", None, correction)

    @property
    def name(self) -> str:
        """The name for :func:`pairlearn.make_risk`."""
        if self.risk == "supervised":
            return self.risk
        number = "" if self.gamma is None else f"-{self.gamma:g}"
        return f"{self.risk}{number}-{self.correction}"

    @property
    def title(self) -> str:
        """The name in tables and figures, that of the paper if it has one."""
        if self.name in CLASSES:
            return CLASSES[self.name]
        family, _, number = self.risk.partition("-")
        if family in ("mcl", "glws"):
            return " ".join([family.upper(), *[self.correction] * (family == "glws")])
        title = RISKS[family].title if family in RISKS else family
        if family == "supervised":
            return title
        weight = f"(λ={number})" if number else ""
        share = "" if self.gamma is None else f"(γ={self.gamma:g})"
        return f"{title}{weight}{share}-{self.correction_title}"

    @property
    def correction_title(self) -> str:
        """The name of the correction in the paper."""
        return _CORRECTION_TITLES.get(self.correction, self.correction)

    @property
    def is_weak(self) -> bool:
        """Whether it learns from pairs alone, without labels."""
        return self.name not in OF_ITEMS


def convex_method(gamma: float, correction: str) -> str:
    """The name of the convex combination at γ; at 0 and 1 it is ConfDiff and Sconf.

    Examples
    --------
    >>> [convex_method(gamma, "abs") for gamma in (0, 0.3, 1)]
    ['confdiff-abs', 'convex-0.3-abs', 'sconf-abs']
    """
    ends = {0.0: "confdiff", 1.0: "sconf"}
    family = ends.get(gamma, f"convex-{gamma:g}")
    return f"{family}-{correction}"


def risk_of(method: str, prior: float | None) -> Risk:
    """The risk that a method trains with; ValueError if it is undefined at this prior."""
    if method in SIDELESS and prior == 0.5:
        raise ValueError(f"{method}: at prior ½ the classes cannot be told apart")
    if method in VARIANTS:
        return make_risk("likelihood-none" if method in RIVALS else "likelihood-abs")
    return make_risk(method, prior=prior)


@cache
def canonical_name(method: str) -> str:
    """The canonical spelling of a method's name; ValueError if there is no such risk."""
    return method if method in VARIANTS else str(risk_of(method, _ORDINARY_PRIOR))


@cache
def is_defined(method: str, prior: float | None) -> bool:
    """Whether a method is defined at the prior given to its estimator; None is that of the data."""
    canonical_name(method)
    if prior is None or method in CLASSES:
        return prior is None and method in CLASSES
    if not 0 < prior < 1:
        raise ValueError(f"prior must lie in (0, 1); got {prior}")
    try:
        risk_of(method, prior)
    except ValueError:
        return False
    return True


PAPER_RISKS = ("sconf", "confdiff", "convex", "sconfconfdiff")
_TABULATED = (*PAPER_RISKS, "nonnegative", "likelihood", "supervised")
SCONFCONFDIFF = tuple(f"sconfconfdiff-{correction}" for correction in CORRECTIONS)
#: The rows of the accuracy tables; any further risk of soft judgements is there with ABS.
METHODS: tuple[str, ...] = (
    *SCONFCONFDIFF,
    *(convex_method(gamma, c) for c in CORRECTIONS for gamma in (0, 0.2, 0.5, 0.8, 1)),
    *("nonnegative-none", *(f"likelihood-{correction}" for correction in CORRECTIONS), GUIDED),
    *(f"{name}-abs" for name, r in RISKS.items() if name not in _TABULATED and not r.kinds),
    "supervised",
)

_ORDER = {name: number for number, name in enumerate((*METHODS, *CLASSES))}


def method_order(method: str) -> int:
    """The position of a method among the rows of the tables."""
    return _ORDER.get(method, len(_ORDER))


T = TypeVar("T")

_CHOICES = {
    "annotator": ("paper", "calibrated", "drawn"),
    "images": ("proper", "published"),
}
_Rule: TypeAlias = tuple[Callable[[Any], Any], Callable[[Any], bool], str]
_TEXT: _Rule = (str, str.isprintable, "printable text")
_COUNT: _Rule = (int, lambda value: value >= 1, "a whole number of 1 or more")
_POSITIVE: _Rule = (float, lambda value: value > 0, "a positive number")
_AMOUNT: _Rule = (float, lambda value: value >= 0, "a number of 0 or more")
#: For each field of a run its type, the condition on its value, and both in words.
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(("dataset", "method"), _TEXT),
    "model": (
        str,
        lambda name: name in PERCEPTRONS or name in CONVOLUTIONAL,
        "the name of a model",
    ),
    "prior": (float, lambda value: 0 < value < 1, "a number in (0, 1)"),
    "fraction": (float, lambda value: 0 < value <= 1, "a number in (0, 1]"),
    "seed": (int, lambda value: value >= 0, "a whole number of 0 or more"),
    **dict.fromkeys(("pairs", "epochs", "batch_size", "window"), _COUNT),
    **dict.fromkeys(("prior_factor", "learning_rate"), _POSITIVE),
    **dict.fromkeys(("label_noise", "weight_decay"), _AMOUNT),
    **{k: (str, names.__contains__, f"one of {', '.join(names)}") for k, names in _CHOICES.items()},
}


def check_field(field: str, value: Any, name: str | None = None) -> Any:
    """The value of a field of a run in its type; if it breaks the rule, an error with `name`."""
    kind, holds, rule = _RULES[field]
    if field == "prior" and value is None:
        return None
    typed = isinstance(value, str) if kind is str else is_number(value)
    if not (typed and kind(value) == value and holds(value)):
        raise ValueError(f"{name or field}={value!r:.80} must be {rule}")
    return kind(value)


@dataclass(frozen=True, kw_only=True)
class Run:
    """The full configuration of one training: two equal runs give the same result.

    Parameters
    ----------
    dataset : str
        Name of the benchmark.
    prior : float or None
        Class prior π₊ of the pairs and of the test set, in (0, 1); None is that of the data.
    seed : int
        Seed of all random numbers.
    method : str
        Name for :func:`pairlearn.make_risk`; kept in its canonical spelling.
    prior_factor, label_noise : float
        ε and σ: the estimator is given ε π₊ instead of π₊, and similarities and differences
        are multiplied by N(1, σ²).
    fraction : float
        Share of the ``pairs`` that is used, in (0, 1].
    model : {"mlp", "mlp-bn", "mlp-small", "linear", "resnet34", "resnet32"}
    annotator : {"paper", "calibrated", "drawn"}
        Trained at the natural class prior, or at that of the pairs. "drawn": as "paper", and then
        the classes are drawn anew from its posteriors, so that it is calibrated exactly.
    pairs, epochs, batch_size : int
    learning_rate, weight_decay : float
        Of Adam.
    window : int
        The accuracy is the mean over this many last epochs, or over all if fewer.
    images : {"proper", "published"}
        How colour images are prepared, as in :func:`pairlearn_bench.data.load`.

    Examples
    --------
    >>> run = Run(dataset="letter", prior=0.2, seed=0, method="confdiff", pairs=4000, epochs=200)
    >>> run.method, run.n_training_pairs
    ('confdiff-none', 4000)
    """

    dataset: str
    prior: float | None = None
    seed: int
    method: str
    prior_factor: float = 1.0
    label_noise: float = 0.0
    fraction: float = 1.0
    model: str = "mlp"
    annotator: str = "paper"
    pairs: int
    epochs: int
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    window: int = 10
    images: str = "proper"

    def __post_init__(self) -> None:
        for name in _RULES:
            # 1 and 1.0 are equal, but the key is their text.
            object.__setattr__(self, name, check_field(name, getattr(self, name)))
        object.__setattr__(self, "method", canonical_name(self.method))
        if self.label_noise and statements_of(self.method) not in (None, *NOISY):
            message = f"{self.method} reads answers without noise; choose label_noise 0"
            raise ValueError(f"label_noise={self.label_noise:g}: {message}")
        prior = self.estimator_prior
        if not ((prior is None or 0 < prior < 1) and is_defined(self.method, prior)):
            raise ValueError(
                f"method={self.method!r} must be a risk that is defined at the prior {prior}, "
                "the one given to its estimator"
            )

    @property
    def pair_prior(self) -> float:
        """The class prior of the pairs, which every run of two classes has."""
        assert self.prior is not None
        return self.prior

    @property
    def estimator_prior(self) -> float | None:
        """The prior given to the estimator, ε π₊."""
        # Without rounding, 1.1·0.2 would differ from 0.22 in the last bit.
        return None if self.prior is None else round(self.prior_factor * self.prior, 12)

    @property
    def variant(self) -> str:
        """What else tells runs on a data set apart: images, residual network, epochs.

        Proper images, and on them the data set's own network, are not named; other epochs than the
        data set's are for published images.
        """
        own, published = SPECS.get(self.dataset), self.images == "published"
        parts = [PUBLISHED_IMAGES] if published else []
        if published or (self.model.startswith("resnet") and own and self.model != own.model):
            parts.append(self.model.replace("resnet", "ResNet-"))
        if published and own and self.epochs != own.epochs:
            parts.append(f"{self.epochs} epochs")
        return ", ".join(parts)

    @property
    def changes(self) -> tuple[str, ...]:
        """The options by which it departs from the paper's recipe for its data set, in words."""
        spec = SPECS.get(self.dataset)
        recipe = {"epochs": spec.epochs, "model": spec.model, "annotator": "paper"} if spec else {}
        return tuple(
            f"{name} {getattr(self, name)} instead of {value}"
            for name, value in recipe.items()
            if getattr(self, name) != value
        )

    @property
    def n_training_pairs(self) -> int:
        """Number of pairs used for training."""
        return max(1, round(self.fraction * self.pairs))

    def fields(self) -> dict[str, Any]:
        """Every field by name, in the order of their definition."""
        return dict(vars(self))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Run:
        """Make a run from its fields; ValueError if one is unknown or missing."""
        try:
            return cls(**fields)
        except TypeError as error:
            raise ValueError(f"not the fields of a run: {error}") from None

    def key(self) -> str:
        """The configuration as one line of JSON: equal for equal runs, on every machine."""
        fields = self.fields()
        if self.images == "proper":  # keys of the first version have no such field
            del fields["images"]
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def is_number(value: Any) -> bool:
    """Whether a value is a number that a float can hold; ``math.isfinite`` fails for 10**400."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    return real and bool(abs(value) <= sys.float_info.max)


def grouped(items: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """Group items by a key, in the order in which keys first occur."""
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


#: Names of the notes that a record may have.
NOTES = ("seconds", "device", "precision", "version")


class StoreError(ValueError):
    """A run store cannot be read or written."""


@dataclass(frozen=True)
class Record:
    """A finished run.

    ``results`` are accuracies on the test subsets "paper" and "stratified", and those of the
    annotator as "annotator_paper" and "annotator_stratified". ``notes`` ("seconds", "device",
    "precision", "version") record how it was trained and are no part of the result.
    """

    run: Run
    results: dict[str, float]
    notes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.results:
            raise StoreError("results are empty: a finished run has at least one accuracy")
        for name, value in self.results.items():
            if not name.isprintable():
                raise StoreError(f"result {name!r:.80} has a name that is not printable text")
            if not (is_number(value) and 0 <= value <= 1):
                raise StoreError(
                    f"result {name!r:.80} must be a number in [0, 1]; got {value!r:.80}"
                )
        if unknown := sorted(set(self.notes) - set(NOTES)):
            raise StoreError(f"notes {unknown} are unknown; use {', '.join(NOTES)}")
        for name, value in self.notes.items():
            text = isinstance(value, str) and value.isprintable()
            if not (text or value is None or is_number(value)):
                raise StoreError(
                    f"note {name!r} must be text or a finite number; got {value!r:.80}"
                )
        results = {name: float(value) for name, value in self.results.items()}
        object.__setattr__(self, "results", results)

    def line(self) -> bytes:
        """The record as a line of the store, with its newline."""
        text = json.dumps(
            {**self.run.fields(), "results": self.results, **self.notes},
            allow_nan=False,
            ensure_ascii=False,
        )
        return f"{text}\n".encode()

    @classmethod
    def from_line(cls, line: bytes) -> Record:
        """Parse a line of the store; ValueError if it is not one."""
        try:
            entries = json.loads(line)
            if not isinstance(entries, dict) or not isinstance(entries.get("results"), dict):
                raise ValueError("not an object with the results of a run")
            results = entries.pop("results")
            notes = {name: entries.pop(name) for name in NOTES if name in entries}
            return cls(Run.from_fields(entries), results, notes)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
