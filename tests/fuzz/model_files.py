"""Model folders, data sets and stores of runs, whatever their bytes are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from torch import Tensor, nn

from fuzz.mutation import json_mutation, line_mutation
from fuzz.sandbox import MARK, Broken, attempt, folder, harness, parts, same
from pairlearn.estimators import PairClassifier
from pairlearn.estimators.folder_format import ModelFolderError
from pairlearn_bench.data import (
    Dataset,
    DatasetCorruptError,
    DatasetSpec,
    get_spec,
    write_npz_atomically,
)
from pairlearn_bench.data.loading import read_folder, read_npz, to_arrays
from pairlearn_bench.runs import Record, StoreError
from pairlearn_bench.store import RunStore

# ---- model folders ----------------------------------------------------------------------------

FOLDER = [f'"{name}":'.encode() for name in ("fitted", "networks", "parameters", "kind", "widths")]
FOLDER += [b'"record":', b'"array":', b'"tuple":', b'"dict":', b'"number":', b'"F32"', b'"BF16"']
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

    Any damage is told by the checksums. So the folder is read a second time with sizes and
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
    """The config with the size and the checksums that it ought to have; None if it is no object."""
    from safetensors.torch import load

    try:
        manifest = json.loads(config)
        manifest["size"] = len(tensors)
        manifest["digest"] = hashlib.sha256(tensors).hexdigest()
        manifest.pop("checksum", None)
        with suppress(Exception):  # then as it is: the reader has to find out too
            manifest["tensors"] = {
                name: {"dtype": str(one.dtype).removeprefix("torch."), "shape": list(one.shape)}
                for name, one in load(tensors).items()
            }
        text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
        manifest["checksum"] = hashlib.sha256(text.encode()).hexdigest()
        return json.dumps(manifest).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def content(found: PairClassifier) -> str:
    """Everything in a classifier as text."""
    values = {name: value for name, value in vars(found).items() if name != "preprocessor"}
    return repr({name: shown(value) for name, value in sorted(values.items())})


def shown(value: Any) -> Any:
    if isinstance(value, nn.Module):
        return str(value), {name: shown(one) for name, one in value.state_dict().items()}
    if isinstance(value, (Tensor, np.ndarray)):
        return str(value.dtype), value.tolist()
    return value


# ---- data sets --------------------------------------------------------------------------------

GREY = replace(
    get_spec("pmu-ud"), name="small", shape=(4, 4), class_names=("0", "1"), positive=(1,),
    n_train=3, n_test=1, digest=None,
)  # fmt: skip


def data_set(spec: DatasetSpec, files: Mapping[str, bytes], named: str) -> Dataset | str | None:
    """Read the set from a folder with these files; the message names one of them."""
    place = folder(f"small-{named}")
    for name, data in files.items():
        (place / name).write_bytes(data)
    found = attempt(lambda: read_folder(spec, place), place / named, DatasetCorruptError)
    if found is None:
        raise Broken("nothing was found")
    if isinstance(found, Dataset):
        copy = place.parent / "small.npz"
        write_npz_atomically(copy, to_arrays(found), source="a test")
        again: Any = read_folder(spec, place.parent)
        same(again.x.tolist(), found.x.tolist(), "written and read")
        same(again.y.tolist(), found.y.tolist(), "written and read")
    return found


NPZ = [b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"x.npy", b"y.npy", b"x_train.npy"]
NPZ += [b"\x93NUMPY\x01\x00", b"'descr': '|u1'", b"'<f8'", b"'|O'", b"(4, 4, 4)", b"x"]


@harness(NPZ)
def dataset_npz(data: bytes) -> Any:
    """A set in one file, with the record of its checksum; two files in an input."""
    arrays, record = parts(data, 2)
    path = folder("recorded") / "small.npz"
    path.write_bytes(arrays)
    path.with_name("small.npz.json").write_bytes(record)
    attempt(lambda: read_npz(path), path, DatasetCorruptError)
    return data_set(GREY, {"small.npz": arrays}, "small.npz")


ZIP = [b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x89PNG", b"GIF89a", b"BM", b"II*\0"]
ZIP += [b"0/a.png", b"a.zip", b"\xff\xd8\xff", b"IHDR", b"IDAT"]


@harness(ZIP)
def dataset_zip(data: bytes) -> Any:
    """Images, a folder a class."""
    return data_set(GREY, {"small.zip": data}, "small.zip")


# ---- runs -------------------------------------------------------------------------------------

RUNS = [f'"{name}": '.encode() for name in ("dataset", "prior", "seed", "method", "results")]
RUNS += [b'{"dataset": ', b"\n", b"NaN", b"1e999", b'"supervised"', b'"convex-0.5-relu"']


@harness(RUNS, line_mutation)
def run_store(data: bytes) -> list[Record] | str:
    place = folder("run_store")
    path = place / "runs.jsonl"
    path.write_bytes(data)
    found = attempt(lambda: list(RunStore(path)), path, StoreError)
    try:
        with RunStore(path):
            pass
        kept = path.read_bytes()
        if isinstance(found, str):
            raise Broken(f"not readable, yet opened for writing: {found}")
        # A writer cuts off one unfinished line at the end, and nothing else.
        same(kept, data[: data.rfind(b"\n") + 1], "opened for writing")
    except StoreError as error:
        if not isinstance(found, str):
            raise Broken(f"readable, yet not opened for writing: {error}") from error
        same(path.read_bytes(), data, "refused, and")
    if isinstance(found, str):
        return found
    copy = place.parent / "copy.jsonl"
    copy.write_bytes(b"".join(record.line() for record in found))
    same(list(RunStore(copy)), found, "written and read")
    for record in found:
        same(Record.from_line(record.line()), record, "as a line")
    if len({record.run.key() for record in found}) != len(found):
        raise Broken("a run is there twice")
    return found
