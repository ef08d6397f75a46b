"""Files that commands read: all tables of items and judgements come through here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlearn.cli.options import parse_names

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier
    from pairlearn.io.cells import ColumnChoice
    from pairlearn.judgements import Judgements
    from pairlearn.judgements.scales import Scale

RANGES = {"out-of-range"}
"""Findings that ``--noisy`` admits."""
MEANING = {*RANGES, "other-scale", "comparisons", "upside-down"}
"""Findings about what the numbers mean, which stop every command."""


def column_choice(columns: str | None, ignore: str | None, kinds: str | None) -> ColumnChoice:
    """The options --columns, --ignore and --kinds as the library takes them."""
    from pairlearn.io.cells import ColumnChoice

    chosen: dict[str, Any] = {}
    for part in parse_names(kinds):
        name, mark, kind = part.rpartition(":")
        if not mark:
            raise ValueError(f"--kinds must be as in zip:category; got {part!r}")
        chosen[name.strip()] = kind.strip()
    return ColumnChoice(parse_names(columns), parse_names(ignore), chosen)


def parse_classes(text: str | None) -> list[str] | int | None:
    """The option --classes: names with commas between, or a number."""
    if text is None or not text.strip().isdecimal():
        return parse_names(text) or None
    if int(text) < 2:
        raise ValueError(f"--classes must be at least two; got {text}")
    return int(text)


@contextmanager
def in_file(path: Path) -> Iterator[None]:
    """Name the file in errors that do not."""
    try:
        yield
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path}, {error}") from None


class Reading:
    """How to read judgements: --similarity-scale and --difference-scale, or those of a model."""

    def __init__(
        self,
        similarity_scale: str | None,
        difference_scale: str | None,
        model: PairClassifier | None = None,
    ) -> None:
        from pairlearn.judgements.scales import Scale

        self.scales: dict[str, Scale] = {} if model is None else {**model.scales_}
        for name, text in (("similarity", similarity_scale), ("difference", difference_scale)):
            if text is None:
                continue
            try:
                self.scales[name] = Scale.parse(text, either=name == "similarity")
            except ValueError as error:
                raise ValueError(f"--{name}-scale: {error}") from None

    def table(self, path: Path, *, noisy: bool = True) -> Judgements:
        """Read judgements on their scale; those out of range are for `check` to find."""
        from pairlearn.io import read_pairs

        scales: Any = {f"{name}_scale": scale for name, scale in self.scales.items()}
        return read_pairs(path, noisy=noisy, **scales)

    def checked(
        self, path: Path, *, noisy: bool, prior: float | None = None, classes: Any = None
    ) -> Judgements:
        """Read judgements, and refuse those whose numbers mean something else.

        Without ``classes``, those of a model, there can be two.
        """
        from pairlearn.check import check

        with in_file(path):
            table, settled = self.table(path).of_classes(classes), self.settled(noisy=noisy)
        if classes is None and table.classes is not None:
            raise ValueError(
                f"{path} names {len(table.classes)} classes, and this command is for two: use fit, "
                "evaluate and predict, or keep the rows about one class"
            )
        errors = check(table, prior=prior, codes=MEANING - settled).of("error")
        for finding in errors:
            if finding.code not in RANGES:
                raise ValueError(f"{path}: {finding.code}: {finding.message}")
        if errors:
            self.table(path, noisy=False)  # which names the line of the first value out of range
        return table

    def settled(self, *, noisy: bool = False) -> set[str]:
        """Codes of findings that the options answer."""
        codes = set(RANGES) if noisy else set()
        return codes | ({"upside-down"} if "similarity" in self.scales else set())
