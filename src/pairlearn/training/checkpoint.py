"""Checkpoints, from which a killed training resumes as if it had never stopped.

A checkpoint is one file: a line that names the format, the SHA-256 of the rest, and numpy
arrays. It is flushed to disk before it takes its name. The previous one is kept beside it, for
a file that does not match its digest (torn by a crash, or damaged later).
"""

from __future__ import annotations

import glob
import hashlib
import time
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.atomic import replacing

Arrays = dict[str, NDArray[Any]]
_FORMAT = b"pairlearn checkpoint 4\n"
_DIGEST = 32  # bytes of SHA-256
_WORK = "work"  # the array that identifies the training
#: Seconds until the first checkpoint is due, at most: an early interruption keeps something.
FIRST = 1.0


class CheckpointError(ValueError):
    """A checkpoint exists but cannot be used."""


class Checkpoint:
    """The state of a training in the file ``path``, and the previous one in ``path.before``.

    A checkpoint is `due` every so many ``seconds``; the first one after a second.
    """

    def __init__(self, path: Path, seconds: float = 60.0) -> None:
        self.path, self.seconds = Path(path), seconds
        self.before = self.path.with_name(f"{self.path.name}.before")
        self._next = time.monotonic() + min(seconds, FIRST)

    def after(self) -> Checkpoint:
        """The checkpoint of the training that follows this one, in its own file."""
        return Checkpoint(self.path.with_name(f"{self.path.name}.after"), self.seconds)

    def due(self) -> bool:
        """Whether it is time for another checkpoint."""
        return time.monotonic() >= self._next

    def save(self, state: Mapping[str, NDArray[Any]], work: str) -> None:
        """Save a state; `load` compares its `work`. The last file becomes the previous one."""
        with replacing(self.path) as part:
            with part.open("w+b") as file:
                file.write(_FORMAT + bytes(_DIGEST))
                np.savez(file, **{_WORK: np.array(work)}, **state)  # type: ignore[arg-type]
                file.seek(len(_FORMAT) + _DIGEST)
                digest = hashlib.file_digest(file, "sha256").digest()
                file.seek(len(_FORMAT))
                file.write(digest)
            if self.path.exists():
                self.path.replace(self.before)
        self._next = time.monotonic() + self.seconds

    def load(self, work: str) -> Arrays | None:
        """The last undamaged state, or None where there is no checkpoint.

        Raises CheckpointError if all checkpoints are damaged, or if one is of other work.
        """
        damaged = []
        for path in (self.path, self.before):
            try:
                state = _read(path)
            except FileNotFoundError:
                continue
            except CheckpointError as error:
                damaged.append(str(error))
                continue
            if str(state.pop(_WORK, None)) != work:
                raise CheckpointError(
                    f"checkpoint {path} belongs to another training: delete it to start over"
                )
            if damaged:
                warnings.warn(f"{damaged[0]}; resuming from {path}", stacklevel=2)
            return state
        if damaged:
            raise CheckpointError(f"{'; '.join(damaged)}: delete them to start over")
        return None

    def remove(self) -> None:
        """Remove both files, those of the training after it, and partial files of killed writers.

        The files of the later training go first, and the older file before the newer.
        """
        after = self.after()
        if after.path.exists() or after.before.exists():
            after.remove()
        for part in self.path.parent.glob(f".{glob.escape(self.path.name)}.*.part"):
            part.unlink(missing_ok=True)
        self.before.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


def _read(path: Path) -> Arrays:
    with path.open("rb") as file:
        if file.read(len(_FORMAT)) != _FORMAT:
            raise CheckpointError(f"{path} is damaged or not a checkpoint of this version")
        digest = file.read(_DIGEST)
        if hashlib.file_digest(file, "sha256").digest() != digest:
            raise CheckpointError(f"checkpoint {path} is damaged")
        file.seek(len(_FORMAT) + _DIGEST)
        try:
            with np.load(file, allow_pickle=False) as stored:
                return dict(stored)
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"checkpoint {path} is unreadable: {error}") from None
