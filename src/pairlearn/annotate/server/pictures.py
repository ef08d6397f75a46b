"""Serve pictures by what they are, never by what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Picture", "Unshowable", "read_picture"]

LARGEST_BYTES = 32 * 1024 * 1024


class Unshowable(ValueError):
    """A file that is not shown: outside the project, too large, or no picture.

    Examples
    --------
    >>> issubclass(Unshowable, ValueError)
    True
    """


@dataclass(frozen=True)
class Picture:
    """The bytes of a picture and what they are."""

    content: bytes
    media_type: str


def read_picture(path: Path, folder: Path) -> Picture:
    """Read a picture that lies inside a folder.

    The type is told by the first bytes: PNG, JPEG, GIF, WebP, BMP or AVIF. SVG is not
    shown, because it can hold scripts.

    Raises
    ------
    Unshowable
        If the file, links followed, is outside ``folder``, too large or no picture.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.jpg")
    ...     _ = path.write_bytes(b"GIF89a...")
    ...     read_picture(path, Path(folder)).media_type
    'image/gif'
    """
    real = path.resolve(strict=True)
    if not real.is_relative_to(folder.resolve()) or not real.is_file():
        raise Unshowable(f"{path} is not inside the project")
    with real.open("rb") as file:
        content = file.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES:
        raise Unshowable(f"{path} has more than {LARGEST_BYTES} bytes")
    media_type = _media_type(content[:16])
    if media_type is None:
        raise Unshowable(f"{path} is no picture")
    return Picture(content, media_type)


def _media_type(head: bytes) -> str | None:
    signatures = (
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
    )
    for start, media_type in signatures:
        if head.startswith(start):
            return media_type
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:12] in (b"ftypavif", b"ftypavis"):
        return "image/avif"
    if head[:2] == b"BM" and head[6:10] == b"\0\0\0\0":
        return "image/bmp"
    return None
