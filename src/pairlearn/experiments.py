"""Deprecated: the name that :mod:`pairlearn.paper` had in version 0.1."""

import sys
from importlib import import_module

from pairlearn.paper import *  # noqa: F403

for _old, _new in {"execute": "execute", "report": "page", "theory": "theory"}.items():
    globals()[_old] = sys.modules[f"{__name__}.{_old}"] = import_module(f"pairlearn.paper.{_new}")
