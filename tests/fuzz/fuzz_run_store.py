"""``RunStore``: finished runs as lines of JSON."""

from __future__ import annotations

from fuzz.mutation import line_mutation
from fuzz.sandbox import Broken, attempt, folder, same
from pairlearn.paper.runs import Record, StoreError
from pairlearn.paper.store import RunStore

WORDS = [f'"{name}": '.encode() for name in ("dataset", "prior", "seed", "method", "results")]
WORDS += [b'{"dataset": ', b"\n", b"NaN", b"1e999", b'"supervised"', b'"convex-0.5-relu"']
mutate = line_mutation


def one_input(data: bytes) -> list[Record] | str:
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
