"""``Project.load``: the project file of the studio."""

from __future__ import annotations

from fuzz.mutation import json_mutation
from fuzz.sandbox import attempt, folder, same
from pairlearn.studio.project import Project, ProjectError

WORDS = [f'"{name}":'.encode() for name in ("format", "version", "kind", "items", "plan", "pairs")]
WORDS += [b'"overlap":', b'"columns":', b'"../', b'"pairlearn-project"', b"\\ud800"]
mutate = json_mutation


def one_input(data: bytes) -> Project | str:
    place = folder("project_file")
    path = place / "project.json"
    path.write_bytes(data)
    found = attempt(lambda: Project.load(place), path, ProjectError)
    if not isinstance(found, str):
        found.save()
        same(Project.load(place), found, "written and read")
    return found
