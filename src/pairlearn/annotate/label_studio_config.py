"""What Label Studio needs to ask the two questions of a project: a config and tasks.

Its templates for pairs bind one control to both objects (``toName="left,right"``), and
then save nothing of what a slider or a rating said. Here every control has one object.
The sliders run in whole percent and have no default, because a default counts as an
answer that nobody gave. They are not required either: a slider that was never moved, or
that stands at its middle, leaves no result, and a required one would be filled in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from pairlearn.annotate.items import Items
from pairlearn.annotate.project import Project
from pairlearn.annotate.records import Pair
from pairlearn.atomic import replacing

__all__ = ["CANT_SAY", "labelling_config", "tasks", "write_label_studio"]

CANT_SAY = "Can't say"
LOCAL_FILES = "/data/local-files/?d="
"""How Label Studio names the files of its local storage."""


def labelling_config(project: Project) -> str:
    """The labelling config of a project, in Label Studio's XML.

    Parameters
    ----------
    project : Project
        Its questions, and the kind of its items.

    Examples
    --------
    >>> from pairlearn.annotate.project import Plan
    >>> config = labelling_config(Project(Path("p"), "text", "items", Plan(1)))
    >>> [line.strip() for line in config.splitlines() if "difference" in line]
    ['<Number name="difference" toName="left" min="-100" max="100" step="1" slider="true" />']
    """
    view = ElementTree.Element("View")
    _add(view, "Header", value=_plain(project.title))
    sides = _add(view, "View", style="display: flex; gap: 1em")
    for side in ("left", "right"):
        half = _add(sides, "View", style="flex: 1")
        _add(half, "Header", value=side.capitalize(), size="4")
        if project.kind == "image":
            _add(half, "Image", name=side, value=f"${side}")
        else:
            # Not HyperText: items are untrusted, and Text shows markup as it is written.
            _add(half, "Text", name=side, value=f"${side}", valueType="text")
    _add(view, "Header", value=_plain(project.question_similarity), size="4")
    _slider(view, "similarity", 0)
    _add(view, "Header", value=_plain(project.question_difference), size="4")
    _add(view, "Header", value="−100: the left one; 100: the right one", size="5")
    _slider(view, "difference", -100)
    choices = _add(view, "Choices", name="cannot_say", toName="left", choice="multiple")
    _add(choices, "Choice", value=CANT_SAY)
    _add(
        view,
        "TextArea",
        name="note",
        toName="left",
        rows="2",
        placeholder="Note",
        maxSubmissions="1",
    )
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def tasks(
    project: Project, items: Items, pairs: Sequence[Pair], prefix: str = LOCAL_FILES
) -> list[dict[str, Any]]:
    r"""The pairs of a project as Label Studio's tasks.

    Parameters
    ----------
    project : Project
    items : Items
    pairs : sequence of Pair
        As `Store.pairs` has them.
    prefix : str
        What comes before the names of images: the address they are served at.

    Returns
    -------
    list of dict
        Each with ``data``: the ids ``left_id`` and ``right_id``, by which `import`
        knows the pair again, and what ``left`` and ``right`` show.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.annotate.project import Plan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "items.csv").write_text("id,size\na,1\nb,2\n")
    ...     project = Project(Path(folder), "table", "items.csv", Plan(pairs=1))
    ...     tasks(project, Items.open(project), [Pair(1, "a", "b")])[0]["data"]["left"]
    'size: 1'
    """
    return [
        {
            "data": {
                "pair": pair.id,
                "left_id": pair.left,
                "right_id": pair.right,
                "left": _shown(items, pair.left, prefix),
                "right": _shown(items, pair.right, prefix),
            }
        }
        for pair in pairs
    ]


def write_label_studio(
    folder: Path, project: Project, items: Items, pairs: Sequence[Pair], prefix: str = LOCAL_FILES
) -> tuple[Path, Path]:
    r"""Write ``config.xml`` and ``tasks.json`` to a folder.

    Parameters
    ----------
    folder : Path
        Created if it is not there.
    project, items, pairs, prefix
        As in `tasks`.

    Returns
    -------
    (Path, Path)
        The two files.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.annotate.project import Plan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "items.csv").write_text("id,size\na,1\nb,2\n")
    ...     project = Project(Path(folder), "table", "items.csv", Plan(pairs=1))
    ...     files = write_label_studio(Path(folder), project, Items.open(project), [])
    >>> [file.name for file in files]
    ['config.xml', 'tasks.json']
    """
    config, listed = folder / "config.xml", folder / "tasks.json"
    with replacing(config) as part:
        part.write_text(labelling_config(project), "utf-8")
    with replacing(listed) as part:
        text = json.dumps(tasks(project, items, pairs, prefix), ensure_ascii=False, indent=1)
        part.write_text(text + "\n", "utf-8")
    return config, listed


def _add(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, tag, attributes)


def _slider(view: ElementTree.Element, name: str, low: int) -> None:
    limits = {"min": str(low), "max": "100", "step": "1", "slider": "true"}
    _add(view, "Number", name=name, toName="left", **limits)


def _plain(text: str) -> str:
    """Text that Label Studio does not take for the name of a variable."""
    return f"“{text}”" if text.startswith("$") else text


def _shown(items: Items, item: str, prefix: str) -> str:
    view = items.view(item)
    if view.kind == "image":
        return prefix + quote(item)
    if view.kind == "text":
        return view.text
    return "\n".join(f"{name}: {value}" for name, value in view.rows)
