"""What is known of a finished run, as an object and as a line of text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from pairlearn.experiments.spec import Run, is_finite

__all__ = ["NOTES", "Record", "StoreError", "checked_notes", "checked_results"]

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
        If there are none, one has an unprintable name, or one is not a finite number.

    Examples
    --------
    >>> checked_results({"paper": 1})
    {'paper': 1.0}
    """
    if not results:
        raise StoreError("results are empty: a finished run has at least one accuracy")
    for name, value in results.items():
        if not name.isprintable():
            raise StoreError(f"result {name!r:.80} has a name that is not printable text")
        if isinstance(value, bool) or not isinstance(value, Real):
            raise StoreError(f"result {name!r:.80} must be a number; got {value!r:.80}")
        if not is_finite(value):
            raise StoreError(f"result {name!r:.80} must be finite; got {value!r:.80}")
    return {name: float(value) for name, value in results.items()}


def checked_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The notes, if they can be kept.

    Parameters
    ----------
    notes : mapping of str to object
        By the names in `NOTES`.

    Returns
    -------
    dict of str to object

    Raises
    ------
    StoreError
        If one has another name, or is not printable text, a finite number or None.

    Examples
    --------
    >>> checked_notes({"seconds": 1.5})
    {'seconds': 1.5}
    """
    if unknown := sorted(set(notes) - set(NOTES)):
        raise StoreError(f"notes {unknown} are unknown; use {', '.join(NOTES)}")
    for name, value in notes.items():
        if isinstance(value, str):
            right = value.isprintable()
        else:
            right = value is None or (isinstance(value, Real) and is_finite(value))
        if not right:
            raise StoreError(f"note {name!r} must be text or a finite number; got {value!r:.80}")
    return dict(notes)
