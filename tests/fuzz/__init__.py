"""Harnesses that feed any bytes to a reader and assert what must hold whatever they are."""
