"""Deprecated names of modules, from earlier versions."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "annotate": ["studio"],
    "annotate.models": ["studio.ask"],
    "annotate.server": ["studio.server"],
    "bounds": ["paper.bounds"],
    "data.registry": ["data"],
    "datasets": ["data"],
    "diagnostics": ["check"],
    "estimators.pair_files": ["estimators.files"],
    "estimators.pairwise": ["estimators.features"],
    "experiments": ["paper"],
    "experiments.execute": ["paper.execute"],
    "experiments.report": ["paper.page"],
    "experiments.theory": ["paper.theory"],
    "pages": ["report"],
    "paper.bounds.quantities": ["paper.bounds"],
    "paper.bounds.theorems": ["paper.bounds"],
    "paper.theory.run": ["paper.theory"],
    "planning": ["check.planning"],
    "reporting": ["report"],
    "sampling": ["data.sampling", "randomness"],
    "simulation": ["data.simulation"],
    "studio.backups": ["studio.writer"],
    "studio.export": ["studio.exchange"],
    "studio.forecast": ["studio.stopping", "studio.choosing"],
    "studio.known": ["studio.records"],
    "studio.stored": ["studio.reader"],
}
"""The modules that now have the names of each old one."""


class OldNames(MetaPathFinder, Loader):
    """Import an old name as a module with the contents of the new ones."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module to load, for the names in `MOVED`."""
        known = name.startswith("pairlearn.") and name.removeprefix("pairlearn.") in MOVED
        return ModuleSpec(name, self, is_package=True) if known else None

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module with the names of the new ones."""
        homes = MOVED[module.__name__.removeprefix("pairlearn.")]
        warnings.warn(
            f"{module.__name__} will go in 0.3: its names are now in "
            f"{' and '.join(f'pairlearn.{home}' for home in homes)}",
            FutureWarning,
            stacklevel=2,
        )
        for home in homes:
            new = import_module(f"pairlearn.{home}")
            public = [name for name in vars(new) if not name.startswith("_")]
            names = getattr(new, "__all__", public)
            vars(module).update({name: getattr(new, name) for name in names})


sys.meta_path.append(OldNames())
