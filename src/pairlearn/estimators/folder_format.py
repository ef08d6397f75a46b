"""A model as a folder: ``model.safetensors`` and ``config.json``. No pickle, ever.

``config.json`` is one object:

    format     "pairlearn-model"
    version    1; every version stays readable, and a newer one is refused
    pairlearn, torch   the versions that wrote it
    tensors    name → {"dtype": "float32", "shape": [300, 16]}
    size, digest       bytes and SHA-256 of model.safetensors
    config     what the writer wanted to keep: any JSON
    checksum   SHA-256 of all the others, as JSON with sorted keys and no spaces

Reading executes nothing that the folder holds, opens only these two files, and checks every length
before it allocates. The checksums detect damage and careless edits, not an attacker, who can
compute them as well: tensors and JSON are all that one can plant.

**Writing.** The new folder is written and synced beside the old one as ``.NAME.HEX.part``. Then
the old one is renamed to ``.NAME.previous``, the new one takes its name, and the old one is
removed. A crash between the two renames leaves ``.NAME.previous``, which `read_folder` then
reads. There is a whole model at every moment, and a folder that holds anything else than a
pairlearn model is never replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

import pairlearn
from pairlearn.atomic import naming, sync

FORMAT, VERSION = "pairlearn-model", 1
CONFIG, TENSORS = "config.json", "model.safetensors"
LARGEST_CONFIG = 64 * 2**20
LARGEST_HEADER = 2**20 * 16


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """What ``config.json`` holds."""

    format: str
    version: int
    pairlearn: str
    torch: str
    tensors: dict[str, Any]
    size: int
    digest: str
    config: dict[str, Any]
    checksum: str = ""


class ModelFolderError(ValueError):
    """A model folder that cannot be read or must not be written; the message says why."""


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
    path = Path(path).expanduser().resolve()
    data = _serialised(tensors)
    kinds = {name: _kind(tensor) for name, tensor in tensors.items()}
    versions = pairlearn.__version__, str(torch.__version__)
    digest = hashlib.sha256(data).hexdigest()
    manifest = msgspec.structs.asdict(
        Manifest(FORMAT, VERSION, *versions, kinds, len(data), digest, config)
    )
    try:
        manifest["checksum"] = _checksum(manifest)
        text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFolderError(f"config must be JSON: {error}") from None
    if msgspec.json.decode(text) != manifest:
        raise ModelFolderError("config would read back as another: keys must be str, and no tuples")
    check_replaceable(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    part.mkdir()
    try:
        with naming(path):
            _write_synced(part / TENSORS, data)
            _write_synced(part / CONFIG, text + b"\n")
            sync(part)
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
            f"{path}: holds no model, for it has no {CONFIG}; `pairlearn fit` writes such folders"
        )
    manifest = _read_manifest(folder / CONFIG)
    return _read_tensors(folder / TENSORS, manifest), manifest.config


def _read_manifest(file: Path) -> Manifest:
    manifest = _read_json(file)
    if manifest.get("format") != FORMAT:
        raise ModelFolderError(
            f"{file}: 'format' is {manifest.get('format')!r:.80}, not {FORMAT!r}: "
            "this is not a pairlearn model"
        )
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise ModelFolderError(f"{file}: 'version' must be a whole number; got {version!r:.80}")
    if version > VERSION:
        writer = manifest.get("pairlearn")
        raise ModelFolderError(
            f"{file}: version {version} of the format, written by pairlearn {writer!s:.80}; this "
            f"pairlearn ({pairlearn.__version__}) reads up to {VERSION}: update pairlearn"
        )
    try:
        found = msgspec.convert(manifest, Manifest)
        checksum = _checksum(manifest)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise ModelFolderError(f"{file}: {str(error)[:300]}") from None
    if checksum != found.checksum:
        raise ModelFolderError(
            f"{file}: the checksum does not fit: the file was damaged or changed after it was "
            "written. Take it from a backup, or fit again"
        )
    return found


def _read_json(file: Path) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(_read_bytes(file, LARGEST_CONFIG))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        if isinstance(error, ModelFolderError):
            raise
        raise ModelFolderError(f"{file}: not readable as JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelFolderError(f"{file}: must hold one JSON object; got {type(value).__name__}")
    return value


def _read_tensors(file: Path, manifest: Manifest) -> dict[str, Tensor]:
    """Tensors of a file whose size, digest, names, types and shapes are as announced."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    size = manifest.size
    found = file.stat().st_size if file.is_file() else size
    if found != size:
        raise ModelFolderError(
            f"{file}: {found} bytes where {CONFIG} announces {size}: the file was cut short, "
            "or belongs to another model"
        )
    data = _read_bytes(file, size)
    header = int.from_bytes(data[:8], "little")
    if len(data) < 8 or header > min(len(data) - 8, LARGEST_HEADER):
        raise ModelFolderError(f"{file}: its header would be {header} bytes long: damaged")
    if hashlib.sha256(data).hexdigest() != manifest.digest:
        raise ModelFolderError(
            f"{file}: its SHA-256 is not the one in {CONFIG}: the file was damaged or exchanged"
        )
    try:
        tensors: dict[str, Tensor] = load(data)
    except (SafetensorError, ValueError, TypeError, KeyError, RuntimeError) as error:
        reason = str(error)[:300]
        raise ModelFolderError(f"{file}: not readable as safetensors: {reason}") from None
    announced = manifest.tensors
    for name in sorted(set(announced) ^ set(tensors)):
        where = "missing" if name in announced else "not announced"
        raise ModelFolderError(f"{file}: tensor {name!r:.80} is {where}")
    for name, tensor in tensors.items():
        if _kind(tensor) != announced[name]:
            raise ModelFolderError(
                f"{file}: tensor {name!r:.80} is {_kind(tensor)!s:.200} where {CONFIG} announces "
                f"{announced[name]!r:.80}"
            )
    return tensors


def _read_bytes(file: Path, largest: int) -> bytes:
    # A pipe or a device would be waited for: only regular files are opened.
    if not file.is_file():
        raise ModelFolderError(f"{file}: there is no such file")
    try:
        with file.open("rb") as stream:
            data = stream.read(largest + 1)
    except OSError as error:
        raise ModelFolderError(f"{file}: {error.strerror}") from None
    if len(data) > largest:
        raise ModelFolderError(f"{file}: more than the {largest} bytes that it may have")
    return data


def _kind(tensor: Tensor) -> dict[str, Any]:
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}


def _checksum(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _serialised(tensors: Mapping[str, Tensor]) -> bytes:
    from safetensors.torch import save

    for name in tensors:
        if not isinstance(name, str) or name in ("", "__metadata__"):
            raise ModelFolderError(f"tensors has the name {name!r:.80}: choose another")
    # Clones, since safetensors refuses tensors that share memory.
    plain = {k: t.detach().cpu().contiguous().clone() for k, t in tensors.items()}
    data: bytes = save(plain)
    return data


def check_replaceable(path: Path, *, overwrite: bool = True) -> None:
    """Refuse a place where writing a model would destroy anything but a model.

    Without `overwrite` a model is refused, too.
    """
    for folder in (path, _previous(path)):
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise ModelFolderError(f"{folder}: exists and is no folder; choose another place")
        if not folder.exists() or not any(folder.iterdir()):
            continue
        others = sorted({file.name for file in folder.iterdir()} - {CONFIG, TENSORS})
        if others:
            raise ModelFolderError(
                f"{folder}: holds {others[0]!r}, which is no part of a model, and would be lost; "
                "choose another folder"
            )
        if not _is_model(folder):
            raise ModelFolderError(
                f"{folder}: exists and is not a pairlearn model; choose another folder, or remove "
                "it yourself"
            )
        if folder == path and not overwrite:
            raise ModelFolderError(
                f"{path} is a model already: choose another folder, or overwrite=True"
            )


def _is_model(folder: Path) -> bool:
    try:
        return _read_json(folder / CONFIG).get("format") == FORMAT
    except ModelFolderError:
        return False


def _take_place(part: Path, path: Path) -> None:
    previous = _previous(path)
    if path.exists():
        # Whatever an earlier crash left is older than what stands at the path.
        shutil.rmtree(previous, ignore_errors=True)
        path.rename(previous)
    part.rename(path)
    sync(path.parent)
    shutil.rmtree(previous, ignore_errors=True)


def _previous(path: Path) -> Path:
    return path.with_name(f".{path.name}.previous")


def _write_synced(file: Path, data: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
