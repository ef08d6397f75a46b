"""Model folders, whatever their bytes are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from torch import Tensor, nn

from fuzz.mutation import json_mutation
from fuzz.sandbox import MARK, attempt, folder, harness, parts, same
from pairlearn.estimators import PairClassifier
from pairlearn.estimators.folder_format import ModelFolderError

# ---- model folders ----------------------------------------------------------------------------

FOLDER = [
    f'"{name}":'.encode()
    for name in ("instances", "network", "parameters", "kind", "widths", "columns")
]
FOLDER += [b'"F32"', b'"BF16"', b'"annotators":', b'"scales":', b'"history":', b'"trained_on":']
FOLDER += [b'"data_offsets":', b'"shape":', b'"dtype":', b'"__metadata__":', MARK]


def folder_mutation(data: bytes, seed: int) -> bytes | None:
    config, tensors = parts(data, 2)
    if Random(seed).random() < 0.6:
        changed = json_mutation(config, seed)
        return None if changed is None else changed + MARK + tensors
    size = int.from_bytes(tensors[:8], "little")
    header = json_mutation(tensors[8 : 8 + size], seed)
    if header is None:
        return None
    return config + MARK + len(header).to_bytes(8, "little") + header + tensors[8 + size :]


@harness(FOLDER, folder_mutation)
def model_folder(data: bytes) -> Any:
    """Config and weights, two files in an input.

    Any damage is told by the checksums. So the folder is read a second time with
    checksums mended: then the bytes come as far as an attacker's would.
    """
    place = folder("model_folder") / "model"
    place.mkdir(exist_ok=True)
    config, tensors = parts(data, 2)
    outcomes = [loaded(place, config, tensors)]
    mended = mend(config, tensors)
    if mended is not None:
        outcomes.append(loaded(place, mended, tensors))
    return outcomes


def loaded(place: Path, config: bytes, tensors: bytes) -> Any:
    (place / "config.json").write_bytes(config)
    (place / "model.safetensors").write_bytes(tensors)
    found = attempt(lambda: PairClassifier.load(place), place, ModelFolderError)
    if not isinstance(found, str):
        copy = place.parent.parent / "copy"
        found.save(copy, overwrite=True)
        same(content(PairClassifier.load(copy)), content(found), "written and read")
    return found


def mend(config: bytes, tensors: bytes) -> bytes | None:
    """The config with the checksums that it ought to have; None if it is no object."""
    try:
        manifest = json.loads(config)
        manifest["digest"] = hashlib.sha256(tensors).hexdigest()
        manifest.pop("checksum", None)
        text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
        manifest["checksum"] = hashlib.sha256(text.encode()).hexdigest()
        return json.dumps(manifest).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def content(found: PairClassifier) -> str:
    """Everything in a classifier as text."""
    values = vars(found.fitted_)
    return repr({name: shown(value) for name, value in sorted(values.items())})


def shown(value: Any) -> Any:
    if isinstance(value, nn.Module):
        return str(value), {name: shown(one) for name, one in value.state_dict().items()}
    if isinstance(value, (Tensor, np.ndarray)):
        return str(value.dtype), value.tolist()
    return value
