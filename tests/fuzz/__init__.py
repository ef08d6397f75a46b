"""Harnesses that feed any bytes to a reader and assert what must hold whatever they are.

Importing registers the library's; the studio and the bench register theirs in `fuzz_studio` and
`fuzz_bench`.
"""

from fuzz import model_files, table_files
from fuzz.sandbox import READERS

__all__ = ["READERS", "model_files", "table_files"]
