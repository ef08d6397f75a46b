"""What is known of a finished run, as an object and as a line of text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from pairlearn.experiments.spec import Run

__all__ = ["NOTES", "Record", "StoreError", "checked_results"]

NOTES = ("seconds", "device", "precision", "version")
"""What may be noted beside the results."""


class StoreError(ValueError):
    """A run store cannot be read or written as asked.

    Examples
    --------
    >>> issubclass(StoreError, ValueError)
    True
    """


@dataclass(frozen=True)
class Record:
    """A finished run.

    Parameters
    ----------
    run : Run
        What was trained.
    results : dict of str to float
        Accuracies: on the test subsets "paper" and "stratified", and under
        "annotator_paper" and "annotator_stratified" those of the annotator itself.
    notes : dict of str to object
        How it came about ("seconds", "device", "precision", "version"): no part of the result.

    Examples
    --------
    >>> run = Run(dataset="letter", prior=0.2, seed=0, method="supervised", pairs=9, epochs=1)
    >>> Record.from_line(Record(run, {"paper": 0.9}).line()).results
    {'paper': 0.9}
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
        entries = json.loads(line)
        if not isinstance(entries, dict) or not isinstance(entries.get("results"), dict):
            raise ValueError("not an object with the results of a run")
        results = entries.pop("results")
        notes = {name: entries.pop(name) for name in NOTES if name in entries}
        return cls(Run.from_fields(entries), checked_results(results), notes)


def checked_results(results: Mapping[str, Any]) -> dict[str, float]:
    """The results as plain floats.

    Parameters
    ----------
    results : mapping of str to number
        Accuracies by name.

    Returns
    -------
    dict of str to float

    Raises
    ------
    StoreError
        If there are none, or one is not a finite number.

    Examples
    --------
    >>> checked_results({"paper": 1})
    {'paper': 1.0}
    """
    if not results:
        raise StoreError("results are empty: a finished run has at least one accuracy")
    for name, value in results.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise StoreError(f"result {name!r} must be a number; got {value!r}")
        if not math.isfinite(value):
            raise StoreError(f"result {name!r} must be finite; got {value}")
    return {name: float(value) for name, value in results.items()}
