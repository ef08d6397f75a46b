"""The annotation studio: where similarities and differences come from.

A project is a folder of items, a plan of pairs, and one file of answers. `Project` describes it,
`Items` are the items to compare, and `Store` keeps the answers. The pages are in
`pairlearn_studio.server`, which needs the extra ``annotate``.
"""

from pairlearn_studio.items import Items, ItemView
from pairlearn_studio.project import Plan, Project, ProjectError
from pairlearn_studio.records import (
    Annotator,
    Answer,
    Change,
    Pair,
    Progress,
    Receipt,
    StoredAnswer,
    Task,
)
from pairlearn_studio.store import Store
from pairlearn_studio.store_file import StoreError

__all__ = [
    "Annotator",
    "Answer",
    "Change",
    "ItemView",
    "Items",
    "Pair",
    "Plan",
    "Progress",
    "Project",
    "ProjectError",
    "Receipt",
    "Store",
    "StoreError",
    "StoredAnswer",
    "Task",
]
