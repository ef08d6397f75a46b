"""Checkpoints of a fleet: enough to go on after a kill as if nothing had happened."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pairlearn.atomic import replacing

if TYPE_CHECKING:
    from pairlearn.training.fleet import Fleet

__all__ = ["restore", "save"]


def save(fleet: Fleet, path: Path) -> None:
    """Write the state of a fleet between two epochs; an older checkpoint is replaced."""
    arrays = {name: _array(tensor) for name, tensor in _state(fleet).items()}
    for index, row in enumerate(fleet.history):
        arrays |= {f"history/{index}/{name}": values for name, values in row.items()}
    arrays["fleet"] = np.array(_fingerprint(fleet))
    arrays["epoch"] = np.array(fleet.epoch)
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


@torch.no_grad()
def restore(fleet: Fleet, path: Path) -> None:
    """Put a fleet into the state of a checkpoint that the same fleet has written."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = dict(stored)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"checkpoint {path} is damaged, delete it to start anew: {error}"
        ) from None
    if str(arrays.get("fleet")) != _fingerprint(fleet):
        raise ValueError(f"checkpoint {path} belongs to another fleet: delete it to start anew")
    for name, tensor in _state(fleet).items():
        tensor.copy_(torch.from_numpy(arrays[name]))
    fleet.epoch = int(arrays["epoch"])
    rows: dict[int, dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]] = {}
    for name, values in arrays.items():
        if name.startswith("history/"):
            _, index, subset = name.split("/", 2)
            rows.setdefault(int(index), {})[subset] = values
    fleet.history = [rows[index] for index in sorted(rows)]


def _array(tensor: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[Any]]:
    # numpy has no bfloat16; float32 holds the same numbers.
    tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    array: np.ndarray[tuple[int, ...], np.dtype[Any]] = tensor.detach().cpu().numpy()
    return array


def _state(fleet: Fleet) -> dict[str, Tensor]:
    """Every tensor that training changes."""
    state: dict[str, Tensor] = dict(fleet.network.state_dict())
    made = {f"operand.{name}": fleet.step.operands[name] for name in fleet.step.made}
    return state | made | fleet.step.adam.state()


def _fingerprint(fleet: Fleet) -> str:
    """What the fleet trains, and on what: equal for equal fleets."""
    digest = hashlib.sha256(f"{fleet.precision} {fleet.batch_size} {fleet.network}".encode())
    for group in fleet.groups:
        digest.update(f"{group.seed}".encode())
        digest.update(np.ascontiguousarray(group.pairs, dtype=np.int64).tobytes())
        for member in group.members:
            about = (member.risk.name, member.learning_rate, member.weight_decay, member.seed)
            digest.update(repr(about).encode())
            digest.update(member.risk.table.numpy().tobytes())
            digest.update(np.ascontiguousarray(member.labels, dtype=np.float64).tobytes())
    for column in fleet.step.objective.columns:
        digest.update(_array(column).tobytes())
    return digest.hexdigest()
