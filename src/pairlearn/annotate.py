"""Deprecated: the name that :mod:`pairlearn.studio` had in version 0.1."""

import sys
from contextlib import suppress
from importlib import import_module

from pairlearn.studio import *  # noqa: F403

for _old, _new in (("models", "ask"), ("server", "server")):
    with suppress(ImportError):  # the server needs its extra
        _module = import_module(f"pairlearn.studio.{_new}")
        globals()[_old] = sys.modules[f"{__name__}.{_old}"] = _module
