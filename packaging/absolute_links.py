"""Make the links of the three READMEs absolute, for the pages of a package index.

    python packaging/absolute_links.py v1.0.0

The release workflow runs it before it builds: an index shows a README without its repository.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from posixpath import normpath

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "https://github.com/pairlearn/pairlearn"
LINK = re.compile(r"(?P<image>!?)(?P<text>\[[^\]]*\])\((?P<path>[^):#]+)(?P<place>#[^)]*)?\)")


def absolute(text: str, folder: str, tag: str) -> str:
    """The text of a README in a folder, with links to this tag of the repository."""

    def link(found: re.Match[str]) -> str:
        path = normpath(f"{folder}/{found['path']}")
        kind = "raw" if found["image"] else "blob"
        place = found["place"] or ""
        return f"{found['image']}{found['text']}({SOURCE}/{kind}/{tag}/{path}{place})"

    return LINK.sub(link, text)


if __name__ == "__main__":
    for name in (".", "studio", "bench"):
        readme = ROOT / name / "README.md"
        text = absolute(readme.read_text(encoding="utf-8"), name, sys.argv[1])
        readme.write_text(text, encoding="utf-8")
