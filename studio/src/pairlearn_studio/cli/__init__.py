"""``pairlearn annotate``, a file for each part of it."""
