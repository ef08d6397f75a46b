"""One training, fully described, and what is known of it once it is finished."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeVar

from pairlearn.paper.methods import canonical_name, is_defined

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
    prior_factor : float
        ε: the estimator is given ε π₊ in place of π₊.
    label_noise : float
        σ: similarities and differences are multiplied by N(1, σ²).
    fraction : float
        Share of the pairs that is used, in (0, 1].
    model : {"mlp", "mlp-bn", "mlp-small", "linear", "resnet34", "resnet32"}
    annotator : {"paper", "calibrated"}
        Trained at the natural class balance, or at that of the pairs.
    pairs : int
        Pairs sampled before ``fraction`` is taken.
    epochs, batch_size : int
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
    >>> Run.from_fields(json.loads(run.key())) == run
    True
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

    Parameters
    ----------
    run : Run
    results : dict of str to float
        Accuracies: on the test subsets "paper" and "stratified", and under
        "annotator_paper" and "annotator_stratified" those of the annotator itself.
    notes : dict of str to object
        How it came about ("seconds", "device", "precision", "version"): no part of the result.
    """

    run: Run
    results: dict[str, float]
    notes: dict[str, Any] = field(default_factory=dict)

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
            return cls(Run.from_fields(entries), checked_results(results), checked_notes(notes))
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


def checked_results(results: Mapping[str, Any]) -> dict[str, float]:
    """The results as plain floats; StoreError if there are none or one is not a finite number."""
    if not results:
        raise StoreError("results are empty: a finished run has at least one accuracy")
    for name, value in results.items():
        if not name.isprintable():
            raise StoreError(f"result {name!r:.80} has a name that is not printable text")
        if not is_number(value):
            raise StoreError(f"result {name!r:.80} must be a finite number; got {value!r:.80}")
    return {name: float(value) for name, value in results.items()}


def checked_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The notes; StoreError if one is not known, or not printable text, a number or None."""
    if unknown := sorted(set(notes) - set(NOTES)):
        raise StoreError(f"notes {unknown} are unknown; use {', '.join(NOTES)}")
    for name, value in notes.items():
        text = isinstance(value, str) and value.isprintable()
        if not (text or value is None or is_number(value)):
            raise StoreError(f"note {name!r} must be text or a finite number; got {value!r:.80}")
    return dict(notes)
