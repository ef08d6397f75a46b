"""Check a built site without a network: every link leads somewhere, nothing is from outside.

    python docs/tests/site_links.py build/docs

prints the links to other sites, and fails if a link inside the site is broken or a page
would load something from another host.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, by tag; a `link` only with certain relations.
_LOADED = {
    **dict.fromkeys(("script", "img", "iframe", "source", "video", "audio", "embed"), "src"),
    "link": "href",
    "object": "data",
}
_NOT_LOADED = {"canonical", "next", "prev", "search", "index", "author", "genindex", "copyright"}
_IN_STYLE = re.compile(r"""(?:@import\s+|url\()\s*["']?([^"')\s]+)""")
_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?|localhost(:\d+)?|127\.0\.0\.1(:\d+)?")


@dataclass
class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    path: Path
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)
        self._style = False
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids, links and loads."""
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        self._style = tag == "style"
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        self.loads += _IN_STYLE.findall(found.get("style", ""))
        target = found.get(_LOADED.get(tag, ""), "")
        if target and not (tag == "link" and set(found.get("rel", "").split()) & _NOT_LOADED):
            self.loads.append(target)

    def handle_data(self, data: str) -> None:
        """Note what a style sheet in the page loads."""
        if self._style:
            self.loads += _IN_STYLE.findall(data)


def read_site(folder: Path) -> dict[Path, Page]:
    """Every page of a built site, by its path."""
    return {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}


def is_outside(target: str) -> bool:
    """Whether a link leads to another host."""
    return target.startswith("//") or bool(urlsplit(target).scheme)


def broken_links(site: dict[Path, Page]) -> Iterator[str]:
    """Links and loads inside the site whose file or anchor does not exist."""
    for path, page in site.items():
        for target in dict.fromkeys([*page.links, *page.loads]):
            if is_outside(target):
                continue
            parts = urlsplit(target)
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if file.is_dir():
                file = file / "index.html"
            anchor = unquote(parts.fragment)
            if not file.exists():
                yield f"{path.name}: {target}: there is no such file"
            elif anchor and file in site and anchor not in site[file].ids:
                yield f"{path.name}: {target}: there is no such place in {file.name}"


def foreign_loads(site: dict[Path, Page], folder: Path) -> Iterator[str]:
    """What pages and style sheets would load from another host."""
    for path, page in site.items():
        yield from (
            f"{path.name} loads {target}"
            for target in page.loads
            if is_outside(target) and not target.startswith("data:")
        )
    for path in sorted(folder.rglob("*.css")):
        for target in _IN_STYLE.findall(path.read_text(encoding="utf-8")):
            if is_outside(target) and not target.startswith("data:"):
                yield f"{path.name} loads {target}"


def external_links(site: dict[Path, Page]) -> list[str]:
    """Links to other sites, each once."""
    found = {target for page in site.values() for target in page.links if is_outside(target)}
    return sorted(target for target in found if not target.startswith("mailto:"))


def is_well_formed(link: str) -> bool:
    """Whether a link to another site could be one: a known scheme, a host, no blanks.

    Examples
    --------
    >>> is_well_formed("https://arxiv.org/abs/2508.05108"), is_well_formed("https://arxiv,org")
    (True, False)
    """
    parts = urlsplit(link)
    return (
        parts.scheme in ("http", "https")
        and bool(_HOST.fullmatch(parts.netloc.lower()))
        and not re.search(r"\s", link)
    )


def main(folder: Path) -> int:
    """Print the links to other sites and whatever is wrong."""
    site = read_site(folder)
    outside = external_links(site)
    wrong = [*broken_links(site), *foreign_loads(site, folder)]
    wrong += [f"{link}: not a link" for link in outside if not is_well_formed(link)]
    print("\n".join([f"{len(site)} pages; links to other sites:", *outside, *wrong]))
    return 1 if wrong or not site else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
