"""The files of a model folder: ``model.safetensors`` and ``config.json``. No pickle, ever.

``config.json`` is one object:

    format, version    "pairlearn-model", 2; other versions are refused
    pairlearn          the version that wrote it
    digest             SHA-256 of model.safetensors
    config             the model, as `model_folder` describes it
    checksum           SHA-256 of all the others, as JSON with sorted keys and no spaces

Reading executes no code of the folder and opens only these two files. The checksums detect damage
and careless edits, not an attacker, who can compute them too but can plant only tensors and JSON.

**Writing.** The new folder is written and synced beside the old one as ``.NAME.HEX.part``. Then
the old one is renamed to ``.NAME.previous``, the new one takes its name, and the old one is
removed. A crash between the two renames leaves ``.NAME.previous``, which `read_folder` then
reads. There is a complete model at every moment, and a folder with anything other than a pairlearn
model is never replaced.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from torch import Tensor

import pairlearn
from pairlearn.atomic import errors_naming, sync

FORMAT, VERSION = "pairlearn-model", 2
CONFIG, TENSORS = "config.json", "model.safetensors"


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """All keys of ``config.json``."""

    format: str
    version: int
    pairlearn: str
    digest: str
    config: dict[str, Any]
    checksum: str = ""


class ModelFolderError(ValueError):
    """A model folder cannot be read or must not be written."""


def write_folder(
    path: str | Path,
    tensors: Mapping[str, Tensor],
    config: dict[str, Any],
    *,
    overwrite: bool = True,
) -> None:
    """Write a model folder, whole or not at all.

    ``path`` may exist if it is empty or, with ``overwrite``, a pairlearn model. ``config`` is
    anything that is JSON: str keys, finite numbers.
    """
    from safetensors.torch import save

    path = Path(path).expanduser().resolve()
    # Clones, since safetensors refuses tensors that share memory.
    data: bytes = save({k: t.detach().cpu().contiguous().clone() for k, t in tensors.items()})
    digest = hashlib.sha256(data).hexdigest()
    manifest = msgspec.structs.asdict(
        Manifest(FORMAT, VERSION, pairlearn.__version__, digest, config)
    )
    try:
        manifest["checksum"] = _checksum(manifest)
        text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFolderError(f"config must be JSON: {error}") from None
    check_replaceable(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    part.mkdir()
    try:
        with errors_naming(path):
            (part / TENSORS).write_bytes(data)
            (part / CONFIG).write_bytes(text + b"\n")
            for written in (part / TENSORS, part / CONFIG, part):
                sync(written)
        _take_place(part, path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def read_folder(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a model folder: its tensors and the writer's config; ModelFolderError if it is damaged.

    If it is missing because a crash interrupted its replacement, the previous one is read.
    """
    path = Path(path).expanduser()
    folder = path
    if not path.is_dir():
        if path.exists():
            raise ModelFolderError(f"{path}: is a file; a model is a folder")
        folder = _previous(path.resolve())
        if not _is_model(folder):
            raise ModelFolderError(f"{path}: there is no such folder")
    if not (folder / CONFIG).is_file():
        raise ModelFolderError(
            f"{path}: holds no model: it has no {CONFIG}; `pairlearn fit` writes such folders"
        )
    manifest = _read_manifest(folder / CONFIG)
    return _read_tensors(folder / TENSORS, manifest.digest), manifest.config


def _read_manifest(file: Path) -> Manifest:
    manifest = _read_json(file)
    try:
        if (name := manifest.get("format")) != FORMAT:
            raise ModelFolderError(
                f"'format' is {name!r:.80}, not {FORMAT!r}: this is not a pairlearn model"
            )
        if (version := manifest.get("version")) != VERSION:
            raise ModelFolderError(
                f"version {version!r:.80} of the format, written by pairlearn "
                f"{manifest.get('pairlearn')!s:.80}; this pairlearn ({pairlearn.__version__}) "
                f"reads version {VERSION}: use that one, or fit again"
            )
        converted = msgspec.convert(manifest, Manifest)
        if _checksum(manifest) != converted.checksum:
            raise ModelFolderError(
                "the checksum does not match: the file was damaged or changed after it was "
                "written. Take it from a backup, or fit again"
            )
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(f"{file}: {str(error)[:300]}") from None
    return converted


def _read_json(file: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(_read_bytes(file), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ModelFolderError(f"{file}: not readable as JSON: {error}") from None


def _read_tensors(file: Path, digest: str) -> dict[str, Tensor]:
    """Read tensors with this digest."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    data = _read_bytes(file)
    if hashlib.sha256(data).hexdigest() != digest:
        raise ModelFolderError(
            f"{file}: its SHA-256 is not the one in {CONFIG}: the file was cut short, damaged or "
            "exchanged"
        )
    try:
        return dict(load(data))
    except (SafetensorError, ValueError, TypeError, KeyError, RuntimeError) as error:
        reason = str(error)[:300]
        raise ModelFolderError(f"{file}: not readable as safetensors: {reason}") from None


def _read_bytes(file: Path) -> bytes:
    # Opening a pipe or a device would block: only regular files are opened.
    if not file.is_file():
        raise ModelFolderError(f"{file}: there is no such file")
    try:
        return file.read_bytes()
    except OSError as error:
        raise ModelFolderError(f"{file}: {error.strerror}") from None


def _checksum(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def check_replaceable(path: Path, *, overwrite: bool = True) -> None:
    """Raise if a model written here would replace more than a model with `overwrite`."""
    for folder in (path, _previous(path)):
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise ModelFolderError(f"{folder}: exists and is not a folder; choose another path")
        names = {file.name for file in folder.iterdir()} if folder.exists() else set()
        if others := sorted(names - {CONFIG, TENSORS}):
            raise ModelFolderError(
                f"{folder}: holds {others[0]!r}, which is not part of a model and would be lost; "
                "choose another folder"
            )
        if names and not _is_model(folder):
            raise ModelFolderError(
                f"{folder}: exists and is not a pairlearn model; choose another folder, or remove "
                "it yourself"
            )
        if names and folder == path and not overwrite:
            raise ModelFolderError(
                f"{path} is a model already: choose another folder, or replace it "
                "(overwrite=True, or --force)"
            )


def _is_model(folder: Path) -> bool:
    try:
        return _read_json(folder / CONFIG).get("format") == FORMAT
    except ModelFolderError:
        return False


def _take_place(part: Path, path: Path) -> None:
    previous = _previous(path)
    if path.exists():
        # Anything left by an earlier crash is older than the model at the path.
        shutil.rmtree(previous, ignore_errors=True)
        path.rename(previous)
    part.rename(path)
    sync(path.parent)
    shutil.rmtree(previous, ignore_errors=True)


def _previous(path: Path) -> Path:
    return path.with_name(f".{path.name}.previous")
