"""Harnesses that feed any bytes to a reader and assert what must hold whatever they are."""

from fuzz import model_files, studio_files, table_files
from fuzz.sandbox import READERS

__all__ = ["READERS", "model_files", "studio_files", "table_files"]
