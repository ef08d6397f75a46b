"""The annotation studio: where similarities and differences come from.

A project is a folder of items, a plan of pairs, and one file of answers. `Project` is its
description, `Items` are what is compared, `Store` keeps who said what. The pages are in
`pairlearn.annotate.server`, which needs the extra ``annotate``.
"""

from pairlearn.annotate.items import Items, ItemView
from pairlearn.annotate.project import Plan, Project, ProjectError
from pairlearn.annotate.records import (
    Annotator,
    Answer,
    Change,
    Pair,
    Progress,
    Receipt,
    StoredAnswer,
    Task,
)
from pairlearn.annotate.store import Store, StoreError

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
