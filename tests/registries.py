"""What a test registers is forgotten after it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Registries, imported modules and loaded plugins are afterwards as they were before."""
    from pairlearn.judgements.kinds import KINDS
    from pairlearn.models import PERCEPTRONS
    from pairlearn.risks import RISKS

    modules, kinds = {*sys.modules}, list(KINDS)
    named: list[dict[str, object]] = [RISKS, PERCEPTRONS]  # type: ignore[list-item]
    if data := sys.modules.get("pairlearn_bench.data.dataset"):
        named.append(data._SPECS)
    before = [dict(registry) for registry in named]
    monkeypatch.delenv("PAIRLEARN_PLUGINS", raising=False)
    yield
    KINDS[:] = kinds
    for registry, kept in zip(named, before, strict=True):
        registry.clear()
        registry.update(kept)
    os.environ.pop("PAIRLEARN_PLUGINS", None)
    for name in {*sys.modules} - modules:
        if not name.startswith("pairlearn") and "." not in name and _is_local(name):
            del sys.modules[name]


def _is_local(name: str) -> bool:
    """Whether a module is a file of a test, and not installed."""
    file = getattr(sys.modules[name], "__file__", None) or ""
    return "site-packages" not in file and "/lib/python" not in file and file != ""
