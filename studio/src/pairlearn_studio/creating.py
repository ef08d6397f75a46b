"""Create projects from the rows of a table, a folder of images, or a folder of texts.

`make_demo` creates one to try the studio with: handwritten digits from scikit-learn.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pairlearn.io import TableError
from pairlearn.io.item_files import IMAGES, SUFFIXES, item_kinds, list_files
from pairlearn_studio.items import (
    MAX_TEXT_BYTES,
    Items,
    media_type,
    read_columns,
    read_file,
)  # fmt: skip
from pairlearn_studio.project import Kind, Plan, Project, ProjectError
from pairlearn_studio.records import Known
from pairlearn_studio.store import Store

DEFAULT_PAIRS = 500


def create_project(
    folder: str | Path,
    source: str | Path,
    *,
    kind: Kind | None = None,
    pairs: int | None = None,
    seed: int = 0,
    **fields: Any,
) -> tuple[Project, str]:
    """Create a project folder with its items, plan and an empty store.

    Returns the project and the supervisor's token. The items are copied. The folder, which must
    not exist or be empty, appears complete or not at all. ``source`` is a ``.csv`` or ``.parquet``
    table with a column ``id``, or a folder of images (PNG, JPEG, WebP, GIF) or texts (``.txt``,
    ``.md``); ``kind`` chooses between them where a folder holds both. ``pairs`` is 500, or all
    there are. ``fields`` are those of `Project`; answers are graded by default. Raises
    ProjectError if the items cannot be used.
    """
    folder, source = Path(folder), Path(source)
    _check_free(folder)
    if not source.exists():
        raise ProjectError(f"{source} does not exist")
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.part")
    folder.parent.mkdir(parents=True, exist_ok=True)
    part.mkdir(mode=0o700)  # items may be private
    try:
        kind, items = _copy_items(source, part, kind)
        fields = {"answers": "graded", "id": secrets.token_hex(8)} | fields
        project = Project(part, kind, items, Plan(pairs or 1, seed), **fields)
        possible = _count_pairs(project, source)
        if pairs is None:
            project = replace(project, plan=Plan(min(DEFAULT_PAIRS, possible), seed))
        project.save()
        with Store.create(project) as store:
            token = store.supervisor_token
        try:
            part.replace(folder)
        except OSError:
            _check_free(folder)  # another process may have created it in the meantime
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    assert token is not None
    return Project.load(folder), token


def _count_pairs(project: Project, source: Path) -> int:
    """Number of pairs of the copied items; ProjectError names the source if they cannot be used."""
    try:
        count = len(Items.open(project))
    except ProjectError as error:
        raise ProjectError(str(error).replace(str(project.items_path), str(source))) from None
    if count < 2:
        raise ProjectError(f"{source} has {count} item: a pair needs two")
    return count * (count - 1) // 2


def _check_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProjectError(f"{folder} already exists and is not empty: choose another name")


def describe_fit(project: Project) -> str:
    """Describe what `pairlearn fit` will learn from the items, before any pair is judged."""
    try:
        kinds, notes = item_kinds(project.items_path)
    except TableError as error:
        return f"`pairlearn fit` will not take these items as they are: {error}"
    listed = "; ".join([*(f"{name} ({kind})" for name, kind in kinds.items()), *notes])
    return f"`pairlearn fit {project.items_path} PAIRS` will learn from {listed}"


def _copy_items(source: Path, folder: Path, kind: Kind | None) -> tuple[Kind, str]:
    """Copy the items; return their kind and the name of the copy."""
    try:
        if not source.is_dir():
            if kind not in (None, "table"):
                raise ProjectError(f"{source} is a file: items of kind {kind!r} are in a folder")
            read_columns(source, "items", "id")
            name = f"items{source.suffix.lower()}"
            _copy(source, folder / name)
            return "table", name
        if kind == "table":
            raise ProjectError(f"{source} is a folder: items of kind 'table' are in a file")
        kind, files = _find_files(source, [kind] if kind else ["image", "text"])
        for name, path in files.items():
            _check_file(path, kind)
            copy = folder / "items" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            _copy(path, copy)
    except TableError as error:
        raise ProjectError(str(error)) from None
    return kind, "items"


def _copy(source: Path, target: Path) -> None:
    """Copy a file of items, readable by its owner only."""
    shutil.copyfile(source, target)
    target.chmod(0o600)


def files_left_out(source: Path, project: Project) -> dict[str, int]:
    """Numbers of files in the folder of the items that are no items, by their suffix."""
    if not source.is_dir():
        return {}
    others = (path.suffix.lower() or path.name for path in source.rglob("*") if path.is_file())
    return dict(Counter(suffix for suffix in others if suffix not in SUFFIXES[project.kind]))


def _find_files(folder: Path, kinds: list[Kind]) -> tuple[Kind, dict[str, Path]]:
    """The kind that a folder holds, and its files."""
    files_of = {kind: files for kind in kinds if (files := list_files(folder, SUFFIXES[kind]))}
    if len(files_of) > 1:
        raise ProjectError(f"{folder} has images and texts: say which are the items (kind)")
    if not files_of:
        lacking = " and no ".join(f"{kind}s ({', '.join(SUFFIXES[kind])})" for kind in kinds)
        raise ProjectError(f"{folder} has no {lacking}")
    return files_of.popitem()


def _check_file(path: Path, kind: Kind) -> None:
    """Refuse a file whose content does not match its name: browsers would guess its type."""
    suffix = path.suffix.lower()
    if kind == "image":
        with path.open("rb") as file:
            if media_type(file.read(12)) != IMAGES[suffix]:
                name = suffix[1:].upper()
                raise ProjectError(f"{path} is not a {name} image, whatever its name says")
        return
    try:
        read_file(path, MAX_TEXT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise ProjectError(f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8") from None


ITEMS, PAIRS, SIZE = 60, 60, (144, 144)
#: Digits of the known pairs with a reason: three examples, three to practise, six checks.
DEMO_KNOWN: tuple[tuple[str, str, str], ...] = (
    ("8", "3", "The first has two closed loops; the second is open to the left."),
    ("3", "3", "Both are open to the left: two bows, no loop."),
    ("8", "8", "Both cross in the middle and close above and below."),
    ("3", "8", "Only the second has a line on its left side."),
    ("8", "8", "Both have two loops, though one is narrow."),
    ("3", "8", "The first has two ends on the left; the second has none."),
    *((left, right, "") for left, right in ("83", "33", "38", "88", "83", "38")),
)
DEMO_ANSWERS = {
    "83": "left surely",
    "38": "right surely",
    "88": "both positive",
    "33": "both negative",
}


def make_demo(folder: Path) -> Project:
    """Create a graded project of images, with definitions, examples, practice and checks.

    Known pairs are of the clearest digits: those that are nearer to the mean of their class than
    to that of the other, by most.
    """
    from PIL import Image
    from sklearn.datasets import load_digits

    digits: Any = load_digits()
    rows = np.flatnonzero(np.isin(digits.target, (3, 8)))
    means = {digit: digits.data[digits.target == digit].mean(0) for digit in (3, 8)}
    far = {digit: np.linalg.norm(digits.data[rows] - mean, axis=1) for digit, mean in means.items()}
    eight = digits.target[rows] == 8
    clear = np.where(eight, far[3] - far[8], far[8] - far[3])
    rows, eight = rows[np.argsort(-clear)], eight[np.argsort(-clear)]
    # The clearest of each class, then others at random.
    wanted = [digit == "8" for left, right, _ in DEMO_KNOWN for digit in (left, right)]
    queues = {kind: iter(np.flatnonzero(eight == kind).tolist()) for kind in (True, False)}
    chosen = [next(queues[kind]) for kind in wanted]
    rest = np.setdiff1d(np.arange(len(rows)), chosen)
    chosen += np.random.default_rng(0).permutation(rest)[: ITEMS - len(chosen)].tolist()
    rows = rows[chosen]
    names = [f"digit-{number:02}.png" for number in range(len(rows))]
    known = []
    for number, (left, right, why) in enumerate(DEMO_KNOWN):
        ends = names[2 * number], names[2 * number + 1]
        use: Any = ("example", "practice", "check", "check")[number // 3]
        known.append(Known(*ends, DEMO_ANSWERS[left + right], use, why))
    with tempfile.TemporaryDirectory() as images:
        for name, row in zip(names, rows, strict=True):
            grey = 255 - 255 * np.pad(digits.images[row], 2) / 16
            picture = Image.fromarray(grey.astype(np.uint8))
            picture.resize(SIZE, Image.Resampling.BILINEAR).save(Path(images, name))
        project, _ = create_project(
            folder, images, pairs=PAIRS, title="Threes and eights", hide_ids=True,
            positive_name="an eight", negative_name="a three",
            positive_means="The writer meant 8: two loops, both closed.",
            negative_means="The writer meant 3: two bows, open to the left.",
            help="Go by what was meant, not by how well it is written.",
            known=known, known_share=0.1,
        )  # fmt: skip
    return project
