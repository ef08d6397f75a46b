"""Files that commands read: all tables of items and judgements come through here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlearn.cli.options import parse_names

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier
    from pairlearn.io import ItemTable
    from pairlearn.io.cells import ColumnChoice
    from pairlearn.judgements import Judgements
    from pairlearn.judgements.scales import Scale

#: Findings that ``--noisy`` admits.
RANGES = {"out-of-range"}
#: Findings about what the numbers mean, which stop every command.
MEANING = {*RANGES, "other-scale", "comparisons", "upside-down"}


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
                self.scales[name] = Scale.of(text)
            except ValueError as error:
                raise ValueError(f"--{name}-scale: {error}") from None

    def table(self, path: Path, *, noisy: bool = True) -> Judgements:
        """Read judgements on their scale; those out of range are for `check` to find."""
        from pairlearn.io import read_pairs

        scales: Any = {f"{name}_scale": scale for name, scale in self.scales.items()}
        return read_pairs(path, noisy=noisy, **scales)

    def task(
        self,
        path: Path,
        names: list[str] | int | None,
        labelled: Path | None,
        items: ItemTable | None,
        positive: str | None,
    ) -> tuple[Judgements, tuple[Judgements, Any] | None, Any]:
        """Read judgements and known classes of items, and which classes there are.

        The latter are None for two that no statement names.
        """
        from pairlearn.io.pairs import named_classes, read_classes, read_labelled
        from pairlearn.judgements.sets import resolve_classes

        table = self.table(path)  # all values out of range, not the first alone
        labels = None if labelled is None or items is None else read_classes(labelled, items)
        with in_file(path):
            named = resolve_classes(names, table.about, labels and labels[1], positive)
            if named is not None:
                table = table.of_classes(named)
        if labels is None or labelled is None or items is None:
            return table, None, named
        if named is None:
            return table, read_labelled(labelled, items, positive), None
        return table, (named_classes(*labels, items).of_classes(named), named), named

    def checked(
        self, path: Path, *, noisy: bool, prior: float | None = None, classes: Any = None
    ) -> Judgements:
        """Read judgements about these classes, and refuse those whose numbers mean something else.

        By default the classes are those that are named.
        """
        from pairlearn.check import check
        from pairlearn.judgements.sets import resolve_classes

        with in_file(path):
            table, settled = self.table(path), self.settled(noisy=noisy)
            table = table.of_classes(resolve_classes(classes, table.about, None))
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
