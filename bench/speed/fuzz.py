"""Fuzz the readers with atheris, each for some seconds.

    python bench/speed/fuzz.py --seconds 240 [READER ...]

Needs ``pip install ".[fuzz]"`` in a clone (Linux). The readers are those of ``tests/fuzz``,
``studio/tests/fuzz_studio`` and ``bench/tests/fuzz_bench``.
Each runs in a process of its own, with bounds on memory and on the time of an input, from the
inputs kept in the ``corpus`` of its folder; what it finds is left in ``--work``. An input that
fails is printed with its file: fix the reader, and add the file to the corpus, where the tests
replay it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HARNESSES = [
    *(ROOT / "tests" / "fuzz", ROOT / "studio" / "tests" / "fuzz_studio"),
    ROOT / "bench" / "tests" / "fuzz_bench",
]
CORPORA = {path.name: path for place in HARNESSES for path in (place / "corpus").iterdir()}
MEMORY = 3 << 30
SECONDS_PER_INPUT = 30
TRACED = [
    *("pairlearn", "pairlearn_studio", "pairlearn_bench", "csv", "json", "ast", "tokenize"),
    *("numpy.lib.format", "zipfile", "safetensors"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("readers", nargs="*", default=sorted(CORPORA))
    parser.add_argument("--seconds", type=int, default=60, help="for each reader")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--work", type=Path, help="where new inputs are left; a temporary folder")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    work = args.work or Path(tempfile.mkdtemp(prefix="pairlearn-fuzz-"))
    if args.child:
        fuzz(args.readers[0], work, args.seconds, args.seed)
    failed = [name for name in args.readers if not run(name, work, args.seconds, args.seed)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; the inputs are in {work}")


def run(name: str, work: Path, seconds: int, seed: int) -> bool:
    """Fuzz one reader in its own process; return whether it succeeded."""
    command = [sys.executable, __file__, name, "--child", f"--work={work}"]
    command += [f"--seconds={seconds}", f"--seed={seed}"]
    # atheris ends its process without cleaning up, so the folder it works in is made here.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory) as place:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            env=os.environ | {"PAIRLEARN_FUZZ_FOLDER": place},
        )
    counts = re.findall(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    rates = re.findall(r"stat::average_exec_per_sec:\s*(\d+)", done.stderr)
    report = {
        "reader": name,
        "inputs": int(counts[-1]) if counts else None,
        "per_second": int(rates[-1]) if rates else None,
        "ok": done.returncode == 0,
    }
    print(json.dumps(report), flush=True)
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-6000:], flush=True)
    return done.returncode == 0


def fuzz(name: str, work: Path, seconds: int, seed: int) -> None:
    """Hand over to atheris, which ends the process."""
    import atheris

    sys.path[:0] = [str(place.parent) for place in HARNESSES]
    with atheris.instrument_imports(include=TRACED, enable_loader_override=False):
        for place in HARNESSES:
            importlib.import_module(place.name)
        harness = importlib.import_module("fuzz").READERS[name]
    inputs = work / name
    inputs.mkdir(parents=True, exist_ok=True)
    words = work / f"{name}.dict"
    words.write_text("".join(f'"{escaped(word)}"\n' for word in harness.words), "ascii")
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={SECONDS_PER_INPUT}",
        f"-rss_limit_mb={MEMORY >> 20}",
        f"-seed={seed}",
        f"-dict={words}",
        f"-artifact_prefix={inputs}-",
        "-max_len=16384",
        "-print_final_stats=1",
    ]
    mutate = harness.mutate
    extra = {} if mutate is None else {"custom_mutator": mutator(atheris, mutate)}
    folders = [str(inputs), str(CORPORA[name])]
    atheris.Setup([name, *options, *folders], harness.one_input, **extra)
    atheris.Fuzz()


def mutator(atheris, mutate):
    """Mutate by the format that the harness knows half of the time, else any bytes."""

    def custom(data: bytes, largest: int, seed: int) -> bytes:
        changed = mutate(data, seed) if seed % 2 else None
        if changed is None or len(changed) > largest:
            return atheris.Mutate(data, largest)
        return changed

    return custom


def escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    main()
