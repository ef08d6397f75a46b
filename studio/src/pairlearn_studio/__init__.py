"""The annotation studio: where similarities and differences come from.

A project is a folder of items, a plan of pairs, and one file of answers. `Project` describes it,
`Items` are the items to compare, and `Store` keeps the answers. The pages are in
`pairlearn_studio.server`, imported by `annotate serve` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairlearn_studio.items import Items, ItemView
    from pairlearn_studio.project import Plan, Project, ProjectError
    from pairlearn_studio.records import Annotator, Answer, Receipt, StoredAnswer
    from pairlearn_studio.store import Store
    from pairlearn_studio.store_file import StoreError

__all__ = [
    "Annotator",
    "Answer",
    "ItemView",
    "Items",
    "Plan",
    "Project",
    "ProjectError",
    "Receipt",
    "Store",
    "StoreError",
    "StoredAnswer",
]

#: Modules with the names above, imported when one is used: `--help` needs none of them.
_HOMES = ("records", "store_file", "items", "project", "store")


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    for home in _HOMES if name in __all__ else ():
        module = import_module(f"{__name__}.{home}")
        if name in vars(module):
            return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
