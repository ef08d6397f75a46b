"""Checkpoints: enough to go on after a kill as if nothing had happened.

A checkpoint is one file: a line that names the format, the SHA-256 of the rest, and numpy
arrays. It is flushed to the disk before it takes its name, and the one before is kept
beside it. A file that does not match its digest (torn by a crash of the machine, or damaged
later) is passed over for the one before.
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
_DIGEST = 32
_WORK = "work"  # the array that says whose checkpoint it is
FIRST = 1.0
"""Seconds until the first one of a training is due, at most: an interruption keeps something."""


class CheckpointError(ValueError):
    """There is a checkpoint, and it cannot be used."""


class Checkpoint:
    """The state of one piece of work, in the file ``path`` and the one before it.

    The one before has ``.before`` at the end of its name. `due` says every so many ``seconds`` that
    it is time for another; for the first one, after a second.
    """

    def __init__(self, path: Path, seconds: float = 60.0) -> None:
        self.path, self.seconds = Path(path), seconds
        self.before = self.path.with_name(f"{self.path.name}.before")
        self._next = time.monotonic() + min(seconds, FIRST)

    def after(self) -> Checkpoint:
        """That of the work which follows this one, in a file of its own."""
        return Checkpoint(self.path.with_name(f"{self.path.name}.after"), self.seconds)

    def due(self) -> bool:
        """Whether it is time for another."""
        return time.monotonic() >= self._next

    def save(self, state: Mapping[str, NDArray[Any]], work: str) -> None:
        """Keep a state of `work`, which `load` checks; the last one becomes the one before."""
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
        """The last state that is whole; None if there is none to go on from.

        Raises CheckpointError if there are checkpoints and all are damaged, or of other work.
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
                    f"checkpoint {path} belongs to another training: delete it to start anew"
                )
            if damaged:
                warnings.warn(f"{damaged[0]}; going on from {path}", stacklevel=2)
            return state
        if damaged:
            raise CheckpointError(f"{'; '.join(damaged)}: delete what there is to start anew")
        return None

    def remove(self) -> None:
        """Remove both files, the older first, and before them those of the work after.

        Also what a process that was killed while it wrote one has left beside them.
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
            raise CheckpointError(f"{path} is damaged or no checkpoint of this version")
        told = file.read(_DIGEST)
        if hashlib.file_digest(file, "sha256").digest() != told:
            raise CheckpointError(f"checkpoint {path} is damaged")
        file.seek(len(_FORMAT) + _DIGEST)
        try:
            with np.load(file, allow_pickle=False) as stored:
                return dict(stored)
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"checkpoint {path} is unreadable: {error}") from None
