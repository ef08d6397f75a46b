"""Files of your own that register risks, kinds of statement, data sets or models.

In Python, import such a file. The command line takes it as ``pairlearn --plugin FILE.py …``.
"""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

__all__ = ["load_plugin", "load_plugins"]

#: Holds the files that were loaded, so that worker processes load them as well.
_VARIABLE = "PAIRLEARN_PLUGINS"


def load_plugin(path: str | os.PathLike[str]) -> None:
    """Run a file once, as the module of its name; what it registers is then known by name.

    Examples
    --------
    >>> load_plugin("halfway.py")  # doctest: +SKIP
    >>> make_risk("halfway-abs", prior=0.2)  # doctest: +SKIP
    """
    file = Path(path).resolve()
    known = getattr(sys.modules.get(file.stem), "__file__", file)
    if known != file and known != str(file):
        raise ValueError(f"plugin {path}: there is a module {file.stem!r} already; rename the file")
    spec = spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ValueError(f"plugin {path} is not a Python file")
    if file.stem in sys.modules:
        return
    module = sys.modules[file.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[file.stem]
        raise
    others = os.environ.get(_VARIABLE, "").split(os.pathsep)
    os.environ[_VARIABLE] = os.pathsep.join(dict.fromkeys([*filter(None, others), str(file)]))


def load_plugins() -> None:
    """Load the files that the parent process has loaded."""
    for path in filter(None, os.environ.get(_VARIABLE, "").split(os.pathsep)):
        load_plugin(path)
