"""The annotation studio: where similarities and differences come from.

A project is a folder of items, a plan of pairs, and one file of answers. `Project` describes it,
`Items` are the items to compare, and `Store` keeps the answers. The pages are in
`pairlearn.studio.server`, which needs the extra ``annotate``.
"""

from pairlearn.studio.items import Items as Items
from pairlearn.studio.items import ItemView as ItemView
from pairlearn.studio.project import Plan as Plan
from pairlearn.studio.project import Project as Project
from pairlearn.studio.project import ProjectError as ProjectError
from pairlearn.studio.records import Annotator as Annotator
from pairlearn.studio.records import Answer as Answer
from pairlearn.studio.records import Change as Change
from pairlearn.studio.records import Pair as Pair
from pairlearn.studio.records import Progress as Progress
from pairlearn.studio.records import Receipt as Receipt
from pairlearn.studio.records import StoredAnswer as StoredAnswer
from pairlearn.studio.records import Task as Task
from pairlearn.studio.store import Store as Store
from pairlearn.studio.store_file import StoreError as StoreError
