"""Model folders: round trips, every kind of damage, and crashes while writing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pairlearn.estimators.folder_format import ModelFolderError, read_folder, write_folder

VALUES = {"w": torch.arange(6.0).reshape(2, 3), "n": torch.tensor(7)}
BODY = {"text": "Ωmega", "numbers": [1, 2.5, -1e-300, None, True], "nested": {"a": {}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    write_folder(path, VALUES, BODY)
    return path


def canonical(manifest: dict[str, Any]) -> bytes:
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()


def rewrite(folder: Path, **changes: Any) -> None:
    """Change the config as an attacker would: with a checksum that fits."""
    manifest = json.loads((folder / "config.json").read_text()) | changes
    manifest = {key: value for key, value in manifest.items() if value is not ...}
    manifest["checksum"] = hashlib.sha256(canonical(manifest)).hexdigest()
    (folder / "config.json").write_text(json.dumps(manifest))


def exchange(folder: Path, data: bytes) -> None:
    """Exchange the tensors, and announce them as they are."""
    (folder / "model.safetensors").write_bytes(data)
    rewrite(folder, digest=hashlib.sha256(data).hexdigest())


def safetensors(header: dict[str, Any], data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def same(content: Any, wanted: Any) -> bool:
    tensors, body = content
    return bool(
        body == wanted[1]
        and tensors.keys() == wanted[0].keys()
        and all(torch.equal(tensors[k], t) for k, t in wanted[0].items())
        and all(tensors[k].dtype == t.dtype for k, t in wanted[0].items())
    )


# ---- round trips ------------------------------------------------------------------------------


def test_what_is_written_is_read(folder: Path) -> None:
    assert same(read_folder(folder), (VALUES, BODY))
    assert sorted(file.name for file in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert [file.name for file in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.bool]
)
def test_types_empty_tensors_views_and_shared_memory(tmp_path: Path, dtype: torch.dtype) -> None:
    base = torch.ones(3, 4).to(dtype)
    tensors = {"view": base.t(), "shared": base, "empty": base[:0], "scalar": base[0, 0]}
    write_folder(tmp_path / "model", tensors, {})
    assert same(read_folder(tmp_path / "model"), (tensors, {}))


def test_links_and_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "real", VALUES, {"number": 1})
    (tmp_path / "latest").symlink_to("real")
    write_folder(tmp_path / "latest", VALUES, {"number": 2})
    assert (tmp_path / "latest").is_symlink()
    monkeypatch.chdir(tmp_path)
    assert read_folder("real")[1] == read_folder(tmp_path / "latest")[1] == {"number": 2}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"a": float("nan")}, "config must be JSON"),
        ({"a": Path("x")}, "config must be JSON: .*Path"),
        ({"a": "\ud800"}, "config must be JSON: .*surrogates"),
    ],
)
def test_configs_that_json_would_change_are_refused(
    tmp_path: Path, config: Any, message: str
) -> None:
    with pytest.raises(ModelFolderError, match=message):
        write_folder(tmp_path / "model", VALUES, config)
    assert not list(tmp_path.iterdir())


# ---- damage -----------------------------------------------------------------------------------


def cut(file: Path, keep: int) -> None:
    file.write_bytes(file.read_bytes()[:keep])


def flip_last_byte(folder: Path) -> None:
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(data)


def edit(old: str, new: str) -> Callable[[Path], object]:
    def act(folder: Path) -> None:
        text = (folder / "config.json").read_text()
        assert old in text
        (folder / "config.json").write_text(text.replace(old, new, 1))

    return act


def announce(**changes: Any) -> Callable[[Path], object]:
    return lambda folder: rewrite(folder, **changes)


def config(text: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / "config.json").write_bytes(text)


def tensors(data: bytes) -> Callable[[Path], object]:
    return lambda folder: exchange(folder, data)


def pipe(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


ONES = {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
HUGE = {"w": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]}}
NOT_JSON, NOT_TENSORS = "not readable as JSON", "not readable as safetensors"
DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (shutil.rmtree, "there is no such folder"),
    (lambda f: (shutil.rmtree(f), f.write_text("")), "is a file; a model is a folder"),
    (lambda f: (f / "config.json").unlink(), "holds no model: it has no config.json"),
    (lambda f: (f / "model.safetensors").unlink(), "model.safetensors: there is no such file"),
    (pipe, "model.safetensors: there is no such file"),
    (lambda f: cut(f / "config.json", 100), NOT_JSON),
    (lambda f: cut(f / "model.safetensors", 60), "was cut short, damaged or exchanged"),
    (flip_last_byte, "SHA-256 is not the one in config.json"),
    (edit("Ωmega", "Omega"), "the checksum does not match"),
    (edit("2.5", "NaN"), NOT_JSON),
    (edit("Ωmega", r"\ud800"), NOT_JSON),
    (config(b"[]"), "Expected `object`, got `array`"),
    (config(b"[" * 100_000 + b"]" * 100_000), NOT_JSON),
    (config(b'{"a": "\xff"}'), NOT_JSON),
    (announce(format="onnx"), "'format' is 'onnx', not 'pairlearn-model'"),
    (config(b'{"model_type": "bert"}'), "'format' is None, .*: this is not a pairlearn model"),
    (
        announce(version=3, pairlearn="9.0", surprise={}),
        "version 3 of the format, written by pairlearn 9.0; .* use that one, or fit again",
    ),
    (announce(digest=...), "missing required field `digest`"),
    (announce(config=[]), r"got `array` - at `\$.config`"),
    (announce(code="import os"), "unknown field `code`"),
    (tensors(struct.pack("<Q", 2**62) + b"{}"), NOT_TENSORS),
    (tensors(b"abc"), NOT_TENSORS),
    (tensors(struct.pack("<Q", 4) + b"abcd"), NOT_TENSORS),
    (tensors(safetensors(ONES, b"")), NOT_TENSORS),
    (tensors(safetensors(HUGE, b"abcd")), NOT_TENSORS),
]


@pytest.mark.parametrize(("act", "message"), DAMAGE)
def test_damage_is_refused_with_its_reason(
    folder: Path, act: Callable[[Path], object], message: str
) -> None:
    act(folder)
    with pytest.raises(ModelFolderError, match=message):
        read_folder(folder)


# ---- replacing --------------------------------------------------------------------------------


def test_a_model_and_an_empty_folder_are_replaced(folder: Path) -> None:
    write_folder(folder, {}, {"new": 1})
    assert read_folder(folder) == ({}, {"new": 1})
    (folder.parent / "empty").mkdir()
    write_folder(folder.parent / "empty", {}, {})
    assert sorted(file.name for file in folder.parent.iterdir()) == ["empty", "model"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "notes.txt").write_text("mine"), "holds 'notes.txt', which is not part"),
        (lambda f: (f / "config.json").write_text("{}"), "is not a pairlearn model"),
        (lambda f: (f / "config.json").unlink(), "is not a pairlearn model"),
        (lambda f: (shutil.rmtree(f), f.write_text("a file")), "exists and is not a folder"),
    ],
)
def test_nothing_but_a_model_is_replaced(folder: Path, spoil: Any, message: str) -> None:
    spoil(folder)

    def content() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in folder.parent.rglob("*") if p.is_file()}

    before = content()
    with pytest.raises(ModelFolderError, match=message):
        write_folder(folder, {}, {"new": 1})
    assert content() == before


@pytest.mark.parametrize("survives", range(3))
def test_a_crash_leaves_a_whole_model(
    folder: Path, survives: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop for good at each rename, and before the first; then read, write and read again."""
    done = 0
    rename, remove = Path.rename, shutil.rmtree

    def stop(self: Path, target: Path) -> Path:
        nonlocal done
        if done == survives:
            raise KeyboardInterrupt
        done += 1
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", stop)
        # A killed process tidies up nothing.
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        if survives < 2:
            with pytest.raises(KeyboardInterrupt):
                write_folder(folder, {}, {"new": 1})
        else:
            write_folder(folder, {}, {"new": 1})
    wanted = BODY if survives < 2 else {"new": 1}
    assert read_folder(folder)[1] == wanted
    assert folder.exists() == (survives != 1)
    write_folder(folder, {}, {"newer": 2})
    assert read_folder(folder)[1] == {"newer": 2}
    left = [file for file in folder.parent.iterdir() if not file.name.endswith(".part")]
    assert left == [folder]
    assert shutil.rmtree is remove


def test_a_full_disk_leaves_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_folder(folder, {}, {"new": 1})
    assert same(read_folder(folder), (VALUES, BODY))
    assert list(folder.parent.iterdir()) == [folder]
