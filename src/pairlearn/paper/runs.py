"""Methods, one training with its full description, and what is known of it once it is finished.

A method is a risk of the catalogue, or one with something beside it: "likelihood-guided" is
"likelihood-abs" with the guiding prior that :class:`~pairlearn.PairClassifier` uses, and
"likelihood-label" is "likelihood-abs" of other statements (:mod:`pairlearn.paper.statements`).
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from typing import Any, TypeVar

from pairlearn.paper.statements import LIKELIHOODS, SIDELESS
from pairlearn.risks import RISKS, Risk, make_risk

CORRECTIONS = ("none", "relu", "abs")
GUIDED = "likelihood-guided"
BESIDE = (GUIDED, *LIKELIHOODS)

_CORRECTION_TITLES = {"none": "Unbiased", "relu": "ReLU", "abs": "ABS", "guided": "ABS, guided"}
_NAME = re.compile(r"(?P<family>[a-z]+)(-(?P<number>\d*\.?\d+))?(-(?P<correction>[a-z].*))?")
# Where every risk is defined: a name that cannot be built here is wrong, not just undefined.
_ORDINARY_PRIOR = 0.3


@dataclass(frozen=True)
class Method:
    """The three columns by which the paper's tables tell methods apart.

    ``risk`` is the family, with its number for families other than convex; ``gamma`` the γ of the
    convex combination, else None; ``correction`` is "none", "relu", "abs", "slope=NUMBER" or
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
        """Take a name of the catalogue apart."""
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
        """The name for tables and figures, in the paper's words where it has one."""
        if self.risk == "supervised":
            return self.family_title
        _, _, number = self.risk.partition("-")
        weight = f"(λ={number})" if number else ""
        share = "" if self.gamma is None else f"(γ={self.gamma:g})"
        return f"{self.family_title}{weight}{share}-{self.correction_title}"

    @property
    def family_title(self) -> str:
        """The family alone, as its risk is titled."""
        family = self.risk.partition("-")[0]
        return RISKS[family].title if family in RISKS else family

    @property
    def correction_title(self) -> str:
        """The correction in the paper's words."""
        return _CORRECTION_TITLES.get(self.correction, self.correction)

    @property
    def is_weak(self) -> bool:
        """Whether it learns from pairs only."""
        return self.risk != "supervised"


def convex_method(gamma: float, correction: str) -> str:
    """The name of the convex combination at γ; at its ends, of the method that it is there.

    Examples
    --------
    >>> [convex_method(gamma, "abs") for gamma in (0, 0.3, 1)]
    ['confdiff-abs', 'convex-0.3-abs', 'sconf-abs']
    """
    ends = {0.0: "confdiff", 1.0: "sconf"}
    family = ends.get(gamma, f"convex-{gamma:g}")
    return f"{family}-{correction}"


def risk_of(method: str, prior: float) -> Risk:
    """The risk that a method trains with; ValueError if there is none at this prior."""
    if method in SIDELESS and prior == 0.5:
        raise ValueError(f"{method}: at prior ½ nothing tells which class is which")
    return make_risk("likelihood-abs" if method in BESIDE else method, prior=prior)


@cache
def canonical_name(method: str) -> str:
    """The one spelling of a method's name; ValueError if there is no such risk."""
    return method if method in BESIDE else str(risk_of(method, _ORDINARY_PRIOR))


@cache
def is_defined(method: str, prior: float) -> bool:
    """Whether a method exists at the prior that its estimator is given."""
    canonical_name(method)
    if not 0 < prior < 1:
        raise ValueError(f"prior must lie in (0, 1); got {prior}")
    try:
        risk_of(method, prior)
    except ValueError:
        return False
    return True


_OURS = ("nonnegative", "likelihood")
_TABULATED = ("sconf", "confdiff", "convex", "sconfconfdiff", *_OURS, "supervised")

SCONFCONFDIFF = tuple(f"sconfconfdiff-{correction}" for correction in CORRECTIONS)
_WEAK = (
    *SCONFCONFDIFF,
    *(convex_method(gamma, c) for c in CORRECTIONS for gamma in (0, 0.2, 0.5, 0.8, 1)),
)
METHODS: tuple[str, ...] = (
    *_WEAK,
    *("nonnegative-none", *(f"likelihood-{correction}" for correction in CORRECTIONS), GUIDED),
    *(f"{name}-abs" for name, r in RISKS.items() if name not in _TABULATED and not r.kinds),
    "supervised",
)
"""The rows of the accuracy tables; a further risk of soft judgements is there with ABS."""

_ORDER = {name: number for number, name in enumerate(METHODS)}


def method_order(method: str) -> int:
    """Where a method stands among the rows of the tables."""
    return _ORDER.get(method, len(_ORDER))


T = TypeVar("T")

_NAMES = {
    "model": ("mlp", "mlp-bn", "mlp-small", "linear", "resnet34", "resnet32"),
    "annotator": ("paper", "calibrated"),
    "images": ("proper", "published"),
}

_KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "int": (int, "a whole number"),
    "float": (float, "a finite number"),
    "str": (str, "printable text"),
}
_LIMITS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "prior": (lambda value: 0 < value < 1, "a number in (0, 1)"),
    "fraction": (lambda value: 0 < value <= 1, "a number in (0, 1]"),
    **{name: (known.__contains__, f"one of {', '.join(known)}") for name, known in _NAMES.items()},
    **dict.fromkeys(("pairs", "epochs", "batch_size", "window"), (lambda v: v >= 1, "1 or more")),
    **dict.fromkeys(("prior_factor", "learning_rate"), (lambda v: v > 0, "positive")),
    **dict.fromkeys(("seed", "label_noise", "weight_decay"), (lambda v: v >= 0, "0 or more")),
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """The full configuration of one training: two equal runs give the same result.

    Parameters
    ----------
    dataset : str
        Name of the benchmark.
    prior : float
        Class prior π₊ of the pairs and of the test set, in (0, 1).
    seed : int
        Seed of everything random.
    method : str
        Name of the risk for :func:`pairlearn.make_risk`; kept in its canonical spelling.
    prior_factor, label_noise : float
        ε and σ: the estimator is given ε π₊ in place of π₊, and similarities and differences
        are multiplied by N(1, σ²).
    fraction : float
        Share of the ``pairs`` that is used, in (0, 1].
    model : {"mlp", "mlp-bn", "mlp-small", "linear", "resnet34", "resnet32"}
    annotator : {"paper", "calibrated"}
        Trained at the natural class balance, or at that of the pairs.
    pairs, epochs, batch_size : int
    learning_rate, weight_decay : float
        Of Adam.
    window : int
        The accuracy is the mean over this many last epochs, or over all if there are fewer.
    images : {"proper", "published"}
        How colour images are prepared, as in :func:`pairlearn.data.load`.

    Examples
    --------
    >>> run = Run(dataset="letter", prior=0.2, seed=0, method="confdiff", pairs=4000, epochs=200)
    >>> run.method, run.n_training_pairs
    ('confdiff-none', 4000)
    """

    dataset: str
    prior: float
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
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            kind, what = _KINDS[str(entry.type)]
            if kind is str:
                right = isinstance(value, str) and value.isprintable()
            else:
                right = is_number(value) and kind(value) == value
            _require(right, entry.name, value, what)
            # 1 and 1.0 are equal but are not written alike, and the key is what is written.
            object.__setattr__(self, entry.name, kind(value))
        for name, (holds, what) in _LIMITS.items():
            _require(holds(getattr(self, name)), name, getattr(self, name), what)
        object.__setattr__(self, "method", canonical_name(self.method))
        given = self.estimator_prior
        _require(
            0 < given < 1 and is_defined(self.method, given),
            "method",
            self.method,
            f"a risk that is defined at the prior {given:g} which its estimator is given",
        )

    @property
    def estimator_prior(self) -> float:
        """The prior that the estimator is given, ε π₊."""
        # Rounded, or 1.1·0.2 would differ from 0.22 in the last bit.
        return round(self.prior_factor * self.prior, 12)

    @property
    def variant(self) -> str:
        """What a data set's title must say beside: images as published, and with which network."""
        network = self.model.replace("resnet", "ResNet-")
        return f"published images, {network}" if self.images == "published" else ""

    @property
    def n_training_pairs(self) -> int:
        """Pairs that are trained on."""
        return max(1, round(self.fraction * self.pairs))

    def fields(self) -> dict[str, Any]:
        """Every field by name, in the order of their definition."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Run:
        """The run with these fields; ValueError where one is unknown or missing."""
        try:
            return cls(**fields)
        except TypeError as error:
            raise ValueError(f"not the fields of a run: {error}") from None

    def key(self) -> str:
        """The configuration as one line of JSON: equal for equal runs, on every machine."""
        fields = self.fields()
        if self.images == "proper":  # as they all were when the first keys were written
            del fields["images"]
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def is_number(value: Any) -> bool:
    """Whether a value is a number that a float can hold; ``math.isfinite`` fails for 10**400."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    return real and bool(abs(value) <= sys.float_info.max)


def _require(holds: bool, name: str, value: object, what: str) -> None:
    if not holds:
        raise ValueError(f"{name}={value!r:.80} must be {what}")


def grouped(things: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """The things by their key, in the order in which keys first come."""
    groups: dict[Any, list[T]] = {}
    for thing in things:
        groups.setdefault(key(thing), []).append(thing)
    return groups


NOTES = ("seconds", "device", "precision", "version")
"""What may be noted beside the results."""


class StoreError(ValueError):
    """A run store cannot be read or written as asked."""


@dataclass(frozen=True)
class Record:
    """A finished run.

    ``results`` are accuracies: on the test subsets "paper" and "stratified", and under
    "annotator_paper" and "annotator_stratified" those of the annotator itself. ``notes`` say how
    it came about ("seconds", "device", "precision", "version"): no part of the result.
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
            if not is_number(value):
                raise StoreError(f"result {name!r:.80} must be a finite number; got {value!r:.80}")
        if unknown := sorted(set(self.notes) - set(NOTES)):
            raise StoreError(f"notes {unknown} are unknown; use {', '.join(NOTES)}")
        for name, value in self.notes.items():
            text = isinstance(value, str) and value.isprintable()
            if not (text or value is None or is_number(value)):
                raise StoreError(
                    f"note {name!r} must be text or a finite number; got {value!r:.80}"
                )
        plain = {name: float(value) for name, value in self.results.items()}
        object.__setattr__(self, "results", plain)

    def line(self) -> bytes:
        """The line of the store, with its newline."""
        text = json.dumps(
            {**self.run.fields(), "results": self.results, **self.notes},
            allow_nan=False,
            ensure_ascii=False,
        )
        return f"{text}\n".encode()

    @classmethod
    def from_line(cls, line: bytes) -> Record:
        """Read a line of the store; ValueError if it is not one."""
        try:
            entries = json.loads(line)
            if not isinstance(entries, dict) or not isinstance(entries.get("results"), dict):
                raise ValueError("not an object with the results of a run")
            results = entries.pop("results")
            notes = {name: entries.pop(name) for name in NOTES if name in entries}
            return cls(Run.from_fields(entries), results, notes)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
